//! Deferred requests of one device: queued without memory until the device has a slot.
//!
//! A request that its device has no slot for is kept as a few words. Its fetch is decided, and
//! takes frames, when the slot comes free. The queue is in order of arrival; the dispatch stage
//! looks at all of it and takes any, which is why an entry says itself where its fetch lies:
//! thousands of readers may wait. One question must not cost a walk, because it follows every
//! fetch: which deferred demand reads wait for a block of this extent?
//!
//! ```text
//! entries  ticket -> request        7: read 3     8: window of reader 1     9: read 4
//! demands  (file, block, ticket)    (0, 10, 7)                              (0, 512, 9)
//! ```

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::detect::Access;
use crate::units::{Block, Bytes, Extent, FileId, ReadId, ReaderId};

/// A request without memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deferred {
    pub(crate) request: DeferredRequest,
    /// The device's [work](crate::dispatch) when it came.
    pub(crate) came: u64,
    /// Its reader.
    pub(crate) reader: ReaderId,
    /// Which member of the file's layout the device is.
    pub(crate) member: u32,
    /// Where the fetch begins on the device, as it stood then.
    pub(crate) position: u64,
    /// How long it is at least.
    pub(crate) bytes: Bytes,
}

/// The fetch that is decided once there is a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeferredRequest {
    /// Of the blocks this read misses, the first of which is named.
    Demand {
        read: ReadId,
        file: FileId,
        block: Block,
    },
    /// Of the window behind the one whose mark this access met, when `end` was the first block that
    /// no window had covered.
    Window {
        reader: ReaderId,
        access: Access,
        end: Block,
    },
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct DeferredQueue {
    entries: BTreeMap<u64, Deferred>,
    demands: BTreeSet<(FileId, Block, u64)>,
    next_ticket: u64,
}

impl DeferredQueue {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// In order of arrival.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Deferred> {
        self.entries.values()
    }

    pub(crate) fn push(&mut self, deferred: Deferred) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if let DeferredRequest::Demand { file, block, .. } = deferred.request {
            self.demands.insert((file, block, ticket));
        }
        self.entries.insert(ticket, deferred);
    }

    /// Takes out the one that came as number `at` of those here.
    pub(crate) fn take_nth(&mut self, at: usize) -> Option<Deferred> {
        let ticket = *self.entries.keys().nth(at)?;
        self.take(ticket)
    }

    fn take(&mut self, ticket: u64) -> Option<Deferred> {
        let deferred = self.entries.remove(&ticket)?;
        if let DeferredRequest::Demand { file, block, .. } = deferred.request {
            let was_known = self.demands.remove(&(file, block, ticket));
            debug_assert!(was_known, "a deferred read is found by its block");
        }
        Some(deferred)
    }

    /// Takes out the demand reads that wait for a block of this extent for which `holds` is true,
    /// in order of arrival.
    pub(crate) fn take_demands(
        &mut self,
        extent: Extent,
        holds: impl Fn(Block) -> bool,
    ) -> Vec<ReadId> {
        let last = extent.end().saturating_sub(1).min(u64::from(u32::MAX)) as u32;
        let range = (extent.file, extent.first, 0)..=(extent.file, Block(last), u64::MAX);
        let found = self.demands.range(range);
        let mut tickets: Vec<u64> = found
            .filter(|(_, block, _)| extent.contains(*block) && holds(*block))
            .map(|(_, _, ticket)| *ticket)
            .collect();
        tickets.sort_unstable();
        let taken = tickets.into_iter().filter_map(|ticket| self.take(ticket));
        taken
            .filter_map(|deferred| match deferred.request {
                DeferredRequest::Demand { read, .. } => Some(read),
                DeferredRequest::Window { .. } => None,
            })
            .collect()
    }

    /// Drops the requests for which `stays` does not hold.
    pub(crate) fn retain(&mut self, stays: impl Fn(&DeferredRequest) -> bool) {
        let gone = self.entries.iter().filter(|(_, d)| !stays(&d.request));
        let gone: Vec<u64> = gone.map(|(ticket, _)| *ticket).collect();
        for ticket in gone {
            self.take(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_found_by_their_block_and_requests_taken_from_anywhere() {
        let mut queue = DeferredQueue::default();
        let demand = |read, block| DeferredRequest::Demand {
            read: ReadId(read),
            file: FileId(0),
            block: Block(block),
        };
        for (read, block) in [(1, 10), (2, 512), (3, 11), (4, 10)] {
            queue.push(Deferred {
                request: demand(read, block),
                came: 0,
                reader: ReaderId(0),
                member: 0,
                position: 0,
                bytes: Bytes(0),
            });
        }
        let extent = Extent {
            file: FileId(0),
            first: Block(8),
            count: 4,
        };
        let found = queue.take_demands(extent, |block| block == Block(10));
        assert_eq!(found, [ReadId(1), ReadId(4)]);
        assert_eq!(queue.take_nth(1).map(|d| d.request), Some(demand(3, 11)));
        assert_eq!(queue.take_nth(1), None);
        queue.retain(|request| *request != demand(2, 512));
        assert!(queue.len() == 0 && queue.demands.is_empty());
    }
}
