//! Demand reads: hit, late hit or miss; serve or wait.
//!
//! A read may be longer than the free memory. So it is answered as soon as its first block is
//! resident, with as many of the following blocks as are, and the driver asks again for the rest:
//! one frame is enough for progress. Called for a new read, and again for a waiting one whenever a
//! fetch that it waited for has ended ([`work`](super::work)).
//!
//! Example: a read of blocks 10 to 25, of which 10 to 15 are resident and 16 is in flight, is
//! answered with 6 blocks; the next try waits for the fetch of 16.
//!
//! A read that only awaits its blocks (`Wants::Presence`) goes from each to the next as it arrives
//! and never back, so it ends however little memory there is. An idle one (`Wants::Idle`) does the same, and leaves
//! marks, streams and announced orders alone.

use alloc::vec::Vec;

use super::{Engine, READ_BYTES};
use crate::detect::Access;
use crate::known;
use crate::protocol::{Output, Served, Wants};
use crate::queues::Wanted;
use crate::readers::Pace;
use crate::reads::Read;
use crate::reclaim::Event;
use crate::table::flag;
use crate::units::{Block, Extent, ReadId, ReaderId, RequestId, saturate};

/// Most blocks answered (and pinned) at once: 256 KiB of pages, enough to hide the round trip.
const SERVE_MAX: u32 = 64;

/// The invariants by which reads and readers are found.
const READ: &str = "a read that is tried or answered is under way";
pub(super) const READER: &str = "a read belongs to an open reader";

impl Engine {
    pub(super) fn begin_read(
        &mut self,
        id: ReadId,
        reader: ReaderId,
        mut access: Access,
        fresh: bool,
        wants: Wants,
    ) -> Option<()> {
        let file = self.readers.reader(reader)?.file;
        if access.count == 0 || self.reads.get(id).is_some() {
            return None;
        }
        let blocks = self.readers.file(file)?.blocks;
        let first = access.block;
        if u64::from(first.0) >= blocks {
            self.work.out.push_back(Output::Serve {
                read: id,
                served: Served::End,
            });
            return Some(());
        }
        let left = saturate(blocks - u64::from(first.0));
        access.count = access.count.min(left).min(Self::READ_MAX);
        if fresh {
            self.classify(access.extent(file));
        }
        let read = Read {
            reader,
            file,
            access,
            wants,
            asked: self.work.now,
            pinned: Vec::new(),
            alone: false,
        };
        self.reads.begin(id, read);
        self.memory.charge(READ_BYTES);
        let has_pattern = fresh && wants != Wants::Idle;
        if has_pattern {
            self.take_hints(reader, access);
        }
        if self.setup.sees_every_read && !self.setup.sees_every_block && has_pattern {
            self.show(reader, access);
        }
        self.go_on(id);
        Some(())
    }

    /// The detector sees a read, unless it was announced.
    fn show(&mut self, reader: ReaderId, access: Access) {
        if !self.is_announced(reader, access.block) {
            self.show_read(reader, access);
        }
    }

    /// Counts each block by its state when it was asked for.
    fn classify(&mut self, extent: Extent) {
        self.ledger.reads += u64::from(extent.count);
        for block in extent.blocks() {
            match self.memory.table.find(extent.file, block) {
                None => self.ledger.misses += 1,
                Some(found) if found.flags & flag::FILLING != 0 => self.ledger.late_hits += 1,
                Some(_) => self.ledger.hits += 1,
            }
        }
    }

    /// Takes a waiting read as far as it gets: to an answer, to a fetch to wait for, or to the
    /// queue for memory.
    pub(super) fn go_on(&mut self, id: ReadId) {
        if self.try_read(id).is_none() {
            self.starve(id);
        }
    }

    /// Not even one frame was to be had.
    fn starve(&mut self, id: ReadId) {
        self.ledger.memory_waits += 1;
        self.reads.starve(id);
    }

