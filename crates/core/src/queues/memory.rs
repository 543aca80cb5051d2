//! Memory of requests in flight: how many a device may have, and how long they may be, while some may never end.
//!
//! Control law: the requests of a server leave an eighth of the frames that are left beside those of other devices,
//! and a third while another device has work: its windows would find no memory, for a server takes what comes free.
//! While some hang, those of any device hold at most half of them, and each takes a small part of the frames that do
//! not hang with them. So there are always frames for the next. While some come late and none hangs, only those of
//! files that come late are so short.

use alloc::vec::Vec;
use core::ptr;

use super::load::Sent;
use super::{Device, Queues};
use crate::units::{Bytes, DeviceId, Nanos, RequestId, saturate};

/// While requests hang, a fetch takes at most this part of the frames that do not hang with them. Half of
/// those may be in flight: 64 objects more can be tried before the next that hang are known.
const HUNG_PART: u32 = 128;

/// A server's requests leave this part of the frames, while none hangs and no other device has work. Throughput in little
/// memory is bytes in flight by latency: 16 readers of whole objects get 390 MB/s in 16 MiB, and 227 if half is left.
const SERVED_SPARE: u64 = 8;

/// The same while another device has work. 64 readers of a disk beside 64 of a store in 8 MiB get 64 MB/s, as alone, if a
/// third is left, and 22 of an eighth; those of the store get 130 in place of 197, and 75 where half is left.
const SHARED_SPARE: u64 = 3;

impl Queues {
    /// Most requests that a device may have now, beside those that hang.
    pub(super) fn most(&self, device: &Device, now: Nanos, frames: u32) -> u32 {
        let all: u64 = self.devices.values().map(|d| d.load.bytes).sum();
        let others = all - device.bytes_live();
        let left = (u64::from(frames) * self.block_bytes).saturating_sub(others);
        let longest = u64::from(self.request_max(frames)) * self.block_bytes;
        let leaves_some = device.profile().kind().may_never_answer() && device.has_limit();
        let most = match (self.hung_frames() > 0, leaves_some) {
            (true, _) => device.limit_in(Bytes(left / 2), Bytes(longest), now),
            (false, true) => {
                let memory = Bytes(left - left / self.spare(device));
                device.limit_in(memory, Bytes(longest), now)
            }
            (false, false) => device.limit(now),
        };
        most.min(self.in_flight_max)
    }

    /// The part of the frames that requests of a server leave.
    fn spare(&self, server: &Device) -> u64 {
        let mut others = self
            .devices
            .values()
            .filter(|other| !ptr::eq(&***other, server));
        match others.any(|other| other.has_work()) {
            true => SHARED_SPARE,
            false => SERVED_SPARE,
        }
    }

    /// Frames of requests that hang or will be late, not to be had until those end.
    pub(crate) fn hung_frames(&self) -> u32 {
        let hung: u64 = self.devices.values().map(|d| d.load.bytes_hung).sum();
        saturate(hung.div_ceil(self.block_bytes))
    }

    /// Whether requests are in flight that may never end.
    pub(crate) fn has_lost(&self) -> bool {
        self.devices.values().any(|d| d.load.bytes_lost > 0)
    }

    /// Most blocks that a fetch may take, of so many frames; `is_late` if requests of its file come late.
    pub(crate) fn fetch_max(&self, frames: u32, is_late: bool) -> u32 {
        let is_short = is_late || self.has_lost();
        match self.hung_frames() {
            hung if hung > 0 && is_short => (frames.saturating_sub(hung) / HUNG_PART).max(1),
            _ => u32::MAX,
        }
    }

    /// Most blocks of one request.
    pub(crate) fn request_max(&self, frames: u32) -> u32 {
        self.request_max.min(self.fetch_max(frames, false))
    }

    /// Whether requests that hang keep others from going out; `starve` if reads wait for memory.
    pub(crate) fn is_held_up(&self, now: Nanos, starve: bool) -> bool {
        let mut held_up = self
            .devices
            .iter()
            .filter(|(_, device)| device.is_held_up(starve));
        held_up.any(|(id, device)| device.is_stalled(now) || !self.hung(*id, now).is_empty())
    }

    /// The devices at which it is time to look for requests that hang.
    pub(crate) fn looked_at(&mut self, now: Nanos, starve: bool) -> Vec<DeviceId> {
        let looks = self.devices.iter_mut();
        let looks = looks.filter_map(|(id, device)| device.looks(now, starve).then_some(*id));
        looks.collect()
    }

    /// Requests of a device that hang by now and are not both marked and written off yet.
    pub(crate) fn hung(&self, id: DeviceId, now: Nanos) -> Vec<RequestId> {
        let Some(device) = self.devices.get(&id) else {
            return Vec::new();
        };
        self.requests.which(|request| {
            let sent = request.sent.as_ref().filter(|_| request.device == id);
            let is_known = |sent: &Sent| sent.hangs && sent.is_written_off;
            sent.is_some_and(|sent| !is_known(sent) && device.hangs(sent, now))
        })
    }

    /// Requests of programs that wait for a device with their frames.
    pub(crate) fn decided_at(&self, id: DeviceId) -> Vec<RequestId> {
        let device = self.devices.get(&id);
        let wants = device
            .into_iter()
            .flat_map(|device| device.queue.of_programs());
        wants.filter_map(super::Want::request).collect()
    }
}
