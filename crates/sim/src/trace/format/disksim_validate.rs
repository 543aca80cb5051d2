//! DiskSim's validation traces: requests to a real drive with the response time of each.
//!
//! `R|W label first_sector sectors response_us gap_us`. The labels tell the behaviour of the
//! drive's cache and are not equally good in all of the set. The gap leads from this request's
//! completion to the next one's issue, so requests never overlap:
//!
//! ```text
//! issue --response--> completion --gap--> issue of the next
//! ```
//!
//! The gap becomes the next request's compute time, and arrivals are added up from zero.

use std::io::Write;

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{in_units, op, sectors, time, words};
use super::super::record::{Label, Record};
use super::{BLOCKS_ONLY, Decode, Encode, Format, Holds, Places, is_comment, sectors_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "disksim-validate",
    summary: "DiskSim's validation requests with measured response times",
    source: "DiskSim 4.0 manual, chapter 9.1 (validate); disksim_iotrace.c",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: Holds {
        places: Places::Sectors,
        op: true,
        compute: true,
        response: true,
        label: true,
        ..BLOCKS_ONLY
    },
    reader: |_| Box::new(ValidateDecoder::default()),
    writer: || Box::new(Writer::default()),
};

const FORM: &str = "R|W Hit|Miss|Doub|Trip first_sector sectors response_us gap_us";

const MICROSECOND: u64 = 1000;

/// When the next request is issued, and the gap before it.
#[derive(Default)]
struct ValidateDecoder {
    next: u64,
    gap: Option<u64>,
}

impl Decode for ValidateDecoder {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        if is_comment(line) {
            return Ok(None);
        }
        let [op_word, label, first, count, response, gap] = words(line, FORM)?;
        let op = op(op_word, "r", "w").ok_or_else(|| Cause::form(line, FORM))?;
        let label = Label::NAMES
            .iter()
            .find(|(_, name)| name.as_bytes() == label)
            .ok_or_else(|| Cause::field("label", label, "Hit, Miss, Doub or Trip"))?
            .0;
        let response = time("response_us", response, MICROSECOND)?;
        let gap_ns = time("gap_us", gap, MICROSECOND)?;
        let record = Record {
            op,
            label: Some(label),
            arrival: Some(Nanos(self.next)),
            compute: self.gap.map(Nanos),
            response: Some(Nanos(response)),
            ..sectors(first, count)?
        };
        let next = self.next.checked_add(response);
        self.next = next
            .and_then(|completion| completion.checked_add(gap_ns))
            .ok_or_else(|| Cause::field("gap_us", gap, "times that add up to less than 2^64 ns"))?;
        self.gap = Some(gap_ns);
        Ok(Some(record))
    }
}

/// The line before, which waits for its gap.
#[derive(Default)]
struct Writer {
    line: Option<String>,
}

impl Writer {
    fn finish(&mut self, gap: u64, out: &mut Vec<u8>) {
        if let Some(line) = self.line.take() {
            out.extend_from_slice(format!("{line} {}\n", in_units(gap, MICROSECOND)).as_bytes());
        }
    }
}

impl Encode for Writer {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        self.finish(record.compute.map_or(0, |compute| compute.0), out);
        let (first, count) = sectors_of(record);
        self.line = Some(format!(
            "{} {} {first} {count} {}",
            record.op.either('R', 'W'),
            record.label.unwrap_or(Label::Miss).name(),
            in_units(
                record.response.map_or(0, |response| response.0),
                MICROSECOND
            ),
        ));
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<(), Cause> {
        let mut last = Vec::new();
        self.finish(0, &mut last);
        Ok(out.write_all(&last)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_follow_from_responses_and_gaps() {
        let mut reader = ValidateDecoder::default();
        let first = reader
            .take(b"R Miss 8 2 14095.370 13876.270")
            .unwrap()
            .unwrap();
        let second = reader.take(b"W Doub 10 2 1.000 0").unwrap().unwrap();
        assert_eq!((first.arrival, first.compute), (Some(Nanos(0)), None));
        assert_eq!(second.arrival, Some(Nanos(27_971_640)));
        assert_eq!(second.compute, Some(Nanos(13_876_270)));
        assert_eq!(second.label, Some(Label::Double));
    }
}
