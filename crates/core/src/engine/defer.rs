//! Deferred requests: a request that its device has no slot for is queued without memory.
//!
//! Called where a block is missing and where a lookahead mark is met, if the fetch would only be
//! queued. The window is sized, and takes its frames, when the slot comes free
//! ([note 0008](../../../../docs/design/0008-deferred-requests.md)).
//!
//! Control law of memory: only readers with a slot hold blocks that are not read yet, one run a
//! device and the one behind it. The memory that keeps devices busy is given by the devices, not by
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
use crate::units::{Block, DeviceId, Extent, ReaderId};

impl Engine {
    /// Queues a request at a device, which may have a slot for it at once.
    pub(super) fn defer(&mut self, id: DeviceId, request: DeferredRequest) {
        let Some(device) = known(self.devices.get_mut(&id), DEVICE) else {
            return;
        };
        let came = device.work();
        device.deferred.push(Deferred { request, came });
        self.dispatch(id);
    }

    /// Deferred reads whose block is on its way by now wait for that fetch instead.
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
