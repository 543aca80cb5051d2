//! Epochs: how many servers were at work over some requests, by Little's law.
//!
//! ```text
//! servers = sum of the times each and those before it take alone / sum of the times taken
//! ```
//!
//! Example: of two requests of 30 ms sent together, which came back after 30 ms both, 30 and 60 ms
//! were expected on one server. They took 30 and 30: one and a half, so more than one.

use super::Sample;
use crate::profile::SERVERS_MAX;

/// Servers are counted in 256ths.
pub(super) const ONE: u64 = 256;

/// Requests that were at the device together with others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Epoch {
    pub(super) requests: u32,
    /// How many were there with each, itself included, added up.
    in_flight: u64,
    /// Times alone, and times taken.
    ahead: u64,
    took: u64,
}

impl Epoch {
    pub(super) fn add(&mut self, sample: &Sample) {
        self.requests += 1;
        self.in_flight = self.in_flight.saturating_add(sample.in_flight.into());
        self.ahead = self.ahead.saturating_add(sample.ahead.0);
        let took = sample.ended.since(sample.sent).0;
        self.took = self.took.saturating_add(took);
    }

    /// In 256ths.
    pub(super) fn servers(&self) -> u64 {
        let servers = u128::from(self.ahead) * u128::from(ONE) / u128::from(self.took.max(1));
        let servers = u64::try_from(servers).unwrap_or(u64::MAX);
        servers.clamp(ONE, u64::from(SERVERS_MAX - 1) * ONE)
    }

    /// Less than three quarters of the requests at the device were worked on.
    pub(super) fn is_queued(&self) -> bool {
        let offered = self.in_flight.saturating_mul(ONE) / u64::from(self.requests.max(1));
        4 * self.servers() < offered.saturating_mul(3)
    }
}
