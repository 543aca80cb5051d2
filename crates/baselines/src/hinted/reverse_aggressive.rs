//! Reverse aggressive: a plan for the whole order, made backwards, in which disks share the work.
//!
//! The plan (`reverse.rs`) pairs the blocks to fetch, by the use each is fetched for,
//! with those to evict. A free disk gets a batch of the soonest pairs that fetch from it and whose
//! victim is *released*: the cursor has passed its last use.
//!
//! Elapsed time in the unit model is at most 1 + F d/K times the optimum's (Kimbrel et al. 1996,
//! Theorem 2). The plan reckons with one fetch time; the paper picks the best for each trace and
//! array, so it is a parameter. It may do harm, by design: evicting a block that is used before the
//! one fetched is how it moves load between disks. When more hints arrive the plan is made anew.
//! An event that the plan does not know of (a fetch that failed, a reference passed over) falls
//! back on demand fetching.

use alloc::boxed::Box;

use crate::reverse::{Model, Plan, Planned};
use forerun_core::DeviceId;
use forerun_core::hinted::batch::{Batches, table_6};
use forerun_core::hinted::policy::{BATCH, Policy};
use forerun_core::hinted::{BlockNo, Position};
use forerun_core::hinted::{Board, Pair};
use forerun_core::spec::{Knows, Method, Param, Spec};

pub(crate) const METHOD: Method<Box<dyn Policy>> = Method {
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
            fetch_time: values.get("fetch_percent"),
            batches: Batches::of(values.get("batch_blocks") as u32),
            reverse_batch: values.get("reverse_batch_blocks") as u32,
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
        // The old plan goes first: two at once would be the most that is ever held.
        self.plan = Plan::default();
        self.plan = Plan::of(board, model);
    }

    /// The soonest pair that a free disk can start: by number, with its disk.
    fn soonest(&mut self, board: &Board) -> Option<(u32, DeviceId)> {
        let mut soonest: Option<(u32, DeviceId)> = None;
        for disk in board.disks().filter(|disk| self.batches.has_room(*disk)) {
            let front = self.plan.front(disk, board);
            let front = front.filter(|number| self.is_released(*number, board));
            if let Some(number) = front.filter(|n| soonest.is_none_or(|(least, _)| *n < least)) {
                soonest = Some((number, disk));
            }
        }
        soonest
    }

    /// Whether the cursor has passed the last use of a pair's victim.
    fn is_released(&self, number: u32, board: &Board) -> bool {
        let pair = self.plan.pair(number);
        pair.is_some_and(|pair| pair.released <= board.here().0)
    }

    /// The planned victim, or if it is not to be had any more, another that does no harm.
    fn room(board: &Board, planned: &Planned) -> Option<Option<BlockNo>> {
        match planned.victim() {
            None if board.empty_frames() > 0 => Some(None),
            Some(victim) if board.may_go(victim) && board.next_use(victim) > board.cursor() => {
                Some(Some(victim))
            }
            _ => board.harmless_room(Position(planned.needed)),
        }
    }

    /// The soonest pair that can be started, which is then done.
    fn planned(&mut self, board: &Board) -> Option<Pair> {
        let (number, disk) = self.soonest(board)?;
        let planned = self.plan.pair(number)?;
        let pair = Pair {
            fetch: planned.fetch,
            evict: Self::room(board, &planned)?,
        };
        self.plan.drop_front(disk);
        self.batches.spend(disk);
        Some(pair)
    }

    /// Demand that the plan does not cover: the block the reader waits for, on a disk with no work.
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
        self.planned(board).or_else(|| self.demand(board))
    }
}
