//! The counters of a run for people and programs: one `name value` a line, units in the names.
//!
//! Printed to standard error by `read --stats`. The names are the ledger's own, so the identities
//! written there (`reads = hits + late_hits + misses`) can be checked by eye. After them stands a
//! line for each device with the engine's [estimate](crate::estimate) of its costs.

use std::fmt::Write;

use forerun_core::{Ledger, Nanos};

use crate::estimate::DeviceEstimate;

/// Number of counters of a ledger.
const COUNTERS: usize = 32;

/// The lines, for a run that took this long and gave this many bytes.
#[must_use]
pub fn lines(ledger: &Ledger, elapsed: Nanos, bytes: u64) -> String {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(elapsed.0.max(1));
    let mut text = format!("throughput_bytes_per_second {rate}\n");
    let run = [("bytes", bytes), ("elapsed_ns", elapsed.0)];
    for (name, value) in run.into_iter().chain(counters(ledger)) {
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

/// A line for each device: `device`, its name, and its costs as the engine takes them to be.
#[must_use]
pub fn devices(devices: &[DeviceEstimate]) -> String {
    let line = |device: &DeviceEstimate| format!("device {device}\n");
    devices.iter().map(line).collect()
}

/// All counters of a ledger, under its own names with their units.
#[must_use]
pub fn counters(ledger: &Ledger) -> [(&'static str, u64); COUNTERS] {
    [
        ("stall_ns", ledger.stall.0),
        ("reads", ledger.reads),
        ("hits", ledger.hits),
        ("late_hits", ledger.late_hits),
        ("misses", ledger.misses),
        ("prefetched", ledger.prefetched),
        ("used", ledger.used),
        ("evicted_unused", ledger.evicted_unused),
        ("resident_unused", ledger.resident_unused),
        ("in_flight", ledger.in_flight),
        ("failed", ledger.failed),
        ("cancelled", ledger.cancelled),
        ("demanded", ledger.demanded),
        ("gaps", ledger.gaps),
        ("demand_failed", ledger.demand_failed),
        ("evicted", ledger.evicted),
        ("thrashed", ledger.thrashed),
        ("refused_prefetches", ledger.refused_prefetches),
        ("memory_waits", ledger.memory_waits),
        ("windows", ledger.windows),
        ("hints", ledger.hints),
        ("hints_read", ledger.hints_read),
        ("hints_missed", ledger.hints_missed),
        ("hints_dropped", ledger.hints_dropped),
        ("files_ahead", ledger.files_ahead),
        ("files_ahead_used", ledger.files_ahead_used),
        ("files_ahead_wasted", ledger.files_ahead_wasted),
        ("files_ahead_open", ledger.files_ahead_open),
        ("files_ahead_unread", ledger.files_ahead_unread),
        ("requests", ledger.requests),
        ("request_bytes", ledger.request_bytes.0),
        ("memory_peak_bytes", ledger.memory_peak.0),
    ]
}
