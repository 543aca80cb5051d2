//! One look at a mount: memory of the process, and the engine's ledger.
//!
//! Called by [`soak`](super) once a second. The kernel's side is `/proc/PID/status`; the engine's
//! is `forerun ctl MOUNTPOINT stats`, whose counters are blocks. Counters that are missing are an
//! error: a soak that sees zeros because a name changed would pass for ever.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;
use serde_json::Value;

use crate::failure::{At, Failure};

/// A sample.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// Since the first reader.
    pub seconds: f64,
    /// Resident memory of the daemon.
    pub resident_bytes: u64,
    /// Its threads.
    pub threads: u64,
    /// The ledger.
    pub ledger: Ledger,
}

/// Counters of the engine that go up and down; in bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ledger {
    /// Prefetched and not arrived.
    pub in_flight_bytes: u64,
    /// Prefetched, arrived and not read.
    pub resident_unused_bytes: u64,
    /// Files that are open.
    pub open_files: u64,
    /// Streams of open files.
    pub streams: u64,
    /// Requests that wait for bytes of a stream.
    pub reads_waiting: u64,
    /// Requests queued for the devices, or carried out by them.
    pub requests: u64,
    /// `prefetched` minus all it may have become, in blocks, and `reads` minus its parts: 0, or the
    /// ledger is wrong.
    pub unexplained: i64,
}

impl Ledger {
    /// Whether nothing is under way and no reader is there.
    pub(super) fn is_at_rest(&self) -> bool {
        let under_way = [
            self.in_flight_bytes,
            self.open_files,
            self.streams,
            self.reads_waiting,
            self.requests,
        ];
        under_way == [0; 5] && self.unexplained == 0
    }
}

/// Looks at the mount of a process.
///
/// # Errors
/// The process is gone, the mount does not answer, or answers something else.
pub(super) fn take(
    forerun: &Path,
    mount: &Path,
    process: u32,
    seconds: f64,
) -> Result<Sample, Failure> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).at(Path::new(&path))?;
    let field =
        |name: &str| field(&status, name).ok_or_else(|| Failure::Run(format!("{path}: no {name}")));
    let mut command = Command::new(forerun);
    let output = command
        .arg("ctl")
        .arg(mount)
        .arg("stats")
        .stdin(Stdio::null())
        .output();
    let output = output.at(forerun)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Run(format!(
            "forerun ctl stats: {}",
            said.trim_end()
        )));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(Sample {
        seconds,
        resident_bytes: field("VmRSS:")? * 1024,
        threads: field("Threads:")?,
        ledger: ledger(&text).map_err(|why| Failure::Run(format!("forerun ctl stats: {why}")))?,
    })
}

/// `VmRSS:     1234 kB`
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn ledger(text: &str) -> Result<Ledger, String> {
    let report: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let number = |value: &Value, name: &str| {
        let number = value[name].as_u64();
        number.ok_or_else(|| format!("no number `{name}`"))
    };
    let list = |value: &Value, name: &str| {
        let list = value[name].as_array().cloned();
        list.ok_or_else(|| format!("no list `{name}`"))
    };
    let counters = &report["counters"];
    let count = |name: &str| number(counters, name);
    let signed = |name: &str| count(name).map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    let mut unexplained = (signed("prefetched")?, signed("reads")?);
    for part in [
        "used",
        "evicted_unused",
        "resident_unused",
        "in_flight",
        "failed",
        "cancelled",
    ] {
        unexplained.0 -= signed(part)?;
    }
    for part in ["hits", "late_hits", "misses"] {
        unexplained.1 -= signed(part)?;
    }
    let block = number(&report, "block_bytes")?;
    let files = list(&report, "open_files")?;
    let (mut streams, mut reads_waiting, mut requests) = (0, 0, 0);
    for file in &files {
        for stream in list(file, "streams")? {
            streams += 1;
            reads_waiting += number(&stream, "waiting")?;
        }
    }
    for queue in list(&report, "queues")? {
        requests += number(&queue, "queued")? + number(&queue, "in_flight")?;
    }
    Ok(Ledger {
        in_flight_bytes: count("in_flight")? * block,
        resident_unused_bytes: count("resident_unused")? * block,
        open_files: files.len() as u64,
        streams,
        reads_waiting,
        requests,
        unexplained: unexplained.0.abs() + unexplained.1.abs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = r#"{"block_bytes": 4096, "counters": {"prefetched": 21, "used": 8,
        "evicted_unused": 1, "resident_unused": 5, "in_flight": 4, "failed": 1, "cancelled": 2,
        "reads": 6, "hits": 1, "late_hits": 2, "misses": 3},
        "open_files": [{"streams": [{"waiting": 2}, {"waiting": 1}]}, {"streams": []}],
        "queues": [{"queued": 3, "in_flight": 1}]}"#;

    #[test]
    fn the_ledger_is_read_from_the_stats_of_a_mount() {
        let ledger = ledger(STATS).unwrap();
        assert_eq!(
            (ledger.in_flight_bytes, ledger.resident_unused_bytes),
            (16_384, 20_480)
        );
        assert_eq!((ledger.open_files, ledger.streams), (2, 2));
        assert_eq!((ledger.reads_waiting, ledger.requests), (3, 4));
        assert_eq!(ledger.unexplained, 0);
        assert!(!ledger.is_at_rest());
    }

    #[test]
    fn counters_that_do_not_add_up_or_are_missing_do_not_pass() {
        let wrong = STATS.replace("\"used\": 8", "\"used\": 7");
        assert_eq!(ledger(&wrong).unwrap().unexplained, 1);
        for (good, bad) in [
            ("\"cancelled\"", "\"canceled\""),
            ("\"misses\"", "\"missed\""),
            ("\"queues\"", "\"devices\""),
            ("\"waiting\": 2", "\"waiting\": -2"),
            ("\"block_bytes\": 4096,", ""),
            ("}]}", ""),
        ] {
            assert!(STATS.contains(good), "{good}");
            assert!(ledger(&STATS.replacen(good, bad, 1)).is_err(), "{bad}");
        }
    }

    #[test]
    fn memory_is_read_from_the_status() {
        let status = "VmHWM:\t 99 kB\nVmRSS:\t  1234 kB\nThreads:\t7\n";
        assert_eq!(field(status, "VmRSS:"), Some(1_234));
        assert_eq!(field(status, "Threads:"), Some(7));
        assert_eq!(field(status, "VmSwap:"), None);
    }
}
