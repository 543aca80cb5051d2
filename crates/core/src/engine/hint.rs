//! Hints: the order of reads was announced, and the plan decides instead of the detector.
//!
//! Called for hints, at the beginning of reads, after completions and when files change. What is
//! fetched ahead, when and for which victim says the [planner](crate::hinted) behind the
//! [plan](crate::plan); here its pieces get frames and requests. Three quarters of the memory at
//! most are the plan's, outside the order of reclaim; the rest serves reads nobody announced, the
//! ordinary way.
//!
//! ```text
//! Hint --> plan <-- take, leave (reads; the first block of a piece carries the mark)
//!           |  ^
//!     Fetch v  | found, ended
//!         frames held by the plan --> requests behind those that readers wait for
//! ```
//!
//! A read of an announced piece that the policy does not fetch at once (its disk is busy, or it
//! may not prefetch more) is fetched as any miss is: no reader waits for a policy.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Engine;
use crate::detect::Access;
use crate::hinted::BlockNo;
use crate::plan::{Fetch, HINT_BYTES, Plan};
use crate::table::{Frame, flag};
use crate::units::{Block, Extent, FileId, Nanos, ReaderId, RequestId};

/// What the plan may hold of the frames: as much as streams may hold unread in the presets, so
/// that the last quarter keeps demand reads and what was read just now.
const PLAN_PERCENT: u64 = 75;
/// References are refused when their bookkeeping would take more than this part of the memory.
const HINTS_PART: u64 = 8;

impl Engine {
    /// Whether there is room for a hint of so many blocks; none if no policy follows hints.
    #[must_use]
    pub fn takes_hint(&self, blocks: u32) -> Option<bool> {
        self.settings.hinted.as_ref()?;
        let plan = self.plan.as_ref();
        let plan = plan.filter(|plan| !self.is_outgrown(plan, blocks));
        let (unit, room) = match plan {
            Some(plan) => (plan.unit(), plan.room()),
            None => (self.unit_for(blocks), self.hints_max()),
        };
        Some(blocks.div_ceil(unit) <= room)
    }

    /// Most references a plan of this engine takes.
    #[must_use]
    pub fn hints_max(&self) -> u32 {
        let most = self.settings.memory.0 / HINTS_PART / HINT_BYTES.unsigned_abs();
        u32::try_from(most).unwrap_or(u32::MAX).min(Plan::HINTS_MAX)
    }

    /// A reader will read these blocks next after what was hinted before.
    pub(super) fn hint(
        &mut self,
        reader: ReaderId,
        first: Block,
        count: u32,
        more: bool,
    ) -> Option<()> {
        let file = self.readers.get(&reader)?.file;
        let state = self.files.get(&file)?;
        let left = state.blocks.checked_sub(u64::from(first.0))?;
        let wanted = count;
        let count = u32::try_from(left).unwrap_or(u32::MAX).min(count);
        let device = state.device;
        if self.settings.hinted.is_none() {
            return Some(());
        }
        let mut accepted = (wanted == 0).then_some(());
        if count > 0 {
            self.begin_plan(count)?;
            accepted = self.append_hints(Extent { file, first, count }, device);
        }
        if let Some(plan) = &mut self.plan {
            plan.set_unfinished(more);
        }
        accepted
    }

    fn append_hints(&mut self, extent: Extent, device: crate::DeviceId) -> Option<()> {
        let plan = self.plan.as_mut()?;
        let unit = plan.unit();
        let pieces = extent.count.div_ceil(unit);
        if pieces > plan.room() {
            return None;
        }
        if pieces > plan.free() {
            plan.compact();
        }
        let accepted = self.append_pieces(extent, unit, device);
        self.charge_plan();
        accepted
    }

