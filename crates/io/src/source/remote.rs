//! Objects of servers: the part that all clients of theirs share.
//!
//! Problem: a request to a server can fail and pass the next time, can take for ever, and its cost is not
//! known before the first one.
//!
//! Mechanism: [`Limits`] bound it; [`Pauses`] are the times between attempts at one range, up to a deadline;
//! [`profile`] is the cost that is assumed until it is measured.
//!
//! ```text
//! attempt   503   pause 100 ms   attempt   reset   pause 200 ms   attempt   206
//! ```

use std::time::{Duration, Instant};

use forerun_core::{Nanos, Profile};

/// The schemes of addresses.
pub const SCHEMES: [&str; 5] = ["s3", "gs", "az", "http", "https"];

/// Requests that a server is taken to work on at once until it was measured: four times as many may
/// go out, all that [`Limits::requests`] permits. Begun with one, a store of 100 ms was taken for one
/// disk, and 16 readers stayed at two requests at a time; a server that is one disk is found out.
pub const SERVERS: u32 = 16;

/// The first pause between two attempts; each is twice the one before, up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
/// See [`PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long requests may take, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// For a connection to be made.
    pub connect: Duration,
    /// For each piece of an answer to arrive.
    pub silence: Duration,
    /// For a range, all attempts together.
    pub deadline: Duration,
    /// Requests to one server at once.
    pub requests: u32,
}

impl Default for Limits {
    /// 10 s to connect, 30 s of silence and 2 min for a range; 64 requests: at 30 ms to the first byte and
    /// 80 MB/s a connection as much as 5 GB/s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            deadline: Duration::from_secs(120),
            requests: 64,
        }
    }
}

/// Whether a text begins like an address, and is no path.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| SCHEMES.contains(&scheme))
}

/// The cost of a server until it is measured: 30 ms to the first byte and 80 MB/s, an object store of today seen
/// over one connection; and so many of these. `None` if there are none, or too many.
#[must_use]
pub fn profile(servers: u32) -> Option<Profile> {
    let alone = Profile::constant(Nanos(30_000_000), 80_000_000);
    alone.and_then(|profile| profile.with_servers(servers)).ok()
}

/// The number of a server as a device: the same for its objects, above those of devices.
#[must_use]
pub fn number(server: &str) -> u64 {
    // FNV-1a (Fowler, Noll and Vo): two servers with one number would share a queue, and nothing else.
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = server.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    // Below the numbers of devices that are made up.
    hash >> 2 | 1 << 40
}

/// The times between attempts at one range.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    until: Instant,
    pause: Duration,
}

impl Pauses {
    /// From now on, for as long as these limits allow.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            until: Instant::now() + limits.deadline,
            pause: PAUSE,
        }
    }

    /// When the last attempt must have ended.
    #[must_use]
    pub fn until(&self) -> Instant {
        self.until
    }

    /// The time until then.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Something came: the next pause is a first one.
    pub fn begin_anew(&mut self) {
        self.pause = PAUSE;
    }

    /// The next one, or one as long as the server asks for; none if the attempt after it would come after the
    /// deadline.
    pub fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let pause = asked.unwrap_or(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        (Instant::now() + pause <= self.until).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let limits = Limits {
            deadline: Duration::from_secs(3600),
            ..Limits::default()
        };
        let mut pauses = Pauses::new(&limits);
        let mut next = |asked: Option<u64>| {
            let pause = pauses.next(asked.map(Duration::from_millis));
            pause.map(|pause| pause.as_millis())
        };
        let first = [100, 200, 400, 800, 1600, 3200, 5000, 5000].map(Some);
        assert_eq!([(); 8].map(|()| next(None)), first);
        assert_eq!(next(Some(7000)), Some(7000));
        assert_eq!(next(Some(3_700_000)), None, "after the deadline");
        pauses.begin_anew();
        assert_eq!(pauses.next(None), Some(PAUSE));
    }

    #[test]
    fn an_address_is_told_from_a_path() {
        for (text, expected) in [("s3://b", true), ("https://h/a", true), ("s3:/b", false)] {
            assert_eq!(is_address(text), expected, "{text}");
        }
        assert!(!is_address("a/b") && !is_address("ftp://h/a") && !is_address(""));
    }
}
