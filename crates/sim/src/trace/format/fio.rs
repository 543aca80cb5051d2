//! fio's I/O logs, versions 2 and 3, as `write_iolog` makes them and `read_iolog` takes them.
//!
//! ```text
//! fio version 2 iolog              fio version 3 iolog
//! FILE add|open|close              TIME_US FILE add|open|close
//! FILE read|write OFFSET BYTES     TIME_US FILE read|write OFFSET BYTES
//! FILE wait US 0
//! ```
//!
//! The files are the devices, numbered in the order of first mention. Syncs and trims are no
//! requests here. Version 2 has no times but waits, each of microseconds and "relative to the previous wait", and
//! "everything below 100 is discarded": from the first one on they add up to arrivals. That is fio's documentation; its
//! program sleeps until so many milliseconds after its beginning. In version 3 times are those since the beginning, which
//! fio writes in microseconds; it ignores waits there, and so does this. Version 1 (without a first line) is refused, as
//! fio itself does.

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{Names, range, split, time};
use super::super::record::{Op, Record};
use super::{BLOCKS_ONLY, Decode, Encode, Format, Holds, Places, arrival_of, offset_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "fio",
    summary: "fio's iolog, versions 2 and 3",
    source: "fio documentation, Trace file format v2 and v3; iolog.c",
    form: VERSION_3,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: Holds {
        places: Places::Bytes,
        device: true,
        op: true,
        arrival_unit_ns: Some(MICROSECOND),
        needs_arrival: true,
        ..BLOCKS_ONLY
    },
    reader: |_| {
        Box::new(Fio {
            version: None,
            files: Names::new(FILES_MAX),
            waited: None,
        })
    },
    writer: || Box::new(Writer::default()),
};

const HEADS: &str = "\"fio version 2 iolog\" or \"fio version 3 iolog\" on the first line";
const VERSION_2: &str = "file action [offset bytes]";
const VERSION_3: &str = "time_us file action [offset bytes]";
const ACTIONS: &str =
    "add, open, close, unlink, read, write, sync, datasync, sync_file_range, trim or wait";

const MICROSECOND: u64 = 1000;
/// Shorter waits are discarded.
const WAIT_LEAST: u64 = 100 * MICROSECOND;
/// As many files as a job of fio can sensibly have.
const FILES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

/// The version that a first line names.
fn version_of(line: &[u8]) -> Option<Version> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(Version::Two),
        b"fio version 3 iolog" => Some(Version::Three),
        _ => None,
    }
}

/// Whether a first line is the format's: no other has one like it, and hundreds of files may be named before the first
/// request.
pub(super) fn is_header(line: &[u8]) -> bool {
    version_of(line).is_some()
}

struct Fio {
    version: Option<Version>,
    files: Names,
    /// The waits so far, in version 2.
    waited: Option<u64>,
}

impl Decode for Fio {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        let Some(version) = self.version else {
            self.version = Some(version_of(line).ok_or_else(|| Cause::form(line, HEADS))?);
            return Ok(None);
        };
        let mut words = split(line);
        let (form, arrival) = match version {
            Version::Two => (VERSION_2, self.waited),
            Version::Three => {
                let word = words.next().unwrap_or_default();
                (VERSION_3, Some(time("time_us", word, MICROSECOND)?))
            }
        };
        let (file, action) = (words.next(), words.next());
        let (at, bytes) = (words.next(), words.next());
        let (Some(file), Some(action), None) = (file, action, words.next()) else {
            return Err(Cause::form(line, form));
        };
        let device = self.files.number(file)?;
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"wait" if version == Version::Two => {
                return self.wait(at.unwrap_or_default()).map(|()| None);
            }
            b"add" | b"open" | b"close" | b"unlink" | b"sync" | b"datasync"
            | b"sync_file_range" | b"trim" | b"wait" => return Ok(None),
            _ => return Err(Cause::field("action", action, ACTIONS)),
        };
        let (Some(at), Some(bytes)) = (at, bytes) else {
            return Err(Cause::form(line, form));
        };
        Ok(Some(Record {
            device,
            op,
            arrival: arrival.map(Nanos),
            ..range(at, bytes)?
        }))
    }
}

impl Fio {
    fn wait(&mut self, micros: &[u8]) -> Result<(), Cause> {
        let wait = time("wait", micros, MICROSECOND)?;
        let wait = if wait < WAIT_LEAST { 0 } else { wait };
        let sum = self.waited.unwrap_or(0).checked_add(wait);
        let accepted = "waits that add up to less than 2^64 ns";
        self.waited = Some(sum.ok_or_else(|| Cause::field("wait", micros, accepted))?);
        Ok(())
    }
}

/// The devices that were mentioned.
#[derive(Default)]
struct Writer {
    mentioned: std::collections::BTreeSet<u32>,
}

impl Encode for Writer {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        if self.mentioned.is_empty() {
            out.extend_from_slice(b"fio version 3 iolog\n");
        }
        let (device, micros) = (record.device, arrival_of(record) / MICROSECOND);
        if self.mentioned.insert(device) {
            for action in ["add", "open"] {
                out.extend_from_slice(format!("{micros} device{device} {action}\n").as_bytes());
            }
        }
        let action = record.op.either("read", "write");
        let (offset, bytes) = (offset_of(record), record.bytes);
        let line = format!("{micros} device{device} {action} {offset} {bytes}\n");
        out.extend_from_slice(line.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    fn read(text: &str) -> Result<Vec<Record>, Cause> {
        let mut fio = (FORMAT.reader)(&Options::default());
        let records = text.lines().map(|line| fio.take(line.as_bytes()));
        records.filter_map(Result::transpose).collect()
    }

    #[test]
    fn version_two_has_times_once_it_waits() {
        let text = "fio version 2 iolog\na add\nb add\na open\na read 0 4096\na wait 500 0\n\
                    b write 8 1\na sync 0 0\na wait 99 0\na read 0 1\na wait 100 0\na read 1 1\na close\n";
        let found = read(text).unwrap();
        let arrivals: Vec<_> = found.iter().map(|r| r.arrival.map(|t| t.0)).collect();
        assert_eq!(
            arrivals,
            [None, Some(500_000), Some(500_000), Some(600_000)]
        );
        assert_eq!((found[1].device, found[1].op), (1, Op::Write));
    }

    #[test]
    fn version_three_begins_lines_with_microseconds() {
        let found = read("fio version 3 iolog\n0 a add\n12 a read 4096 512\n").unwrap();
        assert_eq!(found[0].arrival, Some(Nanos(12_000)));
        assert_eq!(offset_of(&found[0]), 4096);
    }

    #[test]
    fn other_lines_are_refused() {
        assert!(read("a add\n").is_err());
        for line in ["a", "a read 1", "a read 1 2 3", "a jump 1 2", "a read x 1"] {
            assert!(
                read(&format!("fio version 2 iolog\n{line}\n")).is_err(),
                "{line}"
            );
        }
    }
}
