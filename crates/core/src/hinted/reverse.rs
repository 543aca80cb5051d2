//! The pass over the reversed sequence by which reverse aggressive balances its disks.
//!
//! Called by [its policy](super::policy::reverse_aggressive) with the references still to come. Read
//! backwards, each fetch is an eviction and each eviction a fetch:
//!
//! ```text
//! forward   | use X at q |  .. evict X, fetch B  .. | use B at p |     B's disk is busy
//! backward  | use B at p |  .. evict B, fetch X  .. | use X at q |     .. with this one
//! ```
//!
//! So backwards a disk is kept busy by *evicting* its blocks: when it is free, its block not
//! needed for the longest time is replaced by the first missing block of any disk, if that does
//! no harm (kimbrel96 section 2.5). As many disks as possible evict in parallel, hence forward as
//! many as possible fetch in parallel. A model of one time for every reference and one for every
//! fetch stands for the clock.
//!
//! Backwards the cache starts with the K blocks used last, since what the cache holds in the end
//! is free to choose; and what it holds at the cursor counts as referenced once more behind the
//! last reference, since that is given. What it still lacks then is traded for by further pairs.
//! A block fetched and evicted without a use between is left where it was: both cancel. What
//! follows from the pass is [`Swaps`]; matching them is the caller's.

mod swaps;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::board::Board;
use super::positions::Positions;
use super::protocol::{BlockNo, Position};
pub(super) use swaps::{Arrival, Departure, Swaps};

/// How the pass reckons.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    /// Time of a fetch in hundredths of a reference.
    pub(super) fetch_time: u64,
    /// Most evictions a free disk gets at once.
    pub(super) batch: u32,
}

const NEVER: u32 = Position::NEVER.0;
const NONE: u32 = u32::MAX;
/// Time of a reference.
const REFERENCE: u64 = 100;

/// The pass over the references from the cursor to the end, read backwards.
pub(super) fn pass(board: &Board, model: Model) -> Swaps {
    let mut pass = Pass::new(board, model);
    pass.run();
    pass.settle();
    pass.swaps
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Absent,
    InFlight,
    Resident,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    state: State,
    /// Next use backwards, counted from the end.
    next: u32,
    /// Last use backwards so far, as a forward place; and whether it came after the departure.
    used: u32,
    used_since: bool,
    /// The last arrival and the last departure found for it.
    arrival: u32,
    departure: u32,
    disk: u16,
}

struct Pass<'a> {
    board: &'a Board,
    model: Model,
    /// The blocks backwards, then those in the cache now; and for each place the following one of
    /// the same block.
    order: Vec<u32>,
    following: Vec<u32>,
    blocks: Vec<Block>,
    missing: Positions,
    kept: Vec<Positions>,
    unneeded: Vec<Positions>,
    /// What each disk still brings and when, soonest first.
    coming: Vec<VecDeque<(u64, u32)>>,
    now: u64,
    cursor: u32,
    swaps: Swaps,
}

impl<'a> Pass<'a> {
    fn new(board: &'a Board, model: Model) -> Self {
        let (begin, end) = (board.cursor().0, board.end().0);
        let at = |place| board.block_at(Position(place)).map_or(0, |block| block.0);
        let mut order: Vec<u32> = (begin..end).rev().map(at).collect();
        order.extend((0..board.blocks()).filter(|number| is_there(board, *number)));
        let disks = board.disk_count() as usize;
        let sets = || (0..disks).map(|_| Positions::default()).collect::<Vec<_>>();
        let fresh = |number| Block {
            state: State::Absent,
            next: NEVER,
            used: NONE,
            used_since: false,
            arrival: NONE,
            departure: NONE,
            disk: board.disk_of(BlockNo(number)).map_or(0, |disk| disk.0),
        };
        let mut pass = Self {
            board,
            model,
            following: order.iter().map(|_| NEVER).collect(),
            order,
            blocks: (0..board.blocks()).map(fresh).collect(),
            missing: Positions::default(),
            kept: sets(),
            unneeded: sets(),
            coming: (0..disks).map(|_| VecDeque::new()).collect(),
            now: 0,
            cursor: 0,
            swaps: Swaps::default(),
        };
        pass.link();
        pass.fill();
        pass
    }

    /// Finds each block's first use and the links between its uses.
    fn link(&mut self) {
        for place in (0..self.order.len()).rev() {
            let block = &mut self.blocks[self.order[place] as usize];
            self.following[place] = block.next;
            block.next = place as u32;
        }
    }

