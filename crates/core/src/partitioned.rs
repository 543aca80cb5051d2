//! Partitioned memory: a prefetch cache in some order beside an ordinary cache.
//!
//! Methods with a prefetch cache (Li and Shen 2005, section 3) differ in one thing, the order in
//! which unread blocks go. The rest stands here once. A frame is needed:
//!
//! 1. blocks that no stream has any more go first, without the method (`memory/prefetched.rs`);
//! 2. while the prefetch cache is above its [part](crate::split) of the memory, its first block in
//!    the order;
//! 3. else the ordinary cache, a two-list LRU;
//! 4. if that has nothing to give, the prefetch cache again.
//!
//! Example: 400 blocks, a part of 100. Of 110 unread blocks 10 go; then blocks that were read go.

use alloc::boxed::Box;

use crate::reclaim::lru::TwoList;
use crate::reclaim::{Cache, PrefetchOrder, PrefetchStream, Reclaim, Victim};
use crate::table::Frame;

/// CPU time counts in units of 2^16 ns (66 us, less than a timer tick) ..
const CPU_SHIFT: u32 = 16;
/// .. up to 2^20 of them, 68 s; a stream left for longer is as cold as one can be.
const CPU_BITS: u32 = 20;
/// Below it stands the last access by wall clock, in units of 2^10 ns: enough for 200 days.
const WALL_SHIFT: u32 = 10;
const WALL_BITS: u32 = u64::BITS - CPU_BITS;

/// The rank of a stream; the highest one loses its last block.
pub type Rank = fn(&PrefetchStream) -> u64;

#[derive(Debug)]
struct Partitioned {
    /// None: unread blocks go in the order of their arrival.
    rank: Option<Rank>,
    uses_cpu_time: bool,
    uses_hints: bool,
    ordinary: TwoList,
}

/// The method that takes the last block of the stream of the highest rank.
#[must_use]
pub fn ranked(rank: Rank) -> Box<dyn Reclaim> {
    Box::new(by(Some(rank)))
}

/// The same by the time that owners have computed since their last access, then by that access.
#[must_use]
pub fn ranked_by_cpu_time() -> Box<dyn Reclaim> {
    Box::new(Partitioned {
        uses_cpu_time: true,
        ..by(Some(cpu_time))
    })
}

/// The same, and blocks that owners never read go before.
#[must_use]
pub fn ranked_by_cpu_time_and_hints() -> Box<dyn Reclaim> {
    Box::new(Partitioned {
        uses_cpu_time: true,
        uses_hints: true,
        ..by(Some(cpu_time))
    })
}

/// The method that takes the block that arrived first.
#[must_use]
pub fn by_arrival() -> Box<dyn Reclaim> {
    Box::new(by(None))
}

fn by(rank: Option<Rank>) -> Partitioned {
    Partitioned {
        rank,
        uses_cpu_time: false,
        uses_hints: false,
        ordinary: TwoList::default(),
    }
}

fn cpu_time(stream: &PrefetchStream) -> u64 {
    let cpu = (stream.cpu.0 >> CPU_SHIFT).min((1 << CPU_BITS) - 1);
    let wall_max = (1 << WALL_BITS) - 1;
    let wall = (stream.used.0 >> WALL_SHIFT).min(wall_max);
    cpu << WALL_BITS | (wall_max - wall)
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

    fn uses_hints(&self) -> bool {
        self.uses_hints
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
