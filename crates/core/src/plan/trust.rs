//! Prefetch credit: the limit of pieces fetched ahead and not read yet, by how hints have proved.
//!
//! Kept by the [plan](super). Control law, as the congestion window of TCP in slow start:
//!
//! ```text
//! credit = FIRST x disks;   + STEP for each hint read,   - 1 for each hint passed over
//! ```
//!
//! bounded below by the first value and above by the plan's memory. So wrong hints cost a few
//! requests, and right ones use the whole memory after some rounds. The content of hints plays no
//! part.

use crate::units::saturate;

/// Pieces fetched ahead for each disk before any hint has proved right: enough to keep a disk busy
/// through one reaction of its reader.
const FIRST: u32 = 8;
/// Credit added by a hint that proved right: itself and one more, which doubles with every round.
const STEP: u32 = 2;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Trust {
    pub(super) pieces: u32,
    /// Credit granted however wrong hints are.
    least: u32,
    /// Upper limit of the credit.
    most: u32,
}

impl Trust {
    /// At first, on one disk, where there is room for so many pieces.
    pub(super) fn new(most: u32) -> Self {
        Self {
            pieces: FIRST.min(most),
            least: FIRST,
            most,
        }
    }

    /// One more disk is to be kept busy.
    pub(super) fn add_disk(&mut self) {
        self.least = self.least.saturating_add(FIRST);
        self.pieces = self.pieces.saturating_add(FIRST).min(self.most);
    }

    /// A hint proved right.
    pub(super) fn grow(&mut self) {
        self.pieces = self.pieces.saturating_add(STEP).min(self.most);
    }

    /// So many hints were passed over.
    pub(super) fn shrink(&mut self, missed: u64) {
        let less = saturate(missed);
        let left = self.pieces.saturating_sub(less);
        self.pieces = left.max(self.least).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_stays_between_what_is_always_granted_and_what_there_is_room_for(
            most in 1u32..200, steps in prop::collection::vec((0u32..3, any::<u64>()), 0..100),
        ) {
            let mut trust = Trust::new(most);
            let mut disks = 1;
            for (step, missed) in steps {
                match step {
                    0 => trust.grow(),
                    1 => trust.shrink(missed),
                    _ => {
                        trust.add_disk();
                        disks += 1;
                    }
                }
                prop_assert!(trust.pieces <= most);
                prop_assert!(trust.pieces >= most.min(FIRST * disks));
            }
        }
    }
}
