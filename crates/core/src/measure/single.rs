//! Single: a request's own time on a device that serves one after the other.
//!
//! It begins when the request before ended, but for the part that passed *hidden* behind that one. Two things
//! stand in the way:
//!
//! - How much is hidden, only requests alone say: those that continue none, because a disk that was idle may
//!   have to turn once to continue. Where all are alone there is nothing to compare.
//! - A host is told of several requests at once, a *convoy*: the first seems to have taken all the time and the
//!   others next to none. A late request is held, and shares its time with those that were there when it ended
//!   and took less than a quarter of it. One that is on time is learned, and taken back if the next, too long for
//!   the hit of a cache, took no more than the host needs. Three of 1 ms told of after 3 ms seem to take 3, 0 and
//!   0 ms, and are one observation of 1 ms.

use super::Sample;
use super::costs::{Costs, HOST_COST};
use super::together::Together;
use crate::profile::SWITCHING_MAX;
use crate::units::Nanos;

/// A request that had the device for itself after so many in a row that had is taken as it is.
const ALONE: u32 = 128;
/// Four times the expected time is more than a disk's chance, and a quarter of the first's time is a convoy's.
const PART: u64 = 4;
/// A drive's cache gives no more bytes in the time of a host: 600 MB/s, that of SATA, for 0.1 ms.
const HIT: u64 = 60_000;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Single {
    /// Time of a request that passes hidden behind the one before it.
    hidden: u64,
    /// Requests that are held until their times are told apart.
    convoy: Convoy,
    /// Requests alone since one was not, of those that continue the one before and of others.
    since_joined: [u32; 2],
}

impl Default for Single {
    fn default() -> Self {
        Self {
            hidden: 0,
            convoy: Convoy::default(),
            since_joined: [ALONE; 2],
        }
    }
}

impl Single {
    /// A request ended; the one before ended at that time.
    pub(super) fn learn(&mut self, costs: &mut Costs, sample: &Sample, before: Nanos) {
        let own = sample.ended.since(sample.sent.max(before)).0;
        let kind = usize::from(sample.distance.0 > 0);
        let is_joined = sample.in_flight.max(sample.left) > 1;
        self.since_joined[kind] = match is_joined {
            true => 0,
            false => self.since_joined[kind].saturating_add(1),
        };
        let expected = costs.expected(sample.distance, sample.bytes).0;
        if is_joined || self.since_joined[kind] > ALONE {
            let hidden = match is_joined && kind == 1 {
                true => self.hidden,
                false => 0,
            };
            let took = own.saturating_add(hidden);
            let expected = expected.max(1);
            self.convoy.add(
                costs,
                Own {
                    request: sample,
                    took,
                    expected,
                },
            );
        } else if kind == 1 {
            let part = match own.abs_diff(expected) > expected / 2 {
                true => 2,
                false => 8,
            };
            self.hidden = match own.checked_sub(expected) {
                Some(more) => self.hidden.saturating_add(more / part).min(SWITCHING_MAX.0),
                None => self.hidden.saturating_sub((expected - own) / part),
            };
        }
    }

    /// A request ended on a device of several servers, which may be one a moment later: then a convoy that is under way
    /// is known from its beginning.
    pub(super) fn pass(&mut self, costs: &Costs, sample: &Sample, before: Nanos) {
        let took = sample.ended.since(sample.sent.max(before)).0;
        let expected = costs.expected(sample.distance, sample.bytes).0.max(1);
        self.convoy.pass(Own {
            request: sample,
            took,
            expected,
        });
    }

    /// Requests whose time is not told apart yet.
    pub(super) fn held(&self) -> u64 {
        match self.convoy.before {
            Some(_) => 0,
            None => self.convoy.all.requests(),
        }
    }
}

/// A request, so much of whose time was its own, where so much was expected.
#[derive(Clone, Copy, Debug)]
struct Own<'a> {
    request: &'a Sample,
    took: u64,
    expected: u64,
}

impl Own<'_> {
    fn is_late(&self) -> bool {
        is_late(self.took, self.expected)
    }
}

/// Whether a request took longer than chance makes it, mostly.
fn is_late(took: u64, expected: u64) -> bool {
    took > expected.saturating_add(expected / 2)
}

/// A request, and others that were told of with it.
#[derive(Clone, Debug, Default)]
struct Convoy {
    /// Time of the first, and how long it should take.
    took: u64,
    expected: u64,
    /// When it ended.
    told: Nanos,
    all: Together,
    /// The costs without the first, where that is learned because it was on time.
    before: Option<Costs>,
}

impl Convoy {
    fn add(&mut self, costs: &mut Costs, own: Own<'_>) {
        if self.has_part(own) {
            if let Some(before) = self.before.take() {
                *costs = before;
            }
            return self.push(own);
        }
        self.end(costs);
        self.push(own);
        let Sample {
            distance, bytes, ..
        } = *own.request;
        if !own.is_late() && costs.knows(distance) {
            self.before = Some(costs.clone());
            costs.learn(distance, bytes, Nanos(own.took));
        }
    }

    /// The times of its requests are learned elsewhere.
    fn pass(&mut self, own: Own<'_>) {
        if self.before.is_some() || !self.has_part(own) {
            *self = Self::default();
            if !own.is_late() {
                return;
            }
        }
        self.push(own);
    }

    /// Whether a request was told of with the first, in whose time it passed: it was there when that ended, and took less than
    /// a quarter of its time. On a disk one that continues a late one passes after it, so one of a kind that is not here took less than a
    /// quarter of its expected time, or no more than its host needs for it where the first took more than four times its own.
    /// Where the first was on time both, and it is too long for a hit: a disk that becomes faster is no convoy, nor are
    /// pages of which a cache has some.
    fn has_part(&self, own: Own<'_>) -> bool {
        let was_there = own.request.sent < self.told;
        let is_short = own.took < self.took / PART;
        let is_alike = self.all.has(own.request.distance);
        let is_told = self.took / PART > self.expected && own.took < HOST_COST;
        let is_early = own.took < own.expected / PART;
        let has_part = match is_late(self.took, self.expected) {
            true => is_alike || is_told || is_early,
            false => own.request.bytes.0 > HIT && is_early && own.took < HOST_COST,
        };
        was_there && is_short && has_part
    }

    fn push(&mut self, own: Own<'_>) {
        let Own {
            request,
            took,
            expected,
        } = own;
        if self.all.requests() == 0 {
            (self.took, self.expected) = (took, expected);
            self.told = request.ended;
        }
        self.all
            .push(request.distance, request.bytes, took, expected);
    }

    fn end(&mut self, costs: &mut Costs) {
        let Self { all, before, .. } = core::mem::take(self);
        if before.is_none() {
            all.learn(costs);
        }
    }
}
