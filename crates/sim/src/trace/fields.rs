//! Words and numbers of a trace's lines, without copies and without floats.
//!
//! Used by the text formats. Lines are bytes: a trace is not promised to be UTF-8, and the check
//! would cost as much as the parsing. A decimal number becomes a whole number of nanoseconds;
//! digits below a nanosecond are dropped.

use std::collections::BTreeMap;

use super::error::Cause;
use super::record::{Op, Record};

/// Bytes of a sector in every format that counts in sectors.
pub(super) const SECTOR: u64 = 512;

/// The words of a line, which has exactly `N`.
pub(super) fn words<'a, const N: usize>(
    line: &'a [u8],
    accepted: &'static str,
) -> Result<[&'a [u8]; N], Cause> {
    exactly(split(line), line, accepted)
}

/// The cells of a line with commas, which has exactly `N`.
pub(super) fn cells<'a, const N: usize>(
    line: &'a [u8],
    accepted: &'static str,
) -> Result<[&'a [u8]; N], Cause> {
    let cells = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    exactly(cells, line, accepted)
}

/// The words of a line.
pub(super) fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

fn exactly<'a, const N: usize>(
    mut parts: impl Iterator<Item = &'a [u8]>,
    line: &[u8],
    accepted: &'static str,
) -> Result<[&'a [u8]; N], Cause> {
    let mut found = [&[][..]; N];
    for place in &mut found {
        *place = parts.next().ok_or_else(|| Cause::form(line, accepted))?;
    }
    match parts.next() {
        None => Ok(found),
        Some(_) => Err(Cause::form(line, accepted)),
    }
}

/// The value of a word of digits; `None` if it is not one, or 2^64 or more.
pub(super) fn digits(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A whole number.
pub(super) fn whole(field: &'static str, word: &[u8]) -> Result<u64, Cause> {
    digits(word).ok_or_else(|| Cause::field(field, word, "a whole number below 2^64"))
}

/// A whole number that fits into 32 bits.
pub(super) fn small(field: &'static str, word: &[u8]) -> Result<u32, Cause> {
    digits(word)
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| Cause::field(field, word, "a whole number below 2^32"))
}

/// A number with or without decimals, in units of `unit_ns`, as nanoseconds.
pub(super) fn time(field: &'static str, word: &[u8], unit_ns: u64) -> Result<u64, Cause> {
    const SECOND: u64 = 1_000_000_000;
    // A count of milliseconds since 1970 is as many seconds as no clock holds.
    let accepted = match unit_ns {
        SECOND => {
            "a decimal number of seconds below 2^64 ns (584 years); of a csv other units are columns named time_ms, time_us or time_ns, and time-unit of --columns"
        }
        _ => "a decimal number below 2^64 ns (584 years)",
    };
    decimal(word, unit_ns).ok_or_else(|| Cause::field(field, word, accepted))
}

/// A time in units, a power of ten, with all its decimals.
pub(super) fn in_units(nanos: u64, unit_ns: u64) -> String {
    let decimals = unit_ns.ilog10() as usize;
    let (whole, part) = (nanos / unit_ns, nanos % unit_ns);
    format!("{whole}.{part:0decimals$}")
}

fn decimal(word: &[u8], unit_ns: u64) -> Option<u64> {
    let point = word.iter().position(|byte| *byte == b'.');
    let (before, after) = match point {
        None => (word, None),
        Some(at) => (&word[..at], Some(&word[at + 1..])),
    };
    let mut nanos = digits(before)?.checked_mul(unit_ns)?;
    let mut worth = unit_ns;
    for byte in after.unwrap_or_default() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // A unit is a power of ten, so nothing is lost above one nanosecond.
        worth /= 10;
        nanos = nanos.checked_add(u64::from(digit) * worth)?;
    }
    Some(nanos)
}

/// The range of sectors and bytes.
pub(super) const SECTORS: &str =
    "sectors of 512 bytes that end below byte 2^64, at most 2^32 bytes of them";

/// A request for a given number of bytes from a sector on, if they lie in reach.
pub(super) fn from_sector(first: u64, bytes: u64) -> Option<Record> {
    Record::range(first.checked_mul(SECTOR)?, u32::try_from(bytes).ok()?)
}

/// A request for a range of sectors.
pub(super) fn sectors(first: &[u8], count: &[u8]) -> Result<Record, Cause> {
    let (at, sectors) = (whole("first sector", first)?, whole("sectors", count)?);
    let bytes = sectors.checked_mul(SECTOR);
    bytes
        .and_then(|bytes| from_sector(at, bytes))
        .ok_or_else(|| Cause::field("range", &[first, count].join(&b' '), SECTORS))
}

/// A request for a range of bytes.
pub(super) fn range(offset: &[u8], bytes: &[u8]) -> Result<Record, Cause> {
    Record::range(whole("offset", offset)?, small("bytes", bytes)?)
        .ok_or_else(|| Cause::field("range", offset, "bytes that end below 2^64"))
}

/// Read or write, by one of the given words in any case.
pub(super) fn op(word: &[u8], read: &str, write: &'static str) -> Option<Op> {
    if word.eq_ignore_ascii_case(read.as_bytes()) {
        Some(Op::Read)
    } else if word.eq_ignore_ascii_case(write.as_bytes()) {
        Some(Op::Write)
    } else {
        None
    }
}

