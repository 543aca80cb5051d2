//! A disk that takes the same time for everything, one request after the other.
//!
//! Stands between the unit model and real disks: real compute times and driver overhead, but no
//! position to be near or far from. Requests are served first come, first served.

use forerun_core::{Nanos, Profile};

use crate::device::needs::Needs;
use crate::device::server::Server;
use crate::device::{Completion, Device, Outcome, Request, Usage};

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Constant {
    service: Nanos,
    server: Server,
}

impl Constant {
    /// A disk that takes `service` for every request.
    #[must_use]
    pub fn new(service: Nanos) -> Self {
        let server = Server::default();
        Self { service, server }
    }
}

impl Device for Constant {
    fn profile(&self) -> Profile {
        // The rate only has to be too high to matter.
        const RATE: u64 = 1_000_000_000_000;
        Profile::constant(self.service, RATE).unwrap_or_default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.server
            .serve(now, &request, self.service, Outcome::Done);
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

    fn least(&self, needs: &Needs) -> Nanos {
        Nanos(self.service.0.saturating_mul(needs.requests()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_what_every_device_must() {
        let make = || Box::new(Constant::new(Nanos(3_000_000))) as Box<dyn Device>;
        crate::conformance::device(&make, 1).unwrap();
    }
}
