//! A disk that takes the same time for everything, one request after the other.
//!
//! Stands between the unit model and real disks: real compute times and driver overhead, but no
//! position to be near or far from. Requests are served first come, first served.

use std::collections::VecDeque;

use forerun_core::{Bytes, Nanos, Profile};

use crate::device::{Completion, Device, Outcome, Request, Usage};
use crate::needs::Needs;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Constant {
    service: Nanos,
    /// Ends of what was accepted, soonest first.
    queue: VecDeque<(Nanos, u64)>,
    usage: Usage,
}

impl Constant {
    /// A disk that takes `service` for every request.
    #[must_use]
    pub fn new(service: Nanos) -> Self {
        Self {
            service,
            queue: VecDeque::new(),
            usage: Usage::default(),
        }
    }
}

impl Device for Constant {
    fn profile(&self) -> Profile {
        // The rate only has to be too high to matter.
        const RATE: u64 = 1_000_000_000_000;
        Profile::constant(self.service, RATE).unwrap_or_default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        let begin = self.queue.back().map_or(now, |(end, _)| now.max(*end));
        let end = Nanos(begin.0.saturating_add(self.service.0));
        self.queue.push_back((end, request.id));
        self.usage.requests += 1;
        self.usage.switches += 1;
        self.usage.bytes = Bytes(self.usage.bytes.0.saturating_add(request.bytes.0));
        self.usage.busy = Nanos(self.usage.busy.0.saturating_add(self.service.0));
    }

    fn next_event(&self) -> Option<Nanos> {
        self.queue.front().map(|(end, _)| *end)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some((at, id)) = self.queue.front().copied().filter(|(end, _)| *end <= now) {
            self.queue.pop_front();
            done.push(Completion {
                id,
                at,
                outcome: Outcome::Done,
            });
        }
    }

    fn usage(&self) -> Usage {
        self.usage
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
