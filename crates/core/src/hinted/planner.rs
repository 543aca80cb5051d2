//! The planner: events come in as calls, fetches and evictions come out of a round.
//!
//! The [plan](crate::plan) and the simulator report everything that happened by a point in time, in
//! any number, then call [`Planner::poll`] until `None`: that is a round of decisions.
//!
//! ```text
//! fetched() fetched() passed() asked()             poll -> a fetch, a fetch .. None
//!    two disks end at once, and the reader goes on       both disks planned together
//! ```
//!
//! So two disks that become free at one instant share out the missing blocks (Kimbrel et al. 1996,
//! section 2.7), and a reader that took its block has left it before the next victim is chosen. A
//! round after every instant is the *first opportunity* rule. There is no call for "a disk became
//! free": a disk is free when everything asked of it has ended.
//!
//! Readers ask anywhere in the order, in any number, and are served elsewhere:
//!
//! ```text
//! kept --> asked --> [round: its fetch starts, or not] --> served --> passed --> kept no longer
//! ```
//!
//! A call that makes no sense answers `None` and changes nothing.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::board::{BlockNo, Board, Hint, Pair};
use super::policy::Policy;
use crate::units::{DeviceId, Nanos};

/// See the [module](self).
#[derive(Debug)]
pub struct Planner {
    board: Board,
    policy: Box<dyn Policy>,
    /// Fetches of this round that were not polled yet.
    started: VecDeque<Started>,
    /// Most blocks prefetched and not read at once.
    allowance: u32,
    /// Something happened since the last decision.
    stale: bool,
}

/// A fetch to start now, in the frame of its victim or in an empty one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Started {
    /// The block to fetch.
    pub block: BlockNo,
    /// The victim, which gives its frame.
    pub evict: Option<BlockNo>,
    /// Whether a reader waits for it.
    pub demand: bool,
}

impl Planner {
    /// A fresh planner that knows no reference yet.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, board: Board) -> Self {
        Self {
            board,
            policy,
            started: VecDeque::new(),
            allowance: u32::MAX,
            stale: false,
        }
    }

    /// Its state of the cache.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// From now on at most so many blocks are prefetched and not read at once; the block a reader
    /// waits for is fetched all the same. No bound at first: it is for drivers that doubt their
    /// hints.
    pub fn allow(&mut self, blocks: u32) {
        self.stale |= blocks > self.allowance;
        self.allowance = blocks;
    }

    /// One more disk: its number, or none if there are [`Board::DISKS_MAX`].
    pub fn add_disk(&mut self) -> Option<DeviceId> {
        self.board.add_disk()
    }

    /// Forgets the references before the cursor, to make room for others: how many. All positions
    /// are smaller by that from now on. Takes time as the references left and all blocks do.
    pub fn compact(&mut self) -> u32 {
        self.policy.hinted();
        self.stale = true;
        self.board.compact()
    }

    /// Whether a block is nowhere and not used any more. It is unknown from now on, and its number
    /// can be given to another.
    pub fn retire(&mut self, block: BlockNo) -> bool {
        self.board.retire(block).is_some()
    }

    /// Whether something happened since the last round.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// This reference follows those known so far.
    pub fn hint(&mut self, hint: Hint) -> Option<()> {
        self.board.hint(hint)?;
        self.policy.hinted();
        self.stale = true;
        Some(())
    }

    /// A reader asks for a block: for its next use, wherever that is in the order. If it is missing
    /// the reader waits for it until its fetch starts, or this use is passed. `compute` is how long
    /// was computed since a block was last asked for.
    pub fn asked(&mut self, block: BlockNo, compute: Nanos) -> Option<()> {
        self.board.ask(block)?;
        self.policy.computed(compute);
        self.stale = true;
        Some(())
    }

    /// The next use of a block is over, or under way as a read that needs no fetch of ours. It was
    /// read, or else passed over.
    pub fn passed(&mut self, block: BlockNo, read: bool) -> Option<()> {
        self.board.pass(block)?;
        if read {
            self.board.settle(block);
        }
        if read && self.board.is_resident(block) {
            self.policy.taken(&self.board, block);
        }
        self.stale = true;
        Some(())
    }

    /// Whether a reader has a block in hand, from now on or no longer: it is not given up meanwhile.
    pub fn kept(&mut self, block: BlockNo, kept: bool) -> Option<()> {
        self.board.keep(block, kept)?;
        self.stale |= !kept;
        Some(())
    }

    /// A block is gone for good: nothing uses it any more, and if it was resident, it is not now.
    /// A fetch of it under way still ends.
    pub fn forgotten(&mut self, block: BlockNo) -> Option<()> {
        if self.board.forget(block)? {
            self.policy.evicted(block);
        }
        self.stale = true;
        Some(())
    }

    /// A fetch ended well. Its disk worked on it for so long, waiting in its queue not counted.
    pub fn fetched(&mut self, block: BlockNo, service: Nanos) -> Option<()> {
        self.found(block)?;
        self.policy.fetched(self.board.disk_of(block)?, service);
        Some(())
    }

    /// The block of a fetch is there already: no disk had to work.
    pub fn found(&mut self, block: BlockNo) -> Option<()> {
        self.board.arrive(block)?;
        self.policy.arrived(&self.board, block);
        self.stale = true;
        Some(())
    }

    /// A fetch ended with nothing usable. It is not tried again for the same reference unless a
    /// reader asks for it.
    pub fn failed(&mut self, block: BlockNo) -> Option<()> {
        self.board.fail(block)?;
        self.stale = true;
        Some(())
    }

    /// The next fetch; `None` once there is nothing left. Between two calls more may be reported.
    pub fn poll(&mut self) -> Option<Started> {
        if self.started.is_empty() && self.stale {
            self.stale = false;
            self.plan();
        }
        self.started.pop_front()
    }

    /// Lets the policy start fetches: it names one pair after the other, and each is started before
    /// the next question. Each start puts one more frame to work, so this ends after K of them at
    /// the latest. A pair that makes no sense, and one beyond the allowance, ends it, too.
    fn plan(&mut self) {
        self.policy.begin(&self.board);
        // One more prefetch is allowed, or a reader waits.
        while (!self.is_full() || self.board.awaited().is_some())
            && let Some(pair) = self.policy.next(&self.board)
        {
            if self.is_full() && !self.board.is_awaited(pair.fetch) {
                return;
            }
            if self.start(pair).is_none() {
                debug_assert!(false, "{pair:?} cannot be started: {:?}", self.policy);
                return;
            }
        }
    }

    /// Whether as much is prefetched and not read as is allowed.
    fn is_full(&self) -> bool {
        self.board.unread() >= self.allowance
    }

    fn start(&mut self, pair: Pair) -> Option<()> {
        let Pair { fetch, evict } = pair;
        let demand = self.board.is_awaited(fetch);
        self.board.start(pair)?;
        if let Some(victim) = evict {
            self.policy.evicted(victim);
        }
        self.started.push_back(Started {
            block: fetch,
            evict,
            demand,
        });
        Some(())
    }
}
