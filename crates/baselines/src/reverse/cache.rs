//! The cache of the backward pass: blocks in it, blocks missing, and the forward meaning of a
//! change.
//!
//! Changed by the [pass](super::pass), which reads the references from the last to the first. Its
//! places count from the end. Behind the last of them stands each block that is really cached at
//! the cursor, once: the pass has to end with these.
//!
//! ```text
//! board      | begin        the references to come        end |
//! here       | references           ..            2   1   0   |
//!            | references + 0, 1, ..: blocks cached at the begin
//! ```
//!
//! The final content of the cache is free to choose, so the pass begins with the K blocks used
//! last. Blocks still missing at its end are exchanged by further swaps. Forward, a block that
//! arrives and departs without a use between has never left, so both events cancel.
//!
//! Times and choices are the pass's.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::swaps::Swaps;
use forerun_core::hinted::board::Board;
use forerun_core::hinted::{BlockNo, Position};

const NEVER: u32 = Position::NEVER.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Absent,
    InFlight,
    Resident,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// Next use backwards.
    next: u32,
    /// Last use backwards so far, as a place of the board.
    used: u32,
    disk: u16,
    state: State,
    /// Whether the last use came after the block did.
    is_used_since: bool,
}

// One for every block that was ever mentioned.
const _: () = assert!(size_of::<Block>() == 12);

/// Blocks in the order of their next uses: the use and the block.
type Uses = BTreeSet<(u32, u32)>;

/// See the [module](self).
pub(super) struct Cache<'a> {
    board: &'a Board,
    /// References from the cursor of the board to the end.
    references: u32,
    blocks: Vec<Block>,
    /// Absent blocks that are used.
    missing: Uses,
    /// Resident blocks, by disk.
    resident: Vec<Uses>,
    swaps: Swaps,
}

impl<'a> Cache<'a> {
    pub(super) fn new(board: &'a Board) -> Self {
        let is_given = |number: &u32| is_given(board, *number);
        let given: Vec<u32> = (0..board.blocks()).filter(is_given).collect();
        let fresh = |number| Block {
            next: NEVER,
            used: NEVER,
            disk: board.disk_of(BlockNo(number)).map_or(0, |disk| disk.0),
            state: State::Absent,
            is_used_since: false,
        };
        let mut cache = Self {
            board,
            references: board.end().0 - board.cursor().0,
            blocks: (0..board.blocks()).map(fresh).collect(),
            missing: Uses::new(),
            resident: board.disks().map(|_| Uses::new()).collect(),
            swaps: Swaps::new(board, given),
        };
        cache.link();
        cache.fill();
        cache
    }

    /// Finds each block's first use and the links between its uses.
    fn link(&mut self) {
        for place in (0..self.places()).rev() {
            let number = self.block_at(place);
            let block = &mut self.blocks[number as usize];
            self.swaps.following[place as usize] = block.next;
            block.next = place;
        }
    }

    /// The K blocks used first are there, the others are missing.
    fn fill(&mut self) {
        let mut frames = self.board.capacity();
        for place in 0..self.places() {
            let number = self.block_at(place);
            if self.blocks[number as usize].next != place {
                continue;
            }
            if frames > 0 {
                frames -= 1;
                self.blocks[number as usize].state = State::Resident;
            }
            self.join_sets(number);
        }
    }

    /// References on the way.
    pub(super) fn references(&self) -> u32 {
        self.references
    }

    /// All places, those of given blocks included.
    fn places(&self) -> u32 {
        self.swaps.following.len() as u32
    }

    fn block_at(&self, place: u32) -> u32 {
        match place.checked_sub(self.references) {
            Some(behind) => self.swaps.given[behind as usize],
            None => {
                let forward = Position(self.board.end().0 - 1 - place);
                self.board.block_at(forward).unwrap_or_default().0
            }
        }
    }

    pub(super) fn is_resident_at(&self, place: u32) -> bool {
        self.blocks[self.block_at(place) as usize].state == State::Resident
    }