    fn append_pieces(&mut self, extent: Extent, unit: u32, device: crate::DeviceId) -> Option<()> {
        let plan = self.plan.as_mut()?;
        let (mut first, mut left) = (extent.first, extent.count);
        while left > 0 {
            let count = left.min(unit);
            let piece = Extent {
                first,
                count,
                ..extent
            };
            if plan.hint(piece, device)? {
                self.ledger.hints += 1;
                self.ledger.hints_open += 1;
            }
            first = Block(first.0.saturating_add(count));
            left -= count;
        }
        Some(())
    }

    /// Charges for what the plan holds by now.
    fn charge_plan(&mut self) {
        let held = self.memory.holding_bytes();
        let Some(plan) = &mut self.plan else { return };
        let bytes = i64::from(plan.entries()) * HINT_BYTES + held;
        self.memory.charge(bytes - plan.charged);
        plan.charged = bytes;
    }

    /// Makes a plan if there is none, or a fresh one for one that is over and in small pieces.
    fn begin_plan(&mut self, first: u32) -> Option<()> {
        let plan = self.plan.as_ref();
        if plan.is_some_and(|plan| self.is_outgrown(plan, first)) {
            self.end_plan();
        }
        if self.plan.is_none() {
            let policy = self.settings.hinted.as_ref()?;
            let unit = self.unit_for(first);
            let plan = Plan::new(policy, self.plan_frames(), unit, self.hints_max())?;
            self.memory.begin_holding();
            self.plan = Some(Box::new(plan));
            self.charge_plan();
        }
        Some(())
    }

    /// A plan that was read to its end begins anew for hints of longer runs than its pieces are.
    fn is_outgrown(&self, plan: &Plan, first: u32) -> bool {
        plan.is_over() && self.unit_for(first) > plan.unit()
    }

    /// The frames of a plan that begins now.
    fn plan_frames(&self) -> u32 {
        (u64::from(self.memory.frames_usable()) * PLAN_PERCENT / 100) as u32
    }

    /// The most blocks of a piece if a plan begins now with a hint so long.
    fn unit_for(&self, first: u32) -> u32 {
        let longest = self.settings.request_max.0 / u64::from(self.settings.block_bytes);
        let longest = u32::try_from(longest).unwrap_or(u32::MAX);
        Plan::unit_for(self.plan_frames(), first.min(longest))
    }

    /// The plan is over or in the way: what it holds goes into the order of reclaim. Whether there
    /// was one.
    pub(super) fn end_plan(&mut self) -> bool {
        let Some(plan) = self.plan.take() else {
            return false;
        };
        self.memory.charge(-plan.charged);
        self.ledger.hints_dropped += self.ledger.hints_open;
        self.ledger.hints_open = 0;
        for frame in self.memory.end_holding() {
            self.let_go(frame);
        }
        true
    }

    /// A frame with a block in it that the plan held.
    fn let_go(&mut self, frame: Frame) {
        self.memory.table.clear(frame, flag::MARK);
        self.memory.release(frame);
    }

    /// A read begins: it takes its place in the order, if it has one. Whether its first block was
    /// announced.
    pub(super) fn take_hints(&mut self, id: ReaderId, access: Access) -> bool {
        if self.plan.is_none() {
            return false;
        }
        let Some(file) = self.readers.get(&id).map(|r| r.file) else {
            return false;
        };
        let asked = Extent {
            file,
            first: access.block,
            count: access.count,
        };
        let pieces = self.pieces_of(&asked);
        if !pieces.is_empty() {
            self.leave_others(id, &pieces);
        }
        for piece in pieces {
            self.take_piece(id, piece, &asked);
        }
        self.is_announced(id, access.block)
    }

    /// The pieces that a read touches, in order.
    fn pieces_of(&self, asked: &Extent) -> Vec<BlockNo> {
        let mut pieces = Vec::new();
        let Some(plan) = &self.plan else {
            return pieces;
        };
        let mut at = Some(asked.first);
        while let Some(block) = at.filter(|block| asked.contains(*block)) {
            at = match plan.covering(asked.file, block) {
                Some((piece, extent)) => {
                    pieces.push(piece);
                    u32::try_from(extent.end()).ok().map(Block)
                }
                None => plan.after(asked.file, block),
            };
        }
        pieces
    }

