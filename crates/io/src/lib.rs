//! forerun-io: files and objects read ahead, in a memory of fixed size.
//!
//! For programs that read much from slow storage: many files side by side, more than fits into memory, or from
//! a server. It does not write, and a file that fits the page cache is read as fast without it.
//!
//! ```no_run
//! use std::io::Read;
//! use std::path::Path;
//!
//! use forerun_io::{Bytes, Config, Driver, preset};
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
//! `async` on any executor. An object that is no file implements [`Source`], as those of HTTP servers and stores do in
//! the crate `forerun-store`. The way of a read and the modules: [`driver`].

mod alarm;
pub mod arena;
mod arrays;
pub mod backend;
mod catalog;
mod clock;
mod deferred_inputs;
mod dispatch_queue;
pub mod driver;
pub mod emulate;
mod engine_host;
mod engine_state;
pub mod error;
pub mod folder;
pub mod footprint;
mod foreign;
pub mod generated;
pub mod geometry;
mod hazard;
mod hint;
mod hit;
pub mod inherited;
mod journal_file;
pub mod kept;
mod numbers;
pub mod opening;
mod owner;
pub mod page_cache;
mod pages_ahead;
mod placing;
pub mod position;
mod prior;
pub mod reader;
mod segments;
pub mod served;
mod settle;
#[cfg(test)]
#[path = "../../skipped.rs"]
mod skipped;
pub mod source;
mod span;
mod sync;
mod threads;
mod trimming;
mod version_number;
mod wait;
pub mod wrap;

pub use backend::BackendChoice;
pub use clock::Clock;
pub use driver::{Config, Driver, Lab};
pub use emulate::DeviceUse;
pub use error::Error;
pub use folder::{Folder, OpensAhead};
/// The engine, for everything beyond the beginning: methods, hints, journals.
pub use forerun_core;
pub use forerun_core::{Bytes, Nanos, Profile, preset, settings::Settings};
pub use placing::Striping;
pub use prior::PriorSource;
pub use reader::Reader;
pub use settle::Looks;
pub use source::Source;
pub use wrap::fault::FaultPlan;

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So is the program on the repository's first page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;

/// And that of the page on Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/RUST.md")]
struct RustPage;
