//! Requests of pieces: the piece of each, the time it was sent, and its result.
//!
//! A piece with some blocks already resident is fetched in several requests, one for each gap. Once
//! all of them have ended, the [plan](super) reports the piece to the planner, with the sum of
//! the times that disks worked on them. Requests that readers caused by misses of their own are not
//! listed here.

use alloc::collections::BTreeMap;

use crate::hinted::BlockNo;
use crate::units::{Nanos, RequestId};

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct PiecesRequested {
    /// The piece, and when the driver got the request.
    list: BTreeMap<RequestId, (BlockNo, Nanos)>,
}

impl PiecesRequested {
    /// A request is for a piece.
    pub(crate) fn add(&mut self, id: RequestId, piece: BlockNo) {
        self.list.insert(id, (piece, Nanos(0)));
    }

    /// Whether a request is for a piece.
    pub(crate) fn contains(&self, id: RequestId) -> bool {
        self.list.contains_key(&id)
    }

    /// The driver got a request.
    pub(crate) fn sent(&mut self, id: RequestId, now: Nanos) {
        if let Some((_, at)) = self.list.get_mut(&id) {
            *at = now;
        }
    }

    /// The number of a request is free again: its piece, and when the driver got it.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<(BlockNo, Nanos)> {
        self.list.remove(&id)
    }

    /// Each request with its piece.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestId, BlockNo)> {
        self.list.iter().map(|(id, (piece, _))| (*id, *piece))
    }
}

/// How the fetch of a piece goes.
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
