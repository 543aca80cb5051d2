//! Progress: how the requests of a piece go.
//!
//! A piece with some blocks already resident is fetched in several requests, one for each gap. Once
//! all of them have ended, the [plan](super) reports the piece to the planner, with the sum of
//! the times that disks worked on them.

use crate::units::Nanos;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Requests under way.
    requests: u32,
    /// A part of the fetch did not arrive.
    is_broken: bool,
    /// How long disks worked on requests that ended.
    service: Nanos,
}

impl Progress {
    /// So many requests begin, perhaps not for all of the piece.
    pub(super) fn begin(requests: u32, is_whole: bool) -> Self {
        Self {
            requests,
            is_broken: !is_whole,
            service: Nanos(0),
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.requests > 0
    }

    /// A request ended; a disk worked on it for so long. Once all have: for how long in all, and
    /// whether everything arrived.
    pub(super) fn end_one(&mut self, is_whole: bool, service: Nanos) -> Option<(Nanos, bool)> {
        self.requests = self.requests.saturating_sub(1);
        self.is_broken |= !is_whole;
        self.service = Nanos(self.service.0.saturating_add(service.0));
        (!self.is_under_way()).then_some((self.service, !self.is_broken))
    }
}
