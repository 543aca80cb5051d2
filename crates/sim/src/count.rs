//! Caches that only count: exact LRU, and Belady's optimal demand fetching.
//!
//! Reference values for any simulation of the same references: published counts are compared with
//! these, and the engine with both. References are block numbers; a miss fetches the block and, in
//! a full cache, gives one up. No time, no prefetching, no writes.
//!
//! * [`Recency`] is LRU of a stream: one reference at a time, two moves in a list each.
//! * [`Uses`](optimum::Uses) needs all references: it gives up the block whose next use is farthest,
//!   Belady's MIN (IBM Systems Journal 5, 1966).

pub mod counting;
pub mod distances;
pub mod numbering;
pub mod optimum;
pub mod policy;
pub mod recency;
pub mod references;

pub use numbering::Numbering;
pub use recency::Recency;

#[cfg(test)]
mod tests {
    use super::optimum::Uses;
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
        let mut lru = Recency::new(capacity);
        ids.iter().filter(|id| !lru.touch(**id as u32)).count() as u64
    }

    #[test]
    fn counts_are_those_of_naive_caches() {
        let mut random = Random::new(11);
        for _ in 0..400 {
            let blocks = random.between(1, 12);
            let ids: Vec<u64> = (0..random.below(60))
                .map(|_| random.below(blocks))
                .collect();
            let uses = Uses::of_ids(ids.iter().copied());
            for capacity in 0..8 {
                assert_eq!(lru_misses(&ids, capacity), naive(&ids, capacity, false));
                let optimal = uses.misses(capacity as u64);
                assert_eq!(optimal, naive(&ids, capacity, true), "{capacity}: {ids:?}");
            }
        }
    }

    #[test]
    fn a_loop_longer_than_the_cache_has_a_closed_form() {
        // L blocks over and over, N references, K < L: LRU always misses. The optimum fetches
        // everything once, then repeats: K - 1 hits, L - K misses, one step short of a round.
        let (length, total) = (1011u64, 505_500u64);
        let ids: Vec<u64> = (0..total).map(|at| at % length).collect();
        let uses = Uses::of_ids(ids.iter().copied());
        for capacity in [1u64, 2, 128, 512, 1010] {
            assert_eq!(lru_misses(&ids, capacity as usize), total);
            let (rounds, rest) = (
                (total - length) / (length - 1),
                (total - length) % (length - 1),
            );
            let wanted = length + rounds * (length - capacity) + rest.saturating_sub(capacity - 1);
            assert_eq!(uses.misses(capacity), wanted);
        }
        assert_eq!(lru_misses(&ids, 1011), length);
        assert_eq!(uses.misses(1011), length);
    }
}
