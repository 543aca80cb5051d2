//! Sending: which request a device gets next, and handing it over. The stage *dispatch*.
//!
//! Called when a request is queued, when somebody comes to wait for one, and after completions. A
//! device that holds back is asked for by the [method](crate::dispatch): here that is told what
//! waits, when it is due and how many runs share the device. Any other gets its requests in order.
//!
//! It decides nothing about what is fetched.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Engine;
use crate::device::Device;
use crate::dispatch::Waiting;
use crate::protocol::{Fetch, Output};
use crate::request::Request;
use crate::units::{DeviceId, RequestId};

impl Engine {
    /// Somebody waits for a request: if it is the plan's and still queued, it goes with those that
    /// are waited for.
    pub(super) fn hurry(&mut self, id: RequestId) {
        let Some(request) = self.requests.get(id).filter(|r| !r.dispatched) else {
            return;
        };
        let number = request.device;
        let Some(device) = self.devices.get_mut(&number) else {
            return;
        };
        if let Some(at) = device.planned.iter().position(|queued| *queued == id) {
            device.planned.remove(at);
            device.queue.push_back(id);
            self.dispatch(number);
        }
    }

    /// Hands queued requests to the driver, as many as the device can work on and one more.
    pub(super) fn dispatch(&mut self, id: DeviceId) {
        while let Some(request) = self.next_request(id) {
            self.start(request);
        }
    }

    fn next_request(&mut self, id: DeviceId) -> Option<RequestId> {
        let device = self.devices.get(&id)?;
        let limit = self.settings.in_flight_max;
        // As many as it can work on, and one more so that it never runs idle.
        let has_room = device.in_flight < limit.min(device.profile.servers().saturating_add(1));
        if self.holds_back(device) {
            // The plan's stand behind the others, but one that continues may go before them.
            return has_room.then(|| self.choose(id))?;
        }
        let waits = device.in_flight < limit && !device.queue.is_empty();
        let device = self.devices.get_mut(&id)?;
        if waits {
            device.queue.pop_front()
        } else if has_room && device.queue.is_empty() {
            device.planned.pop_front()
        } else {
            None
        }
    }

    /// Takes out the request that a device gets next.
    fn choose(&mut self, id: DeviceId) -> Option<RequestId> {
        let device = self.devices.get(&id)?;
        // Planned ones are due after all that somebody waits for.
        let planned = |id: &RequestId| Waiting {
            due: u64::MAX,
            ..self.waiting(*id)
        };
        let awaited = device.queue.iter().map(|id| self.waiting(*id));
        let mut waiting = awaited.chain(device.planned.iter().map(planned));
        let chosen = self.dispatch.next(&device.head(), &mut waiting);
        let all = device.queue.len() + device.planned.len();
        let chosen = if chosen < all { chosen } else { 0 };
        let mut all = device.queue.iter().chain(&device.planned);
        self.grant(id, *all.nth(chosen)?);
        let Device { queue, planned, .. } = self.devices.get_mut(&id)?;
        match chosen.checked_sub(queue.len()) {
            None => queue.remove(chosen),
            Some(at) => planned.remove(at),
        }
    }

    /// A request that begins a run gets its slice.
    fn grant(&mut self, id: DeviceId, next: RequestId) {
        let position = self.waiting(next).position;
        let Some(device) = self.devices.get(&id) else {
            return;
        };
        if device.switches_to(position) {
            let runs = self.runs(&device.queue);
            let slice = self.dispatch.slice(device.depth(), runs);
            if let Some(device) = self.devices.get_mut(&id) {
                device.grant(slice, runs);
            }
        }
    }

    fn waiting(&self, id: RequestId) -> Waiting {
        let never = Waiting {
            position: u64::MAX,
            due: u64::MAX,
        };
        self.requests.get(id).map_or(never, |request| {
            let owner = request.owner.and_then(|owner| self.readers.get(&owner));
            let account = owner.map_or(0, |reader| reader.account);
            Waiting {
                position: self.place(request.extent).0,
                due: account.max(request.came),
            }
        })
    }

    /// How many runs wait: fetches that continue no other that waits.
    fn runs(&self, queue: &VecDeque<RequestId>) -> usize {
        let requests = queue.iter().filter_map(|id| self.requests.get(*id));
        let places = requests.map(|r| self.place(r.extent));
        let (begins, mut ends): (Vec<u64>, Vec<u64>) = places
            .map(|(position, bytes)| (position, position.saturating_add(bytes.0)))
            .unzip();
        ends.sort_unstable();
        let begins = begins.iter();
        begins.filter(|at| ends.binary_search(at).is_err()).count()
    }

    fn start(&mut self, id: RequestId) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        request.dispatched = true;
        let Request {
            device,
            extent,
            owner,
            demand,
            ..
        } = *request;
        let (position, bytes) = self.place(extent);
        if let Some(device) = self.devices.get_mut(&device) {
            device.in_flight += 1;
            let owner = owner.and_then(|owner| self.readers.get_mut(&owner));
            let before = owner.as_ref().map_or(0, |reader| reader.account);
            let account = device.take(before, position, bytes.0);
            if let Some(reader) = owner {
                reader.account = account;
            }
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
