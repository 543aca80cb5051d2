//! The pieces: which run of blocks each number stands for, and which of them cover a block.
//!
//! Kept by the [plan](super). A piece is named by where it begins, so a run hinted twice is one
//! piece with two places in the order. Its number is the [planner's](crate::hinted) block; a number
//! whose piece is nowhere any more is given to another.
//!
//! Residency, and the time a piece is read, are kept elsewhere.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::progress::Progress;
use crate::hinted::BlockNo;
use crate::units::{Block, Extent, FileId};

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// By number.
    list: Vec<Piece>,
    /// Numbers of pieces that are nowhere any more.
    retired: Vec<BlockNo>,
    /// Where each piece begins.
    begins: BTreeMap<(FileId, Block), BlockNo>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    extent: Extent,
    /// Its file is closed or another by now.
    is_gone: bool,
    /// Its number is free.
    is_retired: bool,
    fetch: Progress,
}

impl Pieces {
    /// Numbers given so far, free ones included.
    pub(super) fn numbers(&self) -> u32 {
        self.list.len() as u32
    }

    /// Whether no piece is known.
    pub(super) fn is_empty(&self) -> bool {
        self.begins.is_empty()
    }

    /// The piece that begins where this extent does. It grows if the extent is longer.
    pub(super) fn number(&mut self, extent: Extent) -> BlockNo {
        let key = (extent.file, extent.first);
        if let Some(number) = self.begins.get(&key) {
            let known = &mut self.list[number.0 as usize].extent;
            known.count = known.count.max(extent.count);
            return *number;
        }
        let piece = Piece {
            extent,
            is_gone: false,
            is_retired: false,
            fetch: Progress::default(),
        };
        let number = self.retired.pop().unwrap_or(BlockNo(self.numbers()));
        match self.list.get_mut(number.0 as usize) {
            Some(slot) => *slot = piece,
            None => self.list.push(piece),
        }
        self.begins.insert(key, number);
        number
    }

    /// Frees the numbers of pieces that are not being fetched and of which `is_nowhere` holds.
    pub(super) fn retire(&mut self, mut is_nowhere: impl FnMut(BlockNo) -> bool) {
        for (number, piece) in (0..).map(BlockNo).zip(&mut self.list) {
            if piece.is_retired || piece.fetch.is_under_way() || !is_nowhere(number) {
                continue;
            }
            piece.is_retired = true;
            self.retired.push(number);
            let key = (piece.extent.file, piece.extent.first);
            if self.begins.get(&key) == Some(&number) {
                self.begins.remove(&key);
            }
        }
    }

    /// Whether the number of a piece is free.
    pub(super) fn is_retired(&self, piece: BlockNo) -> bool {
        self.list[piece.0 as usize].is_retired
    }

    /// Whether the file of a piece is closed or another by now.
    pub(crate) fn is_gone(&self, piece: BlockNo) -> bool {
        self.list[piece.0 as usize].is_gone
    }

    /// The pieces of a file are known no more: their numbers.
    pub(super) fn forget(&mut self, file: FileId) -> Vec<BlockNo> {
        let of_file = (file, Block(0))..=(file, Block(u32::MAX));
        let found: Vec<_> = self.begins.range(of_file).map(|(k, n)| (*k, *n)).collect();
        for (key, number) in &found {
            self.begins.remove(key);
            self.list[number.0 as usize].is_gone = true;
        }
        found.into_iter().map(|(_, number)| number).collect()
    }

    /// How the fetch of a piece goes.
    pub(super) fn fetch_of(&mut self, piece: BlockNo) -> Option<&mut Progress> {
        self.list.get_mut(piece.0 as usize).map(|p| &mut p.fetch)
    }

    /// Where a piece lies.
    pub(crate) fn extent(&self, piece: BlockNo) -> Option<Extent> {
        self.list.get(piece.0 as usize).map(|p| p.extent)
    }

    /// The piece that holds a block.
    pub(crate) fn covering(&self, file: FileId, block: Block) -> Option<(BlockNo, Extent)> {
        let before = self.begins.range((file, Block(0))..=(file, block));
        let (_, number) = before.last()?;
        let extent = self.extent(*number)?;
        extent.contains(block).then_some((*number, extent))
    }

    /// The piece that begins at a block.
    pub(super) fn at(&self, file: FileId, block: Block) -> Option<BlockNo> {
        self.begins.get(&(file, block)).copied()
    }

    /// The pieces that hold any block of an extent, in order.
    pub(crate) fn touched_by(&self, asked: &Extent) -> Vec<BlockNo> {
        let mut pieces = Vec::new();
        let mut at = Some(asked.first);
        while let Some(block) = at.filter(|block| asked.contains(*block)) {
            at = match self.covering(asked.file, block) {
                Some((piece, extent)) => {
                    pieces.push(piece);
                    u32::try_from(extent.end()).ok().map(Block)
                }
                None => self.begin_behind(asked.file, block),
            };
        }
        pieces
    }

    /// Where the first piece of a file begins that does so behind a block.
    fn begin_behind(&self, file: FileId, block: Block) -> Option<Block> {
        let next = Block(block.0.checked_add(1)?);
        let mut behind = self.begins.range((file, next)..=(file, Block(u32::MAX)));
        behind.next().map(|((_, first), _)| *first)
    }
}
