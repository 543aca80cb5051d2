//! LRU: the object that was used longest ago is given up.

use forerun_core::spec::Method;

use super::queues::Queues;
use super::{Build, Policy, spec};

/// Its name, by which its counts at several capacities come from one pass.
pub(in super::super) const NAME: &str = "lru";

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        NAME,
        "gives up the object that was used longest ago",
        "Mattson et al. 1970 (LRU)",
        "loops longer than the cache, and scans: everything is given up before it is used again",
        &[],
    ),
    build: |_| {
        Box::new(|capacity, objects| {
            Box::new(Lru {
                capacity,
                queue: Queues::new(objects),
            })
        })
    },
};

/// See the [module](self).
#[derive(Clone, Debug)]
struct Lru {
    capacity: u64,
    queue: Queues<1>,
}

impl Policy for Lru {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        if self.queue.place(object).is_some() {
            self.queue.bring_front(0, object);
            return true;
        }
        self.queue.admit(object, weight, self.capacity);
        false
    }

    fn resident(&self) -> u64 {
        self.queue.weight(0)
    }
}
