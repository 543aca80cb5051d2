//! The plan itself: arrivals and departures matched one to one, in a queue for each disk.
//!
//! Made and followed by [reverse aggressive](crate::hinted::policy::reverse_aggressive). Arrivals
//! in the order they are needed get the departures in the order they are released; a block whose
//! arrival comes up before its own departure stays instead:
//!
//! ```text
//! arrivals by place needed      B1   B2   B3 ..      each pair has released <= needed
//! departures by release         X1   X2   X3 ..
//! ```
//!
//! If a block to be fetched is still cached when its turn comes, as an earlier pair of another
//! disk has yet to evict it, it is left there, and the earlier pair takes the later one's victim.
//!
//! Which pair is started when, and what to do where the plan has nothing, is the policy's.

use alloc::vec::Vec;
use core::iter::repeat_n;

use super::Model;
use super::pass::pass;
use super::swaps::{Departure, Swaps};
use crate::hinted::board::Board;
use crate::hinted::protocol::{BlockNo, Position};
use crate::units::DeviceId;

/// No pair, or no block: neither has this number.
const NONE: u32 = u32::MAX;

/// The pairs by the place they are needed at, and for each disk the first that is still to be done
/// and fetches from it.
#[derive(Debug, Default)]
pub(in crate::hinted) struct Plan {
    pairs: Vec<Planned>,
    heads: Vec<u32>,
}

/// A fetch and the eviction that makes room for it.
#[derive(Clone, Copy, Debug)]
pub(in crate::hinted) struct Planned {
    /// The place whose block is fetched, for its use there.
    pub(in crate::hinted) needed: u32,
    /// The first cursor at which the victim may go.
    pub(in crate::hinted) released: u32,
    /// The victim, or [`NONE`] for an empty frame.
    evict: u32,
    /// The pair that evicts the block to be fetched, if one does.
    after: u32,
    /// The next pair that fetches from the same disk.
    next: u32,
}

// A plan holds one for every fetch to come: what can be read off the board is not in it.
const _: () = assert!(size_of::<Planned>() == 20);

impl Planned {
    /// The victim; `None` for an empty frame.
    pub(in crate::hinted) fn victim(&self) -> Option<BlockNo> {
        (self.evict != NONE).then_some(BlockNo(self.evict))
    }
}

impl Plan {
    /// A plan for the references from the cursor on.
    pub(in crate::hinted) fn of(board: &Board, model: Model) -> Self {
        let pairs = matched(board, pass(board, model));
        Self::queued(board, pairs)
    }

    fn queued(board: &Board, pairs: Vec<Planned>) -> Self {
        let heads = board.disks().map(|_| NONE).collect();
        let mut plan = Self { pairs, heads };
        for number in (0..plan.pairs.len() as u32).rev() {
            let disk = plan.disk_of(number, board);
            if let Some(head) = plan.heads.get_mut(usize::from(disk.0)) {
                plan.pairs[number as usize].next = core::mem::replace(head, number);
            }
        }
        plan
    }

    /// A pair by its number.
    pub(in crate::hinted) fn pair(&self, number: u32) -> Option<Planned> {
        self.pairs.get(number as usize).copied()
    }

    /// The first pair of a disk's queue that is still to be done.
    pub(in crate::hinted) fn front(&mut self, disk: DeviceId, board: &Board) -> Option<u32> {
        loop {
            let number = *self.heads.get(usize::from(disk.0))?;
            let pair = self.pair(number)?;
            let block = board.block_at(Position(pair.needed))?;
            let is_absent = !board.is_resident(block) && !board.is_in_flight(block);
            if is_absent && board.next_use(block).0 <= pair.needed {
                return Some(number);
            }
            if !is_absent && !self.leave_in_cache(pair, board) {
                return None;
            }
            self.drop_front(disk);
        }
    }

    /// A block to be fetched is still there: who was to evict it takes this pair's victim, once
    /// that is released. False until then.
    fn leave_in_cache(&mut self, pair: Planned, board: &Board) -> bool {
        if self.is_done(pair.after, board) {
            return true;
        }
        if pair.released > board.here().0 {
            return false;
        }
        let earlier = &mut self.pairs[pair.after as usize];
        (earlier.evict, earlier.released) = (pair.evict, pair.released);
        true
    }

    /// Whether a pair is not to be done any more, or is none: queues are in the order of numbers.
    fn is_done(&self, number: u32, board: &Board) -> bool {
        let disk = usize::from(self.disk_of(number, board).0);
        number == NONE || self.heads.get(disk).is_none_or(|head| number < *head)
    }

    /// The first pair of a disk's queue is done, or needs not be.
    pub(in crate::hinted) fn drop_front(&mut self, disk: DeviceId) {
        let Some(head) = self.heads.get_mut(usize::from(disk.0)) else {
            return;
        };
        *head = self.pairs.get(*head as usize).map_or(NONE, |p| p.next);
    }

    /// The disk that a pair fetches from.
    fn disk_of(&self, number: u32, board: &Board) -> DeviceId {
        let place = self.pair(number).map(|pair| Position(pair.needed));
        let block = place.and_then(|place| board.block_at(place));
        block.and_then(|b| board.disk_of(b)).unwrap_or_default()
    }
}

/// Arrivals and departures one to one in their orders. What would arrive before it departs does
/// neither.
fn matched(board: &Board, mut swaps: Swaps) -> Vec<Planned> {
    let mut pairs: Vec<Planned> = Vec::with_capacity(swaps.arrivals_count());
    // By block, the last pair that evicts it.
    let mut evicting: Vec<u32> = repeat_n(NONE, board.blocks() as usize).collect();
    while let Some(needed) = swaps.arrive() {
        let mut after = NONE;
        if let Some(released) = swaps.released_before(needed) {
            let block = board.block_at(Position(needed)).unwrap_or_default();
            after = evicting[block.0 as usize];
            let evicts = pairs.get(after as usize);
            if evicts.is_none_or(|pair| pair.released != released) {
                swaps.call_off_before(needed);
                continue;
            }
        }
        let departure = swaps.depart(board);
        let evict = departure.and_then(|departure| departure.block);
        if let Some(evict) = evict {
            evicting[evict as usize] = pairs.len() as u32;
        }
        pairs.push(Planned {
            needed,
            released: departure.map_or(0, |Departure { released, .. }| released),
            evict: evict.unwrap_or(NONE),
            after,
            next: NONE,
        });
    }
    pairs
}
