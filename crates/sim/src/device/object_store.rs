//! Object store: far away, slow to the first byte, and wide.
//!
//! ```text
//! waiting -> [a slot is free] -> first byte -> body -> done
//!            requests_in_flight   first_byte    min(stream, total / bodies) each
//! ```
//!
//! At most `requests_in_flight` requests are served; the others wait in order. Each waits for its
//! first byte, then its body comes at the rate of one stream, unless the bodies under way would
//! together pass the total rate: then they share it equally, in whole bytes a second. `shared`
//! counts the bytes that *every* body has received since the start, in billionths of a byte, so a
//! body ends when the count has grown by its own size, however many others came and went meanwhile.
//!
//! No position matters: nothing is adjacent, nothing cached. Deliberately absent: requests that
//! are rarely much slower (wrap it in [`Fault`](crate::wrap::Fault) for delays), and prices.

use std::collections::{BTreeSet, VecDeque};

use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::{Nanos, Profile};
use serde::Deserialize;

use super::model::{ModelError, milliseconds, range, rate};
use super::{Built, Completion, Device, Outcome, Request, Usage, stated};
use crate::device::needs::Needs;

pub(super) const METHOD: Method<Built> = Method {
    spec: Spec {
        name: "object_store",
        summary: "first byte, rate of a stream, rate of all, requests in flight",
        source: "reported figures of stores in the same region",
        unfit: "anything adjacent: every request costs the first byte",
        knows: Knows::Online,
        params: &[
            Param {
                name: "first_byte_ns",
                summary: "to the first byte; 20 to 60 ms are reported",
                default: 30_000_000,
                min: 0,
                max: 60_000_000_000,
            },
            Param {
                name: "stream_bytes_per_second",
                summary: "rate of one request; 80 MB/s is reported",
                default: 80_000_000,
                min: 1_000,
                max: 1_000_000_000_000,
            },
            Param {
                name: "total_bytes_per_second",
                summary: "rate of all together; 2 GB/s is a fast network card",
                default: 2_000_000_000,
                min: 1_000_000,
                max: 1_000_000_000_000,
            },
            Param {
                name: "requests_in_flight",
                summary: "requests under way at once; clients allow hundreds",
                default: 256,
                min: 1,
                max: 65_536,
            },
        ],
    },
    build: |values| {
        Ok(Box::new(ObjectStore::new(Parameters {
            first_byte: Nanos(values.get("first_byte_ns")),
            stream: values.get("stream_bytes_per_second"),
            total: values.get("total_bytes_per_second"),
            in_flight: values.get("requests_in_flight"),
        })))
    },
};

/// The parameters of a store, as in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// Always `object_store`.
    pub kind: String,
    /// To the first byte.
    pub first_byte_ms: f64,
    /// Rate of one request, in units of 10^6 bytes a second.
    pub stream_mb_s: f64,
    /// Rate of all together, in units of 10^6 bytes a second.
    pub total_mb_s: f64,
    /// Requests under way at once.
    pub requests_in_flight: u64,
}

impl Sheet {
    /// The parameters, checked.
    ///
    /// # Errors
    /// The first parameter out of its range.
    pub fn check(&self) -> Result<Parameters, ModelError> {
        let in_flight = self.requests_in_flight;
        range("requests_in_flight", in_flight as f64, 1.0, 65_536.0)?;
        // A 65,536th of the total must still be a byte a second.
        range("total_mb_s", self.total_mb_s, 1.0, 1e6)?;
        Ok(Parameters {
            first_byte: milliseconds("first_byte_ms", self.first_byte_ms, 60_000.0)?,
            stream: rate("stream_mb_s", self.stream_mb_s)?,
            total: rate("total_mb_s", self.total_mb_s)?,
            in_flight,
        })
    }
}

/// Checked parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    first_byte: Nanos,
    stream: u64,
    total: u64,
    in_flight: u64,
}

/// A request under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Open {
    number: u64,
    id: u64,
    bytes: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub struct ObjectStore {
    parameters: Parameters,
    waiting: VecDeque<Open>,
    /// Waiting for their first byte, by when it comes.
    first_bytes: VecDeque<(Nanos, Open)>,
    /// Bodies under way, by the count at which each ends.
    bodies: BTreeSet<(u128, Open)>,
    /// Bytes that every body received, in billionths of a byte, up to `now`.
    shared: u128,
    now: Nanos,
    done: VecDeque<Completion>,
    usage: Usage,
}

