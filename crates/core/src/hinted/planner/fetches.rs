//! Fetches: which are started now, and what comes of them.
//!
//! Called by the [planner](super): for a round of decisions when nothing else is left to say, and
//! for every fetch that ends. In a round the [policy](crate::hinted::policy) names one pair after
//! the other, what to fetch and what to give up; each is started before the next question. A pair
//! that makes no sense, and one beyond what may be prefetched, ends the round.
//!
//! A failed fetch is not tried again for the same reference unless a reader asks for it.

use super::Planner;
use crate::hinted::board::Pair;
use crate::hinted::interface::{BlockNo, PlannerOutput};
use crate::units::Nanos;

impl Planner {
    /// Lets the policy start what it wants to start now. Each start puts one more frame to work,
    /// so this ends after K of them at the latest.
    pub(super) fn plan(&mut self) {
        self.policy.begin(&self.board);
        while self.may_start()
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

    /// Whether one more prefetch is allowed, or somebody waits.
    fn may_start(&self) -> bool {
        !self.is_full() || self.board.awaited().is_some()
    }

    /// Whether as much is prefetched and not read as is allowed.
    fn is_full(&self) -> bool {
        self.unread.count() >= self.allowance
    }

    fn start(&mut self, pair: Pair) -> Option<()> {
        let Pair { fetch, evict } = pair;
        let demand = self.board.is_awaited(fetch);
        let disk = self.board.start(pair)?;
        if let Some(victim) = evict {
            self.unread.remove(victim);
            self.policy.evicted(victim);
        }
        if !demand {
            self.unread.add(fetch);
        }
        self.out.push_back(PlannerOutput::Fetch {
            block: fetch,
            disk,
            evict,
            demand,
        });
        Some(())
    }

    /// A fetch ended well.
    pub(super) fn arrive(&mut self, block: BlockNo, service: Nanos) -> Option<()> {
        let disk = self.board.arrive(block)?;
        self.policy.fetched(disk, service);
        self.settle(block);
        Some(())
    }

    /// What a fetch was to bring is there already.
    pub(super) fn find(&mut self, block: BlockNo) -> Option<()> {
        self.board.arrive(block)?;
        self.settle(block);
        Some(())
    }

    /// A block that was on its way is resident now.
    fn settle(&mut self, block: BlockNo) {
        self.policy.arrived(&self.board, block);
        self.stale = true;
    }

    /// A fetch ended with nothing usable.
    pub(super) fn fail(&mut self, block: BlockNo) -> Option<()> {
        self.board.fail(block)?;
        self.unread.remove(block);
        self.stale = true;
        Some(())
    }
}
