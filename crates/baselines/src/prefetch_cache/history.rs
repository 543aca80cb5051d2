//! The eviction history: which blocks were given up not long ago, unread or read.
//!
//! A miss on one of them moves the [part](super::part). Li and Shen 2005,
//! section 3.3, keep 20 bytes for each of up to 40 % of the pages. With the table and its links
//! that would be more than 0.4 % of the memory; here an entry is 15 bits of the block's hash, in
//! buckets of eight:
//!
//! ```text
//! bucket = hash of (file, block)      [ newest .. oldest ]: an entry more pushes the oldest out
//! ```
//!
//! With an entry for 8 of 100 frames these are 0.16 bytes a frame beside the table's 15.7, together
//! 0.388 % of 4 KiB. The rest of 0.4 % is the driver's (`crates/io/tests/memory.rs`): with a third
//! it was 0.403 %.
//! Of 4,096 blocks not in it one is found all the same (8 entries, 2^15 tags).

use alloc::boxed::Box;

use forerun_core::table::hash;
use forerun_core::{Block, FileId};

/// Entries of a bucket.
const BUCKET: usize = 8;
const EMPTY: u16 = 0;

#[derive(Debug)]
pub(super) struct History(Box<[[u16; BUCKET]]>);

impl History {
    /// One of so many entries.
    pub(super) fn new(entries: u64) -> Self {
        let buckets = usize::try_from(entries).unwrap_or(usize::MAX) / BUCKET;
        Self(alloc::vec![[EMPTY; BUCKET]; buckets].into_boxed_slice())
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&*self.0) as u64
    }

    /// The bucket of a block, and its entry; none if the memory is too small for a history.
    fn place(&mut self, file: FileId, block: Block) -> Option<(&mut [u16; BUCKET], u16)> {
        let hash = hash(file, block);
        let at = (u128::from(hash << 15) * self.0.len() as u128) >> u64::BITS;
        // The bits that do not choose the bucket.
        let tag = ((hash >> 49) as u16).max(1);
        Some((self.0.get_mut(at as usize)?, tag))
    }

    /// A block was given up.
    pub(super) fn add(&mut self, file: FileId, block: Block) {
        let Some((bucket, entry)) = self.place(file, block) else {
            return;
        };
        let last = bucket.iter().position(|known| *known == entry);
        let last = last.unwrap_or(BUCKET - 1);
        bucket[..=last].rotate_right(1);
        bucket[0] = entry;
    }

    /// A block is missing: takes its entry. Whether it had one.
    pub(super) fn take(&mut self, file: FileId, block: Block) -> bool {
        let Some((bucket, entry)) = self.place(file, block) else {
            return false;
        };
        let Some(at) = bucket.iter().position(|known| *known == entry) else {
            return false;
        };
        bucket[at..].rotate_left(1);
        bucket[BUCKET - 1] = EMPTY;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::table::Table;

    const FILE: FileId = FileId(3);

    #[test]
    fn a_block_given_up_is_found_once_and_others_are_not() {
        let mut history = History::new(1_000);
        for block in 0..400 {
            history.add(FILE, Block(block));
        }
        // Given up again.
        history.add(FILE, Block(0));
        assert!(history.take(FILE, Block(0)));
        assert!(!history.take(FILE, Block(0)));
        let found = (1..400).filter(|block| history.take(FILE, Block(*block)));
        assert!(found.count() > 380, "buckets are filled evenly");
        let strangers = (0..10_000).filter(|block| history.take(FileId(4), Block(*block)));
        assert!(strangers.count() < 20);
    }

    #[test]
    fn old_entries_give_way_and_all_bookkeeping_is_below_four_per_mille_of_4_kib_blocks() {
        let frames = 1 << 16;
        let mut history = History::new(u64::from(frames) * 8 / 100);
        for block in 0..200_000 {
            history.add(FILE, Block(block));
        }
        let mut known = |blocks: core::ops::Range<u32>| {
            let taken = blocks.filter(|block| history.take(FILE, Block(*block)));
            taken.count()
        };
        assert!(known(196_000..200_000) > 3_600);
        assert!(known(0..10_000) < 20);
        let bytes = Table::bookkeeping(frames).0 - Table::bookkeeping(0).0 + history.bytes();
        assert!(bytes * 1000 <= u64::from(frames) * 4096 * 4, "{bytes}");
        // A driver needs 0.01 % beside.
        assert!(bytes * 100_000 <= u64::from(frames) * 4096 * 388, "{bytes}");
        assert!(!History::new(7).take(FILE, Block(0)));
    }
}
