//! The mount: any program reads ahead, unchanged.
//!
//! `forerun mount SOURCE MOUNTPOINT` shows SOURCE, read-only, at MOUNTPOINT. Reads of programs
//! there go through the engine. The kernel's page cache keeps bytes that were read, as for any file
//! system, so the engine's memory holds bytes that were prefetched and *not yet* read.
//!
//! ```text
//! program --> kernel: page cache --> fuse --> fs --> forerun-io: engine, backend --> SOURCE
//!                        ^                     ^
//!                        +------- watch -------+      control <-- forerun ctl, forerun top
//!                     (pages of changed files)        metrics <-- Prometheus
//! ```
//!
//! | module | purpose |
//! | --- | --- |
//! | [`mounted`]: [`fs`], [`objects`] | the file systems of directories and of stores |
//! | [`engine`], [`open_file`], [`slots`] | which both have |
//! | [`fuse`] | requests of the kernel in, answers out |
//! | [`lanes`] | calls to file systems that may not answer |
//! | [`running`], [`ending`] | start of a mount, and its end |
//! | [`point`], [`attach`], [`own_mount`], [`options`] | mount point, mounting, `-o` |
//! | [`limits`], [`budget`], [`background`] | limits and memory of the process; the daemon |
//! | [`watch`], [`readahead`], [`trust`] | the kernel's caches |
//! | [`announcements`] | announced reads |
//! | [`answers`], [`control`], [`sockets`], [`metrics`], [`read_times`], [`report`], [`journal`], [`record`] | reports and limits |

#![forbid(unsafe_code)]

pub mod announcements;
pub mod answers;
pub mod attach;
pub mod budget;
pub mod ending;
pub mod engine;
pub mod fs;
pub mod fuse;
pub mod journal;
pub mod lanes;
pub mod limits;
pub mod metrics;
pub mod mounted;
pub mod objects;
pub mod open_file;
pub mod options;
pub mod own_mount;
pub mod point;
pub mod read_times;
pub mod readahead;
pub mod record;
pub mod report;
pub mod running;
pub mod slots;
pub mod trust;
pub mod watch;

pub use forerun_surface::daemon::metrics::address;
pub use forerun_surface::daemon::{announced, background, control, sockets};
use forerun_surface::{estimate, failure, files, quantity, stats};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; data behind our locks is right after every single step, so a panic spoils nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
