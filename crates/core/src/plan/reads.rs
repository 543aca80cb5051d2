//! How reads agree with the order: which place each takes, and what was passed over for it.
//!
//! Called by the engine for each piece that a read touches: [`Plan::take`], then [`Plan::settle`]
//! once the planner's fetches were carried out; [`Plan::go_on`] and [`Plan::leave`] when the reader
//! turns to something else.
//!
//! ```text
//! take      stray?  pass over what is behind the floor, trust more, tell the planner who comes
//! settle    the place is over; the piece stays in the reader's hands
//! leave     the piece may go, unless another reader has it
//! ```
//!
//! A piece that is announced several times is read at its next place, whoever reads it. A piece
//! taken stays in memory until its reader takes another, or a window of others was taken since.

use alloc::vec::Vec;

use super::Plan;
use crate::hinted::{BlockNo, Input, Position};
use crate::units::{Nanos, ReaderId};

impl Plan {
    /// A reader asks for a piece: whether a place of the order is meant by that, and in any case
    /// how many references were passed over that nobody read. What the planner does for it is to
    /// be carried out, then the place is [settled](Plan::settle).
    pub(crate) fn take(&mut self, now: Nanos, reader: ReaderId, piece: BlockNo) -> (bool, u64) {
        let mut missed = 0;
        let place = self.board().next_use(piece);
        if place == Position::NEVER {
            return (false, 0);
        }
        if !self.frontier.is_near(place) && self.frontier.stray(place) {
            missed = self.pass_over();
        }
        if !self.frontier.is_near(place) {
            return (false, missed);
        }
        self.frontier.take(place);
        missed += self.pass_over();
        self.trust.grow();
        self.allow();
        self.hands.take(reader, piece);
        self.tell(Input::Kept {
            block: piece,
            kept: true,
        });
        self.tell(Input::Asked {
            block: piece,
            compute: now.since(self.served),
        });
        self.served = now;
        (true, missed)
    }

    /// The place that was taken is over, and the piece, if it is there or on its way, in hand.
    pub(crate) fn settle(&mut self, piece: BlockNo) {
        self.tell(Input::Passed {
            block: piece,
            read: true,
        });
        let no_longer = match self.has(piece) {
            true => self.hands.keep(piece, self.frontier.window()),
            false => Some(piece),
        };
        if let Some(piece) = no_longer {
            self.let_go(piece);
        }
    }

    /// A reader has gone on from what it held, but for these pieces: what it left.
    pub(crate) fn go_on(&mut self, reader: ReaderId, stays: &[BlockNo]) -> Vec<BlockNo> {
        self.hands.go_on(reader, stays)
    }

    /// A reader is done with a piece. Whether it is to be read again.
    pub(crate) fn leave(&mut self, piece: BlockNo) -> bool {
        if self.hands.leave(piece) {
            self.let_go(piece);
        }
        self.is_to_be_read(piece)
    }

    /// A reader got what it had asked for: from here on it computes.
    pub(crate) fn served(&mut self, now: Nanos, reader: ReaderId) {
        if self.hands.has_any(reader) {
            self.served = now;
        }
    }

    /// What lies before the frontier's floor is not waited for any more; how many of it nobody
    /// read.
    fn pass_over(&mut self) -> u64 {
        let mut missed = 0;
        while self.board().cursor().0 < self.frontier.floor()
            && let Some(block) = self.board().block_at(self.board().cursor())
        {
            missed += 1;
            self.tell(Input::Passed { block, read: false });
        }
        self.trust.shrink(missed);
        self.allow();
        missed
    }

    /// A piece may be given up, unless another reader has it, too.
    fn let_go(&mut self, block: BlockNo) {
        if !self.hands.keeps(block) {
            self.tell(Input::Kept { block, kept: false });
        }
    }
}
