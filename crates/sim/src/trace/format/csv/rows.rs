//! Rows whose columns are known: the reader and the writer of every format in columns.
//!
//! A format is a list of meanings ([`Columns`]) and, where it has a header, a function that makes one of the
//! first line. Example: Alibaba's rows are device, operation, first byte, bytes and microseconds.

use std::io::Write;

use forerun_core::Nanos;

use super::super::super::error::Cause;
use super::super::super::fields::{Ids, time, whole};
use super::super::super::record::{Label, Place, Record};
use super::super::{Decode, Encode};
use super::columns::{Columns, Role};

const ROW: &str = "as many cells as the header, or the column numbers, say";
const OPS: &str = "one of the names of reads, writes and skipped operations; r, read, get, gets, w, write, set or \
                   put in a csv (--columns reads=, writes=, skips= names others)";

/// What the first line of a trace is.
pub(in super::super) enum First {
    /// A header.
    Header(Columns),
    /// A row with these columns.
    Row(Columns),
}

/// See the [module](self).
pub(in super::super) struct Rows {
    columns: Option<Columns>,
    first: fn(&[u8]) -> Result<First, Cause>,
    /// Whether a header is still to be skipped.
    before_header: bool,
    form: &'static str,
    ids: Ids,
    devices: Ids,
    processes: Ids,
    repeats: u32,
    left_out: u64,
}

impl Rows {
    /// Rows with these columns.
    pub(in super::super) fn of(columns: Columns, form: &'static str) -> Self {
        Self {
            before_header: columns.has_header,
            columns: Some(columns),
            ..Self::after(|line| Err(Cause::form(line, ROW)), form)
        }
    }

    /// Rows with the columns that the first line says.
    pub(in super::super) fn after(
        first: fn(&[u8]) -> Result<First, Cause>,
        form: &'static str,
    ) -> Self {
        Self {
            columns: None,
            first,
            before_header: false,
            form,
            ids: Ids::default(),
            devices: Ids::new("device", DEVICES_MAX),
            processes: Ids::new("process", DEVICES_MAX),
            repeats: 1,
            left_out: 0,
        }
    }

    fn row(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        let Some(columns) = &self.columns else {
            return Err(Cause::form(line, self.form));
        };
        let accepted = if columns.has_header || columns.is_open {
            ROW
        } else {
            self.form
        };
        let mut cells = columns.delimiter.cells(line);
        let mut row = Row {
            record: Record::block(0),
            block: None,
            offset: None,
            bytes: 0,
            is_request: true,
        };
        self.repeats = 1;
        for role in &columns.roles {
            let cell = cells.next().ok_or_else(|| Cause::form(line, accepted))?;
            match role {
                Role::Op => match columns.ops.of(cell) {
                    Some(Some(op)) => row.record.op = op,
                    Some(None) => row.is_request = false,
                    None => return Err(Cause::field("op", cell, OPS)),
                },
                _ if cell.is_empty() => {}
                Role::Block => row.block = Some(self.ids.number(cell)?),
                Role::Device => row.record.device = numbered(&mut self.devices, "device", cell)?,
                Role::Process => {
                    row.record.process = Some(numbered(&mut self.processes, "process", cell)?);
                }
                Role::Count => self.repeats = count(cell)?,
                role => row.take(*role, cell)?,
            }
        }
        if cells.next().is_some() && !columns.is_open {
            return Err(Cause::form(line, accepted));
        }
        let record = row.placed(line, columns.object_bytes, self.ids.are_names())?;
        self.left_out += u64::from(!row.is_request);
        Ok(row.is_request.then_some(record))
    }
}

/// As many as there are names of devices in the largest published trace, several times over.
const DEVICES_MAX: usize = 1 << 16;

/// The number of a device or a process.
fn numbered(ids: &mut Ids, field: &'static str, cell: &[u8]) -> Result<u32, Cause> {
    let number = ids.number(cell)?;
    u32::try_from(number).map_err(|_| Cause::field(field, cell, "a name, or a number below 2^32"))
}

fn count(cell: &[u8]) -> Result<u32, Cause> {
    let count = whole("count", cell).ok();
    let count = count.and_then(|count| u32::try_from(count).ok());
    count
        .filter(|count| *count > 0)
        .ok_or_else(|| Cause::field("count", cell, "1 to 4294967295"))
}

