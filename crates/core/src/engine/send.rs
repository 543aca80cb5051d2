//! Sending: which request a device gets next, and handing it over. The stage *dispatch*.
//!
//! Called when a request is queued or [deferred](super::defer), when a reader comes to wait for a
//! planned one, and after completions. For a device that holds back, the
//! [method](crate::dispatch) chooses by the facts of [`turn`](super::turn); any other gets its
//! requests in order. A deferred request that is chosen goes to the list of
//! [granted](super::work) ones: its fetch is decided by earlier stages, and the device takes
//! nothing else until then.
//!
//! Example, a device of one server: request 5 is in flight, 6 behind it; 7 is queued and block 42
//! of reader 3 deferred. 5 completes, reader 3 is due first: its window is decided, becomes request
//! 8 and goes out.

use alloc::boxed::Box;

use alloc::vec::Vec;

use super::Engine;
use super::pace::Pace;
use crate::deferred::Deferred;
use crate::dispatch::Waiting;
use crate::known;
use crate::protocol::{Fetch, Output};
use crate::units::{DeviceId, RequestId};

/// The next request of a device.
enum Next {
    /// A fetch has to be decided.
    Grant(Deferred),
    /// A fetch goes out.
    Fetch(RequestId),
}

/// The invariants by which devices and queued requests are found.
pub(super) const DEVICE: &str = "a request is for a known device";
const QUEUED: &str = "a queue holds requests that exist";

impl Engine {
    /// A read waits for a request from now on: a planned request that is still queued joins the
    /// queue of demand reads. A request for a file opened ahead joins it only if other demand reads
    /// wait: its batch holds the program's next blocks, and to send it alone costs two seeks, one
    /// there and one back.
    pub(super) fn hurry(&mut self, id: RequestId) {
        let Some(request) = self.requests.get(id).filter(|r| r.sent.is_none()) else {
            return;
        };
        let number = request.device;
        let is_planned = self.is_planned(id);
        let Some(device) = known(self.devices.get_mut(&number), DEVICE) else {
            return;
        };
        if !is_planned && !device.is_wanted() {
            return;
        }
        if let Some(at) = device.planned.iter().position(|queued| *queued == id) {
            device.planned.remove(at);
            device.queue.push_back(id);
            self.dispatch(number);
        }
    }

    /// Hands queued requests to the driver, as many as the device can work on and one more.
    pub(super) fn dispatch(&mut self, id: DeviceId) {
        while let Some(next) = self.next(id) {
            match next {
                Next::Fetch(request) => self.start(request),
                Next::Grant(request) => {
                    if let Some(device) = known(self.devices.get_mut(&id), DEVICE) {
                        device.is_granting = true;
                    }
                    self.work.granted.push_back((id, request));
                }
            }
        }
    }

    /// Others wait for the device: files ahead with a waiting read take part.
    fn hurry_waited(&mut self, id: DeviceId) {
        let Some(device) = self.devices.get_mut(&id) else {
            return;
        };
        if device.planned.is_empty() || !device.is_wanted() {
            return;
        }
        let requests = &self.requests;
        let waits = |id: &RequestId| requests.get(*id).is_some_and(|r| !r.waiters.is_empty());
        let waited: Vec<RequestId> = device.planned.iter().copied().filter(waits).collect();
        if !waited.is_empty() {
            device.planned.retain(|id| !waits(id));
            device.queue.extend(waited);
        }
    }

    fn next(&mut self, id: DeviceId) -> Option<Next> {
        self.hurry_waited(id);
        self.devices.get_mut(&id)?.look(self.now);
        let device = self.devices.get(&id)?;
        if device.is_granting {
            return None;
        }
        let limit = self.settings.in_flight_max;
        let has_room = device.live() < self.most(device);
        if self.holds_back(device) {
            // Planned requests come after the others, but one that continues may go before them.
            return if has_room { self.choose(id) } else { None };
        }
        let has_slot = device.live() < limit && !device.queue.is_empty();
        let device = self.devices.get_mut(&id)?;
        if let Some(request) = device.deferred.take_nth(0) {
            // It held back until it was described again.
            return Some(Next::Grant(request));
        }
        let request = if has_slot {
            device.queue.pop_front()
        } else if has_room && device.queue.is_empty() {
            device.planned.pop_front()
        } else {
            None
        };
        request.map(Next::Fetch)
    }

