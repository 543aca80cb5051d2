//! Hints: the order of reads was announced, and the plan decides instead of the detector.
//!
//! Here hints come in: a [plan](crate::plan) begins with the first, is charged for its memory,
//! and ends when nothing of it is known any more or the memory is needed. The effect of reads
//! stands in `hint/take.rs`, its requests in `hint/carry.rs`; the choice of fetches, when and
//! for which victim says the [planner](crate::hinted) behind it.
//!
//! ```text
//! Hint --> plan <-- take, leave (reads; the first block of a piece carries the mark)
//!           |  ^
//!     Fetch v  | found, started, ended
//!         frames held by the plan --> requests behind those that readers wait for
//! ```
//!
//! A round of decisions follows every [`Input::Decide`](crate::Input::Decide), every read of
//! missing blocks, and every list of hints.
//!
//! Three quarters of the memory at most are the plan's, outside the order of reclaim; the rest
//! serves unannounced reads, the ordinary way.

mod carry;
mod take;

use alloc::boxed::Box;

use super::Engine;
use crate::budget::Shares;
use crate::plan::{HINT_BYTES, Plan};
use crate::reclaim::Event;
use crate::units::{Block, Extent, FileId, ReaderId, saturate};

/// References are refused when their bookkeeping would take more than this part of the memory.
const HINTS_PART: u64 = 8;

impl Engine {
    /// Whether there is room for a hint of so many blocks; none if neither a policy nor the reclaim
    /// method follows hints.
    #[must_use]
    pub fn takes_hint(&self, blocks: u32) -> Option<bool> {
        if self.setup.settings.hinted.is_none() {
            return self.memory.takes_hint(self.hints_max());
        }
        let plan = self.producers.plan.as_ref();
        let plan = plan.filter(|plan| !self.is_outgrown(plan, blocks));
        let (unit, room) = match plan {
            Some(plan) => (plan.unit, plan.room()),
            None => (self.unit_for(blocks), self.hints_max()),
        };
        Some(blocks.div_ceil(unit) <= room)
    }

    /// Most references a plan of this engine takes: in a part of the memory.
    #[must_use]
    pub fn hints_max(&self) -> u32 {
        let memory = self.setup.settings.memory.0;
        let fit = memory / HINTS_PART / HINT_BYTES.unsigned_abs();
        saturate(fit).min(Plan::HINTS_MAX)
    }

    /// A reader will read these blocks next after the blocks hinted before. The last hint ends its
    /// list even if it is refused: nothing would be decided any more if the list stayed open.
    pub(super) fn hint(
        &mut self,
        reader: ReaderId,
        first: Block,
        count: u32,
        more: bool,
    ) -> Option<()> {
        let accepted = self.append_hint(reader, first, count, more);
        if let Some(plan) = &mut self.producers.plan {
            plan.set_unfinished(more);
            self.carry_out_plan(None);
        }
        accepted
    }

    fn append_hint(
        &mut self,
        reader: ReaderId,
        first: Block,
        count: u32,
        more: bool,
    ) -> Option<()> {
        let file = self.readers.reader(reader)?.file;
        let state = self.readers.file(file)?;
        let left = state.blocks.checked_sub(u64::from(first.0))?;
        let exist = saturate(left).min(count);
        if self.setup.settings.hinted.is_none() {
            let Some(has_room) = self.memory.takes_hint(self.hints_max()) else {
                return Some(());
            };
            if exist == 0 && count > 0 {
                return None;
            }
            let count = exist;
            let extent = Extent { file, first, count };
            self.memory.tell(Event::Hint {
                owner: reader,
                extent,
                more,
                has_room,
            });
            return (has_room || count == 0).then_some(());
        }
        match exist {
            0 => (count == 0).then_some(()),
            count => self.append_run(Extent { file, first, count }),
        }
    }

    /// A run of blocks comes next in the order. None if there is no room for it.
    fn append_run(&mut self, extent: Extent) -> Option<()> {
        self.begin_plan(extent.count)?;
        let plan = self.producers.plan.as_mut()?;
        let pieces = extent.count.div_ceil(plan.unit);
        if pieces > plan.room() {
            return None;
        }
        if pieces > plan.free() {
            plan.compact();
        }
        let accepted = self.append_pieces(extent);
        self.charge_plan();
        accepted
    }

