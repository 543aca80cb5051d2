//! CLOCK: FIFO with a second chance for objects that were used since the hand last came by.
//!
//! The objects stand in a circle; a hit sets the object's bit. To give one up the hand goes on, clears each bit
//! that is set and stops at the first that is not. The circle is kept as a queue: an object the hand passes goes
//! from the back to the front. Example, capacity 2, references 1 2 1 3: the hand finds 1 used, clears its bit,
//! passes, and gives 2 up.

use forerun_core::spec::{Method, Param};

use super::queues::Queues;
use super::{Build, Policy, spec};

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "clock",
        "FIFO that passes over objects that were used since the last time round",
        "Corbato 1968, A Paging Experiment with the Multics System",
        "as LRU: loops longer than the cache",
        &[Param {
            name: "uses_max",
            summary: "how many uses are remembered, each a pass of the hand; 1 is one bit",
            default: 1,
            min: 1,
            max: 255,
        }],
    ),
    build: |v| {
        let uses_max = v.get("uses_max") as u8;
        Box::new(move |capacity, objects| {
            Box::new(Clock {
                capacity,
                uses_max,
                queue: Queues::new(objects),
                uses: Vec::with_capacity(objects),
            })
        })
    },
};

/// See the [module](self).
#[derive(Clone, Debug)]
struct Clock {
    capacity: u64,
    uses_max: u8,
    queue: Queues<1>,
    uses: Vec<u8>,
}

impl Policy for Clock {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        let at = object as usize;
        if self.queue.place(object).is_some() {
            self.uses[at] = (self.uses[at] + 1).min(self.uses_max);
            return true;
        }
        if u64::from(weight) <= self.capacity {
            while self.queue.weight(0) + u64::from(weight) > self.capacity {
                self.give_up();
            }
            if at >= self.uses.len() {
                self.uses.resize(at + 1, 0);
            }
            self.uses[at] = 0;
            self.queue.push(0, object, weight);
        }
        false
    }

    fn resident(&self) -> u64 {
        self.queue.weight(0)
    }
}

impl Clock {
    fn give_up(&mut self) {
        while let Some((object, weight)) = self.queue.pop(0) {
            let uses = &mut self.uses[object as usize];
            if *uses == 0 {
                return;
            }
            *uses -= 1;
            self.queue.push(0, object, weight);
        }
    }
}
