//! The mount: any program reads ahead, unchanged.
//!
//! `forerun mount SOURCE MOUNTPOINT` shows SOURCE, read-only, at MOUNTPOINT. Programs' reads there
//! come through the engine; bytes read stay in the kernel's page cache as for any file system, so
//! the engine's memory holds bytes *not yet* read.
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
//! | [`fs`] | the file system, without FUSE |
//! | [`fuse`] | requests of the kernel in, answers out |
//! | [`lanes`] | calls to file systems that may not answer |
//! | [`running`], [`ending`] | from a channel to a mount that works, and to its end |
//! | [`point`], [`attach`], [`options`] | mount point, `mount(2)`, `-o` |
//! | [`limits`], [`budget`] | those of the process, and the division of `--memory` |
//! | [`background`] | a daemon that was seen to work |
//! | [`watch`], [`readahead`], [`trust`] | the kernel's caches |
//! | [`announcements`] | reads that programs will do |
//! | [`control`], [`sockets`], [`metrics`], [`read_times`], [`report`] | reports and limits |

pub mod announcements;
pub mod attach;
pub mod background;
pub mod budget;
pub mod control;
pub mod ending;
pub mod fs;
pub mod fuse;
pub mod lanes;
pub mod limits;
pub mod metrics;
pub mod options;
pub mod point;
pub mod read_times;
pub mod readahead;
pub mod report;
pub mod running;
pub mod sockets;
pub mod trust;
pub mod watch;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; data behind our locks is right after every single step, so a panic spoils nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
