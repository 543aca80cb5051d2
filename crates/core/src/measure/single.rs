//! Single: a request's own time on a device that serves one after the other.
//!
//! It begins when the request before ended, but for the part that passed *hidden* behind that one. Three things
//! stand in the way:
//!
//! - How much is hidden, only requests alone say: those that continue none, because a disk that was idle may
//!   have to turn once to continue. Where all are alone there is nothing to compare.
//! - A host is interrupted once for several requests, a *convoy*: the first seems to have taken all the time
//!   and the others none. Each gets its part of the convoy's time so far, by its expected time. Of three
//!   requests of 1 ms told after 3 ms, the times since the one before are 3, 0 and 0 ms: they count as 3, 1.5
//!   and 1 ms, and a mean goes on to 1.
//! - Strips one behind the other are taken as one request: how far apart they are told is half chance, and
//!   all are of one length, which tells nothing of a rate.

use super::Sample;
use super::costs::Costs;
use crate::profile::SWITCHING_MAX;
use crate::units::{Bytes, Nanos};

/// A request that had the device for itself after so many in a row that had is taken as it is.
const ALONE: u32 = 128;
/// So many bytes of strips are one request, half of the longest there are: a disk of 100 MB/s takes
/// 5 ms, of which a late thread's share is small.
const STRIPS: u64 = 512 << 10;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Single {
    /// Time of a request that passes hidden behind the one before it.
    hidden: u64,
    /// Times taken and expected of the requests of a convoy.
    convoy: (u64, u64),
    /// Bytes and time of strips that continue each other.
    strips: (u64, u64),
    /// Requests alone since one was not, of those that continue the one before and of others.
    since_joined: [u32; 2],
}

impl Default for Single {
    fn default() -> Self {
        Self {
            hidden: 0,
            convoy: (0, 0),
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
            let own = self.in_convoy(own, expected).saturating_add(hidden);
            costs.learn(sample.distance, sample.bytes, Nanos(own));
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

    fn learn_strips(&mut self, costs: &mut Costs, bytes: Bytes, own: u64) {
        let (sum, time) = self.strips;
        self.strips = (sum.saturating_add(bytes.0), time.saturating_add(own));
        if self.strips.0 >= STRIPS {
            let (bytes, time) = core::mem::take(&mut self.strips);
            costs.learn(Bytes(0), Bytes(bytes), Nanos(time));
        }
    }

    /// The time of a request since the one before: its part of the convoy's time so far.
    fn in_convoy(&mut self, own: u64, expected: u64) -> u64 {
        let (took, all) = self.convoy;
        // Nothing was held back if the first took no longer than it should.
        let was_late = took.saturating_mul(2) > all.saturating_mul(3);
        if own >= expected / 4 || !was_late {
            self.convoy = (own, expected);
            return own;
        }
        let (took, all) = (took.saturating_add(own), all.saturating_add(expected));
        self.convoy = (took, all);
        let part = u128::from(expected) * u128::from(took) / u128::from(all.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}
