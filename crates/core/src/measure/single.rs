//! Single: a request's own time on a device that serves one after the other.
//!
//! It begins when the request before ended, but for the part that passed *hidden* behind that one. Three things
//! stand in the way:
//!
//! - How much is hidden, only requests alone say: those that continue none, because a disk that was idle may
//!   have to turn once to continue. Where all are alone there is nothing to compare.
//! - A host is told of several requests at once, a *convoy*: the first seems to have taken all the time and the
//!   others next to none. A late request is held until one takes a quarter of its time again, and shares it with
//!   those between that took next to none; where it was later than chance makes a disk's, with all of them. Three of
//!   1 ms told of after 3 ms seem to take 3, 0 and 0 ms, and count as 1 ms each.
//! - Strips one behind the other are taken as one request: how far apart they are told is half chance, and
//!   all are of one length, which tells nothing of a rate.

use alloc::vec::Vec;

use super::Sample;
use super::costs::{CACHED, CLIP, Costs, ONE};
use crate::profile::SWITCHING_MAX;
use crate::units::{Bytes, Nanos, scaled};

/// A request that had the device for itself after so many in a row that had is taken as it is.
const ALONE: u32 = 128;
/// So many bytes of strips are one request, half of the longest there are: a disk of 100 MB/s takes
/// 5 ms, of which a late thread's share is small.
const STRIPS: u64 = 512 << 10;

/// Ratios are in 256ths: half as long again as it should is late, and may be a disk's chance.
const LATE: u64 = ONE * 3 / 2;
/// A request that took such a part of the late one, or more, is no part of its convoy.
const PART: u64 = 4;
/// Most requests of a convoy: as many as a device is given by default.
const CONVOY: usize = 256;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Single {
    /// Time of a request that passes hidden behind the one before it.
    hidden: u64,
    /// Requests that are held, a late one first, until their times are told apart.
    convoy: Convoy,
    /// Bytes and time of strips that continue each other.
    strips: (u64, u64),
    /// Requests alone since one was not, of those that continue the one before and of others.
    since_joined: [u32; 2],
}

impl Default for Single {
    fn default() -> Self {
        Self {
            hidden: 0,
            convoy: Convoy::default(),
            strips: (0, 0),
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
            if kind == 0 && is_joined && sample.is_cut {
                return self.learn_strips(costs, sample.bytes, own);
            }
            self.strips = (0, 0);
            let hidden = match is_joined && kind == 1 {
                true => self.hidden,
                false => 0,
            };
            let request = Request {
                distance: sample.distance,
                bytes: sample.bytes,
                took: own.saturating_add(hidden),
                expected,
            };
            self.convoy.add(costs, request);
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

    /// Requests that are held.
    pub(super) fn held(&self) -> u64 {
        self.convoy.requests.len() as u64
    }

    fn learn_strips(&mut self, costs: &mut Costs, bytes: Bytes, own: u64) {
        let (sum, time) = self.strips;
        self.strips = (sum.saturating_add(bytes.0), time.saturating_add(own));
        if self.strips.0 >= STRIPS {
            let (bytes, time) = core::mem::take(&mut self.strips);
            costs.learn(Bytes(0), Bytes(bytes), Nanos(time));
        }
    }
}

/// A request, and the time since the one before.
#[derive(Clone, Copy, Debug)]
struct Request {
    distance: Bytes,
    bytes: Bytes,
    took: u64,
    expected: u64,
}

impl Request {
    /// By so many 256ths of the time it should take.
    fn is_late(&self, by: u64) -> bool {
        u128::from(self.took) * u128::from(ONE) > u128::from(self.expected) * u128::from(by)
    }

    /// Next to no time.
    fn is_at_once(&self) -> bool {
        self.took < self.expected / CACHED
    }
}

/// A late request, and others that were told of with it.
#[derive(Clone, Debug, Default)]
struct Convoy {
    requests: Vec<Request>,
    took: u64,
    expected: u64,
}

impl Convoy {
    fn add(&mut self, costs: &mut Costs, request: Request) {
        let first = self.requests.first();
        let is_part = first.is_some_and(|first| request.took < first.took / PART);
        if !is_part || self.requests.len() >= CONVOY {
            self.end(costs);
        }
        let is_odd = match self.requests.first() {
            Some(first) => first.is_late(CLIP) || request.is_at_once(),
            None => request.is_late(LATE),
        };
        if !is_odd {
            return costs.learn(request.distance, request.bytes, Nanos(request.took));
        }
        self.took = self.took.saturating_add(request.took);
        self.expected = self.expected.saturating_add(request.expected);
        self.requests.push(request);
    }

    /// Each request took its part of the time.
    fn end(&mut self, costs: &mut Costs) {
        for request in self.requests.drain(..) {
            let part = scaled(request.expected, self.took, self.expected.max(1));
            costs.learn(request.distance, request.bytes, Nanos(part));
        }
        (self.took, self.expected) = (0, 0);
    }
}
