//! Places: which device holds a block of a file, and where on it. The stage *layout*.
//!
//! Asked by every stage that must know a device: the [layout](crate::layout) of the file answers in
//! members and bytes, here that becomes devices and blocks. A leaf: it calls no other stage.

use super::Engine;
use super::read::READER;
use crate::known;
use crate::layout::PlaceOnDevice;
use crate::layout::map::Strip;
use crate::queues::Device;
use crate::units::{Block, Bytes, DeviceId, Extent, FileId, Nanos, ReaderId, saturate};

/// The invariant by which files are found.
pub(super) const FILE: &str = "the file of a reader or a request is known";

/// A reader that has all copies for itself reads parts of its window from each, if every part is so
/// many competitive depths long: from one copy alone it needs no switch, and with parts of one
/// depth two copies switching are as fast as one that does not.
const RUN_DEPTHS: u64 = 2;

/// The copies that the blocks of one window come from, where there are several: the window in so
/// many parts, one copy each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    first: usize,
    parts: usize,
    copies: usize,
    pub(super) window: Extent,
}

impl Side {
    pub(super) fn copy(&self, block: Block) -> usize {
        let passed = u64::from(block.0.saturating_sub(self.window.first.0));
        let part = passed * self.parts as u64 / u64::from(self.window.count.max(1));
        (self.first + part as usize) % self.copies
    }
}

impl Engine {
    pub(super) fn block_bytes(&self) -> u64 {
        self.setup.settings.block_bytes.into()
    }

    /// The file that a reader reads.
    pub(super) fn file_id_of(&self, reader: ReaderId) -> Option<FileId> {
        known(self.readers.reader(reader), READER).map(|reader| reader.file)
    }

    /// Number of blocks of so many bytes, never more than block numbers exist.
    pub(super) fn blocks_in(&self, bytes: Bytes) -> u64 {
        bytes.0.div_ceil(self.block_bytes()).min(u32::MAX.into())
    }

    /// Where a block of a known file lies.
    pub(super) fn place(&self, file: FileId, block: Block) -> Option<PlaceOnDevice> {
        self.copy(file, block, 0)
    }

    /// The same of the copy that is read soonest.
    pub(super) fn soonest(&self, file: FileId, block: Block) -> Option<PlaceOnDevice> {
        self.copy(file, block, self.soonest_copy(file, block))
    }

    /// Where a reader waits for its turn to go on from a block. One whose windows are half a stripe and more waits at the first
    /// member of the array: its members then work for the same readers at a time, and only these hold blocks of stripes
    /// that are not whole. A shorter window keeps one member busy, and waits for that.
    pub(super) fn turn(&self, reader: ReaderId, block: Block) -> Option<PlaceOnDevice> {
        let reader = self.readers.reader(reader)?;
        let file = known(self.readers.file(reader.file), FILE)?;
        let stream = reader.streams().at(block);
        let window = stream.map_or(0, |stream| u64::from(stream.last_window));
        let is_wide = |strip: &Strip| 2 * window >= u64::from(strip.stripe);
        let lead = file.layout.strip(block).filter(is_wide);
        let lead = lead.and_then(|_| file.layout.lead(block));
        let lead = lead.filter(|lead| u64::from(lead.0) < file.blocks);
        self.soonest(reader.file, lead.unwrap_or(block))
    }

    /// Which copy of a block is read soonest: behind the work its device has, and a switch if it
    /// stands elsewhere.
    fn soonest_copy(&self, file: FileId, block: Block) -> usize {
        let copies = 0..self.copies(file, block);
        if copies.len() == 1 {
            return 0;
        }
        let ready = |copy: &usize| {
            let place = self.copy(file, block, *copy);
            place.map_or(Nanos(u64::MAX), |place| self.ready(&place))
        };
        copies.min_by_key(ready).unwrap_or(0)
    }

    /// Which copies the blocks of a window come from.
    pub(super) fn side(&self, window: Extent) -> Side {
        let (file, start) = (window.file, window.first);
        let copies = self.copies(file, start);
        let first = self.soonest_copy(file, start);
        let one = Side {
            first,
            parts: 1,
            copies,
            window,
        };
        let parts = copies / self.readers.active().max(1);
        let device = self.copy(file, start, first);
        let device = device.and_then(|place| self.queues.device(place.device));
        let Some(device) = device.filter(|_| parts > 1) else {
            return one;
        };
        let run = self.bytes_of(window).0 / (u64::from(self.spread(file)) * parts as u64);
        match run >= device.depth().0.saturating_mul(RUN_DEPTHS) {
            true => Side { parts, ..one },
            false => one,
        }
    }

    fn copies(&self, file: FileId, block: Block) -> usize {
        let offset = u64::from(block.0) * self.block_bytes();
        let file = self.readers.file(file);
        file.map_or(1, |file| file.layout.copies(offset))
    }

    pub(super) fn copy(&self, file: FileId, block: Block, copy: usize) -> Option<PlaceOnDevice> {
        let offset = u64::from(block.0) * self.block_bytes();
        let layout = &known(self.readers.file(file), FILE)?.layout;
        Some(layout.copy(offset, copy.min(layout.copies(offset) - 1)))
    }

    /// How much time a device needs until it reads from there on.
    fn ready(&self, place: &PlaceOnDevice) -> Nanos {
        let device = self.queues.device(place.device);
        device.map_or(Nanos(0), |device| device.ready(place.position.0))
    }

    /// How many blocks of the file lie in one run from there on.
    pub(super) fn run_of(&self, place: &PlaceOnDevice) -> u32 {
        saturate(place.run.0 / self.block_bytes()).max(1)
    }

    /// How many bytes of an extent exist.
    pub(super) fn bytes_of(&self, extent: Extent) -> Bytes {
        let unit = self.block_bytes();
        let file = self.readers.file(extent.file);
        let end = (extent.end() * unit).min(file.map_or(0, |file| file.bytes.0));
        Bytes(end.saturating_sub(u64::from(extent.first.0) * unit))
    }

    /// The device that holds a block which this reader wants, and where it lies there.
    pub(super) fn device_of(
        &self,
        reader: ReaderId,
        block: Block,
    ) -> Option<(PlaceOnDevice, &Device)> {
        let place = self.soonest(self.readers.reader(reader)?.file, block)?;
        let device = self.queues.device(place.device);
        Some((place, known(device, "a file's devices are known with it")?))
    }

    /// Over how many devices a long window of a file is spread.
    pub(super) fn spread(&self, file: FileId) -> u32 {
        let file = self.readers.file(file);
        saturate(file.map_or(1, |file| file.layout.spread()))
    }

    /// The devices of a file, each once.
    pub(super) fn devices_of(&self, file: FileId) -> impl Iterator<Item = DeviceId> + '_ {
        let file = self.readers.file(file);
        file.into_iter().flat_map(|file| file.layout.devices())
    }
}