    /// A deferred read has its slot: its fetch goes out now with its reader's next window, or is on its way already.
    /// An idle read has no window.
    pub(super) fn fetch_deferred(&mut self, id: ReadId) {
        let Some(read) = known(self.reads.get(id), READ) else {
            return;
        };
        let (file, reader, access, wants) = (read.file, read.reader, read.access, read.wants);
        let is_missing = |engine: &Self| engine.memory.table.find(file, access.block).is_none();
        if is_missing(self) {
            match wants {
                Wants::Idle => self.fetch_only(reader, access.extent(file)),
                _ => self.miss(reader, access),
            }
        }
        if is_missing(self) {
            self.starve(id);
        } else {
            self.go_on(id);
        }
    }

    /// `None` if not even one frame was to be had.
    pub(super) fn try_read(&mut self, id: ReadId) -> Option<()> {
        while self.try_block(id)? {}
        Some(())
    }

    /// The same for its next block; true if it awaited that one and goes on to another.
    fn try_block(&mut self, id: ReadId) -> Option<bool> {
        let Some(read) = known(self.reads.get(id), READ) else {
            return Some(false);
        };
        debug_assert!(
            read.pinned.is_empty(),
            "a read that was served is in no list"
        );
        let (file, reader, access, alone) = (read.file, read.reader, read.access, read.alone);
        let wants = read.wants;
        let first = access.block;
        let own = Extent::new(file, first, 1);
        let past_end = self
            .readers
            .file(file)
            .is_none_or(|f| u64::from(first.0) >= f.blocks);
        if past_end {
            self.answer(id, Served::End);
            return Some(false);
        }
        if self.setup.sees_every_block && wants != Wants::Idle {
            self.show(reader, access);
        }
        if self.memory.table.find(file, first).is_none() {
            if alone || self.pace(file) == Pace::Hangs {
                // Its longer fetch failed, or the file's requests hang.
                self.fetch_only(reader, own);
            } else if self.is_announced(reader, first) {
                self.fetch_only(reader, access.extent(file));
            } else {
                let place = self.soonest(file, first)?;
                let (read, block) = (id, first);
                self.defer(place.device, Wanted::Demand { read, file, block });
                return Some(false);
            }
        }
        let found = self.memory.table.find(file, first)?;
        if found.flags & flag::FILLING != 0 {
            if wants != Wants::Idle {
                self.take_mark(reader, access);
            }
            self.wait_for(id, RequestId(self.memory.request_of(found.frame)));
            return Some(false);
        }
        if wants == Wants::Blocks {
            self.serve(id);
            return Some(false);
        }
        if wants == Wants::Idle {
            return Some(self.await_next(id));
        }
        // Before the mark: the window it opens may take this frame.
        self.reached(found.frame);
        self.take_mark(reader, access);
        self.advance(reader, own);
        Some(self.await_next(id))
    }

    /// A block that was awaited is there: on to the next one. False if it was the last.
    fn await_next(&mut self, id: ReadId) -> bool {
        let Some(read) = known(self.reads.get_mut(id), READ) else {
            return false;
        };
        let next = read.access.block.0.checked_add(1);
        let Some(next) = next.filter(|_| read.access.count > 1) else {
            self.answer(id, Served::End);
            return false;
        };
        read.access = read.access.at(Block(next));
        read.alone = false;
        true
    }

    fn wait_for(&mut self, id: ReadId, request: RequestId) {
        let Some(read) = known(self.reads.get(id), READ) else {
            return;
        };
        let hurries = read.wants != Wants::Idle;
        self.readers.note_wait(read.reader, read.access.block);
        if let Some(device) = self.queues.await_request(request, id, hurries) {
            self.dispatch(device);
        }
    }

    /// Answers with the run of resident blocks from the first one on.
    fn serve(&mut self, id: ReadId) {
        let Some(read) = known(self.reads.get_mut(id), READ) else {
            return;
        };
        let (file, reader, access) = (read.file, read.reader, read.access);
        let (first, mut previous) = (access.block, access.previous);
        let limit = access
            .count
            .min(SERVE_MAX)
            .min((self.memory.frames_usable() / 8).max(1));
        let mut pinned = core::mem::take(&mut read.pinned);
        for block in Extent::new(file, first, limit).blocks() {
            if self.setup.sees_every_block && block != first {
                self.show(reader, access.at(block));
            }
            let Some(found) = self.memory.table.find(file, block) else {
                break;
            };
            if found.flags & flag::FILLING != 0 {
                break;
            }
            self.memory.pin(found.frame);
            pinned.push(found.frame);
            self.take_mark(reader, access.at(block));
            self.access(found.frame, Some(block) != previous);
            previous = Some(block);
        }
        let count = pinned.len() as u32;
        self.advance(reader, Extent::new(file, first, count));
        if let Some(read) = self.reads.get_mut(id) {
            read.pinned = pinned;
        }
        self.note_served(reader);
        self.answer(id, Served::Blocks { count });
    }

