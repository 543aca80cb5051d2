//! Needs: the bytes and requests a run must get, and so the least time of a device for them.
//!
//! A comparison with a lower bound states the run's needs of a device: different bytes, each of
//! which must leave the surface, the cells or the wire at least once, in at least so many requests.
//! The device answers with a time that no order of requests, no scheduler and no policy can go
//! below ([`Device::least`](crate::device::Device::least)):
//!
//! ```text
//! runs       [====]   [==]  [========]      ascending, apart      bytes needed
//! answer     max(every byte passes once, every request is served)  each model knows its own
//! ```
//!
//! A bound leaves out each cost that a lucky run may avoid (distances, rotation, waiting) and keeps
//! the costs that every run has. A cost that a device does not model is zero.

use forerun_core::{Bytes, Nanos};

use crate::device::transfer_time;

/// Bytes in a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Run {
    /// Where they begin.
    pub at: Bytes,
    /// How many.
    pub bytes: Bytes,
}

impl Run {
    /// The place after the last one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.at.0.saturating_add(self.bytes.0)
    }
}

/// Bytes and requests a device must deliver.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    runs: Vec<Run>,
    requests: u64,
}

impl Needs {
    /// These bytes, in at least a given number of requests.
    #[must_use]
    pub fn new(mut runs: Vec<Run>, requests: u64) -> Self {
        runs.retain(|run| run.bytes.0 > 0);
        runs.sort_unstable();
        // Runs that touch or overlap are one.
        let mut last = 0;
        for at in 1..runs.len() {
            let next = runs[at];
            if next.at.0 <= runs[last].end() {
                let end = next.end().max(runs[last].end());
                runs[last].bytes = Bytes(end - runs[last].at.0);
            } else {
                last += 1;
                runs[last] = next;
            }
        }
        runs.truncate(last + 1);
        let requests = if runs.is_empty() { 0 } else { requests.max(1) };
        Self { runs, requests }
    }

    /// These and more.
    #[must_use]
    pub fn and(self, more: Vec<Run>) -> Self {
        let runs = self.runs.into_iter().chain(more).collect();
        Self::new(runs, self.requests)
    }

    /// The bytes: runs in order, none of which touches another.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The fewest requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Whether nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of bytes.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        let each = self.runs.iter().map(|run| run.bytes.0);
        Bytes(each.fold(0, u64::saturating_add))
    }

    /// The time they take at a given rate: rounding up request by request takes
    /// no less in all.
    #[must_use]
    pub fn at_rate(&self, rate: u64) -> Nanos {
        transfer_time(self.bytes(), rate)
    }

    /// Number of units of this size that they overlap, such as sectors or pages.
    #[must_use]
    pub fn touched(&self, unit: u64) -> u64 {
        let unit = unit.max(1);
        // The first unit that no run before reaches into.
        let (mut next, mut touched) = (0, 0u64);
        for run in &self.runs {
            let (first, end) = ((run.at.0 / unit).max(next), run.end().div_ceil(unit));
            touched = touched.saturating_add(end.saturating_sub(first));
            next = next.max(end);
        }
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(runs: &[(u64, u64)]) -> Needs {
        let run = |&(at, bytes): &(u64, u64)| Run {
            at: Bytes(at),
            bytes: Bytes(bytes),
        };
        Needs::new(runs.iter().map(run).collect(), 0)
    }

    #[test]
    fn runs_that_touch_are_one() {
        let needs = runs(&[(10, 5), (0, 4), (15, 5), (12, 1), (30, 0)]);
        let found: Vec<_> = needs.runs().iter().map(|r| (r.at.0, r.end())).collect();
        assert_eq!(found, [(0, 4), (10, 20)]);
        assert_eq!((needs.bytes(), needs.requests()), (Bytes(14), 1));
        assert!(runs(&[]).is_empty() && runs(&[(5, 0)]).is_empty());
        assert_eq!(runs(&[]).requests(), 0);
    }

    #[test]
    fn a_unit_that_two_runs_touch_counts_once() {
        assert_eq!(runs(&[(0, 1), (9, 2), (19, 1), (40, 10)]).touched(10), 3);
    }
}
