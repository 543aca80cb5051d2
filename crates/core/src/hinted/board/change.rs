//! Changes of the board: hints, fetches that start and end, the cursor that moves.
//!
//! Called by the [planner](crate::hinted::planner) only. Each change takes a block out of the set
//! that its state and next use put it in, changes one of the two, and puts it into the set they
//! ask for then; so the sets cannot disagree with the blocks. A change that makes no sense answers
//! `None` and leaves everything as it was.

use super::{BlockNo, Board, Entry, Hint, NEVER, Pair, Positions, State, UNKNOWN};
use crate::units::DeviceId;

impl Board {
    /// Appends a reference. `None`, and nothing changes, if it is beyond a limit or contradicts
    /// an earlier one.
    pub fn hint(&mut self, hint: Hint) -> Option<()> {
        let place = self.end().0;
        if place + 1 == NEVER {
            return None;
        }
        self.mention(hint)?;
        let Hint { block, .. } = hint;
        self.order.push(block.0);
        self.following.push(NEVER);
        let entry = &mut self.blocks[block.0 as usize];
        if entry.last != NEVER {
            self.following[entry.last as usize] = place;
        }
        entry.last = place;
        if entry.next == NEVER {
            self.leave_sets(block);
            let entry = &mut self.blocks[block.0 as usize];
            (entry.next, entry.given_up) = (place, false);
            self.join_sets(block);
        }
        Some(())
    }

    /// A block is in the cache from elsewhere.
    pub fn cached(&mut self, hint: Hint) -> Option<()> {
        if self.occupied == self.capacity {
            return None;
        }
        self.mention(hint)?;
        let Entry { state, next, .. } = self.entry(hint.block);
        if state != State::Absent {
            return None;
        }
        self.awaited.remove(&next);
        self.occupied += 1;
        self.change(hint.block, State::Resident);
        Some(())
    }

    /// A reader asks for a block's next use, and waits if it is missing. A victim is
    /// missing again when wanted. `None`, and nothing changes, if it has no next use.
    pub(crate) fn ask(&mut self, block: BlockNo) -> Option<()> {
        let entry = self.blocks.get_mut(block.0 as usize)?;
        if entry.next == NEVER {
            return None;
        }
        self.here = entry.next;
        if entry.state == State::Absent {
            entry.given_up = false;
            self.awaited.insert(entry.next);
            self.join_sets(block);
        }
        Some(())
    }

    /// A block's next use is over, wherever it is; at the cursor, that moves on. `None`, and
    /// nothing changes, if it has none.
    pub(crate) fn pass(&mut self, block: BlockNo) -> Option<()> {
        let place = self.next_use(block).0;
        let following = *self.following.get(place as usize)?;
        self.set_next(block, following);
        if self.here == place {
            self.here += 1;
        }
        self.skip_passed();
        Some(())
    }

    /// A block was read, given up or lost.
    pub(crate) fn settle(&mut self, block: BlockNo) {
        if let Some(entry) = self.blocks.get_mut(block.0 as usize) {
            self.unread -= u32::from(core::mem::take(&mut entry.unread));
        }
    }

    /// Nothing uses a block any more. Whether it was resident; it is not now.
    pub(crate) fn forget(&mut self, block: BlockNo) -> Option<bool> {
        let entry = *self.blocks.get(block.0 as usize)?;
        let was_resident = entry.state == State::Resident;
        self.set_next(block, NEVER);
        self.keep(block, false);
        if was_resident {
            self.change(block, State::Absent);
            self.occupied -= 1;
        }
        self.skip_passed();
        Some(was_resident)
    }

    /// A reader has a block in hand, or no longer. `None` if it is not known.
    pub(crate) fn keep(&mut self, block: BlockNo, kept: bool) -> Option<()> {
        self.blocks.get(block.0 as usize)?;
        self.leave_sets(block);
        self.blocks[block.0 as usize].kept = kept;
        self.join_sets(block);
        Some(())
    }

    /// Forgets the places before the cursor, so that all others move forward by that many.
    pub(crate) fn compact(&mut self) -> u32 {
        let passed = self.cursor;
        self.order.drain(..passed as usize);
        self.following.drain(..passed as usize);
        let forward = |place: &mut u32| {
            *place = place.checked_sub(passed).unwrap_or(NEVER);
        };
        let known = |place: &&mut u32| **place != NEVER;
        self.following.iter_mut().filter(known).for_each(forward);
        let waits = core::mem::take(&mut self.awaited).into_iter();
        self.awaited = waits.map(|place| place.saturating_sub(passed)).collect();
        self.here = self.here.saturating_sub(passed);
        self.cursor = 0;
        self.missing
            .iter_mut()
            .for_each(|set| *set = Positions::default());
        self.resident = Default::default();
        for block in 0..self.blocks() {
            let Entry { next, last, .. } = &mut self.blocks[block as usize];
            [next, last].into_iter().filter(known).for_each(forward);
            self.join_sets(BlockNo(block));
        }
        passed
    }

