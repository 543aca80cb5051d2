//! Partitioned memory: a prefetch cache in some order beside an ordinary cache.
//!
//! Methods with a prefetch cache (Li and Shen 2005, section 3) differ in one thing, the order in which
//! unread blocks go. The rest stands here once. A frame is needed:
//!
//! 1. blocks that no stream has any more go first, without the method (`memory/prefetched.rs`);
//! 2. while the prefetch cache is above its [part](crate::split) of the memory, its first block in the order;
//! 3. else the ordinary cache, a two-list LRU;
//! 4. if that has nothing to give, the prefetch cache again.
//!
//! Example: 400 blocks, a part of 100. Of 110 unread blocks 10 go; then blocks that were read go.

use alloc::boxed::Box;

use crate::reclaim::lru::TwoList;
use crate::reclaim::{Cache, PrefetchOrder, PrefetchStream, Reclaim, Victim};
use crate::table::Frame;

/// The rank of a stream; the highest one loses its last block.
pub(crate) type Rank = fn(&PrefetchStream) -> u64;

#[derive(Debug)]
struct Partitioned {
    /// None: unread blocks go in the order of their arrival.
    rank: Option<Rank>,
    uses_cpu_time: bool,
    ordinary: TwoList,
}

/// The method that takes the last block of the stream of the highest rank.
pub(crate) fn ranked(rank: Rank) -> Box<dyn Reclaim> {
    build(Some(rank), false)
}

/// The same with ranks that depend on the time that owners compute.
pub(crate) fn ranked_by_cpu_time(rank: Rank) -> Box<dyn Reclaim> {
    build(Some(rank), true)
}

/// The method that takes the block that arrived first.
pub(crate) fn by_arrival() -> Box<dyn Reclaim> {
    build(None, false)
}

fn build(rank: Option<Rank>, uses_cpu_time: bool) -> Box<dyn Reclaim> {
    Box::new(Partitioned {
        rank,
        uses_cpu_time,
        ordinary: TwoList::default(),
    })
}

impl Partitioned {
    fn of_prefetch_cache(&self, cache: &mut Cache<'_>) -> Option<Victim> {
        match self.rank {
            Some(_) => cache.highest().map(Victim::Last),
            None => cache.take_oldest().map(Victim::Frame),
        }
    }
}

impl Reclaim for Partitioned {
    fn prefetch_order(&self) -> Option<PrefetchOrder> {
        Some(match self.rank {
            Some(_) => PrefetchOrder::Ranked,
            None => PrefetchOrder::Arrival,
        })
    }

    fn rank(&self, stream: &PrefetchStream) -> u64 {
        self.rank.map_or(0, |rank| rank(stream))
    }

    fn uses_cpu_time(&self) -> bool {
        self.uses_cpu_time
    }

    fn inserted(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        self.ordinary.inserted(cache, frame);
    }

    fn touched(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        self.ordinary.touched(cache, frame);
    }

    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        if cache.prefetched.blocks > cache.prefetched.target
            && let Some(victim) = self.of_prefetch_cache(cache)
        {
            return Some(victim);
        }
        let ordinary = self.ordinary.victim(cache);
        ordinary.or_else(|| self.of_prefetch_cache(cache))
    }

    fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
        self.ordinary.sweep(cache, gone);
    }

    fn len(&self) -> u32 {
        self.ordinary.len()
    }
}
