//! Changes: a file has another content now, a reader closes, a file is forgotten.
//!
//! Blocks of a changed file leave the table at once. What is in flight for it keeps its frames,
//! because the device may still write to them, but belongs to no block any more; what is queued
//! and not dispatched never starts. Reads that waited for either begin again.

use alloc::vec::Vec;

use super::{Engine, READ_BYTES, READER_BYTES, REQUEST_BYTES};
use crate::detect;
use crate::stream::Streams;
use crate::table::{Frame, flag};
use crate::units::{Bytes, Extent, FileId, Nanos, ReadId, ReaderId, RequestId};

impl Engine {
    pub(super) fn invalidate(&mut self, file: FileId, bytes: Bytes) -> Option<()> {
        let blocks = self.blocks_of(bytes);
        let state = self.files.get_mut(&file)?;
        state.bytes = bytes;
        state.blocks = blocks;
        let waiting = self.drop_blocks(file);
        self.drop_hints(file);
        self.forget_patterns(file);
        for read in waiting {
            self.go_on(read);
        }
        Some(())
    }

    pub(super) fn close(&mut self, id: ReaderId) -> Option<()> {
        self.readers.get(&id)?;
        self.abandon_reads(id);
        self.abandon_streams(id);
        self.change_streams(id, Streams::clear);
        self.close_hints(id);
        self.drop_wishes(id);
        let reader = self.readers.remove(&id)?;
        self.memory.charge(-READER_BYTES);
        let file = self.files.get_mut(&reader.file)?;
        file.readers -= 1;
        if file.readers == 0 {
            self.drop_hints(reader.file);
        }
        Some(())
    }

    pub(super) fn forget(&mut self, file: FileId) -> Option<()> {
        if self.files.get(&file)?.readers > 0 {
            return None;
        }
        self.drop_blocks(file);
        self.files.remove(&file);
        Some(())
    }

    /// Takes every block of a file out of the table; returns the reads that waited for some.
    fn drop_blocks(&mut self, file: FileId) -> Vec<ReadId> {
        let mut waiting = Vec::new();
        for id in self
            .requests
            .which(|r| r.extent.file == file && r.orphans.is_empty())
        {
            waiting.append(&mut self.orphan(id));
        }
        let dropped = self.drop_resident(file);
        self.memory.sweep();
        for frame in dropped {
            self.memory.give_back(frame);
        }
        waiting
    }

    fn drop_resident(&mut self, file: FileId) -> Vec<Frame> {
        let table = self.memory.table.clone();
        let dropped: Vec<Frame> = (0..table.frames())
            .map(Frame)
            .filter(|&f| table.flags(f) & flag::VACANT == 0 && table.holds(f).0 == file)
            .collect();
        for &frame in &dropped {
            self.memory.dropped(frame);
            self.evict(frame);
        }
        dropped
    }

    /// The blocks of a fetch are wanted no more.
    pub(super) fn orphan(&mut self, id: RequestId) -> Vec<ReadId> {
        let Some(request) = self.requests.get_mut(id) else {
            return Vec::new();
        };
        let (extent, dispatched, device) = (request.extent, request.dispatched, request.device);
        let waiting = core::mem::take(&mut request.waiters);
        let mut frames = Vec::with_capacity(extent.count as usize);
        for block in extent.blocks() {
            let Some(found) = self.memory.table.find(extent.file, block) else {
                continue;
            };
            if found.flags & flag::UNREAD != 0 {
                self.ledger.in_flight -= 1;
                self.ledger.evicted_unused += 1;
            }
            self.memory.table.remove(found.frame);
            frames.push(found.frame);
        }
        if dispatched {
            if let Some(request) = self.requests.get_mut(id) {
                request.orphans = frames.into_boxed_slice();
            }
            return waiting;
        }
        if let Some(device) = self.devices.get_mut(&device) {
            device.queue.retain(|queued| *queued != id);
            device.planned.retain(|queued| *queued != id);
        }
        self.requests.remove(id);
        self.memory.charge(-REQUEST_BYTES);
        for frame in frames {
            self.memory.give_back(frame);
        }
        if let Some((piece, _)) = self.disown(id) {
            self.piece_ended(piece, false, Nanos(0));
        }
        waiting
    }

    /// What was learned of a file's readers does not hold for its new content.
    fn forget_patterns(&mut self, file: FileId) {
        let readers: Vec<ReaderId> = self
            .readers
            .iter()
            .filter(|(_, r)| r.file == file)
            .map(|(id, _)| *id)
            .collect();
        for id in readers {
            self.change_streams(id, Streams::clear);
            let fresh = self.settings.detect.build(detect::LIST);
            if let (Some(reader), Some(fresh)) = (self.readers.get_mut(&id), fresh) {
                reader.detect = fresh;
            }
        }
    }

    /// What was fetched ahead for a reader, and nobody came for, is the first to go (li05 section
    /// 3.2: pages whose owner has closed the file).
    fn abandon_streams(&mut self, id: ReaderId) {
        let Some(reader) = self.readers.get(&id) else {
            return;
        };
        let file = reader.file;
        for (first, count) in reader.streams.ahead() {
            for block in (Extent { file, first, count }).blocks() {
                if let Some(found) = self.memory.table.find(file, block)
                    && found.flags & (flag::UNREAD | flag::FILLING) == flag::UNREAD
                {
                    self.memory.abandoned(found.frame);
                }
            }
        }
    }

    fn abandon_reads(&mut self, reader: ReaderId) {
        let mut reads: Vec<ReadId> = self
            .reads
            .iter()
            .filter(|(_, r)| r.reader == reader)
            .map(|(id, _)| *id)
            .collect();
        reads.sort_unstable();
        for id in reads {
            let Some(read) = self.reads.remove(&id) else {
                continue;
            };
            self.memory.charge(-READ_BYTES);
            for frame in read.pinned {
                self.memory.unpin(frame);
            }
        }
    }
}
