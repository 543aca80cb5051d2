//! A trace as references to blocks, and where these blocks lie on so many disks.
//!
//! ```text
//! Record, Record, ..  ->  [blocks numbered densely, in the order of first use]  ->  Reads, Trace
//! ```
//!
//! A request counts once for each block it touches. Writes are left out unless they are wanted. The
//! computing before a request is what the trace says; where it says nothing, the gap between two
//! arrivals less the first one's response; before the very first it is left out.
//!
//! Without a number of disks each of the trace's devices is a disk. With one, blocks are striped
//! over them one by one. Blocks that the trace addresses lie at their address; those it only
//! numbers lie in the order of first use, as do those of several devices that share an array.

use std::collections::BTreeMap;

use forerun_core::hinted::{BlockNo, Setup};
use forerun_core::{Bytes, DeviceId, Nanos};

use crate::count::Numbering;
use crate::hinted::{Place, Reads, Reference};
use crate::trace::{self, Access, Op, Position, Record, Trace, TraceError};

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    blocks: Vec<Block>,
    references: Vec<Known>,
    devices: u16,
    /// Writes that were left out.
    pub writes: u64,
    /// Whether requests say what was computed before them.
    pub says_compute: bool,
    /// Whether requests say when they arrived.
    pub says_arrival: bool,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    device: u16,
    number: u64,
    is_address: bool,
    seen: Option<Position>,
}

/// A reference, and the computing before it.
#[derive(Clone, Copy, Debug)]
struct Known {
    block: u32,
    compute: Nanos,
}

/// Where blocks lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// At their number.
    Address,
    /// In the order of first use.
    Dense,
}

/// Why requests make no references.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordedError {
    /// The trace cannot be read.
    Read(TraceError),
    /// More references, or blocks, than can be numbered.
    Long,
    /// More devices than there can be disks.
    Devices,
    /// Nothing but writes.
    Nothing,
}

impl core::fmt::Display for RecordedError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Long => write!(f, "more than {} references to blocks", u32::MAX - 2),
            Self::Devices => write!(f, "more than {} devices: give --disks", Setup::DISKS_MAX),
            Self::Nothing => f.write_str("there is no read in it, only writes: give --writes"),
        }
    }
}

impl core::error::Error for RecordedError {}

/// What is being read.
#[derive(Default)]
struct Reading {
    recorded: Recorded,
    /// The blocks of each device by number, and their dense numbers.
    known: BTreeMap<u32, (Numbering, Vec<u32>)>,
    /// When the request before arrived, and how long it took.
    last: Option<(Nanos, Nanos)>,
}

impl Recorded {
    /// The references of a trace: each request with where it stands in its file.
    ///
    /// # Errors
    /// See [`RecordedError`].
    pub fn of(
        records: impl IntoIterator<Item = Result<(Option<Position>, Record), TraceError>>,
        block_bytes: u32,
        with_writes: bool,
    ) -> Result<Self, RecordedError> {
        let mut reading = Reading::default();
        for record in records {
            let (at, record) = record.map_err(RecordedError::Read)?;
            if record.op == Op::Write && !with_writes {
                reading.recorded.writes += 1;
                continue;
            }
            reading.add(at, &record, block_bytes)?;
        }
        if reading.recorded.references.is_empty() {
            return Err(RecordedError::Nothing);
        }
        Ok(reading.recorded)
    }

    /// The same, with this computed before each reference.
    #[must_use]
    pub fn with_compute(mut self, compute: Nanos) -> Self {
        for known in self.references.iter_mut().skip(1) {
            known.compute = compute;
        }
        self
    }

    /// The block of this number, of whichever device has it first.
    #[must_use]
    pub fn block(&self, number: u64) -> Option<BlockNo> {
        let at = self
            .blocks
            .iter()
            .position(|block| block.number == number)?;
        u32::try_from(at).ok().map(BlockNo)
    }

    /// How many disks it lies on if there were so many wanted.
    #[must_use]
    pub fn disks(&self, wanted: Option<u16>) -> u16 {
        wanted.unwrap_or(self.devices).max(1)
    }

    /// The first block that ends beyond so many bytes of its disk: where the trace asks for it,
    /// its number, and its end.
    #[must_use]
    pub fn beyond(
        &self,
        reads: &Reads,
        block_bytes: u32,
        capacity: Bytes,
    ) -> Option<(Option<Position>, u64, u64)> {
        let mut all = self.blocks.iter().zip(&reads.places);
        all.find_map(|(block, place)| {
            let end = place.at.0.saturating_add(block_bytes.into());
            (end > capacity.0).then_some((block.seen, block.number, end))
        })
    }

