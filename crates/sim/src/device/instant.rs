//! Instant: every request ends the moment it is submitted.
//!
//! What is left of a run on it is the policy alone: no stall, no late hit by waiting, the
//! requests in the order decided. Good for counting fetches; says nothing about time.

use std::collections::VecDeque;

use forerun_core::profile::RATE_RANGE;
use forerun_core::spec::{Knows, Method, Spec};
use forerun_core::{Bytes, Nanos, Profile};

use super::{Completion, Device, Outcome, Request, Usage};

pub(super) const METHOD: Method<Box<dyn Device>> = Method {
    spec: Spec {
        name: "instant",
        summary: "serves everything in no time, any number of requests at once",
        source: "baseline",
        unfit: "anything that depends on time",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Instant::default()),
};

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Instant {
    done: VecDeque<Completion>,
    head: Bytes,
    usage: Usage,
}

impl Device for Instant {
    /// No switching cost and the fastest rate a profile can state.
    fn profile(&self) -> Profile {
        Profile::constant(Nanos(0), *RATE_RANGE.end()).unwrap_or_default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.usage.requests += 1;
        self.usage.bytes.0 = self.usage.bytes.0.saturating_add(request.bytes.0);
        self.usage.switches += u64::from(request.at != self.head);
        self.head = request.end();
        self.done.push_back(Completion {
            id: request.id,
            at: now,
            outcome: Outcome::Done,
        });
    }

    fn next_event(&self) -> Option<Nanos> {
        self.done.front().map(|first| first.at)
    }

    fn advance(&mut self, _now: Nanos, done: &mut Vec<Completion>) {
        done.extend(self.done.drain(..));
    }

    fn usage(&self) -> Usage {
        self.usage
    }
}
