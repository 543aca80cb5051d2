//! Window: the blocks to fetch ahead, and where its reader triggers the next one.
//!
//! One run of blocks, whichever way it is read. Where the reader takes equal reads with equal gaps,
//! the window says so: its gaps are then fetched with the rest, with no read expected of them, or
//! left out.
//!
//! ```text
//! start 100, size 60, stride 4 of every 16 from 100:   100..104  116..120  132..136  148..152
//! ```

use crate::detect::Access;
use crate::direction::Direction;
use crate::units::Block;

/// Blocks to fetch. Those in it that are already cached are skipped by the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// First block.
    pub start: Block,
    /// Number of blocks, gaps included; zero fetches nothing.
    pub size: u32,
    /// How many of them lie behind the mark for its reader, the marked one included; zero sets no
    /// mark.
    pub async_size: u32,
    /// Which way it is read.
    pub direction: Direction,
    /// Which of its blocks are expected to be read: all, unless a stride is given.
    pub stride: Option<Stride>,
}

/// Equal reads with equal gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stride {
    /// The first block of one of the reads.
    pub first: Block,
    /// From one read's first block to that of the one `per` reads behind it; at least 1. Reads
    /// whose edges are no block's are a number of blocks apart only on average.
    pub step: u32,
    /// See `step`; at least 1, and 1 where gaps are left out.
    pub per: u32,
    /// Blocks of each read; at least 1.
    pub count: u32,
    /// Whether the gaps are fetched, too.
    pub is_read_through: bool,
}

impl Stride {
    /// Whether a block belongs to one of the reads.
    #[must_use]
    pub fn holds(&self, block: Block) -> bool {
        let (step, per) = (i128::from(self.step.max(1)), i128::from(self.per));
        let offset = i128::from(block.0) - i128::from(self.first.0);
        (offset * per).rem_euclid(step) < i128::from(self.count) * per
    }
}

impl Window {
    /// One that is read upward, each block of it.
    #[must_use]
    pub fn forward(start: Block, size: u32, async_size: u32) -> Self {
        Self {
            start,
            size,
            async_size,
            direction: Direction::Forward,
            stride: None,
        }
    }

    /// The block behind the last one.
    #[must_use]
    pub fn end(&self) -> u64 {
        u64::from(self.start.0) + u64::from(self.size)
    }

    /// The block of an access at which a stream through this window begins, or goes on.
    #[must_use]
    pub(crate) fn begins_at(&self, access: &Access) -> Block {
        match self.direction {
            Direction::Forward => access.block,
            Direction::Backward => {
                let last = access.count.saturating_sub(1);
                Block(access.block.0.saturating_add(last))
            }
        }
    }

    /// The same ending elsewhere. The mark stays, or goes to its last block; where it is longer, to
    /// its middle, if that comes later.
    #[must_use]
    pub(crate) fn shaped(&self, end: Block) -> Self {
        let size = end.0.saturating_sub(self.start.0);
        let before = self.size - self.async_size.min(self.size);
        let before = match size > self.size {
            true => before.max(size / 2),
            false => before.min(size.saturating_sub(1)),
        };
        Self {
            size,
            async_size: if self.async_size == 0 {
                0
            } else {
                size - before
            },
            ..*self
        }
    }

    /// The block that carries the lookahead mark.
    #[must_use]
    pub fn mark(&self) -> Option<Block> {
        let before = self.size.checked_sub(self.async_size)?;
        let from_start = match self.direction {
            _ if self.async_size == 0 => return None,
            Direction::Forward => before,
            Direction::Backward => self.async_size - 1,
        };
        self.start.0.checked_add(from_start).map(Block)
    }

    /// Whether a block of it is fetched only because it lies between others.
    #[must_use]
    pub fn is_gap(&self, block: Block) -> bool {
        self.stride.is_some_and(|stride| !stride.holds(block))
    }

    /// The runs to fetch, first block and length, in the order in which they are read.
    pub fn pieces(&self) -> impl Iterator<Item = (Block, u32)> + use<> {
        let apart = self.stride.filter(|stride| !stride.is_read_through);
        let (step, count) = apart.map_or((self.size, self.size), |s| (s.step, s.count));
        let number = self.size.div_ceil(step.max(1));
        let window = *self;
        (0..number).map(move |i| {
            let i = match window.direction {
                Direction::Forward => i,
                Direction::Backward => number - 1 - i,
            };
            let offset = i * step;
            let first = Block(window.start.0.saturating_add(offset));
            (first, count.min(window.size - offset))
        })
    }

    /// Blocks to fetch, cached ones included.
    #[must_use]
    pub fn fetched(&self) -> u64 {
        self.pieces().map(|(_, count)| u64::from(count)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRIDE: Stride = Stride {
        first: Block(100),
        step: 16,
        per: 1,
        count: 4,
        is_read_through: false,
    };

    #[test]
    fn pieces_come_in_the_order_of_reading() {
        let forward = Window {
            stride: Some(STRIDE),
            ..Window::forward(Block(84), 36, 36)
        };
        let pieces = |window: Window| {
            window
                .pieces()
                .map(|p| p.0.0)
                .collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(pieces(forward), [84, 100, 116]);
        assert_eq!((forward.fetched(), forward.mark()), (12, Some(Block(84))));
        let backward = Window {
            direction: Direction::Backward,
            async_size: 33,
            ..forward
        };
        assert_eq!(pieces(backward), [116, 100, 84]);
        assert_eq!(backward.mark(), Some(Block(116)));
        let through = Stride {
            is_read_through: true,
            ..STRIDE
        };
        let whole = Window {
            stride: Some(through),
            ..forward
        };
        assert_eq!((pieces(whole), whole.fetched()), ([84].into(), 36));
        assert!(whole.is_gap(Block(99)) && !whole.is_gap(Block(103)));
        let unaligned = Stride {
            step: 49,
            per: 2,
            ..through
        };
        let held = [100, 104, 123, 124, 125, 149, 198].map(|block| unaligned.holds(Block(block)));
        assert_eq!(held, [true, false, false, false, true, true, true]);
    }
}
