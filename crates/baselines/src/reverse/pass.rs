//! The pass over the references from the cursor to the end, read backwards.
//!
//! Called for a [plan](super::pairing). When a disk is free, its block not needed for the longest
//! time is replaced by the first missing block of any disk, if that does no harm (Kimbrel et al.
//! 1996 section 2.5); the disk of the block that goes is busy with that. One time for every
//! reference and one for every fetch, from the [model](Model), stand for the clock.
//!
//! The content of the cache is kept by [cache](super::cache), and the result forward is
//! noted there.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Model;
use super::cache::Cache;
use super::swaps::Swaps;
use forerun_core::hinted::board::Board;

/// Time of a reference.
const REFERENCE: u64 = 100;

/// Arrivals and departures, from the cursor of the board on.
pub(super) fn pass(board: &Board, model: Model) -> Swaps {
    let disks = board.disk_count() as usize;
    let mut pass = Pass {
        model,
        cache: Cache::new(board),
        coming: (0..disks).map(|_| VecDeque::new()).collect(),
        room: Vec::new(),
        now: 0,
        cursor: 0,
    };
    pass.run();
    pass.cache.settle()
}

struct Pass<'a> {
    model: Model,
    cache: Cache<'a>,
    /// Fetches outstanding on each disk, with their times, soonest first.
    coming: Vec<VecDeque<(u64, u32)>>,
    /// Room in the batch of each disk.
    room: Vec<u32>,
    now: u64,
    /// The reference that comes next, counted from the end.
    cursor: u32,
}

impl Pass<'_> {
    /// References and fetches in the order of their ends, and decisions after each.
    fn run(&mut self) {
        while self.cursor < self.cache.references() {
            self.land();
            self.decide();
            if self.cache.is_resident_at(self.cursor) {
                self.reference();
            } else if let Some(next) = self.next_landing() {
                self.now = next;
            } else {
                // Nothing resident and nothing coming: impossible, as the cache has K >= 1 frames.
                return;
            }
        }
    }

    /// One reference passes; disks that become free meanwhile get new work at once.
    fn reference(&mut self) {
        let end = self.now + REFERENCE;
        while let Some(next) = self.next_landing().filter(|next| *next < end) {
            self.now = next;
            self.land();
            self.decide();
        }
        self.now = end;
        self.cache.refer(self.cursor);
        self.cursor += 1;
    }

    fn next_landing(&self) -> Option<u64> {
        let fronts = self.coming.iter().filter_map(VecDeque::front);
        fronts.map(|(at, _)| *at).min()
    }

    /// Arrived blocks become resident.
    fn land(&mut self) {
        for queue in &mut self.coming {
            while let Some((_, block)) = queue.front().filter(|(at, _)| *at <= self.now) {
                self.cache.land(*block);
                queue.pop_front();
            }
        }
    }

    /// Every free disk gets a batch of evictions, as long as that does no harm.
    fn decide(&mut self) {
        self.open_batches();
        while let Some(missing) = self.cache.first_missing() {
            let Some((disk, victim, next)) = self.furthest() else {
                return;
            };
            if next <= missing {
                return;
            }
            self.room[disk] -= 1;
            let block = self.cache.swap(victim, missing);
            let queue = &mut self.coming[disk];
            let begin = queue.back().map_or(self.now, |(at, _)| *at);
            queue.push_back((begin + self.model.fetch_time, block));
        }
    }

    /// Disks with nothing to do have room for a batch, the others for nothing.
    fn open_batches(&mut self) {
        let batch = self.model.batch;
        let room = |queue: &VecDeque<_>| if queue.is_empty() { batch } else { 0 };
        self.room.clear();
        self.room.extend(self.coming.iter().map(room));
    }

    /// Of the disks whose batch has room, the one whose block is not needed for the longest time,
    /// with the block and its next use.
    fn furthest(&self) -> Option<(usize, u32, u32)> {
        let open = (0..self.room.len()).filter(|disk| self.room[*disk] > 0);
        let candidate = |disk: usize| {
            let (block, next) = self.cache.furthest(disk)?;
            Some((disk, block, next))
        };
        open.filter_map(candidate)
            .max_by_key(|(disk, _, next)| (*next, core::cmp::Reverse(*disk)))
    }
}
