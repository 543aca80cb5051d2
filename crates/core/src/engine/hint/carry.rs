//! Carrying out the plan: its pieces get frames and requests, its victims leave the table.
//!
//! Called for each round of decisions. Frames with blocks of a piece are *held* by the plan,
//! outside the order of reclaim; its requests wait behind those that readers wait for, unless one
//! of them does for this.
//!
//! ```text
//! plan.poll --> give up the victim --> frames for missing blocks --> requests --> plan.started
//!                                             nothing is missing --> plan.found
//! completion, or a request called off -------------------------------------------> plan.ended
//! ```
//!
//! Fetches and victims are not decided here. A piece that gets no frames failed: it is
//! for a read to fetch, as any other miss.

use alloc::vec::Vec;

use crate::engine::Engine;
use crate::plan::Fetch;
use crate::table::flag;
use crate::units::{Block, Extent, RequestId};

impl Engine {
    /// Carries out the plan. `asked` is the demand of this moment.
    pub(in crate::engine) fn carry_out_plan(&mut self, asked: Option<&Extent>) {
        while let Some(fetch) = self.producers.plan.as_mut().and_then(|plan| plan.poll()) {
            if let Some(victim) = fetch.evict {
                self.give_up_piece(victim);
            }
            self.fetch_piece(fetch, asked);
        }
    }

    fn fetch_piece(&mut self, fetch: Fetch, asked: Option<&Extent>) {
        let Fetch { piece, extent, .. } = fetch;
        let blocks = self.missing_of(&extent);
        if blocks.is_empty() {
            self.mark(extent.file, extent.first);
            if let Some(plan) = &mut self.producers.plan {
                plan.found(piece);
            }
            return;
        }
        let is_asked = |asked: &&Extent| {
            asked.file == extent.file && blocks.iter().any(|b| asked.contains(*b))
        };
        let asked = asked.filter(is_asked);
        let needed = self.memory.reserve().saturating_add(blocks.len() as u32);
        let has_room = asked.is_some() || self.memory.obtainable() > needed;
        let (requests, is_whole) = match has_room {
            true => self.start_piece(&fetch, &blocks, asked),
            false => (0, false),
        };
        self.ledger.refused_prefetches += u64::from(!is_whole);
        if let Some(plan) = &mut self.producers.plan {
            plan.started(piece, requests, is_whole);
        }
        self.dispatch_file(extent.file);
    }

    /// The blocks of an extent that exist and are neither there nor on their way.
    fn missing_of(&self, extent: &Extent) -> Vec<Block> {
        let end = self.readers.file(extent.file).map_or(0, |f| f.blocks);
        let is_missing = |block: &Block| self.memory.table.find(extent.file, *block).is_none();
        let blocks = extent.blocks().filter(|block| u64::from(block.0) < end);
        blocks.filter(is_missing).collect()
    }

    /// Frames and requests for blocks of a piece: how many requests, and whether they are for all.
    fn start_piece(
        &mut self,
        fetch: &Fetch,
        blocks: &[Block],
        asked: Option<&Extent>,
    ) -> (u32, bool) {
        let Fetch { piece, extent, .. } = *fetch;
        let mut requests = 0;
        let mut open: Option<(RequestId, Block)> = None;
        for block in blocks {
            let Some(frame) = self.obtain() else {
                self.close_request(open.map(|(id, _)| id));
                return (requests, false);
            };
            let Some(place) = self.place(extent.file, *block) else {
                return (requests, false);
            };
            self.memory.hold(frame);
            let id = match open {
                Some((id, last)) if last.0.checked_add(1) == Some(block.0) => id,
                _ => {
                    self.close_request(open.map(|(id, _)| id));
                    requests += 1;
                    self.open_request(place, extent.file, *block, None, Some(piece))
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
}
