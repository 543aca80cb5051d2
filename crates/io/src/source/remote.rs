//! Objects of servers: the part that all clients of theirs share.
//!
//! Problem: a request to a server can fail and pass the next time, can take for ever, and its cost is not
//! known before the first one.
//!
//! Mechanism: [`Limits`] bound it; [`Pauses`] are the times between attempts at one range, up to a deadline;
//! [`retry_after`] is the pause that a server asks for; [`profile`] is the cost that is assumed until it is measured.
//!
//! ```text
//! attempt   503   pause 100 ms   attempt   reset   pause 200 ms   attempt   206
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use forerun_core::{Bytes, Nanos, Profile};

use crate::arena::Target;

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

/// The longest deadline: a clock has no time so much later as a longer one could ask for.
const DEADLINE_MAX: Duration = Duration::from_secs(365 * 86_400);

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

impl Limits {
    /// The default with fewer requests where a memory is small: one for each 1.5 MiB, whose buffers take a sixth of it,
    /// and from 8 to 64.
    #[must_use]
    pub fn within(memory: Bytes) -> Self {
        const EACH: u64 = 3 << 19;
        let default = Self::default();
        let requests = (memory.0 / EACH).clamp(8, default.requests.into()) as u32;
        Self {
            requests,
            ..default
        }
    }

    /// Memory of as many connections, most. The buffer of each grows to 408 KiB where bytes come faster than they are
    /// taken; of 32 at once 260 KiB each were measured.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        const CONNECTION: u64 = 256 << 10;
        Bytes(u64::from(self.requests) * CONNECTION)
    }
}

/// Whether a text begins like an address, and is no path.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| SCHEMES.contains(&scheme))
}

/// A text with `***` in place of the passwords of addresses in it.
///
/// ```
/// let address = forerun_io::source::remote::without_passwords("http://me:secret@host/a");
/// assert_eq!(address, "http://me:***@host/a");
/// ```
#[must_use]
pub fn without_passwords(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', '?', '#', '"', ' ']).unwrap_or(part.len());
        let (server, rest) = part.split_at(end);
        let password = server
            .rsplit_once('@')
            .map(|(user, host)| (user.split_once(':'), host));
        shown += "://";
        match password {
            Some((Some((user, _)), host)) => shown.extend([user, ":***@", host]),
            _ => shown += server,
        }
        shown += rest;
    }
    shown
}

/// Text from outside as it may stand in a message: [without passwords](without_passwords) and control characters, and
/// no longer than a few lines.
#[must_use]
pub fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 1000;
    // Marks of the direction of text are no control characters, and turn a line round.
    let turns = |c| matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let text = without_passwords(text);
    let mut chars = text.chars();
    let clean = |c: char| if c.is_control() || turns(c) { ' ' } else { c };
    let mut shown: String = chars.by_ref().take(CHARS_MAX).map(clean).collect();
    if chars.next().is_some() {
        shown += "..";
    }
    shown
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
            until: Instant::now() + limits.deadline.min(DEADLINE_MAX),
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

    /// The next one, or a longer one that the server asks for; none if the attempt after it would come after the
    /// deadline.
    pub fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let pause = asked.unwrap_or_default().max(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        (pause < self.left()).then_some(pause)
    }
}

/// The pause that a `Retry-After` asks for: seconds, or a date such as `Sun, 06 Nov 1994 08:49:37 GMT`. None if the
/// text is neither.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a server names a time of the calendar"
)]
pub fn retry_after(text: &str) -> Option<Duration> {
    retry_after_at(text, SystemTime::now())
}

fn retry_after_at(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than can be counted are after every deadline.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds_of_date(text)?))?;
    Some(at.duration_since(now).unwrap_or_default())
}

/// Seconds of a date of HTTP since 1970 (RFC 9110, section 5.6.7, the form that servers must send).
fn seconds_of_date(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, date) = text.split_once(", ")?;
    let parts: Vec<&str> = date.split(' ').collect();
    let [day, month, year, time, "GMT"] = parts[..] else {
        return None;
    };
    let number = |text: &str, digits: usize, most: u64| {
        let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = is_number.then(|| text.parse().ok()).flatten()?;
        (number <= most).then_some(number)
    };
    let [hour, minute, second] = time.split(':').collect::<Vec<_>>()[..] else {
        return None;
    };
    let time = number(hour, 2, 23)? * 3600 + number(minute, 2, 59)? * 60 + number(second, 2, 60)?;
    let month = MONTHS
        .find(month)
        .filter(|at| at % 3 == 0 && month.len() == 3)? as u64
        / 3;
    let (day, year) = (number(day, 2, 31)?.checked_sub(1)?, number(year, 4, 9999)?);
    // Days from 1 March of year 0 on, so that a leap day is the last of its year (Hinnant, days_from_civil).
    let (year, month) = match month {
        0 | 1 => (year.checked_sub(1)?, month + 10),
        _ => (year, month - 2),
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    Some(days.checked_sub(719_468)? * 86_400 + time)
}

