//! The prefetch cache: resident blocks that were fetched ahead and not accessed, apart from the
//! blocks that were (Li and Shen 2005, section 3).
//!
//! Part of the memory, for reclaim methods that split it; empty for the others. Design note 0009.
//!
//! ```text
//!             of a stream: in no queue      of none any more: abandoned, oldest first
//!                       |       ^                |           |
//!  arrive --------------+       +--- adopted ----+           +--> the first victims
//!                       |                        ^
//!                       +-- reader closed, skipped it, or has too many streams
//!  first access: to the ordinary cache, which is the reclaim method's
//! ```
//!
//! An unread block stands in the queue of abandoned ones if it is flagged `ACTIVE`, and is a
//! stream's otherwise; `ACTIVE` and `REFERENCED` mean that a stream has it again. A queue gives up
//! at the front only, so both that and an access show when the block comes to the front.
//!
//! Invariant: a block of a stream lies from the stream's position to its tail, and the stream is
//! ranked. So each block can be found as some stream's last one.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use core::num::NonZeroU64;

use super::history::History;
use super::{Arrivals, Memory};
use crate::reclaim::{Partition, PrefetchOrder, PrefetchStream, Queue, Reclaim, StreamId, Victim};
use crate::split::Split;
use crate::stream::{Stream, Streams};
use crate::table::{Frame, Links, flag};
use crate::units::{Block, Extent, FileId, Nanos, ReaderId};

/// Memory charged for a rank: 16 bytes in a node of at least 5 of 11, with the nodes above it.
const RANK_BYTES: i64 = 48;

#[derive(Debug)]
pub(super) struct PrefetchCache {
    /// None if the reclaim method does not split the memory.
    order: Option<PrefetchOrder>,
    split: Box<dyn Split>,
    /// Kept if the split learns by it.
    history: Option<History>,
    pub(super) ranked: BTreeSet<(NonZeroU64, StreamId)>,
    /// Blocks of streams; of all readers, where the order is that of arrival.
    of_streams: u32,
    abandoned: Queue,
    pub(super) arrivals: Arrivals,
    arrivals_charged: i64,
}

impl PrefetchCache {
    pub(super) fn new(reclaim: &dyn Reclaim, split: Box<dyn Split>, frames: u32) -> Self {
        let order = reclaim.prefetch_order();
        let learns = order.is_some() && split.learns();
        Self {
            order,
            split,
            history: learns.then(|| History::new(frames)),
            ranked: BTreeSet::new(),
            of_streams: 0,
            abandoned: Queue::default(),
            arrivals: Arrivals::default(),
            arrivals_charged: 0,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.of_streams + self.abandoned.len()
    }

    /// Bytes of the eviction history.
    pub(super) fn history_bytes(&self) -> u64 {
        self.history.as_ref().map_or(0, History::bytes)
    }

    /// Both parts of so many frames; the other one has so many blocks.
    pub(super) fn partitions(
        &mut self,
        frames: u32,
        ordinary: u32,
        now: Nanos,
    ) -> (Partition, Partition) {
        let percent = match self.order {
            Some(_) => u64::from(self.split.percent(now)),
            None => 0,
        };
        let target = (u64::from(frames) * percent / 100) as u32;
        let prefetched = Partition {
            blocks: self.len(),
            target,
        };
        let ordinary = Partition {
            blocks: ordinary,
            target: frames.saturating_sub(target),
        };
        (prefetched, ordinary)
    }

    pub(super) fn sweep(&mut self, links: &mut Links, gone: impl FnMut(Frame) -> bool) {
        self.abandoned.sweep(links, gone);
    }
}

impl Memory {
    /// Whether blocks fetched ahead are apart.
    pub(crate) fn is_split(&self) -> bool {
        self.prefetched.order.is_some()
    }

    /// Whether streams must be told of their blocks in the prefetch cache.
    pub(crate) fn ranks_streams(&self) -> bool {
        self.prefetched.order == Some(PrefetchOrder::Ranked)
    }

