//! Sending: a device gets its next request. The stage *dispatch*.
//!
//! Called when something is [queued](crate::queues), when a reader comes to wait for a planned request, and after
//! completions. Which want is next is the queues' answer. One without memory goes to the list of
//! [granted](super::work) ones: its fetch is decided by earlier stages, and the device takes nothing else until then.
//!
//! Example: a device has a free slot, and wants 7 (request 5), 8 (a miss of read 3) and 9. 7 goes out. For the next
//! slot 8 is granted: the list brings read 3 to its window, which becomes request 6 in the place of 8 and goes out.
//! Then 9.

use super::Engine;
use crate::known;
use crate::protocol::{Fetch, Output};
use crate::queues::Want;
use crate::readers::Pace;
use crate::units::{DeviceId, FileId, RequestId};

impl Engine {
    /// Whatever waits for the devices of a file goes out, as far as they have room.
    pub(super) fn dispatch_file(&mut self, file: FileId) {
        for member in 0.. {
            let Some(device) = self.devices_of(file).nth(member) else {
                return;
            };
            self.dispatch(device);
        }
    }

    /// Hands requests to the driver, as many as the device can work on and one more.
    pub(super) fn dispatch(&mut self, id: DeviceId) {
        let frames = self.memory.frames_usable();
        while !self.work.has_granted(id)
            && let Some(want) = self.queues.next(id, self.work.now, frames)
        {
            match want.request() {
                Some(request) => self.start(request, &want),
                None => self.work.granted.push_back((id, want)),
            }
        }
    }

    fn start(&mut self, id: RequestId, want: &Want) {
        let frames = self.memory.frames_usable();
        let begun = self.queues.begin(want, self.work.now, frames);
        let Some(request) = known(begun, "a want is taken out to be sent") else {
            return;
        };
        let (device, extent, demand) = (request.device, request.extent, request.demand);
        match self.pace(extent.file) {
            Pace::Even => {}
            pace => self.queues.write_off(id, pace == Pace::Hangs),
        }
        self.ledger.requests += 1;
        self.ledger.request_bytes.0 += want.bytes.0;
        self.work.out.push_back(Output::Fetch(Fetch {
            request: id,
            device,
            extent,
            demand,
        }));
    }
}
