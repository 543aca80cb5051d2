//! The formats of published traces, each read and written.
//!
//! A new format is one file in `format/`, one `mod` line here and one entry in [`LIST`]; it can
//! then be named, guessed, listed in error messages, converted to and from, and runs in the tests
//! over all formats. The file says where the format is specified and which part of it is not read.
//!
//! A format says how long its next unit is (a line, or some bytes) and turns one into at most one
//! [`Record`]. It never sees the file, so it cannot read ahead, and a trace of any length takes no
//! memory. The order of the list is the order of guessing: the first format whose reader accepts
//! the beginning of a file is the guess, so the most permissive stand last.

pub mod alibaba;
pub mod arc;
pub mod blkparse;
pub mod cachelib_block;
pub mod cachelib_kv;
pub mod csv;
pub mod disksim;
pub mod disksim_validate;
pub mod fio;
pub mod lirs;
pub mod msr;
pub mod oracle_general;
pub mod plain;
pub mod spc;
pub mod tencent;
pub mod twitter;
pub mod vscsi;
pub mod webcachesim;

use std::io::Write;

use forerun_core::spec::ChoiceError;

use super::error::Cause;
pub(super) use super::fields::SECTOR;
use super::record::{Place, Record};
use super::source::MARK;

/// The formats, in the order of guessing. One entry a format.
pub static LIST: &[Format] = &[
    fio::FORMAT,
    blkparse::FORMAT,
    msr::FORMAT,
    spc::FORMAT,
    disksim_validate::FORMAT,
    disksim::FORMAT,
    lirs::FORMAT,
    arc::FORMAT,
    alibaba::FORMAT,
    tencent::FORMAT,
    twitter::FORMAT,
    cachelib_kv::FORMAT,
    cachelib_block::FORMAT,
    csv::FORMAT,
    plain::FORMAT,
    webcachesim::FORMAT,
    vscsi::FORMAT,
    oracle_general::FORMAT,
];

/// Length of the beginning of a file for a guess, in lines or records.
const GUESS_UNITS: usize = 64;

/// A format: its name, its reader and its writer.
#[derive(Debug)]
pub struct Format {
    /// Name as the user types it.
    pub name: &'static str,
    /// One line: which traces have it.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// The form of a line or record, as error messages show it.
    pub form: &'static str,
    /// Whether its reader tells it from other formats. One that does not gives way to a format
    /// that fits the beginning of the file.
    pub is_marked: bool,
    /// Whether a beginning that its reader accepts has something that no other format has. One that has
    /// not is not guessed, and must be named.
    pub is_sure: fn(&[u8]) -> bool,
    /// Where it is sure, as the error for another beginning says it; empty if everywhere.
    pub doubt: &'static str,
    /// The facts of a request that it can hold.
    pub holds: Holds,
    /// Begins to read.
    pub reader: fn(&Options) -> Box<dyn Decode>,
    /// Begins to write.
    pub writer: fn() -> Box<dyn Encode>,
}

/// The facts of a [`Record`] that a format can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holds {
    /// Which kinds of place.
    pub places: Places,
    /// Which device.
    pub device: bool,
    /// Whether it reads or writes.
    pub op: bool,
    /// When it was issued, in this unit.
    pub arrival_unit_ns: Option<u64>,
    /// Whether every request must have a time.
    pub needs_arrival: bool,
    /// Computing before it.
    pub compute: bool,
    /// The response time.
    pub response: bool,
    /// The behaviour of the drive's cache.
    pub label: bool,
    /// The process that made it.
    pub process: bool,
}

/// Kinds of place that a format can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Places {
    /// Numbers of blocks.
    Blocks,
    /// Numbers of objects, with their size.
    Objects,
    /// Ranges of bytes.
    Bytes,
    /// Ranges of whole sectors.
    Sectors,
    /// Ranges of bytes of which each lies between two multiples of this number.
    Within(u64),
    /// Anything.
    All,
}

/// The facts in a format that knows only places.
pub(super) const BLOCKS_ONLY: Holds = Holds {
    places: Places::Blocks,
    device: false,
    op: false,
    arrival_unit_ns: None,
    needs_arrival: false,
    compute: false,
    response: false,
    label: false,
    process: false,
};

