//! The hit path: bytes of resident blocks, without a lock, an allocation or a system call.
//!
//! Called by readers for the next blocks of a read, until one is not a plain hit. A block is
//! looked up, [announced](crate::hazard), looked at again, and copied; what must be reported (the
//! first touch of an armed block) is queued beside the engine's lock, runs joined.
//!
//! It does not wait and does not decide anything: whatever is not plain is the engine's.

use forerun_core::table::{Table, flag};
use forerun_core::{Block, FileId, ReaderId};

use crate::control::Later;
use crate::hazard::{self, Announcer};
use crate::reader::Span;
use crate::shared::Shared;

/// With any of these a hit enters the engine; armed blocks are only reported.
const NOT_HERE: u8 = flag::FILLING | flag::MARK | flag::VACANT;

/// See the [module](self).
pub(crate) struct Hits<'a> {
    shared: &'a Shared,
    table: &'a Table,
    file: FileId,
    reader: ReaderId,
    /// First touches not queued yet: first block and count.
    touched: (Block, u32),
}

impl<'a> Hits<'a> {
    pub(crate) fn new(shared: &'a Shared, file: FileId, reader: ReaderId) -> Self {
        Self {
            shared,
            table: &shared.table,
            file,
            reader,
            touched: (Block(0), 0),
        }
    }

    /// Takes plain hits from the front of the span; how many there were.
    #[inline]
    pub(crate) fn take(mut self, span: &mut Span<'_>) -> u64 {
        let Some(announcer) = hazard::announcer() else {
            return 0;
        };
        let before = span.left;
        while span.left > 0 && self.take_one(announcer, span) {}
        self.queue_touched();
        u64::from(before - span.left)
    }

    #[inline]
    fn take_one(&mut self, announcer: Announcer, span: &mut Span<'_>) -> bool {
        let block = span.at;
        let Some(found) = self.table.find(self.file, block) else {
            return false;
        };
        if found.flags & NOT_HERE != 0 {
            return false;
        }
        let hazard = announcer.announce(self.shared.domain, found.frame);
        if !self.table.still(found.frame, self.file, block) {
            return false;
        }
        let (from, into) = span.piece();
        // SAFETY: the frame held the block after the hazard was announced, so whoever fills it
        // anew waits until the hazard is lifted, below.
        unsafe { self.shared.arena.copy_out(found.frame, from, into) };
        let armed = found.flags & flag::ARMED != 0;
        let again = span.previous == Some(block);
        let first_touch = armed && !again && self.table.disarm(found.frame);
        drop(hazard);
        if first_touch {
            self.touch(block);
        }
        span.advance();
        true
    }

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
            self.shared.queue(Later::Touch {
                reader: self.reader,
                first,
                count,
            });
        }
    }
}
