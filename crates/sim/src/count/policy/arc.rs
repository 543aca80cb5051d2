//! ARC: two LRU lists, of objects used once and of those used again, whose shares follow the misses.
//!
//! ```text
//! T1 used once, resident | B1 given up from T1, numbers alone
//! T2 used again, resident | B2 given up from T2, numbers alone
//! ```
//!
//! A miss that B1 remembers says that T1 should be larger, one that B2 remembers that T2 should be: the target p
//! of T1 grows or shrinks by the other list's size over this one's, at least by 1. Both lists together remember as
//! much as the cache holds. The target is a real number in the paper; here it has 16 binary places.

use forerun_core::spec::Method;

use super::queues::Queues;
use super::{Build, Policy, spec};

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "arc",
        "LRU of objects used once and of others, with shares that follow the misses",
        "Megiddo and Modha, ARC, FAST 2003",
        "loops longer than the cache; a scan of objects that are each used twice",
        &[],
    ),
    build: |_| {
        Box::new(|capacity, objects| {
            Box::new(Arc {
                capacity,
                target: 0,
                queues: Queues::new(objects),
            })
        })
    },
};

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

/// One in units of the target.
const ONE: u64 = 1 << 16;

/// See the [module](self).
#[derive(Clone, Debug)]
struct Arc {
    capacity: u64,
    target: u128,
    queues: Queues<4>,
}

impl Policy for Arc {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        let place = self.queues.place(object);
        if let Some(T1 | T2) = place {
            self.queues.bring_front(T2, object);
            return true;
        }
        let heavy = u64::from(weight);
        if heavy > self.capacity {
            return false;
        }
        match place {
            Some(list) => {
                self.adapt(list, weight);
                self.queues.remove(object);
            }
            None => self.forget(heavy),
        }
        while self.resident() + heavy > self.capacity {
            self.replace(place == Some(B2));
        }
        let list = if place.is_some() { T2 } else { T1 };
        self.queues.push(list, object, weight);
        false
    }

    fn resident(&self) -> u64 {
        self.queues.weight(T1) + self.queues.weight(T2)
    }
}

impl Arc {
    /// Moves the target towards the list that remembered a miss.
    fn adapt(&mut self, list: usize, weight: u32) {
        let (own, other) = (self.queues.weight(list), self.queues.weight(B1 + B2 - list));
        let ratio = u128::from(other) * u128::from(ONE) / u128::from(own.max(1));
        let step = ratio.max(ONE.into()) * u128::from(weight);
        let most = u128::from(self.capacity) * u128::from(ONE);
        self.target = match list {
            B1 => self.target.saturating_add(step).min(most),
            _ => self.target.saturating_sub(step),
        };
    }

    /// Makes room in the lists for a new object: each pair remembers at most the capacity, all at most twice.
    fn forget(&mut self, weight: u64) {
        let sum = |queues: &Queues<4>, lists: &[usize]| {
            lists.iter().map(|list| queues.weight(*list)).sum::<u64>()
        };
        while sum(&self.queues, &[T1, B1]) + weight > self.capacity {
            if self.queues.pop(B1).is_none() && self.queues.pop(T1).is_none() {
                break;
            }
        }
        while sum(&self.queues, &[T1, T2, B1, B2]) + weight > self.capacity.saturating_mul(2) {
            if self.queues.pop(B2).is_none() && self.queues.pop(B1).is_none() {
                break;
            }
        }
    }

    /// Gives up an object of T1 or T2, and remembers it.
    fn replace(&mut self, is_of_b2: bool) {
        let once = u128::from(self.queues.weight(T1)) * u128::from(ONE);
        let is_over = once > self.target || (is_of_b2 && once == self.target);
        let has_both = self.queues.objects(T1) > 0 && self.queues.objects(T2) > 0;
        let from = match has_both {
            true if is_over => T1,
            true => T2,
            false if self.queues.objects(T1) > 0 => T1,
            false => T2,
        };
        self.queues.shift(from, from + B1);
    }
}