impl ObjectStore {
    /// A store with nothing under way.
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            waiting: VecDeque::new(),
            first_bytes: VecDeque::new(),
            bodies: BTreeSet::new(),
            shared: 0,
            now: Nanos(0),
            done: VecDeque::new(),
            usage: Usage::default(),
        }
    }

    /// A device of several servers: each of its requests may have the whole rate, and all share it.
    #[must_use]
    pub fn sharing(first_byte: Nanos, bytes_per_second: u64, servers: u32) -> Self {
        Self::new(Parameters {
            first_byte,
            stream: bytes_per_second,
            total: bytes_per_second,
            in_flight: servers.into(),
        })
    }

    fn in_flight(&self) -> u64 {
        (self.first_bytes.len() + self.bodies.len()) as u64
    }

    /// The rate of each body.
    fn share(&self) -> u64 {
        let bodies = self.bodies.len().max(1) as u64;
        self.parameters
            .stream
            .min(self.parameters.total / bodies)
            .max(1)
    }

    /// When the next first byte comes or body ends.
    fn next_change(&self) -> Option<Nanos> {
        let first_byte = self.first_bytes.front().map(|(at, _)| *at);
        let body = self.bodies.first().map(|(end, _)| {
            let wait = (end - self.shared.min(*end)).div_ceil(u128::from(self.share()));
            let wait = u64::try_from(wait).unwrap_or(u64::MAX);
            Nanos(self.now.0.saturating_add(wait))
        });
        first_byte.into_iter().chain(body).min()
    }

    /// Time passes, with no change before `now`.
    fn pass(&mut self, now: Nanos) {
        let elapsed = now.since(self.now);
        self.usage.busy.0 = elapsed
            .0
            .saturating_mul(self.in_flight())
            .saturating_add(self.usage.busy.0);
        if !self.bodies.is_empty() {
            let grown = u128::from(self.share()) * u128::from(elapsed.0);
            self.shared = self.shared.saturating_add(grown);
        }
        self.now = self.now.max(now);
    }

    /// Everything that happens up to `now`.
    fn run(&mut self, now: Nanos) {
        while let Some(next) = self.next_change().filter(|next| *next <= now) {
            self.pass(next);
            self.change();
        }
        self.pass(now);
    }

    /// First bytes that came, bodies that ended, and the slots they leave.
    fn change(&mut self) {
        // At the end of time every wait has been cut short.
        let is_last = self.now.0 == u64::MAX;
        while let Some(&(end, one)) = self.bodies.first() {
            if end > self.shared && !is_last {
                break;
            }
            self.bodies.remove(&(end, one));
            self.done.push_back(Completion {
                id: one.id,
                at: self.now,
                outcome: Outcome::Done,
            });
        }
        while let Some(&(at, one)) = self.first_bytes.front() {
            if at > self.now {
                break;
            }
            self.first_bytes.pop_front();
            let size = u128::from(one.bytes) * 1_000_000_000;
            self.bodies.insert((self.shared.saturating_add(size), one));
        }
        self.fill();
    }

    fn fill(&mut self) {
        while self.in_flight() < self.parameters.in_flight {
            let Some(one) = self.waiting.pop_front() else {
                return;
            };
            let at = self.now.0.saturating_add(self.parameters.first_byte.0);
            self.first_bytes.push_back((Nanos(at), one));
        }
    }
}

impl Device for ObjectStore {
    /// Request latency, and the rate of one stream.
    fn profile(&self) -> Profile {
        let p = &self.parameters;
        let profile = Profile::constant(p.first_byte, p.stream.min(p.total));
        let profile = profile.and_then(|profile| profile.with_servers(stated(self.servers())));
        let profile = profile.map(|profile| profile.with_most(self.servers()));
        profile.unwrap_or_default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.run(now);
        // No request continues another: each waits for its own first byte.
        self.usage.count(&request, true);
        self.waiting.push_back(Open {
            number: self.usage.requests,
            id: request.id,
            bytes: request.bytes.0,
        });
        self.fill();
    }

    fn next_event(&self) -> Option<Nanos> {
        let done = self.done.front().map(|first| first.at);
        done.or_else(|| self.next_change())
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run(now);
        done.extend(self.done.drain(..));
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn servers(&self) -> u32 {
        u32::try_from(self.parameters.in_flight).unwrap_or(u32::MAX)
    }

    /// Requests wait for their first bytes so many at once; after the first one of all, bytes
    /// come at the rate of all streams together.
    fn least(&self, needs: &Needs) -> Nanos {
        let p = &self.parameters;
        let rounds = needs.requests().div_ceil(p.in_flight.max(1));
        let waits = p.first_byte.0.saturating_mul(rounds);
        let transfer = needs.at_rate(p.total.min(p.stream.saturating_mul(p.in_flight)));
        let streams = p.first_byte.0.saturating_add(transfer.0);
        match needs.is_empty() {
            true => Nanos(0),
            false => Nanos(waits.max(streams)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::Bytes;

    /// 1000 ns to the first byte, a byte a ns a stream, two bytes a ns in all.
    fn ends(in_flight: u64, requests: &[(u64, u64)]) -> Vec<u64> {
        let mut store = ObjectStore::new(Parameters {
            first_byte: Nanos(1_000),
            stream: 1_000_000_000,
            total: 2_000_000_000,
            in_flight,
        });
        for (id, &(now, bytes)) in (0..).zip(requests) {
            let (at, bytes) = (Bytes(0), Bytes(bytes));
            store.submit(Nanos(now), Request::new(id, at, bytes));
        }
        let mut done = Vec::new();
        while let Some(next) = store.next_event() {
            store.advance(next, &mut done);
        }
        done.sort_unstable_by_key(|one| one.id);
        done.iter().map(|one| one.at.0).collect()
    }

    #[test]
    fn one_request_waits_for_its_first_byte_and_streams() {
        assert_eq!(ends(9, &[(5, 300)]), [5 + 1_000 + 300]);
    }

    #[test]
    fn bodies_share_the_total_rate_while_they_overlap() {
        // Four at half a stream each. The short one leaves at 200; the others go on at two
        // thirds, so that 300 bytes more take 450, and 1 because rates are whole bytes a second.
        assert_eq!(
            ends(9, &[(0, 100), (0, 400), (0, 400), (0, 400)]),
            [1_200, 1_651, 1_651, 1_651]
        );
    }

    #[test]
    fn beyond_the_requests_in_flight_others_wait() {
        assert_eq!(ends(1, &[(0, 100), (0, 100)]), [1_100, 2_200]);
    }
}
