//! Reverse aggressive: a plan for the whole order, made backwards, in which disks share the work.
//!
//! A pass over the reversed order finds which blocks to fetch for which use, and which to
//! evict after which use. Both lists are sorted and matched one to one; a block whose fetch comes
//! up before its own eviction stays instead. A free disk then gets a batch of the soonest pairs
//! that fetch from it and whose victim is *released*: the cursor has passed its last use.
//!
//! ```text
//! arrivals by place needed      B1   B2   B3 ..      each pair has released <= needed
//! departures by release         X1   X2   X3 ..
//! ```
//!
//! If the victim's fetch partner turns up while an earlier pair has yet to evict it (their disks
//! differ), it is left in the cache, and the earlier pair takes the later one's victim.
//!
//! Elapsed time in the unit model is at most 1 + F d/K times the optimum's (kimbrel96 Theorem 2).
//! The plan reckons with one fetch time; the paper picks the best for each trace and array, so it
//! is a parameter. It may do harm, by design: evicting a block that is used before the one
//! fetched is how it moves load between disks. When more hints arrive the plan is made anew.
//! What the plan does not know of (a fetch that failed, a reference passed over) falls back on
//! demand fetching.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{BATCH, Board, Pair, Policy};
use crate::hinted::batch::{Batches, table_6};
use crate::hinted::protocol::{BlockNo, Position};
use crate::hinted::reverse::{self, Arrival, Departure, Model, Swaps};
use crate::spec::{Knows, Method, Param, Spec};
use crate::units::DeviceId;

pub(super) const METHOD: Method<Box<dyn Policy>> = Method {
    spec: Spec {
        name: "reverse-aggressive",
        summary: "a plan for the whole order, made backwards so that the disks share the load",
        source: "kimbrel96 sections 2.5 and 2.7",
        unfit: "compute times in bursts: the plan reckons with one fetch time throughout",
        knows: Knows::Clairvoyant,
        params: &[
            Param {
                name: "fetch_percent",
                summary: "F, fetch time over compute time, that the plan reckons with; smaller \
                          is bolder. 400 is a sequential disk under a reader of 1 ms a block; \
                          the paper takes the best value for each trace",
                default: 400,
                min: 1,
                max: 1_000_000,
            },
            BATCH,
            Param {
                name: "reverse_batch_blocks",
                summary: "most evictions a disk gets at once in the backward pass; 0 as Table 6",
                default: 0,
                min: 0,
                max: 1 << 16,
            },
        ],
    },
    build: |values| {
        Box::new(ReverseAggressive {
            fetch_time: values[0],
            batches: Batches::of(values[1] as u32),
            reverse_batch: values[2] as u32,
            outdated: false,
            plan: Plan::default(),
        })
    },
};

#[derive(Debug)]
struct ReverseAggressive {
    fetch_time: u64,
    batches: Batches,
    reverse_batch: u32,
    /// Hints arrived that the plan does not cover.
    outdated: bool,
    plan: Plan,
}

/// The pairs, and for each disk the numbers of those that fetch from it, soonest first.
#[derive(Debug, Default)]
struct Plan {
    pairs: Vec<Planned>,
    queues: Vec<VecDeque<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct Planned {
    fetch: u32,
    needed: u32,
    evict: Option<u32>,
    released: u32,
    /// The pair that evicts the block to be fetched, if one does.
    after: Option<u32>,
    done: bool,
}

impl Plan {
    fn make(board: &Board, swaps: &Swaps) -> Self {
        let pairs = matched(swaps);
        let mut queues: Vec<VecDeque<u32>> = board.disks().map(|_| VecDeque::new()).collect();
        for (number, pair) in (0..).zip(&pairs) {
            let disk = board.disk_of(BlockNo(pair.fetch)).unwrap_or_default();
            if let Some(queue) = queues.get_mut(usize::from(disk.0)) {
                queue.push_back(number);
            }
        }
        Self { pairs, queues }
    }