/// The facts in a block trace with time, device and direction: the shape that most of them share.
pub(super) const TIMED_SECTORS: Holds = Holds {
    places: Places::Sectors,
    device: true,
    op: true,
    arrival_unit_ns: Some(1),
    needs_arrival: true,
    ..BLOCKS_ONLY
};

/// Options of the reader of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many requests are put in order of time before one is given out. 1024 is far above the
    /// steps back of merged traces, and 100 KiB; 0 refuses any step back.
    pub sort_window: usize,
    /// The unit of a time without a decimal point in `disksim`, in nanoseconds: 1 for MQSim's
    /// traces, 1,000,000 for DiskSim's own written without decimals.
    pub whole_time_ns: u64,
    /// Where the columns are. A trace with columns that were told is a `csv`.
    pub columns: Option<csv::Columns>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sort_window: 1024,
            whole_time_ns: 1,
            columns: None,
        }
    }
}

/// The next unit of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A line.
    Line,
    /// So many bytes, at least one.
    Bytes(usize),
}

/// Reads one format. Blank lines never reach it.
///
/// # Examples
/// One block number a line.
///
/// ```
/// use forerun_sim::trace::format::Decode;
/// use forerun_sim::trace::{Cause, Record};
///
/// struct Numbers;
///
/// impl Decode for Numbers {
///     fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
///         let text = String::from_utf8_lossy(line);
///         let number = text.trim().parse().map_err(|_| Cause::Field {
///             field: "block",
///             found: text.to_string(),
///             accepted: "0 to 18446744073709551615",
///         })?;
///         Ok(Some(Record::block(number)))
///     }
/// }
///
/// assert_eq!(Numbers.take(b"17"), Ok(Some(Record::block(17))));
/// assert!(Numbers.take(b"x").is_err());
/// ```
pub trait Decode {
    /// Its next unit.
    fn unit(&self) -> Unit {
        Unit::Line
    }

    /// Takes it. `None` where it is no request: a comment, a header, an event of another kind.
    ///
    /// # Errors
    /// It is not of this format.
    fn take(&mut self, unit: &[u8]) -> Result<Option<Record>, Cause>;

    /// How often the request that was last taken was made, at least once.
    fn repeats(&self) -> u32 {
        1
    }

    /// Requests so far that were none to read or write, or did not say which of the two.
    fn left_out(&self) -> u64 {
        0
    }

    /// The trace is over.
    ///
    /// # Errors
    /// It must not be over here.
    fn end(&mut self) -> Result<(), Cause> {
        Ok(())
    }
}

/// Writes one format.
///
/// # Examples
/// One block number a line.
///
/// ```
/// use forerun_sim::trace::format::Encode;
/// use forerun_sim::trace::{Cause, Place, Record};
///
/// struct Numbers;
///
/// impl Encode for Numbers {
///     fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
///         let Place::Block(number) = record.place else {
///             return Err(Cause::Field {
///                 field: "place",
///                 found: format!("{:?}", record.place),
///                 accepted: "a block",
///             });
///         };
///         out.extend_from_slice(format!("{number}
/// ").as_bytes());
///         Ok(())
///     }
/// }
/// ```
pub trait Encode {
    /// Appends a request, which has nothing the format does not hold.
    ///
    /// # Errors
    /// The format cannot hold this value.
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause>;

    /// Writes the text after the last request.
    ///
    /// # Errors
    /// It cannot be written.
    fn end(&mut self, _out: &mut dyn Write) -> Result<(), Cause> {
        Ok(())
    }
}

/// The format a user names.
///
/// # Errors
/// There is none of this name; the error lists the existing ones.
pub fn parse(name: &str) -> Result<&'static Format, ChoiceError> {
    Format::named(name).ok_or_else(|| ChoiceError::Unknown {
        family: "trace format",
        name: name.to_owned(),
        known: LIST.iter().map(|format| format.name).collect(),
    })
}

