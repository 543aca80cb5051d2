//! The optimum: the least time any schedule takes in the unit model, by search over all of them.
//!
//! For tests of bounds and for telling how far a method is from perfect, on instances so small
//! that every schedule can be tried: 8 blocks, 3 disks, 14 references. A state is the cursor, the
//! blocks in the cache, and for each disk its fetch under way and the units left of it; a step is
//! one unit of [`unit`](super::unit)'s time. Steps that serve a reference are free and steps that
//! stall cost one, so states are visited in the order of stall (a deque, each state once).
//!
//! Only useless steps are left out: fetching a block that is not used again, evicting while a
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

/// The least elapsed time of an instance with a cache of a given number of blocks; `None` if it is
/// too large to search, or its cache holds nothing.
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
    /// The block under way from each disk, and units until it arrives; none if those are 0.
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

    /// The blocks worth evicting.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hinted::{Place, Reads, Reference};
    use crate::random::Random;
    use forerun_core::hinted::BlockNo;
    use forerun_core::{Bytes, DeviceId, Nanos};

    fn draw(random: &mut Random) -> (Instance, u32) {
        let blocks = random.between(2, 5);
        let frames = random.between(1, 3) as u32;
        let reference = |random: &mut Random| Reference {
            block: BlockNo(random.below(blocks) as u32),
            compute: Nanos(1),
        };
        let place = |random: &mut Random| Place {
            disk: DeviceId(random.below(2) as u16),
            at: Bytes(0),
        };
        let reads = Reads {
            references: (0..random.between(1, 8))
                .map(|_| reference(random))
                .collect(),
            places: (0..blocks).map(|_| place(random)).collect(),
        };
        let warm = random.between(0, u64::from(frames).min(blocks)) as u32;
        let instance = Instance {
            reads,
            warm: (0..warm).map(BlockNo).collect(),
            fetch_units: random.between(1, 3),
        };
        (instance, frames)
    }

    /// Everything a disk could do, sensible or not.
    fn everything(search: &Search, state: State, disk: usize, found: &mut Vec<State>) {
        if disk == DISKS_MAX {
            return found.push(state);
        }
        everything(search, state, disk + 1, found);
        if state.coming[disk].1 > 0 {
            return;
        }
        for block in bits(search.on_disk[disk] & !state.resident) {
            let mut next = state;
            next.coming[disk] = (block, search.fetch_units);
            if search.occupied(state) < search.frames {
                everything(search, next, disk + 1, found);
            }
            for victim in bits(state.resident) {
                next.resident = state.resident & !victim;
                everything(search, next, disk + 1, found);
            }
        }
    }

    /// Unit by unit, all states that can be reached.
    fn plain(instance: &Instance, frames: u32) -> u64 {
        let search = Search::new(instance, frames);
        let mut states = BTreeSet::from([search.start]);
        for now in 0.. {
            if states
                .iter()
                .any(|s| usize::from(s.cursor) == search.order.len())
            {
                return now;
            }
            let mut decided = Vec::new();
            for state in states {
                everything(&search, state, 0, &mut decided);
            }
            states = decided
                .into_iter()
                .map(|state| search.step(state))
                .collect();
        }
        unreachable!("some schedule ends")
    }

    #[test]
    fn what_the_search_leaves_out_does_not_matter() {
        let mut random = Random::new(5);
        for _ in 0..150 {
            let (instance, frames) = draw(&mut random);
            let found = optimum(&instance, frames);
            assert_eq!(
                found,
                Some(plain(&instance, frames)),
                "{frames} {instance:?}"
            );
        }
    }

    #[test]
    fn instances_too_large_to_search_are_refused() {
        let (mut instance, _) = draw(&mut Random::new(1));
        assert_eq!(optimum(&instance, 0), None);
        instance.fetch_units = FETCH_UNITS_MAX + 1;
        assert_eq!(optimum(&instance, 2), None);
    }
}
