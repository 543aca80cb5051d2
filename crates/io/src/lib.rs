//! forerun-io: files and objects read ahead, in a memory of fixed size.
//!
//! For programs that read much from slow storage: many files side by side, more than fits into memory, or from
//! a server. It does not write, and a file that fits the page cache is read as fast without it.
//!
//! ```no_run
//! use std::io::Read;
//! use std::path::Path;
//!
//! use forerun_core::{Bytes, preset};
//! use forerun_io::{Config, Driver};
//!
//! let settings = preset::default().settings(Bytes(256 << 20))?;
//! let driver = Driver::new(Config::new(settings))?;
//! let mut film = driver.open(Path::new("film.mkv"))?;
//! let mut beginning = vec![0; 1 << 20];
//! film.read_exact(&mut beginning)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Driver`] has one memory for all [`Reader`]s, which any number of threads may use. A reader is a
//! `std::io::Read` and `Seek`, reads at offsets from many threads ([`Reader::read_at`]), and with the feature
//! `async` on any executor. An object that is no file implements [`Source`]; with the feature `http` objects of HTTP
//! servers do. One read's way:
//!
//! ```text
//! Reader::read_at --> hit: resident? copy, done            (no lock, no system call)
//!        | no
//!        v
//!     engine_host: lock { engine } --> dispatch queue --> tracer > fault > throttle > uring | pread | memory
//!        ^                                                                   |
//!        +------------------------ completed, from a backend's thread -------+
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`driver`], [`opening`], [`reader`], `hint`, [`folder`] | the face |
//! | `hit`, `hazard`, `threads` | resident blocks, lock-free; a slot for each thread |
//! | `engine_host`, `engine_state`, `deferred_inputs`, `dispatch_queue`, `wait`, `journal_file` | the engine's lock, the state behind it, the queues before and after it |
//! | `catalog`, [`source`] | which files, which version of them, where bytes come from |
//! | [`arena`], [`footprint`] | the memory, and the little beside it |
//! | [`backend`], [`generated`] | carry fetches out, and wrappers; content that need not be stored |
//! | [`geometry`], `arrays`, `placing` | on which devices a file lies, by the system or made up |
//!
//! It never decides which blocks to fetch or to give up, and never sees the simulator.

pub mod arena;
mod arrays;
pub mod backend;
mod catalog;
mod clock;
mod deferred_inputs;
mod dispatch_queue;
pub mod driver;
mod engine_host;
mod engine_state;
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
mod owner;
pub mod page_cache;
mod pages_ahead;
mod placing;
mod position;
mod prior;
pub mod reader;
pub mod served;
mod settle;
pub mod source;
mod span;
mod sync;
mod threads;
mod trimming;
mod wait;

pub use backend::BackendChoice;
pub use backend::wrap::fault::FaultPlan;
pub use backend::wrap::throttle::{DeviceUse, Emulation};
pub use clock::Clock;
pub use driver::{Config, Driver, Lab};
pub use error::Error;
pub use folder::{Folder, OpensAhead};
pub use placing::Striping;
pub use prior::PriorSource;
pub use reader::Reader;
pub use settle::Looks;
pub use source::Source;

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