    /// The reader has moved on from what it held, but for these pieces.
    fn leave_others(&mut self, id: ReaderId, kept: &[BlockNo]) {
        let left = self.plan.as_mut().map(|plan| plan.go_on(id, kept));
        for piece in left.unwrap_or_default() {
            let Some(plan) = &mut self.plan else { return };
            if plan.leave(piece)
                && let Some(Extent { file, first, .. }) = plan.extent(piece)
            {
                self.mark(file, first);
            }
        }
    }

    /// Whoever reads this block next enters the engine, if it is there.
    fn mark(&mut self, file: FileId, block: Block) {
        if let Some(found) = self.memory.table.find(file, block) {
            self.memory.table.set(found.frame, flag::MARK);
        }
    }

    fn take_piece(&mut self, id: ReaderId, piece: BlockNo, asked: &Extent) {
        let now = self.now;
        let Some(plan) = &mut self.plan else { return };
        if plan.is_held(id, piece) {
            return;
        }
        let (is_taken, missed) = plan.take(now, id, piece);
        self.ledger.hints_missed += missed;
        self.ledger.hints_open -= missed;
        if !is_taken {
            return;
        }
        self.ledger.hints_read += 1;
        self.ledger.hints_open -= 1;
        // If no fetch comes of it, the read goes on as any other.
        self.carry_out_plan(Some(asked));
        if let Some(plan) = &mut self.plan {
            plan.settle(piece);
        }
    }

    /// Whether this reader is at a piece with this block in it.
    pub(super) fn is_announced(&self, id: ReaderId, block: Block) -> bool {
        let (Some(plan), Some(reader)) = (&self.plan, self.readers.get(&id)) else {
            return false;
        };
        let covering = plan.covering(reader.file, block);
        covering.is_some_and(|(piece, _)| plan.is_held(id, piece))
    }

