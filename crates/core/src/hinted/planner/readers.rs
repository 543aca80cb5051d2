//! Readers: the one that takes blocks in turn, or any number that take them out of turn.
//!
//! Called by the [planner](super) for inputs about reads. A driver has one reader in turn, which
//! stands at the cursor when it asks, is served there, and moves the cursor when it takes its
//! block:
//!
//! ```text
//! Away --Wanted--> Waiting --serve--> Holding --Taken--> Away
//!                     `----------Taken: goes on without--^
//! ```
//!
//! Or its readers ask anywhere, and it serves them itself: then the reader in turn is always away.
//! What is fetched for whom is decided elsewhere, after every input.

use super::{Planner, Reader};
use crate::hinted::protocol::{BlockNo, Output, Position};
use crate::units::Nanos;

impl Planner {
    /// The reader stands at the cursor and asks for its block.
    pub(super) fn want(&mut self, now: Nanos, compute: Nanos) -> Option<()> {
        let block = self.board.block_at(self.board.cursor())?;
        self.is_away().then_some(())?;
        self.policy.computed(compute);
        self.account.asked(&self.board, block);
        self.reader = Reader::Waiting(now);
        if self.board.is_resident(block) {
            self.serve(now, block);
        } else {
            self.board.wait_for(block);
            self.stale = true;
        }
        Some(())
    }

    /// The reader gets the block at the cursor.
    pub(super) fn serve(&mut self, now: Nanos, block: BlockNo) {
        if let Reader::Waiting(since) = self.reader {
            self.account.waited(now.since(since));
        }
        self.reader = Reader::Holding;
        self.board.hold();
        let position = self.board.cursor();
        self.out.push_back(Output::Serve { position, block });
    }

    /// The reader goes on, with the block or without.
    pub(super) fn take(&mut self) -> Option<()> {
        let block = self.board.advance()?;
        self.reader = Reader::Away;
        if self.board.is_resident(block) {
            self.taken(block);
        }
        self.stale = true;
        Some(())
    }

    /// A resident block was read.
    fn taken(&mut self, block: BlockNo) {
        self.account.used(block);
        self.policy.taken(&self.board, block);
    }

    /// Out of turn, a reader asks for a block's next use.
    pub(super) fn ask(&mut self, block: BlockNo, compute: Nanos) -> Option<()> {
        if !self.is_away() || self.board.next_use(block) == Position::NEVER {
            return None;
        }
        self.policy.computed(compute);
        self.board.come_to(block);
        self.account.asked(&self.board, block);
        if !self.board.is_resident(block) && !self.board.is_in_flight(block) {
            self.board.wait_for(block);
        }
        self.stale = true;
        Some(())
    }

    /// Out of turn, a block's next use is over, or under way if it is read.
    pub(super) fn pass(&mut self, block: BlockNo, read: bool) -> Option<()> {
        self.is_away().then(|| self.board.pass(block))??;
        if read && self.board.is_resident(block) {
            self.taken(block);
        } else if read {
            self.account.claimed(block);
        }
        self.stale = true;
        Some(())
    }

    /// Out of turn, a reader has a block in hand, or no longer.
    pub(super) fn keep(&mut self, block: BlockNo, kept: bool) -> Option<()> {
        self.is_away().then(|| self.board.keep(block, kept))??;
        self.stale |= !kept;
        Some(())
    }

    /// Nothing uses a block any more.
    pub(super) fn forget(&mut self, block: BlockNo) -> Option<()> {
        if self.is_away().then(|| self.board.forget(block))?? {
            self.account.evicted(block);
            self.policy.evicted(block);
        }
        self.stale = true;
        Some(())
    }

    /// Whether the reader stands nowhere in the order: only then may one read out of turn.
    pub(super) fn is_away(&self) -> bool {
        matches!(self.reader, Reader::Away)
    }

    /// Whether the reader waits for this block.
    pub(super) fn is_awaited(&self, block: BlockNo) -> bool {
        matches!(self.reader, Reader::Waiting(_))
            && self.board.block_at(self.board.cursor()) == Some(block)
    }
}
