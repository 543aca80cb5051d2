//! Reads: those that programs wait for, and the order in which they wait for memory.
//!
//! A read is under way until it has its answer, or, if that is blocks, until they are released. One that found not
//! even a frame is *starved*: it is tried again when there is one, first come first served.
//!
//! Example: reads 1, 2 and 3 are under way, 2 and 3 are starved. A frame comes free: 2 is tried, and 3 after it.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::detect::Access;
use crate::protocol::Wants;
use crate::table::Frame;
use crate::units::{Block, Extent, FileId, Nanos, ReadId, ReaderId};

/// A demand read under way.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) reader: ReaderId,
    pub(crate) file: FileId,
    /// Its first block, and how many from there on.
    pub(crate) access: Access,
    pub(crate) wants: Wants,
    pub(crate) asked: Nanos,
    /// Blocks served and not released yet; empty while it waits.
    pub(crate) pinned: Vec<Frame>,
    /// A fetch it waited for failed: its first block is fetched alone, and that error is its own.
    pub(crate) alone: bool,
}

impl Read {
    /// So many blocks from its first one on.
    pub(crate) fn extent(&self, count: u32) -> Extent {
        let (file, first) = (self.file, self.access.block);
        Extent { file, first, count }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Reads {
    under_way: BTreeMap<ReadId, Read>,
    /// Their numbers by reader: the end of one goes through no other's reads.
    of_reader: BTreeSet<(ReaderId, ReadId)>,
    starved: VecDeque<ReadId>,
}

impl Reads {
    pub(crate) fn begin(&mut self, id: ReadId, read: Read) {
        self.of_reader.insert((read.reader, id));
        let before = self.under_way.insert(id, read);
        debug_assert!(before.is_none(), "a number is one read's");
    }

    pub(crate) fn get(&self, id: ReadId) -> Option<&Read> {
        self.under_way.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ReadId) -> Option<&mut Read> {
        self.under_way.get_mut(&id)
    }

    /// It has its answer, and is in no list.
    pub(crate) fn end(&mut self, id: ReadId) -> Option<Read> {
        let read = self.under_way.remove(&id)?;
        self.of_reader.remove(&(read.reader, id));
        Some(read)
    }

    /// A reader closes: its reads are gone from all lists, in the order of their numbers.
    pub(crate) fn abandon(&mut self, reader: ReaderId) -> Vec<(ReadId, Read)> {
        let its = (reader, ReadId(0))..=(reader, ReadId(u32::MAX));
        let its: Vec<ReadId> = self.of_reader.range(its).map(|(_, id)| *id).collect();
        let gone = its.iter().filter_map(|id| Some((*id, self.end(*id)?)));
        let gone: Vec<_> = gone.collect();
        if !gone.is_empty() {
            self.starved.retain(|id| self.under_way.contains_key(id));
        }
        gone
    }

    /// Where readers wait for an answer, in their order.
    pub(crate) fn waiting(&self) -> Vec<(ReaderId, Block)> {
        let waiting = self.under_way.values().filter(|r| r.pinned.is_empty());
        let mut waiting: Vec<_> = waiting.map(|r| (r.reader, r.access.block)).collect();
        waiting.sort_unstable();
        waiting
    }

    /// Not even one frame was to be had for it.
    pub(crate) fn starve(&mut self, id: ReadId) {
        self.starved.push_back(id);
    }

    pub(crate) fn starving(&self) -> usize {
        self.starved.len()
    }

    /// The one that starves longest is tried again.
    pub(crate) fn next_starved(&mut self) -> Option<ReadId> {
        self.starved.pop_front()
    }

    /// There was no frame for it: it goes on to starve longest.
    pub(crate) fn starve_first(&mut self, id: ReadId) {
        self.starved.push_front(id);
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }
}