    /// Whether unread blocks are given up in the order of their arrival.
    pub(crate) fn is_by_arrival(&self) -> bool {
        self.prefetched.order == Some(PrefetchOrder::Arrival)
    }

    /// A block became resident; whether a stream has it ahead of its reader.
    pub(crate) fn inserted(&mut self, frame: Frame, is_ahead: bool) {
        if self.is_held(frame) {
            return;
        }
        if !self.is_split() || self.table.flags(frame) & flag::UNREAD == 0 {
            return self.ask(Nanos(0), |reclaim, cache| reclaim.inserted(cache, frame));
        }
        self.prefetched.of_streams += 1;
        if self.is_by_arrival() {
            let (file, block) = self.table.holds(frame);
            self.prefetched.arrivals.push(&self.table, file, block);
            self.charge_arrivals();
        } else if !is_ahead {
            self.abandoned(frame);
        }
    }

    /// So many blocks leave the prefetch cache. With the last one its order of arrival is over.
    fn leaves(&mut self, blocks: u32) {
        self.prefetched.of_streams -= blocks;
        if self.prefetched.of_streams == 0 && self.is_by_arrival() {
            self.prefetched.arrivals = Arrivals::default();
            self.charge_arrivals();
        }
    }

    fn charge_arrivals(&mut self) {
        let bytes = self.prefetched.arrivals.bytes();
        let before = core::mem::replace(&mut self.prefetched.arrivals_charged, bytes);
        self.charge(bytes - before);
    }

    /// The first access to a block fetched ahead.
    pub(crate) fn used(&mut self, frame: Frame) {
        let is_of_stream = self.is_of_stream(frame);
        self.table.clear(frame, flag::UNREAD);
        if is_of_stream {
            self.leaves(1);
            self.inserted(frame, false);
        } else if self.is_split() {
            self.table.clear(frame, flag::ACTIVE | flag::REFERENCED);
        } else if !self.is_held(frame) {
            self.ask(Nanos(0), |reclaim, cache| {
                reclaim.first_access(cache, frame)
            });
        }
    }

    /// The reader of an unread block has closed the file, or left the block behind.
    pub(crate) fn abandoned(&mut self, frame: Frame) {
        if self.is_held(frame) || self.is_by_arrival() {
            return;
        }
        if !self.is_split() {
            return self.ask(Nanos(0), |reclaim, cache| reclaim.abandoned(cache, frame));
        }
        if self.is_of_stream(frame) {
            self.prefetched.of_streams -= 1;
            self.table.set(frame, flag::ACTIVE);
            self.prefetched.abandoned.push(&mut self.links, frame);
        }
        self.table.clear(frame, flag::REFERENCED);
    }

    /// A victim is about to leave the table.
    pub(crate) fn remember(&mut self, frame: Frame) {
        if let Some(history) = &mut self.prefetched.history {
            let (file, block) = self.table.holds(frame);
            let is_unread = self.table.flags(frame) & flag::UNREAD != 0;
            history.add(file, block, is_unread);
        }
    }

    /// A reader misses these blocks, as far as they are not there: those given up not long ago are
    /// misses of the split.
    pub(crate) fn missed(&mut self, extent: Extent) {
        let Some(history) = &mut self.prefetched.history else {
            return;
        };
        for block in extent.blocks() {
            if self.table.find(extent.file, block).is_none()
                && let Some(miss) = history.take(extent.file, block)
            {
                self.prefetched.split.missed(miss);
            }
        }
    }

    /// A block is a stream's again, if it was abandoned.
    pub(crate) fn adopted(&mut self, frame: Frame) {
        if self.table.flags(frame) & flag::ACTIVE != 0 {
            self.table.set(frame, flag::REFERENCED);
        }
    }

    /// The block of this frame is about to leave the table, and was not a victim; whether it stands
    /// in an order of reclaim.
    pub(crate) fn dropped(&mut self, frame: Frame) -> bool {
        let is_of_stream = self.is_of_stream(frame);
        self.leaves(u32::from(is_of_stream));
        !is_of_stream && !self.is_held(frame)
    }

