//! Longest: the last block of the longest stream goes first.
//!
//! Many readers, each sequential, in little memory: an order by access history gives up the blocks
//! that arrived first, and these are the ones that their readers come to next. Li and Shen 2005,
//! section 3.1, take the block that is used furthest in the future, and the last block of the
//! longest stream is a guess at it that needs no hints. The rest is that of every
//! [`prefetch_cache`].
//!
//! Example: a part of 100 blocks, streams of 60 and 50. The first gives up its blocks 59 to 50,
//! and both have 50.
//!
//! A block in flight cannot be given up; the last one that has arrived goes instead of it, so the
//! length of a stream counts the blocks that have arrived.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;

use forerun_core::reclaim::Reclaim;
use forerun_core::spec::{Knows, Method, Spec};

use crate::prefetch_cache::{self, PrefetchStream, Rank, Rules};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "longest",
        summary: "blocks fetched ahead apart: the last block of the longest stream goes first",
        source: "Li and Shen 2005 section 3.1 (PC-Longest)",
        unfit: "one long stream among idle ones: the idle ones keep their blocks",
        knows: Knows::Online,
        params: Rules::PARAMS,
    },
    build: |values| prefetch_cache::ranked(Longest, Rules::of(values)),
};

#[derive(Debug)]
pub(crate) struct Longest;

impl Rank for Longest {
    fn rank(&self, stream: &PrefetchStream) -> u64 {
        stream.blocks.into()
    }
}
