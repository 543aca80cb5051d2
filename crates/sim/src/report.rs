//! Reports: the results of a run.
//!
//! The [`Report`] holds everything in integers; the [`Summary`] is its one line for tables and
//! JSON, with the names `forerun bench` uses, so that a simulated and a real run can be laid side
//! by side.

use core::fmt;

use forerun_core::measure::Confidence;
use forerun_core::{Bytes, Ledger, Nanos, Profile};

use crate::device::Usage;
use crate::times::Times;

/// The results of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The engine's counters.
    pub ledger: Ledger,
    /// When the last reader was done.
    pub elapsed: Nanos,
    /// When the last fetch was done, too.
    pub quiet: Nanos,
    /// The engine's memory beside blocks, in the end.
    pub bookkeeping: Bytes,
    /// Bytes taken by all readers.
    pub bytes: Bytes,
    /// Each reader's own times.
    pub readers: Vec<ReaderReport>,
    /// Counters of each device.
    pub devices: Vec<DeviceReport>,
    /// Responses of reads, hits included: from the time at which a read was due, else from its begin.
    pub responses: Times,
    /// Stall of the reads that waited.
    pub waits: Times,
    /// Whether reads arrived in an open loop faster than they ended, so that responses grew to the end.
    pub is_growing: bool,
    /// Stands for all decisions and their times: equal runs have equal digests.
    pub digest: u64,
    /// Events the world went through: inputs, outputs, completions and wakings.
    pub events: u64,
    /// Unit of caching.
    pub block_bytes: u32,
}

/// One reader's times; `elapsed = compute + driver + stall`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReaderReport {
    /// When it opened its file.
    pub opened: Nanos,
    /// When it was done.
    pub elapsed: Nanos,
    /// Time it computed between reads.
    pub compute: Nanos,
    /// The part of that in which other readers of its process had their turns.
    pub away: Nanos,
    /// Time the driver took from it: starting fetches, copying bytes.
    pub driver: Nanos,
    /// Time it waited.
    pub stall: Nanos,
    /// The longest of these waits.
    pub longest_stall: Nanos,
    /// Time it slept, or waited for a processor.
    pub idle: Nanos,
    /// Reads it made.
    pub reads: u64,
    /// Bytes it took.
    pub bytes: Bytes,
    /// Reads that ended with an error instead of bytes.
    pub errors: u64,
}

impl ReaderReport {
    /// Time it computed itself.
    #[must_use]
    pub fn own_compute(&self) -> Nanos {
        self.compute.since(self.away)
    }

    /// Whether every nanosecond is accounted for exactly once.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let parts = [self.compute, self.driver, self.stall, self.idle];
        let sum: u128 = parts.iter().map(|part| u128::from(part.0)).sum();
        sum == u128::from(self.elapsed.0)
    }
}

/// Counters of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceReport {
    /// Its counters.
    pub usage: Usage,
    /// Number of requests it can work on at once.
    pub servers: u32,
    /// The engine's estimate of its costs in the end.
    pub estimate: Profile,
    /// The confidence of that estimate.
    pub confidence: Confidence,
}

impl DeviceReport {
    /// The part of its capacity used until `time`, from 0 to 1.
    #[must_use]
    pub fn utilisation(&self, time: Nanos) -> f64 {
        match u128::from(time.0) * u128::from(self.servers) {
            0 => 0.0,
            capacity => self.usage.busy.0 as f64 / capacity as f64,
        }
    }
}

