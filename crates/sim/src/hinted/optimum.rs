//! The optimum: the least time any schedule takes in the unit model, by search over all of them.
//!
//! For tests of bounds and for telling how far a method is from perfect, on instances so small
//! that every schedule can be tried: 8 blocks, 3 disks, 14 references. A state is the cursor, the
//! blocks in the cache, and for each disk what it fetches and for how much longer; a step is one
//! unit of [`unit`](super::unit)'s time. Steps that serve a reference are free and steps that stall
//! cost one, so states are visited in the order of stall (a queue with two ends, each state once).
//!
//! Only what cannot help is left out: fetching a block that is not used again, evicting while a
//! frame is empty, and evicting a block that is used again while there is one that is not. The
//! paper's rules are not assumed: with several disks they do not hold (section 2.2).

use std::collections::{BTreeSet, VecDeque};

use super::unit::Instance;

/// Most blocks of an instance.
pub const BLOCKS_MAX: usize = 8;
/// Most disks.
pub const DISKS_MAX: usize = 3;
/// Most references.
pub const REFERENCES_MAX: usize = 14;
/// Longest fetch time.
pub const FETCH_UNITS_MAX: u64 = 15;

/// The least elapsed time of an instance with a cache of so many blocks; `None` if it is too large
/// to search, or its cache holds nothing.
#[must_use]
pub fn optimum(instance: &Instance, cache_blocks: u32) -> Option<u64> {
    let reads = &instance.reads;
    let searchable = reads.check()
        && reads.places.len() <= BLOCKS_MAX
        && usize::from(reads.disks()) <= DISKS_MAX
        && reads.references.len() <= REFERENCES_MAX
        && instance.fetch_units <= FETCH_UNITS_MAX
        && cache_blocks > 0;
    searchable.then(|| Search::new(instance, cache_blocks).run())
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    cursor: u8,
    /// A bit for each block in the cache.
    resident: u8,
    /// What each disk fetches, and units until it arrives; nothing if those are 0.
    coming: [(u8, u8); DISKS_MAX],
}

struct Search {
    order: Vec<u8>,
    /// For each cursor, the blocks used from there on.
    needed: Vec<u8>,
    /// For each disk, its blocks.
    on_disk: [u8; DISKS_MAX],
    frames: u32,
    fetch_units: u8,
    start: State,
}

impl Search {
    fn new(instance: &Instance, frames: u32) -> Self {
        let reads = &instance.reads;
        let order: Vec<u8> = reads.references.iter().map(|r| r.block.0 as u8).collect();
        let mut needed = vec![0u8; order.len() + 1];
        for at in (0..order.len()).rev() {
            needed[at] = needed[at + 1] | 1 << order[at];
        }
        let mut on_disk = [0u8; DISKS_MAX];
        for (block, place) in reads.places.iter().enumerate() {
            on_disk[usize::from(place.disk.0)] |= 1 << block;
        }
        let warm = instance
            .warm
            .iter()
            .filter(|b| (b.0 as usize) < reads.places.len());
        let resident = warm.take(frames as usize).fold(0, |set, b| set | 1 << b.0);
        Self {
            order,
            needed,
            on_disk,
            frames,
            fetch_units: instance.fetch_units.max(1) as u8,
            start: State {
                cursor: 0,
                resident,
                coming: [(0, 0); DISKS_MAX],
            },
        }
    }

    fn run(&self) -> u64 {
        let mut seen = BTreeSet::new();
        let mut queue = VecDeque::from([(0u64, self.start)]);
        while let Some((stall, state)) = queue.pop_front() {
            if usize::from(state.cursor) == self.order.len() {
                return stall + self.order.len() as u64;
            }
            if !seen.insert(state) {
                continue;
            }
            self.decide(state, 0, &mut |decided| {
                let next = self.step(decided);
                if next.cursor > state.cursor {
                    queue.push_front((stall, next));
                } else {
                    queue.push_back((stall + 1, next));
                }
            });
        }
        u64::MAX
    }

    /// Every choice of fetches on the free disks from `disk` on.
    fn decide(&self, state: State, disk: usize, found: &mut dyn FnMut(State)) {
        if disk == DISKS_MAX {
            return found(state);
        }
        self.decide(state, disk + 1, found);
        if state.coming[disk].1 > 0 {
            return;
        }
        // Only this disk fetches its blocks, so none of them is on its way.
        let absent = self.on_disk[disk] & self.needed[usize::from(state.cursor)] & !state.resident;
        for block in bits(absent) {
            for victim in bits(self.victims(state)) {
                let mut next = state;
                next.resident &= !victim;
                next.coming[disk] = (block, self.fetch_units);
                self.decide(next, disk + 1, found);
            }
            if self.occupied(state) < self.frames {
                let mut next = state;
                next.coming[disk] = (block, self.fetch_units);
                self.decide(next, disk + 1, found);
            }
        }
    }

    fn occupied(&self, state: State) -> u32 {
        let coming = state.coming.iter().filter(|(_, left)| *left > 0).count();
        state.resident.count_ones() + coming as u32
    }

    /// What is worth trying to evict.
    fn victims(&self, state: State) -> u8 {
        let unneeded = state.resident & !self.needed[usize::from(state.cursor)];
        if self.occupied(state) < self.frames {
            0
        } else if unneeded != 0 {
            unneeded & unneeded.wrapping_neg()
        } else {
            state.resident
        }
    }

    fn step(&self, mut state: State) -> State {
        if state.resident >> self.order[usize::from(state.cursor)] & 1 == 1 {
            state.cursor += 1;
        }
        for coming in &mut state.coming {
            if coming.1 > 0 {
                coming.1 -= 1;
                if coming.1 == 0 {
                    state.resident |= coming.0;
                    *coming = (0, 0);
                }
            }
        }
        state
    }
}

/// The bits of a set, each alone.
fn bits(set: u8) -> impl Iterator<Item = u8> {
    (0..8).map(|bit| 1 << bit).filter(move |bit| set & bit != 0)
}
