//! Fetches: which are started now, and what comes of them.
//!
//! Called by the [planner](super): for a round of decisions when nothing else is left to say, and
//! for every fetch that ends. In a round the [policy](crate::hinted::policy) names one pair after
//! the other, what to fetch and what to give up; each is started before the next question. A pair
//! that makes no sense, and one beyond what may be prefetched, ends the round.
//!
//! A failed prefetch is counted, never shown, and not tried again for the same reference unless
//! the reader comes for it. A failed fetch that the reader waits for is shown.

use super::Planner;
use crate::hinted::board::Pair;
use crate::hinted::protocol::{BlockNo, Output};
use crate::units::Nanos;

impl Planner {
    /// Lets the policy start what it wants to start now. Each start puts one more frame to work,
    /// so this ends after K of them at the latest.
    pub(super) fn plan(&mut self) {
        self.policy.begin(&self.board);
        while self.may_start()
            && let Some(pair) = self.policy.next(&self.board)
        {
            if self.is_full() && !self.is_asked_for(pair.fetch) {
                return;
            }
            if self.start(pair).is_none() {
                self.account.refused_pair();
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
        self.account.ahead() >= u64::from(self.allowance)
    }

    /// Whether somebody waits for this block, at the cursor or out of turn.
    fn is_asked_for(&self, block: BlockNo) -> bool {
        let asked = self.board.awaited().and_then(|at| self.board.block_at(at));
        self.is_awaited(block) || asked == Some(block)
    }

    fn start(&mut self, pair: Pair) -> Option<()> {
        let Pair { fetch, evict } = pair;
        let demand = self.is_asked_for(fetch);
        let disk = self.board.start(pair)?;
        if let Some(victim) = evict {
            self.account.evicted(victim);
            self.policy.evicted(victim);
        }
        self.account.started(fetch, demand);
        self.out.push_back(Output::Fetch {
            block: fetch,
            disk,
            evict,
            demand,
        });
        Some(())
    }

    /// A fetch ended well.
    pub(super) fn arrive(&mut self, now: Nanos, block: BlockNo, service: Nanos) -> Option<()> {
        let disk = self.board.arrive(block)?;
        self.policy.fetched(disk, service);
        self.settle(now, block);
        Some(())
    }

    /// What a fetch was to bring is there already.
    pub(super) fn find(&mut self, block: BlockNo) -> Option<()> {
        self.board.arrive(block)?;
        self.settle(Nanos(0), block);
        Some(())
    }

    /// A block that was on its way is resident now.
    fn settle(&mut self, now: Nanos, block: BlockNo) {
        self.policy.arrived(&self.board, block);
        self.account.arrived(block);
        self.stale = true;
        if self.is_awaited(block) {
            self.serve(now, block);
        }
    }

    /// A fetch ended with nothing usable.
    pub(super) fn fail(&mut self, block: BlockNo) -> Option<()> {
        if !self.board.is_in_flight(block) {
            return None;
        }
        let was_prefetch = self.account.failed(block);
        let is_awaited = self.is_awaited(block);
        self.board.fail(block, !(was_prefetch && is_awaited))?;
        if is_awaited && !was_prefetch {
            self.board.wait_for_none();
            let position = self.board.cursor();
            self.out.push_back(Output::Lost { position, block });
        }
        self.stale = true;
        Some(())
    }
}
