//! S3-FIFO: three FIFO queues; a small one sorts out objects that are used once.
//!
//! ```text
//! miss -> small (a tenth) -- used twice or more --> main (FIFO, passes over used objects)
//!              \-- else --> ghost (numbers alone) -- miss again --> main
//! ```
//!
//! An object counts its uses up to 3. The ghost queue remembers as much as main holds. Until something was given up,
//! new objects that the small queue has no share for go to main: the paper does not say how a cache fills, and
//! libCacheSim fills it so. As there, and not in the paper's algorithm, an object that moves to main gives up
//! nothing by itself, which would leave the cache one object short.

use forerun_core::spec::{Method, Param};

use super::queues::Queues;
use super::{Build, Policy, share, spec};

pub(super) const METHOD: Method<Build> = Method {
    spec: spec(
        "s3-fifo",
        "three FIFO queues, of which a small one sorts out objects that are used once",
        "Yang et al., S3-FIFO, SOSP 2023, algorithm 1",
        "objects whose second use comes after the small queue and before the ghost queue forgets them",
        &[Param {
            name: "small_per_mille",
            summary: "share of the small queue; a tenth in the paper",
            default: 100,
            min: 1,
            max: 999,
        }],
    ),
    build: |v| {
        let part = v.get("small_per_mille");
        Box::new(move |capacity, objects| {
            let small = share(capacity, part);
            Box::new(S3Fifo {
                capacity,
                small,
                main: capacity - small,
                queues: Queues::new(objects),
                uses: Vec::with_capacity(objects),
                was_full: false,
            })
        })
    },
};

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;

/// Uses that are counted at most.
const USES_MAX: u8 = 3;

/// See the [module](self).
#[derive(Clone, Debug)]
struct S3Fifo {
    capacity: u64,
    small: u64,
    main: u64,
    queues: Queues<3>,
    /// Uses of an object since it came, or since main passed over it.
    uses: Vec<u8>,
    /// Whether the cache was full once.
    was_full: bool,
}

impl Policy for S3Fifo {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        let at = object as usize;
        if let Some(SMALL | MAIN) = self.queues.place(object) {
            self.uses[at] = (self.uses[at] + 1).min(USES_MAX);
            return true;
        }
        if u64::from(weight) > self.capacity {
            return false;
        }
        let was_ghost = self.queues.remove(object).is_some();
        while self.resident() + u64::from(weight) > self.capacity {
            self.was_full = true;
            if self.queues.weight(MAIN) > self.main || self.queues.objects(SMALL) == 0 {
                self.give_up_main();
            } else {
                self.give_up_small();
            }
        }
        if at >= self.uses.len() {
            self.uses.resize(at + 1, 0);
        }
        self.uses[at] = 0;
        let is_filling = !self.was_full && self.queues.weight(SMALL) >= self.small;
        let queue = if was_ghost || is_filling { MAIN } else { SMALL };
        self.queues.push(queue, object, weight);
        false
    }

    fn resident(&self) -> u64 {
        self.queues.weight(SMALL) + self.queues.weight(MAIN)
    }
}

impl S3Fifo {
    fn give_up_small(&mut self) {
        while let Some((object, weight)) = self.queues.pop(SMALL) {
            if self.uses[object as usize] <= 1 {
                self.queues.push(GHOST, object, weight);
                while self.queues.weight(GHOST) > self.main {
                    self.queues.pop(GHOST);
                }
                return;
            }
            self.uses[object as usize] = 0;
            self.queues.push(MAIN, object, weight);
        }
    }

    fn give_up_main(&mut self) {
        while let Some((object, weight)) = self.queues.pop(MAIN) {
            let uses = &mut self.uses[object as usize];
            if *uses == 0 {
                return;
            }
            *uses -= 1;
            self.queues.push(MAIN, object, weight);
        }
    }
}
