//! State of a device: its costs, its queues, its work so far, and whether it ever ran idle.
//!
//! Kept by the engine, one a device; filled by the dispatch stage, read by the depth stage.
//! Requests that it has no slot for are queued here: with frames, or [deferred](crate::deferred)
//! without. Which goes next is the dispatch method's choice.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::deferred::DeferredQueue;
use crate::dispatch::Head;
use crate::measure::{Measure, Sample};
use crate::profile::Profile;
use crate::units::{Bytes, Nanos, RequestId};

/// Weight of the newest seek distance in the moving average, as a power of two: 1/8. Li et al.
/// 2004, section 3.1, asks for an average that follows the workload within some tens of requests.
const DISTANCE_SHIFT: u32 = 3;

/// Shortest wait for a request that has the device for itself so that its time can be measured:
/// programs rarely see pauses of 100 ms.
const WAITED: Nanos = Nanos(100_000_000);
/// Such a wait ends, too, once the device has completed nothing for this many times the expected
/// time of its requests: a disk's slow requests take about three times the mean.
const WAITED_TIMES: u64 = 8;
/// A request hangs that takes longer than this, and longer than [`WAITED_TIMES`] the time that it and those
/// before it should take: a disk that reads a sector again and again, a server that is gone. Answers of
/// stores that work take a second in one of some thousand requests; readers of other files wait for less
/// than three.
const STALLED: Nanos = Nanos(1_000_000_000);

/// A request of a server is late if it takes so many times its expected time.
const LATE_TIMES: u64 = 4;
/// So many in a row, and it is the server that is slow: its [costs](crate::measure) are learned from them.
const LATE_MAX: u32 = 64;
/// Requests of a server should take no longer: where it has eight slots and a hundred programs wait, each has
/// its turn within three seconds. From 4 MB/s a request on the longest there are take less.
const SHORT: Nanos = Nanos(250_000_000);
/// The rate of a server is asked of so many bytes.
const UNIT: u64 = 1 << 20;

/// Most hanging requests of a device that do not count: each may hold a thread, and 256 have some
/// mebibytes of stacks.
const HUNG_MAX: u32 = 256;

/// For each request of a server that hangs so many others are tried at once: where it has eight, a hundred objects
/// that hang are known after three times [`STALLED`].
const TRIED: u32 = 3;

/// Between two looks for requests that hang: each goes through all requests.
const LOOK: Nanos = Nanos(200_000_000);

/// State of a fetch that the device has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) sample: Sample,
    /// How long it should take alone.
    alone: Nanos,
    /// The same as it counts for others; nothing if it was sent beside requests that do not come back.
    expected: Nanos,
    /// Whether it counts no more.
    pub(crate) is_written_off: bool,
    /// Whether it is known to hang.
    pub(crate) hangs: bool,
}

#[derive(Debug)]
pub(crate) struct Device {
    /// Estimates its costs.
    pub(crate) measure: Box<dyn Measure>,
    /// Sum of the expected times alone of the requests in flight.
    ahead: Nanos,
    /// Moving average of the distances between requests that did not continue each other.
    pub(crate) distance: Bytes,
    /// Fetches handed to the driver and not completed.
    pub(crate) in_flight: u32,
    /// Their bytes.
    bytes_in_flight: u64,
    /// Those of them that hang, and the bytes of these.
    hung: u32,
    bytes_hung: u64,
    /// When it was looked for such requests.
    looked: Nanos,
    /// Fetches that wait for one of those to complete.
    pub(crate) queue: VecDeque<RequestId>,
    /// Fetches of the plan without a waiting read: they go after those in the queue, or
    /// where the device stands.
    pub(crate) planned: VecDeque<RequestId>,
    /// Requests without memory, until there is a slot.
    pub(crate) deferred: DeferredQueue,
    /// A deferred request was taken out and its fetch is not decided yet: nothing else is
    /// dispatched before.
    pub(crate) is_granting: bool,
    /// While that is decided, when it came: its fetch keeps its place in line.
    pub(crate) granted_came: Option<u64>,
    /// How many requests in a row came late.
    late: u32,
    /// When it last ended a fetch.
    pub(crate) ended: Nanos,
    /// Since when it has had fetches all the time.
    busy_since: Nanos,
    /// Where the last fetch handed to it ends.
    pub(crate) last_end: u64,
    /// Bytes handed to it since it last had to switch.
    run: u64,
    /// How long that run may get while others wait.
    slice: Bytes,
    /// How many runs waited when it began, itself included.
    runs: usize,
    /// Total work in bytes: bytes requested, plus switching cost times transfer rate for every
    /// switch.
    work: u64,
}

