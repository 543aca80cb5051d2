//! Furthest: the approximated optimum, where owners announce what they read.
//!
//! The best victim is the block used furthest in the future, above all one that is never used.
//! Announcements tell which blocks a program will read; the time, beside other programs, stays
//! unknown. So Li and Shen 2005, section 4.2, approximate the optimum in two steps:
//!
//! 1. blocks that their owners will never read, the oldest first;
//! 2. of the rest the last block of the stream whose owner has computed most since its last access,
//!    as [`coldest_cpu`](super::coldest_cpu).
//!
//! Example: a program announces blocks 0 to 99, and a window fetches 96 to 127 for it. Blocks 100
//! to 127 are the next victims, before anything that others have ahead.
//!
//! Hints are believed as far as they prove right (`prefetch_cache/announced.rs`): of an owner that announced
//! nothing, or reads blocks it did not announce, no block is known to be of no use, and its streams
//! stand where Coldest+ has them. Without any hints this is `coldest-cpu`, and without CPU times
//! `coldest`. Where a policy follows hints ([`forerun_core::hinted::policy`]), that one gets them, and
//! this method gets none.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;

use forerun_core::reclaim::Reclaim;
use forerun_core::spec::{Knows, Method, Spec};

use super::coldest_cpu::cpu_time;
use crate::prefetch_cache::{self, PrefetchStream, Rank, Rules};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "furthest",
        summary: "blocks fetched ahead apart: those that their owners never read go first, as hints say; \
                  the rest as coldest-cpu",
        source: "Li and Shen 2005 section 4.2, the approximated optimum",
        unfit: "programs that announce nothing: the same as coldest-cpu",
        knows: Knows::Hinted,
        params: Rules::PARAMS,
    },
    build: |values| prefetch_cache::ranked(Furthest, Rules::of(values)),
};

#[derive(Debug)]
pub(crate) struct Furthest;

impl Rank for Furthest {
    fn rank(&self, stream: &PrefetchStream) -> u64 {
        cpu_time(stream)
    }

    fn uses_cpu_time(&self) -> bool {
        true
    }

    fn uses_hints(&self) -> bool {
        true
    }
}
