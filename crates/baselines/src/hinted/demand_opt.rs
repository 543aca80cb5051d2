//! Demand fetching with optimal replacement: nothing ahead of time, but the best victims.
//!
//! Fetches the block that the reader waits for and gives up the block used furthest in the future
//! (Belady's rule). No method that fetches each block for a reference of its own makes fewer
//! fetches, so this is the floor for disk load, and the best stall time that a cache alone can
//! reach.

use alloc::boxed::Box;

use forerun_core::hinted::policy::Policy;
use forerun_core::hinted::{Board, Pair};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Policy>> = Method {
    spec: Spec {
        name: "demand-opt",
        summary: "fetch on a miss, give up the block used furthest in the future",
        source: "kimbrel96 section 4.1",
        unfit: "anything that waits for disks",
        knows: Knows::Clairvoyant,
        params: &[],
    },
    build: |_| Box::new(DemandOpt),
};

#[derive(Debug)]
struct DemandOpt;

impl Policy for DemandOpt {
    fn next(&mut self, board: &Board) -> Option<Pair> {
        board.harmless_pair(board.awaited()?)
    }
}
