//! Convoys: completions of one server that were told together.
//!
//! A host is interrupted once for several requests: the first seems to have taken all the time and
//! the others none. Each gets its part of the time of the convoy so far, by its expected time.
//!
//! Example: of three requests of 1 ms told after 3 ms, the times since the one before are 3, 0 and
//! 0 ms. They count as 3, 1.5 and 1 ms, and a mean goes on to 1.

/// Requests of one server whose completions were told together, as a host does that is interrupted
/// once for several: the first seems to have taken all the time and the others none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Convoy {
    took: u64,
    expected: u64,
}

impl Convoy {
    /// The time of a request since the one before: its part of the convoy's time so far.
    pub(super) fn own(&mut self, own: u64, expected: u64) -> u64 {
        // Nothing was held back if the first took no longer than it should.
        let was_late = self.took.saturating_mul(2) > self.expected.saturating_mul(3);
        if own >= expected / 4 || !was_late {
            (self.took, self.expected) = (own, expected);
            return own;
        }
        self.took = self.took.saturating_add(own);
        self.expected = self.expected.saturating_add(expected);
        let part = u128::from(expected) * u128::from(self.took) / u128::from(self.expected.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}
