//! Announced reads: the place of each in the announced order.
//!
//! A read that was announced takes its reference of the order, found by the [plan](crate::plan).
//! Here the counters follow, and the mark in the table that brings the next reader of the piece
//! into the engine. The piece stays in memory until its reader takes another one or closes its
//! file.
//!
//! Example: the order is 40, 7, 41, and a reader takes 40, then 41. The reference to 7 stays open
//! for another reader; once all readers are a window further, it counts as missed.
//!
//! No reader waits for a policy: a piece that the policy does not fetch at
//! once (its disk is busy, or its credit is used up) is fetched as for any miss.

use alloc::vec::Vec;

use crate::detect::Access;
use crate::engine::Engine;
use crate::hinted::BlockNo;
use crate::units::{Block, Extent, FileId, ReaderId};

impl Engine {
    /// A read begins: it takes its place in the order, if it has one.
    pub(in crate::engine) fn take_hints(&mut self, id: ReaderId, access: Access) {
        let (Some(plan), Some(reader)) = (&self.producers.plan, self.readers.reader(id)) else {
            return;
        };
        let asked = access.extent(reader.file);
        let pieces = plan.pieces.touched_by(&asked);
        if !pieces.is_empty() {
            self.leave_others(id, &pieces);
        }
        for piece in pieces {
            self.take_piece(id, piece, &asked);
        }
    }

    fn take_piece(&mut self, id: ReaderId, piece: BlockNo, asked: &Extent) {
        let now = self.work.now;
        let Some(plan) = &mut self.producers.plan else {
            return;
        };
        if plan.hands.holds(id, piece) {
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
        let is_there = plan.has(piece);
        if !is_there {
            // If no fetch comes of it, the read goes on as any other.
            self.carry_out_plan(Some(asked));
        }
        if let Some(plan) = &mut self.producers.plan {
            plan.hold(piece);
        }
    }

    /// A reader took blocks, or will not take them any more.
    pub(in crate::engine) fn taken(&mut self, reader: ReaderId, taken: &Extent) {
        if let Some(plan) = &mut self.producers.plan {
            let ended = plan.read(reader, taken);
            self.leave(ended);
        }
    }

    /// The reader has moved on from its pieces in use, but for these.
    pub(in crate::engine) fn leave_others(&mut self, id: ReaderId, stays: &[BlockNo]) {
        if let Some(plan) = &mut self.producers.plan {
            let left = plan.go_on(id, stays);
            self.leave(left);
        }
    }

    /// Pieces that their reader is done with: their mark brings the next one in.
    fn leave(&mut self, pieces: Vec<BlockNo>) {
        for piece in pieces {
            let Some(plan) = &mut self.producers.plan else {
                return;
            };
            if plan.leave(piece)
                && let Some(Extent { file, first, .. }) = plan.pieces.extent(piece)
            {
                self.mark(file, first);
            }
        }
    }

    /// Whether this reader is at a piece with this block in it.
    pub(in crate::engine) fn is_announced(&self, id: ReaderId, block: Block) -> bool {
        let (Some(plan), Some(reader)) = (&self.producers.plan, self.readers.reader(id)) else {
            return false;
        };
        let covering = plan.pieces.covering(reader.file, block);
        covering.is_some_and(|(piece, _)| plan.hands.holds(id, piece))
    }

    /// Whether the mark of this block is the plan's.
    pub(in crate::engine) fn is_plans_mark(&self, file: FileId, block: Block) -> bool {
        let plan = self.producers.plan.as_ref();
        plan.is_some_and(|plan| plan.begins_at(file, block))
    }

    /// A reader got something: from here on it computes.
    pub(in crate::engine) fn note_served(&mut self, id: ReaderId) {
        if let Some(plan) = &mut self.producers.plan {
            plan.served(self.work.now, id);
        }
    }
}
