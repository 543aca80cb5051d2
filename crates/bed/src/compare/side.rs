//! A candidate of a comparison: its name, and the settings of the disks under it.
//!
//! Called by [`compare`](super) and by the two that choose candidates, [`table`](crate::table) and
//! [`servers`](crate::servers).

use std::fmt;

use clap::ValueEnum;

use crate::bed::{Bed, Queue};

/// The prefetcher.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The kernel, with this scheduler and readahead.
    Kernel {
        scheduler: String,
        read_ahead_kib: u64,
    },
    /// `forerun mount` with this preset.
    Forerun {
        preset: String,
        /// Whether it is given the profile of the disks; without, it has to measure them.
        is_told: bool,
    },
    /// The kernel as the bed sets it, beside `forerun watch`.
    Watch(How),
}

/// A way of `forerun watch`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum How {
    /// By events of the kernel's readahead
    Readahead,
    /// By block events
    Block,
    /// By the best events, with `--scheduler auto`
    Auto,
}

impl How {
    /// Its options.
    pub(super) fn options(self) -> [&'static str; 2] {
        match self {
            Self::Readahead => ["--seeing", "readahead"],
            Self::Block => ["--seeing", "block"],
            Self::Auto => ["--scheduler", "auto"],
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel {
                scheduler,
                read_ahead_kib,
            } => {
                write!(f, "kernel {scheduler} {read_ahead_kib}")
            }
            Self::Forerun { preset, is_told } => {
                let not_told = if *is_told { "" } else { ", not told" };
                write!(f, "forerun {preset}{not_told}")
            }
            Self::Watch(how) => write!(f, "watch {}", how.options()[1]),
        }
    }
}

impl Side {
    /// A mount and a watch find the bed as its TOML sets it.
    pub(crate) fn queue(&self, bed: &Bed) -> Queue {
        match self {
            Self::Kernel {
                scheduler,
                read_ahead_kib,
            } => Queue {
                scheduler: scheduler.clone(),
                read_ahead_bytes: read_ahead_kib * 1024,
            },
            Self::Forerun { .. } | Self::Watch(_) => bed.queue.clone(),
        }
    }
}
