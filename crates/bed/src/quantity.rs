//! Quantities as people type them: `128KiB`, `100MB`, `10s`, `250ms`.
//!
//! Used by the command line and by the table's headings. A number without a unit is refused, as
//! ambiguous. Powers of two end in `iB`, powers of ten in `B`, as in `forerun`.

use std::time::Duration;

const SIZES: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// A size in bytes.
///
/// # Errors
/// No number, no unit, zero, or more than 64 bits.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wanted = || format!("`{text}`: give a size with its unit, as 128KiB or 100MB");
    SIZES
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))
        .and_then(|(number, factor)| number.parse::<u64>().ok()?.checked_mul(*factor))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(wanted)
}

/// A span of time.
///
/// # Errors
/// No whole number, no unit, or zero.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wanted = || format!("`{text}`: give a time with its unit, as 10s, 250ms or 5min");
    let millis = |number: &str| number.parse().ok().map(Duration::from_millis);
    let seconds = |number: &str| number.parse().ok().map(Duration::from_secs);
    let minutes = |number: &str| {
        let seconds = number.parse::<u64>().ok()?.checked_mul(60)?;
        Some(Duration::from_secs(seconds))
    };
    let parsed = match (text.strip_suffix("ms"), text.strip_suffix("min")) {
        (Some(number), _) => millis(number),
        (_, Some(number)) => minutes(number),
        _ => text.strip_suffix('s').and_then(seconds),
    };
    parsed.filter(|time| !time.is_zero()).ok_or_else(wanted)
}

/// A whole number of KiB, the unit of the kernel's queue settings.
///
/// # Errors
/// No number. Zero is fine: it turns readahead off.
pub fn kib(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("KiB").unwrap_or(text);
    number
        .parse()
        .map_err(|_| format!("`{text}`: give a number of KiB, as 128"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_needs_its_unit() {
        assert_eq!(bytes("128KiB"), Ok(131_072));
        assert_eq!(bytes("100MB"), Ok(100_000_000));
        assert_eq!(bytes("7B"), Ok(7));
        for wrong in ["128", "", "KiB", "-1MB", "0MB", "1.5GB", "99999999999GB"] {
            assert!(bytes(wrong).unwrap_err().contains("128KiB"), "{wrong}");
        }
    }

    #[test]
    fn a_time_needs_its_unit() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        assert!(duration("10").is_err() && duration("0s").is_err());
    }

    #[test]
    fn read_ahead_is_in_kib_and_may_be_none() {
        assert_eq!(
            (kib("0"), kib("128"), kib("1024KiB")),
            (Ok(0), Ok(128), Ok(1024))
        );
        assert!(kib("1MiB").is_err());
    }
}
