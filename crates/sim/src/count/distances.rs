//! The miss ratios of LRU at every capacity, from one pass over the references.
//!
//! LRU of any capacity keeps what was used last (Mattson et al. 1970): a reference hits exactly where the capacity
//! is at least its *stack distance*, the weight of all different objects used since its object was used last, that
//! object included. The distances come from a binary indexed tree over the times of last uses; the times are
//! renumbered when they are used up, so memory grows with the different objects, 28 bytes each, not with the
//! references.
//!
//! By sizes it is exact for a cache that gives up bytes rather than whole objects.

use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Distances {
    /// By object, the time of its last use from 1, and its weight then; 0 if there was none.
    last: Vec<(u32, u32)>,
    /// A binary indexed tree of weights by time.
    tree: Vec<u64>,
    now: usize,
    total: u64,
    /// References by distance, and their weight.
    hits: BTreeMap<u64, (u64, u64)>,
}

impl Default for Distances {
    fn default() -> Self {
        Self {
            last: Vec::new(),
            tree: vec![0; LEAST],
            now: 0,
            total: 0,
            hits: BTreeMap::new(),
        }
    }
}

/// The least number of times.
const LEAST: usize = 1 << 10;

impl Distances {
    /// Uses an object; counts it if told.
    pub fn reference(&mut self, object: u32, weight: u32, is_counted: bool) {
        let at = object as usize;
        if at >= self.last.len() {
            self.last.resize(at + 1, (0, 0));
        }
        if self.now + 1 >= self.tree.len() {
            self.renumber();
        }
        self.now += 1;
        let (time, before) = self.last[at];
        if time > 0 {
            // Used after it, and the object itself.
            let distance = self.total - self.until(time as usize) + u64::from(before);
            self.change(time as usize, -i64::from(before));
            if is_counted {
                let counts = self.hits.entry(distance).or_default();
                counts.0 += 1;
                counts.1 += u64::from(weight);
            }
        }
        self.change(self.now, weight.into());
        self.last[at] = (self.now as u32, weight);
    }

    /// References that hit in a cache of this capacity, and their weight.
    #[must_use]
    pub fn hits(&self, capacity: u64) -> (u64, u64) {
        let within = self.hits.range(..=capacity).map(|(_, counts)| counts);
        within.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1))
    }

    fn change(&mut self, time: usize, weight: i64) {
        self.total = self.total.wrapping_add_signed(weight);
        let mut at = time;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(weight);
            at += at & at.wrapping_neg();
        }
    }

    /// The weight of objects last used up to this time.
    fn until(&self, time: usize) -> u64 {
        let (mut at, mut sum) = (time, 0u64);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    /// Numbers the times of last uses from 1 on, in their order.
    fn renumber(&mut self) {
        let used = |object: &u32| self.last[*object as usize].0 > 0;
        let mut order: Vec<u32> = (0..self.last.len() as u32).filter(used).collect();
        order.sort_unstable_by_key(|object| self.last[*object as usize].0);
        self.tree = vec![0; (2 * order.len() + 2).max(LEAST)];
        (self.now, self.total) = (order.len(), 0);
        for (time, object) in (1..).zip(order) {
            let weight = self.last[object as usize].1;
            self.last[object as usize].0 = time;
            self.change(time as usize, weight.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Recency;
    use crate::random::Random;

    #[test]
    fn hits_are_those_of_lru_at_every_capacity() {
        let mut random = Random::new(3);
        let ids: Vec<u32> = (0..6000)
            .map(|at| (random.below(300) + if at % 7 == 0 { at / 20 } else { 0 }) as u32)
            .collect();
        let mut distances = Distances::default();
        ids.iter().for_each(|id| distances.reference(*id, 1, true));
        for capacity in [0, 1, 2, 17, 100, 299, 300, 601, 10_000] {
            let mut lru = Recency::new(capacity);
            let expected = ids.iter().filter(|id| lru.touch(**id)).count() as u64;
            let (hits, weight) = distances.hits(capacity as u64);
            assert_eq!(hits, expected, "{capacity}");
            assert_eq!(hits, weight);
        }
    }

    #[test]
    fn weights_add_up_to_distances() {
        let mut distances = Distances::default();
        for (object, weight) in [(0, 10), (1, 5), (2, 100), (0, 10), (1, 7)] {
            distances.reference(object, weight, true);
        }
        // 0: 5 + 100 + 10. 1: 100 + 10 + 5.
        assert_eq!(distances.hits(114), (0, 0));
        assert_eq!(distances.hits(115), (2, 17));
    }
}
