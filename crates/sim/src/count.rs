//! Caches that only count: exact LRU, and Belady's optimal demand fetching.
//!
//! Reference values for any simulation of the same references: published counts are compared with
//! these, and the engine with both. References are block numbers; a miss fetches the block and, in
//! a full cache, gives one up. No time, no prefetching, no writes.
//!
//! * [`Lru`] is a stream: one reference at a time, a table lookup and two moves in the list of
//!   [`Recency`] each.
//! * [`optimal_misses`] needs all references: it gives up the block whose next use is farthest,
//!   Belady's MIN (IBM Systems Journal 5, 1966). Next uses come from one pass backwards; the
//!   resident blocks stand in an order of next use, so a reference costs O(log cache).

pub mod counting;
pub mod distances;
pub mod numbering;
pub mod optimum;
pub mod policy;
pub mod recency;
pub mod references;

use std::collections::BTreeSet;

pub use numbering::Numbering;
pub use recency::Recency;

/// An LRU cache of whole blocks. 22 to 35 bytes a distinct block.
#[derive(Clone, Debug)]
pub struct Lru {
    numbering: Numbering,
    recency: Recency,
    references: u64,
    misses: u64,
}

impl Lru {
    /// An empty cache for a given number of blocks.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            numbering: Numbering::default(),
            recency: Recency::new(capacity),
            references: 0,
            misses: 0,
        }
    }

    /// Uses a block; whether it was resident. A block beyond the 2^32 - 2 that can be numbered
    /// is a miss and is not kept.
    pub fn reference(&mut self, id: u64) -> bool {
        self.references += 1;
        let hit = self
            .numbering
            .number(id)
            .is_some_and(|block| self.recency.touch(block));
        self.misses += u64::from(!hit);
        hit
    }

    /// References so far.
    #[must_use]
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Misses so far.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Different blocks so far.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.numbering.len()
    }
}

/// References prepared for [`optimal_misses`]: when each block is used next.
#[derive(Clone, Debug, Default)]
pub struct Future {
    /// Per reference: the position of the next one to the same block; past the end, the block's
    /// own number is added, so that all are different.
    next: Vec<u64>,
    distinct: usize,
}

impl Future {
    /// Looks ahead in all references. 8 bytes each stay, and no trace of the blocks.
    #[must_use]
    pub fn new(ids: impl IntoIterator<Item = u64>) -> Self {
        let mut numbering = Numbering::default();
        let next: Vec<u64> = ids
            .into_iter()
            .map(|id| numbering.number(id).map_or(u64::MAX, u64::from))
            .collect();
        Self::of(next, numbering.len())
    }

    /// The same for blocks that are numbered already, all below `distinct`.
    #[must_use]
    pub fn numbered(blocks: impl IntoIterator<Item = u32>, distinct: usize) -> Self {
        Self::of(blocks.into_iter().map(u64::from).collect(), distinct)
    }

    fn of(mut next: Vec<u64>, distinct: usize) -> Self {
        let end = next.len() as u64;
        let mut next_of: Vec<u64> = (end..).take(distinct).collect();
        for (at, reference) in (0..end).zip(next.iter_mut().rev()) {
            let block = usize::try_from(*reference).unwrap_or(usize::MAX);
            *reference = match next_of.get_mut(block) {
                Some(next) => std::mem::replace(next, end - 1 - at),
                None => u64::MAX,
            };
        }
        Self { next, distinct }
    }

    /// Number of references.
    #[must_use]
    pub fn references(&self) -> usize {
        self.next.len()
    }

    /// Number of distinct blocks.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.distinct
    }
}

/// Misses of optimal demand fetching with a cache of a given number of blocks. The block that is
/// fetched is always kept, so this is the optimum among caches that must go through their memory.
#[must_use]
pub fn optimal_misses(future: &Future, capacity: usize) -> u64 {
    // The resident blocks, each as the position of its next use.
    let mut resident = BTreeSet::new();
    let mut misses = 0;
    for (now, next) in (0..).zip(&future.next) {
        if !resident.remove(&now) {
            misses += 1;
            if resident.len() >= capacity {
                resident.pop_last();
            }
        }
        if capacity > 0 {
            resident.insert(*next);
        }
    }
    misses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// LRU and MIN by looking at everything, every time.
    fn naive(ids: &[u64], capacity: usize, optimal: bool) -> u64 {
        let (mut resident, mut misses): (Vec<u64>, u64) = (Vec::new(), 0);
        for (now, id) in ids.iter().enumerate() {
            let at = resident.iter().position(|block| block == id);
            misses += u64::from(at.is_none());
            if let Some(at) = at {
                resident.remove(at);
            } else if capacity == 0 {
                continue;
            } else if resident.len() == capacity {
                let next = |block: &u64| {
                    let later = ids[now..].iter().position(|id| id == block);
                    later.unwrap_or(usize::MAX)
                };
                let farthest = (0..capacity).max_by_key(|at| next(&resident[*at]));
                resident.remove(if optimal { farthest.unwrap() } else { 0 });
            }
            resident.push(*id);
        }
        misses
    }

    fn lru_misses(ids: &[u64], capacity: usize) -> u64 {
        let mut lru = Lru::new(capacity);
        ids.iter().for_each(|id| {
            lru.reference(*id);
        });
        lru.misses()
    }

    #[test]
    fn counts_are_those_of_naive_caches() {
        let mut random = Random::new(11);
        for _ in 0..400 {
            let blocks = random.between(1, 12);
            let ids: Vec<u64> = (0..random.below(60))
                .map(|_| random.below(blocks))
                .collect();
            let future = Future::new(ids.iter().copied());
            for capacity in 0..8 {
                assert_eq!(lru_misses(&ids, capacity), naive(&ids, capacity, false));
                let optimal = optimal_misses(&future, capacity);
                assert_eq!(optimal, naive(&ids, capacity, true), "{capacity}: {ids:?}");
            }
        }
    }

    #[test]
    fn one_pass_counts_distinct_blocks() {
        let ids = [5, 9, 5, u64::MAX, 0];
        let future = Future::new(ids);
        assert_eq!((future.references(), future.distinct()), (5, 4));
        let numbered = Future::numbered([0, 1, 0, 2, 3], 4);
        assert_eq!(numbered.next, future.next);
        let mut lru = Lru::new(2);
        let hits: Vec<bool> = ids.iter().map(|id| lru.reference(*id)).collect();
        assert_eq!(hits, [false, false, true, false, false]);
        assert_eq!((lru.references(), lru.distinct()), (5, 4));
    }

    #[test]
    fn a_loop_longer_than_the_cache_has_a_closed_form() {
        // L blocks over and over, N references, K < L: LRU always misses. The optimum fetches
        // everything once, then repeats: K - 1 hits, L - K misses, one step short of a round.
        let (length, total) = (1011u64, 505_500u64);
        let ids: Vec<u64> = (0..total).map(|at| at % length).collect();
        let future = Future::new(ids.iter().copied());
        for capacity in [1u64, 2, 128, 512, 1010] {
            assert_eq!(lru_misses(&ids, capacity as usize), total);
            let (rounds, rest) = (
                (total - length) / (length - 1),
                (total - length) % (length - 1),
            );
            let wanted = length + rounds * (length - capacity) + rest.saturating_sub(capacity - 1);
            assert_eq!(optimal_misses(&future, capacity as usize), wanted);
        }
        assert_eq!(lru_misses(&ids, 1011), length);
        assert_eq!(optimal_misses(&future, 1011), length);
    }
}
