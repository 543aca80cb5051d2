//! Coldest: the last block of the stream not accessed for longest goes first.
//!
//! A stream that its reader has not come to for long is not likely to be accessed soon, and may
//! never be: a request that ended early, a client that stalls. Li and Shen 2005, section 3.1,
//! heuristic 3 by wall clock. The age is that of the stream's last access, not of the block's
//! arrival. The rest is that of every [`prefetch_cache`].
//!
//! Example: streams accessed last at 10, 30 and 20 ms. The first gives up its blocks from the last
//! one to the next one it would come to, then the third.
//!
//! A reader that waits for the disk looks as cold as one that has stopped.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;

use forerun_core::reclaim::Reclaim;
use forerun_core::spec::{Knows, Method, Spec};

use crate::prefetch_cache::{self, PrefetchStream, Rank, Rules};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "coldest",
        summary: "blocks fetched ahead apart: the last block of the stream not accessed for longest \
                  goes first",
        source: "Li and Shen 2005 section 3.1 (PC-Coldest)",
        unfit: "readers that wait for a busy disk: they look like readers that have stopped",
        knows: Knows::Online,
        params: Rules::PARAMS,
    },
    build: |values| prefetch_cache::ranked(Coldest, Rules::of(values)),
};

#[derive(Debug)]
pub(crate) struct Coldest;

impl Rank for Coldest {
    /// The order of ages, which does not change while time passes.
    fn rank(&self, stream: &PrefetchStream) -> u64 {
        u64::MAX - stream.used.0
    }
}
