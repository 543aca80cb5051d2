//! A trace as requests for blocks: the blocks, their disk, and the computing time before them.
//!
//! A stream between the records of a trace and its hosts: it keeps the numbers of the trace's
//! devices and processes, and the request before of each reader, nothing else.
//!
//! ```text
//! Record, Record, ..  ->  [writes left out, devices numbered, gaps turned into computing]  ->  Request, ..
//! ```
//!
//! Writes are left out unless they are wanted. The computing before a request is the time set by
//! the caller; else the time in the trace; else the gap between two arrivals less the first one's
//! response. Before the very first request it is left out.
//!
//! A [`Source`] opens the same trace as often as it is asked to: a run that keeps nothing reads it
//! once to learn its contents, and once more to run it.

use core::ops::Range;
use std::collections::BTreeMap;

use forerun_core::Nanos;
use forerun_core::hinted::Board;

use super::pacing::Readers;
use crate::trace::{Op, Place, Position, Record, TraceError};

/// A record and where it stands in its file, or why there is none.
pub type Placed = Result<(Option<Position>, Record), TraceError>;

/// Records, however they come about.
pub type Records<'a> = Box<dyn Iterator<Item = Placed> + 'a>;

/// How records become requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// Size of a block.
    pub block_bytes: u32,
    /// Whether writes count as reads.
    pub with_writes: bool,
    /// The computing before each request but the first, in place of the trace's.
    pub think: Option<Nanos>,
}

/// Begins to read a trace.
pub type Open = Box<dyn Fn() -> Result<Records<'static>, TraceError> + Send + Sync>;

/// A trace that can be read again and again.
pub struct Source {
    /// From its beginning.
    pub open: Open,
    /// How its records become requests.
    pub manner: Manner,
}

impl core::fmt::Debug for Source {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Source")
            .field("manner", &self.manner)
            .finish_non_exhaustive()
    }
}

/// Why there are no requests, or no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestsError {
    /// The trace cannot be read.
    Read(TraceError),
    /// More blocks than can be numbered.
    Blocks,
    /// More than there is room to keep; how many references were, of how many blocks, and where
    /// the next one stands.
    Kept {
        /// References that were kept.
        references: u64,
        /// Different blocks they are of.
        blocks: u64,
        /// Where the next one stands.
        at: Option<Position>,
    },
    /// More devices than there can be disks.
    Devices,
    /// One reader is ahead of another by so many requests, of which no more are kept.
    Ahead(u64),
    /// No read, only this number of writes.
    Nothing {
        /// Writes that were left out.
        writes: u64,
    },
    /// It is another trace than when it was read before.
    Changed,
}

impl core::fmt::Display for RequestsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Blocks => write!(f, "more than {} different blocks", u32::MAX - 1),
            Self::Kept {
                references: 0,
                blocks,
                ..
            } => write!(f, "no room for {blocks} different blocks"),
            Self::Kept {
                references, blocks, ..
            } => {
                write!(
                    f,
                    "no room for more than {references} references to {blocks} blocks"
                )
            }
            Self::Devices => write!(f, "more than {} devices", Board::DISKS_MAX),
            Self::Ahead(requests) => write!(
                f,
                "one reader is {requests} requests ahead of another, and no more are kept"
            ),
            Self::Nothing { writes: 0 } => f.write_str("there is no read in it"),
            Self::Nothing { writes } => write!(
                f,
                "there is no read in it, only writes ({writes}), which --writes counts as reads"
            ),
            Self::Changed => f.write_str("it changed while it was simulated"),
        }
    }
}

impl core::error::Error for RequestsError {}

impl From<TraceError> for RequestsError {
    fn from(error: TraceError) -> Self {
        Self::Read(error)
    }
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The disk of the trace, numbered in the order of first use.
    pub device: u16,
    /// The process that makes it, numbered in the order of first use.
    pub process: u32,
    /// Its first block.
    pub first: u64,
    /// Its last block.
    pub last: u64,
    /// Its first byte, of its device.
    pub begin: u64,
    /// How many bytes; at least one.
    pub bytes: u64,
    /// The computing before it.
    pub compute: Nanos,
    /// When it arrived, from the first one of the trace on; zero where the trace has no times.
    pub arrival: Nanos,
    /// Where it stands.
    pub at: Option<Position>,
}

