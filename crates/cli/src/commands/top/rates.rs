//! The difference of two reports, per second.
//!
//! Used by `top`. A counter that went back belongs to a mount that was started anew; its rate is
//! then zero, once.

use std::collections::HashMap;

use forerun_core::Nanos;

use crate::mount::report::{OpenFileReport, Report};

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// The time they are taken over.
    pub(super) over: Nanos,
    counters: HashMap<String, f64>,
    /// Bytes a second for each open file.
    files: HashMap<FileKey, f64>,
    /// How much of the time the emulated device was busy.
    pub(super) device_busy: f64,
}

impl Rates {
    /// Averages over the life of the mount.
    pub(super) fn since_start(now: &Report) -> Self {
        let mut start = now.clone();
        start.elapsed_ns = 0;
        start.counters.clear();
        start.open_files.clear();
        start.watch = None;
        if let Some(device) = &mut start.device {
            device.busy_ns = 0;
        }
        Self::between(&start, now)
    }

    /// From one report to a later one.
    pub(super) fn between(before: &Report, now: &Report) -> Self {
        let over = Nanos(now.elapsed_ns.saturating_sub(before.elapsed_ns));
        let elapsed_ns = over.0.max(1) as f64;
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 * 1e9 / elapsed_ns;
        let counters = now.counters.iter().map(|(name, value)| {
            let value = value.as_u64().unwrap_or(0);
            (name.clone(), rate(count(before, name), value))
        });
        let (earlier, later) = (of_watch(before), of_watch(now));
        let of_watch = later.into_iter().zip(earlier);
        let of_watch =
            of_watch.map(|((name, now), (_, before))| (name.to_owned(), rate(before, now)));
        let read: HashMap<_, _> = before
            .open_files
            .iter()
            .map(|file| (key_of(file), file.read_bytes))
            .collect();
        let files = now.open_files.iter().map(|file| {
            let before = read.get(&key_of(file)).copied().unwrap_or(0);
            (key_of(file), rate(before, file.read_bytes))
        });
        let busy = |report: &Report| report.device.as_ref().map_or(0, |device| device.busy_ns);
        Self {
            over,
            counters: counters.chain(of_watch).collect(),
            files: files.collect(),
            // Service is counted when it begins, so a long request may exceed the period.
            device_busy: (rate(busy(before), busy(now)) / 1e9).min(1.0),
        }
    }

    /// Of a counter.
    pub(super) fn of(&self, name: &str) -> f64 {
        self.counters.get(name).copied().unwrap_or(0.0)
    }

    /// Of an open file.
    pub(super) fn of_file(&self, file: &OpenFileReport) -> f64 {
        self.files.get(&key_of(file)).copied().unwrap_or(0.0)
    }
}

/// An open file by its path, process and number, since one process may have opened a file several times.
type FileKey = (String, u32, u64);

fn key_of(file: &OpenFileReport) -> FileKey {
    (file.path.clone(), file.process, file.number)
}

/// Counters that a watch has beside those of the engine.
fn of_watch(report: &Report) -> [(&'static str, u64); 3] {
    let watch = report.watch.clone().unwrap_or_default();
    [
        ("events", watch.events),
        ("missed_bytes", watch.missed_bytes),
        ("limits_set", watch.limits_set),
    ]
}

/// A counter of a report.
pub(super) fn count(report: &Report, name: &str) -> u64 {
    report
        .counters
        .get(name)
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// After so many seconds, one process has a file open several times: by number and bytes read.
    fn report(seconds: u64, files: &[(u64, u64)]) -> Report {
        let file = |(number, read): &(u64, u64)| {
            json!({
                "path": "a", "number": number, "process": 7, "program": "tar", "file_bytes": 1u64 << 40,
                "requests": 1, "read_bytes": read, "at_bytes": read, "streams": [],
            })
        };
        let files: Vec<_> = files.iter().map(file).collect();
        let report = json!({
            "source": "/data", "mountpoint": "/fast", "elapsed_ns": seconds * 1_000_000_000,
            "block_bytes": 4096, "counters": {}, "known_files": 1, "open_files": files, "queues": [],
        });
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn files_that_one_process_has_open_twice_have_rates_of_their_own() {
        let before = report(1, &[(1, 1 << 40), (2, 4096)]);
        let rates = |after: &Report| -> Vec<f64> {
            let rates = Rates::between(&before, after);
            after
                .open_files
                .iter()
                .map(|file| rates.of_file(file))
                .collect()
        };
        let busy = report(2, &[(1, 1 << 40), (2, 1_004_096), (3, 500)]);
        assert_eq!(rates(&busy), [0.0, 1e6, 500.0]);
        let closed = report(2, &[(1, 1 << 40)]);
        assert_eq!(rates(&closed), [0.0]);
    }
}
