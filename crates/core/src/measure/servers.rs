//! Servers: how many a device has, by Little's law over epochs of 16 requests, of four until it is known.
//!
//! ```text
//! servers = sum of the times each and those before it take alone / sum of the times taken
//! ```
//!
//! Where three quarters of the requests or more were worked on at once, the device may have more: such an epoch
//! raises the number and never lowers it. A number half as large or one and a half times as large is taken as seen;
//! between, half of the difference is chance.
//!
//! Example: of two requests of 30 ms sent together, which came back after 30 ms both, 30 and 60 ms
//! were expected on one server. They took 30 and 30: one and a half, so more than one.

use super::Sample;
use crate::profile::SERVERS_MAX;
use crate::units::{saturate, scaled};

/// Servers are counted in 256ths.
pub(super) const ONE: u64 = 256;
/// Requests between two looks at the number of servers: chance in a disk's times is then a tenth.
pub(super) const EPOCH: u32 = 16;
/// Requests between two looks while the number of servers is not known.
const FIRST_EPOCH: u32 = 4;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Servers {
    /// In 256ths.
    count: u64,
    /// The same when the costs were measured anew, or known to be as they were. Fewer servers and longer times look
    /// alike and each epoch moves the number a little: 77 servers of a store that became ten times as far were
    /// taken for 3 by steps of which none was doubted.
    checked: u64,
    /// Whether it was told or seen.
    pub(super) is_known: bool,
    /// Whether it was seen.
    pub(super) was_seen: bool,
    /// From the beginning on every epoch saw more of them.
    pub(super) is_growing: bool,
    epoch: Epoch,
}

/// The number of servers by an epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// In 256ths.
    pub(super) count: u64,
    /// One and a half times as many, or more.
    pub(super) has_grown: bool,
    /// That, or half as many and fewer, as when the costs were checked.
    pub(super) is_odd: bool,
}

impl Servers {
    pub(super) fn new(count: u32, is_told: bool) -> Self {
        Self {
            count: u64::from(count) * ONE,
            checked: u64::from(count) * ONE,
            is_known: is_told,
            was_seen: false,
            is_growing: !is_told,
            epoch: Epoch::default(),
        }
    }

    /// To the nearest whole number.
    pub(super) fn whole(&self) -> u32 {
        let servers = (self.count + ONE / 2) / ONE;
        saturate(servers).clamp(1, SERVERS_MAX - 1)
    }

    pub(super) fn is_one(&self) -> bool {
        self.is_known && self.whole() == 1
    }

    /// A request was one of several; the epoch if it ends with this one.
    pub(super) fn add(&mut self, sample: &Sample) -> Option<Epoch> {
        self.epoch.add(sample);
        let least = match self.is_known {
            true => EPOCH,
            false => FIRST_EPOCH,
        };
        let is_over = self.epoch.requests >= least.max(sample.in_flight / 2);
        is_over.then(|| core::mem::take(&mut self.epoch))
    }

    pub(super) fn judge(&mut self, epoch: &Epoch) -> Seen {
        let old = self.count;
        let seen = match epoch.is_queued() {
            true => epoch.servers(),
            // All were worked on at once, and more might have been.
            false => epoch.servers().max(old),
        };
        let has_grown = 2 * seen > 3 * old;
        self.is_growing &= has_grown;
        let count = match has_grown || 2 * seen < old {
            true => seen,
            false => old.midpoint(seen),
        };
        Seen {
            count,
            has_grown,
            is_odd: 2 * seen > 3 * self.checked || 2 * seen < self.checked,
        }
    }

    /// In 256ths, from now on.
    pub(super) fn believe(&mut self, count: u64) {
        self.count = count;
        (self.is_known, self.was_seen) = (true, true);
    }

    /// The costs are measured where so many were seen, in 256ths.
    pub(super) fn check(&mut self, count: u64) {
        self.checked = count;
    }
}

/// Requests that were at the device together with others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Epoch {
    requests: u32,
    /// How many were there with each, itself included, added up.
    in_flight: u64,
    /// Times alone, and times taken.
    ahead: u64,
    took: u64,
}

impl Epoch {
    fn add(&mut self, sample: &Sample) {
        self.requests += 1;
        self.in_flight = self.in_flight.saturating_add(sample.in_flight.into());
        self.ahead = self.ahead.saturating_add(sample.ahead.0);
        let took = sample.ended.since(sample.sent).0;
        self.took = self.took.saturating_add(took);
    }

    /// In 256ths.
    fn servers(&self) -> u64 {
        let servers = scaled(self.ahead, ONE, self.took.max(1));
        servers.clamp(ONE, u64::from(SERVERS_MAX - 1) * ONE)
    }

    /// Less than three quarters of the requests at the device were worked on.
    fn is_queued(&self) -> bool {
        let offered = self.in_flight.saturating_mul(ONE) / u64::from(self.requests.max(1));
        4 * self.servers() < offered.saturating_mul(3)
    }
}
