//! Readers: what they ask for, what they have in hand, and what is over.
//!
//! Called by the [planner](super) for inputs about reads. Readers ask anywhere in the order, in any
//! number, and their driver serves them itself:
//!
//! ```text
//! Kept --> Asked --> [round: its fetch starts, or not] --> served --> Passed --> Kept no longer
//! ```
//!
//! What is fetched for whom is decided elsewhere, in rounds.

use super::Planner;
use crate::hinted::interface::BlockNo;
use crate::units::Nanos;

impl Planner {
    /// A reader asks for a block's next use.
    pub(super) fn ask(&mut self, block: BlockNo, compute: Nanos) -> Option<()> {
        self.board.ask(block)?;
        self.policy.computed(compute);
        self.stale = true;
        Some(())
    }

    /// A block's next use is over, or under way if it is read.
    pub(super) fn pass(&mut self, block: BlockNo, read: bool) -> Option<()> {
        self.board.pass(block)?;
        if read {
            self.unread.remove(block);
        }
        if read && self.board.is_resident(block) {
            self.policy.taken(&self.board, block);
        }
        self.stale = true;
        Some(())
    }

    /// A reader has a block in hand, or no longer.
    pub(super) fn keep(&mut self, block: BlockNo, kept: bool) -> Option<()> {
        self.board.keep(block, kept)?;
        self.stale |= !kept;
        Some(())
    }

    /// Nothing uses a block any more.
    pub(super) fn forget(&mut self, block: BlockNo) -> Option<()> {
        if self.board.forget(block)? {
            self.unread.remove(block);
            self.policy.evicted(block);
        }
        self.stale = true;
        Some(())
    }
}
