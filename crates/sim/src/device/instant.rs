//! Instant: every request ends the moment it is submitted.
//!
//! A run on it shows the policy alone: no stall, no late hit by waiting, the requests in the
//! order decided. Good for counting fetches; says nothing about time.

use forerun_core::profile::RATE_RANGE;
use forerun_core::spec::{Knows, Method, Spec};
use forerun_core::{Nanos, Profile};

use super::{Built, Completion, Device, Outcome, Request, Usage};
use crate::device::server::Server;

pub(super) const METHOD: Method<Built> = Method {
    spec: Spec {
        name: "instant",
        summary: "serves everything in no time, any number of requests at once",
        source: "baseline",
        unfit: "anything that depends on time",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Ok(Box::new(Instant::default())),
};

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Instant {
    server: Server,
}

impl Device for Instant {
    /// No switching cost and the fastest rate a profile can state.
    fn profile(&self) -> Profile {
        Profile::constant(Nanos(0), *RATE_RANGE.end()).unwrap_or_default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.server.serve(now, &request, Nanos(0), Outcome::Done);
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
}
