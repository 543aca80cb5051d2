//! Requests that hang: a server is gone for some objects, slow for some, and answers for others.
//!
//! A request *hangs* that takes far longer than it and those before it should. It is *written off*: it counts no
//! more against the limit of its [device](crate::queues), and three others are tried for it. While others wait it
//! is also called back: its frames go to them, unless its source cannot give it up. Blocks that had arrived are kept.
//!
//! Control law of memory, since those that follow may hang, too: half the frames that do not hang may be in flight,
//! a fetch takes a small [part](crate::queues) of them, and none begins before the one before has gone out whole.
//!
//! Control law of a file: while it hangs its reads ask for one block each, beside the limit, and so hold little.
//! While its requests only come late, several times as long as they should take, they are beside the limit, too, and
//! short beside others that were written off, and those of other files as long as ever. One in time ends either.
//!
//! Example: 16 MiB, eight requests at most, and 40 objects of 4 MiB that were read whole hang. After a second eight
//! are written off and called back; the windows queued behind them give their frames back. The other 32 are tried
//! within the next second, with 128 KiB each, then the forty-first is read.

use super::Engine;
use crate::protocol::Output;
use crate::readers::Pace;
use crate::units::{DeviceId, Extent, RequestId};

/// Requests wait behind those that hang as long as this part of the frames can be had.
const ROOM_PART: u32 = 4;

impl Engine {
    /// Time has passed: requests that hang no longer count against the limit of their device.
    pub(super) fn write_off_hung(&mut self) {
        let (now, starve) = (self.work.now, self.reads.starving() > 0);
        for id in self.queues.looked_at(now, starve) {
            for request in self.queues.hung(id, now) {
                self.queues.write_off(request, true);
                self.call_back(request);
            }
            self.make_room_beside_hung(id);
        }
    }

    /// A request hangs: the driver gives it up where it holds more than the block that is needed to see whether
    /// its file answers again.
    fn call_back(&mut self, request: RequestId) {
        let Some(hung) = self.queues.requests.get_mut(request) else {
            return;
        };
        if let Some(sent) = &mut hung.sent
            && core::mem::replace(&mut sent.hangs, true)
        {
            return;
        }
        let Extent { file, count, .. } = hung.extent;
        self.set_pace(file, Pace::Hangs);
        if count > 1 {
            self.work.out.push_back(Output::Cancel { request });
        }
    }

    /// Where little memory is left beside requests that hang, those that wait behind them give theirs back:
    /// they may be for objects that hang, too, and others wait for memory. Their reads ask again.
    fn make_room_beside_hung(&mut self, id: DeviceId) {
        let enough = self.memory.frames_usable() / ROOM_PART;
        if !self.queues.has_lost() || self.memory.obtainable() >= enough {
            return;
        }
        for request in self.queues.decided_at(id) {
            let reads = self.orphan(request);
            self.work.reads.extend(reads);
        }
    }
}