/// Numbers for names, in the order in which they are first seen.
#[derive(Debug)]
pub(super) struct Names {
    numbers: BTreeMap<Box<[u8]>, u32>,
    max: usize,
}

impl Names {
    pub(super) fn new(max: usize) -> Self {
        Self {
            numbers: BTreeMap::new(),
            max,
        }
    }

    pub(super) fn number(&mut self, name: &[u8]) -> Result<u32, Cause> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let next = self.numbers.len();
        match u32::try_from(next) {
            Ok(number) if next < self.max => {
                self.numbers.insert(name.into(), number);
                Ok(number)
            }
            _ => Err(Cause::Names { max: self.max }),
        }
    }
}

/// Blocks of a file by number or by name. The first one decides for all: where it is a number all
/// must be, so that a typing error is found; where it is a name every one is, and they are
/// numbered in the order of first use.
#[derive(Debug)]
pub(super) struct Ids {
    names: Option<Names>,
    is_decided: bool,
    /// As messages name it.
    field: &'static str,
    /// The most names.
    max: usize,
}

impl Default for Ids {
    fn default() -> Self {
        Self::new("block", Self::MAX)
    }
}

impl Ids {
    pub(super) fn new(field: &'static str, max: usize) -> Self {
        Self {
            names: None,
            is_decided: false,
            field,
            max,
        }
    }

    /// Whether blocks have names.
    pub(super) fn are_names(&self) -> bool {
        self.names.is_some()
    }

    /// 2^24 names of 40 bytes are 1.5 GiB: more is better numbered.
    const MAX: usize = 1 << 24;

    pub(super) fn number(&mut self, word: &[u8]) -> Result<u64, Cause> {
        let value = digits(word);
        // A number that is too large is no name: as one, it would lose its place among the others.
        let is_too_large =
            value.is_none() && !word.is_empty() && word.iter().all(u8::is_ascii_digit);
        if is_too_large && (!self.is_decided || self.names.is_none()) {
            return Err(Cause::field(
                self.field,
                word,
                "a number below 2^64, or a name",
            ));
        }
        if !self.is_decided {
            self.is_decided = true;
            self.names = value.is_none().then(|| Names::new(self.max));
        }
        let Some(names) = &mut self.names else {
            let accepted = "a number below 2^64, as the first one was (or names throughout)";
            return value.ok_or_else(|| Cause::field(self.field, word, accepted));
        };
        let strange = |byte: &u8| *byte == b',' || byte.is_ascii_control();
        if word.is_empty() || word.iter().any(strange) {
            let accepted = "a name without comma and control characters";
            return Err(Cause::field(self.field, word, accepted));
        }
        names.number(word).map(u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_read() {
        for unit in [1_000, 1_000_000, 1_000_000_000] {
            for nanos in [0, 1, 999, 60_500_000, u64::MAX] {
                let text = in_units(nanos, unit);
                assert_eq!(decimal(text.as_bytes(), unit), Some(nanos), "{text}");
            }
        }
    }

    #[test]
    fn decimals_become_nanoseconds_exactly() {
        let ms = |word: &str| decimal(word.as_bytes(), 1_000_000);
        assert_eq!(ms("60.5"), Some(60_500_000));
        assert_eq!(ms("0.0000019"), Some(1));
        assert_eq!(ms("7."), Some(7_000_000));
        assert_eq!(ms("18446744073709.551615"), Some(u64::MAX));
        for wrong in ["", ".", ".5", "1e3", "-1", "1.2.3", "18446744073709.551616"] {
            assert_eq!(ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_line_has_the_fields_of_its_format_and_no_more() {
        assert_eq!(words::<2>(b" a\t b ", "").unwrap(), [b"a", b"b"]);
        assert!(words::<2>(b"a", "").is_err());
        assert!(words::<2>(b"a b c", "").is_err());
        assert_eq!(cells::<3>(b"a, ,c", "").unwrap(), [&b"a"[..], b"", b"c"]);
    }

    #[test]
    fn sectors_past_the_end_of_numbers_are_refused() {
        assert!(sectors(b"36028797018963967", b"0").is_ok());
        assert!(sectors(b"36028797018963968", b"0").is_err());
        assert!(sectors(b"36028797018963967", b"1").is_err());
        assert!(sectors(b"0", b"8388608").is_err());
    }

    #[test]
    fn a_number_beyond_64_bits_is_no_name_unless_the_first_was_one() {
        let (most, beyond) = (&b"18446744073709551615"[..], &b"18446744073709551616"[..]);
        let mut ids = Ids::default();
        assert!(ids.number(beyond).is_err() && !ids.are_names());
        assert_eq!(ids.number(most), Ok(u64::MAX));
        assert!(ids.number(beyond).is_err());
        let mut names = Ids::default();
        assert_eq!((names.number(b"a"), names.number(beyond)), (Ok(0), Ok(1)));
        assert_eq!(names.number(beyond), Ok(1));
    }

    #[test]
    fn names_get_numbers_up_to_the_limit() {
        let mut names = Names::new(2);
        assert_eq!(names.number(b"b"), Ok(0));
        assert_eq!(names.number(b"a"), Ok(1));
        assert_eq!(names.number(b"b"), Ok(0));
        assert_eq!(names.number(b"c"), Err(Cause::Names { max: 2 }));
    }
}
