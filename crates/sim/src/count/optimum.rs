//! The optimum of demand fetching, Belady's MIN: the object whose next use is farthest is given up.
//!
//! Problem: the optimum must know each object's next use, and a trace has far more references than objects. Mechanism:
//! next uses come from one pass backwards, in the place of the references. An object is then named by the time of its
//! next use, which no other has: a bit for each time says whether that object is resident, and a heap of times has the
//! farthest. A time that has come leaves its entry behind, at the heap's low end; the heap is made anew when most of it
//! is such entries. Objects that are not used again are only counted, and go first.
//!
//! ```text
//! references  a  b  a  c  b      cache of 1: a, b, a, c and b are misses
//! next uses   2  4  -  -  -
//! ```
//!
//! 4 1/8 bytes a reference, 4 an object while next uses are looked for, and up to 12 a resident object.

use std::collections::BinaryHeap;

use super::Numbering;
use super::counting::Counts;

/// The next use of an object that is not used again.
const NEVER: u32 = u32::MAX;

/// The next use of each reference.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    next: Vec<u32>,
}

impl Uses {
    /// Of references to numbered objects, of which there are less than 2^32 - 2.
    #[must_use]
    pub fn of(mut references: Vec<u32>) -> Self {
        let distinct = references.iter().max().map_or(0, |most| *most as usize + 1);
        let mut next_of = vec![NEVER; distinct];
        for (at, reference) in (0..references.len() as u32).zip(&mut references).rev() {
            let next = &mut next_of[*reference as usize];
            *reference = core::mem::replace(next, at);
        }
        Self { next: references }
    }

    /// Of references to any objects.
    #[must_use]
    pub fn of_ids(ids: impl IntoIterator<Item = u64>) -> Self {
        let mut numbering = Numbering::default();
        let numbers = ids.into_iter().map_while(|id| numbering.number(id));
        Self::of(numbers.collect())
    }

    /// The counts of a cache of so many objects, which the first `warm` references fill alone.
    #[must_use]
    pub fn count(&self, capacity: u64, warm: u64) -> Counts {
        let mut cache = Cache {
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            resident: vec![0; self.next.len().div_ceil(64)],
            again: 0,
            never: 0,
            order: BinaryHeap::new(),
        };
        let mut counts = Counts::default();
        for (now, next) in (0..).zip(&self.next) {
            let is_hit = cache.reference(now, *next);
            if u64::from(now) >= warm {
                counts.add(1, is_hit);
            }
        }
        counts
    }

    /// The misses of a cache of so many objects.
    #[must_use]
    pub fn misses(&self, capacity: u64) -> u64 {
        self.count(capacity, 0).misses
    }
}

struct Cache {
    capacity: usize,
    /// A bit for each time: whether the object that is used then is resident.
    resident: Vec<u64>,
    /// Resident objects that are used again, and others.
    again: usize,
    never: usize,
    /// Next uses of the first, and times that have come.
    order: BinaryHeap<u32>,
}

impl Cache {
    fn reference(&mut self, now: u32, next: u32) -> bool {
        let is_hit = self.resident[now as usize / 64] >> (now % 64) & 1 == 1;
        if is_hit {
            self.again -= 1;
        } else if self.capacity == 0 {
            return false;
        } else if self.again + self.never == self.capacity {
            self.give_up();
        }
        if next == NEVER {
            self.never += 1;
            return is_hit;
        }
        self.again += 1;
        self.resident[next as usize / 64] |= 1 << (next % 64);
        if self.order.len() > 3 * self.again + 64 {
            self.order.retain(|time| *time > now);
        }
        self.order.push(next);
        is_hit
    }

    fn give_up(&mut self) {
        if self.never > 0 {
            self.never -= 1;
        } else if let Some(farthest) = self.order.pop() {
            // Times that have come are lower than that of any resident object.
            self.resident[farthest as usize / 64] &= !(1 << (farthest % 64));
            self.again -= 1;
        }
    }
}