impl Format {
    /// The format of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        LIST.iter().find(|format| format.name == name)
    }

    /// The first format that accepts the beginning of a trace: `head`, which is all of it if
    /// `is_whole`.
    #[must_use]
    pub fn guess(head: &[u8], is_whole: bool) -> Option<&'static Self> {
        let fitting = Self::fitting(head, is_whole).next();
        let fitting = fitting.filter(|format| (format.is_sure)(head));
        // A header with a column of another meaning, or a row that is wrong: its reader names it.
        fitting.or_else(|| Self::of_header(head))
    }

    /// The format of a first line that names columns, or the format itself.
    fn of_header(head: &[u8]) -> Option<&'static Self> {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if fio::is_header(line.strip_prefix(MARK).unwrap_or(line)) {
            return Some(&fio::FORMAT);
        }
        if cachelib_kv::is_header(line) {
            return Some(&cachelib_kv::FORMAT);
        }
        if cachelib_block::is_header(line) {
            return Some(&cachelib_block::FORMAT);
        }
        csv::is_header(line).then_some(&csv::FORMAT)
    }

    /// All formats that accept the beginning of a trace.
    pub(super) fn fitting(head: &[u8], is_whole: bool) -> impl Iterator<Item = &'static Self> {
        let fits = move |format: &&Self| format.accepted(head, is_whole).is_none();
        LIST.iter().filter(fits)
    }

    /// The tool that reads the records of a beginning which no format here is; none if it is not known.
    #[must_use]
    pub fn foreign(head: &[u8]) -> Option<&'static str> {
        // `BLK_IO_TRACE_MAGIC` and its version, in either order of bytes.
        let is_blktrace = head.starts_with(b"\x07tae") || head.starts_with(b"eat\x07");
        if is_blktrace {
            return Some("binary blktrace: give the text that blkparse makes of it");
        }
        let is_srt = head.starts_with(b"$$TR_IOREC");
        is_srt.then_some(
            "HP's SRT: give its requests as a csv (--columns) or in DiskSim's ascii format",
        )
    }

    /// Of the formats in lines the one that accepts most of a beginning that none accepts all of:
    /// the trace is damaged, and its reader says where.
    #[must_use]
    pub fn nearest(head: &[u8], is_whole: bool) -> Option<&'static Self> {
        if Self::fitting(head, is_whole).next().is_some() {
            return None;
        }
        let is_lines = |format: &&Self| (format.reader)(&Options::default()).unit() == Unit::Line;
        let accepted =
            |format: &'static Self| (format.accepted(head, is_whole).unwrap_or(0), format);
        // Of several that accept as much, the first.
        let all = LIST.iter().filter(is_lines).map(accepted).rev();
        let (most, format) = all.max_by_key(|(accepted, _)| *accepted)?;
        (most > 0).then_some(format)
    }

    /// How many requests the reader finds in the beginning of a trace before a fault; `None` if
    /// there is a request and no fault.
    fn accepted(&self, head: &[u8], is_whole: bool) -> Option<usize> {
        let mut decoder = (self.reader)(&Options::default());
        let mut rest = match decoder.unit() {
            Unit::Line => head.strip_prefix(MARK).unwrap_or(head),
            Unit::Bytes(_) => head,
        };
        let mut found = 0;
        for _ in 0..GUESS_UNITS {
            let unit;
            match next_unit(rest, decoder.unit(), is_whole) {
                Some(parts) => (unit, rest) = parts,
                None => break,
            }
            let blank = decoder.unit() == Unit::Line && unit.trim_ascii().is_empty();
            match if blank { Ok(None) } else { decoder.take(unit) } {
                Ok(record) => found += usize::from(record.is_some()),
                Err(_) => return Some(found),
            }
        }
        let is_good = found > 0 && (!is_whole || !rest.is_empty() || decoder.end().is_ok());
        (!is_good).then_some(found)
    }
}

/// The next line or record of a beginning, and the rest; `None` if it is not all there.
fn next_unit(rest: &[u8], unit: Unit, is_whole: bool) -> Option<(&[u8], &[u8])> {
    match unit {
        Unit::Bytes(bytes) => rest.split_at_checked(bytes),
        Unit::Line => match rest.iter().position(|byte| *byte == b'\n') {
            Some(end) => Some((&rest[..end], &rest[end + 1..])),
            None => (is_whole && !rest.is_empty()).then_some((rest, &[][..])),
        },
    }
}

/// Any beginning that the reader accepts is of its format.
pub(super) fn any_of_it(_: &[u8]) -> bool {
    true
}

