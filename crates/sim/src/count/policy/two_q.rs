//! 2Q, the full version: a FIFO queue for new objects, LRU for those that come back after it.
//!
//! ```text
//! miss -> A1in (FIFO, a quarter) -> A1out (numbers alone, half) -> miss again -> Am (LRU)
//! ```
//!
//! A hit in A1in changes nothing: several uses soon after the first are one. A1in gives up while it is larger than
//! its share, otherwise Am does.

use forerun_core::spec::{Method, Param};

use super::queues::Queues;
use super::{Build, Policy, share, spec};

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "2q",
        "FIFO for new objects, LRU for those that are fetched again soon after",
        "Johnson and Shasha 1994, 2Q, VLDB (the full version)",
        "objects used twice soon and never again, and working sets that need all of the cache",
        &[
            Param {
                name: "in_per_mille",
                summary: "share of the cache for new objects, Kin; a quarter in the paper",
                default: 250,
                min: 1,
                max: 1000,
            },
            Param {
                name: "out_per_mille",
                summary: "numbers remembered, as a share of the cache, Kout; half in the paper",
                default: 500,
                min: 1,
                max: 10_000,
            },
        ],
    ),
    build: |v| {
        let (inside, outside) = (v.get("in_per_mille"), v.get("out_per_mille"));
        Box::new(move |capacity, objects| {
            Box::new(TwoQ {
                capacity,
                inside: share(capacity, inside),
                outside: capacity.saturating_mul(outside) / 1000,
                queues: Queues::new(objects),
            })
        })
    },
};

const IN: usize = 0;
const OUT: usize = 1;
const MAIN: usize = 2;

/// See the [module](self).
#[derive(Clone, Debug)]
struct TwoQ {
    capacity: u64,
    inside: u64,
    outside: u64,
    queues: Queues<3>,
}

impl Policy for TwoQ {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        match self.queues.place(object) {
            Some(MAIN) => {
                self.queues.bring_front(MAIN, object);
                return true;
            }
            Some(IN) => return true,
            _ => {}
        }
        if u64::from(weight) <= self.capacity {
            let was_out = self.queues.remove(object).is_some();
            while self.resident() + u64::from(weight) > self.capacity {
                self.give_up();
            }
            let queue = if was_out { MAIN } else { IN };
            self.queues.push(queue, object, weight);
        }
        false
    }

    fn resident(&self) -> u64 {
        self.queues.weight(IN) + self.queues.weight(MAIN)
    }
}

impl TwoQ {
    fn give_up(&mut self) {
        let is_over = self.queues.weight(IN) > self.inside;
        if !is_over && self.queues.pop(MAIN).is_some() {
            return;
        }
        self.queues.shift(IN, OUT);
        while self.queues.weight(OUT) > self.outside {
            self.queues.pop(OUT);
        }
    }
}