    /// The K blocks used first backwards are there, the others are missing.
    fn fill(&mut self) {
        let mut frames = self.board.capacity();
        for place in 0..self.order.len() as u32 {
            let number = self.order[place as usize];
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

    /// References and fetches in the order of their ends, and decisions after each.
    fn run(&mut self) {
        let mut batches = Free::default();
        let references = self.board.end().0 - self.board.cursor().0;
        while self.cursor < references {
            self.land();
            self.decide(&mut batches);
            let block = self.order[self.cursor as usize];
            if self.blocks[block as usize].state == State::Resident {
                self.reference(&mut batches);
            } else if let Some(next) = self.next_landing() {
                self.now = next;
            } else {
                // Nothing resident and nothing coming: impossible, as the cache has K >= 1 frames.
                return;
            }
        }
    }

    /// One reference passes; disks that become free meanwhile get new work at once.
    fn reference(&mut self, batches: &mut Free) {
        let end = self.now + REFERENCE;
        while let Some(next) = self.next_landing().filter(|next| *next < end) {
            self.now = next;
            self.land();
            self.decide(batches);
        }
        self.now = end;
        let number = self.order[self.cursor as usize];
        self.leave_sets(number);
        let block = &mut self.blocks[number as usize];
        block.next = self.following[self.cursor as usize];
        block.used = self.board.end().0 - 1 - self.cursor;
        block.used_since = true;
        self.join_sets(number);
        self.cursor += 1;
    }

    fn next_landing(&self) -> Option<u64> {
        let fronts = self.coming.iter().filter_map(VecDeque::front);
        fronts.map(|(at, _)| *at).min()
    }

    /// What has arrived by now is resident.
    fn land(&mut self) {
        for disk in 0..self.coming.len() {
            while let Some((at, block)) = self.coming[disk].front().copied() {
                if at > self.now {
                    break;
                }
                self.coming[disk].pop_front();
                self.blocks[block as usize].state = State::Resident;
                self.join_sets(block);
            }
        }
    }

    /// Every free disk gets a batch of evictions, as long as that does no harm.
    fn decide(&mut self, free: &mut Free) {
        free.open(&self.coming, self.model.batch);
        while let Some(missing) = self.missing.first() {
            let Some((disk, victim, next)) = self.furthest(free) else {
                return;
            };
            if next <= missing {
                return;
            }
            free.room[disk] -= 1;
            self.swap(victim, self.order[missing as usize]);
        }
    }

    /// Of the disks whose batch has room, the one whose block is not needed for the longest time.
    fn furthest(&self, free: &Free) -> Option<(usize, u32, u32)> {
        let open = (0..self.kept.len()).filter(|disk| free.room[*disk] > 0);
        let candidate = |disk: usize| {
            if let Some(block) = self.unneeded[disk].last() {
                return Some((disk, block, NEVER));
            }
            let place = self.kept[disk].last()?;
            Some((disk, self.order[place as usize], place))
        };
        open.filter_map(candidate)
            .max_by_key(|(disk, _, next)| (*next, core::cmp::Reverse(*disk)))
    }

    /// Backwards: `old` goes, `new` comes, and the disk of `old` is busy with it.
    fn swap(&mut self, old: u32, new: u32) {
        self.leave_sets(old);
        self.leave_sets(new);
        self.blocks[old as usize].state = State::Absent;
        self.blocks[new as usize].state = State::InFlight;
        self.join_sets(old);
        let disk = usize::from(self.blocks[old as usize].disk);
        let begin = self.coming[disk].back().map_or(self.now, |(at, _)| *at);
        self.coming[disk].push_back((begin + self.model.fetch_time, new));
        self.note_arrival(old);
        let released = self
            .board
            .end()
            .0
            .saturating_sub(self.blocks[new as usize].next);
        self.note_departure(new, released.max(self.board.cursor().0));
    }

    /// Forward, the block is fetched here for the use found last; or, if none was found since it
    /// came, was never gone.
    fn note_arrival(&mut self, number: u32) {
        let block = &mut self.blocks[number as usize];
        if block.used_since {
            block.arrival = self.swaps.arrivals.len() as u32;
            self.swaps.arrivals.push(Arrival {
                block: number,
                needed: block.used,
                departed: None,
            });
        } else if let Some(departure) = self.swaps.departures.get_mut(block.departure as usize) {
            departure.cancelled = true;
        }
    }

    /// Forward, the block goes here, after the use that is next backwards.
    fn note_departure(&mut self, number: u32, released: u32) {
        let departure = self.swaps.departures.len() as u32;
        let block = &mut self.blocks[number as usize];
        (block.departure, block.used_since) = (departure, false);
        if let Some(arrival) = self.swaps.arrivals.get_mut(block.arrival as usize) {
            arrival.departed = Some(departure);
        }
        self.swaps.departures.push(Departure {
            block: Some(number),
            released,
            cancelled: false,
        });
    }

    /// Trades what the cache holds at the cursor for what it should hold: empty frames first,
    /// then what is never used, then what is used furthest.
    fn settle(&mut self) {
        let begin = self.board.cursor().0;
        let empty = Departure {
            block: None,
            released: begin,
            cancelled: false,
        };
        let frames = self.board.empty_frames() as usize;
        self.swaps
            .departures
            .extend(core::iter::repeat_n(empty, frames));
        let mut superfluous = Vec::new();
        for number in 0..self.blocks.len() as u32 {
            let block = &self.blocks[number as usize];
            match (is_there(self.board, number), block.state != State::Absent) {
                (true, false) => superfluous.push((block.used, number)),
                (false, true) => self.note_arrival(number),
                _ => {}
            }
        }
        superfluous.sort_unstable_by(|a, b| b.cmp(a));
        for (_, number) in superfluous {
            self.note_departure(number, begin);
        }
    }

    /// Takes a block out of the set that its state and next use put it in.
    fn leave_sets(&mut self, number: u32) {
        let block = self.blocks[number as usize];
        let disk = usize::from(block.disk);
        match block.state {
            State::Resident if block.next == NEVER => self.unneeded[disk].remove(number),
            State::Resident => self.kept[disk].remove(block.next),
            State::Absent if block.next != NEVER => self.missing.remove(block.next),
            _ => {}
        }
    }

    /// Puts a block into the set that its state and next use ask for.
    fn join_sets(&mut self, number: u32) {
        let block = self.blocks[number as usize];
        let disk = usize::from(block.disk);
        match block.state {
            State::Resident if block.next == NEVER => self.unneeded[disk].insert(number),
            State::Resident => self.kept[disk].insert(block.next),
            State::Absent if block.next != NEVER => self.missing.insert(block.next),
            _ => {}
        }
    }
}

/// Whether the cache holds a block at the cursor, or will.
fn is_there(board: &Board, number: u32) -> bool {
    board.is_resident(BlockNo(number)) || board.is_in_flight(BlockNo(number))
}

/// Room in the batches of the disks that are free.
#[derive(Default)]
struct Free {
    room: Vec<u32>,
}

impl Free {
    fn open(&mut self, coming: &[VecDeque<(u64, u32)>], batch: u32) {
        let room = coming
            .iter()
            .map(|queue| if queue.is_empty() { batch } else { 0 });
        self.room.clear();
        self.room.extend(room);
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Hint;
    use super::*;
    use crate::units::DeviceId;
    use proptest::prelude::*;

    fn board(blocks: &[(u32, u16)], warm: &[(u32, u16)], frames: u32) -> Board {
        let mut board = Board::new(3, frames, 100, 1000);
        let hint = |(block, disk): &(u32, u16)| Hint {
            block: BlockNo(*block),
            disk: DeviceId(*disk),
        };
        for pair in warm {
            board.cached(hint(pair));
        }
        for pair in blocks {
            board.hint(hint(pair));
        }
        board
    }

    #[test]
    fn a_cache_large_enough_is_filled_in_order() {
        let board = board(&[(0, 0), (1, 1), (0, 0), (2, 0)], &[], 3);
        let model = Model {
            fetch_time: 200,
            batch: 1,
        };
        let swaps = pass(&board, model);
        let arrivals: Vec<_> = swaps
            .arrivals()
            .iter()
            .map(|a| (a.block, a.needed))
            .collect();
        assert_eq!(arrivals, [(0, 0), (1, 1), (2, 3)]);
        assert!(swaps.departures().iter().all(|(_, d)| d.block.is_none()));
    }

    proptest! {
        /// Matched in their orders, each eviction is released before the use it makes room for;
        /// and for each use there is a reason why its block is there.
        #[test]
        fn every_arrival_finds_a_departure_in_time(
            order in prop::collection::vec(0u32..12, 1..80), frames in 1u32..8,
            warm in 0u32..8, fetch_time in 1u64..900, batch in 1u32..6,
        ) {
            let on_disk = |block: u32| (block, (block % 3) as u16);
            let order: Vec<_> = order.into_iter().map(on_disk).collect();
            let warm: Vec<_> = (0..warm.min(frames)).map(on_disk).collect();
            let board = board(&order, &warm, frames);
            let swaps = pass(&board, Model { fetch_time, batch });
            let (arrivals, departures) = (swaps.arrivals(), swaps.departures());
            prop_assert!(arrivals.len() <= departures.len());
            for (arrival, (_, departure)) in arrivals.iter().zip(&departures) {
                prop_assert!(departure.released <= arrival.needed);
                prop_assert_eq!(order[arrival.needed as usize].0, arrival.block);
            }
            for (block, _) in (0..12).map(on_disk).filter(|pair| order.contains(pair)) {
                let first = order.iter().position(|(b, _)| *b == block);
                let fetched = arrivals.iter().any(|a| Some(a.needed as usize) == first);
                let was_there = warm.iter().any(|(b, _)| *b == block);
                prop_assert!(fetched || was_there, "block {block}");
            }
        }
    }
}
