//! Pieces in use: taken by readers that may come back for the rest of them.
//!
//! A reader may read a piece of 1 MiB in steps of 4 KiB, so a piece in use is not evicted. It is in
//! use until its reader took the end of it or takes another piece. Readers that stop halfway would
//! fill the memory; so the number of pieces in use is limited, and the one taken longest ago goes
//! first. A piece is *open* from the request until bytes of it are taken, or another reader
//! requests it.
//!
//! Kept by the [plan](super).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::hinted::BlockNo;
use crate::units::ReaderId;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Hands {
    /// The pieces that each reader took last.
    held: BTreeMap<ReaderId, Vec<BlockNo>>,
    /// Open pieces, each with the reader that asked last.
    open: BTreeMap<BlockNo, ReaderId>,
    /// Pieces that stay in memory for that, once for each reader, oldest first.
    kept: VecDeque<BlockNo>,
}

impl Hands {
    /// A reader takes a piece.
    pub(super) fn take(&mut self, reader: ReaderId, piece: BlockNo) {
        self.held.entry(reader).or_default().push(piece);
        self.open.insert(piece, reader);
    }

    /// Whether a reader holds anything.
    pub(super) fn has_any(&self, reader: ReaderId) -> bool {
        self.held.contains_key(&reader)
    }

    /// Whether a reader took a piece and has not gone on to another.
    pub(crate) fn holds(&self, reader: ReaderId, piece: BlockNo) -> bool {
        let held = self.held.get(&reader);
        held.is_some_and(|held| held.contains(&piece))
    }

    /// Whether a reader asked for a piece and nothing of it was taken.
    pub(super) fn has_open(&self, reader: ReaderId, piece: BlockNo) -> bool {
        self.open.get(&piece) == Some(&reader)
    }

    /// The pieces asked for of which nothing was taken.
    pub(super) fn open(&self) -> impl Iterator<Item = BlockNo> {
        self.open.keys().copied()
    }

    /// Pieces that a reader uses.
    pub(super) fn of(&self, reader: ReaderId) -> Vec<BlockNo> {
        self.held.get(&reader).cloned().unwrap_or_default()
    }

    /// Something of a piece was taken, or will not be. Whether it was open.
    pub(super) fn close(&mut self, piece: BlockNo) -> bool {
        self.open.remove(&piece).is_some()
    }

    /// A reader holds a piece no longer.
    pub(super) fn drop(&mut self, reader: ReaderId, piece: BlockNo) {
        if let Some(held) = self.held.get_mut(&reader) {
            held.retain(|held| *held != piece);
            if held.is_empty() {
                self.held.remove(&reader);
            }
        }
    }

    /// Only these pieces are known any more.
    pub(super) fn retain(&mut self, is_known: impl Fn(BlockNo) -> bool) {
        self.held.retain(|_, held| {
            held.retain(|piece| is_known(*piece));
            !held.is_empty()
        });
    }

    /// Keeps one more piece, and at most so many: the one that is kept no longer for that.
    pub(super) fn keep(&mut self, piece: BlockNo, most: u32) -> Option<BlockNo> {
        self.kept.push_back(piece);
        let is_over = self.kept.len() > most as usize;
        is_over.then(|| self.kept.pop_front())?
    }

    /// A piece is kept for one reader less. Whether it was for any.
    pub(super) fn leave(&mut self, piece: BlockNo) -> bool {
        let at = self.kept.iter().position(|kept| *kept == piece);
        at.is_some_and(|at| self.kept.remove(at).is_some())
    }

    /// Whether a piece is kept for some reader.
    pub(super) fn keeps(&self, piece: BlockNo) -> bool {
        self.kept.contains(&piece)
    }

    /// A piece is neither in use nor waited for.
    pub(super) fn forget(&mut self, piece: BlockNo) {
        self.open.remove(&piece);
        self.kept.retain(|kept| *kept != piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_whose_pieces_are_known_no_more_holds_nothing() {
        let mut hands = Hands::default();
        let [idle, other] = [ReaderId(1), ReaderId(2)];
        hands.take(idle, BlockNo(1));
        hands.take(other, BlockNo(2));
        hands.retain(|piece| piece == BlockNo(2));
        assert_eq!(
            [idle, other].map(|reader| hands.has_any(reader)),
            [false, true]
        );
    }
}
