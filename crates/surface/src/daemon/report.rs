//! The state of a running daemon, as one value: for the control socket, the metrics and `top`.
//!
//! Units end the names. Counters only grow, so rates are the reader's to compute. A watch fills what it shares with a
//! mount and [`WatchReport`] beside it: its open files are the streams that it steers, its queues the disks.

use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// The counters of a daemon.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Its source; of a watch the device.
    pub source: String,
    /// Its mount point; of a watch the first of its paths.
    pub mountpoint: String,
    /// Time since it began.
    pub elapsed_ns: u64,
    /// Bytes in a block, the unit of the counters.
    pub block_bytes: u64,
    /// The engine's counters, under the names of the ledger.
    pub counters: serde_json::Map<String, serde_json::Value>,
    /// Files in the kernel's cache.
    pub known_files: usize,
    /// Which files the kernel reads from the source.
    #[serde(default)]
    pub passthrough: PassthroughReport,
    /// Open files, each with its opener.
    pub open_files: Vec<OpenFileReport>,
    /// Counters of the emulated device, if there is one.
    pub device: Option<DeviceReport>,
    /// Why the journal ends before the mount does; none if it does not.
    #[serde(default)]
    pub journal_error: Option<String>,
    /// The record of reads, if there is one.
    #[serde(default)]
    pub record: Option<RecordReport>,
    /// The devices files are on, and their queues.
    pub queues: Vec<QueueReport>,
    /// What only a watch has; none of a mount.
    #[serde(default)]
    pub watch: Option<WatchReport>,
}

impl Report {
    /// Whether this is the daemon of a mount point, or of a path that is watched.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        // As reports have it: a path may be no text.
        let path = path.to_string_lossy();
        let paths = self.watch.iter().flat_map(|watch| &watch.paths);
        [&self.mountpoint]
            .into_iter()
            .chain(paths)
            .any(|own| Path::new(own) == Path::new(&*path))
    }
}

/// A record of reads so far.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RecordReport {
    /// Reads that it has.
    pub reads: u64,
    /// Reads that came after its bound, or of more files than a trace may have.
    pub left_out: u64,
    /// Why it ends before the mount does; none if it does not.
    pub error: Option<String>,
}

/// A watch, beside what it shares with a mount.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WatchReport {
    /// The paths that it was given.
    pub paths: Vec<String>,
    /// It decides and counts, and sets nothing.
    pub is_dry: bool,
    /// It sets nothing until it is told to go on.
    pub is_paused: bool,
    /// The events that tell of reads: `readahead` or `block`.
    pub seeing: String,
    /// Events of the page cache.
    pub events: u64,
    /// Events that did not fit the ring.
    pub events_lost: u64,
    /// Streams that are followed now.
    pub streams: u64,
    /// Streams that began.
    pub streams_begun: u64,
    /// Bytes of the windows that were seen: what the kernel fetched because they were missing.
    pub missed_bytes: u64,
    /// Limits of open files that were set.
    pub limits_set: u64,
    /// The time that it took.
    pub setting_ns: u64,
    /// Limits that would have been set, but for a dry run or a pause.
    pub limits_spared: u64,
    /// Longest time a descriptor was held.
    pub held_most_ns: u64,
    /// Pages that were read ahead and gone when their reader came.
    pub pages_lost: u64,
    /// Missed bytes that could not be steered, by cause and process, the most first.
    pub not_steered: Vec<NotSteeredReport>,
    /// The file systems.
    pub file_systems: Vec<FileSystemReport>,
}

/// Missed bytes of a process that could not be steered for one cause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotSteeredReport {
    /// The cause, in words.
    pub cause: String,
    /// The process; 0 for all that are not told apart.
    pub process: u32,
    /// The name of its program.
    pub program: String,
    /// How many.
    pub bytes: u64,
}

