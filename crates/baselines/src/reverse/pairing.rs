//! The plan itself: arrivals and departures matched one to one, in a queue for each disk.
//!
//! Made and followed by [reverse aggressive](crate::hinted::reverse_aggressive). Arrivals
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
//! Which pair is started when, and the action where the plan has nothing, is the policy's.

use alloc::vec::Vec;
use core::iter::repeat_n;

use super::Model;
use super::pass::pass;
use super::swaps::{Departure, Swaps};
use forerun_core::DeviceId;
use forerun_core::hinted::board::Board;
use forerun_core::hinted::{BlockNo, Position};

/// No pair, or no block: neither has this number.
const NONE: u32 = u32::MAX;

/// Effect of a pair that has left its queue.
const DONE: u32 = NONE - 1;

/// The pairs by the place they are needed at, and for each disk the first that is still to be done
/// and fetches from it.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pairs: Vec<Planned>,
    heads: Vec<u32>,
}

/// A fetch and the eviction that makes room for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    /// The block to fetch. The board has it at `needed`, but free disks ask for it all the time.
    pub(crate) fetch: BlockNo,
    /// The place of the use it is fetched for.
    pub(crate) needed: u32,
    /// The first cursor at which the victim may go.
    pub(crate) released: u32,
    /// The victim, or [`NONE`] for an empty frame.
    evict: u32,
    /// The pair that evicts the block to be fetched, if one does.
    after: u32,
    /// The next pair that fetches from the same disk, [`NONE`], or [`DONE`] once this one is not
    /// to be done any more.
    next: u32,
}

// A plan holds one for every fetch to come.
const _: () = assert!(size_of::<Planned>() == 24);

impl Planned {
    /// The victim; `None` for an empty frame.
    pub(crate) fn victim(&self) -> Option<BlockNo> {
        (self.evict != NONE).then_some(BlockNo(self.evict))
    }
}

impl Plan {
    /// A plan for the references from the cursor on.
    pub(crate) fn of(board: &Board, model: Model) -> Self {
        let pairs = matched(board, pass(board, model));
        Self::queued(board, pairs)
    }

    fn queued(board: &Board, pairs: Vec<Planned>) -> Self {
        let heads = board.disks().map(|_| NONE).collect();
        let mut plan = Self { pairs, heads };
        for number in (0..plan.pairs.len() as u32).rev() {
            let pair = &mut plan.pairs[number as usize];
            let disk = board.disk_of(pair.fetch).unwrap_or_default();
            if let Some(head) = plan.heads.get_mut(usize::from(disk.0)) {
                pair.next = core::mem::replace(head, number);
            }
        }
        plan
    }

    /// A pair by its number.
    pub(crate) fn pair(&self, number: u32) -> Option<Planned> {
        self.pairs.get(number as usize).copied()
    }

    /// The first pair of a disk's queue that is still to be done.
    pub(crate) fn front(&mut self, disk: DeviceId, board: &Board) -> Option<u32> {
        loop {
            let number = *self.heads.get(usize::from(disk.0))?;
            let pair = self.pair(number)?;
            let block = pair.fetch;
            let is_absent = !board.is_resident(block) && !board.is_in_flight(block);
            if is_absent && board.next_use(block).0 <= pair.needed {
                return Some(number);
            }
            if !is_absent && !self.leave_in_cache(pair, board.here()) {
                return None;
            }
            self.drop_front(disk);
        }
    }

    /// A block to be fetched is still there: the pair that was to evict it takes this pair's
    /// victim, once that is released. False until then.
    fn leave_in_cache(&mut self, pair: Planned, cursor: Position) -> bool {
        let earlier = self.pairs.get_mut(pair.after as usize);
        let Some(earlier) = earlier.filter(|earlier| earlier.next != DONE) else {
            return true;
        };
        if pair.released > cursor.0 {
            return false;
        }
        (earlier.evict, earlier.released) = (pair.evict, pair.released);
        true
    }

    /// The first pair of a disk's queue is done, or needs not be.
    pub(crate) fn drop_front(&mut self, disk: DeviceId) {
        if let Some(head) = self.heads.get_mut(usize::from(disk.0))
            && let Some(pair) = self.pairs.get_mut(*head as usize)
        {
            *head = core::mem::replace(&mut pair.next, DONE);
        }
    }
}

/// Arrivals and departures one to one in their orders. A block that would arrive before it departs
/// does neither.
fn matched(board: &Board, mut swaps: Swaps) -> Vec<Planned> {
    let mut pairs: Vec<Planned> = Vec::with_capacity(swaps.arrivals_count());
    // By block, the last pair that evicts it.
    let mut evicting: Vec<u32> = repeat_n(NONE, board.blocks() as usize).collect();
    while let Some(needed) = swaps.arrive() {
        let fetch = board.block_at(Position(needed)).unwrap_or_default();
        let mut after = NONE;
        if let Some(released) = swaps.released_before(needed) {
            after = evicting[fetch.0 as usize];
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
            fetch,
            needed,
            released: departure.map_or(0, |Departure { released, .. }| released),
            evict: evict.unwrap_or(NONE),
            after,
            next: NONE,
        });
    }
    pairs
}
