//! Aggressive: a disk that is free fetches, as long as that does no harm.
//!
//! Whenever a disk is free, it gets a batch of its missing blocks, soonest first, each in place
//! of the block used furthest in the future, until that one is used before the block it would
//! make room for. No disk idles that could do something, so it is hard to beat where disks are
//! the bottleneck; where they are not, early fetches mean early and hence worse evictions, each
//! paid for with driver time.
//!
//! Elapsed time in the unit model is at most d (1 + F/K) times the optimum's (Kimbrel et al. 1996,
//! Theorem 1), and on one disk at most 1 + F/K times (Cao et al. 1995).

use alloc::boxed::Box;

use forerun_core::hinted::batch::Batches;
use forerun_core::hinted::policy::{BATCH, Policy};
use forerun_core::hinted::{Board, Pair};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Policy>> = Method {
    spec: Spec {
        name: "aggressive",
        summary: "keep every free disk fetching, as long as that does no harm",
        source: "kimbrel96 sections 2.4 and 2.7",
        unfit: "disks faster than the reader: driver time for fetches that gain nothing",
        knows: Knows::Hinted,
        params: &[BATCH],
    },
    build: |values| {
        Box::new(Aggressive {
            batches: Batches::of(values.get("batch_blocks") as u32),
        })
    },
};

#[derive(Debug)]
struct Aggressive {
    batches: Batches,
}

impl Policy for Aggressive {
    fn begin(&mut self, board: &Board) {
        self.batches.open(board);
    }

    fn next(&mut self, board: &Board) -> Option<Pair> {
        let pair = board.harmless_pair(self.batches.soonest(board)?)?;
        self.batches.spend(board.disk_of(pair.fetch)?);
        Some(pair)
    }
}
