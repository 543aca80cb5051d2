//! Wants without memory: a fetch that waits for a slot of its device.
//!
//! Called where a block is missing and where a lookahead mark is met. The window is sized, and takes its frames, when
//! the device has a slot for it, perhaps at once
//! ([note 0008](../../../../docs/design/0008-deferred-requests.md)).
//!
//! Control law of memory: only readers with a slot hold blocks that are not read yet, and these are of two
//! windows a slot, the one that is read and the next. The memory that keeps devices busy is given by the devices, not by
//! the number of readers.
//!
//! Streams of an array with windows of half a stripe and more wait at its first member, in one line, so that its
//! members work for the same readers: a stripe of which a strip is still to come holds memory.
//!
//! Example: 64 readers on a device that works on one request at a time. Two requests are in flight,
//! 62 readers have a want in its queue and hold no frame.
//!
//! Reads that the plan announced do not wait so: their fetches were decided long before.

use super::Engine;
use super::place::FILE;
use crate::known;
use crate::protocol::Wants;
use crate::queues::{Class, DEVICE, Want, Wanted};
use crate::reads::Read;
use crate::units::{Block, Bytes, DeviceId, Extent, FileId, ReaderId};

/// Blocks of a window to come that may be there already, through the plan; as many as one read has.
const PASSED_MAX: usize = Engine::READ_MAX as usize;

/// A single read costs a switch and little else: its bytes are worth at most this part of it. A page of a
/// database, 16 KiB, is one of a disk of 8 ms and 80 MB/s.
const SINGLE_PART: u64 = 32;

impl Engine {
    /// Queues a fetch at a device, which may have a slot for it at once.
    pub(super) fn defer(&mut self, id: DeviceId, fetch: Wanted) {
        // With nothing to fetch any more it goes first, to be gone.
        let nothing = Want {
            fetch,
            class: Class::Program,
            owner: None,
            came: 0,
            position: u64::MAX,
            bytes: Bytes(0),
        };
        let (id, want) = self.want(fetch).unwrap_or((id, nothing));
        self.queues.push(id, want);
        self.dispatch(id);
    }

    /// The want of a fetch, and the device at which it waits: a read that goes on in no stream is for its own alone.
    fn want(&mut self, fetch: Wanted) -> Option<(DeviceId, Want)> {
        let (reader, file, first, count) = self.begins(&fetch)?;
        let read = match &fetch {
            Wanted::Demand { read, .. } => self.reads.get(*read),
            _ => None,
        };
        let jumps = read.is_some_and(|read| self.jumps(read));
        // A program that opens a file and looks at it waits for that page alone.
        let begins = read.is_some_and(|read| read.access.previous.is_none());
        let is_idle = read.is_some_and(|read| read.wants == Wants::Idle);
        let place = match jumps || begins {
            true => self.soonest(file, first)?,
            false => self.turn(reader, first)?,
        };
        let count = count.min(self.run_of(&place));
        let bytes = self.bytes_of(Extent { file, first, count });
        let device = known(self.queues.device(place.device), DEVICE)?;
        let (depth, came) = (device.depth(), device.work());
        // One jump may begin a stream; after two the reader reads at random.
        let is_random = self.readers.note_jump(reader, jumps) && jumps;
        let want = Want {
            fetch,
            class: match read {
                _ if is_idle => Class::Idle,
                _ if (jumps || begins) && bytes.0 <= depth.0 / SINGLE_PART => Class::Single,
                _ if is_random && bytes <= depth => Class::Short,
                _ => Class::Program,
            },
            owner: Some(reader),
            came,
            position: place.position.0,
            bytes,
        };
        Some((place.device, want))
    }

    /// Whether a read goes on neither in a stream nor where its reader read last.
    fn jumps(&self, read: &Read) -> bool {
        let Some(reader) = self.readers.reader(read.reader) else {
            return false;
        };
        let stream = reader.streams().at(read.access.block);
        let is_in_stream = stream.is_some_and(|stream| stream.consumed() > 0);
        !is_in_stream && !read.access.begin().is_sequential()
    }

    /// Where a fetch begins, and how many blocks it has at least; of a window, its
    /// first block that is missing. None if there is nothing to fetch any more.
    fn begins(&self, fetch: &Wanted) -> Option<(ReaderId, FileId, Block, u32)> {
        match fetch {
            Wanted::Demand { read, file, block } => {
                let read = self.reads.get(*read)?;
                Some((read.reader, *file, *block, read.access.count))
            }
            Wanted::Window { reader, end, .. } => {
                let file = self.readers.reader(*reader)?.file;
                let is_missing = |at: &u32| self.memory.table.find(file, Block(*at)).is_none();
                let first = (end.0..=u32::MAX).take(PASSED_MAX).find(is_missing)?;
                Some((*reader, file, Block(first), 1))
            }
            Wanted::Request(_) => None,
        }
    }

    /// Fetches the missing blocks that a read asks for, and no window.
    pub(super) fn fetch_only(&mut self, reader: ReaderId, asked: Extent) {
        self.fetch(reader, asked, Some(asked), None);
        self.rejoin(asked);
    }

    /// Reads without memory that have a block in flight by now wait for that fetch instead.
    pub(super) fn rejoin(&mut self, extent: Extent) {
        let Some(file) = known(self.readers.file(extent.file), FILE) else {
            return;
        };
        let table = &self.memory.table;
        let is_coming = |block: Block| table.find(extent.file, block).is_some();
        for id in file.layout.devices() {
            let reads = self.queues.take_demands(id, extent, is_coming);
            self.work.reads.extend(reads);
        }
    }

    /// A reader closes, and its reads are gone: so are its wants.
    pub(super) fn drop_wants(&mut self, id: ReaderId) {
        let file = self
            .readers
            .reader(id)
            .and_then(|r| self.readers.file(r.file));
        let reads = &self.reads;
        let stays = |fetch: &Wanted| match fetch {
            Wanted::Demand { read, .. } => reads.get(*read).is_some(),
            Wanted::Window { reader, .. } => *reader != id,
            Wanted::Request(_) => true,
        };
        for device in file.iter().flat_map(|file| file.layout.devices()) {
            self.queues.forget(device, id, stays);
        }
    }
}
