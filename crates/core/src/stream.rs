//! Streams: runs of blocks fetched ahead for one reader, in file order.
//!
//! Kept by the engine for every open file; read by the depth stage (the length of the run
//! so far, the reader's waits), by admission (the blocks ahead of the reader, its share) and, as far
//! as they go forward, by reclaim methods that take the last block of a stream. A stream is three
//! positions, and everything else is derived from them:
//!
//! ```text
//!   start            touched                  windows_end
//!     |== consumed ====|---------- ahead -----------|
//! ```
//!
//! A reader that goes on through windows of another reader of the file passes the end of its own; nothing is ahead then.
//!
//! They are positions along the direction in which it is read (see [`Direction`]): forward, they
//! are block numbers. Blocks are given up without the stream's notice, unless the reclaim method
//! says that a victim was its last one.

use alloc::vec::Vec;

use crate::detect::Direction;
use crate::reclaim::StreamAhead;
use crate::units::{Block, Nanos};

/// Streams remembered for one open file. Interleaved readers on one open file (a database, a
/// network file server) rarely exceed some dozens; the least recently used gives way.
pub(crate) const STREAMS_MAX: usize = 64;

/// A vector has room for so many at first.
const STREAMS_MIN: usize = 4;

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stream {
    /// Which way it is read; the positions below are along it.
    pub(crate) direction: Direction,
    /// Where the run began.
    pub(crate) start: u32,
    /// First block not accessed yet.
    pub(crate) touched: u64,
    /// First block that no window has covered. Its reader may be further: windows of other readers of the file serve
    /// it, too.
    pub(crate) windows_end: u64,
    /// Blocks in the last window.
    pub(crate) last_window: u32,
    /// How many of them lie behind its mark.
    pub(crate) last_async: u32,
    /// Whether the reader had to wait since the last window.
    pub(crate) waited: bool,
    /// When it was last used, for replacement.
    pub(crate) used: Nanos,
}

impl Stream {
    pub(crate) fn new(start: Block, direction: Direction, now: Nanos) -> Self {
        let start = direction.position(start);
        Self {
            direction,
            start,
            touched: u64::from(start),
            windows_end: u64::from(start),
            last_window: 0,
            last_async: 0,
            waited: false,
            used: now,
        }
    }

    /// Blocks accessed since it began.
    pub(crate) fn consumed(&self) -> u64 {
        self.touched - u64::from(self.start)
    }

    /// Whether it has read its file forward from the first block on.
    pub(crate) fn is_from_begin(&self) -> bool {
        self.direction == Direction::Forward && self.start == 0 && self.touched > 0
    }

    /// Blocks fetched or on the way that its reader has not come to.
    pub(crate) fn ahead(&self) -> u64 {
        self.windows_end.saturating_sub(self.touched)
    }

    /// The first block that it has neither read nor a window for.
    pub(crate) fn end(&self) -> u64 {
        self.windows_end.max(self.touched)
    }

    /// The first block that no window has covered yet, if the file may have it.
    pub(crate) fn next_block(&self) -> Option<Block> {
        self.direction.block(self.end())
    }

    /// Whether `block` continues this run.
    pub(crate) fn covers(&self, block: Block) -> bool {
        let at = self.direction.position(block);
        at >= self.start && u64::from(at) <= self.end()
    }
}

