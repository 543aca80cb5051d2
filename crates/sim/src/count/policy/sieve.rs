//! SIEVE: a queue whose hand gives up the first object that was not used since the hand last passed.
//!
//! As CLOCK, but an object that the hand passes stays where it is, and new ones come in at the front, away from
//! the hand: new objects are sorted out quickly, old ones stay. From the front the hand goes back to the end.
//! Example, capacity 3, references 1 2 3 1 4 5: 4 comes in for 2, as the hand passed 1, which was used; then 3 is
//! next, and 5 comes in for it.

use forerun_core::spec::Method;

use super::queues::Queues;
use super::{Build, Policy, spec};

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "sieve",
        "a hand over a FIFO queue that leaves used objects where they are",
        "Zhang et al., SIEVE, NSDI 2024",
        "loops longer than the cache, and scans of blocks that are used twice at once",
        &[],
    ),
    build: |_| {
        Box::new(|capacity, objects| {
            Box::new(Sieve {
                capacity,
                queue: Queues::new(objects),
                is_used: Vec::with_capacity(objects),
                hand: None,
            })
        })
    },
};

/// See the [module](self).
#[derive(Clone, Debug)]
struct Sieve {
    capacity: u64,
    queue: Queues<1>,
    is_used: Vec<bool>,
    /// The next object to look at; the one at the back if there is none.
    hand: Option<u32>,
}

impl Policy for Sieve {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        let at = object as usize;
        if self.queue.place(object).is_some() {
            self.is_used[at] = true;
            return true;
        }
        if u64::from(weight) <= self.capacity {
            while self.queue.weight(0) + u64::from(weight) > self.capacity {
                self.give_up();
            }
            if at >= self.is_used.len() {
                self.is_used.resize(at + 1, false);
            }
            self.is_used[at] = false;
            self.queue.push(0, object, weight);
        }
        false
    }

    fn resident(&self) -> u64 {
        self.queue.weight(0)
    }
}

impl Sieve {
    fn give_up(&mut self) {
        while let Some(object) = self.hand.or_else(|| self.queue.back(0)) {
            self.hand = self.queue.ahead(object);
            if !std::mem::take(&mut self.is_used[object as usize]) {
                self.queue.remove(object);
                return;
            }
        }
    }
}
