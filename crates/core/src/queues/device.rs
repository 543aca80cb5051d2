//! A device: its costs, the wants that wait for it, the requests it has, and where it stands.
//!
//! Kept by the [queues](super), one a device; asked by the depth stage.
//!
//! ```text
//! measure   costs of its requests, learned from those that complete
//! queue     wants, with memory or without
//! load      requests that it has, and those of them that hang
//! arm       where it stands, its slice, and its work for each reader
//! ```

use alloc::boxed::Box;

use super::arm::Arm;
use super::load::{Load, Sent, WAITED_TIMES};
use super::queue::{Class, Queue, Want};
use crate::measure::Measure;
use crate::profile::Profile;
use crate::units::{Bytes, Nanos, scaled};

/// Requests of a server should take no longer: where it has eight slots and a hundred programs wait, each has
/// its turn within three seconds. From 4 MB/s a request on the longest there are take less.
const SHORT: Nanos = Nanos(250_000_000);
/// The rate of a server is asked of so many bytes.
const UNIT: u64 = 1 << 20;
/// For each request of a server that hangs so many others are tried at once: where it has eight, a hundred objects
/// that hang are known after three seconds.
const TRIED: u32 = 3;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Device {
    pub(super) measure: Box<dyn Measure>,
    pub(super) queue: Queue,
    pub(super) load: Load,
    pub(super) arm: Arm,
    /// While a want that was taken out is being decided: its fetch keeps its place in line.
    pub(super) deciding: Option<Want>,
    /// The host says that its queue for the device is congested.
    pub(super) is_congested: bool,
}

impl Device {
    /// One of which nothing is known.
    pub(super) fn new(measure: Box<dyn Measure>) -> Self {
        Self {
            measure,
            queue: Queue::default(),
            load: Load::default(),
            arm: Arm::default(),
            deciding: None,
            is_congested: false,
        }
    }

    /// Its costs, as far as they are known.
    pub(crate) fn profile(&self) -> &Profile {
        self.measure.profile()
    }

    pub(crate) fn measure(&self) -> &dyn Measure {
        self.measure.as_ref()
    }

    /// Whether the host's queue for it is congested.
    pub(crate) fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// Fetches handed to the driver and not completed.
    pub(crate) fn in_flight(&self) -> u32 {
        self.load.in_flight
    }

    /// Wants that wait for it, with memory or without.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Moving average of the distances between requests that did not continue each other.
    pub(crate) fn distance(&self) -> Bytes {
        self.arm.distance
    }

    /// Memory of the requests in flight that hang.
    pub(crate) fn bytes_lost(&self) -> u64 {
        self.load.bytes_lost
    }

    /// When it last ended a fetch.
    pub(crate) fn ended(&self) -> Nanos {
        self.load.ended
    }

    /// When a want that comes now came: now, in terms of [work](crate::dispatch), unless it is the fetch of one
    /// that waited.
    pub(crate) fn came(&self) -> u64 {
        self.deciding.map_or(self.arm.work, |want| want.came)
    }

    /// The class of a demand read whose fetch is decided now.
    pub(crate) fn class(&self) -> Class {
        self.deciding.map_or(Class::Program, |want| want.class)
    }

    /// Its work so far, in bytes: see [`dispatch`](crate::dispatch).
    pub(crate) fn work(&self) -> u64 {
        self.arm.work
    }

    /// How many of its requests it works on at a time.
    fn servers(&self) -> u64 {
        match self.profile().is_parallel() {
            true => self.profile().servers().into(),
            false => 1,
        }
    }

    /// Whether it seems to answer no more.
    pub(super) fn is_stalled(&self, now: Nanos) -> bool {
        self.load.is_stalled(now, self.servers())
    }

    /// Whether requests that hang keep others from going out; `starve` if reads wait for memory.
    pub(super) fn is_held_up(&self, starve: bool) -> bool {
        (starve || self.queue.len() > 0) && self.load.has_hung_to_write_off()
    }

    /// Whether to look for requests that hang.
    pub(super) fn looks(&mut self, now: Nanos, starve: bool) -> bool {
        self.is_held_up(starve) && self.load.looks(now)
    }

    /// Whether a request hangs.
    pub(super) fn hangs(&self, sent: &Sent, now: Nanos) -> bool {
        self.load.hangs(sent, now, self.servers())
    }

    /// Most bytes of a request. One of a server takes a quarter of a second at most, or a few times the fixed cost of
    /// a request, because others wait for its end.
    pub(crate) fn longest(&self) -> u64 {
        if !self.profile().kind().may_never_answer() {
            return u64::MAX;
        }
        let time = |bytes| self.measure.expected(Bytes(u64::MAX), Bytes(bytes)).0;
        let (fixed, unit) = (time(1), time(UNIT));
        let bound = SHORT.0.max(fixed.saturating_mul(WAITED_TIMES));
        match unit.saturating_sub(fixed) {
            0 => u64::MAX,
            transfer => scaled(bound.saturating_sub(fixed), UNIT, transfer),
        }
    }

    /// Whether a number of requests is known that it works on at a time.
    pub(crate) fn has_limit(&self) -> bool {
        self.measure.limit() < u32::MAX
    }

