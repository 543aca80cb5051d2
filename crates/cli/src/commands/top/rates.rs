//! The difference of two reports, per second.
//!
//! Used by `top`. A counter that went back belongs to a mount that was started anew; its rate is
//! then zero, once.

use std::collections::HashMap;

use forerun_core::Nanos;

use crate::mount::report::Report;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// The time they are taken over.
    pub(super) over: Nanos,
    counters: HashMap<String, f64>,
    /// Bytes a second for each open file, by its path and process.
    files: HashMap<(String, u32), f64>,
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
        let key = |file: &crate::mount::report::OpenFileReport| (file.path.clone(), file.process);
        let read: HashMap<_, _> = before
            .open_files
            .iter()
            .map(|file| (key(file), file.read_bytes))
            .collect();
        let files = now.open_files.iter().map(|file| {
            let before = read.get(&key(file)).copied().unwrap_or(0);
            (key(file), rate(before, file.read_bytes))
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
    pub(super) fn of_file(&self, path: &str, process: u32) -> f64 {
        self.files
            .get(&(path.to_owned(), process))
            .copied()
            .unwrap_or(0.0)
    }
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
