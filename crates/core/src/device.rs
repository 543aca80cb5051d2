//! State of a device: its costs, its queues, its work so far, and whether it ever ran idle.
//!
//! Kept by the engine, one a device; filled by the dispatch stage, read by the depth stage. Requests
//! that it has no slot for are queued here: with frames, or [deferred](crate::deferred) without.
//! Which goes next is the dispatch method's choice.

use alloc::collections::VecDeque;

use crate::deferred::DeferredQueue;
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
    /// Fetches of the plan that nobody waits for: they go after those in the queue, or
    /// where the device stands.
    pub(crate) planned: VecDeque<RequestId>,
    /// Requests without memory, until there is a slot.
    pub(crate) deferred: DeferredQueue,
    /// A deferred request was taken out and its fetch is not decided yet: nothing else is
    /// dispatched before.
    pub(crate) is_granting: bool,
    /// While that is decided, when it came: its fetch keeps its place in line.
    pub(crate) granted_came: Option<u64>,
    /// When it last ended a fetch.
    pub(crate) ended: Nanos,
    /// How often the last fetch in flight completed with none waiting.
    pub(crate) idled: u64,
    /// Where the last fetch handed to it ends.
    pub(crate) last_end: u64,
    /// Bytes handed to it since it last had to switch.
    run: u64,
    /// How long that run may get while others wait.
    slice: Bytes,
    /// How many runs waited when it began, itself included.
    runs: usize,
    /// Bytes handed to it ever, and for each switch what it could have transferred meanwhile.
    work: u64,
}

impl Device {
    /// Where it stands, for the dispatch stage.
    pub(crate) fn head(&self) -> Head {
        Head {
            position: self.last_end,
            run: Bytes(self.run),
            slice: self.slice,
        }
    }

    /// What it could transfer during one switch.
    pub(crate) fn depth(&self) -> Bytes {
        self.profile
            .competitive_depth(self.distance, Bytes(self.last_end))
    }

    /// A fetch that starts at this position would be a run of its own.
    pub(crate) fn switches_to(&self, position: u64) -> bool {
        position != self.last_end
    }

    /// The run that starts next may get this long; so many wait.
    pub(crate) fn grant(&mut self, slice: Bytes, runs: usize) {
        self.slice = slice;
        self.runs = runs;
    }

    /// Its work so far: see [`dispatch`](crate::dispatch).
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// Whether a request waits that is neither planned nor of a file ahead.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.queue.is_empty() || self.deferred.len() > 0
    }

    /// When a request that is made now came: now, in terms of work, unless it was deferred before.
    pub(crate) fn came(&self) -> u64 {
        self.granted_came.unwrap_or(self.work)
    }

    /// A fetch goes out. Returns where its reader's account, which stood there, stands now.
    pub(crate) fn take(&mut self, account: u64, position: u64, bytes: u64) -> u64 {
        let (start, switch) = if self.switches_to(position) {
            (self.work, self.depth().0)
        } else {
            (account.max(self.work), 0)
        };
        let work = bytes.saturating_add(switch);
        self.work = self.work.saturating_add(work);
        self.visit(position, bytes);
        // Those that wait, and the one that comes.
        let sharing = (self.runs as u64).saturating_add(1);
        start.saturating_add(work.saturating_mul(sharing))
    }

    /// A fetch starts at this position: the moving average learns its distance.
    fn visit(&mut self, position: u64, bytes: u64) {
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
