//! How reads agree with the order: the place each takes, and the references passed over for it.
//!
//! Called by the engine for each piece that a read touches: [`Plan::take`] when it begins, then
//! [`Plan::hold`] once the planner had its chance to fetch; [`Plan::read`] when bytes of it were
//! taken; [`Plan::go_on`] and [`Plan::leave`] when the reader turns to something else.
//!
//! ```text
//! take      stray?  pass over references behind the floor, trust more, tell the planner
//! hold      the piece stays in the reader's hands until ..
//! read      .. its end was taken; the first bytes taken fulfil the place: it is over
//! leave     the piece may go, unless another reader has it
//! ```
//!
//! A piece that is announced several times is read at its next place, by any reader. A piece
//! read in part stays in memory until its reader takes another piece, or until other readers have
//! taken a whole window of pieces.

use alloc::vec::Vec;

use super::{Plan, made_sense};
use crate::hinted::{BlockNo, Position};
use crate::units::{Extent, Nanos, ReaderId};

impl Plan {
    /// A reader asks for a piece: whether a place of the order is meant by that, and in any case
    /// how many references were passed over without a read. The planner's fetches for it are to
    /// be carried out, then the piece is [held](Plan::hold).
    pub(crate) fn take(&mut self, now: Nanos, reader: ReaderId, piece: BlockNo) -> (bool, u64) {
        let mut missed = 0;
        // Another reader that has asked for it has had its place.
        self.end_place(piece);
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
        let compute = now.since(self.served);
        made_sense(self.planner.kept(piece, true));
        made_sense(self.planner.asked(piece, compute));
        self.served = now;
        (true, missed)
    }

    /// A piece that was asked for stays in the reader's hands. If the planner did not fetch it the
    /// reader goes its own way and the place is over.
    pub(crate) fn hold(&mut self, piece: BlockNo) {
        let stays = self.has(piece);
        let no_longer = match stays {
            true => self.hands.keep(piece, self.frontier.window),
            false => Some(piece),
        };
        if !stays {
            self.end_place(piece);
        }
        if let Some(piece) = no_longer {
            self.let_go(piece);
        }
    }

    /// A reader took these blocks: places of theirs are over, and pieces that it took to their end
    /// it leaves. Those, of which each is to be [left](Plan::leave).
    pub(crate) fn read(&mut self, reader: ReaderId, taken: &Extent) -> Vec<BlockNo> {
        let mut ended = Vec::new();
        for piece in self.hands.of(reader) {
            let Some(extent) = self.pieces.extent(piece).filter(|e| touch(e, taken)) else {
                continue;
            };
            if self.hands.has_open(reader, piece) {
                self.end_place(piece);
            }
            if taken.end() >= extent.end() {
                self.hands.drop(reader, piece);
                ended.push(piece);
            }
        }
        ended
    }

    /// The place that was taken with a piece is over, if it was not.
    pub(super) fn end_place(&mut self, piece: BlockNo) {
        if self.hands.close(piece) {
            made_sense(self.planner.passed(piece, true));
        }
    }

    /// A reader has gone on from its pieces, but for these: returns those it left.
    pub(crate) fn go_on(&mut self, reader: ReaderId, stays: &[BlockNo]) -> Vec<BlockNo> {
        let mut left = self.hands.of(reader);
        left.retain(|piece| !stays.contains(piece));
        for piece in &left {
            if self.hands.has_open(reader, *piece) {
                self.end_place(*piece);
            }
            self.hands.drop(reader, *piece);
        }
        left
    }

    /// A reader is done with a piece. Whether it is to be read again.
    pub(crate) fn leave(&mut self, piece: BlockNo) -> bool {
        if self.hands.leave(piece) {
            self.let_go(piece);
        }
        self.is_to_be_read(piece)
    }

    /// A reader was served: from here on it computes.
    pub(crate) fn served(&mut self, now: Nanos, reader: ReaderId) {
        if self.hands.has_any(reader) {
            self.served = now;
        }
    }

    /// References before the frontier's floor are not waited for any more; returns how many
    /// were never read.
    fn pass_over(&mut self) -> u64 {
        let mut missed = 0;
        while self.board().cursor().0 < self.frontier.floor()
            && let Some(block) = self.board().block_at(self.board().cursor())
        {
            // A reader that asked for it may still wait.
            let read = self.hands.close(block);
            missed += u64::from(!read);
            made_sense(self.planner.passed(block, read));
        }
        self.trust.shrink(missed);
        self.allow();
        missed
    }

    /// A piece may be given up, unless another reader has it, too.
    fn let_go(&mut self, block: BlockNo) {
        if !self.hands.keeps(block) {
            made_sense(self.planner.kept(block, false));
        }
    }
}

/// Whether two extents have a block in common.
fn touch(a: &Extent, b: &Extent) -> bool {
    let begins_before = |a: &Extent, b: &Extent| u64::from(a.first.0) < b.end();
    a.file == b.file && begins_before(a, b) && begins_before(b, a)
}
