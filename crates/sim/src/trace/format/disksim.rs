//! DiskSim's ascii format, and the block traces of MQSim, which differ in the unit of time only.
//!
//! `time device first_sector sectors flags`: bit 0 of the hexadecimal flags is set for a read.
//! DiskSim writes times in milliseconds with decimals, MQSim in whole nanoseconds. So a time with
//! a decimal point is milliseconds, and one without is nanoseconds, unless
//! [`Options::whole_time_ns`](super::Options::whole_time_ns) says otherwise. The first time above
//! zero decides for the file; the other kind later is an error, because one of the two would be
//! wrong by six orders of magnitude.

use std::io::Write;

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{in_units, sectors, small, split, time, words};
use super::super::record::{Op, Record};
use super::{Decode, Encode, Format, TIMED_SECTORS, arrival_of, is_comment, sectors_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "disksim",
    summary: "DiskSim's ascii requests (times in ms with decimals) and MQSim's (whole ns)",
    source: "DiskSim 4.0 manual, chapter 9.1; MQSim's README, trace-based workloads",
    form: FORM,
    is_marked: true,
    is_sure: has_flags_of_one_bit,
    doubt: "guessed only where the flags are 0 or 1",
    holds: TIMED_SECTORS,
    reader: |options| {
        Box::new(DiskSim {
            whole_time_ns: options.whole_time_ns,
            has_point: None,
        })
    },
    writer: || Box::new(Writer),
};

/// Whether all flags are 0 or 1: five numbers are as well a web cache's time, object, size and two features.
fn has_flags_of_one_bit(head: &[u8]) -> bool {
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    // The last line may be cut off.
    let last = lines.pop().filter(|_| lines.is_empty());
    let flags = lines
        .into_iter()
        .chain(last)
        .filter(|line| !is_comment(line));
    let mut flags = flags.filter_map(|line| split(line).nth(4));
    flags.all(|flags| matches!(flags, b"0" | b"1"))
}

const FORM: &str = "time device first_sector sectors flags(1=read)";

const MILLISECOND: u64 = 1_000_000;

struct DiskSim {
    whole_time_ns: u64,
    has_point: Option<bool>,
}

impl DiskSim {
    fn time(&mut self, word: &[u8]) -> Result<u64, Cause> {
        let has_point = word.contains(&b'.');
        let unit = if has_point {
            MILLISECOND
        } else {
            self.whole_time_ns
        };
        let nanos = time("time", word, unit)?;
        if nanos > 0 && *self.has_point.get_or_insert(has_point) != has_point {
            let accepted = if has_point {
                "without decimal point, as before"
            } else {
                "with a decimal point, as before"
            };
            return Err(Cause::field("time", word, accepted));
        }
        Ok(nanos)
    }
}

/// Flags are written in hexadecimal, without a prefix.
fn flag_bits(word: &[u8]) -> Result<u32, Cause> {
    let text = core::str::from_utf8(word).ok();
    text.filter(|text| !text.starts_with('+'))
        .and_then(|text| u32::from_str_radix(text, 16).ok())
        .ok_or_else(|| Cause::field("flags", word, "a hexadecimal number below 2^32"))
}

impl Decode for DiskSim {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        if is_comment(line) {
            return Ok(None);
        }
        let [time, device, first, count, flags] = words(line, FORM)?;
        let reads = flag_bits(flags)? & 1 == 1;
        Ok(Some(Record {
            arrival: Some(Nanos(self.time(time)?)),
            device: small("device", device)?,
            op: if reads { Op::Read } else { Op::Write },
            ..sectors(first, count)?
        }))
    }
}

struct Writer;

impl Encode for Writer {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        let (first, count) = sectors_of(record);
        Ok(writeln!(
            out,
            "{} {} {first} {count} {}",
            in_units(arrival_of(record), MILLISECOND),
            record.device,
            record.op.either(1, 0),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    fn arrivals(options: &Options, lines: &[&str]) -> Result<Vec<u64>, Cause> {
        let mut disksim = (FORMAT.reader)(options);
        let records = lines.iter().map(|line| disksim.take(line.as_bytes()));
        records
            .filter_map(Result::transpose)
            .map(|record| record.map(|r| arrival_of(&r)))
            .collect()
    }

    #[test]
    fn flags_are_hexadecimal() {
        assert_eq!(flag_bits(b"1f"), Ok(31));
        assert!(flag_bits(b"+1").is_err());
        assert!(flag_bits(b"0x1").is_err());
        assert!(flag_bits(b"").is_err());
    }

    #[test]
    fn the_decimal_point_tells_the_unit_of_time() {
        let usual = Options::default();
        let ms = ["0 0 1 1 1", "0.5 0 1 1 1", "2.000 0 1 1 0"];
        assert_eq!(arrivals(&usual, &ms).unwrap(), [0, 500_000, 2_000_000]);
        let ns = ["0 0 1 1 1", "500 0 1 1 1"];
        assert_eq!(arrivals(&usual, &ns).unwrap(), [0, 500]);
        let whole_ms = Options {
            whole_time_ns: MILLISECOND,
            ..Options::default()
        };
        assert_eq!(arrivals(&whole_ms, &ns).unwrap(), [0, 500_000_000]);
        assert!(arrivals(&usual, &["0.5 0 1 1 1", "7 0 1 1 1"]).is_err());
    }
}
