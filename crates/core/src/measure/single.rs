//! Single: a request's own time on a device that serves one after the other.
//!
//! It begins when the request before ended, but for the part that passed *hidden* behind that one. Two things
//! stand in the way:
//!
//! - How much is hidden, only requests alone say: those that continue none, because a disk that was idle may
//!   have to turn once to continue. Where all are alone there is nothing to compare.
//! - A host is told of several requests at once, a *convoy*: the first seems to have taken all the time and the
//!   others next to none. A late request is held, and shares its time with those that were there when it ended
//!   and took less than a quarter of it. Three of 1 ms told of after 3 ms seem to take 3, 0 and 0 ms, and are one
//!   observation of 1 ms.

use super::Sample;
use super::costs::{Costs, HOST_COST};
use super::together::Together;
use crate::profile::SWITCHING_MAX;
use crate::units::{Bytes, Nanos};

/// A request that had the device for itself after so many in a row that had is taken as it is.
const ALONE: u32 = 128;
/// Four times the expected time is more than a disk's chance, and a quarter of the first's time is a convoy's.
const PART: u64 = 4;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Single {
    /// Time of a request that passes hidden behind the one before it.
    hidden: u64,
    /// Requests that are held, a late one first, until their times are told apart.
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
            let request = Request::new(costs, sample, own, hidden);
            self.convoy.add(costs, &request);
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
        let own = sample.ended.since(sample.sent.max(before)).0;
        self.convoy.pass(&Request::new(costs, sample, own, 0));
    }

    /// Requests whose time is not told apart yet.
    pub(super) fn held(&self) -> u64 {
        self.convoy.all.requests()
    }
}

/// A request, and the time since the one before.
#[derive(Clone, Copy, Debug)]
struct Request {
    sent: Nanos,
    ended: Nanos,
    distance: Bytes,
    bytes: Bytes,
    took: u64,
    expected: u64,
}

impl Request {
    /// So much of the time between the two ends was its own, and `hidden` more.
    fn new(costs: &Costs, sample: &Sample, own: u64, hidden: u64) -> Self {
        Self {
            sent: sample.sent,
            ended: sample.ended,
            distance: sample.distance,
            bytes: sample.bytes,
            took: own.saturating_add(hidden),
            expected: costs.expected(sample.distance, sample.bytes).0.max(1),
        }
    }

    fn is_late(&self) -> bool {
        self.took > self.expected.saturating_add(self.expected / 2)
    }

    fn kind(&self) -> usize {
        usize::from(self.distance.0 > 0)
    }
}

/// A late request, and others that were told of with it.
#[derive(Clone, Debug, Default)]
struct Convoy {
    /// Time of the first.
    first: u64,
    /// When it ended.
    told: Nanos,
    /// It took more than chance makes it.
    is_clear: bool,
    all: Together,
}

impl Convoy {
    fn add(&mut self, costs: &mut Costs, request: &Request) {
        if !self.has_part(request) {
            self.end(costs);
            if !request.is_late() && costs.knows(request.kind()) {
                return costs.learn(request.distance, request.bytes, Nanos(request.took));
            }
        }
        self.push(request);
    }

    /// The times of its requests are learned elsewhere.
    fn pass(&mut self, request: &Request) {
        if !self.has_part(request) {
            *self = Self::default();
            if !request.is_late() {
                return;
            }
        }
        self.push(request);
    }

    /// Whether a request was told of with the first, in whose time it passed: it was there when that ended, and took less than
    /// a quarter of its time. On a disk one that continues a late one passes after it, so one of a kind that is not here took less than a
    /// quarter of its expected time, or no more than its host needs for it where the first took more than four times its own.
    fn has_part(&self, request: &Request) -> bool {
        let was_there = request.sent < self.told;
        let is_short = request.took < self.first / PART;
        let is_alike = self.all.has(request.distance);
        let is_told = self.is_clear && request.took < HOST_COST;
        let is_early = is_told || request.took < request.expected / PART;
        was_there && is_short && (is_alike || is_early)
    }

    fn push(&mut self, request: &Request) {
        if self.all.requests() == 0 {
            self.first = request.took;
            self.told = request.ended;
            self.is_clear = request.took / PART > request.expected;
        }
        let Request {
            distance, bytes, ..
        } = *request;
        self.all
            .push(distance, bytes, request.took, request.expected);
    }

    fn end(&mut self, costs: &mut Costs) {
        core::mem::take(self).all.learn(costs);
    }
}
