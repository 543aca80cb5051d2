//! The optimum of demand fetching, Belady's MIN: the object whose next use is farthest is given up.
//!
//! Next uses come from one pass backwards. The resident objects stand in a heap by next use, where an object that
//! was used again leaves an entry behind; the heap is made anew when most of it is such entries, so it never has
//! more than three entries a resident object. 4 bytes a reference, 4 an object, 24 a resident one.

use std::collections::BinaryHeap;

use super::counting::Counts;

/// The next use of an object that is not used again.
const NEVER: u32 = u32::MAX - 1;
/// As a next use: the object is not resident.
const ABSENT: u32 = u32::MAX;

/// The misses of a cache of a given number of objects over references to numbered objects, of which the first
/// `warm` fill it alone. There are less than 2^32 - 2 of them.
#[must_use]
pub fn count(mut references: Vec<u32>, capacity: u64, warm: u64) -> Counts {
    let distinct = references.iter().max().map_or(0, |most| *most as usize + 1);
    // Each reference becomes the next use of its object; the objects come from the uses again.
    let mut next_of = vec![NEVER; distinct];
    let objects = references.clone();
    for (at, object) in (0..references.len() as u32).zip(&mut references).rev() {
        let next = &mut next_of[*object as usize];
        *object = std::mem::replace(next, at);
    }
    let mut resident = next_of;
    resident.fill(ABSENT);
    let mut cache = Cache {
        capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
        resident,
        objects: 0,
        order: BinaryHeap::new(),
    };
    let mut counts = Counts::default();
    for (at, (object, next)) in (0..).zip(objects.into_iter().zip(references)) {
        let is_hit = cache.reference(object, next);
        if at >= warm {
            counts.add(1, is_hit);
        }
    }
    counts
}

struct Cache {
    capacity: usize,
    /// By object, its next use if it is resident.
    resident: Vec<u32>,
    objects: usize,
    order: BinaryHeap<(u32, u32)>,
}

impl Cache {
    fn reference(&mut self, object: u32, next: u32) -> bool {
        let is_hit = self.resident[object as usize] != ABSENT;
        if !is_hit {
            if self.capacity == 0 {
                return false;
            }
            if self.objects == self.capacity {
                self.give_up();
            }
            self.objects += 1;
        }
        self.resident[object as usize] = next;
        if self.order.len() > 3 * self.objects + 64 {
            let resident = &self.resident;
            let is_it = |entry: &(u32, u32)| resident[entry.1 as usize] == entry.0;
            self.order.retain(is_it);
        }
        self.order.push((next, object));
        is_hit
    }

    fn give_up(&mut self) {
        while let Some((next, object)) = self.order.pop() {
            if self.resident[object as usize] == next {
                self.resident[object as usize] = ABSENT;
                self.objects -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::{Future, optimal_misses};
    use crate::random::Random;

    #[test]
    fn misses_are_those_of_the_ordered_cache() {
        let mut random = Random::new(17);
        for blocks in [3, 20, 400] {
            let ids: Vec<u32> = (0..3000).map(|_| random.below(blocks) as u32).collect();
            let future = Future::new(ids.iter().copied().map(u64::from));
            for capacity in [0, 1, 2, 7, 100, 500] {
                let counts = count(ids.clone(), capacity, 0);
                assert_eq!(counts.misses, optimal_misses(&future, capacity as usize));
                let late = count(ids.clone(), capacity, 1000);
                assert_eq!(late.references, 2000);
                assert!(late.misses <= counts.misses);
            }
        }
    }
}
