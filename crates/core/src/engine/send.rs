//! Sending: which request a device gets next, and handing it over. The stage *dispatch*.
//!
//! Called when a request is queued, when something is parked, when somebody comes to wait for a
//! request, and after completions. For a device that holds back the [method](crate::dispatch)
//! chooses: here that is told what waits, when it is due and how many runs share the device. Any
//! other gets its requests in order.
//!
//! It decides nothing about what is fetched, but for how long a window may be while others wait.

use alloc::vec::Vec;

use super::Engine;
use crate::device::{Device, Wish};
use crate::dispatch::Waiting;
use crate::protocol::{Fetch, Output};
use crate::request::Request;
use crate::units::{Bytes, DeviceId, RequestId};

/// What comes next at a device.
enum Next {
    /// A fetch is decided for what was parked.
    Wish(Wish),
    /// A fetch goes out.
    Fetch(RequestId),
}

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
        while let Some(next) = self.next(id) {
            match next {
                Next::Wish(wish) => self.grant_wish(wish),
                Next::Fetch(request) => self.start(request),
            }
        }
    }

    fn next(&mut self, id: DeviceId) -> Option<Next> {
        let device = self.devices.get(&id)?;
        let limit = self.settings.in_flight_max;
        let has_room = device.in_flight < limit.min(device.profile.queue_max());
        if self.holds_back(device) {
            // The plan's stand behind the others, but one that continues may go before them.
            return has_room.then(|| self.choose(id))?;
        }
        let waits = device.in_flight < limit && !device.queue.is_empty();
        let device = self.devices.get_mut(&id)?;
        if let Some(parked) = device.parked.pop_front() {
            // It held back until it was described anew.
            return Some(Next::Wish(parked.wish));
        }
        let request = if waits {
            device.queue.pop_front()
        } else if has_room && device.queue.is_empty() {
            device.planned.pop_front()
        } else {
            None
        };
        request.map(Next::Fetch)
    }

    /// Takes out what a device gets next.
    fn choose(&mut self, id: DeviceId) -> Option<Next> {
        let device = self.devices.get(&id)?;
        if let Some(at) = self.rest_of_window(device) {
            return self.take_out(id, at);
        }
        // Planned ones are due after all that somebody waits for.
        let planned = |id: &RequestId| Waiting {
            due: u64::MAX,
            ..self.waiting(*id)
        };
        let awaited = device.queue.iter().map(|id| self.waiting(*id));
        let parked = device
            .parked
            .iter()
            .map(|parked| self.waiting_parked(parked));
        let planned = device.planned.iter().map(planned);
        let mut waiting = awaited.chain(parked).chain(planned);
        let chosen = self.dispatch.next(&device.head(), &mut waiting);
        self.take_out(id, chosen).or_else(|| self.take_out(id, 0))
    }

    /// A window that was begun is finished, because it has its frames. It may go past the slice by a
    /// depth, which is how long a window may be when nothing is left of the slice.
    fn rest_of_window(&self, device: &Device) -> Option<usize> {
        let head = device.head();
        let longest = head.slice.0.saturating_add(device.depth().0);
        if head.run.0 >= longest {
            return None;
        }
        let continues = |id: &RequestId| !device.switches_to(self.waiting(*id).position);
        device.queue.iter().position(continues)
    }

    /// Takes out what stands there: the queue first, then what is parked, then the plan's.
    fn take_out(&mut self, id: DeviceId, at: usize) -> Option<Next> {
        let device = self.devices.get(&id)?;
        let (queued, parked) = (device.queue.len(), device.parked.len());
        let Some(at_parked) = at.checked_sub(queued) else {
            self.grant(id, *device.queue.get(at)?);
            return self.devices.get_mut(&id)?.queue.remove(at).map(Next::Fetch);
        };
        let Some(at_planned) = at_parked.checked_sub(parked) else {
            let parked = self.devices.get_mut(&id)?.parked.remove(at_parked)?;
            return Some(Next::Wish(parked.wish));
        };
        self.grant(id, *device.planned.get(at_planned)?);
        let planned = &mut self.devices.get_mut(&id)?.planned;
        planned.remove(at_planned).map(Next::Fetch)
    }

    /// A request that begins a run gets its slice.
    fn grant(&mut self, id: DeviceId, next: RequestId) {
        let position = self.waiting(next).position;
        let Some(device) = self.devices.get(&id) else {
            return;
        };
        if device.switches_to(position) {
            let runs = self.runs(device);
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

    /// How long a window may be that a device is to get now: what is left of its slice, and at
    /// least what pays for a switch.
    pub(super) fn slice_left(&self, device: &Device, position: u64) -> Bytes {
        if !self.holds_back(device) {
            return Bytes(u64::MAX);
        }
        let runs = self.runs(device);
        if runs == 0 {
            return Bytes(u64::MAX);
        }
        let head = device.head();
        let left = if device.switches_to(position) {
            self.dispatch.slice(device.depth(), runs + 1)
        } else {
            Bytes(head.slice.0.saturating_sub(head.run.0))
        };
        left.max(device.depth())
    }

    /// How many runs wait: reads and fetches that continue no other that waits.
    fn runs(&self, device: &Device) -> usize {
        let queue = device.queue.iter();
        let requests = queue.filter_map(|id| self.requests.get(*id));
        let parked = device
            .parked
            .iter()
            .filter_map(|parked| self.wished(&parked.wish));
        let extents = requests.map(|r| r.extent).chain(parked);
        let (mut begins, mut ends): (Vec<u64>, Vec<u64>) = extents
            .map(|extent| self.place(extent))
            .map(|(position, bytes)| (position, position.saturating_add(bytes.0)))
            .unzip();
        ends.sort_unstable();
        begins.sort_unstable();
        begins.dedup();
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
