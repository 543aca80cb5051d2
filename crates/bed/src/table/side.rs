//! One run of one candidate: cold, set, in its memory, measured.
//!
//! Called by the [`table`](super). The reading program is this binary again, as a process, because
//! a memory group holds processes. Its prefetcher is in the group too: the kernel's pages are
//! charged to the reader, and `forerun` is a member. The disks' own counters before and after
//! give the requests that reached them.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::bed::{Bed, Queue};
use crate::bench::Bench;
use crate::failure::{At, Failure};
use crate::read::Readings;
use crate::status::{self, DiskUsage};
use crate::tool;

use super::Comparison;
use super::rival::{self, Rival};

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

/// The figures of one run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Measured {
    pub(super) mb_per_second: f64,
    pub(super) slowest_per_mean: f64,
    pub(super) switches_per_request: f64,
    pub(super) request_bytes: f64,
    pub(super) late_ns: f64,
    pub(super) resident_max_bytes: Option<u64>,
    pub(super) processor: Option<f64>,
}

impl Bench<'_, Comparison> {
    pub(super) fn run(&mut self, side: &Side, readers: usize) -> Result<Measured, Failure> {
        let (queue, memory) = (side.queue(self.bed), self.comparison.memory_bytes);
        self.cold(&queue, memory, |bench, group| {
            bench.run_in(group, side, readers)
        })
    }

    fn run_in(
        &mut self,
        group: Option<&Path>,
        side: &Side,
        readers: usize,
    ) -> Result<Measured, Failure> {
        let compared = self.comparison;
        let memory = rival::share(compared.memory_bytes, compared.read_bytes, readers);
        let rival = Rival::start(self, side, compared.forerun.as_deref(), memory, group)?;
        let folder = Rival::folder(rival.as_ref(), self.place);
        let before = status::usage(self.place)?;
        let readings = self.read(group, folder, readers);
        let after = status::usage(self.place)?;
        let resident_max_bytes = rival.as_ref().and_then(Rival::resident_max_bytes);
        let processor_seconds = rival.as_ref().and_then(Rival::processor_seconds);
        let stopped = rival.map_or(Ok(()), Rival::stop);
        let readings = readings?;
        stopped?;
        let mut measured = Measured::new(&readings, &before, &after);
        measured.resident_max_bytes = resident_max_bytes;
        measured.processor = processor_seconds.map(|seconds| seconds / readings.seconds);
        Ok(measured)
    }

    fn read(
        &self,
        group: Option<&Path>,
        folder: &Path,
        readers: usize,
    ) -> Result<Readings, Failure> {
        let program = std::env::current_exe().at(folder)?;
        let mut command = tool::at_ordinary_io_priority(&program);
        command
            .arg("read")
            .arg(folder)
            .args(["--readers", &readers.to_string()])
            .args(["--read-bytes", &format!("{}B", self.comparison.read_bytes)])
            .args(["--time", &format!("{}ms", self.comparison.time.as_millis())])
            .args(["--seed", &self.bed.files.seed.to_string()])
            .stdin(Stdio::null());
        if let Some(group) = group {
            command.arg("--memory-group").arg(group);
        }
        readings(command)
    }
}

fn readings(mut command: impl std::borrow::BorrowMut<Command>) -> Result<Readings, Failure> {
    let output = command.borrow_mut().output();
    let output = output.map_err(|e| Failure::Run(format!("the reading program: {e}")))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        let text = format!("the reading program: {status}: {}", complaint.trim_end());
        return Err(Failure::Run(text));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|e| Failure::Run(format!("the reading program said something else: {e}")))
}

impl Measured {
    fn new(readings: &Readings, before: &[DiskUsage], after: &[DiskUsage]) -> Self {
        let sum = |field: fn(&DiskUsage) -> u64| {
            let total = |disks: &[DiskUsage]| disks.iter().map(field).sum::<u64>();
            total(after).saturating_sub(total(before)) as f64
        };
        let requests = sum(|d| d.requests).max(1.0);
        Self {
            mb_per_second: readings.mb_per_second,
            slowest_per_mean: readings.slowest_per_mean,
            switches_per_request: sum(|d| d.switches) / requests,
            request_bytes: sum(|d| d.bytes) / requests,
            late_ns: sum(|d| d.late_ns) / requests,
            resident_max_bytes: None,
            processor: None,
        }
    }

    #[cfg(test)]
    pub(super) fn of_rate(mb_per_second: f64) -> Self {
        Self {
            mb_per_second,
            slowest_per_mean: 1.0,
            switches_per_request: 1.0,
            request_bytes: 131_072.0,
            late_ns: 0.0,
            resident_max_bytes: None,
            processor: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(requests: u64, switches: u64, bytes: u64, late_ns: u64) -> DiskUsage {
        DiskUsage {
            requests,
            bytes,
            switches,
            busy_ns: 0,
            late_ns,
            late_max_ns: 0,
            is_realtime: true,
        }
    }

    #[test]
    fn what_reached_the_disks_is_the_difference_over_all_of_them() {
        let readings = Readings {
            readers: 1,
            read_bytes: 1,
            bytes: 1,
            seconds: 1.0,
            mb_per_second: 5.0,
            slowest_per_mean: 0.5,
            shares: Vec::new(),
        };
        let before = [usage(10, 5, 1_000, 50), usage(0, 0, 0, 0)];
        let after = [usage(14, 8, 5_000, 90), usage(6, 2, 6_000, 10)];
        let measured = Measured::new(&readings, &before, &after);
        assert_eq!(measured.switches_per_request, 0.5);
        assert_eq!(measured.request_bytes, 1_000.0);
        assert_eq!(measured.late_ns, 5.0);
    }
}