    /// Takes out the request that a device gets next.
    fn choose(&mut self, id: DeviceId) -> Option<Next> {
        let device = self.devices.get(&id)?;
        if device.bytes_hung() > 0 && !device.queue.is_empty() {
            // No other fetch takes memory before this one has gone out whole.
            return self.take_out(id, 0);
        }
        // Planned requests are due after all others.
        let planned = |id: &RequestId| Waiting {
            due: u64::MAX,
            ..self.waiting(*id)
        };
        let queued = device.queue.iter().map(|id| self.waiting(*id));
        let deferred = device.deferred.iter();
        let deferred = deferred.map(|deferred| self.waiting_deferred(deferred));
        let planned = device.planned.iter().map(planned);
        let chosen = {
            let mut waiting = queued.chain(deferred).chain(planned);
            self.dispatch.next(&device.head(), &mut waiting)
        };
        self.take_out(id, chosen)
            .or_else(move || self.take_out(id, 0))
    }

    /// Takes out the request at an index: the queue first, then the deferred ones, then the plan's.
    fn take_out(&mut self, id: DeviceId, at: usize) -> Option<Next> {
        let device = self.devices.get(&id)?;
        let (queued, deferred) = (device.queue.len(), device.deferred.len());
        let Some(at_deferred) = at.checked_sub(queued) else {
            self.grant_slice(id, *device.queue.get(at)?);
            return self.devices.get_mut(&id)?.queue.remove(at).map(Next::Fetch);
        };
        let Some(at_planned) = at_deferred.checked_sub(deferred) else {
            let deferred = &mut self.devices.get_mut(&id)?.deferred;
            return deferred.take_nth(at_deferred).map(Next::Grant);
        };
        self.grant_slice(id, *device.planned.get(at_planned)?);
        let planned = &mut self.devices.get_mut(&id)?.planned;
        planned.remove(at_planned).map(Next::Fetch)
    }

    /// A request that begins a run gets its slice.
    fn grant_slice(&mut self, id: DeviceId, next: RequestId) {
        let position = self.waiting(next).position;
        let Some(device) = self.devices.get(&id) else {
            return;
        };
        if device.switches_to(position) {
            let runs = self.runs(device);
            let slice = self.slice(device, runs);
            if let Some(device) = self.devices.get_mut(&id) {
                device.grant(slice, runs);
            }
        }
    }

    fn start(&mut self, id: RequestId) {
        let Some(request) = known(self.requests.get(id), QUEUED) else {
            return;
        };
        debug_assert!(request.sent.is_none(), "a request is handed over once");
        let (device, extent, demand) = (request.device, request.extent, request.demand);
        let (owner, member, position) = (request.owner, request.member, request.position);
        let is_cut = request.is_cut;
        let bytes = self.bytes_of(extent);
        if let Some(state) = known(self.devices.get_mut(&device), DEVICE) {
            let owner = owner.and_then(|owner| self.readers.get_mut(&owner));
            let account = owner.and_then(|reader| reader.accounts.get_mut(member));
            let before = account.as_ref().map_or(0, |account| **account);
            let (after, mut sent) = state.take(self.now, before, position, bytes.0);
            if let Some(account) = account {
                *account = after;
            }
            sent.sample.is_cut = is_cut;
            let device = self.devices.get(&device);
            sent.sample.is_full = device.is_some_and(|d| d.live() >= self.most(d));
            if let Some(request) = self.requests.get_mut(id) {
                request.sent = Some(Box::new(sent));
            }
        }
        if self.pace(extent.file) != Pace::Even {
            self.write_off(id);
        }
        if let Some(plan) = &mut self.plan {
            plan.requests.sent(id, self.now);
        }
        self.ledger.requests += 1;
        self.ledger.request_bytes.0 += bytes.0;
        self.out.push_back(Output::Fetch(Fetch {
            request: id,
            device,
            extent,
            demand,
        }));
    }
}