impl Device {
    /// One of which nothing is known.
    pub(crate) fn new(measure: Box<dyn Measure>) -> Self {
        Self {
            measure,
            ahead: Nanos(0),
            distance: Bytes(0),
            in_flight: 0,
            bytes_in_flight: 0,
            hung: 0,
            bytes_hung: 0,
            looked: Nanos(0),
            queue: VecDeque::new(),
            planned: VecDeque::new(),
            deferred: DeferredQueue::default(),
            is_granting: false,
            granted_came: None,
            late: 0,
            ended: Nanos(0),
            busy_since: Nanos(0),
            last_end: 0,
            run: 0,
            slice: Bytes(0),
            runs: 0,
            work: 0,
        }
    }

    /// Its costs, as far as they are known.
    pub(crate) fn profile(&self) -> &Profile {
        self.measure.profile()
    }

    /// Requests in flight that do not hang.
    pub(crate) fn live(&self) -> u32 {
        self.in_flight - self.hung
    }

    /// Whether it seems to answer no more. To hold requests back then keeps those waiting that it
    /// might answer: of other files of a server, of other members below one number.
    pub(crate) fn is_stalled(&self, now: Nanos) -> bool {
        self.is_quiet(now, self.patience(self.ahead))
    }

    /// How long requests with this sum of expected times may take before they count as hanging.
    fn patience(&self, ahead: Nanos) -> Nanos {
        STALLED.max(Nanos(self.in_turn(ahead).saturating_mul(WAITED_TIMES)))
    }

    /// How long requests with this sum of expected times take on all servers together.
    fn in_turn(&self, ahead: Nanos) -> u64 {
        match self.profile().is_parallel() {
            true => ahead.0 / u64::from(self.profile().servers()),
            false => ahead.0,
        }
    }

    fn is_quiet(&self, now: Nanos, patience: Nanos) -> bool {
        let quiet = now.since(self.ended.max(self.busy_since));
        self.in_flight > 0 && quiet > patience
    }

    /// Whether requests that hang keep others from going out; `starve` if reads wait for memory.
    pub(crate) fn is_held_up(&self, starve: bool) -> bool {
        let waits = starve || self.is_wanted() || !self.planned.is_empty();
        waits && self.in_flight > 0 && self.hung < HUNG_MAX
    }

    /// Whether a request hangs.
    pub(crate) fn hangs(&self, sent: &Sent, now: Nanos) -> bool {
        now.since(sent.sample.sent) > self.patience(sent.sample.ahead)
    }

