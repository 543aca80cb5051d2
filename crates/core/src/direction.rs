//! Direction: whether a reader goes up or down through its file.
//!
//! Positions are counted along the direction, so that a stream that goes down is kept, ordered and
//! measured as one that goes up: block `b` of a backward stream is position `u32::MAX - b`. Blocks
//! 99, 98, 97 read backward are three positions in a row.

use crate::units::Block;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Direction {
    /// Towards higher blocks.
    #[default]
    Forward,
    /// Towards lower ones.
    Backward,
}

impl Direction {
    /// Where a block is along the direction. Its own inverse.
    #[must_use]
    pub fn position(self, block: Block) -> u32 {
        match self {
            Self::Forward => block.0,
            Self::Backward => u32::MAX - block.0,
        }
    }

    /// The block at a position, if there is one.
    #[must_use]
    pub fn block(self, position: u64) -> Option<Block> {
        let position = u32::try_from(position).ok()?;
        Some(Block(self.position(Block(position))))
    }

    /// Where a run of blocks from `first` to before `end` begins, and whether the file of so many
    /// blocks ends with it. `None` if there is no block in it.
    pub(crate) fn run(self, first: Block, end: u64, blocks: u64) -> Option<(u64, bool)> {
        let last = end.checked_sub(1).filter(|last| *last >= first.0.into())?;
        Some(match self {
            Self::Forward => (first.0.into(), end >= blocks),
            Self::Backward => {
                let last = Block(u32::try_from(last).ok()?);
                (self.position(last).into(), first.0 == 0)
            }
        })
    }

    /// Whether a file of so many blocks has none at this position or behind.
    pub(crate) fn is_end(self, position: u64, blocks: u64) -> bool {
        match self {
            Self::Forward => position >= blocks,
            Self::Backward => self.block(position).is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_grow_along_the_direction() {
        for (direction, blocks) in [
            (Direction::Forward, [97, 98, 99]),
            (Direction::Backward, [99, 98, 97]),
        ] {
            let at = blocks.map(|block| direction.position(Block(block)));
            assert_eq!([at[1] - at[0], at[2] - at[1]], [1, 1]);
            assert_eq!(direction.block(at[1].into()), Some(Block(98)));
        }
        assert_eq!(Direction::Backward.block(1 << 32), None);
    }

    #[test]
    fn a_file_read_backward_ends_at_its_first_block() {
        let last = Direction::Backward.position(Block(99));
        let run = |first| Direction::Backward.run(Block(first), 100, 200);
        assert_eq!(run(10), Some((last.into(), false)));
        assert_eq!(run(0), Some((last.into(), true)));
        assert_eq!(run(100), None);
        assert_eq!(
            Direction::Forward.run(Block(10), 100, 100),
            Some((10, true))
        );
        let ends = [1 << 32, u64::from(u32::MAX)].map(|at| Direction::Backward.is_end(at, 200));
        assert_eq!(ends, [true, false]);
        assert!(Direction::Forward.is_end(200, 200) && !Direction::Forward.is_end(199, 200));
    }
}