/// Facts learned from a trace on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// Devices so far.
    pub devices: u16,
    /// Writes that were left out.
    pub writes: u64,
    /// Whether requests state the computing time before them.
    pub says_compute: bool,
    /// Whether requests have a time of arrival.
    pub says_arrival: bool,
    /// Requests without one.
    pub untimed: u64,
    /// Where the first of these stands.
    pub untimed_at: Option<Position>,
    /// Objects with a size that is not a block's, which count as one block each.
    pub sized: u64,
    /// Whether requests name their process.
    pub says_process: bool,
    /// When the last one arrived, from the first one on.
    pub until: Nanos,
    /// Whether blocks have names, so that their numbers are no places.
    pub has_names: bool,
}

/// The requests of one reader so far.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    is_any: bool,
    /// When the last one with a time arrived, and how long it took.
    last: Option<(Nanos, Nanos)>,
}

/// See the [module](self).
pub struct Requests<'a> {
    records: Records<'a>,
    manner: Manner,
    devices: BTreeMap<u32, u16>,
    /// The device of the request before, and its number.
    device: Option<(u32, u16)>,
    processes: BTreeMap<Option<u32>, u32>,
    /// The process of the request before, and its number.
    process: Option<(Option<u32>, u32)>,
    /// When the first request arrived.
    first: Option<Nanos>,
    readers: Readers,
    /// Of each reader.
    before: Vec<Before>,
    told: Told,
}

impl Source {
    /// The requests, from the first one on.
    ///
    /// # Errors
    /// The trace cannot be opened.
    pub fn requests(&self) -> Result<Requests<'static>, RequestsError> {
        Ok(Requests::new((self.open)()?, self.manner))
    }

    /// Position of the first request for a block, if its file has any.
    #[must_use]
    pub fn position_of(&self, device: u16, block: u64) -> Option<Position> {
        let is_asked = |r: &Request| r.device == device && (r.first..=r.last).contains(&block);
        let requests = self.requests().ok()?;
        requests.map_while(Result::ok).find(is_asked)?.at
    }
}

impl<'a> Requests<'a> {
    /// The requests that these records are.
    #[must_use]
    pub fn new(records: Records<'a>, manner: Manner) -> Self {
        Self {
            records,
            manner,
            devices: BTreeMap::new(),
            device: None,
            processes: BTreeMap::new(),
            process: None,
            first: None,
            readers: Readers::One,
            before: Vec::new(),
            told: Told::default(),
        }
    }

    /// The same with these readers. Where there are several, the computing is since a reader's own last request,
    /// or, before its first one, since the first of all.
    #[must_use]
    pub fn by(self, readers: Readers) -> Self {
        Self { readers, ..self }
    }

    /// Facts learned so far.
    #[must_use]
    pub fn told(&self) -> Told {
        self.told
    }

    fn request(&mut self, at: Option<Position>, record: &Record) -> Result<Request, RequestsError> {
        let blocks = record.blocks(self.manner.block_bytes);
        self.told.has_names |= record.is_named;
        let device = self.device(record.device)?;
        let process = self.process(record.process);
        let arrival = self.arrival(record);
        if arrival.is_none() {
            self.told.untimed_at = match self.told.untimed {
                0 => at,
                _ => self.told.untimed_at,
            };
            self.told.untimed += 1;
        }
        let block = u64::from(self.manner.block_bytes);
        let (begin, bytes) = match record.place {
            Place::Byte(at) => (at, u64::from(record.bytes.max(1))),
            Place::Block(number) => (number.saturating_mul(block), block),
        };
        let is_object = matches!(record.place, Place::Block(_)) && record.bytes > 0;
        self.told.sized += u64::from(is_object && record.bytes != self.manner.block_bytes);
        let reader = self.readers.of(device, process);
        Ok(Request {
            device,
            process,
            first: *blocks.start(),
            last: *blocks.end(),
            begin,
            bytes,
            compute: self.compute(record, arrival, reader),
            arrival: arrival.unwrap_or_default(),
            at,
        })
    }

    /// When it arrived, from the first one on.
    fn arrival(&mut self, record: &Record) -> Option<Nanos> {
        let arrival = record.arrival?;
        self.told.says_arrival = true;
        let since = arrival.since(*self.first.get_or_insert(arrival));
        self.told.until = self.told.until.max(since);
        Some(since)
    }

