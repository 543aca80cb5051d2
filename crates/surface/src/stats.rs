//! The counters of a run for people and programs: one `name value` a line, units in the names.
//!
//! Printed to standard error by `read --stats`. The names are the ledger's own, so the identities
//! written there (`reads = hits + late_hits + misses`) can be checked by eye. After them stands a
//! line for each device with the engine's [estimate](crate::estimate) of its costs, which rests on its
//! *measured* requests: fewer than `requests`, which are all.

use std::fmt::Write;

use forerun_core::{Bytes, Ledger, Nanos};

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

/// The counters of several engines of one daemon, added up.
#[must_use]
pub fn sum(ledgers: impl Iterator<Item = Ledger>) -> Ledger {
    ledgers.fold(Ledger::default(), |a, b| Ledger {
        reads: a.reads + b.reads,
        hits: a.hits + b.hits,
        late_hits: a.late_hits + b.late_hits,
        misses: a.misses + b.misses,
        prefetched: a.prefetched + b.prefetched,
        used: a.used + b.used,
        evicted_unused: a.evicted_unused + b.evicted_unused,
        resident_unused: a.resident_unused + b.resident_unused,
        in_flight: a.in_flight + b.in_flight,
        failed: a.failed + b.failed,
        cancelled: a.cancelled + b.cancelled,
        demanded: a.demanded + b.demanded,
        gaps: a.gaps + b.gaps,
        demand_failed: a.demand_failed + b.demand_failed,
        evicted: a.evicted + b.evicted,
        thrashed: a.thrashed + b.thrashed,
        refused_prefetches: a.refused_prefetches + b.refused_prefetches,
        memory_waits: a.memory_waits + b.memory_waits,
        requests: a.requests + b.requests,
        windows: a.windows + b.windows,
        hints: a.hints + b.hints,
        hints_read: a.hints_read + b.hints_read,
        hints_missed: a.hints_missed + b.hints_missed,
        hints_dropped: a.hints_dropped + b.hints_dropped,
        hints_open: a.hints_open + b.hints_open,
        files_ahead: a.files_ahead + b.files_ahead,
        files_ahead_used: a.files_ahead_used + b.files_ahead_used,
        files_ahead_wasted: a.files_ahead_wasted + b.files_ahead_wasted,
        files_ahead_open: a.files_ahead_open + b.files_ahead_open,
        files_ahead_unread: a.files_ahead_unread + b.files_ahead_unread,
        refused_inputs: a.refused_inputs + b.refused_inputs,
        stall: Nanos(a.stall.0 + b.stall.0),
        request_bytes: Bytes(a.request_bytes.0 + b.request_bytes.0),
        memory_peak: Bytes(a.memory_peak.0 + b.memory_peak.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_each_counter() {
        let one = Ledger {
            reads: 5,
            misses: 5,
            stall: Nanos(7),
            memory_peak: Bytes(9),
            ..Ledger::default()
        };
        let two = sum([one, one].into_iter());
        assert_eq!((two.reads, two.misses), (10, 10));
        for ((name, two), (_, one)) in counters(&two).into_iter().zip(counters(&one)) {
            assert_eq!(two, 2 * one, "{name}");
        }
    }
}