    /// Whether the block of this frame is in the prefetch cache, and a stream's.
    pub(crate) fn is_of_stream(&self, frame: Frame) -> bool {
        const STATE: u8 = flag::UNREAD | flag::FILLING | flag::VACANT | flag::ACTIVE;
        self.is_split() && self.table.flags(frame) & STATE == flag::UNREAD && !self.is_held(frame)
    }

    /// The next victim.
    pub(crate) fn victim(&mut self, now: Nanos) -> Option<Victim> {
        if let Some(frame) = self.first_abandoned() {
            return Some(Victim::Frame(frame));
        }
        let victim = self.ask(now, |reclaim, cache| reclaim.victim(cache));
        if self.is_by_arrival() {
            if let Some(Victim::Frame(frame)) = victim {
                self.leaves(u32::from(self.is_of_stream(frame)));
            }
            self.charge_arrivals();
        }
        victim
    }

    fn first_abandoned(&mut self) -> Option<Frame> {
        for _ in 0..self.prefetched.abandoned.len() {
            let frame = self.prefetched.abandoned.pop(&mut self.links)?;
            let flags = self.table.flags(frame);
            if flags & flag::UNREAD == 0 {
                self.inserted(frame, false);
            } else if flags & flag::REFERENCED != 0 {
                self.table.clear(frame, flag::ACTIVE | flag::REFERENCED);
                self.prefetched.of_streams += 1;
            } else if flags & flag::PINNED != 0 {
                self.prefetched.abandoned.push(&mut self.links, frame);
            } else {
                return Some(frame);
            }
        }
        None
    }

    /// Takes the last block of a stream that can go out of the prefetch cache.
    pub(crate) fn take_last(&mut self, file: FileId, stream: &Stream) -> Option<(Block, Frame)> {
        let first = stream.tail - stream.arrived();
        let last = (first..stream.tail).rev().map(Block).find_map(|block| {
            let found = self.table.find(file, block)?;
            let can_go = found.flags & flag::PINNED == 0 && self.is_of_stream(found.frame);
            can_go.then_some((block, found.frame))
        });
        self.prefetched.of_streams -= u32::from(last.is_some());
        last
    }

    /// Streams of a file have changed: their ranks follow, and blocks that left them are abandoned.
    pub(crate) fn follow(&mut self, owner: ReaderId, file: FileId, streams: &mut Streams) {
        if !self.ranks_streams() {
            return;
        }
        for mut left in streams.take_left() {
            self.rank(owner, &mut left, streams.cpu(), false);
            for block in (left.tail - left.arrived()..left.tail).map(Block) {
                if let Some(found) = self.table.find(file, block)
                    && found.flags & (flag::UNREAD | flag::FILLING) == flag::UNREAD
                {
                    self.abandoned(found.frame);
                }
            }
        }
        let cpu = streams.cpu();
        for stream in streams.iter_mut() {
            self.rank(owner, stream, cpu, stream.arrived() > 0);
        }
    }

    /// Ranks a stream, or ranks it no more.
    fn rank(&mut self, owner: ReaderId, stream: &mut Stream, cpu: Nanos, is_ranked: bool) {
        let start = Block(stream.start);
        let id = StreamId { owner, start };
        let facts = PrefetchStream {
            id,
            position: Block(stream.tail - stream.arrived()),
            blocks: stream.arrived(),
            used: stream.used,
            cpu: cpu.since(stream.used_cpu),
        };
        let rank = is_ranked.then(|| NonZeroU64::MIN.saturating_add(self.reclaim.rank(&facts)));
        let before = core::mem::replace(&mut stream.rank, rank);
        if rank == before {
            return;
        }
        if let Some(rank) = before {
            let was_ranked = self.prefetched.ranked.remove(&(rank, id));
            debug_assert!(was_ranked, "{id:?} was not ranked {rank}");
            self.charge(-RANK_BYTES);
        }
        if let Some(rank) = rank {
            let is_new = self.prefetched.ranked.insert((rank, id));
            debug_assert!(is_new, "{id:?} is ranked twice");
            self.charge(RANK_BYTES);
        }
    }
}

#[cfg(test)]
mod tests;
