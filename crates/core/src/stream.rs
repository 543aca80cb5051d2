//! Streams: runs of blocks fetched ahead for one reader, in file order.
//!
//! Kept by the engine for every open file; read by the depth stage (the length of the run
//! so far, the reader's waits), by admission (the blocks ahead of the reader, its share) and by
//! reclaim methods that take the last block of a stream. A stream is four positions,
//! and everything else is derived from them:
//!
//! ```text
//!   start            touched            tail      end
//!     |== consumed ====|---------- ahead -----------|
//!                      |-- arrived -------|
//! ```
//!
//! They are positions along the direction in which it is read (see [`Direction`]): forward, they
//! are block numbers. Streams that go backward have no `tail`: no method ranks them, and their
//! blocks are ordinary ones to all.
//!
//! All its blocks in the prefetch cache lie before `tail`; not each block there is one of them,
//! because other readers take blocks too. `tail` is kept for methods that split the memory (design
//! note 0009); for the others it stays where it began, and blocks go without the stream's notice.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::announced::Announced;
use crate::detect::Direction;
use crate::units::{Block, Nanos};

/// Streams remembered for one open file. Interleaved readers on one open file (a database, a
/// network file server) rarely exceed some dozens; the least recently used gives way.
pub(crate) const STREAMS_MAX: usize = 64;

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stream {
    /// Which way it is read; the positions below are along it.
    pub(crate) direction: Direction,
    /// Where the run began.
    pub(crate) start: u32,
    /// First block not accessed yet.
    pub(crate) touched: u64,
    /// First block no window has covered yet.
    pub(crate) end: u64,
    /// Blocks in the last window.
    pub(crate) last_window: u32,
    /// How many of them lie behind its mark.
    pub(crate) last_async: u32,
    /// Whether the reader had to wait since the last window.
    pub(crate) waited: bool,
    /// Behind its last block in the prefetch cache.
    pub(crate) tail: u32,
    /// Its rank among the streams with blocks in the prefetch cache, while it has some.
    pub(crate) rank: Option<NonZeroU64>,
    /// When it was last used, for replacement.
    pub(crate) used: Nanos,
    /// The owner's processor time then.
    pub(crate) used_cpu: Nanos,
}

impl Stream {
    pub(crate) fn new(start: Block, direction: Direction, now: Nanos) -> Self {
        let start = direction.position(start);
        Self {
            direction,
            start,
            touched: u64::from(start),
            end: u64::from(start),
            last_window: 0,
            last_async: 0,
            waited: false,
            tail: start,
            rank: None,
            used: now,
            used_cpu: Nanos(0),
        }
    }

    /// Whether it is the ranked stream that began there: forward.
    fn is_at(&self, start: Block) -> bool {
        self.direction == Direction::Forward && self.start == start.0
    }

    /// Blocks accessed since it began.
    pub(crate) fn consumed(&self) -> u64 {
        self.touched - u64::from(self.start)
    }

    /// Blocks fetched or on the way that its reader has not come to.
    pub(crate) fn ahead(&self) -> u64 {
        self.end.saturating_sub(self.touched)
    }

    /// Blocks from the next one its reader comes to, up to its last one in the prefetch cache.
    pub(crate) fn arrived(&self) -> u32 {
        let touched = u32::try_from(self.touched).unwrap_or(u32::MAX);
        self.tail.saturating_sub(touched)
    }

    /// The first block that no window has covered yet, if the file may have it.
    pub(crate) fn next_block(&self) -> Option<Block> {
        self.direction.block(self.end)
    }

    /// Whether `block` continues this run.
    fn covers(&self, block: Block) -> bool {
        let at = self.direction.position(block);
        at >= self.start && u64::from(at) <= self.end
    }

