//! Sizes, durations and rates as people write them: `64KiB`, `8ms`, `80MB/s`.
//!
//! Called by `args` to parse option values and by the reports to print them. One parser serves
//! all three kinds: a decimal number, then a unit from the kind's table. Arithmetic is exact, in
//! integers: `1.5KiB` is 1536 bytes, `0.3B` is refused rather than rounded, and a value beyond
//! 64 bits is refused rather than wrapped. Parsing the output of [`size`] or [`duration`] gives the
//! same value back.
//!
//! `kB`, `MB`, `GB` are powers of 1000; `KiB`, `MiB`, `GiB` powers of 1024; a bare `K`, `M`, `G`
//! is a power of 1024 as in `dd` and `head`. Case does not matter, but for a rate in `Mb/s`, which is refused: bits or bytes. A number without a unit is
//! bytes; a duration must have one, because no unit is usual.

use std::fmt;

use forerun_core::{Bytes, Nanos};

/// A kind of quantity: its name, an example and its units.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    example: &'static str,
    /// Unit in lower case and how many of the smallest unit it holds.
    units: &'static [(&'static str, u64)],
}

const SIZE: Kind = Kind {
    name: "size",
    example: "64KiB, 1MiB or 100MB",
    units: &[
        ("", 1),
        ("b", 1),
        ("k", 1 << 10),
        ("kib", 1 << 10),
        ("kb", 1_000),
        ("m", 1 << 20),
        ("mib", 1 << 20),
        ("mb", 1_000_000),
        ("g", 1 << 30),
        ("gib", 1 << 30),
        ("gb", 1_000_000_000),
        ("t", 1 << 40),
        ("tib", 1 << 40),
        ("tb", 1_000_000_000_000),
    ],
};

const DURATION: Kind = Kind {
    name: "duration",
    example: "8ms, 200us or 1.5s",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
};

/// Why a quantity cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// It does not begin with a decimal number.
    #[error("{text:?} is not a {kind}: write a number and a unit, as in {example}")]
    Number {
        /// The given text.
        text: String,
        /// The expected kind.
        kind: &'static str,
        /// An example.
        example: &'static str,
    },
    /// It begins with a minus.
    #[error("{text:?} is less than 0: write it as in {example}")]
    Negative {
        /// The given text.
        text: String,
        /// An example.
        example: &'static str,
    },
    /// There is no unit, and none goes without saying.
    #[error("{text:?} has no unit: write it as in {example}")]
    NoUnit {
        /// The given text.
        text: String,
        /// An example.
        example: &'static str,
    },
    /// The unit is unknown.
    #[error("{unit:?} is not a unit of {kind}: write it as in {example}")]
    Unit {
        /// The given unit.
        unit: String,
        /// The expected kind.
        kind: &'static str,
        /// An example.
        example: &'static str,
    },
    /// A small b behind a capital prefix: a bit in networks.
    #[error(
        "{text:?} is bits to some and bytes to others: write {bytes} for bytes, or {bits} for bits"
    )]
    Bits {
        /// The given text.
        text: String,
        /// The same number of bytes.
        bytes: String,
        /// The same number of bits, in bytes.
        bits: String,
    },
    /// Not a whole number of the smallest unit.
    #[error("{text:?} is not a whole number of {smallest}")]
    Fraction {
        /// The given text.
        text: String,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// More than 64 bits hold.
    #[error("{text:?} is too large: at most {max} {smallest}", max = u64::MAX)]
    TooLarge {
        /// The given text.
        text: String,
        /// The smallest unit.
        smallest: &'static str,
    },
}

/// Reads a size in bytes.
///
/// # Errors
/// Anything but a whole number of bytes that fits 64 bits.
pub fn parse_size(text: &str) -> Result<Bytes, QuantityError> {
    parse(text, &SIZE, "bytes").map(Bytes)
}

/// Reads a duration.
///
/// # Errors
/// Anything but a whole number of nanoseconds that fits 64 bits.
pub fn parse_duration(text: &str) -> Result<Nanos, QuantityError> {
    parse(text, &DURATION, "nanoseconds").map(Nanos)
}

/// Reads a rate in bytes per second: a size, with or without `/s` behind it.
///
/// # Errors
/// Anything but a whole number of bytes per second that fits 64 bits.
pub fn parse_rate(text: &str) -> Result<u64, QuantityError> {
    let size = text.strip_suffix("/s").unwrap_or(text);
    if let Some(error) = bits(text, size) {
        return Err(error);
    }
    parse(
        size,
        &Kind {
            name: "rate",
            example: "80MB/s or 1GiB/s",
            ..SIZE
        },
        "bytes per second",
    )
}

