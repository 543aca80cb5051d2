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

    /// Where the first and behind the last of so many blocks lie along the direction.
    pub(crate) fn span(self, first: Block, count: u32) -> (u64, u64) {
        let begin = match self {
            Self::Forward => first,
            Self::Backward => Block(first.0.saturating_add(count.saturating_sub(1))),
        };
        let begin = u64::from(self.position(begin));
        (begin, begin + u64::from(count))
    }

    /// The block at a position, if there is one.
    #[must_use]
    pub fn block(self, position: u64) -> Option<Block> {
        let position = u32::try_from(position).ok()?;
        Some(Block(self.position(Block(position))))
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
}
