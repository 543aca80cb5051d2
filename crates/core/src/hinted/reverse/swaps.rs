//! What the backward pass found: blocks to fetch and blocks to evict, not matched yet.
//!
//! Filled by [the pass](super), read by the policy that matches both lists in their orders.

use alloc::vec::Vec;

/// A block to be fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hinted) struct Arrival {
    /// The block.
    pub(in crate::hinted) block: u32,
    /// The place of the use it is fetched for.
    pub(in crate::hinted) needed: u32,
    /// Which eviction of the same block precedes it, if it is not absent from the start.
    pub(in crate::hinted) departed: Option<u32>,
}

/// A block to be evicted, or an empty frame to be filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hinted) struct Departure {
    /// The block; `None` for an empty frame.
    pub(in crate::hinted) block: Option<u32>,
    /// The first cursor at which it may go: one more than the place of its last use.
    pub(in crate::hinted) released: u32,
    pub(super) cancelled: bool,
}

/// What the pass decided, in the order found.
#[derive(Clone, Debug, Default)]
pub(in crate::hinted) struct Swaps {
    pub(super) arrivals: Vec<Arrival>,
    pub(super) departures: Vec<Departure>,
}

impl Swaps {
    /// The blocks to fetch, by the place they are needed at.
    pub(in crate::hinted) fn arrivals(&self) -> Vec<Arrival> {
        let mut list = self.arrivals.clone();
        list.sort_by_key(|arrival| arrival.needed);
        list
    }

    /// The blocks to evict by their numbers, as they are released; those of one time as found.
    pub(in crate::hinted) fn departures(&self) -> Vec<(u32, Departure)> {
        let numbered = (0..).zip(self.departures.iter().copied());
        let mut list: Vec<_> = numbered.filter(|(_, d)| !d.cancelled).collect();
        list.sort_by_key(|(_, departure)| departure.released);
        list
    }
}
