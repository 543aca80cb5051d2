//! Bits: a set of small numbers, a bit for each that there may be.
//!
//! Frames that the plan holds, as long as anything is announced: such a frame stands in no order of reclaim, and is
//! no victim whatever its block. And entries of a folder. A set for no numbers takes no memory, and has none.

use alloc::boxed::Box;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Bits(Box<[u64]>);

impl Bits {
    /// Room for the numbers below `end`, of which none is in the set.
    pub(crate) fn below(end: u32) -> Self {
        let words = end.div_ceil(u64::BITS) as usize;
        Self(alloc::vec![0; words].into_boxed_slice())
    }

    pub(crate) fn bytes(&self) -> i64 {
        self.0.len() as i64 * 8
    }

    fn place(number: u32) -> (usize, u64) {
        ((number / u64::BITS) as usize, 1 << (number % u64::BITS))
    }

    pub(crate) fn set(&mut self, number: u32) {
        let (at, bit) = Self::place(number);
        if let Some(word) = self.0.get_mut(at) {
            *word |= bit;
        }
    }

    pub(crate) fn clear(&mut self, number: u32) {
        let (at, bit) = Self::place(number);
        if let Some(word) = self.0.get_mut(at) {
            *word &= !bit;
        }
    }

    pub(crate) fn clear_all(&mut self) {
        self.0.fill(0);
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        let (at, bit) = Self::place(number);
        self.0.get(at).is_some_and(|word| word & bit != 0)
    }
}
