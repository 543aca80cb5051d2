//! Coldest by CPU time: the last block of the stream whose owner has computed most since its last
//! access.
//!
//! By wall clock a reader that waits for the disk looks as cold as one that has stopped, and on a
//! busy disk most readers wait ([`coldest`](super::coldest)). The processor time of its program
//! since the last access tells the two apart: a program that has not run had no chance to access
//! the stream. Coldest+ of Li and Shen 2005, section 3.1. The rest is that of every [`partitioned`]
//! memory.
//!
//! Example: A and B were accessed 300 ms ago. A's program has computed for 2 ms since and waited,
//! B's for 250 ms. B gives up its last block.
//!
//! The driver tells the time ([`Input::CpuTime`](forerun_core::Input::CpuTime)). Streams whose owners have
//! not computed, or were never told of, go last, the oldest by wall clock first; so without a
//! driver that tells this is `coldest`.

use alloc::boxed::Box;

use forerun_core::partitioned;
use forerun_core::reclaim::Reclaim;
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "coldest-cpu",
        summary: "blocks fetched ahead apart: the last block of the stream whose owner has computed \
                  most since its last access goes first",
        source: "Li and Shen 2005 section 3.1 (PC-Coldest+)",
        unfit: "drivers that tell no CPU time: the same as coldest",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| partitioned::ranked_by_cpu_time(),
};
