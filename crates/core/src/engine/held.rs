//! Held: frames and requests of announced pieces, outside the order of reclaim.
//!
//! Called by the stages that begin, end and call off fetches, and where pieces are read. The frames of a piece are
//! the [plan's](crate::plan) until it gives them up or the piece is of no use as a whole; from then on they are
//! reclaimed as any other. A leaf.

use super::Engine;
use crate::hinted::BlockNo;
use crate::table::{Frame, flag};
use crate::units::{Block, Extent, FileId, Nanos};

impl Engine {
    /// A request for a piece ended or was called off.
    pub(super) fn piece_ended(&mut self, piece: BlockNo, is_whole: bool, service: Nanos) {
        let Some(plan) = &mut self.producers.plan else {
            return;
        };
        if let Some(extent) = plan.ended(piece, is_whole, service) {
            self.let_go_of(extent);
        }
    }

    /// The next read of this block enters the engine, if the block is there.
    pub(super) fn mark(&mut self, file: FileId, block: Block) {
        if let Some(found) = self.memory.table.find(file, block) {
            self.memory.table.set(found.frame, flag::MARK);
        }
    }

    /// Blocks of an extent pass from the plan to reclaim.
    pub(super) fn let_go_of(&mut self, extent: Extent) {
        for block in extent.blocks() {
            if let Some(found) = self.memory.table.find(extent.file, block)
                && self.memory.is_held(found.frame)
            {
                self.let_go(found.frame);
            }
        }
    }

    /// A frame with a block in it that the plan held.
    pub(super) fn let_go(&mut self, frame: Frame) {
        self.memory.table.clear(frame, flag::MARK);
        self.memory.release(frame);
    }
}
