//! Policies that give up the object of the lowest rank: LFU with dynamic ageing, and GreedyDual-Size-Frequency.
//!
//! The rank of an object is set at each of its uses: its uses since it came, for GDSF over its size, plus the rank
//! of the object that was given up last. So the rank of new objects rises, and an object that was often used
//! long ago is given up in the end. Of equal ranks the object used longest ago goes first. Without sizes the two
//! are one policy. Ranks have 32 binary places, and none exceeds the number of references: each rise of the rank given up
//! last is paid for by the uses of the object that is given up.
//!
//! Resident objects stand in a binary heap, the lowest rank first: 24 bytes each, and 4 for each object there is.

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
    build: |_| Box::new(|capacity, objects| Box::new(Ranked::new(capacity, objects, false))),
};

pub(super) const GDSF: Method<Build> = Method {
    spec: spec(
        "gdsf",
        "as lfu-da, with uses over size: many small objects rather than a large one",
        "Cherkasova 1998, HPL-98-69R1 (GDSF, all objects of the same cost)",
        "byte miss ratios: it prefers small objects",
        &[],
    ),
    build: |_| Box::new(|capacity, objects| Box::new(Ranked::new(capacity, objects, true))),
};

/// One use of an object of weight 1.
const ONE: u64 = 1 << 32;

/// No place in the heap.
const NOWHERE: u32 = u32::MAX;

/// A resident object.
#[derive(Clone, Copy, Debug)]
struct Ranking {
    rank: u64,
    /// When it was last used.
    used: u32,
    uses: u32,
    weight: u32,
    object: u32,
}

impl Ranking {
    /// The order in which objects are given up.
    fn key(&self) -> (u64, u32) {
        (self.rank, self.used)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
struct Ranked {
    capacity: u64,
    by_size: bool,
    /// The rank given up last.
    age: u64,
    now: u32,
    /// A binary heap.
    heap: Vec<Ranking>,
    /// By object, its place in the heap.
    places: Vec<u32>,
    resident: u64,
}

impl Ranked {
    fn new(capacity: u64, objects: usize, by_size: bool) -> Self {
        Self {
            capacity,
            by_size,
            age: 0,
            now: 0,
            heap: Vec::with_capacity(objects.min(usize::try_from(capacity).unwrap_or(usize::MAX))),
            places: Vec::with_capacity(objects),
            resident: 0,
        }
    }

    /// Ranks the object at a place, which was used.
    fn rank(&mut self, place: usize) {
        let ranking = &mut self.heap[place];
        let size = match self.by_size {
            true => ranking.weight.max(1),
            false => 1,
        };
        ranking.uses = ranking.uses.saturating_add(1);
        ranking.used = self.now;
        let worth = u64::from(ranking.uses).saturating_mul(ONE) / u64::from(size);
        ranking.rank = self.age.saturating_add(worth);
    }

    /// Puts an object at a place of the heap.
    fn put(&mut self, place: usize, ranking: Ranking) {
        self.heap[place] = ranking;
        self.places[ranking.object as usize] = place as u32;
    }

    /// Moves the object at a place towards the lowest rank.
    fn rise(&mut self, mut place: usize) {
        let ranking = self.heap[place];
        while place > 0 {
            let above = (place - 1) / 2;
            if self.heap[above].key() <= ranking.key() {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, ranking);
    }

    /// Moves the object at a place away from the lowest rank.
    fn sink(&mut self, mut place: usize) {
        let ranking = self.heap[place];
        loop {
            let left = 2 * place + 1;
            let children = self.heap.get(left..).unwrap_or_default();
            let lesser = match children {
                [] => break,
                [one, other, ..] if other.key() < one.key() => left + 1,
                _ => left,
            };
            if ranking.key() <= self.heap[lesser].key() {
                break;
            }
            self.put(place, self.heap[lesser]);
            place = lesser;
        }
        self.put(place, ranking);
    }

    /// Gives up the object of the lowest rank; none where there is none.
    fn give_up(&mut self) -> Option<()> {
        let victim = *self.heap.first()?;
        let last = self.heap.pop()?;
        self.places[victim.object as usize] = NOWHERE;
        if let Some(first) = self.heap.first_mut() {
            *first = last;
            self.sink(0);
        }
        self.age = victim.rank;
        self.resident -= u64::from(victim.weight);
        Some(())
    }
}

impl Policy for Ranked {
    fn reference(&mut self, object: u32, weight: u32) -> bool {
        self.now = self.now.saturating_add(1);
        let at = object as usize;
        if at >= self.places.len() {
            self.places.resize(at + 1, NOWHERE);
        }
        let place = self.places[at];
        if place != NOWHERE {
            self.rank(place as usize);
            // Its rank is no lower than before, and it is the one used last.
            self.sink(place as usize);
            return true;
        }
        if u64::from(weight) > self.capacity {
            return false;
        }
        while self.resident + u64::from(weight) > self.capacity {
            if self.give_up().is_none() {
                break;
            }
        }
        self.resident += u64::from(weight);
        let place = self.heap.len();
        self.heap.push(Ranking {
            rank: 0,
            used: 0,
            uses: 0,
            weight,
            object,
        });
        self.rank(place);
        self.rise(place);
        false
    }

    fn resident(&self) -> u64 {
        self.resident
    }
}