/// The streams of one open file.
#[derive(Debug, Default)]
pub struct Streams {
    all: Vec<Stream>,
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
                    self.all.remove(oldest);
                }
                self.all.push(Stream::new(block, direction, now));
                self.all.len() - 1
            }
        };
        &mut self.all[at]
    }

    /// Blocks were accessed: the stream they belong to moves on. Where it began, if it goes
    /// forward.
    pub(crate) fn advance(&mut self, first: Block, count: u32, now: Nanos) -> Option<Block> {
        let stream = self.at_mut(first)?;
        let (_, end) = stream.direction.span(first, count);
        stream.touched = stream.touched.max(end);
        stream.used = now;
        (stream.direction == Direction::Forward).then_some(Block(stream.start))
    }

    /// The last block of a stream was given up.
    pub(crate) fn shorten(&mut self, start: Block, last: Block) {
        let is_it = |s: &&mut Stream| s.direction == Direction::Forward && s.start == start.0;
        if let Some(stream) = self.all.iter_mut().find(is_it)
            && stream.windows_end == u64::from(last.0) + 1
        {
            stream.windows_end -= 1;
        }
    }

    /// Memory that they take beyond that of the first few, which each file is charged for when it is opened.
    pub(crate) fn bytes(&self) -> i64 {
        let more = self.all.capacity().saturating_sub(STREAMS_MIN);
        (more * size_of::<Stream>()) as i64
    }

    /// Those that go forward.
    pub fn forward(&self) -> impl Iterator<Item = StreamAhead> + '_ {
        let forward = |s: &&Stream| s.direction == Direction::Forward;
        self.all.iter().filter(forward).map(|s| StreamAhead {
            start: Block(s.start),
            position: s.touched,
            end: s.end(),
            used: s.used,
        })
    }

    /// The memory allowed only the blocks before `end` of the window at `start`. Of one that is
    /// read backward that is the far part: nothing is ahead of its reader.
    pub(crate) fn cut(&mut self, start: Block, end: Block) {
        if let Some(stream) = self.at_mut(start) {
            let end = match stream.direction {
                Direction::Forward => end.0.into(),
                Direction::Backward => 0,
            };
            stream.windows_end = stream.windows_end.min(end);
        }
    }

    /// A block is missing: nothing is ahead of its reader any more, whatever was fetched.
    pub(crate) fn lost(&mut self, block: Block) {
        if let Some(stream) = self.at_mut(block) {
            stream.windows_end = stream.direction.position(block).into();
            stream.touched = stream.touched.min(stream.windows_end);
        }
    }

    /// The runs of blocks ahead of the reader.
    pub(crate) fn ahead(&self) -> Vec<(Block, u32)> {
        let ahead = self.all.iter().filter(|s| s.ahead() > 0);
        ahead
            .filter_map(|s| {
                let nearest = match s.direction {
                    Direction::Forward => s.touched,
                    Direction::Backward => s.windows_end.checked_sub(1)?,
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
        self.all = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_where_its_last_block_was_given_up() {
        let mut streams = Streams::default();
        streams
            .continued(Block(10), Direction::Forward, Nanos(0))
            .windows_end = 20;
        let end = |streams: &Streams| streams.at(Block(10)).unwrap().end();
        streams.shorten(Block(10), Block(19));
        assert_eq!(end(&streams), 19);
        // The block before is in flight: the blocks behind it are still to come.
        streams.shorten(Block(10), Block(17));
        assert_eq!(end(&streams), 19);
        streams.shorten(Block(11), Block(18));
        assert_eq!(end(&streams), 19, "another stream");
    }

    /// A stream of blocks 10 to 20 that was read up to 14.
    fn read_to_14(streams: &mut Streams) {
        streams
            .continued(Block(10), Direction::Forward, Nanos(1))
            .windows_end = 20;
        streams.advance(Block(10), 4, Nanos(2));
    }

    #[test]
    fn a_stream_covers_the_blocks_from_its_begin_to_the_one_behind_its_end() {
        let mut streams = Streams::default();
        read_to_14(&mut streams);
        let covered = (0..30).filter(|block| streams.at(Block(*block)).is_some());
        assert_eq!(covered.collect::<Vec<_>>(), (10..=20).collect::<Vec<_>>());
        let stream = *streams.at(Block(20)).unwrap();
        assert_eq!((stream.consumed(), stream.ahead()), (4, 6));
        assert_eq!(stream.next_block(), Some(Block(20)));
    }

    #[test]
    fn of_two_streams_that_cover_a_block_the_younger_has_it() {
        let mut streams = Streams::default();
        streams
            .continued(Block(0), Direction::Forward, Nanos(1))
            .windows_end = 4;
        streams
            .continued(Block(8), Direction::Forward, Nanos(2))
            .windows_end = 12;
        streams.at_mut(Block(0)).unwrap().windows_end = 10;
        assert_eq!(streams.at(Block(9)).unwrap().start, 8);
        assert_eq!(streams.at_mut(Block(9)).unwrap().start, 8);
        let continued = streams.continued(Block(9), Direction::Forward, Nanos(3));
        assert_eq!(continued.start, 8);
    }

    #[test]
    fn a_read_moves_its_stream_on_and_never_back() {
        let mut streams = Streams::default();
        read_to_14(&mut streams);
        // A block read again.
        assert_eq!(streams.advance(Block(11), 1, Nanos(3)), Some(Block(10)));
        let at = |streams: &Streams| {
            let stream = streams.at(Block(10)).unwrap();
            (stream.touched, stream.end(), stream.used)
        };
        assert_eq!(at(&streams), (14, 20, Nanos(3)));
        // Beyond all that was fetched.
        assert_eq!(streams.advance(Block(19), 4, Nanos(4)), Some(Block(10)));
        assert_eq!(at(&streams), (23, 23, Nanos(4)));
        assert_eq!(streams.advance(Block(25), 1, Nanos(5)), None);
    }

    #[test]
    fn a_stream_that_is_read_backward_is_found_by_the_last_block_of_a_read() {
        let mut streams = Streams::default();
        let direction = Direction::Backward;
        let stream = streams.continued(Block(99), direction, Nanos(1));
        stream.windows_end += 10;
        // Blocks 99 to 96.
        assert_eq!(streams.advance(Block(99), 1, Nanos(2)), None);
        assert_eq!(streams.advance(Block(96), 3, Nanos(3)), None);
        let stream = *streams.of_read(Block(88), 3).unwrap();
        assert_eq!((stream.consumed(), stream.ahead()), (4, 6));
        assert_eq!(stream.next_block(), Some(Block(89)));
        assert_eq!(streams.ahead(), [(Block(90), 6)]);
        assert!(streams.of_read(Block(87), 2).is_none());
        assert_eq!(streams.forward().count(), 0);
        // A stream upward is not come to from the end of a read.
        streams.continued(Block(40), Direction::Forward, Nanos(4));
        assert!(streams.of_read(Block(38), 3).is_none());
        // The part of the window that memory allows is the one furthest from its reader.
        streams.cut(Block(95), Block(93));
        assert_eq!(streams.active(), 0);
    }

    #[test]
    fn a_window_cut_short_and_a_missing_block_leave_less_ahead() {
        let mut streams = Streams::default();
        read_to_14(&mut streams);
        streams.cut(Block(14), Block(18));
        assert_eq!(streams.ahead(), [(Block(14), 4)]);
        streams.cut(Block(14), Block(19));
        assert_eq!(streams.ahead(), [(Block(14), 4)], "not made longer");
        streams.cut(Block(14), Block(12));
        assert_eq!(streams.ahead(), []);
        streams.at_mut(Block(14)).unwrap().windows_end = 20;
        streams.lost(Block(12));
        let stream = streams.at(Block(10)).unwrap();
        assert_eq!((stream.touched, stream.end()), (12, 12));
        let [ahead] = streams.forward().collect::<Vec<_>>()[..] else {
            panic!("one stream");
        };
        assert_eq!(
            (ahead.start, ahead.position, ahead.end),
            (Block(10), 12, 12)
        );
    }

    #[test]
    fn the_least_recently_used_of_64_streams_gives_way() {
        let mut streams = Streams::default();
        let block = |number: usize| Block(100 * number as u32);
        for number in 0..STREAMS_MAX {
            streams.continued(block(number), Direction::Forward, Nanos(number as u64));
        }
        streams.advance(block(0), 1, Nanos(1000));
        assert_eq!(streams.by_use().len(), 64);
        streams.continued(block(STREAMS_MAX), Direction::Forward, Nanos(1001));
        let starts = streams.by_use();
        let starts: Vec<u32> = starts.iter().map(|stream| stream.start).collect();
        assert_eq!((starts.len(), starts[0], starts[62]), (64, 200, 0));
        assert!(streams.at(block(1)).is_none());
        // One of another direction is another stream.
        streams.continued(block(2), Direction::Backward, Nanos(1002));
        assert_eq!(streams.by_use()[63].direction, Direction::Backward);
        assert_eq!(streams.by_use()[0].start, 300);
    }
}
