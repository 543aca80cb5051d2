//! Requests in columns, which a header names or the caller counts.
//!
//! A header names the columns, or the caller counts them in [`Columns`]; without either, exactly
//! libCacheSim's three are taken, and more are an error. Three numbers may as well be time, offset and bytes: they are
//! taken only where the caller names the format. A block is a number or a name, as in
//! `plain`. Cells may be empty where a request lacks the value, but a block or an offset must be
//! there; a row without an operation where others have one is left out and counted, because its
//! direction is unknown. Quoted cells are not read. Written files have every column of a request, so
//! nothing of it is lost.

pub mod columns;
pub(super) mod rows;

use std::io::Write;

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::record::{Label, Place, Record};
use super::{Encode, Format, Holds, Places, cells_in};
pub use columns::Columns;
use columns::NAMES;
use rows::{First, Rows};

/// The format.
pub const FORMAT: Format = Format {
    name: "csv",
    summary: "columns named by a header or by --columns, or libCacheSim's time, object, size",
    source: "libCacheSim, doc/quickstart_cachesim.md (csv); the names are forerun's; SYSTOR '17",
    form: FORM,
    is_marked: true,
    is_sure: |head| !cells_in(head, 1, 0..u64::MAX),
    doubt: "time,object,size without a header is guessed only where the object is a name",
    holds: Holds {
        places: Places::All,
        device: true,
        op: true,
        arrival_unit_ns: Some(1),
        needs_arrival: false,
        compute: true,
        response: true,
        label: true,
        process: true,
    },
    reader: |options| {
        Box::new(match &options.columns {
            Some(columns) => Rows::of(columns.clone(), FORM),
            None => Rows::after(first, FORM),
        })
    },
    writer: || Box::new(Writer { began: false }),
};

const FORM: &str = "a header that names a block or offset column, or time,object,size";

/// Whether a line names the place of a request, and at least one column more.
pub(super) fn is_header(line: &[u8]) -> bool {
    let has_several = line.iter().any(|byte| b",\t;".contains(byte));
    has_several && Columns::of_header(line, NAMES).is_some()
}

/// A header, or a row of libCacheSim's three columns.
fn first(line: &[u8]) -> Result<First, Cause> {
    let header = Columns::of_header(line, NAMES).transpose()?;
    Ok(header.map_or_else(|| First::Row(Columns::usual()), First::Header))
}

struct Writer {
    began: bool,
}

impl Encode for Writer {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        const HEADER: &str =
            "time_ns,device,block,offset_bytes,bytes,op,compute_ns,response_ns,label,pid\n";
        if !std::mem::replace(&mut self.began, true) {
            out.extend_from_slice(HEADER.as_bytes());
        }
        let cell = |time: Option<Nanos>| time.map_or(String::new(), |time| time.0.to_string());
        let (block, offset) = match record.place {
            Place::Block(block) => (block.to_string(), String::new()),
            Place::Byte(offset) => (String::new(), offset.to_string()),
        };
        Ok(writeln!(
            out,
            "{},{},{block},{offset},{},{},{},{},{},{}",
            cell(record.arrival),
            record.device,
            record.bytes,
            record.op.either('r', 'w'),
            cell(record.compute),
            cell(record.response),
            record.label.map_or("", Label::name),
            record.process.map_or(String::new(), |pid| pid.to_string()),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::record::Op;
    use super::super::Options;
    use super::*;

    fn read(columns: Option<&str>, text: &str) -> Result<Vec<Record>, Cause> {
        let columns = columns.map(str::parse).transpose()?;
        let mut csv = (FORMAT.reader)(&Options {
            columns,
            ..Options::default()
        });
        let records = text.lines().map(|line| csv.take(line.as_bytes()));
        records.filter_map(Result::transpose).collect()
    }

    #[test]
    fn a_header_names_columns_in_any_order() {
        let text = "# Size, OP ,time_us,lun,OFFSET\n512,w,3,4,1024\n0,GET,,,0\n1,,5,0,0\n";
        let found = read(None, text).unwrap();
        assert_eq!(found[0].arrival, Some(Nanos(3000)));
        assert_eq!((found[0].place, found[0].bytes), (Place::Byte(1024), 512));
        assert_eq!((found[0].op, found[1].op), (Op::Write, Op::Read));
        assert_eq!((found[1].arrival, found.len()), (None, 2));
    }

    #[test]
    fn columns_are_counted_as_libcachesim_does() {
        let columns = "time-col=2, obj-id-col=5, obj-size-col=4, has-header=true";
        let found = read(Some(columns), "a,b,c,d,e,f\n0,1.5,0,512,key,0\n").unwrap();
        assert_eq!((found[0].place, found[0].bytes), (Place::Block(0), 512));
        assert_eq!(found[0].arrival, Some(Nanos(1_500_000_000)));
        assert_eq!(read(None, "1,77,512\n").unwrap()[0].place, Place::Block(77));
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        assert!(read(None, "0,20941264,8192,W,0.551706\n").is_err());
        assert!(read(None, "block,op\n1\n").is_err());
        assert!(read(None, "block,op\n1,r,2\n").is_err());
        assert!(read(None, "block,op\n,r\n").is_err());
        assert!(read(None, "block,offset\n1,2\n").is_err());
        assert!(read(None, "block,op_count\n1,0\n").is_err());
        assert!(read(None, "offset,bytes\n18446744073709551615,1\n").is_err());
    }
}
