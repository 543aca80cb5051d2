//! Deferred requests: a request that its device has no slot for is queued without memory.
//!
//! Called where a block is missing and where a lookahead mark is met, if the fetch would only be
//! queued. The window is sized, and takes its frames, when the slot comes free
//! ([note 0008](../../../../docs/design/0008-deferred-requests.md)).
//!
//! Control law of memory: only readers with a slot hold blocks that are not read yet, and these are of two
//! windows a slot, the one that is read and the next. The memory that keeps devices busy is given by the devices, not by
//! the number of readers.
//!
//! Example: 64 readers on a device that works on one request at a time. Two requests are in flight,
//! 62 readers are deferred as 62 entries and hold no frame.
//!
//! Reads that the plan announced are not deferred: their fetches were decided long before.

use super::Engine;
use super::place::FILE;
use super::send::DEVICE;
use crate::deferred::{Deferred, DeferredRequest};
use crate::device::Device;
use crate::known;
use crate::units::{Block, Bytes, DeviceId, Extent, FileId, ReaderId};

/// Blocks of a window to come that may be there already, through the plan; as many as one read has.
const PASSED_MAX: usize = Engine::READ_MAX as usize;

impl Engine {
    /// Queues a request at a device, which may have a slot for it at once.
    pub(super) fn defer(&mut self, id: DeviceId, request: DeferredRequest) {
        let Some(came) = known(self.devices.get(&id), DEVICE).map(Device::work) else {
            return;
        };
        // With nothing to fetch any more it goes first, to be gone.
        let nothing = Deferred {
            request,
            came: 0,
            reader: ReaderId(u32::MAX),
            member: 0,
            position: u64::MAX,
            bytes: Bytes(0),
        };
        let deferred = self.deferred(request, came).unwrap_or(nothing);
        if let Some(device) = self.devices.get_mut(&id) {
            device.deferred.push(deferred);
        }
        self.dispatch(id);
    }

    fn deferred(&self, request: DeferredRequest, came: u64) -> Option<Deferred> {
        let (reader, file, first, count) = self.begins(&request)?;
        let place = self.soonest(file, first)?;
        let count = count.min(self.run_of(&place));
        Some(Deferred {
            request,
            came,
            reader,
            member: u32::try_from(place.member).unwrap_or(u32::MAX),
            position: place.position.0,
            bytes: self.bytes_of(Extent { file, first, count }),
        })
    }

    /// Where the fetch of a request begins, and how many blocks it has at least; of a window, its
    /// first block that is missing. None if there is nothing to fetch any more.
    fn begins(&self, request: &DeferredRequest) -> Option<(ReaderId, FileId, Block, u32)> {
        match request {
            DeferredRequest::Demand { read, file, block } => {
                let read = self.reads.get(read)?;
                Some((read.reader, *file, *block, read.access.count))
            }
            DeferredRequest::Window { reader, end, .. } => {
                let file = self.readers.get(reader)?.file;
                let is_missing = |at: &u32| self.memory.table.find(file, Block(*at)).is_none();
                let first = (end.0..).take(PASSED_MAX).find(is_missing)?;
                Some((*reader, file, Block(first), 1))
            }
        }
    }

    /// Deferred reads with a block in flight by now wait for that fetch instead.
    pub(super) fn rejoin(&mut self, extent: Extent) {
        let Some(file) = known(self.files.get(&extent.file), FILE) else {
            return;
        };
        let table = &self.memory.table;
        let is_coming = |block: Block| table.find(extent.file, block).is_some();
        for id in file.layout.devices() {
            if let Some(device) = self.devices.get_mut(&id) {
                let reads = device.deferred.take_demands(extent, is_coming);
                self.work.reads.extend(reads);
            }
        }
    }

    /// A reader closes, and its reads are gone: so are its requests.
    pub(super) fn drop_deferred(&mut self, id: ReaderId) {
        let file = self.readers.get(&id).and_then(|r| self.files.get(&r.file));
        let reads = &self.reads;
        let stays = |request: &DeferredRequest| match request {
            DeferredRequest::Demand { read, .. } => reads.contains_key(read),
            DeferredRequest::Window { reader, .. } => *reader != id,
        };
        for device in file.iter().flat_map(|file| file.layout.devices()) {
            if let Some(Device { deferred, .. }) = self.devices.get_mut(&device) {
                deferred.retain(stays);
            }
        }
    }
}
