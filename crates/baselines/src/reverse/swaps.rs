//! Result of the backward pass: the uses for which blocks arrive, and those after which they
//! depart.
//!
//! Filled by the [cache](super::cache) on the way back, taken from by the [plan](super::pairing) in
//! forward order. A block arrives for one use and departs after one, so both are sets of places of
//! the board:
//!
//! ```text
//! order        A   B   A   C   B   ..
//! arrivals     x   x   .   x   x        fetched for this use
//! departures   .   x   x   .   .        may go once this use is over: at this place + 1
//! ```
//!
//! A block cached at the cursor from the start has no use before that; those that depart are
//! listed, with the frames that are empty. A block is back for a use only after it departed, and
//! that was after the use before: which arrival belongs to which departure follows from the order.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::iter::repeat_n;

use forerun_core::hinted::Position;
use forerun_core::hinted::board::Board;

const NEVER: u32 = Position::NEVER.0;

/// A block that may be evicted, or an empty frame that may be filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Departure {
    /// The block; `None` for an empty frame.
    pub(super) block: Option<u32>,
    /// The first cursor at which it may go: one more than the place of its last use.
    pub(super) released: u32,
}

/// See the [module](self).
pub(super) struct Swaps {
    begin: u32,
    end: u32,
    /// By place as the cache counts, the following use backwards of the same block.
    pub(super) following: Vec<u32>,
    /// Blocks cached at the cursor of the board.
    pub(super) given: Vec<u32>,
    /// Whether each of these departs: the how manyth that was found, or [`NEVER`].
    found: Vec<u32>,
    /// How many were found, cancelled ones included.
    finds: u32,
    arrivals: BTreeSet<u32>,
    departures: BTreeSet<u32>,
    /// Blocks free to go at once, in this order: places in `given`, or empty frames.
    early: VecDeque<Option<usize>>,
    /// The places from which on arrivals and departures are still to be taken.
    next_arrival: u32,
    next_departure: u32,
}

impl Swaps {
    /// None yet, over the references of a board and the blocks cached at its cursor.
    pub(super) fn new(board: &Board, given: Vec<u32>) -> Self {
        let (begin, end) = (board.cursor().0, board.end().0);
        let places = (end - begin) as usize + given.len();
        Self {
            begin,
            end,
            following: repeat_n(NEVER, places).collect(),
            found: repeat_n(NEVER, given.len()).collect(),
            given,
            finds: 0,
            arrivals: BTreeSet::new(),
            departures: BTreeSet::new(),
            early: VecDeque::new(),
            next_arrival: begin,
            next_departure: begin,
        }
    }

    /// A block is fetched for its use at a place of the board.
    pub(super) fn add_arrival(&mut self, needed: u32) {
        self.arrivals.insert(needed);
    }

    /// A block departs after its use at a place of the cache.
    pub(super) fn add_departure(&mut self, place: u32) {
        match self.forward(place) {
            Ok(used) => {
                self.departures.insert(used);
            }
            Err(given) => {
                if let Some(found) = self.found.get_mut(given) {
                    *found = self.finds;
                    self.finds = self.finds.saturating_add(1);
                }
            }
        }
    }

    /// It does not; nothing changes if that was not said, or if it was taken.
    pub(super) fn cancel_departure(&mut self, place: u32) {
        match self.forward(place) {
            Ok(used) => {
                self.departures.remove(&used);
            }
            Err(given) => {
                if let Some(found) = self.found.get_mut(given) {
                    *found = NEVER;
                }
            }
        }
    }

    /// The way back is over. Of the blocks cached at the cursor these depart: those found on the
    /// way, in that order, then empty frames, then superfluous blocks, by its places in `given`.
    pub(super) fn settle(&mut self, empty_frames: u32, superfluous: impl Iterator<Item = usize>) {
        let departs = |given: &usize| self.found[*given] != NEVER;
        let mut early: Vec<usize> = (0..self.given.len()).filter(departs).collect();
        early.sort_unstable_by_key(|given| self.found[*given]);
        // No arrival fills more than one frame.
        let empty = self.arrivals_count().min(empty_frames as usize);
        self.early.extend(early.into_iter().map(Some));
        self.early.extend(repeat_n(None, empty));
        for given in superfluous {
            self.add_departure(self.end - self.begin + given as u32);
            self.early.push_back(Some(given));
        }
    }

    /// How many blocks arrive.
    pub(super) fn arrivals_count(&self) -> usize {
        self.arrivals.len()
    }

    /// Takes the arrival that is needed soonest: the place it is needed at.
    pub(super) fn arrive(&mut self) -> Option<u32> {
        let needed = *self.arrivals.range(self.next_arrival..).next()?;
        self.next_arrival = needed + 1;
        Some(needed)
    }

    /// Takes the departure that is released soonest; of those released at once, by their order.
    pub(super) fn depart(&mut self, board: &Board) -> Option<Departure> {
        while let Some(frame) = self.early.pop_front() {
            if frame.is_none_or(|given| self.found[given] != NEVER) {
                return Some(Departure {
                    block: frame.map(|given| self.given[given]),
                    released: self.begin,
                });
            }
        }
        let used = *self.departures.range(self.next_departure..).next()?;
        self.next_departure = used + 1;
        Some(Departure {
            block: board.block_at(Position(used)).map(|block| block.0),
            released: used + 1,
        })
    }

    /// When the block needed at a place is released before that, unless it comes for the first
    /// time.
    pub(super) fn released_before(&self, needed: u32) -> Option<u32> {
        let used = self.forward(self.use_before(needed)?);
        Some(used.map_or(self.begin, |used| used + 1))
    }

    /// The block needed at a place does not depart before that.
    pub(super) fn call_off_before(&mut self, needed: u32) {
        if let Some(place) = self.use_before(needed) {
            self.cancel_departure(place);
        }
    }

    /// The place, as the cache counts, of the use before the one at a place of the board.
    fn use_before(&self, needed: u32) -> Option<u32> {
        let place = *self.following.get((self.end - 1 - needed) as usize)?;
        (place != NEVER).then_some(place)
    }

    /// A place as the cache counts, as one of the board, or else as one in `given`.
    fn forward(&self, place: u32) -> Result<u32, usize> {
        let references = self.end - self.begin;
        match place.checked_sub(references) {
            Some(given) => Err(given as usize),
            None => Ok(self.end - 1 - place),
        }
    }
}