/// `80Mb/s`, which network people read as megabits; none of any other text. A unit in small letters alone is a size.
fn bits(text: &str, size: &str) -> Option<QuantityError> {
    let prefix = size.strip_suffix('b')?;
    let number = prefix.strip_suffix(['K', 'M', 'G', 'T'])?.trim_end();
    let unit = &prefix[prefix.len() - 1..];
    let value: f64 = number
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())?;
    Some(QuantityError::Bits {
        text: text.to_owned(),
        bytes: format!("{number}{unit}B/s"),
        bits: format!("{}{unit}B/s", value / 8.0),
    })
}

fn parse(text: &str, kind: &Kind, smallest: &'static str) -> Result<u64, QuantityError> {
    let text = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, unit) = text.split_at(text.find(|c| !is_number(c)).unwrap_or(text.len()));
    if text
        .strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(is_number))
    {
        return Err(QuantityError::Negative {
            text: text.to_owned(),
            example: kind.example,
        });
    }
    let (whole, fraction) = split_number(number).ok_or_else(|| QuantityError::Number {
        text: text.to_owned(),
        kind: kind.name,
        example: kind.example,
    })?;
    let scale = kind.scale(text, unit.trim())?;
    let too_large = || QuantityError::TooLarge {
        text: text.to_owned(),
        smallest,
    };
    let whole = match whole {
        "" => 0,
        digits => digits.parse::<u64>().map_err(|_| too_large())?,
    };
    let part = scale_fraction(fraction, scale).ok_or_else(|| QuantityError::Fraction {
        text: text.to_owned(),
        smallest,
    })?;
    let scaled = whole.checked_mul(scale).ok_or_else(too_large)?;
    scaled.checked_add(part).ok_or_else(too_large)
}

impl Kind {
    /// How many of the smallest unit one of this unit is.
    fn scale(&self, text: &str, unit: &str) -> Result<u64, QuantityError> {
        let wanted = unit.to_lowercase();
        match self.units.iter().find(|(name, _)| *name == wanted) {
            Some((_, scale)) => Ok(*scale),
            None if unit.is_empty() => Err(QuantityError::NoUnit {
                text: text.to_owned(),
                example: self.example,
            }),
            None => Err(QuantityError::Unit {
                unit: unit.to_owned(),
                kind: self.name,
                example: self.example,
            }),
        }
    }
}

/// The digits before and after the point; `None` unless there is at least one digit and at most
/// one point.
fn split_number(number: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let no_digit = whole.is_empty() && fraction.is_empty();
    if no_digit || fraction.contains('.') {
        None
    } else {
        Some((whole, fraction))
    }
}

/// `0.fraction` of `scale`, if that is a whole number.
fn scale_fraction(fraction: &str, scale: u64) -> Option<u64> {
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return Some(0);
    }
    // Digits that do not fit 128 bits with their scale are surely a mistake: refused.
    let denominator = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let product = fraction
        .parse::<u128>()
        .ok()?
        .checked_mul(u128::from(scale))?;
    (product % denominator == 0).then(|| u64::try_from(product / denominator).ok())?
}

/// A size, exactly: in the largest unit that divides it.
#[must_use]
pub fn size(bytes: Bytes) -> impl fmt::Display {
    exactly(
        bytes.0,
        &[
            ("TiB", 1 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
        ],
        "B",
    )
}

/// A size, exactly, in the unit it was most likely typed in: `1TB` and not `976562500KiB`.
#[must_use]
pub fn typed(bytes: Bytes) -> String {
    let decimal = [
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
    ];
    let decimal = exactly(bytes.0, &decimal, "B");
    let binary = size(bytes).to_string();
    if decimal.len() < binary.len() {
        decimal
    } else {
        binary
    }
}

/// A duration, exactly: in the largest unit that divides it.
#[must_use]
pub fn duration(time: Nanos) -> impl fmt::Display {
    exactly(
        time.0,
        &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)],
        "ns",
    )
}

fn exactly(value: u64, units: &[(&str, u64)], smallest: &str) -> String {
    let fits = |(_, scale): &&(&str, u64)| value != 0 && value.is_multiple_of(*scale);
    match units.iter().find(fits) {
        Some((unit, scale)) => format!("{}{unit}", value / scale),
        None => format!("{value}{smallest}"),
    }
}

