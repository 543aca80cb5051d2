//! The Storage Performance Council's format, as in the UMass repository: Financial, WebSearch.
//!
//! `asu,lba,bytes,r|w,seconds[,..]`. The ASU (application storage unit) is the device, addresses
//! count sectors of 512 bytes, sizes count bytes. Optional fields after the fifth are allowed by
//! the specification and not read.

use std::io::Write;

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{SECTOR, SECTORS, from_sector, in_units, op, small, time, whole};
use super::super::record::Record;
use super::{Decode, Encode, Format, TIMED_SECTORS, arrival_of, is_comment, offset_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "spc",
    summary: "SPC traces of the UMass repository: Financial, WebSearch",
    source: "SPC Trace File Format Specification, revision 1.0.1",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: TIMED_SECTORS,
    reader: |_| Box::new(Spc),
    writer: || Box::new(Spc),
};

const FORM: &str = "asu,lba,bytes,r|w,seconds";

const SECOND: u64 = 1_000_000_000;

struct Spc;

impl Decode for Spc {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        if is_comment(line) {
            return Ok(None);
        }
        let mut cells = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let mut next = || cells.next().ok_or_else(|| Cause::form(line, FORM));
        let [asu, lba, bytes, op_cell, seconds] = [next()?, next()?, next()?, next()?, next()?];
        let op = op(op_cell, "r", "w").ok_or_else(|| Cause::field("opcode", op_cell, "r or w"))?;
        let range = from_sector(whole("lba", lba)?, whole("bytes", bytes)?);
        Ok(Some(Record {
            arrival: Some(Nanos(time("seconds", seconds, SECOND)?)),
            device: small("asu", asu)?,
            op,
            ..range.ok_or_else(|| Cause::field("range", &[lba, bytes].join(&b','), SECTORS))?
        }))
    }
}

impl Encode for Spc {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        Ok(writeln!(
            out,
            "{},{},{},{},{}",
            record.device,
            offset_of(record) / SECTOR,
            record.bytes,
            record.op.either('r', 'w'),
            in_units(arrival_of(record), SECOND),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::record::Op;
    use super::*;

    #[test]
    fn a_line_of_the_published_traces_is_read() {
        let record = Spc.take(b"0,20941264,8192,W,0.551706").unwrap().unwrap();
        assert_eq!(record.arrival, Some(Nanos(551_706_000)));
        assert_eq!((offset_of(&record), record.bytes), (20_941_264 * 512, 8192));
        assert_eq!(record.op, Op::Write);
        assert!(Spc.take(b"0,1,512,r,0.5,further,fields").is_ok());
        assert!(Spc.take(b"0,1,512,x,0.5").is_err());
        assert!(Spc.take(b"0,1,512,r").is_err());
    }
}
