//! forerun's depths in the kernel's own page cache, set from outside.
//!
//! For disks that programs read and write as ever: no mount, no changed program, no changed kernel. The kernel tells
//! when its readahead is asked for a page; the engine decides how long the next window of that stream is; the reader's
//! open file gets that limit. Every byte comes from the kernel, so none can be wrong.
//!
//! ```text
//! rings, sample, tracepoint     events of page cache and disks          seeing
//! bios, whereabouts             the same from block events, before Linux 6.18
//! descriptors, process          whose open file is it?                      finding
//! mounts                        which file systems, and which disks below them
//! kernel, memory                the running kernel, as [`forerun_steering`] sees it, which decides
//! limit                         a limit for one open file, and back     setting
//! scheduler                     a fair one for a crowd of readers, and back
//! small, filler                 files of folders, before they are read  filling
//! watch                         all of it in one loop
//! asked, told                   questions of users, and the state that answers them
//! ```
//!
//! `docs/WATCH.md` is for operators. The command line calls [`Watch::start`] and [`Watch::run`], and
//! [`guardian::run`](forerun_surface::undo::guardian::run) in the process that looks after the limits.

mod asked;
pub mod bios;
pub mod causes;
pub mod descriptors;
pub mod exclude;
mod filler;
mod kernel;
pub mod limit;
pub mod memory;
pub mod mounts;
pub mod passing;
pub mod process;
pub mod rings;
pub mod sample;
mod scheduler;
mod signals;
#[cfg(test)]
#[allow(
    unfulfilled_lint_expectations,
    reason = "this crate has no list of methods that are refused"
)]
#[path = "../../skipped.rs"]
mod skipped;
pub mod small;
mod told;
pub mod tracepoint;
pub mod watch;
mod whereabouts;

use forerun_steering::{disks, streams, windows};
pub use sample::Seeing;
pub use scheduler::FAIR;
pub use watch::{Report, Wanted, Watch};
