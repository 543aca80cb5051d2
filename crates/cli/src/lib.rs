//! The command line of forerun, as a library so that tests and fuzz targets reach its parts.
//!
//! ```text
//! main -> args -> commands/{read, profile, bench, replay, list} -> forerun-io, forerun-sim
//! ```
//!
//! `args` holds every flag, `commands` one file a command, `failure` the exit codes. The parsers
//! (`quantity`, `emulation`, `profile_file`) and the methods behind a command (`measure`,
//! `bench`) do not know the command line. Decisions about reading ahead are none of this crate's:
//! it builds settings, hands them to a driver, and shows what came out.

#![forbid(unsafe_code)]

pub mod emulation;
pub mod failure;
pub mod files;
pub mod measure;
pub mod profile_file;
pub mod progress;
pub mod quantity;