/// Bytes that came with the answer to an object's opening: a small object, or the footer of a large one, costs no
/// second round trip. They are held until each was read once, by the engine, which then has them in its memory.
#[derive(Debug, Default)]
pub struct Held<B>(Mutex<Option<Part<B>>>);

#[derive(Debug)]
struct Part<B> {
    offset: u64,
    bytes: B,
    /// How many were not read yet.
    left: usize,
}

impl<B: AsRef<[u8]>> Held<B> {
    /// Bytes from an offset of the object on.
    pub fn new(offset: u64, bytes: B) -> Self {
        let left = bytes.as_ref().len();
        let part = Part {
            offset,
            bytes,
            left,
        };
        Self(Mutex::new((left > 0).then_some(part)))
    }

    fn part(&self) -> MutexGuard<'_, Option<Part<B>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the bytes.
    pub fn clear(&self) {
        *self.part() = None;
    }

    /// Fills the front of `from..to` of a target that begins at an offset of the object; how far it came.
    pub fn fill(&self, target: &mut Target, offset: u64, from: usize, to: usize) -> usize {
        let mut held = self.part();
        let Some(part) = &mut *held else {
            return from;
        };
        let skip = (offset + from as u64).checked_sub(part.offset);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        let bytes = skip.and_then(|skip| part.bytes.as_ref().get(skip..));
        let Some(bytes) = bytes.filter(|_| from < to) else {
            return from;
        };
        let end = target.copy(from, to, bytes);
        part.left = part.left.saturating_sub(end - from);
        if part.left == 0 {
            *held = None;
        }
        end
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
        assert_eq!(next(Some(0)), Some(5000), "no shorter than without one");
        assert_eq!(next(Some(3_700_000)), None, "after the deadline");
        pauses.begin_anew();
        assert_eq!(pauses.next(Some(Duration::ZERO)), Some(PAUSE));
    }

    #[test]
    fn no_pause_or_deadline_is_too_long() {
        for deadline in [Duration::ZERO, Duration::from_secs(9), Duration::MAX] {
            let mut pauses = Pauses::new(&Limits {
                deadline,
                ..Limits::default()
            });
            for text in [
                "9223372036854775807",
                "18446744073709551615",
                "9".repeat(99).as_str(),
            ] {
                let asked = retry_after(text);
                assert!(asked > Some(Duration::from_secs(1 << 62)), "{text}");
                assert_eq!(pauses.next(asked), None, "{text}");
            }
            assert_eq!(pauses.next(Some(Duration::MAX)), None);
        }
    }

    #[test]
    fn a_retry_after_is_seconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let asked = |text| retry_after_at(text, now).map(|pause| pause.as_secs());
        for (text, expected) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sun, 06 Nov 1994 00:00:00 GMT", Some(0)),
            (
                "Tue, 29 Feb 2000 00:00:00 GMT",
                Some(951_782_400 - 784_111_777),
            ),
            (
                "Sat, 01 Jan 2000 00:00:00 GMT",
                Some(946_684_800 - 784_111_777),
            ),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            (
                "Fri, 31 Dec 9999 23:59:59 GMT",
                Some(253_402_300_799 - 784_111_777),
            ),
        ] {
            assert_eq!(asked(text), expected, "{text}");
        }
        for text in [
            "",
            "-1",
            "1.5",
            "soon",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nvo 1994 08:49:37 GMT",
            "Sun, 06 anF 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Fri, 31 Dec 0000 00:00:00 GMT",
            "Fri, 31 Dec 99999 00:00:00 GMT",
        ] {
            assert_eq!(asked(text), None, "{text}");
        }
    }

    #[test]
    fn text_from_outside_has_no_controls_and_no_passwords() {
        for (text, expected) in [
            ("a\r\nb\t\u{7f}\u{9b}\u{202e}c", "a  b   \u{20}c"),
            ("s3://b/k", "s3://b/k"),
            ("http://u:p@h:1/a@b:c", "http://u:***@h:1/a@b:c"),
            (
                "x http://u:p:q@h y https://v:w@h",
                "x http://u:***@h y https://v:***@h",
            ),
            ("http://u@h/", "http://u@h/"),
            ("http://u:p@w@h", "http://u:***@h"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
        assert_eq!(shown(&"\u{fc}".repeat(1 << 20)).chars().count(), 1002);
    }

    #[test]
    fn an_address_is_told_from_a_path() {
        for (text, expected) in [("s3://b", true), ("https://h/a", true), ("s3:/b", false)] {
            assert_eq!(is_address(text), expected, "{text}");
        }
        assert!(!is_address("a/b") && !is_address("ftp://h/a") && !is_address(""));
    }
}
