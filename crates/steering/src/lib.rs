//! Decisions of `forerun watch`: which limits the open files of a kernel get, from the events of its readahead.
//!
//! Problem: what a watch decides has to be the same over a running kernel and over a simulated one, or its simulated gain
//! says nothing. So all of it is here, without system calls, clock or thread, and both kernels are a [`Kernel`].
//!
//! ```text
//! events    a miss or a mark of the readahead, a request of a disk
//! streams   which events are of one reader that goes through one file
//! disks     costs of the disks, from their requests
//! windows   the engine, and what it is told
//! limits    whose limit an open file has
//! crowd     whether so many readers are served better by a fair queue
//! steering  from an event to the limit that is set
//! ```
//!
//! `forerun-watch` drives it with events of the running kernel, `forerun-sim` with those of its page cache.

#![forbid(unsafe_code)]

pub mod cause;
pub mod crowd;
pub mod disks;
pub mod events;
pub mod limits;
mod steering;
pub mod streams;
pub mod windows;

pub use cause::Cause;
pub use steering::{Counts, Engine, Kernel, Reader, Steering, Wanted};