    /// The place of the missing block that is used soonest.
    pub(super) fn first_missing(&self) -> Option<u32> {
        self.missing.first().map(|(next, _)| *next)
    }

    /// The resident block of a disk that is not needed for the longest time, and its next use.
    pub(super) fn furthest(&self, disk: usize) -> Option<(u32, u32)> {
        self.resident[disk]
            .last()
            .map(|(next, block)| (*block, *next))
    }

    /// The reference at a place passes.
    pub(super) fn refer(&mut self, place: u32) {
        let number = self.block_at(place);
        self.leave_sets(number);
        let block = &mut self.blocks[number as usize];
        block.next = self.swaps.following[place as usize];
        block.used = self.board.end().0 - 1 - place;
        block.is_used_since = true;
        self.join_sets(number);
    }

    /// A block in flight has become resident.
    pub(super) fn land(&mut self, number: u32) {
        self.blocks[number as usize].state = State::Resident;
        self.join_sets(number);
    }

    /// A block goes, and the one used at a place is on its way instead: which that is.
    pub(super) fn swap(&mut self, old: u32, place: u32) -> u32 {
        let new = self.block_at(place);
        self.leave_sets(old);
        self.leave_sets(new);
        self.blocks[old as usize].state = State::Absent;
        self.blocks[new as usize].state = State::InFlight;
        self.join_sets(old);
        self.note_arrival(old);
        self.swaps.add_departure(place);
        self.blocks[new as usize].is_used_since = false;
        new
    }

    /// Forward, the block is fetched here for the use found last; or, if none was found since it
    /// came, was never gone.
    fn note_arrival(&mut self, number: u32) {
        let block = self.blocks[number as usize];
        if block.is_used_since {
            self.swaps.add_arrival(block.used);
        } else {
            self.swaps.cancel_departure(block.next);
        }
    }

    /// Trades blocks cached at the cursor of the board for those it should hold: a block
    /// never used goes first, then the one used furthest.
    pub(super) fn settle(mut self) -> Swaps {
        let is_absent = |number: u32| self.blocks[number as usize].state == State::Absent;
        let used = |number: u32| self.blocks[number as usize].used;
        let given = self.swaps.given.iter().enumerate();
        let given = given.filter(|(_, number)| is_absent(**number));
        let mut superfluous: Vec<_> = given.map(|(at, number)| (used(*number), at)).collect();
        superfluous.sort_unstable_by(|a, b| b.cmp(a));
        for number in 0..self.blocks.len() as u32 {
            let is_there = self.blocks[number as usize].state != State::Absent;
            if is_there && !is_given(self.board, number) {
                self.note_arrival(number);
            }
        }
        let superfluous = superfluous.into_iter().map(|(_, at)| at);
        self.swaps.settle(self.board.empty_frames(), superfluous);
        self.swaps
    }

    /// Takes a block out of the set that its state and next use put it in.
    fn leave_sets(&mut self, number: u32) {
        if let Some((set, member)) = self.set_of(number) {
            set.remove(&member);
        }
    }

    /// Puts a block into the set that its state and next use ask for.
    fn join_sets(&mut self, number: u32) {
        if let Some((set, member)) = self.set_of(number) {
            set.insert(member);
        }
    }

    /// The set that a block belongs to by its state and next use, and its entry there.
    fn set_of(&mut self, number: u32) -> Option<(&mut Uses, (u32, u32))> {
        let Block {
            next, disk, state, ..
        } = self.blocks[number as usize];
        let disk = usize::from(disk);
        match state {
            State::Resident => Some((&mut self.resident[disk], (next, number))),
            State::Absent if next != NEVER => Some((&mut self.missing, (next, number))),
            State::Absent | State::InFlight => None,
        }
    }
}

/// Whether the cache holds a block at the cursor of the board, or will.
fn is_given(board: &Board, number: u32) -> bool {
    board.is_resident(BlockNo(number)) || board.is_in_flight(BlockNo(number))
}
