//! Together: requests that are one observation of the costs.
//!
//! The time of one says little where it was told of with others, or passed beside them: the sum says how long each
//! took on the average. So each gets the part of the sum that it would take alone, and each kind, those that
//! continue the one before and the others, is learned once, by its mean length and its mean time.
//!
//! Example: 3 ms passed for three requests of which 1, 1 and 2 ms were expected. They were told of at 3, 3 and 3 ms and
//! count as 0.75, 0.75 and 1.5 ms.

use super::costs::Costs;
use crate::units::{Bytes, Nanos, scaled};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Together {
    took: u64,
    /// Of those that continue the one before, and of the others.
    kinds: [Sum; 2],
}

/// Of requests of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    requests: u64,
    distance: Bytes,
    bytes: u64,
    expected: u64,
}

impl Together {
    pub(super) fn push(&mut self, distance: Bytes, bytes: Bytes, took: u64, expected: u64) {
        self.took = self.took.saturating_add(took);
        let sum = &mut self.kinds[kind_of(distance)];
        sum.requests += 1;
        sum.distance = distance;
        sum.bytes = sum.bytes.saturating_add(bytes.0);
        sum.expected = sum.expected.saturating_add(expected);
    }

    pub(super) fn requests(&self) -> u64 {
        self.kinds.iter().map(|sum| sum.requests).sum()
    }

    /// Whether one of the kind of this distance is among them.
    pub(super) fn has(&self, distance: Bytes) -> bool {
        self.kinds[kind_of(distance)].requests > 0
    }

    /// The sum of their times.
    pub(super) fn took(&self) -> u64 {
        self.took
    }

    /// The sum of the times that each takes alone.
    pub(super) fn expected(&self) -> u64 {
        let [adjacent, apart] = self.kinds.map(|sum| sum.expected);
        adjacent.saturating_add(apart).max(1)
    }

    pub(super) fn learn(&self, costs: &mut Costs) {
        let expected = self.expected();
        for sum in self.kinds.iter().filter(|sum| sum.requests > 0) {
            let bytes = Bytes(sum.bytes / sum.requests);
            let part = scaled(sum.expected, self.took, expected) / sum.requests;
            costs.learn_mean(sum.distance, bytes, Nanos(part), sum.requests);
        }
    }
}

fn kind_of(distance: Bytes) -> usize {
    usize::from(distance.0 > 0)
}
