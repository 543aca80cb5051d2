//! Switching: one server, first come first served; a request that does not continue where the
//! last one ended pays the switching cost first, then its bytes pass at the transfer rate.
//!
//! ```text
//! start    = max(submitted, busy_until)
//! deadline = start + (0 if adjacent, else switching(distance)) + bytes / rate(position)
//! ```
//!
//! This is the cost model of Li et al. 2004, section 2.1, made into a device. Deadlines are
//! absolute, so the same rule run in real time gives the same times.
//! Any [`Profile`] works: cost by distance, rate by position; the listed form is one of each.
//!
//! Adjacent means the position on the device, also when requests of other streams lie between in
//! time: only the very last request counts. It has no cache, no rotation, no reordering.

use forerun_core::profile::{RATE_RANGE, SWITCHING_MAX};
use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::{Bytes, Nanos, Profile};

use super::{
    Built, Completion, Device, DeviceError, ModelError, Outcome, Request, Usage, transfer_time,
};
use crate::device::needs::Needs;
use crate::device::server::Server;

pub(super) const METHOD: Method<Built> = Method {
    spec: Spec {
        name: "switching",
        summary: "one server: a switching cost unless adjacent, then bytes over rate",
        source: "li04 section 2.1",
        unfit: "effects of rotation, reordering, device caches and parallel channels",
        knows: Knows::Online,
        params: &[
            Param {
                name: "cost_ns",
                summary: "cost of going elsewhere; 8 ms is a 7200 rpm disk",
                default: 8_000_000,
                min: 0,
                max: SWITCHING_MAX.0,
            },
            Param {
                name: "rate_bytes_per_second",
                summary: "transfer rate; 80 MB/s is a disk of 2010 or a busy network volume",
                default: 80_000_000,
                min: *RATE_RANGE.start(),
                max: *RATE_RANGE.end(),
            },
        ],
    },
    build: |values| {
        let profile = Profile::constant(
            Nanos(values.get("cost_ns")),
            values.get("rate_bytes_per_second"),
        );
        let refused = |error| DeviceError::Model("switching", ModelError::Profile(error));
        Ok(Box::new(Switching::new(profile.map_err(refused)?)))
    },
};

/// See the [module](self).
#[derive(Debug)]
pub struct Switching {
    profile: Profile,
    server: Server,
}

impl Switching {
    /// A device with the costs of the profile.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        // One server, also for a profile of several. 1 is in range; the costs stay in any case.
        let one_server = profile.clone().with_servers(1);
        Self {
            profile: one_server.unwrap_or(profile),
            server: Server::default(),
        }
    }

    /// The cost of going to `at` from where the last request ended.
    fn switching_to(&self, at: Bytes) -> Nanos {
        match self.server.head() {
            Some(head) if head == at => Nanos(0),
            head => {
                let distance = at.0.abs_diff(head.unwrap_or_default().0);
                self.profile.switching(Bytes(distance))
            }
        }
    }
}

impl Device for Switching {
    fn profile(&self) -> Profile {
        self.profile.clone()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        let switching = self.switching_to(request.at);
        let transfer = transfer_time(request.bytes, self.profile.rate(request.at));
        let work = Nanos(switching.0.saturating_add(transfer.0));
        self.server.serve(now, &request, work, Outcome::Done);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.server.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.server.advance(now, done);
    }

    fn usage(&self) -> Usage {
        self.server.usage()
    }

    /// The first request switches, for the least there is at any distance; all bytes pass at the
    /// best rate there is anywhere.
    fn least(&self, needs: &Needs) -> Nanos {
        if needs.is_empty() {
            return Nanos(0);
        }
        let costs = self
            .profile
            .switching_points()
            .iter()
            .map(|point| point.1.0);
        let rates = self.profile.rate_points().iter().map(|point| point.1);
        let transfer = needs.at_rate(rates.max().unwrap_or(u64::MAX));
        Nanos(transfer.0.saturating_add(costs.min().unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Switching {
        Switching::new(Profile::constant(Nanos(8_000_000), 80_000_000).unwrap())
    }

    fn request(id: u64, at: u64, bytes: u64) -> Request {
        Request::new(id, Bytes(at), Bytes(bytes))
    }

    #[test]
    fn only_a_request_that_continues_the_last_one_is_free_of_the_switch() {
        let mut device = device();
        device.submit(Nanos(0), request(1, 0, 80));
        device.submit(Nanos(0), request(2, 80, 80));
        device.submit(Nanos(0), request(3, 80, 80));
        let mut done = Vec::new();
        device.advance(Nanos(u64::MAX), &mut done);
        let ends: Vec<u64> = done.iter().map(|c| c.at.0).collect();
        assert_eq!(ends, [8_001_000, 8_002_000, 16_003_000]);
        assert_eq!(device.usage().switches, 2);
        assert_eq!(device.usage().busy, Nanos(16_003_000));
    }

    #[test]
    fn an_idle_device_starts_when_it_is_asked() {
        let mut device = device();
        device.submit(Nanos(1_000), request(1, 0, 80));
        assert_eq!(device.next_event(), Some(Nanos(8_002_000)));
        let mut done = Vec::new();
        device.advance(Nanos(8_001_999), &mut done);
        assert!(done.is_empty());
        device.advance(Nanos(8_002_000), &mut done);
        device.submit(Nanos(20_000_000), request(2, 80, 80));
        assert_eq!(device.next_event(), Some(Nanos(20_001_000)));
    }
}
