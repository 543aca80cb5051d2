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

use alloc::collections::BTreeSet;
#[cfg(test)]
use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::Memory;
use crate::reclaim::{Partition, PrefetchStream, Queue, StreamId, Victim};
use crate::stream::{Stream, Streams};
use crate::table::{Frame, Links, flag};
use crate::units::{Block, FileId, Nanos, ReaderId};

/// What a rank is charged: 16 bytes in a node of at least 5 of 11, with the nodes above it.
const RANK_BYTES: i64 = 48;

#[derive(Debug)]
pub(super) struct PrefetchCache {
    /// Its part of the frames, in per cent; none if the reclaim method does not split the memory.
    percent: Option<u8>,
    ranked: BTreeSet<(NonZeroU64, StreamId)>,
    /// Blocks of streams.
    of_streams: u32,
    abandoned: Queue,
}

impl PrefetchCache {
    pub(super) fn new(percent: Option<u8>) -> Self {
        Self {
            percent,
            ranked: BTreeSet::new(),
            of_streams: 0,
            abandoned: Queue::default(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.of_streams + self.abandoned.len()
    }

    pub(super) fn ranked(&self) -> &BTreeSet<(NonZeroU64, StreamId)> {
        &self.ranked
    }

    /// Both parts of so many frames; the other one has so many blocks.
    pub(super) fn partitions(&self, frames: u32, ordinary: u32) -> (Partition, Partition) {
        let percent = u64::from(self.percent.unwrap_or(0));
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
        self.prefetched.percent.is_some()
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
        if !is_ahead {
            self.abandoned(frame);
        }
    }

    /// The first access to a block fetched ahead.
    pub(crate) fn used(&mut self, frame: Frame) {
        let is_of_stream = self.is_of_stream(frame);
        self.table.clear(frame, flag::UNREAD);
        if is_of_stream {
            self.prefetched.of_streams -= 1;
            self.inserted(frame, false);
        } else if self.is_split() {
            self.table.clear(frame, flag::ACTIVE | flag::REFERENCED);
        }
    }

    /// The reader of an unread block has closed the file, or left the block behind.
    pub(crate) fn abandoned(&mut self, frame: Frame) {
        if self.is_held(frame) {
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

    /// A block is a stream's again, if it was abandoned.
    pub(crate) fn adopted(&mut self, frame: Frame) {
        if self.table.flags(frame) & flag::ACTIVE != 0 {
            self.table.set(frame, flag::REFERENCED);
        }
    }

    /// The block of this frame is about to leave the table, and was not a victim; whether it stands in
    /// an order of reclaim.
    pub(crate) fn dropped(&mut self, frame: Frame) -> bool {
        let is_of_stream = self.is_of_stream(frame);
        self.prefetched.of_streams -= u32::from(is_of_stream);
        !is_of_stream && !self.is_held(frame)
    }

    /// Whether the block of this frame is in the prefetch cache, and a stream's.
    pub(crate) fn is_of_stream(&self, frame: Frame) -> bool {
        const STATE: u8 = flag::UNREAD | flag::FILLING | flag::VACANT | flag::ACTIVE;
        self.is_split() && self.table.flags(frame) & STATE == flag::UNREAD && !self.is_held(frame)
    }

    /// What to give up next.
    pub(crate) fn victim(&mut self, now: Nanos) -> Option<Victim> {
        let abandoned = self.first_abandoned().map(Victim::Frame);
        abandoned.or_else(|| self.ask(now, |reclaim, cache| reclaim.victim(cache)))
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

    /// Streams of a file have changed: their ranks follow, and what is none's any more is abandoned.
    pub(crate) fn follow(&mut self, owner: ReaderId, file: FileId, streams: &mut Streams) {
        if !self.is_split() {
            return;
        }
        for mut left in streams.take_left() {
            self.rank(owner, &mut left, false);
            for block in (left.tail - left.arrived()..left.tail).map(Block) {
                if let Some(found) = self.table.find(file, block)
                    && found.flags & (flag::UNREAD | flag::FILLING) == flag::UNREAD
                {
                    self.abandoned(found.frame);
                }
            }
        }
        for stream in streams.iter_mut() {
            self.rank(owner, stream, stream.arrived() > 0);
        }
    }

    /// Ranks a stream, or ranks it no more.
    fn rank(&mut self, owner: ReaderId, stream: &mut Stream, is_ranked: bool) {
        let start = Block(stream.start);
        let id = StreamId { owner, start };
        let facts = PrefetchStream {
            id,
            position: Block(stream.tail - stream.arrived()),
            blocks: stream.arrived(),
            used: stream.used,
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
impl Memory {
    /// Each block of the prefetch cache is abandoned or lies in a ranked stream, and every resident
    /// block is counted once.
    pub(crate) fn check(&self, streams: &[(ReaderId, FileId, Stream)]) {
        let (mut of_streams, mut resident) = (0, 0);
        for frame in (0..self.table.frames()).map(Frame) {
            let is_there = self.table.flags(frame) & (flag::FILLING | flag::VACANT) == 0;
            resident += u32::from(is_there && !self.is_held(frame));
            if !self.is_of_stream(frame) {
                continue;
            }
            of_streams += 1;
            let (file, block) = self.table.holds(frame);
            let has_it = |(_, of, s): &&(ReaderId, FileId, Stream)| {
                let ahead = s.tail - s.arrived()..s.tail;
                *of == file && s.rank.is_some() && ahead.contains(&block.0)
            };
            assert!(
                streams.iter().any(|s| has_it(&s)),
                "{file:?} {block:?} is lost"
            );
        }
        let counted = self.prefetched.of_streams;
        assert_eq!(
            counted, of_streams,
            "blocks of streams, as counted and as found"
        );
        let counted = self.reclaim.len() + self.prefetched.len();
        assert_eq!(
            counted,
            resident + self.dropped.len() as u32,
            "blocks to be given up, and resident ones"
        );
        let ranks: Vec<_> = (streams.iter())
            .filter_map(|(owner, _, s)| {
                let (owner, start) = (*owner, Block(s.start));
                Some((s.rank?, StreamId { owner, start }))
            })
            .collect();
        assert_eq!(ranks.len(), self.prefetched.ranked.len(), "ranked streams");
        assert!(ranks.iter().all(|r| self.prefetched.ranked.contains(r)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::LIST;
    use crate::spec::Choice;
    use crate::stream::STREAMS_MAX;

    const FILE: FileId = FileId(0);

    /// Half the memory for blocks fetched ahead; two readers of one file.
    struct Rig {
        memory: Memory,
        streams: [Streams; 2],
    }

    impl Rig {
        fn new(frames: u32) -> Self {
            let choice = Choice::parse("reclaim", LIST, "longest(prefetch_percent=50)").unwrap();
            let memory = Memory::new(frames, 4096, choice.build(LIST).unwrap());
            let streams = Default::default();
            Self { memory, streams }
        }

        fn follow(&mut self, reader: usize) {
            let owner = ReaderId(reader as u32);
            self.memory.follow(owner, FILE, &mut self.streams[reader]);
        }

        /// A window of a reader arrives.
        fn fetch(&mut self, reader: usize, first: u32, count: u32) {
            let stream = self.streams[reader].at_or_begin(Block(first), Nanos(0));
            stream.end = stream.end.max(u64::from(first + count));
            for block in (first..first + count).map(Block) {
                let frame = self.memory.take_free().unwrap();
                self.memory.table.insert(frame, FILE, block, flag::UNREAD);
                let is_ahead = self.streams[reader].arrive(block);
                self.memory.inserted(frame, is_ahead);
            }
            self.follow(reader);
        }

        fn read(&mut self, reader: usize, first: u32, count: u32) {
            for block in (first..first + count).map(Block) {
                let frame = self.memory.table.find(FILE, block).unwrap().frame;
                self.memory.used(frame);
                self.memory.touched(frame);
            }
            self.streams[reader].advance(Block(first), count, Nanos(0));
            self.follow(reader);
        }

        fn close(&mut self, reader: usize) {
            self.streams[reader].clear();
            self.follow(reader);
        }

        /// The blocks of so many victims.
        fn victims(&mut self, count: usize) -> Vec<u32> {
            let mut blocks = Vec::new();
            while blocks.len() < count {
                let frame = match self.memory.victim(Nanos(0)).unwrap() {
                    Victim::Frame(frame) => frame,
                    Victim::Last(id) => {
                        let streams = &mut self.streams[id.owner.0 as usize];
                        let stream = *streams.begun_at(id.start).unwrap();
                        let last = self.memory.take_last(FILE, &stream);
                        streams.shorten(id.start, last.map(|(block, _)| block));
                        self.follow(id.owner.0 as usize);
                        last.unwrap().1
                    }
                };
                blocks.push(self.memory.table.holds(frame).1.0);
                self.memory.table.remove(frame);
                self.memory.give_back(frame);
            }
            blocks
        }
    }

    #[test]
    fn above_its_part_the_prefetch_cache_gives_up_the_last_blocks_of_its_longest_stream() {
        let mut rig = Rig::new(200);
        rig.fetch(0, 0, 60);
        rig.fetch(1, 1000, 50);
        let last = (50..60).rev();
        assert_eq!(rig.victims(10), last.collect::<Vec<_>>());
        assert_eq!(rig.memory.prefetched.len(), 100);
    }

    #[test]
    fn within_its_part_it_gives_up_nothing_while_there_is_a_block_that_was_read() {
        let mut rig = Rig::new(200);
        rig.fetch(0, 0, 60);
        rig.read(0, 0, 3);
        assert_eq!(rig.victims(4), [0, 1, 2, 59]);
    }

    #[test]
    fn blocks_go_first_whose_reader_has_closed_the_file() {
        let mut rig = Rig::new(200);
        rig.fetch(0, 0, 120);
        rig.fetch(1, 1000, 3);
        rig.close(1);
        assert_eq!(rig.victims(4), [1000, 1001, 1002, 119]);
    }

    #[test]
    fn blocks_go_first_that_were_skipped_or_whose_stream_gave_way_to_newer_ones() {
        let mut rig = Rig::new(400);
        rig.fetch(0, 0, 4);
        rig.read(0, 2, 1);
        assert_eq!(rig.victims(2), [0, 1]);
        for stream in 1..=STREAMS_MAX as u32 {
            rig.fetch(0, stream * 100, 2);
        }
        assert_eq!(rig.victims(1), [3], "of the stream before the last 64");
    }

    #[test]
    fn abandoned_blocks_that_a_window_covers_are_its_streams() {
        let mut rig = Rig::new(200);
        rig.fetch(0, 0, 6);
        rig.close(0);
        rig.fetch(1, 0, 0);
        for block in (0..4).map(Block) {
            rig.streams[1].at_mut(block).unwrap().end = 4;
            assert!(rig.streams[1].arrive(block));
            let frame = rig.memory.table.find(FILE, block).unwrap().frame;
            rig.memory.adopted(frame);
        }
        rig.follow(1);
        rig.read(1, 1, 1);
        // Block 0 was skipped and 1 was read; of the two that are left the last goes first.
        assert_eq!(rig.victims(6), [0, 4, 5, 1, 3, 2]);
    }
}