impl Report {
    /// Bytes taken per second of virtual time; 0 where no time passed.
    #[must_use]
    pub fn throughput_bytes_per_second(&self) -> u64 {
        let scaled = u128::from(self.bytes.0) * 1_000_000_000;
        let rate = scaled.checked_div(u128::from(self.elapsed.0)).unwrap_or(0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Requests made to all devices.
    #[must_use]
    pub fn device_requests(&self) -> u64 {
        self.devices
            .iter()
            .map(|device| device.usage.requests)
            .sum()
    }

    /// Bytes asked of all devices.
    #[must_use]
    pub fn device_bytes(&self) -> Bytes {
        Bytes(self.devices.iter().map(|device| device.usage.bytes.0).sum())
    }

    /// Time all devices worked, added up.
    #[must_use]
    pub fn device_busy(&self) -> Nanos {
        Nanos(self.devices.iter().map(|device| device.usage.busy.0).sum())
    }

    /// Time all readers waited, added up.
    #[must_use]
    pub fn stall(&self) -> Nanos {
        Nanos(self.readers.iter().map(|reader| reader.stall.0).sum())
    }

    /// The one line of this run.
    #[must_use]
    pub fn summary(&self, preset: &str) -> Summary {
        let (requests, bytes) = (self.device_requests(), self.device_bytes());
        Summary {
            preset: preset.to_owned(),
            readers: self.readers.len() as u64,
            bytes: self.bytes.0,
            elapsed_ns: self.elapsed.0,
            throughput_bytes_per_second: self.throughput_bytes_per_second(),
            device_requests: requests,
            request_bytes_mean: bytes.0.checked_div(requests).unwrap_or(0),
            hits: self.ledger.hits,
            late_hits: self.ledger.late_hits,
            misses: self.ledger.misses,
            wasted_bytes: self.ledger.wasted().saturating_mul(self.block_bytes.into()),
            stall_ns: self.stall().0,
            memory_peak_bytes: self.ledger.memory_peak.0,
        }
    }
}

/// A run on one line; [`Display`](fmt::Display) is one JSON object.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each name is a quantity and ends in its unit")]
pub struct Summary {
    pub preset: String,
    pub readers: u64,
    pub bytes: u64,
    pub elapsed_ns: u64,
    pub throughput_bytes_per_second: u64,
    pub device_requests: u64,
    pub request_bytes_mean: u64,
    pub hits: u64,
    pub late_hits: u64,
    pub misses: u64,
    pub wasted_bytes: u64,
    pub stall_ns: u64,
    pub memory_peak_bytes: u64,
}

impl Summary {
    /// The numbers with their names, in the order of the columns.
    #[must_use]
    pub fn numbers(&self) -> [(&'static str, u64); 12] {
        [
            ("readers", self.readers),
            ("bytes", self.bytes),
            ("elapsed_ns", self.elapsed_ns),
            (
                "throughput_bytes_per_second",
                self.throughput_bytes_per_second,
            ),
            ("device_requests", self.device_requests),
            ("request_bytes_mean", self.request_bytes_mean),
            ("hits", self.hits),
            ("late_hits", self.late_hits),
            ("misses", self.misses),
            ("wasted_bytes", self.wasted_bytes),
            ("stall_ns", self.stall_ns),
            ("memory_peak_bytes", self.memory_peak_bytes),
        ]
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"preset\":\"")?;
        for c in self.preset.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")?;
        for (name, number) in self.numbers() {
            write!(f, ",\"{name}\":{number}")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_json_object_with_the_names_of_bench() {
        let report = Report {
            ledger: Ledger::default(),
            elapsed: Nanos(500_000_000),
            quiet: Nanos(0),
            bookkeeping: Bytes(0),
            bytes: Bytes(7),
            readers: vec![],
            devices: vec![],
            responses: Times::default(),
            waits: Times::default(),
            is_growing: false,
            digest: 0,
            events: 0,
            block_bytes: 4096,
        };
        let json = report.summary("a\"b").to_string();
        assert!(
            json.starts_with("{\"preset\":\"a\\\"b\",\"readers\":0,\"bytes\":7,"),
            "{json}"
        );
        assert!(
            json.contains("\"throughput_bytes_per_second\":14,"),
            "{json}"
        );
        assert!(json.ends_with("\"memory_peak_bytes\":0}"), "{json}");
    }
}