    /// The first pair of a disk's queue that is still to be done.
    fn front(&mut self, disk: DeviceId, board: &Board) -> Option<u32> {
        loop {
            let number = *self.queues.get(usize::from(disk.0))?.front()?;
            let pair = self.pairs[number as usize];
            let block = BlockNo(pair.fetch);
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

    /// A block to be fetched is still there: who was to evict it takes this pair's victim, once
    /// that is released. False until then.
    fn leave_in_cache(&mut self, pair: Planned, cursor: Position) -> bool {
        let earlier = pair.after.and_then(|a| self.pairs.get_mut(a as usize));
        let Some(earlier) = earlier.filter(|earlier| !earlier.done) else {
            return true;
        };
        if pair.released > cursor.0 {
            return false;
        }
        (earlier.evict, earlier.released) = (pair.evict, pair.released);
        true
    }

    fn drop_front(&mut self, disk: DeviceId) {
        let queue = self.queues.get_mut(usize::from(disk.0));
        if let Some(number) = queue.and_then(VecDeque::pop_front) {
            self.pairs[number as usize].done = true;
        }
    }
}

/// Arrivals and departures one to one in their orders. What would arrive before it departs does
/// neither.
fn matched(swaps: &Swaps) -> Vec<Planned> {
    let departures = swaps.departures();
    // By the number of a departure: the pair it became part of, or that it is called off.
    let most = departures
        .iter()
        .map(|(number, _)| *number as usize + 1)
        .max();
    let mut fate: Vec<Fate> = (0..most.unwrap_or(0)).map(|_| Fate::Open).collect();
    let mut rest = departures.into_iter();
    let mut pairs: Vec<Planned> = Vec::new();
    for Arrival {
        block,
        needed,
        departed,
    } in swaps.arrivals()
    {
        let own = departed.and_then(|number| fate.get_mut(number as usize));
        let after = match own {
            Some(fate @ Fate::Open) => {
                *fate = Fate::CalledOff;
                continue;
            }
            Some(Fate::Pair(number)) => Some(*number),
            _ => None,
        };
        let open = rest.find(|(number, _)| fate[*number as usize] == Fate::Open);
        let (evict, released) = open.map_or(
            (None, 0),
            |(
                number,
                Departure {
                    block, released, ..
                },
            )| {
                fate[number as usize] = Fate::Pair(pairs.len() as u32);
                (block, released)
            },
        );
        pairs.push(Planned {
            fetch: block,
            needed,
            evict,
            released,
            after,
            done: false,
        });
    }
    pairs
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Open,
    Pair(u32),
    CalledOff,
}

impl ReverseAggressive {
    fn plan_anew(&mut self, board: &Board) {
        let batch = match self.reverse_batch {
            0 => table_6(board.disk_count()),
            size => size,
        };
        let model = Model {
            fetch_time: self.fetch_time,
            batch,
        };
        self.plan = Plan::make(board, &reverse::pass(board, model));
    }

    /// The soonest pair that a free disk can start: by number, with its disk.
    fn soonest(&mut self, board: &Board) -> Option<(u32, DeviceId)> {
        let mut soonest: Option<(u32, DeviceId)> = None;
        for disk in board.disks().filter(|disk| self.batches.has_room(*disk)) {
            let front = self.plan.front(disk, board);
            let front = front.filter(|n| self.plan.pairs[*n as usize].released <= board.here().0);
            if let Some(number) = front.filter(|n| soonest.is_none_or(|(least, _)| *n < least)) {
                soonest = Some((number, disk));
            }
        }
        soonest
    }

    /// The planned victim, or if it is not to be had any more, another that does no harm.
    fn room(board: &Board, planned: &Planned) -> Option<Option<BlockNo>> {
        match planned.evict.map(BlockNo) {
            None if board.empty_frames() > 0 => Some(None),
            Some(victim) if board.may_go(victim) && board.next_use(victim) > board.cursor() => {
                Some(Some(victim))
            }
            _ => board.harmless_room(Position(planned.needed)),
        }
    }

    /// What the plan has nothing for: the block the reader waits for, on a disk with no work.
    fn demand(&self, board: &Board) -> Option<Pair> {
        let position = board.awaited()?;
        let disk = board.disk_of(board.block_at(position)?)?;
        let idle = board.in_flight(disk) == 0;
        board.harmless_pair(position).filter(|_| idle)
    }
}

impl Policy for ReverseAggressive {
    fn hinted(&mut self) {
        self.outdated = true;
    }

    fn begin(&mut self, board: &Board) {
        if core::mem::take(&mut self.outdated) {
            self.plan_anew(board);
        }
        self.batches.open(board);
    }

    fn next(&mut self, board: &Board) -> Option<Pair> {
        let Some((number, disk)) = self.soonest(board) else {
            return self.demand(board);
        };
        let planned = self.plan.pairs[number as usize];
        let Some(evict) = Self::room(board, &planned) else {
            return self.demand(board);
        };
        self.plan.drop_front(disk);
        self.batches.spend(disk);
        Some(Pair {
            fetch: BlockNo(planned.fetch),
            evict,
        })
    }
}