    /// Where the first and behind the last of these blocks lie along its direction.
    fn span(&self, first: Block, count: u32) -> (u64, u64) {
        let begin = match self.direction {
            Direction::Forward => first.0,
            Direction::Backward => {
                let last = first.0.saturating_add(count.saturating_sub(1));
                self.direction.position(Block(last))
            }
        };
        (begin.into(), u64::from(begin) + u64::from(count))
    }
}

/// The streams of one open file.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    all: Vec<Stream>,
    /// Streams that are gone, and parts of streams that their reader has skipped, as long as they
    /// may have blocks in the prefetch cache.
    left: Vec<Stream>,
    /// Processor time of the owner, as far as it was told.
    cpu: Nanos,
    /// Blocks the owner announced.
    pub(crate) announced: Announced,
}

impl Streams {
    /// The stream that `block` continues.
    pub(crate) fn at(&self, block: Block) -> Option<&Stream> {
        self.all.iter().rev().find(|s| s.covers(block))
    }

    /// The stream that a read of these blocks continues: one that goes backward is come to from its
    /// last block.
    pub(crate) fn of_read(&self, first: Block, count: u32) -> Option<&Stream> {
        self.at(first).or_else(|| {
            let last = first.0.checked_add(count.checked_sub(1)?)?;
            let is_backward = |s: &&Stream| s.direction == Direction::Backward;
            self.at(Block(last)).filter(is_backward)
        })
    }

    /// The stream that `block` continues, to be changed.
    pub(crate) fn at_mut(&mut self, block: Block) -> Option<&mut Stream> {
        self.all.iter_mut().rev().find(|s| s.covers(block))
    }

    /// The stream that `block` continues upward, or a new one that begins there.
    #[cfg(any(test, feature = "conformance"))]
    pub(crate) fn at_or_begin(&mut self, block: Block, now: Nanos) -> &mut Stream {
        self.continued(block, Direction::Forward, now)
    }

    /// The stream of a direction that `block` continues, or a new one that begins there; then the
    /// least recently used one gives way if there are too many.
    pub(crate) fn continued(
        &mut self,
        block: Block,
        direction: Direction,
        now: Nanos,
    ) -> &mut Stream {
        let continues = |s: &Stream| s.direction == direction && s.covers(block);
        let at = match self.all.iter().rposition(continues) {
            Some(at) => at,
            None => {
                if self.all.len() == STREAMS_MAX {
                    let oldest = (0..self.all.len())
                        .min_by_key(|&i| self.all[i].used)
                        .unwrap_or(0);
                    let oldest = self.all.remove(oldest);
                    self.left.extend(Some(oldest).filter(|s| s.arrived() > 0));
                }
                self.all.push(Stream {
                    used_cpu: self.cpu,
                    ..Stream::new(block, direction, now)
                });
                self.all.len() - 1
            }
        };
        &mut self.all[at]
    }

    /// Blocks were accessed: the stream they belong to moves on.
    pub(crate) fn advance(&mut self, first: Block, count: u32, now: Nanos) {
        let cpu = self.cpu;
        let Some(stream) = self.at_mut(first) else {
            return;
        };
        let skipped = Stream {
            tail: stream.tail.min(first.0),
            rank: None,
            ..*stream
        };
        let (_, end) = stream.span(first, count);
        stream.touched = stream.touched.max(end);
        stream.end = stream.end.max(stream.touched);
        (stream.used, stream.used_cpu) = (now, cpu);
        if skipped.arrived() > 0 {
            self.left.push(skipped);
        }
    }

    /// A block fetched ahead is in the prefetch cache. Whether a stream has it ahead of its reader,
    /// who may come to it.
    pub(crate) fn arrive(&mut self, block: Block) -> bool {
        if self.announced.never_has(block) {
            return false;
        }
        let at = u64::from(block.0);
        let is_ahead = |s: &&mut Stream| {
            s.direction == Direction::Forward && s.touched <= at && at <= s.end.max(s.tail.into())
        };
        let stream = self.all.iter_mut().rev().find(is_ahead);
        let Some(stream) = stream else { return false };
        stream.tail = stream.tail.max(block.0.saturating_add(1));
        true
    }