    /// Makes a block unknown if it is nowhere and not used any more: its number can be given to
    /// another.
    pub(crate) fn retire(&mut self, block: BlockNo) -> Option<()> {
        let entry = self.blocks.get_mut(block.0 as usize)?;
        let is_idle = entry.state == State::Absent && entry.next == NEVER && !entry.kept;
        is_idle.then(|| *entry = UNKNOWN)
    }

    /// One more disk, if there can be.
    pub(crate) fn add_disk(&mut self) -> Option<DeviceId> {
        let disk = self.missing.len() as u16;
        if disk >= Self::DISKS_MAX {
            return None;
        }
        self.missing.push(Positions::default());
        self.in_flight.push(0);
        Some(DeviceId(disk))
    }

    fn set_next(&mut self, block: BlockNo, next: u32) {
        self.leave_sets(block);
        let entry = &mut self.blocks[block.0 as usize];
        self.awaited.remove(&entry.next);
        (entry.next, entry.given_up) = (next, false);
        self.join_sets(block);
    }

    /// A place is passed when its block is used next elsewhere.
    fn skip_passed(&mut self) {
        while let Some(block) = self.block_at(self.cursor())
            && self.next_use(block) != self.cursor()
        {
            self.cursor += 1;
        }
    }

    /// A fetch starts: the victim is gone and the block is on its way. `None`, and nothing
    /// changes, if the pair makes no sense; a block that a reader has in hand is not given up.
    pub(crate) fn start(&mut self, pair: Pair) -> Option<DeviceId> {
        let Entry {
            state, next, disk, ..
        } = self.entry(pair.fetch);
        if state != State::Absent || next == NEVER {
            return None;
        }
        match pair.evict {
            None if self.occupied == self.capacity => return None,
            None => self.occupied += 1,
            Some(victim) => {
                let entry = self.entry(victim);
                if entry.state != State::Resident || entry.kept {
                    return None;
                }
                self.change(victim, State::Absent);
            }
        }
        if !self.awaited.contains(&next) {
            self.blocks[pair.fetch.0 as usize].unread = true;
            self.unread += 1;
        }
        self.awaited.remove(&next);
        self.change(pair.fetch, State::InFlight);
        self.in_flight[usize::from(disk)] += 1;
        Some(DeviceId(disk))
    }

    /// A fetch ended well. Answers where, or `None` if there was no such fetch.
    pub(crate) fn arrive(&mut self, block: BlockNo) -> Option<DeviceId> {
        self.end_fetch(block, State::Resident)
    }

    /// A fetch failed: its frame is empty, and it is not tried again before a reader asks.
    pub(crate) fn fail(&mut self, block: BlockNo) -> Option<DeviceId> {
        let disk = self.end_fetch(block, State::Absent)?;
        self.occupied -= 1;
        self.leave_sets(block);
        self.blocks[block.0 as usize].given_up = true;
        Some(disk)
    }

    fn end_fetch(&mut self, block: BlockNo, state: State) -> Option<DeviceId> {
        let entry = self.entry(block);
        if entry.state != State::InFlight {
            return None;
        }
        self.in_flight[usize::from(entry.disk)] -= 1;
        self.change(block, state);
        Some(DeviceId(entry.disk))
    }

    /// Makes a block known, on its disk.
    fn mention(&mut self, Hint { block, disk }: Hint) -> Option<()> {
        if usize::from(disk.0) >= self.missing.len() {
            return None;
        }
        let at = block.0 as usize;
        if at >= self.blocks.len() {
            self.blocks.resize(at + 1, UNKNOWN);
        }
        let entry = &mut self.blocks[at];
        if entry.state == State::Unknown {
            (entry.state, entry.disk) = (State::Absent, disk.0);
        }
        (entry.disk == disk.0).then_some(())
    }

    fn change(&mut self, block: BlockNo, state: State) {
        self.leave_sets(block);
        self.blocks[block.0 as usize].state = state;
        if state == State::Absent {
            self.settle(block);
        }
        self.join_sets(block);
    }

    /// Takes a block out of the set that its state and next use put it in. Known blocks only.
    fn leave_sets(&mut self, block: BlockNo) {
        let Entry {
            state,
            next,
            disk,
            kept,
            ..
        } = self.blocks[block.0 as usize];
        match state {
            State::Resident if kept => {}
            State::Resident => {
                self.resident.remove(&(next, block.0));
            }
            State::Absent if next != NEVER => self.missing[usize::from(disk)].remove(next),
            _ => {}
        }
    }

    /// Puts a block into the set that its state and next use ask for. Known blocks only.
    fn join_sets(&mut self, block: BlockNo) {
        let entry = self.blocks[block.0 as usize];
        match entry.state {
            State::Resident if entry.kept => {}
            State::Resident => {
                self.resident.insert((entry.next, block.0));
            }
            State::Absent if entry.next != NEVER && !entry.given_up => {
                self.missing[usize::from(entry.disk)].insert(entry.next);
            }
            _ => {}
        }
    }
}