/// A file system that is watched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileSystemReport {
    /// Where it is mounted.
    pub point: String,
    /// Its type.
    pub kind: String,
    /// The bdi whose limit is raised.
    pub bdi: String,
    /// Its limit now; none if the device is gone.
    pub read_ahead_bytes: Option<u64>,
    /// Its disks have a fair scheduler for a while.
    #[serde(default)]
    pub is_fair: bool,
}

/// Which files are opened in passthrough.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Files for which it is faster.
    #[default]
    Auto,
    /// Files for which it is possible.
    Always,
    /// None.
    Never,
}

impl Mode {
    /// As it is written on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

/// Files that the kernel reads from the source by itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PassthroughReport {
    /// Which are to be.
    pub mode: Mode,
    /// Any can be.
    pub possible: bool,
    /// Files open so now.
    pub open_files: u64,
    /// Times a file was opened in passthrough.
    pub opens: u64,
}

/// An open file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenFileReport {
    /// Its path below the source; bytes that are no text are replaced.
    pub path: String,
    /// Its number among those of its process and path: the same in each report until it is closed.
    #[serde(default)]
    pub number: u64,
    /// The process that opened it.
    pub process: u32,
    /// The name of its program; empty if it is gone, and only its children are left.
    pub program: String,
    /// Its size.
    pub file_bytes: u64,
    /// Times the kernel asked for bytes.
    pub requests: u64,
    /// Bytes given to the kernel.
    pub read_bytes: u64,
    /// End of the last read.
    pub at_bytes: u64,
    /// The kernel reads it from the source; such reads are not counted here.
    #[serde(default)]
    pub passthrough: bool,
    /// Its streams, the one used last at the end.
    pub streams: Vec<StreamReport>,
}

/// A stream of an open file: a run that is fetched ahead.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StreamReport {
    /// Start position.
    pub begin_bytes: u64,
    /// Position of its reader.
    pub at_bytes: u64,
    /// Bytes from there on that were fetched, or are on the way.
    pub ahead_bytes: u64,
    /// Start of its last window.
    pub window_at_bytes: u64,
    /// Its length.
    pub window_bytes: u64,
    /// Its part behind the mark at which the next window is fetched.
    pub window_async_bytes: u64,
    /// Requests of the kernel that wait for bytes of it.
    pub waiting: u32,
}

/// A device and its queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QueueReport {
    /// Its number, as in `8:1`, or `emulated`.
    pub device: String,
    /// Fetches that wait in the engine for their turn.
    pub queued: usize,
    /// Fetches it is working on.
    pub in_flight: u32,
    /// Its costs; none from a daemon that does not tell them.
    #[serde(default)]
    pub estimate: Option<Estimate>,
}

/// An emulated device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeviceReport {
    /// Requests it carried out.
    pub requests: u64,
    /// Bytes it transferred.
    pub bytes: u64,
    /// Time it was busy.
    pub busy_ns: u64,
}

/// A mount's options, and the limits in force.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// The version of the daemon; empty from one that does not tell it.
    #[serde(default)]
    pub version: String,
    /// The preset; fixed as long as the mount lives.
    pub preset: String,
    /// The daemon's memory; fixed as long as the mount lives.
    pub memory_bytes: u64,
    /// Limit of its use; can be set.
    pub memory_limit_bytes: u64,
    /// The engine's part of that, for blocks; the rest is the daemon's beside it.
    pub engine_limit_bytes: u64,
    /// Readahead of the kernel; can be set. None if the kernel does not show it.
    pub kernel_readahead_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_mount_is_found_by_a_mount_point_that_is_no_text() {
        let point = Path::new(OsStr::from_bytes(b"/mnt/\xff"));
        let report = serde_json::json!({
            "source": "/data", "mountpoint": point.to_string_lossy(), "elapsed_ns": 0, "block_bytes": 4096,
            "counters": {}, "known_files": 0, "open_files": [], "device": null, "queues": [],
        });
        let report: Report = serde_json::from_value(report).unwrap();
        assert!(report.is_at(point) && !report.is_at(Path::new("/mnt")));
    }
}
