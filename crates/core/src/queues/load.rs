//! Load: the requests that a device has, and those of them that hang.
//!
//! Part of a [device](super::device). The time that a request should take is known when it goes out; from the sum of
//! those before it follows when it should come. One that takes far longer *hangs*, and counts no more against
//! the device's limit once it is written off. A server's request that comes several times as late as it should
//! is *late*: it says nothing about the server, unless all come so.
//!
//! Example: a disk has 3 requests of 10 ms each. The third should come after 30 ms; it hangs after a second.

use crate::measure::Sample;
use crate::units::{Bytes, Nanos};

/// A measurement, and a request of a server that should be done, are given at least so long: programs
/// rarely see pauses of 100 ms.
const WAITED: Nanos = Nanos(100_000_000);
/// A wait ends, too, once the device has completed nothing for this many times the expected
/// time of its requests: a disk's slow requests take about three times the mean.
pub(super) const WAITED_TIMES: u64 = 8;
/// A request hangs that takes longer than this, and longer than [`WAITED_TIMES`] the time that it and those
/// before it should take: a disk that reads a sector again and again, a server that is gone. Answers of
/// stores that work take a second in one of some thousand requests; readers of other files wait for less
/// than three.
const STALLED: Nanos = Nanos(1_000_000_000);
/// A request of a server is late if it takes so many times its expected time.
const LATE_TIMES: u64 = 4;
/// So many late requests in a row, and it is the server that is slow: its [costs](crate::measure) are learned
/// from them.
const LATE_MAX: u32 = 64;
/// Most hanging requests of a device that do not count: each may hold a thread, and 256 have some
/// mebibytes of stacks.
const HUNG_MAX: u32 = 256;
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
    pub(super) is_written_off: bool,
    /// Whether it may never end.
    is_lost: bool,
    /// Whether it is known to hang.
    pub(crate) hangs: bool,
}

/// See the [module](self). Times that a device's requests take one after the other are divided by the
/// number of its `servers`.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Sum of the expected times alone of the requests in flight.
    pub(super) ahead: Nanos,
    /// Fetches handed to the driver and not completed, and their bytes.
    pub(super) in_flight: u32,
    pub(super) bytes: u64,
    /// Those of them that were written off, the bytes of these, and of those of these that may never end.
    pub(super) hung: u32,
    pub(super) bytes_hung: u64,
    pub(super) bytes_lost: u64,
    /// When it was looked for such requests.
    looked: Nanos,
    /// How many requests in a row came late.
    late: u32,
    /// When it last ended a fetch.
    pub(super) ended: Nanos,
    /// Since when it has had fetches all the time.
    busy_since: Nanos,
}

impl Load {
    /// Requests in flight that count.
    pub(super) fn live(&self) -> u32 {
        self.in_flight - self.hung
    }

    /// Whether the device seems to answer no more. To hold requests back then keeps those waiting that it
    /// might answer: of other files of a server, of other members below one number.
    pub(super) fn is_stalled(&self, now: Nanos, servers: u64) -> bool {
        self.is_quiet(now, patience(self.ahead, servers))
    }

    /// Whether a measurement should wait for the device no longer.
    pub(super) fn is_silent(&self, now: Nanos) -> bool {
        let patience = WAITED.max(Nanos(self.ahead.0.saturating_mul(WAITED_TIMES)));
        self.is_quiet(now, patience)
    }

    fn is_quiet(&self, now: Nanos, patience: Nanos) -> bool {
        let quiet = now.since(self.ended.max(self.busy_since));
        self.in_flight > 0 && quiet > patience
    }

    /// Whether a request hangs.
    pub(super) fn hangs(&self, sent: &Sent, now: Nanos, servers: u64) -> bool {
        now.since(sent.sample.sent) > patience(sent.sample.ahead, servers)
    }

    /// Whether a request that ends now comes several times as late as it should.
    pub(super) fn is_late(&self, sent: &Sent, now: Nanos, servers: u64) -> bool {
        let due = sent.alone.0.max(sent.sample.ahead.0 / servers);
        let due = WAITED.max(Nanos(due.saturating_mul(LATE_TIMES)));
        now.since(sent.sample.sent) > due
    }

    /// Whether more requests that hang can be passed over.
    pub(super) fn has_hung_to_write_off(&self) -> bool {
        // Of those written off because they will be late, some may hang.
        self.in_flight > 0 && (self.hung < HUNG_MAX || self.bytes_lost < self.bytes_hung)
    }

    /// Whether it is time to look for requests that hang.
    pub(super) fn looks(&mut self, now: Nanos) -> bool {
        let is_due = now.since(self.looked) >= LOOK;
        if is_due {
            self.looked = now;
        }
        is_due
    }

    /// A request that hangs or will be late no longer counts; `is_lost` if it may never end.
    pub(super) fn write_off(&mut self, sent: &mut Sent, is_lost: bool) {
        if self.hung < HUNG_MAX && !sent.is_written_off {
            sent.is_written_off = true;
            self.hung += 1;
            self.bytes_hung += sent.sample.bytes.0;
            self.ahead = Nanos(self.ahead.0.saturating_sub(sent.expected.0));
        }
        if is_lost && sent.is_written_off && !sent.is_lost {
            sent.is_lost = true;
            self.bytes_lost += sent.sample.bytes.0;
        }
    }

    /// A fetch of so many bytes goes out, now, so far from the end of the one before it; it should take so long
    /// alone.
    pub(super) fn begin(
        &mut self,
        now: Nanos,
        expected: Nanos,
        distance: Bytes,
        bytes: Bytes,
        servers: u64,
    ) -> Sent {
        // Requests behind a device that answers no more are reckoned apart: neither waits for the other.
        let is_apart = self.is_stalled(now, servers);
        let before = if is_apart { 0 } else { self.ahead.0 };
        let ahead = Nanos(before.saturating_add(expected.0));
        if !is_apart {
            self.ahead = ahead;
        }
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        self.bytes += bytes.0;
        let sample = Sample {
            sent: now,
            ended: now,
            distance,
            bytes,
            in_flight: self.live(),
            left: self.live(),
            is_full: false,
            ahead,
            is_late: false,
        };
        Sent {
            sample,
            alone: expected,
            expected: if is_apart { Nanos(0) } else { expected },
            is_written_off: false,
            is_lost: false,
            hangs: false,
        }
    }

    /// A fetch ended, now.
    pub(super) fn end(&mut self, now: Nanos, sent: &Sent, is_late: bool) -> Sample {
        let sample = Sample {
            ended: now,
            left: self.live() + u32::from(sent.is_written_off),
            ..sent.sample
        };
        self.in_flight -= 1;
        self.bytes -= sample.bytes.0;
        if sent.is_lost {
            self.bytes_lost -= sample.bytes.0;
        }
        if sent.is_written_off {
            self.hung -= 1;
            self.bytes_hung -= sample.bytes.0;
        } else {
            self.ahead = Nanos(self.ahead.0.saturating_sub(sent.expected.0));
        }
        self.late = match is_late {
            true => self.late.saturating_add(1),
            false => 0,
        };
        self.ended = now;
        Sample {
            is_late: is_late && self.late < LATE_MAX,
            ..sample
        }
    }
}

/// How long requests with this sum of expected times may take before they count as hanging.
fn patience(ahead: Nanos, servers: u64) -> Nanos {
    STALLED.max(Nanos((ahead.0 / servers).saturating_mul(WAITED_TIMES)))
}