/// Whether the cells of this column, counted from 0, are whole numbers in a range.
pub(super) fn cells_in(head: &[u8], column: usize, range: core::ops::Range<u64>) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n');
    // The last line may be cut off.
    let mut whole = lines.by_ref().take(GUESS_UNITS).peekable();
    let mut is_in = true;
    while let Some(line) = whole.next() {
        if line.trim_ascii().is_empty() || (whole.peek().is_none() && !head.ends_with(b"\n")) {
            continue;
        }
        let cell = line.split(|byte| *byte == b',').nth(column);
        let number = cell.and_then(|cell| super::fields::digits(cell.trim_ascii()));
        is_in &= number.is_some_and(|number| range.contains(&number));
    }
    is_in
}

/// Whether a line is a comment in the formats that have no other use for `#`.
pub(super) fn is_comment(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

/// The sectors of a request; the writer has made them whole.
pub(super) fn sectors_of(record: &Record) -> (u64, u64) {
    match record.place {
        Place::Byte(offset) => (offset / SECTOR, u64::from(record.bytes) / SECTOR),
        Place::Block(number) => (number, 1),
    }
}

/// The first byte of a request.
pub(super) fn offset_of(record: &Record) -> u64 {
    match record.place {
        Place::Byte(place) | Place::Block(place) => place,
    }
}

/// The time of a request, 0 if it has none.
pub(super) fn arrival_of(record: &Record) -> u64 {
    record.arrival.map_or(0, |arrival| arrival.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_known() {
        for (at, format) in LIST.iter().enumerate() {
            assert_eq!(
                Format::named(format.name).map(|f| f.name),
                Some(format.name)
            );
            assert!(LIST[..at].iter().all(|other| other.name != format.name));
        }
        let message = parse("lisr").unwrap_err().to_string();
        assert!(message.contains("\"lisr\": there is fio, "), "{message}");
    }

    #[test]
    fn a_beginning_is_guessed() {
        let cases = [
            ("0.000 0 2389632 16 1\n", "disksim"),
            ("938513000 4 264719034 16 0\n", "disksim"),
            ("R Miss 564347 2 14095.370 13876.270\n", "disksim-validate"),
            ("0\n*\n1\n", "lirs"),
            ("a\nb\n", "plain"),
            ("0,20941264,8192,W,0.551706\n", "spc"),
            (
                "128166372003061629,hm,1,Read,383496192,32768,58000\n",
                "msr",
            ),
            ("fio version 3 iolog\n0 f add\n1 f read 0 4096\n", "fio"),
            // Names of files fill the beginning.
            ("fio version 2 iolog\na add\nb add\n", "fio"),
            ("\u{feff}fio version 3 iolog\r\n0 a add\r\n", "fio"),
            (
                "  8,0    3        1     0.000000000   697  Q   R 223490 + 8 [cp]\n",
                "blkparse",
            ),
            ("time_s,obj_id,obj_size\n1,2,3\n", "csv"),
            ("time\tkey\n1\t2\n", "csv"),
            ("0,a/b,4096\n1,a/c,4096\n", "csv"),
            ("1 1 0 0\n2 1 0 1\n", "arc"),
            ("0,R,126703644672,4096,1577808000000626\n", "alibaba"),
            ("1538323200,12910952,128,0,1063\n", "tencent"),
            ("0,nz:u:eeW511W3dcH3de3d15ec,22,304,647,get,0\n", "twitter"),
            (
                "key,op,size,op_count,key_size\n1668757755,SET,82,1,40\n",
                "cachelib-kv",
            ),
        ];
        for (head, name) in cases {
            let guess = Format::guess(head.as_bytes(), true).map(|format| format.name);
            assert_eq!(guess, Some(name), "{head}");
        }
        assert!(Format::guess(b"once upon a time, there was\n", true).is_none());
        // Time, object and size, or time, offset and bytes.
        for numbers in [
            "0,1048576,4096\n1,1052672,4096\n",
            "0.5,7,512\n",
            "\u{feff}1,2,3\n",
        ] {
            assert!(
                Format::guess(numbers.as_bytes(), true).is_none(),
                "{numbers}"
            );
        }
        let nearest = |head: &[u8]| Format::nearest(head, true).map(|format| format.name);
        assert_eq!(nearest(b"0,8,512,r,0.1\n0,16,5"), Some("spc"));
        assert_eq!(nearest(b"1\n2\nthree\n"), Some("lirs"));
        assert_eq!(nearest(b"once upon a time, there was\n"), None);
        assert!(Format::guess(b"", true).is_none());
    }
}