    /// Whether the mark of this block is the plan's.
    pub(super) fn is_plans_mark(&self, file: FileId, block: Block) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| plan.begins_at(file, block))
    }

    /// A reader got something: from here on it computes.
    pub(super) fn note_served(&mut self, id: ReaderId) {
        if let Some(plan) = &mut self.plan {
            plan.served(self.now, id);
        }
    }

    /// Does what the plan wants done. `asked` is what a reader waits for.
    pub(super) fn carry_out_plan(&mut self, asked: Option<&Extent>) {
        while let Some(fetch) = self.plan.as_mut().and_then(|plan| plan.poll()) {
            self.fetch_piece(fetch, asked);
        }
    }

    fn fetch_piece(&mut self, fetch: Fetch, asked: Option<&Extent>) {
        let Fetch {
            piece,
            extent,
            evict,
        } = fetch;
        if let Some(victim) = evict {
            self.give_up_piece(victim);
        }
        let end = self.files.get(&extent.file).map_or(0, |f| f.blocks);
        let is_there = |b: &Block| u64::from(b.0) < end;
        let is_missing = |b: &Block| self.memory.table.find(extent.file, *b).is_none();
        let blocks: Vec<Block> = extent
            .blocks()
            .filter(is_there)
            .filter(is_missing)
            .collect();
        if blocks.is_empty() {
            self.mark(extent.file, extent.first);
            if let Some(plan) = &mut self.plan {
                plan.found(piece);
            }
            return;
        }
        let asked = asked.filter(|a| {
            blocks
                .iter()
                .any(|b| a.file == extent.file && a.contains(*b))
        });
        let needed = self.memory.reserve().saturating_add(blocks.len() as u32);
        let has_room = asked.is_some() || self.memory.obtainable() > needed;
        let started = if has_room {
            self.start_piece(piece, extent, &blocks, asked)
        } else {
            (0, false)
        };
        self.ledger.refused_prefetches += u64::from(!started.1);
        if let Some(plan) = &mut self.plan {
            plan.started(piece, started.0, started.1);
        }
        if let Some(device) = self.files.get(&extent.file).map(|f| f.device) {
            self.dispatch(device);
        }
    }

    /// Frames and requests for blocks of a piece: how many requests, and whether they are for all.
    fn start_piece(
        &mut self,
        piece: BlockNo,
        extent: Extent,
        blocks: &[Block],
        asked: Option<&Extent>,
    ) -> (u32, bool) {
        let Some(device) = self.files.get(&extent.file).map(|f| f.device) else {
            return (0, false);
        };
        let mut requests = 0;
        let mut open: Option<(RequestId, Block)> = None;
        for block in blocks {
            let Some(frame) = self.obtain() else {
                self.close_request(open.map(|(id, _)| id));
                return (requests, false);
            };
            self.memory.hold(frame);
            let id = match open {
                Some((id, last)) if last.0.checked_add(1) == Some(block.0) => id,
                _ => {
                    self.close_request(open.map(|(id, _)| id));
                    requests += 1;
                    let id = self.open_request(device, extent.file, *block, None);
                    if let Some(plan) = &mut self.plan {
                        plan.owns(id, piece);
                    }
                    id
                }
            };
            open = Some((id, *block));
            let asked = asked.is_some_and(|asked| asked.contains(*block));
            self.reserve(id, frame, *block, asked, *block == extent.first);
        }
        self.close_request(open.map(|(id, _)| id));
        if !blocks.contains(&extent.first) {
            self.mark(extent.file, extent.first);
        }
        (requests, true)
    }

    /// The blocks of a piece that the plan holds leave the table; one whose bytes are being taken
    /// goes into the order of reclaim.
    fn give_up_piece(&mut self, extent: Extent) {
        for block in extent.blocks() {
            let Some(found) = self.memory.table.find(extent.file, block) else {
                continue;
            };
            let frame = found.frame;
            if !self.memory.is_held(frame) || found.flags & flag::FILLING != 0 {
                continue;
            }
            if found.flags & flag::PINNED != 0 {
                self.let_go(frame);
            } else {
                self.evict(frame);
                self.memory.give_back(frame);
            }
        }
    }

    /// The number of a request is free again: the piece that it was for, if it was the plan's, and
    /// when the driver got it.
    pub(super) fn disown(&mut self, id: RequestId) -> Option<(BlockNo, Nanos)> {
        self.plan.as_mut()?.disown(id)
    }

    /// A request for a piece ended or was called off.
    pub(super) fn piece_ended(&mut self, piece: BlockNo, is_whole: bool, service: Nanos) {
        let Some(plan) = &mut self.plan else { return };
        if let Some(extent) = plan.ended(piece, is_whole, service) {
            self.let_go_of(extent);
        }
    }

    /// What the plan holds of an extent is reclaim's from now on.
    fn let_go_of(&mut self, extent: Extent) {
        for block in extent.blocks() {
            if let Some(found) = self.memory.table.find(extent.file, block)
                && self.memory.is_held(found.frame)
            {
                self.let_go(found.frame);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn plan_defects(&self) -> u64 {
        self.plan.as_ref().map_or(0, |plan| plan.defects())
    }

    /// A reader closes its file, and so leaves what it held.
    pub(super) fn close_hints(&mut self, id: ReaderId) {
        self.leave_others(id, &[]);
    }

    /// A file changed, or nobody reads it any more: what was announced of it does not come.
    pub(super) fn drop_hints(&mut self, file: FileId) {
        let Some(plan) = &mut self.plan else { return };
        let (extents, open) = plan.forget(file);
        self.ledger.hints_dropped += open;
        self.ledger.hints_open -= open;
        let mut called_off = plan.requests_of_gone();
        called_off.retain(|id| {
            let request = self.requests.get(*id);
            request.is_some_and(|r| !r.dispatched && r.waiters.is_empty())
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
