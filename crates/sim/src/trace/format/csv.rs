//! Requests in comma-separated columns, which a header names or the caller counts.
//!
//! A header names the columns, or the caller counts them in [`Columns`]; without either, exactly
//! libCacheSim's three are taken, and more are an error. A block is a number or a name, as in
//! `plain`. Cells may be empty where a request lacks the value, but a block or an offset must be
//! there. Quoted cells are not read. Written files have every column of a request, so nothing of it
//! is lost.

pub mod columns;

use std::io::Write;

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{Ids, op, small, time, whole};
use super::super::record::{Label, Place, Record};
use super::{Decode, Encode, Format, Holds, Places};
pub use columns::Columns;
use columns::Role;

/// The format.
pub const FORMAT: Format = Format {
    name: "csv",
    summary: "columns named by a header, or libCacheSim's time, object, size",
    source: "libCacheSim, doc/quickstart_cachesim.md (csv); the names are forerun's",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    holds: Holds {
        places: Places::All,
        device: true,
        op: true,
        arrival_unit_ns: Some(1),
        needs_arrival: false,
        compute: true,
        response: true,
        label: true,
    },
    reader: |options| {
        Box::new(Csv {
            columns: options.columns.clone(),
            before_header: options.columns.as_ref().is_some_and(|c| c.has_header),
            ids: Ids::default(),
        })
    },
    writer: || Box::new(Writer { began: false }),
};

const FORM: &str = "a header that names a block or offset column, or time,object,size";
const ROW: &str = "as many cells as the header, or the column numbers, say";

/// Whether a trace begins with a line that names the place of a request, and at least one column more.
pub(super) fn has_header(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.contains(&b',') && Columns::of_header(line).is_some()
}

struct Csv {
    columns: Option<Columns>,
    /// Whether a header is still to be skipped.
    before_header: bool,
    ids: Ids,
}

impl Decode for Csv {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        if std::mem::take(&mut self.before_header) {
            return Ok(None);
        }
        let columns = match &self.columns {
            Some(columns) => columns,
            None => {
                let header = Columns::of_header(line).transpose()?;
                let is_header = header.is_some();
                let columns = self.columns.insert(header.unwrap_or_else(Columns::usual));
                if is_header {
                    return Ok(None);
                }
                columns
            }
        };
        row(columns, &mut self.ids, line).map(Some)
    }
}

fn row(columns: &Columns, ids: &mut Ids, line: &[u8]) -> Result<Record, Cause> {
    let accepted = if columns.has_header || columns.is_open {
        ROW
    } else {
        FORM
    };
    let mut cells = line.split(|byte| *byte == columns.delimiter);
    let mut record = Record::block(0);
    let (mut block, mut offset) = (None, None);
    for role in &columns.roles {
        let cell = cells.next().ok_or_else(|| Cause::form(line, accepted))?;
        let cell = cell.trim_ascii();
        match role {
            _ if cell.is_empty() => {}
            Role::Block => block = Some(ids.number(cell)?),
            Role::Offset => offset = Some(whole("offset", cell)?),
            role => value(*role, cell, &mut record)?,
        }
    }
    if cells.next().is_some() && !columns.is_open {
        return Err(Cause::form(line, accepted));
    }
    record.place = match (block, offset) {
        (_, Some(offset)) => {
            let range = Record::range(offset, record.bytes)
                .ok_or_else(|| Cause::field("offset", line, "bytes that end below 2^64"))?;
            range.place
        }
        (Some(block), None) => {
            record.is_named = ids.are_names();
            Place::Block(block)
        }
        (None, None) => return Err(Cause::form(line, "a row with a block or an offset")),
    };
    Ok(record)
}

/// Puts the value of a cell where it belongs.
fn value(role: Role, cell: &[u8], record: &mut Record) -> Result<(), Cause> {
    match role {
        Role::Time(unit_ns) => record.arrival = Some(Nanos(time("time", cell, unit_ns)?)),
        Role::Bytes => record.bytes = small("bytes", cell)?,
        Role::Device => record.device = small("device", cell)?,
        Role::Compute => record.compute = Some(Nanos(whole("compute_ns", cell)?)),
        Role::Response(unit_ns) => record.response = Some(Nanos(time("response", cell, unit_ns)?)),
        Role::Op => {
            let pairs = [
                ("r", "w"),
                ("read", "write"),
                ("get", "set"),
                ("get", "put"),
            ];
            let known = pairs.iter().find_map(|(r, w)| op(cell, r, w));
            let accepted = "r, read, get, w, write, set or put";
            record.op = known.ok_or_else(|| Cause::field("op", cell, accepted))?;
        }
        Role::Label => {
            let known = Label::NAMES
                .iter()
                .find(|(_, name)| name.as_bytes() == cell);
            let accepted = "Hit, Miss, Doub or Trip";
            let label = known.ok_or_else(|| Cause::field("label", cell, accepted))?;
            record.label = Some(label.0);
        }
        Role::Block | Role::Offset | Role::Skipped => {}
    }
    Ok(())
}

struct Writer {
    began: bool,
}

impl Encode for Writer {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        const HEADER: &str =
            "time_ns,device,block,offset_bytes,bytes,op,compute_ns,response_ns,label\n";
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
            "{},{},{block},{offset},{},{},{},{},{}",
            cell(record.arrival),
            record.device,
            record.bytes,
            record.op.either('r', 'w'),
            cell(record.compute),
            cell(record.response),
            record.label.map_or("", Label::name),
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
        let text = "# Size, OP ,time_us,lun,OFFSET\n512,w,3,4,1024\n0,GET,,,0\n";
        let found = read(None, text).unwrap();
        assert_eq!(found[0].arrival, Some(Nanos(3000)));
        assert_eq!((found[0].place, found[0].bytes), (Place::Byte(1024), 512));
        assert_eq!((found[0].op, found[1].op), (Op::Write, Op::Read));
        assert_eq!(found[1].arrival, None);
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
        assert!(read(None, "offset,bytes\n18446744073709551615,1\n").is_err());
    }
}