    /// Most requests it should have now beside those that hang.
    pub(super) fn limit(&self, now: Nanos) -> u32 {
        let connections = self.profile().most();
        let most = match self.is_stalled(now) {
            true => connections,
            false => self.measure.limit().min(connections),
        };
        match self.profile().kind().may_never_answer() {
            true => most.saturating_add(self.load.hung * TRIED),
            false => most,
        }
    }

    /// The same while those that do not hang may hold so many bytes of memory, and one more may be as long
    /// as that. Two are no question of memory: a device with one has nothing to go on with.
    pub(super) fn limit_in(&self, memory: Bytes, longest: Bytes, now: Nanos) -> u32 {
        let live = self.load.live();
        let next = self.bytes_live().saturating_add(longest.0);
        match live >= 2 && next > memory.0 {
            true => live,
            false => self.limit(now),
        }
    }

    /// Whether it works on requests, or programs wait for it.
    pub(super) fn has_work(&self) -> bool {
        self.load.live() > 0 || self.queue.is_wanted()
    }

    /// Memory of the requests in flight that do not hang.
    pub(super) fn bytes_live(&self) -> u64 {
        self.load.bytes - self.load.bytes_hung
    }

    /// Bytes it could transfer during one switch.
    pub(crate) fn depth(&self) -> Bytes {
        let here = Bytes(self.arm.head.position);
        self.profile().competitive_depth(self.arm.distance, here)
    }

    /// Bytes it could transfer in a second.
    pub(super) fn second(&self) -> Bytes {
        let rate = self.profile().rate(Bytes(self.arm.head.position));
        Bytes(rate.saturating_mul(self.servers()))
    }

    /// When a want is due, in terms of work: single reads before all others, while they may, and those that are of
    /// no program behind them.
    pub(super) fn due(&self, want: &Want) -> u64 {
        match want.class {
            Class::Single if self.arm.has_express() => 0,
            _ if self.queue.is_due(want) => self.arm.due(want.owner, want.came),
            _ => u64::MAX,
        }
    }

    /// Time for its requests in flight and for those of programs in the queue, and for the switch to this
    /// position behind them.
    pub(crate) fn ready(&self, position: u64) -> Nanos {
        let mut end = self.arm.head.position;
        let mut time = self.load.ahead.0;
        let waiting = self.queue.of_programs();
        let waiting = waiting.map(|want| (want.position, want.bytes));
        for (at, bytes) in waiting.chain([(position, Bytes(0))]) {
            let distance = Bytes(at.abs_diff(end));
            time = time.saturating_add(self.measure.expected(distance, bytes).0);
            end = at.saturating_add(bytes.0);
        }
        Nanos(time)
    }

    /// Whether pieces of one window take turns from other readers: it works on several requests at
    /// once, readers wait for their turn all the same, and to continue costs as much as to begin.
    pub(crate) fn is_crowded(&self) -> bool {
        let alone = |distance| self.measure.expected(Bytes(distance), Bytes(1)).0;
        let (continuing, beginning) = (alone(0), alone(u64::MAX));
        let is_flat = beginning > 0 && continuing > beginning / 2;
        is_flat && self.profile().is_parallel() && self.queue.has_deferred()
    }

    /// A fetch goes out, now. Returns its state for the completion.
    pub(super) fn begin(&mut self, now: Nanos, want: &Want) -> Sent {
        let distance = self.arm.distance_to(want.position);
        let expected = self.measure.expected(distance, want.bytes);
        let servers = self.servers();
        let sent = self
            .load
            .begin(now, expected, distance, want.bytes, servers);
        let depth = self.depth();
        self.arm.move_to(
            want.position,
            want.bytes.0,
            want.owner,
            depth,
            want.class == Class::Single,
        );
        sent
    }

    /// A fetch from `position` on ended, now; `is_whole` if it was carried out. Returns whether it came so late that others should not
    /// wait for its like. It tells nothing of the costs, unless all come so late: the server is slow.
    pub(super) fn end(&mut self, now: Nanos, position: u64, sent: &Sent, is_whole: bool) -> bool {
        let may_be_late = self.profile().kind().may_never_answer();
        let is_late = may_be_late && self.load.is_late(sent, now, self.servers());
        let sample = self.load.end(now, sent, is_late);
        if is_whole {
            self.arm.serve(position, sample.bytes.0);
            self.measure.ended(&sample);
        } else {
            self.measure.lost(sample.in_flight);
        }
        is_late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::queue::Wanted;
    use crate::units::RequestId;

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
            let want = Want {
                fetch: Wanted::Request(RequestId(0)),
                class: Class::Program,
                owner: None,
                came: 0,
                position: 0,
                bytes: Bytes(bytes),
            };
            let mut sent = std::vec::Vec::new();
            while device.in_flight() < device.limit_in(Bytes(memory), Bytes(MIB), Nanos(0)) {
                sent.push(device.begin(Nanos(0), &want));
            }
            assert_eq!(device.in_flight(), expected, "{memory} bytes, {bytes} each");
            for sent in sent {
                device.end(Nanos(1), 0, &sent, true);
            }
            assert_eq!(device.load.bytes, 0);
        }
    }
}
