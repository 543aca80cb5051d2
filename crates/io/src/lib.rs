//! forerun-io: the engine in real time, over files, devices and threads.
//!
//! The command line builds a [`Driver`] from a [`Config`], opens [`Reader`]s and reads; the same
//! engine that the simulator drives decides what is fetched ahead. One read's way:
//!
//! ```text
//! Reader::read_at --> hit: resident? copy, done            (no lock, no system call)
//!        | no
//!        v
//!     shared: lock { engine } --> outbox --> tracer > fault > throttle > uring | pread | memory
//!        ^                                                                   |
//!        +------------------------ completed, from a backend's thread -------+
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`driver`], [`opening`], [`reader`], `hint`, [`folder`] | the face |
//! | `hit`, `hazard`, `threads` | resident blocks, lock-free; a slot for each thread |
//! | `shared`, `control`, `door`, `outbox`, `wait`, `journal_file` | the engine's lock and what passes through it |
//! | `catalog`, [`source`] | which files, which version of them, where bytes come from |
//! | [`arena`], [`footprint`] | the memory, and the little beside it |
//! | [`backend`], [`generated`] | what carries fetches out, and wrappers; content that need not be stored |
//! | [`geometry`], `arrays`, `placing` | on which devices a file lies, by the system or made up |
//!
//! It never decides what to fetch or to give up, and never sees the simulator.

pub mod arena;
mod arrays;
pub mod backend;
mod catalog;
mod clock;
mod control;
mod door;
pub mod driver;
pub mod error;
pub mod folder;
pub mod footprint;
pub mod generated;
pub mod geometry;
mod hazard;
mod hint;
mod hit;
mod journal_file;
mod numbers;
pub mod opening;
mod outbox;
mod owner;
pub mod page_cache;
mod pages_ahead;
mod placing;
mod position;
mod prior;
pub mod reader;
pub mod served;
mod settle;
mod shared;
pub mod source;
mod span;
mod surplus;
mod sync;
mod threads;
mod wait;

pub use backend::BackendChoice;
pub use backend::wrap::fault::FaultPlan;
pub use backend::wrap::throttle::{DeviceUse, Emulation};
pub use clock::Clock;
pub use driver::{Config, Driver};
pub use error::Error;
pub use folder::{Folder, OpensAhead};
pub use placing::Striping;
pub use prior::PriorSource;
pub use reader::Reader;
pub use settle::Looks;
pub use source::Source;