    /// The lookahead mark counts when its block is asked for, resident or in flight: the reader
    /// that waits then has two windows on the way, not one.
    fn take_mark(&mut self, reader: ReaderId, access: Access) {
        let Some(file) = self.file_id_of(reader) else {
            return;
        };
        if let Some(found) = self.memory.table.find(file, access.block)
            && found.flags & flag::MARK != 0
        {
            self.memory.table.clear(found.frame, flag::MARK);
            if !self.is_announced(reader, access.block) && !self.is_plans_mark(file, access.block) {
                self.want_window(reader, access);
            }
        }
    }

    /// Answers a read. One that got blocks stays until it is released.
    pub(super) fn answer(&mut self, id: ReadId, served: Served) {
        let Some(read) = known(self.reads.get(id), READ) else {
            return;
        };
        let stall = &mut self.ledger.stall.0;
        *stall = stall.saturating_add(self.work.now.since(read.asked).0);
        if read.pinned.is_empty() {
            let (reader, left) = (read.reader, read.extent(read.access.count));
            let is_awaited = read.wants == Wants::Presence && served == Served::End;
            self.reads.end(id);
            self.memory.charge(-READ_BYTES);
            match is_awaited {
                // It is to be taken yet: an announced piece is its reader's until that one goes on.
                true => self.note_served(reader),
                false => self.taken(reader, &left),
            }
        }
        self.work.out.push_back(Output::Serve { read: id, served });
    }

    /// The bytes were taken.
    pub(super) fn release(&mut self, id: ReadId) -> Option<()> {
        if self.reads.get(id)?.pinned.is_empty() {
            return None;
        }
        let read = self.reads.end(id)?;
        self.memory.charge(-READ_BYTES);
        let taken = read.extent(read.pinned.len() as u32);
        for frame in read.pinned {
            self.memory.unpin(frame);
        }
        self.taken(read.reader, &taken);
        Some(())
    }

    /// First touches reported by the hit path.
    pub(super) fn touch(&mut self, reader: ReaderId, first: Block, count: u32) -> Option<()> {
        let file = self.readers.reader(reader)?.file;
        let extent = Extent::new(file, first, count.min(Self::READ_MAX));
        for block in extent.blocks() {
            if let Some(found) = self.memory.table.find(file, block)
                && found.flags & flag::FILLING == 0
            {
                self.access(found.frame, true);
            }
        }
        self.advance(reader, extent);
        Some(())
    }

    /// A resident block was accessed. Reading on inside the block accessed last is not a new
    /// access (the kernel's rule, too): small reads do not make a block look busy.
    fn access(&mut self, frame: crate::table::Frame, new: bool) {
        self.reached(frame);
        if new {
            self.memory.tell_of(frame, Event::Touched(frame));
        }
    }

    /// Its reader came to a resident block. One that is awaited is not given up as one whose bytes
    /// were taken, but the detector sees that it is wanted.
    fn reached(&mut self, frame: crate::table::Frame) {
        if self.memory.table.flags(frame) & flag::UNREAD != 0 {
            self.memory.used(frame);
            self.ledger.resident_unused -= 1;
            self.ledger.used += 1;
        }
    }

    fn advance(&mut self, reader: ReaderId, extent: Extent) {
        let now = self.work.now;
        let stream = self.change_streams(reader, |streams| {
            streams.advance(extent.first, extent.count, now)
        });
        if let Some(stream) = stream {
            let owner = reader;
            self.memory.tell(Event::Read {
                owner,
                extent,
                stream,
            });
        }
    }
}