    /// The stream that began there.
    pub(crate) fn begun_at(&self, start: Block) -> Option<&Stream> {
        self.all.iter().find(|s| s.is_at(start))
    }

    /// The last block of a stream was given up; none, if no block of it is in the prefetch cache.
    pub(crate) fn shorten(&mut self, start: Block, last: Option<Block>) {
        let Some(stream) = self.all.iter_mut().find(|s| s.is_at(start)) else {
            return;
        };
        stream.tail = last.map_or(stream.start, |block| block.0);
        if last.is_some() && stream.end == u64::from(stream.tail) + 1 {
            stream.end -= 1;
        }
    }

    /// Its owner has used so much processor time; never less than before.
    pub(crate) fn owner_has_used(&mut self, time: Nanos) {
        self.cpu = self.cpu.max(time);
    }

    /// The owner's processor time.
    pub(crate) fn cpu(&self) -> Nanos {
        self.cpu
    }

    /// All of them, to be ranked.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.all.iter_mut()
    }

    /// Takes the blocks that left their streams since the last call.
    pub(crate) fn take_left(&mut self) -> Vec<Stream> {
        core::mem::take(&mut self.left)
    }

    /// The memory allowed only the blocks before `end` of the window at `start`. Of one that is
    /// read backward that is the far part: nothing is ahead of its reader.
    pub(crate) fn cut(&mut self, start: Block, end: Block) {
        if let Some(stream) = self.at_mut(start) {
            let end = match stream.direction {
                Direction::Forward => end.0.into(),
                Direction::Backward => 0,
            };
            stream.end = stream.end.min(end).max(stream.touched);
        }
    }

    /// A block is missing: nothing is ahead of its reader any more, whatever was fetched.
    pub(crate) fn lost(&mut self, block: Block) {
        if let Some(stream) = self.at_mut(block) {
            stream.end = stream.direction.position(block).into();
            stream.touched = stream.touched.min(stream.end);
        }
    }

    /// The runs of blocks ahead of the reader.
    pub(crate) fn ahead(&self) -> Vec<(Block, u32)> {
        let ahead = self.all.iter().filter(|s| s.ahead() > 0);
        ahead
            .filter_map(|s| {
                let nearest = match s.direction {
                    Direction::Forward => s.touched,
                    Direction::Backward => s.end.checked_sub(1)?,
                };
                let first = s.direction.block(nearest)?;
                Some((first, u32::try_from(s.ahead()).ok()?))
            })
            .collect()
    }

    /// All of them, the least recently used first.
    pub(crate) fn by_use(&self) -> Vec<Stream> {
        let mut streams = self.all.clone();
        streams.sort_by_key(|stream| stream.used);
        streams
    }

    /// How many have blocks ahead of their reader.
    pub(crate) fn active(&self) -> usize {
        self.all.iter().filter(|s| s.ahead() > 0).count()
    }

    /// All end: their file was closed, or has another content now.
    pub(crate) fn clear(&mut self) {
        let ended = self.all.drain(..);
        self.left.extend(ended.filter(|s| s.arrived() > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_where_its_last_block_was_given_up() {
        let mut streams = Streams::default();
        let stream = streams.at_or_begin(Block(10), Nanos(0));
        stream.end = 20;
        for block in (10..20).map(Block) {
            assert!(streams.arrive(block));
        }
        streams.shorten(Block(10), Some(Block(19)));
        let ends = |streams: &Streams| {
            let stream = streams.begun_at(Block(10)).unwrap();
            (stream.arrived(), stream.end)
        };
        assert_eq!(ends(&streams), (9, 19));
        // The block before is in flight: the blocks behind it are still to come.
        streams.shorten(Block(10), Some(Block(17)));
        assert_eq!(ends(&streams), (7, 19));
        streams.shorten(Block(10), None);
        assert_eq!(ends(&streams), (0, 19));
    }
}
