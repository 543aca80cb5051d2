//! blkparse's default text: actions of Linux's block layer, of which the queued requests are read.
//!
//! ```text
//! 8,0    3        1     0.000000000   697  Q   R 223490 + 8 [cp]
//! device cpu  sequence  seconds       pid action rwbs sector + sectors [process]
//! ```
//!
//! `Q` is a request as the file system issued it, before merging; the later actions of its life
//! are not read, nor are discards, flushes without data and messages. A summary, from its first
//! `CPU` line on, is skipped up to the next action: logs one behind the other have one each. A
//! trace of other actions only is an error at its end.
//! Devices are numbered in the order of first use. Other output formats (`-f`) are not read.

use std::io::Write;

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{Names, in_units, sectors, small, split, time};
use super::super::record::{Op, Record};
use super::{Decode, Encode, Format, Holds, TIMED_SECTORS, arrival_of, sectors_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "blkparse",
    summary: "text of Linux's blkparse, the queued (Q) requests",
    source: "blkparse(1), output description; blkparse_fmt.c",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: Holds {
        process: true,
        ..TIMED_SECTORS
    },
    reader: |_| {
        Box::new(Blkparse {
            devices: Names::new(DEVICES_MAX),
            other: None,
            is_over: false,
        })
    },
    writer: || Box::new(Writer { sequence: 0 }),
};

const FORM: &str = "major,minor cpu sequence seconds pid action rwbs [sector + sectors] ..";

const SECOND: u64 = 1_000_000_000;
/// Linux numbers devices in 32 bits; real traces have far fewer than this.
const DEVICES_MAX: usize = 1 << 16;
/// The actions of blkparse's table, and `m` for messages.
const ACTIONS: &[u8] = b"ABCDFGIMPQRSTUWXm";

struct Blkparse {
    devices: Names,
    /// An action other than a queued request, while there was none of those.
    other: Option<u8>,
    /// In a summary.
    is_over: bool,
}

impl Decode for Blkparse {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        self.is_over |= line.starts_with(b"CPU") || line.starts_with(b"Total (");
        let event = event(line);
        if self.is_over && event.is_err() {
            return Ok(None);
        }
        self.is_over = false;
        let Some(event) = event? else {
            return Ok(None);
        };
        if event.action != b'Q' {
            self.other.get_or_insert(event.action);
            return Ok(None);
        }
        let (Some(op), [Some(first), Some(b"+"), Some(count)]) = (op(event.rwbs), event.place)
        else {
            return Ok(None);
        };
        self.other = Some(b'Q');
        Ok(Some(Record {
            arrival: Some(event.arrival),
            device: self.devices.number(event.device)?,
            process: Some(small("pid", event.pid)?),
            op,
            ..sectors(first, count)?
        }))
    }

    fn end(&mut self) -> Result<(), Cause> {
        match self.other {
            None | Some(b'Q') => Ok(()),
            Some(other) => {
                let accepted = "Q for the requests: record the queue events too";
                Err(Cause::field("action", &[other], accepted))
            }
        }
    }
}

/// The line of an action.
struct Event<'a> {
    device: &'a [u8],
    arrival: Nanos,
    pid: &'a [u8],
    action: u8,
    rwbs: &'a [u8],
    /// `sector + sectors`, of actions that have them.
    place: [Option<&'a [u8]>; 3],
}

/// The action of a line; `None` for unplugging by timer, UT, which alone has two letters.
fn event(line: &[u8]) -> Result<Option<Event<'_>>, Cause> {
    let form = || Cause::form(line, FORM);
    let mut words = split(line);
    let mut next = || words.next().ok_or_else(form);
    let [device, _cpu, _sequence, seconds, pid, action, rwbs] = [
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
    ];
    let arrival = Nanos(time("seconds", seconds, SECOND)?);
    let is_device = device.iter().all(|b| b.is_ascii_digit() || *b == b',');
    match action {
        [action] if is_device && device.contains(&b',') && ACTIONS.contains(action) => {
            Ok(Some(Event {
                device,
                arrival,
                pid,
                action: *action,
                rwbs,
                place: core::array::from_fn(|_| words.next()),
            }))
        }
        b"UT" => Ok(None),
        _ => Err(form()),
    }
}

/// Read or write; `None` for discards and for flushes without data.
fn op(rwbs: &[u8]) -> Option<Op> {
    if rwbs.contains(&b'D') {
        None
    } else if rwbs.contains(&b'R') {
        Some(Op::Read)
    } else {
        rwbs.contains(&b'W').then_some(Op::Write)
    }
}

struct Writer {
    sequence: u64,
}

impl Encode for Writer {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        self.sequence += 1;
        let (first, count) = sectors_of(record);
        // The device number of Linux: 20 bits are the minor one.
        let (major, minor) = (record.device >> 20, record.device & 0xf_ffff);
        Ok(writeln!(
            out,
            "{major:3},{minor:<3} 0 {:8} {:>15} {:5}  Q   {} {first} + {count} [forerun]",
            self.sequence,
            in_units(arrival_of(record), SECOND),
            record.process.unwrap_or(0),
            record.op.either('R', 'W'),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    const TRACE: &str = "\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  Q  WS 223490 + 8 [kjournald]
  8,0    3        0     0.000002197     0  m   N cfq workload slice:300
  8,0    3        3     0.000002197   697  Q  FN [kjournald]
  8,16   1        4     0.000002500   697  Q   D 0 + 8 [fstrim]
  8,16   1        5     1.000002500   697  Q  RA 16 + 8 [cp]
  8,0    0        0     1.000003000     0  UT  N [swapper] 1
CPU0 (sda):
 Reads Queued:           1,        4KiB\t Writes Queued:           1,        4KiB
";

    #[test]
    fn queued_reads_and_writes_are_read() {
        let mut blkparse = (FORMAT.reader)(&Options::default());
        let taken = TRACE.lines().map(|line| blkparse.take(line.as_bytes()));
        let found: Vec<Record> = taken.filter_map(|r| r.unwrap()).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].op, found[0].device), (Op::Write, 0));
        assert_eq!((found[1].op, found[1].device), (Op::Read, 1));
        assert_eq!(found[1].arrival, Some(Nanos(1_000_002_500)));
        assert_eq!(sectors_of(&found[1]), (16, 8));
        assert!(blkparse.end().is_ok());
    }

    #[test]
    fn requests_behind_a_summary_are_read() {
        let mut blkparse = (FORMAT.reader)(&Options::default());
        let both = TRACE.lines().chain(TRACE.lines());
        let taken = both.filter_map(|line| blkparse.take(line.as_bytes()).unwrap());
        let found: Vec<(u32, u64)> = taken
            .map(|record| (record.device, sectors_of(&record).0))
            .collect();
        assert_eq!(found, [(0, 223_490), (1, 16), (0, 223_490), (1, 16)]);
        // A request that is cut is no line of a summary.
        assert!(blkparse.take(b"CPU0 (sda):").is_ok());
        assert!(blkparse.take(b"8,0 3 1 0.5 697 Q R x + 8 [0]").is_err());
    }

    #[test]
    fn a_trace_without_queued_requests_is_an_error_at_its_end() {
        let mut blkparse = (FORMAT.reader)(&Options::default());
        let line = b"8,0 3 1 0.5 697 C R 223490 + 8 [0]";
        assert_eq!(blkparse.take(line), Ok(None));
        assert!(blkparse.end().is_err());
        assert!(blkparse.take(b"8,0 3 1 0.5 697 Y R 1 + 8 [0]").is_err());
        assert!(blkparse.take(b"0.000 0 2389632 16 1").is_err());
    }
}
