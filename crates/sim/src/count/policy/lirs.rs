//! LIRS: objects with a short time between two uses stay, whenever the last one was.
//!
//! Objects of low inter-reference recency (LIR) are nearly all of the cache; the rest, resident HIR objects, stand
//! in a queue Q of a hundredth and are given up from it. The stack S has LIR objects and all that were used since
//! the LIR object that was used longest ago, resident or not; that one is always at its bottom. An object of S
//! that is used again has a shorter recency than that one and takes its place.
//!
//! ```text
//! S: top (used last) .. bottom (an LIR object)     Q: front .. back (given up first)
//! ```
//!
//! As in the paper the stack remembers objects without a limit of its own.

use forerun_core::spec::{Method, Param};

use super::queues::Queues;
use super::{Build, Policy, share, spec};

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "lirs",
        "keeps objects with a short time between their last two uses",
        "Jiang and Zhang, LIRS, SIGMETRICS 2002",
        "loads whose working set changes at once: old objects leave as slowly as they came",
        &[Param {
            name: "hir_per_mille",
            summary: "share of the cache for the others; a hundredth in the paper",
            default: 10,
            min: 1,
            max: 999,
        }],
    ),
    build: |v| {
        let part = v.get("hir_per_mille");
        Box::new(move |capacity, objects| {
            Box::new(Lirs {
                capacity,
                low: capacity - share(capacity, part),
                stack: Queues::new(objects),
                queue: Queues::new(objects),
                is_low: Vec::with_capacity(objects),
                low_weight: 0,
            })
        })
    },
};

/// See the [module](self).
#[derive(Clone, Debug)]
struct Lirs {
    capacity: u64,
    /// The weight of LIR objects at most.
    low: u64,
    stack: Queues<1>,
    queue: Queues<1>,
    is_low: Vec<bool>,
    low_weight: u64,
}

impl Policy for Lirs {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        let at = object as usize;
        if at >= self.is_low.len() {
            self.is_low.resize(at + 1, false);
        }
        if self.is_low[at] {
            self.stack.bring_front(0, object);
            self.prune();
            return true;
        }
        if self.queue.place(object).is_some() {
            self.use_high(object);
            return true;
        }
        let heavy = u64::from(weight);
        if heavy > self.capacity {
            return false;
        }
        while self.resident() + heavy > self.capacity {
            self.give_up();
        }
        let was_known = self.stack.remove(object).is_some();
        self.stack.push(0, object, weight);
        if was_known || self.low_weight + heavy <= self.low {
            self.raise(object, heavy);
        } else {
            self.queue.push(0, object, weight);
        }
        false
    }

    fn resident(&self) -> u64 {
        self.low_weight + self.queue.weight(0)
    }
}

impl Lirs {
    /// Uses a resident HIR object.
    fn use_high(&mut self, object: u32) {
        let Some(weight) = self.queue.remove(object) else {
            return;
        };
        let was_known = self.stack.remove(object).is_some();
        self.stack.push(0, object, weight);
        if was_known {
            self.raise(object, weight.into());
        } else {
            self.queue.push(0, object, weight);
        }
    }

    /// Makes the object at the top of the stack an LIR one, and others HIR where there are too many.
    fn raise(&mut self, object: u32, weight: u64) {
        self.is_low[object as usize] = true;
        self.low_weight += weight;
        while self.low_weight > self.low {
            self.lower();
        }
        self.prune();
    }

    /// Makes the LIR object at the bottom a resident HIR one.
    fn lower(&mut self) {
        self.prune();
        if let Some((object, weight)) = self.stack.pop(0) {
            self.is_low[object as usize] = false;
            self.low_weight -= u64::from(weight);
            self.queue.push(0, object, weight);
        }
    }

    /// Takes objects from the bottom of the stack until an LIR one is there.
    fn prune(&mut self) {
        while let Some(object) = self
            .stack
            .back(0)
            .filter(|object| !self.is_low[*object as usize])
        {
            self.stack.remove(object);
        }
    }

    fn give_up(&mut self) {
        if self.queue.pop(0).is_none() {
            self.lower();
        }
    }
}
