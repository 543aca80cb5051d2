//! Places: which device holds a block of a file, and where on it. The stage *layout*.
//!
//! Asked by every stage that must know a device: the [layout](crate::layout) of the file answers in
//! members and bytes, here that becomes devices and blocks. A leaf: it calls no other stage.

use alloc::vec::Vec;

use super::{Engine, File};
use crate::device::Device;
use crate::known;
use crate::layout::Place;
use crate::units::{Block, Bytes, DeviceId, Extent, FileId, Nanos, ReaderId, RequestId};

/// The invariant by which files are found.
pub(super) const FILE: &str = "the file of a reader or a request is known";

impl File {
    /// Where a block lies.
    pub(super) fn place(&self, block: Block, block_bytes: u32) -> Place {
        self.layout
            .place(u64::from(block.0) * u64::from(block_bytes))
    }
}

impl Engine {
    /// Where a block of a known file lies.
    pub(super) fn place(&self, file: FileId, block: Block) -> Option<Place> {
        let file = known(self.files.get(&file), FILE)?;
        Some(file.place(block, self.settings.block_bytes))
    }

    /// The same of the copy that is read soonest: behind the work its device has, and a switch if it stands
    /// elsewhere.
    pub(super) fn soonest(&self, file: FileId, block: Block) -> Option<Place> {
        let layout = &known(self.files.get(&file), FILE)?.layout;
        let offset = u64::from(block.0) * u64::from(self.settings.block_bytes);
        match layout.copies(offset) {
            1 => Some(layout.place(offset)),
            copies => (0..copies)
                .map(|copy| layout.copy(offset, copy))
                .min_by_key(|place| self.ready(place)),
        }
    }

    /// How much time a device needs until it reads from there on.
    fn ready(&self, place: &Place) -> Nanos {
        let Some(device) = self.devices.get(&place.device) else {
            return Nanos(0);
        };
        let queued = device.queue.iter().filter_map(|id| self.requests.get(*id));
        let queued = queued.map(|request| (request.position, self.bytes_of(request.extent)));
        let deferred = device.deferred.iter();
        let deferred = deferred.map(|deferred| (deferred.position, deferred.bytes));
        device.ready(queued.chain(deferred), place.position.0)
    }

    /// How many blocks of the file lie in one run from there on.
    pub(super) fn run_of(&self, place: &Place) -> u32 {
        let blocks = place.run.0 / u64::from(self.settings.block_bytes);
        u32::try_from(blocks).unwrap_or(u32::MAX).max(1)
    }

    /// How many bytes of an extent exist.
    pub(super) fn bytes_of(&self, extent: Extent) -> Bytes {
        let unit = u64::from(self.settings.block_bytes);
        let exist = self.files.get(&extent.file).map_or(0, |file| file.bytes.0);
        let end = (extent.end() * unit).min(exist);
        Bytes(end.saturating_sub(u64::from(extent.first.0) * unit))
    }

    /// The device that holds a block which this reader wants, and where it lies there.
    pub(super) fn device_of(&self, reader: ReaderId, block: Block) -> Option<(Place, &Device)> {
        let place = self.soonest(self.readers.get(&reader)?.file, block)?;
        let device = self.devices.get(&place.device);
        Some((place, known(device, "a file's devices are known with it")?))
    }

    /// Devices with requests that wait, in the order of their numbers.
    pub(super) fn wanted_devices(&self) -> Vec<DeviceId> {
        let wanted = self.devices.iter().filter(|(_, device)| device.is_wanted());
        let mut wanted: Vec<DeviceId> = wanted.map(|(id, _)| *id).collect();
        wanted.sort_unstable();
        wanted
    }

    /// A device, new if it is not known.
    pub(super) fn device_mut(&mut self, id: DeviceId) -> &mut Device {
        let settings = &self.settings;
        let new = || Device::new(settings.measure());
        self.devices.entry(id).or_insert_with(new)
    }

    /// Whether a request is the plan's.
    pub(super) fn is_planned(&self, id: RequestId) -> bool {
        let plan = self.plan.as_ref();
        plan.is_some_and(|plan| plan.requests.contains(id))
    }

    /// Over how many devices a long window of a file is spread.
    pub(super) fn spread(&self, file: FileId) -> u32 {
        let spread = self.files.get(&file).map_or(1, |file| file.layout.spread());
        u32::try_from(spread).unwrap_or(u32::MAX)
    }

    /// The devices of a file, each once.
    pub(super) fn devices_of(&self, file: FileId) -> impl Iterator<Item = DeviceId> + '_ {
        let file = self.files.get(&file);
        file.into_iter().flat_map(|file| file.layout.devices())
    }
}

/// Number of blocks of so many bytes, never more than block numbers exist.
pub(super) fn blocks_in(bytes: Bytes, block_bytes: u32) -> u64 {
    let blocks = bytes.0.div_ceil(u64::from(block_bytes));
    blocks.min(u64::from(u32::MAX))
}
