//! Requests that hang: a server is gone for some objects, and answers for others.
//!
//! A request that takes far longer than it and those before it should is *written off*: it counts no more
//! against the limit of its [device](crate::device). Its frames are lost until it ends, which may be
//! minutes, and so would be those of all requests behind it if they hang, too. Control law: half the frames
//! that do not hang may be in flight, a fetch takes a small [part](super::turn) of them, and none begins
//! before the one before it has gone out whole. So there is always memory to try the next object, and
//! objects that answer pass those that do not.
//!
//! Example: 16 MiB, and 19 objects of 4 MiB that were read whole hang. 8 MiB were in flight and are written
//! off after a second; the windows queued behind them give back theirs. From then on a fetch takes 128 KiB
//! at most, 32 may be in flight: all others are tried within another second, the twentieth is read.

use alloc::vec::Vec;

use super::Engine;
use crate::request::Request;
use crate::units::{DeviceId, Nanos, RequestId};

/// Requests wait behind those that hang as long as this part of the frames can be had.
const ROOM_PART: u32 = 4;

impl Engine {
    /// Requests of a device that hang by now and still count.
    pub(super) fn hung(&self, id: DeviceId, now: Nanos) -> Vec<RequestId> {
        let Some(device) = self.devices.get(&id) else {
            return Vec::new();
        };
        let hangs = |request: &Request| {
            let sent = request.sent.as_ref().filter(|_| request.device == id);
            sent.is_some_and(|sent| device.hangs(sent, now))
        };
        self.requests.which(hangs)
    }

    /// Time has passed: requests that hang no longer count against the limit of their device.
    pub(super) fn write_off_hung(&mut self) {
        let now = self.now;
        let due = self
            .devices
            .iter_mut()
            .filter_map(|(id, device)| device.looks(now).then_some(*id));
        for id in due.collect::<Vec<_>>() {
            for request in self.hung(id, now) {
                let sent = self.requests.get_mut(request).and_then(|r| r.sent.as_mut());
                if let (Some(device), Some(sent)) = (self.devices.get_mut(&id), sent) {
                    device.write_off(sent);
                }
            }
            self.make_room_beside_hung(id);
        }
    }

    /// Where little memory is left beside requests that hang, those that wait behind them give theirs back:
    /// they may be for objects that hang, too, and others wait for memory. Their reads ask again.
    fn make_room_beside_hung(&mut self, id: DeviceId) {
        let enough = self.memory.frames_usable() / ROOM_PART;
        let short = self.hung_frames() > 0 && self.memory.obtainable() < enough;
        let Some(device) = self.devices.get(&id).filter(|_| short) else {
            return;
        };
        let queued: Vec<RequestId> = device.queue.iter().copied().collect();
        for request in queued {
            let owner = self.requests.get(request).and_then(|r| r.owner);
            let reads = self.orphan(request);
            self.work.reads.extend(reads);
            if let Some(owner) = owner.filter(|owner| self.readers.contains_key(owner)) {
                self.change_streams(owner, |_| ());
            }
        }
    }
}
