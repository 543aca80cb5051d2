//! Counters of a hinted run, which add up. At every moment
//!
//! ```text
//! reads      = hits + late_hits + misses
//! fetches    = demand + prefetched
//! prefetched = used + evicted_unused + failed + resident_unused + in_flight
//! ```
//!
//! A prefetched block is *unread* from the start of its fetch until it was read or given up:
//!
//! ```text
//! started --> in_flight --arrived--> resident_unused --read--> used
//!                                         `--evicted--> evicted_unused
//! ```

use forerun_core::hinted::{BlockNo, Board};

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// References the reader asked for.
    pub reads: u64,
    /// Resident when asked for.
    pub hits: u64,
    /// In flight when asked for.
    pub late_hits: u64,
    /// Neither.
    pub misses: u64,
    /// Fetches started.
    pub fetches: u64,
    /// Of these, the ones the reader waited for when they started.
    pub demand: u64,
    /// The others.
    pub prefetched: u64,
    /// Prefetched and then read.
    pub used: u64,
    /// Prefetched and given up unread.
    pub evicted_unused: u64,
    /// Prefetched, and the fetch failed.
    pub failed: u64,
    /// By number of the block.
    unread: Vec<bool>,
}

impl Ledger {
    /// The reader asks for a block.
    pub(super) fn asked(&mut self, board: &Board, block: BlockNo) {
        self.reads += 1;
        *if board.is_resident(block) {
            &mut self.hits
        } else if board.is_in_flight(block) {
            &mut self.late_hits
        } else {
            &mut self.misses
        } += 1;
    }

    /// A fetch starts, for the reader that waits or ahead of it, in place of another block.
    pub(super) fn started(&mut self, block: BlockNo, evict: Option<BlockNo>, demand: bool) {
        self.fetches += 1;
        self.given_up(evict);
        if demand {
            self.demand += 1;
        } else {
            self.prefetched += 1;
            self.set_unread(block);
        }
    }

    /// A block was given up.
    pub(super) fn given_up(&mut self, victim: Option<BlockNo>) {
        self.evicted_unused += u64::from(victim.is_some_and(|victim| self.take_unread(victim)));
    }

    /// A block was read.
    pub(super) fn read(&mut self, block: BlockNo) {
        self.used += u64::from(self.take_unread(block));
    }

    /// The fetch of a block failed.
    pub(super) fn lost(&mut self, block: BlockNo) {
        self.failed += u64::from(self.take_unread(block));
    }

    /// The reader fetches a block itself.
    pub(super) fn fetched_alone(&mut self) {
        self.fetches += 1;
        self.demand += 1;
    }

    fn set_unread(&mut self, block: BlockNo) {
        let at = block.0 as usize;
        if self.unread.len() <= at {
            self.unread.resize(at + 1, false);
        }
        self.unread[at] = true;
    }

    /// Whether it was unread; it is no longer.
    fn take_unread(&mut self, block: BlockNo) -> bool {
        let unread = self.unread.get_mut(block.0 as usize);
        unread.is_some_and(std::mem::take)
    }

    /// Blocks prefetched and neither read nor given up.
    fn unread(&self) -> u64 {
        self.unread.iter().filter(|unread| **unread).count() as u64
    }

    /// Whether everything adds up.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        self.reads == self.hits + self.late_hits + self.misses
            && self.fetches == self.demand + self.prefetched
            && self.prefetched == self.used + self.evicted_unused + self.failed + self.unread()
    }
}