impl Decode for Rows {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        if std::mem::take(&mut self.before_header) {
            return Ok(None);
        }
        if self.columns.is_none() {
            match (self.first)(line)? {
                First::Header(columns) => {
                    self.columns = Some(columns);
                    return Ok(None);
                }
                First::Row(columns) => self.columns = Some(columns),
            }
        }
        self.row(line)
    }

    fn repeats(&self) -> u32 {
        self.repeats
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// The cells of a row so far.
struct Row {
    record: Record,
    block: Option<u64>,
    offset: Option<u64>,
    bytes: u64,
    is_request: bool,
}

impl Row {
    /// Puts the value of a cell where it belongs.
    fn take(&mut self, role: Role, cell: &[u8]) -> Result<(), Cause> {
        let record = &mut self.record;
        match role {
            Role::Time(unit_ns) => record.arrival = Some(Nanos(time("time", cell, unit_ns)?)),
            Role::Offset(unit) => self.offset = Some(in_bytes("offset", cell, unit)?),
            Role::Bytes(unit) => {
                let bytes = in_bytes("bytes", cell, unit)?;
                self.bytes = self.bytes.saturating_add(bytes);
            }
            Role::Compute => record.compute = Some(Nanos(whole("compute_ns", cell)?)),
            Role::Response(unit_ns) => {
                record.response = Some(Nanos(time("response", cell, unit_ns)?));
            }
            Role::Label => {
                let mut known = Label::NAMES.iter();
                let known = known.find(|(_, name)| name.as_bytes() == cell);
                let accepted = "Hit, Miss, Doub or Trip";
                let label = known.ok_or_else(|| Cause::field("label", cell, accepted))?;
                record.label = Some(label.0);
            }
            Role::Block | Role::Device | Role::Process | Role::Op | Role::Count | Role::Skipped => {
            }
        }
        Ok(())
    }

    /// The request, at its place.
    fn placed(
        &self,
        line: &[u8],
        object_bytes: Option<u64>,
        is_named: bool,
    ) -> Result<Record, Cause> {
        let wrong = |accepted| Cause::field("row", line, accepted);
        let bytes = u32::try_from(self.bytes);
        let bytes = bytes.map_err(|_| wrong("of less than 2^32 bytes"))?;
        let range = |offset: Option<u64>| {
            let range = offset.and_then(|offset| Record::range(offset, bytes));
            let accepted = "of bytes that end below 2^64, and within their object";
            range
                .map(|range| range.place)
                .ok_or_else(|| wrong(accepted))
        };
        let place = match (self.block, self.offset, object_bytes) {
            (Some(block), Some(offset), Some(span)) => {
                let ends = offset.checked_add(self.bytes);
                let is_inside = ends.is_some_and(|end| end <= span);
                let begin = block.checked_mul(span).filter(|_| is_inside);
                range(begin.and_then(|begin| begin.checked_add(offset)))?
            }
            (Some(_), Some(_), None) => return Err(wrong("a block or an offset, not both")),
            (None, Some(offset), _) => range(Some(offset))?,
            (Some(block), None, _) => Place::Block(block),
            (None, None, _) => return Err(wrong("a row with a block or an offset")),
        };
        Ok(Record {
            place,
            bytes,
            is_named: is_named && self.block.is_some(),
            ..self.record
        })
    }
}

fn in_bytes(field: &'static str, cell: &[u8], unit: u64) -> Result<u64, Cause> {
    let accepted = "a whole number of bytes below 2^64";
    let bytes = whole(field, cell)?.checked_mul(unit);
    bytes.ok_or_else(|| Cause::field(field, cell, accepted))
}

/// Writes rows.
pub(in super::super) struct RowsWriter {
    columns: Columns,
    /// The header that is still to be written.
    header: Option<&'static str>,
}

impl RowsWriter {
    pub(in super::super) fn new(columns: Columns, header: Option<&'static str>) -> Self {
        Self { columns, header }
    }

    /// The object of a request, and where in it the request begins.
    fn place(&self, record: &Record) -> (u64, u64) {
        match (record.place, self.columns.object_bytes) {
            (Place::Block(number), _) => (number, 0),
            (Place::Byte(offset), Some(span)) => (offset / span, offset % span),
            (Place::Byte(offset), None) => (0, offset),
        }
    }
}

impl Encode for RowsWriter {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        if let Some(header) = self.header.take() {
            writeln!(out, "{header}")?;
        }
        let roles = &self.columns.roles;
        let is_size = |role: &Role| matches!(role, Role::Bytes(_));
        // Of several sizes, which are added, the last one is all of it.
        let size = roles.iter().rposition(is_size);
        let (object, offset) = self.place(record);
        let first = |names: &str| names.split('/').next().unwrap_or_default().replace('*', "");
        let ops = &self.columns.ops;
        for (at, role) in roles.iter().enumerate() {
            if at > 0 {
                out.push(self.columns.delimiter.byte());
            }
            match role {
                Role::Time(unit) => write!(out, "{}", record.arrival.map_or(0, |t| t.0) / unit)?,
                Role::Response(unit) => {
                    write!(out, "{}", record.response.map_or(0, |t| t.0) / unit)?
                }
                Role::Block => write!(out, "{object}")?,
                Role::Offset(unit) => write!(out, "{}", offset / unit)?,
                Role::Bytes(unit) if Some(at) == size => {
                    write!(out, "{}", u64::from(record.bytes) / unit)?
                }
                Role::Device => write!(out, "{}", record.device)?,
                Role::Op => write!(
                    out,
                    "{}",
                    record.op.either(first(&ops.reads), first(&ops.writes))
                )?,
                Role::Process => write!(out, "{}", record.process.unwrap_or(0))?,
                Role::Count => write!(out, "1")?,
                Role::Bytes(_) | Role::Compute | Role::Label | Role::Skipped => write!(out, "0")?,
            }
        }
        out.push(b'\n');
        Ok(())
    }
}
