//! forerun-sim: the engine driven in virtual time, over modelled devices.
//!
//! The [`world`] plays the driver: it runs the readers of a [`workload`] (or a [`trace`]) as
//! processes that think and read, hands their reads to one [`forerun_core::Engine`], and lets
//! [`device`]s take virtual time to fetch. No clock, no thread, no byte of data: a run is decided
//! by its [`Scene`] and ends in the same [`Report`] on every machine.
//!
//! ```text
//! workload -> readers -> [hit path: table] -> engine -> fetches -> devices -> completions
//!                 ^                             |                                 |
//!                 +---------- serve ------------+<--------------------------------+
//! ```
//!
//! ```text
//! trace, workload           the reads, recorded or made         announce   as hints
//! wrap, device              the device, innermost last          phased     in the phase of a turn
//! world, hinted             run by the engine or a planner      simulate   either, as one outcome
//! kernel                    run by a kernel's readahead, with or without a watch
//! record, replay            its decisions, kept and repeated    report     as figures, times as percentiles
//! count                     hits without time                  validate   a drive against measured responses
//! ```
//!
//! The engine here is the engine that reads real files, so a policy decides the same in the
//! simulator and in production; and [`replay`] takes the journal of a real run and checks decision
//! for decision that the engine still decides so.

#![forbid(unsafe_code)]

pub mod announce;
pub mod conformance;
pub mod count;
pub mod device;
pub mod hinted;
pub mod kernel;
mod lines;
pub mod phased;
pub mod profile;
pub mod random;
pub mod record;
pub mod replay;
pub mod report;
pub mod scheduled;
pub mod simulate;
pub mod times;
pub mod trace;
pub mod validate;
pub mod workload;
pub mod world;
pub mod wrap;

pub use record::{Record, Text};
pub use report::{DeviceReport, ReaderReport, Report, Summary};
pub use world::{Scene, WorldError};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So is the method of the page on methods of one's own.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/METHODS.md")]
struct Methods;