    /// Most bytes of a request. One of a server takes a quarter of a second at most, or a few times the fixed cost of
    /// a request, because others wait for its end.
    pub(crate) fn longest(&self) -> u64 {
        if !self.profile().is_served() {
            return u64::MAX;
        }
        let time = |bytes| self.measure.expected(Bytes(u64::MAX), Bytes(bytes)).0;
        let (fixed, unit) = (time(1), time(UNIT));
        let bound = SHORT.0.max(fixed.saturating_mul(WAITED_TIMES));
        let bytes = u128::from(bound - fixed.min(bound)) * u128::from(UNIT);
        let bytes = bytes.checked_div(u128::from(unit - fixed.min(unit)));
        bytes.map_or(u64::MAX, |bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Whether to look for requests that hang.
    pub(crate) fn looks(&mut self, now: Nanos, starve: bool) -> bool {
        let is_due = self.is_held_up(starve) && now.since(self.looked) >= LOOK;
        if is_due {
            self.looked = now;
        }
        is_due
    }

    /// A request that hangs or is late no longer counts against the limit of its device.
    pub(crate) fn write_off(&mut self, sent: &mut Sent) {
        if self.hung < HUNG_MAX && !sent.is_written_off {
            sent.is_written_off = true;
            self.hung += 1;
            self.bytes_hung += sent.sample.bytes.0;
            self.ahead = Nanos(self.ahead.0.saturating_sub(sent.expected.0));
        }
    }

    /// Time has passed: a measurement does not wait for the device any longer.
    pub(crate) fn look(&mut self, now: Nanos) {
        let patience = WAITED.max(Nanos(self.ahead.0.saturating_mul(WAITED_TIMES)));
        if self.is_quiet(now, patience) {
            self.measure.give_up();
        }
    }

    /// Most requests it should have now beside those that hang.
    pub(crate) fn limit(&self, now: Nanos) -> u32 {
        let most = match self.is_stalled(now) {
            true => self.profile().most(),
            false => self.measure.limit(),
        };
        match self.profile().is_served() {
            true => most.saturating_add(self.hung * TRIED),
            false => most,
        }
    }

    /// The same while those that do not hang may hold so many bytes of memory, and one more may be as long
    /// as that. Two are no question of memory: a device with one has nothing to go on with.
    pub(crate) fn limit_in(&self, memory: Bytes, longest: Bytes, now: Nanos) -> u32 {
        let live = self.live();
        let next = self.bytes_live().saturating_add(longest.0);
        match live >= 2 && next > memory.0 {
            true => live,
            false => self.limit(now),
        }
    }

    /// Memory of its requests in flight.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Memory of the requests in flight that do not hang.
    pub(crate) fn bytes_live(&self) -> u64 {
        self.bytes_in_flight - self.bytes_hung
    }

    /// Memory of those that hang.
    pub(crate) fn bytes_hung(&self) -> u64 {
        self.bytes_hung
    }

    /// Where it stands, for the dispatch stage.
    pub(crate) fn head(&self) -> Head {
        Head {
            position: self.last_end,
            run: Bytes(self.run),
            slice: self.slice,
        }
    }

    /// Bytes it could transfer during one switch.
    pub(crate) fn depth(&self) -> Bytes {
        self.profile()
            .competitive_depth(self.distance, Bytes(self.last_end))
    }

    /// Bytes it could transfer in a second.
    pub(crate) fn second(&self) -> Bytes {
        let rate = self.profile().rate(Bytes(self.last_end));
        match self.profile().is_parallel() {
            true => Bytes(rate.saturating_mul(self.profile().servers().into())),
            false => Bytes(rate),
        }
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

    /// Time for its requests in flight and in the queue, and for the switch to this position behind
    /// them.
    pub(crate) fn ready(
        &self,
        waiting: impl Iterator<Item = (u64, Bytes)>,
        position: u64,
    ) -> Nanos {
        let mut end = self.last_end;
        let mut time = self.ahead.0;
        for (at, bytes) in waiting.chain([(position, Bytes(0))]) {
            let distance = Bytes(at.abs_diff(end));
            time = time.saturating_add(self.measure.expected(distance, bytes).0);
            end = at.saturating_add(bytes.0);
        }
        Nanos(time)
    }

    /// Whether a request waits that is neither planned nor of a file ahead.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.queue.is_empty() || self.deferred.len() > 0
    }

    /// Whether pieces of one window take turns from other readers: it works on several requests at
    /// once, readers wait for their turn all the same, and to continue costs as much as to begin.
    pub(crate) fn is_crowded(&self) -> bool {
        let alone = |distance| self.measure.expected(Bytes(distance), Bytes(1)).0;
        let (continuing, beginning) = (alone(0), alone(u64::MAX));
        let is_flat = beginning > 0 && continuing > beginning / 2;
        is_flat && self.profile().is_parallel() && self.deferred.len() > 0
    }

    /// When a request that is made now came: now, in terms of work, unless it was deferred before.
    pub(crate) fn came(&self) -> u64 {
        self.granted_came.unwrap_or(self.work)
    }

    /// A fetch goes out, now. Returns where its reader's account, which stood there, stands from
    /// then on, and its state for the completion.
    pub(crate) fn take(
        &mut self,
        now: Nanos,
        account: u64,
        position: u64,
        bytes: u64,
    ) -> (u64, Sent) {
        // Its first request continues none.
        let least = u64::from(self.work == 0);
        let distance = Bytes(position.abs_diff(self.last_end).max(least));
        let expected = self.measure.expected(distance, Bytes(bytes));
        // Requests behind a device that answers no more are reckoned apart: neither waits for the other.
        let is_apart = self.is_stalled(now);
        let ahead = if is_apart { 0 } else { self.ahead.0 };
        let ahead = Nanos(ahead.saturating_add(expected.0));
        if !is_apart {
            self.ahead = ahead;
        }
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        self.bytes_in_flight += bytes;
        let sample = Sample {
            sent: now,
            ended: now,
            distance,
            bytes: Bytes(bytes),
            in_flight: self.live(),
            left: self.live(),
            is_cut: false,
            is_full: false,
            ahead,
        };
        (
            self.account(account, position, bytes),
            Sent {
                sample,
                alone: expected,
                expected: if is_apart { Nanos(0) } else { expected },
                is_written_off: false,
                hangs: false,
            },
        )
    }

    /// A fetch ended, now; `is_whole` if it was carried out. Returns whether it came so late that others should not
    /// wait for its like. It tells nothing of the costs, unless all come so late: the server is slow.
    pub(crate) fn end(&mut self, now: Nanos, sent: &Sent, is_whole: bool) -> bool {
        let is_late = self.is_late(sent, now);
        let sample = Sample {
            ended: now,
            left: self.live() + u32::from(sent.is_written_off),
            ..sent.sample
        };
        self.in_flight -= 1;
        self.bytes_in_flight -= sample.bytes.0;
        if sent.is_written_off {
            self.hung -= 1;
            self.bytes_hung -= sample.bytes.0;
        } else {
            self.ahead = Nanos(self.ahead.0.saturating_sub(sent.expected.0));
        }
        self.late = if is_late {
            self.late.saturating_add(1)
        } else {
            0
        };
        if is_whole && (!is_late || self.late >= LATE_MAX) {
            self.measure.ended(&sample);
        } else {
            self.measure.lost(sample.in_flight);
        }
        self.ended = now;
        is_late
    }

    /// Whether a request of a server that ends now comes several times as late as it should.
    fn is_late(&self, sent: &Sent, now: Nanos) -> bool {
        let due = sent.alone.0.max(self.in_turn(sent.sample.ahead));
        let due = WAITED.max(Nanos(due.saturating_mul(LATE_TIMES)));
        self.profile().is_served() && now.since(sent.sample.sent) > due
    }

    /// Where a reader's account, which stood there, stands after this fetch.
    fn account(&mut self, account: u64, position: u64, bytes: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn requests_of_a_server_hold_as_much_memory_as_they_may_and_two_are_always_allowed() {
        let store = Profile::constant(Nanos(30_000_000), 80_000_000).unwrap();
        let store = store.with_servers(16).unwrap();
        for (memory, bytes, expected) in [
            (8 * MIB, MIB, 8),
            (8 * MIB, MIB / 2, 15),
            (8 * MIB, 4096, 64),
            (MIB / 2, MIB, 2),
            (0, 4096, 2),
        ] {
            let mut measure = Box::new(crate::plain::Given::default());
            measure.told(&store);
            let mut device = Device::new(measure);
            let mut sent = std::vec::Vec::new();
            while device.in_flight < device.limit_in(Bytes(memory), Bytes(MIB), Nanos(0)) {
                sent.push(device.take(Nanos(0), 0, 0, bytes).1);
            }
            assert_eq!(device.in_flight, expected, "{memory} bytes, {bytes} each");
            for sent in sent {
                device.end(Nanos(1), &sent, true);
            }
            assert_eq!(device.bytes_in_flight, 0);
        }
    }
}
