//! The forms in which values come from users and go back to them, for every program of forerun.
//!
//! ```text
//! quantity   64KiB, 8ms, 80MB/s: parsed and printed        files        the user's, read and written whole
//! failure    a message and an exit code                    environment  variables, read once
//! estimate   a device's costs with their origin            stats        counters, one a line
//! daemon     a mount or a watch: its socket, report, metrics and background
//! undo       values of the kernel that are changed, and come back
//! below      file system, readahead and disks of a path
//! figure     curves and bars of pages, as SVG              text         of pages, escaped in one place
//! ```
//!
//! The command line and the mount show the same figures under the same names because both take them
//! from here. Nothing in this crate parses arguments or prints.

#![forbid(unsafe_code)]

pub mod below;
#[cfg(feature = "daemon")]
pub mod daemon;
pub mod environment;
pub mod estimate;
pub mod failure;
pub mod figure;
pub mod files;
pub mod quantity;
#[cfg(all(test, feature = "daemon"))]
#[path = "../../skipped.rs"]
mod skipped;
pub mod stats;
pub mod text;
#[cfg(feature = "daemon")]
pub mod undo;
