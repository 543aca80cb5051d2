//! The hit path: bytes of resident blocks, without a lock, an allocation or a system call.
//!
//! Called by readers for the next blocks of a read, until one is not a plain hit. A block is
//! looked up, [announced](crate::hazard), looked at again, and copied; reports (the
//! first touch of an armed block) are queued beside the engine's lock, runs joined.
//!
//! It does not wait and does not decide anything: whatever is not plain is the engine's.

use std::ops::Range;

use forerun_core::table::{Found, Frame, Table, flag};
use forerun_core::{Block, FileId, ReaderId};

use crate::deferred_inputs::DeferredInput;
use crate::engine_host::EngineHost;
use crate::hazard::Announcer;
use crate::span::Span;
use crate::threads;

/// With any of these a hit enters the engine; armed blocks are only reported.
pub(crate) const NOT_HERE: u8 = flag::FILLING | flag::MARK | flag::VACANT;

/// See the [module](self).
pub(crate) struct Hits<'a> {
    engine_host: &'a EngineHost,
    table: &'a Table,
    file: FileId,
    reader: ReaderId,
    /// First touches not queued yet: first block and count.
    touched: (Block, u32),
    pub(crate) guess: Guess,
}

/// Where the next block probably lies: as far from its number as the last one. Files come into
/// memory in runs, so it often does, and a right guess saves the walk through the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Guess {
    /// Frame number less block number.
    lead: u32,
    /// Whether the last guess was right. Only then are the bytes called for before the frame was
    /// looked at: where guesses fail, that would double the traffic.
    sure: bool,
}

impl Guess {
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            lead: bits as u32,
            sure: bits >> 32 != 0,
        }
    }

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.lead) | u64::from(self.sure) << 32
    }
}

impl<'a> Hits<'a> {
    pub(crate) fn new(
        engine_host: &'a EngineHost,
        file: FileId,
        reader: ReaderId,
        guess: Guess,
    ) -> Self {
        Self {
            engine_host,
            table: &engine_host.table,
            file,
            reader,
            touched: (Block(0), 0),
            guess,
        }
    }

    /// Takes plain hits from the front of the span; how many there were.
    pub(crate) fn take(&mut self, span: &mut Span<'_>) -> u64 {
        let Some(announcer) = threads::announcer() else {
            return 0;
        };
        let before = span.left;
        while span.left > 0 {
            let (at, previous) = (span.at, span.previous);
            let (from, into) = span.piece();
            if !self.take_one(announcer, at, previous, from, into) {
                break;
            }
            span.advance();
        }
        self.queue_touched();
        u64::from(before - span.left)
    }

    /// Takes bytes of one block alone.
    #[inline]
    pub(crate) fn take_single(
        &mut self,
        block: Block,
        previous: Option<Block>,
        from: usize,
        into: &mut [u8],
    ) -> bool {
        let taken = threads::announcer()
            .is_some_and(|announcer| self.take_one(announcer, block, previous, from, into));
        if self.touched.1 > 0 {
            self.queue_touched();
        }
        taken
    }

    /// Takes the bytes of one block, from byte `from` of it on, if it is the one wanted and here.
    #[inline(always)]
    fn take_one(
        &mut self,
        announcer: Announcer<'_>,
        block: Block,
        previous: Option<Block>,
        from: usize,
        into: &mut [u8],
    ) -> bool {
        let Some(found) = self.locate(block, from..from + into.len()) else {
            return false;
        };
        if found.flags & NOT_HERE != 0 {
            return false;
        }
        let still = || self.table.still(found.frame, self.file, block);
        let Some(hazard) = announcer.hold(self.engine_host.domain, found.frame, still) else {
            return false;
        };
        // SAFETY: the frame held the block after the hazard was announced, so a fetch that fills it
        // anew waits until the hazard is lifted, below.
        unsafe { self.engine_host.arena.copy_out(found.frame, from, into) };
        let armed = found.flags & flag::ARMED != 0;
        let first_touch = armed && previous != Some(block) && self.table.disarm(found.frame);
        drop(hazard);
        if first_touch {
            self.touch(block);
        }
        true
    }

    /// Where the block lies, if it is resident. `bytes` are those wanted of it.
    #[inline(always)]
    fn locate(&mut self, block: Block, bytes: Range<usize>) -> Option<Found> {
        let frame = Frame(block.0.wrapping_add(self.guess.lead));
        if frame.0 < self.table.frames() {
            if self.guess.sure {
                self.engine_host.arena.call_for(frame, bytes);
            }
            if self.table.still(frame, self.file, block) {
                self.guess.sure = true;
                let flags = self.table.flags(frame);
                return Some(Found { frame, flags });
            }
        }
        let found = self.table.find(self.file, block)?;
        let lead = found.frame.0.wrapping_sub(block.0);
        self.guess = Guess { lead, sure: false };
        Some(found)
    }

    /// Notes a first touch.
    #[cold]
    fn touch(&mut self, block: Block) {
        let (first, count) = self.touched;
        if count > 0 && u64::from(first.0) + u64::from(count) == u64::from(block.0) {
            self.touched.1 += 1;
            return;
        }
        self.queue_touched();
        self.touched = (block, 1);
    }

    fn queue_touched(&mut self) {
        let (first, count) = std::mem::take(&mut self.touched);
        if count > 0 {
            self.engine_host.queue(DeferredInput::Touch {
                reader: self.reader,
                first,
                count,
            });
        }
    }
}