/// A size for people, to three or four digits: `78.0 MB`. Decimal units, as disks are sold.
#[must_use]
pub fn rough_size(bytes: f64) -> String {
    rough(
        bytes,
        &[("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)],
        "B",
    )
}

/// A duration for people, to three or four digits: `8.01 ms`.
#[must_use]
pub fn rough_duration(time: Nanos) -> String {
    rough(time.0 as f64, &[("s", 1e9), ("ms", 1e6), ("us", 1e3)], "ns")
}

fn rough(value: f64, units: &[(&str, f64)], smallest: &str) -> String {
    let Some((unit, scale)) = units.iter().find(|(_, scale)| value >= *scale) else {
        return format!("{value:.0} {smallest}");
    };
    let scaled = value / scale;
    let decimals = if scaled < 10.0 { 2 } else { 1 };
    format!("{scaled:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_mean_what_their_names_say() {
        assert_eq!(parse_size("64KiB"), Ok(Bytes(65_536)));
        assert_eq!(parse_size("100 MB"), Ok(Bytes(100_000_000)));
        assert_eq!(parse_size("1.5kib"), Ok(Bytes(1_536)));
        assert_eq!(parse_size("4k"), Ok(Bytes(4_096)));
        assert_eq!(parse_size("4096"), Ok(Bytes(4_096)));
        assert_eq!(parse_duration("8ms"), Ok(Nanos(8_000_000)));
        assert_eq!(parse_duration("0.25us"), Ok(Nanos(250)));
        assert_eq!(parse_rate("80MB/s"), Ok(80_000_000));
        assert_eq!(parse_rate("80MB"), Ok(80_000_000));
        assert_eq!(parse_rate("80mb/s"), Ok(80_000_000));
        for (text, spellings) in [
            ("80Mb/s", "write 80MB/s for bytes, or 10MB/s for bits"),
            ("1.5 Gb", "write 1.5GB/s for bytes, or 0.1875GB/s for bits"),
        ] {
            let refused = parse_rate(text).unwrap_err().to_string();
            assert!(refused.ends_with(spellings), "{refused}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_an_example() {
        for (text, message) in [
            (
                "",
                "\"\" is not a size: write a number and a unit, as in 64KiB, 1MiB or 100MB",
            ),
            (
                "-1MiB",
                "\"-1MiB\" is less than 0: write it as in 64KiB, 1MiB or 100MB",
            ),
            (
                "1.2.3M",
                "\"1.2.3M\" is not a size: write a number and a unit, as in 64KiB, 1MiB or 100MB",
            ),
            (
                ".",
                "\".\" is not a size: write a number and a unit, as in 64KiB, 1MiB or 100MB",
            ),
            (
                "12parsec",
                "\"parsec\" is not a unit of size: write it as in 64KiB, 1MiB or 100MB",
            ),
            ("0.3B", "\"0.3B\" is not a whole number of bytes"),
            (
                "99999999TiB",
                "\"99999999TiB\" is too large: at most 18446744073709551615 bytes",
            ),
        ] {
            assert_eq!(parse_size(text).unwrap_err().to_string(), message);
        }
        let no_unit = parse_duration("8").unwrap_err().to_string();
        assert_eq!(
            no_unit,
            "\"8\" has no unit: write it as in 8ms, 200us or 1.5s"
        );
    }

    #[test]
    fn a_typed_size_comes_back_in_its_own_unit() {
        for text in [
            "1TB", "64GiB", "100MB", "1GB", "8MiB", "1TiB", "12345B", "96KiB",
        ] {
            assert_eq!(typed(parse_size(text).unwrap()), text);
        }
    }

    #[test]
    fn rough_values_keep_three_digits() {
        assert_eq!(rough_size(78_012_345.0), "78.0 MB");
        assert_eq!(rough_size(540_189.0), "540.2 kB");
        assert_eq!(rough_size(12.0), "12 B");
        assert_eq!(rough_duration(Nanos(8_010_000)), "8.01 ms");
    }

    proptest! {
        #[test]
        fn what_was_printed_is_read_back(value: u64) {
            prop_assert_eq!(parse_size(&size(Bytes(value)).to_string()), Ok(Bytes(value)));
            prop_assert_eq!(parse_duration(&duration(Nanos(value)).to_string()), Ok(Nanos(value)));
            prop_assert_eq!(parse_rate(&format!("{}/s", size(Bytes(value)))), Ok(value));
        }

        #[test]
        fn round_values_come_back_in_their_unit(count in 1_u64..1024, power in 0_u32..4) {
            let value = Bytes(count << (10 * power));
            prop_assert_eq!(parse_size(&size(value).to_string()), Ok(value));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|[0-9.]{0,60}[a-zA-Zµ/ ]{0,6}") {
            let _ = parse_size(&text);
            let _ = parse_duration(&text);
            let _ = parse_rate(&text);
        }
    }
}