    /// Where each block lies in the order that is striped.
    fn numbers(&self, is_striped: bool, layout: Option<Layout>) -> Vec<u64> {
        let is_mixed = is_striped && self.devices > 1;
        let mut next = vec![0u64; usize::from(self.devices).max(1)];
        let number = |block: &Block| {
            let dense = &mut next[if is_mixed {
                0
            } else {
                usize::from(block.device)
            }];
            *dense += 1;
            match layout {
                Some(Layout::Dense) => *dense - 1,
                Some(Layout::Address) if !is_mixed => block.number,
                None if block.is_address && !is_mixed => block.number,
                _ => *dense - 1,
            }
        };
        self.blocks.iter().map(number).collect()
    }

    /// The references for a planner.
    #[must_use]
    pub fn reads(&self, disks: Option<u16>, layout: Option<Layout>, block_bytes: u32) -> Reads {
        let numbers = self.numbers(disks.is_some(), layout);
        let places = self.blocks.iter().zip(numbers);
        let places = places.map(|(block, number)| match disks {
            Some(disks) => Place::striped(number, disks, block_bytes.into()),
            None => Place {
                disk: DeviceId(block.device),
                at: Bytes(number.saturating_mul(block_bytes.into())),
            },
        });
        let after = self.references.iter().skip(1).map(|known| known.compute);
        let after = after.chain([Nanos(0)]);
        let references = self.references.iter().zip(after);
        let references = references.map(|(known, compute)| Reference {
            block: BlockNo(known.block),
            compute,
        });
        Reads {
            references: references.collect(),
            places: places.collect(),
        }
    }

    /// The references as reads of one file, which lies on the array as the blocks do.
    ///
    /// # Errors
    /// None, as there is one file and one reader.
    pub fn workload(
        &self,
        layout: Option<Layout>,
        block_bytes: u32,
    ) -> Result<Trace, trace::AccessError> {
        let numbers = self.numbers(true, layout);
        let bytes = u64::from(block_bytes);
        let last = numbers.iter().max().copied().unwrap_or(0);
        let access = |known: &Known| Access {
            reader: 0,
            offset: numbers[known.block as usize].saturating_mul(bytes),
            bytes,
            think_ns: known.compute.0,
        };
        let file = Bytes(last.saturating_add(1).saturating_mul(bytes));
        Trace::new(vec![file], vec![0], self.references.iter().map(access))
    }
}

impl Reading {
    fn add(
        &mut self,
        at: Option<Position>,
        record: &Record,
        block_bytes: u32,
    ) -> Result<(), RecordedError> {
        let mut compute = self.compute(record);
        let is_address = matches!(record.place, trace::Place::Byte(_));
        let devices = self.known.len();
        if devices == usize::from(u16::MAX) {
            return Err(RecordedError::Devices);
        }
        let (numbering, dense) = self.known.entry(record.device).or_default();
        let recorded = &mut self.recorded;
        if dense.is_empty() {
            recorded.devices = (devices + 1) as u16;
        }
        for number in record.blocks(block_bytes) {
            let local = numbering.number(number).ok_or(RecordedError::Long)? as usize;
            if local == dense.len() {
                let next = recorded.blocks.len();
                dense.push(u32::try_from(next).map_err(|_| RecordedError::Long)?);
                let first = dense.first().map_or(next, |first| *first as usize);
                let device = recorded.blocks.get(first).map(|block| block.device);
                recorded.blocks.push(Block {
                    device: device.unwrap_or(devices as u16),
                    number,
                    is_address,
                    seen: at,
                });
            }
            if recorded.references.len() >= (u32::MAX - 2) as usize {
                return Err(RecordedError::Long);
            }
            let block = dense[local];
            recorded.references.push(Known { block, compute });
            compute = Nanos(0);
        }
        Ok(())
    }

    /// What was computed before a request.
    fn compute(&mut self, record: &Record) -> Nanos {
        let is_first = self.recorded.references.is_empty();
        self.recorded.says_compute |= record.compute.is_some();
        let response = record.response.unwrap_or_default();
        let gap = record.arrival.map(|arrival| {
            self.recorded.says_arrival = true;
            let last = self.last.replace((arrival, response));
            let (before, response) = last.unwrap_or((arrival, Nanos(0)));
            Nanos(arrival.since(before).0.saturating_sub(response.0))
        });
        match record.compute.or(gap) {
            Some(compute) if !is_first => compute,
            _ => Nanos(0),
        }
    }
}
