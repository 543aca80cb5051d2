//! Announced blocks: hints for a reclaim method that gives up first the blocks that owners never
//! read.
//!
//! Only where no policy follows hints, and the method
//! [asks for them](crate::reclaim::Reclaim::uses_hints). A hint adds to its owner's
//! [set](crate::announced); with the end of the list the owner's streams are gone through once.
//! From then on blocks are judged as they arrive.
//!
//! ```text
//! Hint{more} ... Hint{}  --> settle: of no use -> abandoned, the first victims
//!                                    of use    -> its stream's again
//! a read of a block that was not announced --> no judgement any more, and settle
//! ```
//!
//! Room: as many runs as a plan of the same memory takes references; each hint adds one at most. If
//! it is full when a list ends, that list is taken for incomplete.

use alloc::vec::Vec;

use super::Engine;
use crate::announced::{Announced, RUN_BYTES};
use crate::table::flag;
use crate::units::{Extent, ReaderId};

/// State of announcements beside the sets.
#[derive(Debug, Default)]
pub(super) struct Announcing {
    /// Runs of all owners.
    runs: u32,
    /// Owners whose list of hints has not ended.
    open: Vec<ReaderId>,
}

impl Engine {
    /// Whether there is room for a hint, where so many runs may be kept; none if nothing here
    /// follows hints.
    pub(super) fn takes_announcement(&self, most: u32) -> Option<bool> {
        let has_room = self.announcing.runs < most;
        self.memory.uses_hints().then_some(has_room)
    }

    /// A reader will read these blocks; none if that ends a list.
    pub(super) fn announced(
        &mut self,
        id: ReaderId,
        extent: Extent,
        more: bool,
        has_room: bool,
    ) -> Option<()> {
        let is_taken = has_room || extent.count == 0;
        if extent.count > 0 {
            if !self.announcing.open.contains(&id) {
                self.announcing.open.push(id);
            }
            if is_taken {
                self.change_announced(id, |set| set.add(extent.first, extent.count));
            }
        }
        if !more {
            for reader in core::mem::take(&mut self.announcing.open) {
                self.change_announced(reader, |set| set.end(has_room));
                self.settle_announced(reader);
            }
        }
        is_taken.then_some(())
    }

    /// Blocks were read: does that agree with their reader's hints?
    pub(super) fn compare_with_announced(&mut self, id: ReaderId, read: Extent) {
        if !self.memory.uses_hints() {
            return;
        }
        let mut is_refuted = false;
        self.change_announced(id, |set| {
            is_refuted = set.is_refuted_by(read.first, read.count);
        });
        if is_refuted {
            self.settle_announced(id);
        }
    }

    /// A reader's file has another content, or is closed.
    pub(super) fn forget_announced(&mut self, id: ReaderId) {
        self.change_announced(id, Announced::clear);
    }

    fn change_announced(&mut self, id: ReaderId, change: impl FnOnce(&mut Announced)) {
        let Some(reader) = self.readers.get_mut(&id) else {
            return;
        };
        let set = &mut reader.streams.announced;
        let before = set.len();
        change(set);
        let after = set.len();
        self.announcing.runs = self.announcing.runs + after - before;
        let more = i64::from(after) - i64::from(before);
        self.memory.charge(more * RUN_BYTES);
    }

    /// Blocks ahead of a reader are judged anew.
    fn settle_announced(&mut self, id: ReaderId) {
        let Some(reader) = self.readers.get(&id) else {
            return;
        };
        let file = reader.file;
        for (first, count) in reader.streams.ahead() {
            let ahead = Extent { file, first, count };
            for block in ahead.blocks() {
                let found = self.memory.table.find(file, block);
                let is_unread = |flags| flags & (flag::UNREAD | flag::FILLING) == flag::UNREAD;
                let Some(found) = found.filter(|found| is_unread(found.flags)) else {
                    continue;
                };
                let reader = self.readers.get_mut(&id);
                match reader.is_some_and(|reader| reader.streams.arrive(block)) {
                    true => self.memory.adopted(found.frame),
                    false => self.memory.abandoned(found.frame),
                }
            }
        }
        self.change_streams(id, |_| ());
    }
}
