//! Coldest by CPU time: the last block of the stream whose owner has computed most since its last
//! access.
//!
//! By wall clock a reader that waits for the disk looks as cold as one that has stopped, and on a
//! busy disk most readers wait ([`coldest`](super::coldest)). The processor time of its program
//! since the last access tells the two apart: a program that has not run had no chance to access
//! the stream. Coldest+ of Li and Shen 2005, section 3.1. The rest is that of every [`prefetch_cache`].
//!
//! Example: A and B were accessed 300 ms ago. A's program has computed for 2 ms since and waited,
//! B's for 250 ms. B gives up its last block.
//!
//! The driver tells the time ([`Input::CpuTime`](forerun_core::Input::CpuTime)). Streams whose owners have
//! not computed, or were never told of, go last, the oldest by wall clock first; so without a
//! driver that tells this is `coldest`.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;

use forerun_core::reclaim::Reclaim;
use forerun_core::spec::{Knows, Method, Spec};

use crate::prefetch_cache::{self, PrefetchStream, Rank, Rules};

/// CPU time counts in units of 2^16 ns (66 us, less than a timer tick) ..
const CPU_SHIFT: u32 = 16;
/// .. up to 2^20 of them, 68 s; a stream left for longer is as cold as one can be.
const CPU_BITS: u32 = 20;
/// Below it stands the last access by wall clock, in units of 2^10 ns: enough for 200 days.
const WALL_SHIFT: u32 = 10;
const WALL_BITS: u32 = u64::BITS - CPU_BITS;

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "coldest-cpu",
        summary: "blocks fetched ahead apart: the last block of the stream whose owner has computed \
                  most since its last access goes first",
        source: "Li and Shen 2005 section 3.1 (PC-Coldest+)",
        unfit: "drivers that tell no CPU time: the same as coldest",
        knows: Knows::Online,
        params: Rules::PARAMS,
    },
    build: |values| prefetch_cache::ranked(ColdestCpu, Rules::of(values)),
};

#[derive(Debug)]
pub(crate) struct ColdestCpu;

impl Rank for ColdestCpu {
    fn rank(&self, stream: &PrefetchStream) -> u64 {
        cpu_time(stream)
    }

    fn uses_cpu_time(&self) -> bool {
        true
    }
}

/// The time that an owner has computed since its last access, then that access.
pub(super) fn cpu_time(stream: &PrefetchStream) -> u64 {
    let cpu = (stream.cpu.0 >> CPU_SHIFT).min((1 << CPU_BITS) - 1);
    let wall_max = (1 << WALL_BITS) - 1;
    let wall = (stream.used.0 >> WALL_SHIFT).min(wall_max);
    cpu << WALL_BITS | (wall_max - wall)
}
