//! Streams: runs of blocks fetched ahead for one reader, in file order.
//!
//! Kept by the engine for every open file; read by the depth stage (how far has this run come,
//! did its reader wait) and by the admission (how much is ahead of the reader, what is its
//! share). A stream is three positions, and everything else is derived from them:
//!
//! ```text
//!   start            touched                      end
//!     |== consumed ====|---------- ahead -----------|
//! ```
//!
//! It does not know which of its blocks are still resident: reclaim takes blocks without asking.

use alloc::vec::Vec;

use crate::units::{Block, Nanos};

/// Streams remembered for one open file. Interleaved readers on one open file (a database, a
/// network file server) rarely exceed some dozens; the least recently used gives way.
pub(crate) const STREAMS_MAX: usize = 64;

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stream {
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
    /// How often the device had run idle when the last window was issued.
    pub(crate) idle_seen: u64,
    /// Steady windows keep `size >> lean` blocks behind the mark.
    pub(crate) lean: u8,
    /// When it was last used, for replacement.
    pub(crate) used: Nanos,
}

impl Stream {
    pub(crate) fn new(start: Block, now: Nanos) -> Self {
        Self {
            start: start.0,
            touched: u64::from(start.0),
            end: u64::from(start.0),
            last_window: 0,
            last_async: 0,
            waited: false,
            idle_seen: 0,
            lean: 0,
            used: now,
        }
    }

    /// Blocks accessed since it began.
    pub(crate) fn consumed(&self) -> u64 {
        self.touched - u64::from(self.start)
    }

    /// Blocks fetched or on the way that its reader has not come to.
    pub(crate) fn ahead(&self) -> u64 {
        self.end.saturating_sub(self.touched)
    }

    /// Whether `block` continues this run.
    fn covers(&self, block: Block) -> bool {
        block.0 >= self.start && u64::from(block.0) <= self.end
    }
}

/// The streams of one open file.
#[derive(Debug, Default)]
pub(crate) struct Streams(Vec<Stream>);

impl Streams {
    /// The stream that `block` continues.
    pub(crate) fn at(&self, block: Block) -> Option<&Stream> {
        self.0.iter().rev().find(|s| s.covers(block))
    }

    /// The stream that `block` continues, to be changed.
    pub(crate) fn at_mut(&mut self, block: Block) -> Option<&mut Stream> {
        self.0.iter_mut().rev().find(|s| s.covers(block))
    }

    /// The stream that `block` continues, or a new one that begins there; in the latter case the
    /// least recently used one gives way if there are too many.
    pub(crate) fn at_or_begin(&mut self, block: Block, now: Nanos) -> &mut Stream {
        let at = match self.0.iter().rposition(|s| s.covers(block)) {
            Some(at) => at,
            None => {
                if self.0.len() == STREAMS_MAX {
                    let oldest = (0..self.0.len())
                        .min_by_key(|&i| self.0[i].used)
                        .unwrap_or(0);
                    self.0.remove(oldest);
                }
                self.0.push(Stream::new(block, now));
                self.0.len() - 1
            }
        };
        &mut self.0[at]
    }

    /// Blocks were accessed: the stream they belong to moves on.
    pub(crate) fn advance(&mut self, first: Block, count: u32, now: Nanos) {
        if let Some(stream) = self.at_mut(first) {
            stream.touched = stream.touched.max(u64::from(first.0) + u64::from(count));
            stream.end = stream.end.max(stream.touched);
            stream.used = now;
        }
    }

    /// The memory allowed only the blocks before `end` of the window at `start`.
    pub(crate) fn cut(&mut self, start: Block, end: Block) {
        if let Some(stream) = self.at_mut(start) {
            stream.end = stream.end.min(u64::from(end.0)).max(stream.touched);
        }
    }

    /// A block is missing: nothing is ahead of its reader any more, whatever was fetched.
    pub(crate) fn lost(&mut self, block: Block) {
        if let Some(stream) = self.at_mut(block) {
            stream.end = u64::from(block.0);
            stream.touched = stream.touched.min(stream.end);
        }
    }

    /// The runs of blocks ahead of the reader.
    pub(crate) fn ahead(&self) -> Vec<(Block, u32)> {
        let ahead = self.0.iter().filter(|s| s.ahead() > 0);
        ahead
            .filter_map(|s| {
                Some((
                    Block(u32::try_from(s.touched).ok()?),
                    u32::try_from(s.ahead()).ok()?,
                ))
            })
            .collect()
    }

    /// All of them, the least recently used first.
    pub(crate) fn by_use(&self) -> Vec<Stream> {
        let mut streams = self.0.clone();
        streams.sort_by_key(|stream| stream.used);
        streams
    }

    /// How many have blocks ahead of their reader.
    pub(crate) fn active(&self) -> usize {
        self.0.iter().filter(|s| s.ahead() > 0).count()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