    fn device(&mut self, device: u32) -> Result<u16, RequestsError> {
        if let Some((_, number)) = self.device.filter(|(known, _)| *known == device) {
            return Ok(number);
        }
        let next = self.devices.len() as u16;
        let number = *self.devices.entry(device).or_insert(next);
        if number == Board::DISKS_MAX {
            return Err(RequestsError::Devices);
        }
        self.device = Some((device, number));
        self.told.devices = self.devices.len() as u16;
        Ok(number)
    }

    fn process(&mut self, process: Option<u32>) -> u32 {
        if let Some((_, number)) = self.process.filter(|(known, _)| *known == process) {
            return number;
        }
        self.told.says_process |= process.is_some();
        // A process has a number of 32 bits, or none.
        let next = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        let number = *self.processes.entry(process).or_insert(next);
        self.process = Some((process, number));
        number
    }

    /// The computing time before a request.
    fn compute(&mut self, record: &Record, arrival: Option<Nanos>, reader: usize) -> Nanos {
        self.told.says_compute |= record.compute.is_some();
        if self.before.len() <= reader {
            self.before.resize(reader + 1, Before::default());
        }
        let before = &mut self.before[reader];
        let is_first = !core::mem::replace(&mut before.is_any, true);
        let gap = arrival.map(|arrival| {
            let took = record.response.unwrap_or_default();
            let last = before.last.replace((arrival, took));
            let (last, took) = last.unwrap_or((arrival, Nanos(0)));
            Nanos(arrival.since(last).0.saturating_sub(took.0))
        });
        let think = self.manner.think;
        match is_first {
            true if self.readers != Readers::One && think.is_none() => arrival.unwrap_or_default(),
            true => Nanos(0),
            false => think.or(record.compute).or(gap).unwrap_or_default(),
        }
    }
}

impl Iterator for Requests<'_> {
    type Item = Result<Request, RequestsError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (at, record) = match self.records.next()? {
                Ok(placed) => placed,
                Err(error) => return Some(Err(error.into())),
            };
            if record.op == Op::Write && !self.manner.with_writes {
                self.told.writes += 1;
                continue;
            }
            return Some(self.request(at, &record));
        }
    }
}

impl Request {
    /// Its blocks.
    pub fn blocks(&self) -> impl Iterator<Item = u64> + use<> {
        self.first..=self.last
    }

    /// Its bytes in one of its blocks, from the begin of that one on.
    #[must_use]
    pub fn part(&self, block: u64, block_bytes: u32) -> Range<u64> {
        let bytes = u64::from(block_bytes);
        let at = block.saturating_mul(bytes);
        let end = self.begin.saturating_add(self.bytes).saturating_sub(at);
        self.begin.saturating_sub(at)..end.min(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(records: Vec<Record>, with_writes: bool) -> Source {
        let open = move || -> Result<Records<'static>, TraceError> {
            let records = records.clone().into_iter();
            Ok(Box::new(records.map(|record| Ok((None, record)))))
        };
        let manner = Manner {
            block_bytes: 8192,
            with_writes,
            think: None,
        };
        let open = Box::new(open);
        Source { open, manner }
    }

    fn record(device: u32, at: u64, bytes: u32, arrival: u64) -> Record {
        Record {
            device,
            arrival: Some(Nanos(arrival)),
            ..Record::range(at, bytes).unwrap()
        }
    }

    #[test]
    fn a_request_is_all_its_blocks_and_gaps_are_computing() {
        let mut writes = record(9, 0, 512, 20);
        writes.op = Op::Write;
        let mut answered = record(7, 8191, 2, 10);
        answered.response = Some(Nanos(4));
        let records = vec![answered, writes, record(3, 0, 1, 30), record(7, 0, 0, 31)];
        let read: Vec<Request> = source(records.clone(), false)
            .requests()
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let short = |r: &Request| (r.device, r.first, r.last, r.compute.0);
        let found: Vec<_> = read.iter().map(short).collect();
        assert_eq!(found, [(0, 0, 1, 0), (1, 0, 0, 16), (0, 0, 0, 1)]);
        assert_eq!((read[0].begin, read[0].bytes), (8191, 2));
        assert_eq!(
            [0, 1].map(|block| read[0].part(block, 8192)),
            [8191..8192, 0..1]
        );
        let all = source(records, true).requests().unwrap();
        assert_eq!(all.count(), 4);
    }
}
