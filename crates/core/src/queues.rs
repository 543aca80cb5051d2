//! Queues: the devices, all that waits for them, and the fetches that they have.
//!
//! Everything that could be fetched is one type, a [`Want`], with a class. Each device has one queue of them. When it
//! has a slot the [dispatch](crate::dispatch) method picks the next by where it lies and when it is due:
//!
//! ```text
//! producer                               class     frames       due
//! a read misses, a window's mark is met  Program   at its turn  by the work of its reader
//! a page, the first or at random         Single    at its turn  at once, with a bounded part of the work
//! a read at random up to a switch        Short     at its turn  by work, among its like by its place
//! a piece of an announced order          Planned   before       behind programs, until a read waits for it
//! the beginning of a file ahead          Ahead     before       the same; alone its batch stays together
//! an idle read                           Idle      at its turn  beside no other want
//!
//! push(want) --> queue --next--> a Request has frames: it goes out, begin --> end
//!                     \--next--> a Demand, a Window: its extents are decided now and take frames,
//!                                each becomes a request in the same place in line
//! ```
//!
//! A device without known slots always has one. A server that may never answer is bounded by [memory] as well. Files,
//! readers and frames are not known here.
//!
//! Example, a device of one server: request 5 is in flight, 6 behind it; 7 is queued, and so is block 42 of reader 3,
//! without frames. 5 completes, reader 3 is due first: its window is decided, becomes request 8 and goes out.

mod arm;
mod device;
mod load;
mod memory;
pub(crate) mod queue;
pub(crate) mod request;
mod runs;
mod turn;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

pub(crate) use self::device::Device;
pub(crate) use self::queue::{Class, Want, Wanted};
pub(crate) use self::request::Request;
use self::request::Requests;
use crate::dispatch::Dispatch;
use crate::known;
use crate::measure::Measure;
use crate::profile::Profile;
use crate::settings::Settings;
use crate::spec::Choice;
use crate::units::{Block, DeviceId, Extent, Nanos, ReadId, ReaderId, RequestId, saturate};

/// The invariants by which devices and queued requests are found.
pub(crate) const DEVICE: &str = "a request is for a known device";
const QUEUED: &str = "a queue holds requests that exist";

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Queues {
    dispatch: Box<dyn Dispatch>,
    /// Each in a place of its own: a tree makes room for eleven at once.
    devices: BTreeMap<DeviceId, Box<Device>>,
    pub(crate) requests: Requests,
    measure: Choice<Box<dyn Measure>>,
    /// Most requests of a device, whatever it can work on.
    in_flight_max: u32,
    block_bytes: u64,
    /// Most blocks of one request.
    request_max: u32,
}

impl Queues {
    pub(crate) fn new(settings: &Settings) -> Self {
        let block_bytes = u64::from(settings.block_bytes);
        let request_max = settings.request_max.0 / block_bytes;
        Self {
            dispatch: settings.dispatch.build(),
            devices: BTreeMap::default(),
            requests: Requests::default(),
            measure: settings.measure.clone(),
            in_flight_max: settings.in_flight_max,
            block_bytes,
            request_max: saturate(request_max),
        }
    }

    /// A device is known from now on.
    pub(crate) fn know(&mut self, id: DeviceId) {
        let measure = &self.measure;
        let new = || Box::new(Device::new(measure.build()));
        self.devices.entry(id).or_insert_with(new);
    }

    /// Its costs are told.
    pub(crate) fn told(&mut self, id: DeviceId, profile: &Profile) {
        self.know(id);
        if let Some(device) = self.devices.get_mut(&id) {
            device.measure.told(profile);
        }
    }

    /// The host's queue of requests for it is congested from now on, or is so no longer.
    pub(crate) fn congested(&mut self, id: DeviceId, is_congested: bool) -> Option<()> {
        self.devices.get_mut(&id)?.is_congested = is_congested;
        Some(())
    }

    pub(crate) fn device(&self, id: DeviceId) -> Option<&Device> {
        self.devices.get(&id).map(Box::as_ref)
    }

    /// All devices, in the order of their numbers.
    pub(crate) fn ids(&self) -> impl Iterator<Item = DeviceId> {
        self.devices.keys().copied()
    }

    /// Those with wants of programs, in the order of their numbers.
    pub(crate) fn wanted(&self) -> Vec<DeviceId> {
        let wanted = self.devices.iter();
        let wanted = wanted.filter(|(_, device)| device.queue.is_wanted());
        wanted.map(|(id, _)| *id).collect()
    }

    /// Something waits for a device from now on.
    pub(crate) fn push(&mut self, id: DeviceId, want: Want) {
        let Some(device) = known(self.devices.get_mut(&id), DEVICE) else {
            return;
        };
        let ticket = device.queue.push(want);
        if let Some(request) = want.request().and_then(|id| self.requests.get_mut(id)) {
            request.ticket = ticket;
        }
    }

