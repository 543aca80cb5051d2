//! Policies that give up the object of the lowest rank: LFU with dynamic ageing, and GreedyDual-Size-Frequency.
//!
//! The rank of an object is set at each of its uses: its uses since it came, for GDSF over its size, plus the rank
//! of the object that was given up last. So the rank of new objects rises, and an object that was often used
//! long ago is given up in the end. Of equal ranks the object used longest ago goes first. Without sizes the two
//! are one policy. Ranks have 32 binary places.

use std::collections::BTreeSet;

use forerun_core::spec::Method;

use super::{Build, Policy, spec};

pub(super) const LFU_DA: Method<Build> = Method {
    spec: spec(
        "lfu-da",
        "gives up the object used least often, where new ones begin at the rank given up last",
        "Arlitt et al. 2000, Evaluating Content Management Techniques for Web Proxy Caches (LFU-DA)",
        "loads in which the last use says more than the number of uses",
        &[],
    ),
    build: |_| Box::new(|capacity| Box::new(Ranked::new(capacity, false))),
};

pub(super) const GDSF: Method<Build> = Method {
    spec: spec(
        "gdsf",
        "as lfu-da, with uses over size: many small objects rather than a large one",
        "Cherkasova 1998, HPL-98-69R1 (GDSF, all objects of the same cost)",
        "byte miss ratios: it prefers small objects",
        &[],
    ),
    build: |_| Box::new(|capacity| Box::new(Ranked::new(capacity, true))),
};

/// One use of an object of weight 1.
const ONE: u128 = 1 << 32;

#[derive(Clone, Copy, Debug, Default)]
struct Ranking {
    rank: u128,
    /// When it was last used.
    at: u64,
    uses: u64,
    weight: u32,
}

/// See the [module](self).
#[derive(Clone, Debug)]
struct Ranked {
    capacity: u64,
    by_size: bool,
    /// The rank given up last.
    age: u128,
    now: u64,
    /// Resident objects have at least one use.
    objects: Vec<Ranking>,
    order: BTreeSet<(u128, u64, u32)>,
    resident: u64,
}

impl Ranked {
    fn new(capacity: u64, by_size: bool) -> Self {
        Self {
            capacity,
            by_size,
            age: 0,
            now: 0,
            objects: Vec::new(),
            order: BTreeSet::new(),
            resident: 0,
        }
    }

    /// Ranks an object that was used.
    fn rank(&mut self, object: u32) {
        let ranking = &mut self.objects[object as usize];
        ranking.uses += 1;
        ranking.at = self.now;
        let size = if self.by_size {
            ranking.weight.max(1)
        } else {
            1
        };
        ranking.rank = self.age + u128::from(ranking.uses) * ONE / u128::from(size);
        self.order.insert((ranking.rank, ranking.at, object));
    }
}

impl Policy for Ranked {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        self.now += 1;
        let at = object as usize;
        if at >= self.objects.len() {
            self.objects.resize(at + 1, Ranking::default());
        }
        let Ranking {
            rank,
            at: used,
            uses,
            ..
        } = self.objects[at];
        if uses > 0 {
            self.order.remove(&(rank, used, object));
            self.rank(object);
            return true;
        }
        if u64::from(weight) > self.capacity {
            return false;
        }
        while self.resident + u64::from(weight) > self.capacity {
            let Some((rank, _, victim)) = self.order.pop_first() else {
                break;
            };
            self.age = rank;
            let victim = std::mem::take(&mut self.objects[victim as usize]);
            self.resident -= u64::from(victim.weight);
        }
        self.objects[at].weight = weight;
        self.resident += u64::from(weight);
        self.rank(object);
        false
    }

    fn resident(&self) -> u64 {
        self.resident
    }
}
