//! What the engine remembers of a device: its costs, its queue, and whether it ever ran idle.
//!
//! Kept by the engine, one a device; filled by the dispatch stage, read by the depth stage. Fetches
//! beyond the limit wait here in order, so windows stay in one piece and no stream overtakes.

use alloc::collections::VecDeque;

use crate::dispatch::Head;
use crate::profile::Profile;
use crate::units::{Bytes, Nanos, RequestId};

/// Weight of the newest seek distance in the moving average, as a power of two: 1/8. li04
/// section 3.1 asks for an average that follows the workload within some tens of requests.
const DISTANCE_SHIFT: u32 = 3;

#[derive(Debug, Default)]
pub(crate) struct Device {
    pub(crate) profile: Profile,
    /// Moving average of the distances between requests that did not continue each other.
    pub(crate) distance: Bytes,
    /// Fetches handed to the driver and not completed.
    pub(crate) in_flight: u32,
    /// Fetches that wait for one of those to complete.
    pub(crate) queue: VecDeque<RequestId>,
    /// Fetches of the plan that nobody waits for: they go when nothing is in the queue.
    pub(crate) planned: VecDeque<RequestId>,
    /// When it last ended a fetch.
    pub(crate) ended: Nanos,
    /// How often the last fetch in flight completed with none waiting.
    pub(crate) idled: u64,
    /// Where the last fetch handed to it ends.
    pub(crate) last_end: u64,
    /// Bytes handed to it since it last had to switch.
    run: u64,
}

impl Device {
    /// Where it stands, for the dispatch stage.
    pub(crate) fn head(&self) -> Head {
        Head {
            position: self.last_end,
            run: Bytes(self.run),
            depth: self
                .profile
                .competitive_depth(self.distance, Bytes(self.last_end)),
        }
    }

    /// A fetch starts at this position: the moving average learns its distance.
    pub(crate) fn visit(&mut self, position: u64, bytes: u64) {
        let distance = position.abs_diff(self.last_end);
        if distance != 0 {
            let old = self.distance.0;
            self.distance = Bytes(old - (old >> DISTANCE_SHIFT) + (distance >> DISTANCE_SHIFT));
        }
        let before = if distance == 0 { self.run } else { 0 };
        self.run = before.saturating_add(bytes);
        self.last_end = position.saturating_add(bytes);
    }
}
