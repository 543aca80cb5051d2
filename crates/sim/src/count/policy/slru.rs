//! Segmented LRU: an object climbs one segment at each hit, and falls one when its segment is full.
//!
//! Segments of equal size, each in the order of last use. A hit moves an object to the front of the next higher
//! one; what a segment cannot hold goes to the front of the one below, and of the lowest the last is given up. A
//! new object comes into the lowest segment that has room, so an empty cache fills from below; of a full cache
//! that is the lowest. The paper does not say how a cache fills; libCacheSim fills it so.

use forerun_core::spec::{Method, Param};

use super::queues::Queues;
use super::{Build, Policy, spec};

/// The most segments.
const SEGMENTS: usize = 8;

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "slru",
        "LRU in segments: one up at each hit, one down when its segment is full",
        "Karedla, Love, Wherry 1994, Caching Strategies to Improve Disk System Performance, IEEE Computer 27(3)",
        "loads whose often used objects change: they leave the protected segments late",
        &[Param {
            name: "segments",
            summary: "how many; with 4 three quarters are protected, within the 60 to 80 % of the paper",
            default: 4,
            min: 2,
            max: SEGMENTS as u64,
        }],
    ),
    build: |v| {
        let segments = v.get("segments") as usize;
        Box::new(move |capacity, objects| {
            Box::new(Slru {
                capacity,
                segments,
                queues: Queues::new(objects),
            })
        })
    },
};

/// See the [module](self).
#[derive(Clone, Debug)]
struct Slru {
    capacity: u64,
    segments: usize,
    queues: Queues<SEGMENTS>,
}

impl Policy for Slru {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        if let Some(segment) = self.queues.place(object) {
            let higher = (segment + 1).min(self.segments - 1);
            self.queues.bring_front(higher, object);
            self.settle(higher);
            return true;
        }
        if u64::from(weight) <= self.capacity {
            while self.resident() + u64::from(weight) > self.capacity {
                self.give_up();
            }
            let size = self.capacity / self.segments as u64;
            let has_room = |at: &usize| self.queues.weight(*at) + u64::from(weight) <= size;
            let lowest = (0..self.segments).find(has_room).unwrap_or(0);
            self.queues.push(lowest, object, weight);
        }
        false
    }

    fn resident(&self) -> u64 {
        (0..self.segments).map(|at| self.queues.weight(at)).sum()
    }
}

impl Slru {
    /// Brings the segments from this one down to their sizes.
    fn settle(&mut self, from: usize) {
        let size = self.capacity / self.segments as u64;
        for segment in (1..=from).rev() {
            while self.queues.weight(segment) > size {
                self.queues.shift(segment, segment - 1);
            }
        }
    }

    fn give_up(&mut self) {
        let lowest = (0..self.segments).find(|at| self.queues.objects(*at) > 0);
        self.queues.pop(lowest.unwrap_or(0));
    }
}