    /// A read waits for a request from now on. The device, if the turn of a want changes by that: not by an idle
    /// read's wait, which does not `hurry`.
    pub(crate) fn await_request(
        &mut self,
        id: RequestId,
        read: ReadId,
        hurries: bool,
    ) -> Option<DeviceId> {
        let request = known(self.requests.get_mut(id), "a block in flight has a request")?;
        if request.waiters.contains(&read) {
            return None;
        }
        request.waiters.push(read);
        if request.sent.is_some() || !hurries {
            return None;
        }
        let (device, ticket) = (request.device, request.ticket);
        let queue = &mut known(self.devices.get_mut(&device), DEVICE)?.queue;
        queue.await_request(ticket).then_some(device)
    }

    /// Reads without memory that wait for a block of this extent for which `holds` is true leave the queue.
    pub(crate) fn take_demands(
        &mut self,
        id: DeviceId,
        extent: Extent,
        holds: impl Fn(Block) -> bool,
    ) -> Vec<ReadId> {
        let device = self.devices.get_mut(&id);
        let reads = device.map(|device| device.queue.take_demands(extent, holds));
        reads.unwrap_or_default()
    }

    /// The window that waits to begin at this position, of a reader of which `is_of` is true, leaves the queue.
    pub(crate) fn take_window(
        &mut self,
        id: DeviceId,
        position: u64,
        is_of: impl Fn(ReaderId) -> bool,
    ) -> Option<Wanted> {
        self.devices
            .get_mut(&id)?
            .queue
            .take_window(position, is_of)
    }

    /// A reader is gone: so is its account at a device, and so are the wants for which `stays` does not hold.
    pub(crate) fn forget(
        &mut self,
        id: DeviceId,
        reader: ReaderId,
        stays: impl Fn(&Wanted) -> bool,
    ) {
        if let Some(device) = self.devices.get_mut(&id) {
            device.queue.retain(stays);
            device.arm.forget(reader);
            for request in device.queue.disown(reader) {
                if let Some(request) = self.requests.get_mut(request) {
                    request.owner = None;
                }
            }
        }
    }

    /// The next want that a device has a slot for, taken out. One without memory is to be decided
    /// before there is another.
    pub(crate) fn next(&mut self, id: DeviceId, now: Nanos, frames: u32) -> Option<Want> {
        let device = self.devices.get_mut(&id)?;
        if device.load.is_silent(now) {
            device.measure.give_up();
        }
        let chosen = self.choose(self.devices.get(&id)?, now, frames)?;
        self.grant_slice(id, chosen);
        let device = self.devices.get_mut(&id)?;
        device.queue.take(chosen)
    }

    /// The extents of a want without memory are being decided: its requests came when it did. None once they are.
    pub(crate) fn decide(&mut self, id: DeviceId, want: Option<Want>) {
        if let Some(device) = self.devices.get_mut(&id) {
            device.deciding = want;
        }
    }

    /// A request goes out, now.
    pub(crate) fn begin(&mut self, want: &Want, now: Nanos, frames: u32) -> Option<&mut Request> {
        let id = want.request()?;
        let request = known(self.requests.get(id), QUEUED)?;
        debug_assert!(request.sent.is_none(), "a request is handed over once");
        let number = request.device;
        let device = known(self.devices.get_mut(&number), DEVICE)?;
        let mut sent = device.begin(now, want);
        let device = self.devices.get(&number)?;
        sent.sample.is_full = device.load.live() >= self.most(device, now, frames);
        let request = self.requests.get_mut(id)?;
        request.sent = Some(Box::new(sent));
        Some(request)
    }

    /// A request that was sent ended, now: it, and whether it came so late that others should not wait for its
    /// like.
    pub(crate) fn end(
        &mut self,
        id: RequestId,
        now: Nanos,
        is_whole: bool,
    ) -> Option<(Request, bool)> {
        let sent = self.requests.get_mut(id)?.sent.take()?;
        let request = self.requests.remove(id)?;
        let device = known(self.devices.get_mut(&request.device), DEVICE)?;
        let is_late = device.end(now, request.position, &sent, is_whole);
        Some((request, is_late))
    }

    /// A request that was not sent disappears.
    pub(crate) fn call_off(&mut self, id: RequestId) -> Option<Request> {
        let request = self.requests.remove(id)?;
        debug_assert!(
            request.sent.is_none(),
            "a device may still write to its frames"
        );
        let queue = &mut known(self.devices.get_mut(&request.device), DEVICE)?.queue;
        let want = queue.take(request.ticket);
        debug_assert!(
            want.is_none_or(|want| want.request() == Some(id)),
            "tickets are unique"
        );
        Some(request)
    }

    /// A request counts no more against the limit of its device; `is_lost` if its memory may not come back.
    pub(crate) fn write_off(&mut self, id: RequestId, is_lost: bool) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let device = self.devices.get_mut(&request.device);
        if let (Some(device), Some(sent)) = (device, &mut request.sent) {
            device.load.write_off(sent, is_lost);
        }
    }
}
