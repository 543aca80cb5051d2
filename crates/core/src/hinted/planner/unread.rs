//! Unread: blocks prefetched and not read, wherever they are.
//!
//! Kept by the [planner](super), which starts no more than so many at a time. A block is unread
//! from the start of its fetch until it was read, given up or lost; one that a reader waited for
//! when its fetch started never is.

use alloc::vec::Vec;

use crate::hinted::interface::BlockNo;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Unread {
    is_unread: Vec<bool>,
    count: u32,
}

impl Unread {
    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// A block is prefetched.
    pub(super) fn add(&mut self, block: BlockNo) {
        let at = block.0 as usize;
        if at >= self.is_unread.len() {
            self.is_unread.resize(at + 1, false);
        }
        self.count += u32::from(!core::mem::replace(&mut self.is_unread[at], true));
    }

    /// A block was read, given up or lost.
    pub(super) fn remove(&mut self, block: BlockNo) {
        let is_unread = self.is_unread.get_mut(block.0 as usize);
        let was_unread = is_unread.is_some_and(core::mem::take);
        self.count -= u32::from(was_unread);
    }
}
