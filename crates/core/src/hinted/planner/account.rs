//! The account: what became of each fetch and each read, and which prefetched blocks are unread.
//!
//! Kept by the [planner](super), which says what happens to a block; the [ledger](Ledger) follows.
//! A prefetched block is *unread* from the start of its fetch until it was read, given up or lost:
//!
//! ```text
//! started --> in_flight --arrived--> resident_unused --used--> used
//!                 |  `---claimed----------------------------->
//!                 `--failed--> failed    `--evicted--> evicted_unused
//! ```
//!
//! So the ledger adds up by construction. Blocks that a reader waited for are not in it.

use alloc::vec::Vec;

use crate::hinted::board::Board;
use crate::hinted::ledger::Ledger;
use crate::hinted::protocol::BlockNo;
use crate::units::Nanos;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Account {
    ledger: Ledger,
    /// By block, whether it is on its way or resident, was prefetched and not taken yet.
    unread: Vec<bool>,
}

impl Account {
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Blocks prefetched and not read, wherever they are.
    pub(super) fn ahead(&self) -> u64 {
        self.ledger.in_flight + self.ledger.resident_unused
    }

    /// A reader asks for a block.
    pub(super) fn asked(&mut self, board: &Board, block: BlockNo) {
        let ledger = &mut self.ledger;
        ledger.reads += 1;
        *if board.is_resident(block) {
            &mut ledger.hits
        } else if board.is_in_flight(block) {
            &mut ledger.late_hits
        } else {
            &mut ledger.misses
        } += 1;
    }

    /// A reader was served after so long.
    pub(super) fn waited(&mut self, time: Nanos) {
        self.ledger.waited = Nanos(self.ledger.waited.0.saturating_add(time.0));
    }

    /// A fetch starts, for a reader that waits or ahead of all.
    pub(super) fn started(&mut self, block: BlockNo, demand: bool) {
        self.ledger.fetches += 1;
        if demand {
            self.ledger.demand += 1;
        } else {
            self.ledger.prefetched += 1;
            self.ledger.in_flight += 1;
            self.set_unread(block);
        }
    }

    /// A block that was on its way is resident.
    pub(super) fn arrived(&mut self, block: BlockNo) {
        if self.unread.get(block.0 as usize) == Some(&true) {
            self.ledger.in_flight -= 1;
            self.ledger.resident_unused += 1;
        }
    }

    /// A resident block was read.
    pub(super) fn used(&mut self, block: BlockNo) {
        if self.forget(block) {
            self.ledger.resident_unused -= 1;
            self.ledger.used += 1;
        }
    }

    /// A block on its way, if it is, comes for a reader that is here already.
    pub(super) fn claimed(&mut self, block: BlockNo) {
        if self.forget(block) {
            self.ledger.in_flight -= 1;
            self.ledger.used += 1;
        }
    }

    /// A resident block goes, perhaps unread.
    pub(super) fn evicted(&mut self, block: BlockNo) {
        if self.forget(block) {
            self.ledger.resident_unused -= 1;
            self.ledger.evicted_unused += 1;
        }
    }

    /// A fetch failed: whether it was a prefetch that nobody had claimed.
    pub(super) fn failed(&mut self, block: BlockNo) -> bool {
        let was_unread = self.forget(block);
        if was_unread {
            self.ledger.in_flight -= 1;
            self.ledger.failed += 1;
        }
        was_unread
    }

    pub(super) fn refused_input(&mut self) {
        self.ledger.refused_inputs += 1;
    }

    pub(super) fn refused_pair(&mut self) {
        self.ledger.refused_pairs += 1;
    }

    fn set_unread(&mut self, block: BlockNo) {
        let at = block.0 as usize;
        if at >= self.unread.len() {
            self.unread.resize(at + 1, false);
        }
        self.unread[at] = true;
    }

    /// Whether a block was unread; it is not now.
    fn forget(&mut self, block: BlockNo) -> bool {
        let unread = self.unread.get_mut(block.0 as usize);
        unread.is_some_and(core::mem::take)
    }
}
