//! FIFO: the object that was fetched first is given up.

use forerun_core::spec::Method;

use super::queues::Queues;
use super::{Build, Policy, spec};

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "fifo",
        "gives up the object that was fetched first",
        "Belady 1966 (FIFO)",
        "objects that are used again and again: age counts, use does not",
        &[],
    ),
    build: |_| {
        Box::new(|capacity, objects| {
            Box::new(Fifo {
                capacity,
                queue: Queues::new(objects),
            })
        })
    },
};

/// See the [module](self).
#[derive(Clone, Debug)]
struct Fifo {
    capacity: u64,
    queue: Queues<1>,
}

impl Policy for Fifo {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        if self.queue.place(object).is_some() {
            return true;
        }
        self.queue.admit(object, weight, self.capacity);
        false
    }

    fn resident(&self) -> u64 {
        self.queue.weight(0)
    }
}