    /// The run, in pieces of at most one request, each within a piece of the file's layout.
    fn append_pieces(&mut self, extent: Extent) -> Option<()> {
        let (mut first, mut left) = (extent.first, extent.count);
        while left > 0 {
            let place = self.place(extent.file, first)?;
            let run = self.run_of(&place);
            let plan = self.producers.plan.as_mut()?;
            let count = left.min(plan.unit).min(run);
            let piece = Extent::new(extent.file, first, count);
            if plan.hint(piece, place.device)? {
                self.ledger.hints += 1;
                self.ledger.hints_open += 1;
            }
            first = Block(first.0.saturating_add(count));
            left -= count;
        }
        Some(())
    }

    /// Charges for the plan's present size.
    fn charge_plan(&mut self) {
        let held = self.memory.holding_bytes();
        let Some(plan) = &mut self.producers.plan else {
            return;
        };
        let bytes = i64::from(plan.entries()) * HINT_BYTES + held;
        self.memory.charge(bytes - plan.charged);
        plan.charged = bytes;
    }

    /// Makes a plan if there is none, or a fresh one for one that is over and in small pieces.
    fn begin_plan(&mut self, first: u32) -> Option<()> {
        let plan = self.producers.plan.as_ref();
        if plan.is_some_and(|plan| self.is_outgrown(plan, first)) {
            self.end_plan();
        }
        if self.producers.plan.is_none() {
            let policy = self.setup.settings.hinted.as_ref()?;
            let (frames, unit) = (self.plan_frames(), self.unit_for(first));
            let plan = Plan::new(policy, frames, unit, self.hints_max());
            self.memory.begin_holding();
            self.producers.plan = Some(Box::new(plan));
            self.charge_plan();
        }
        Some(())
    }

    /// A plan that was read to its end begins anew for hints of longer runs than its pieces are.
    fn is_outgrown(&self, plan: &Plan, first: u32) -> bool {
        plan.is_over() && self.unit_for(first) > plan.unit
    }

    /// The frames of a plan that begins now.
    fn plan_frames(&self) -> u32 {
        Shares::plan_max(self.memory.frames_usable())
    }

    /// The most blocks of a piece if a plan begins now with a hint so long.
    fn unit_for(&self, first: u32) -> u32 {
        let longest = saturate(self.setup.settings.request_max.0 / self.block_bytes());
        Plan::unit_for(self.plan_frames(), first.min(longest))
    }

    /// The plan is over or in the way: its blocks go into the order of reclaim. Whether there
    /// was one.
    pub(super) fn end_plan(&mut self) -> bool {
        let Some(plan) = self.producers.plan.take() else {
            return false;
        };
        self.memory.charge(-plan.charged);
        for id in self
            .queues
            .requests
            .which(|request| request.piece.is_some())
        {
            if let Some(request) = self.queues.requests.get_mut(id) {
                request.piece = None;
            }
        }
        self.ledger.hints_dropped += self.ledger.hints_open;
        self.ledger.hints_open = 0;
        for frame in self.memory.end_holding() {
            self.let_go(frame);
        }
        true
    }

    /// A file changed, or has no reader left: its announced reads do not come.
    pub(super) fn drop_hints(&mut self, file: FileId) {
        let Some(plan) = &mut self.producers.plan else {
            return;
        };
        let (extents, open) = plan.forget(file);
        self.ledger.hints_dropped += open;
        self.ledger.hints_open -= open;
        let called_off = self.queues.requests.which(|request| {
            let is_gone = request
                .piece
                .is_some_and(|piece| plan.pieces.is_gone(piece));
            is_gone && request.sent.is_none() && request.waiters.is_empty()
        });
        let is_empty = plan.is_empty();
        for extent in extents {
            self.let_go_of(extent);
        }
        for request in called_off {
            self.orphan(request);
        }
        if is_empty {
            self.end_plan();
        }
    }
}
