//! MSR Cambridge: block traces of 36 volumes of 13 servers, one volume a file.
//!
//! `timestamp,host,disk,Read|Write,offset,bytes,response`: time stamps and response times in units
//! of 100 ns, time stamps counted from the year 1601; a 64-bit nanosecond holds them until 2185.
//! Host and disk number together are the device, numbered in the order of first use, so that
//! volumes of several servers can be put into one file.

use std::io::Write;

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{Names, cells, op, range, small, time};
use super::super::record::Record;
use super::{
    Decode, Encode, Format, Holds, Places, TIMED_SECTORS, arrival_of, is_comment, offset_of,
};

/// The format.
pub const FORMAT: Format = Format {
    name: "msr",
    summary: "MSR Cambridge block traces, csv without header",
    source: "Narayanan, Donnelly, Rowstron, Write Off-Loading, FAST 2008; the traces' README",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: Holds {
        places: Places::Bytes,
        arrival_unit_ns: Some(TICK),
        response: true,
        ..TIMED_SECTORS
    },
    reader: |_| {
        Box::new(Msr {
            devices: Names::new(DEVICES_MAX),
        })
    },
    writer: || Box::new(Writer),
};

const FORM: &str = "timestamp,host,disk,Read|Write,offset,bytes,response";

const TICK: u64 = 100;

/// Thirteen servers have 36 volumes; this allows for all of them joined.
const DEVICES_MAX: usize = 1 << 16;

struct Msr {
    devices: Names,
}

impl Decode for Msr {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        if is_comment(line) || line.starts_with(b"Timestamp,") {
            return Ok(None);
        }
        let [arrival, host, disk, op_cell, offset, bytes, response] = cells(line, FORM)?;
        let op = op(op_cell, "read", "write")
            .ok_or_else(|| Cause::field("type", op_cell, "Read or Write"))?;
        small("disk", disk)?;
        Ok(Some(Record {
            arrival: Some(Nanos(time("timestamp", arrival, TICK)?)),
            device: self.devices.number(&[host, disk].join(&b','))?,
            op,
            response: Some(Nanos(time("response", response, TICK)?)),
            ..range(offset, bytes)?
        }))
    }
}

struct Writer;

impl Encode for Writer {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        Ok(writeln!(
            out,
            "{},forerun,{},{},{},{},{}",
            arrival_of(record) / TICK,
            record.device,
            record.op.either("Read", "Write"),
            offset_of(record),
            record.bytes,
            record.response.map_or(0, |response| response.0) / TICK,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn a_line_of_the_published_traces_is_read() {
        let mut msr = (FORMAT.reader)(&Options::default());
        let line = b"128166372003061629,hm,1,Read,383496192,32768,58000";
        let record = msr.take(line).unwrap().unwrap();
        assert_eq!(record.arrival, Some(Nanos(12_816_637_200_306_162_900)));
        assert_eq!(record.response, Some(Nanos(5_800_000)));
        assert_eq!((offset_of(&record), record.bytes), (383_496_192, 32_768));
        let other = msr.take(b"128166372003061630,src1,1,Write,0,512,1");
        assert_eq!(other.unwrap().unwrap().device, 1);
    }
}
