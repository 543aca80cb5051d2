//! Changes: a file is known, is open, has another content now, is closed, is forgotten.
//!
//! Blocks of a changed file leave the table at once. Fetches in flight for it keep their frames,
//! because the device may still write to them, but belong to no block any more; queued
//! requests that were not dispatched are dropped. Reads that waited for either begin again.

use alloc::vec::Vec;

use super::{Engine, READ_BYTES};
use crate::layout::{LayoutMap, MappedExtent, Placement};
use crate::readers::File;
use crate::reclaim::Event;
use crate::table::{Frame, flag};
use crate::units::{Block, Bytes, Extent, FileId, ReadId, ReaderId, RequestId};

/// Memory charged for an open file: its entry, its detector, its account at a device, four streams, and room in the
/// maps. Further streams come on top as they appear.
const READER_BYTES: i64 = 520;

/// An account at a device: two numbers and a byte in a table that is at least 7/16 full.
const ACCOUNT_BYTES: usize = 40;

/// Memory charged for an open file of so many members: an account at each, the first of which is in the rest.
pub(super) fn reader_bytes(members: usize) -> i64 {
    let accounts = i64::try_from(members.saturating_sub(1).saturating_mul(ACCOUNT_BYTES));
    READER_BYTES.saturating_add(accounts.unwrap_or(i64::MAX))
}

/// Memory charged for a file beyond its entry: its extents.
fn extents_bytes(layout: &LayoutMap) -> i64 {
    (layout.extents() * size_of::<MappedExtent>()) as i64
}

impl Engine {
    pub(super) fn add_file(
        &mut self,
        id: FileId,
        placement: &Placement,
        bytes: Bytes,
    ) -> Option<()> {
        if id.0 >= FileId::LIMIT || self.readers.file(id).is_some() {
            return None;
        }
        let layout = LayoutMap::new(placement, self.setup.settings.block_bytes)?;
        for device in layout.devices() {
            self.queues.know(device);
        }
        let blocks = self.blocks_in(bytes);
        self.memory.charge(extents_bytes(&layout));
        self.readers.add_file(id, File::new(layout, bytes, blocks));
        Some(())
    }

    pub(super) fn open(&mut self, reader: ReaderId, file: FileId) -> Option<()> {
        let detect = self.setup.settings.detect.build();
        let file = self.readers.open(reader, file, detect)?;
        let bytes = reader_bytes(file.layout.devices().len());
        self.memory.charge(bytes);
        Some(())
    }

    pub(super) fn invalidate(&mut self, file: FileId, bytes: Bytes) -> Option<()> {
        let blocks = self.blocks_in(bytes);
        self.readers.file(file)?;
        let waiting = self.drop_blocks(file);
        let state = self.readers.file_mut(file)?;
        state.bytes = bytes;
        state.blocks = blocks;
        self.drop_hints(file);
        self.forget_patterns(file);
        self.work.reads.extend(waiting);
        Some(())
    }

    pub(super) fn close(&mut self, id: ReaderId) -> Option<()> {
        self.readers.reader(id)?;
        self.abandon_reads(id);
        self.abandon_streams(id);
        self.change_streams(id, |streams| streams.clear());
        self.memory.tell(Event::Closed(id));
        self.close_ahead(id);
        self.leave_others(id, &[]);
        self.drop_wants(id);
        let (file, closed) = self.readers.close(id)?;
        let bytes = reader_bytes(closed.layout.devices().len());
        let is_last = !closed.is_open();
        self.memory.charge(-bytes);
        if is_last {
            self.drop_hints(file);
        }
        Some(())
    }

    pub(super) fn forget(&mut self, file: FileId) -> Option<()> {
        if self.readers.file(file)?.is_open() {
            return None;
        }
        self.drop_blocks(file);
        let file = self.readers.forget(file)?;
        self.memory.charge(-extents_bytes(&file.layout));
        Some(())
    }

    /// Takes every block of a file out of the table; returns the reads that waited for some.
    fn drop_blocks(&mut self, file: FileId) -> Vec<ReadId> {
        let mut waiting = Vec::new();
        for id in self
            .queues
            .requests
            .which(|r| r.extent.file == file && r.orphans.is_empty())
        {
            waiting.append(&mut self.orphan(id));
        }
        for frame in self.resident(file) {
            let is_in_order = self.memory.dropped(frame);
            self.evict(frame);
            self.memory.vacated(frame, is_in_order);
        }
        waiting
    }

    /// The frames with blocks of a file: whichever is less to look at, its blocks or all frames.
    fn resident(&self, file: FileId) -> Vec<Frame> {
        let table = &self.memory.table;
        let blocks = self.readers.file(file).map_or(0, |state| state.blocks);
        if blocks <= u64::from(table.frames()) {
            let blocks = (0..).take(blocks as usize).map(Block);
            let found = blocks.filter_map(|block| table.find(file, block));
            return found.map(|found| found.frame).collect();
        }
        let frames = (0..table.frames()).map(Frame);
        frames
            .filter(|&f| table.flags(f) & flag::VACANT == 0 && table.holds(f).0 == file)
            .collect()
    }

    /// Patterns of a file's readers do not hold for its new content.
    fn forget_patterns(&mut self, file: FileId) {
        for id in self.readers.of(file) {
            self.change_streams(id, |streams| streams.clear());
            self.memory.tell(Event::Changed(id));
            let fresh = self.setup.settings.detect.build();
            if let Some(reader) = self.readers.reader_mut(id) {
                reader.detect = fresh;
            }
        }
    }

    /// Blocks fetched ahead for a reader and never read are the first victims (Li and Shen
    /// 2005, section 3.2: pages whose owner has closed the file).
    fn abandon_streams(&mut self, id: ReaderId) {
        let Some(reader) = self.readers.reader(id) else {
            return;
        };
        let file = reader.file;
        for (first, count) in reader.streams().ahead() {
            for block in Extent::new(file, first, count).blocks() {
                if let Some(found) = self.memory.table.find(file, block)
                    && found.flags & (flag::UNREAD | flag::FILLING) == flag::UNREAD
                {
                    let frame = found.frame;
                    self.memory.tell_of(frame, Event::Abandoned(frame));
                }
            }
        }
    }

    /// The reads of a reader are gone: nothing waits under their numbers any more, which may be
    /// given to other reads.
    fn abandon_reads(&mut self, reader: ReaderId) {
        let reads = self.reads.abandon(reader);
        let mut awaited_from = Vec::new();
        for (_, read) in reads {
            self.memory.charge(-READ_BYTES);
            let awaited = self.memory.table.find(read.file, read.access.block);
            if let Some(found) = awaited.filter(|found| found.flags & flag::FILLING != 0) {
                awaited_from.push(RequestId(self.memory.request_of(found.frame)));
            }
            for frame in read.pinned {
                self.memory.unpin(frame);
            }
        }
        // Once for each request, however many of the reads wait for it.
        awaited_from.sort_unstable();
        awaited_from.dedup();
        for request in awaited_from {
            if let Some(request) = self.queues.requests.get_mut(request) {
                let waiters = &mut request.waiters;
                waiters.retain(|waiter| self.reads.get(*waiter).is_some());
            }
        }
    }
}
