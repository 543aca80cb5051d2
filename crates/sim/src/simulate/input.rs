//! The input of a simulation: a trace or a workload, read once for its contents, shared by all runs.
//!
//! A method that must know future references gets all of them, kept in memory, as far as its [`Room`]
//! goes. A trace that only goes to methods that do not is not kept: each run reads it again.
//!
//! ```text
//! trace      -> Source, read again by each run -> Recorded: blocks [and references]
//! workload   -> by name, made anew by each run -> Recorded, if it has one reader
//! synth      -> as a trace: the loop of Kimbrel et al. 1996
//! ```

use core::fmt;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use forerun_core::Nanos;
use forerun_core::spec::{Choice, ChoiceError};

use super::recorded::{Recorded, Room};
use super::requests::{Manner, Placed, Records, Requests, RequestsError, Source};
use super::simulated::Simulated;
use crate::hinted::synth;
use crate::trace::{Op, Place, Record, TraceError};
use crate::workload::{self, Workload};

/// Size of a block where no requests say one, and of the papers.
pub const BLOCK_BYTES: u32 = 8 << 10;

/// Sizes of blocks that follow from a trace lie between these, as the engine takes no others.
const BLOCK_BYTES_LEAST: u32 = 512;
const BLOCK_BYTES_MOST: u32 = 1 << 20;

/// Requests that say how large a block is: as many as take 1 MB.
const SAMPLE_REQUESTS: usize = 10_000;

/// See the [module](self).
#[derive(Debug)]
pub struct Input {
    /// Its contents; none if there is more than one reader.
    pub recorded: Option<Recorded>,
    /// The trace, to be read again.
    pub source: Option<Source>,
    /// The workload by name, if it is one of the list's.
    pub workload: Option<String>,
    /// Size of a block.
    pub block_bytes: u32,
    /// Where compute times come from: `think`, `trace`, `arrivals`, `workload` or `none`.
    pub compute_from: &'static str,
}

/// Why a workload is no input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InputError {
    /// There is no such workload.
    Workload(ChoiceError),
    /// The seed of `synth` cannot be read.
    Seed,
    /// Computing between requests was asked for, which a workload has as a parameter of its own.
    Think,
    /// Its references cannot be kept.
    Requests(RequestsError),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workload(error @ ChoiceError::Unknown { .. }) => write!(f, "{error}, synth"),
            Self::Workload(error) => error.fmt(f),
            Self::Seed => f.write_str("synth takes seed=N"),
            Self::Think => {
                f.write_str("a workload has think_ns, as in sequential(think_ns=1000000)")
            }
            Self::Requests(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for InputError {}

impl From<RequestsError> for InputError {
    fn from(error: RequestsError) -> Self {
        Self::Requests(error)
    }
}

/// The size of blocks that the first requests of a trace suggest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suggested {
    /// The size of a block.
    pub block_bytes: u32,
    /// The most common size of the requests, and how many have it.
    pub common: Option<(u32, u32)>,
    /// How many requests with a size were looked at.
    pub requests: u32,
}

/// The size of blocks by the most common request among the first 10,000, rounded down to a power of two from 512
/// bytes to 1 MiB; and all records.
#[must_use]
pub fn suggest(mut records: Records<'static>, with_writes: bool) -> (Suggested, Records<'static>) {
    let sample: Vec<Placed> = records.by_ref().take(SAMPLE_REQUESTS).collect();
    let mut counts = BTreeMap::<u32, u32>::new();
    for (_, record) in sample.iter().flatten() {
        let is_range = matches!(record.place, Place::Byte(_)) && record.bytes > 0;
        if is_range && (with_writes || record.op == Op::Read) {
            *counts.entry(record.bytes).or_default() += 1;
        }
    }
    let requests = counts.values().sum();
    let common = counts
        .into_iter()
        .max_by_key(|(size, n)| (*n, Reverse(*size)));
    let block_bytes = common.map_or(BLOCK_BYTES, |(size, _)| {
        (1 << size.ilog2()).clamp(BLOCK_BYTES_LEAST, BLOCK_BYTES_MOST)
    });
    let suggested = Suggested {
        block_bytes,
        common,
        requests,
    };
    (suggested, Box::new(sample.into_iter().chain(records)))
}

impl Input {
    /// A trace: `records` are all of it, from its beginning; `source` opens it again.
    ///
    /// # Errors
    /// A trace that cannot be read, or is larger than its room.
    pub fn of_trace(
        records: Records<'static>,
        source: Source,
        room: Room,
    ) -> Result<Self, RequestsError> {
        let recorded = Recorded::of(Requests::new(records, source.manner), Some(room))?;
        let told = recorded.told();
        Ok(Self {
            block_bytes: source.manner.block_bytes,
            compute_from: match (source.manner.think, told.says_compute, told.says_arrival) {
                (Some(_), _, _) => "think",
                (None, true, _) => "trace",
                (None, false, true) => "arrivals",
                (None, false, false) => "none",
            },
            recorded: Some(recorded),
            source: Some(source),
            workload: None,
        })
    }

    /// A workload by its name, or `synth(seed=N)`. Its references are kept where it has one reader and
    /// `room` asks for them.
    ///
    /// # Errors
    /// See [`InputError`].
    pub fn of_workload(text: &str, manner: Manner, room: Room) -> Result<Self, InputError> {
        if let Some(seed) = synth_seed(text) {
            return Self::synth(seed.ok_or(InputError::Seed)?, manner, room);
        }
        if manner.think.is_some() {
            return Err(InputError::Think);
        }
        let made = workload::parse(text).map_err(InputError::Workload)?;
        let records = || Box::new(steps(&*made).map(placed));
        let recorded = (made.readers().len() == 1 && room.keeps)
            .then(|| Recorded::of(Requests::new(records(), manner), Some(room)));
        Ok(Self {
            recorded: recorded.transpose()?,
            source: None,
            workload: Some(text.to_owned()),
            block_bytes: manner.block_bytes,
            compute_from: "workload",
        })
    }

    fn synth(seed: u64, manner: Manner, room: Room) -> Result<Self, InputError> {
        let block_bytes = manner.block_bytes;
        let open = move || -> Result<Records<'static>, TraceError> {
            Ok(Box::new(synth_records(seed, block_bytes).map(placed)))
        };
        let room = Room {
            keeps: true,
            ..room
        };
        let records = open().map_err(RequestsError::Read)?;
        let open = Box::new(open);
        let input = Self::of_trace(records, Source { open, manner }, room)?;
        let compute_from = manner.think.map_or("workload", |_| "think");
        Ok(Self {
            compute_from,
            ..input
        })
    }

    /// How many requests a run goes through, as far as that is known.
    #[must_use]
    pub fn requests(&self) -> u64 {
        let recorded = self.recorded.as_ref();
        recorded.map_or(1, |r| r.requests() + r.told().writes)
    }

    /// How many disks a run has: as many as wanted, or as the trace has.
    #[must_use]
    pub fn disks(&self, wanted: Option<u16>) -> u16 {
        let own = self
            .recorded
            .as_ref()
            .map(|recorded| recorded.disks(wanted));
        own.unwrap_or(wanted.unwrap_or(1))
    }

    /// Whether its references are kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        let recorded = self.recorded.as_ref();
        recorded.is_some_and(|recorded| !recorded.references().is_empty())
    }

    /// Whether a run of this preset reads the trace once more.
    #[must_use]
    pub fn is_read_by(&self, preset: &Simulated) -> bool {
        self.source.is_some() && !(preset.is_hinted() && self.is_kept())
    }
}

/// Whether there is a workload of this name with these parameters; it is not made.
///
/// # Errors
/// See [`InputError`].
pub fn check_workload(text: &str) -> Result<(), InputError> {
    match synth_seed(text) {
        Some(seed) => seed.map(drop).ok_or(InputError::Seed),
        None => Choice::parse("workload", workload::LIST, text)
            .map(drop)
            .map_err(InputError::Workload),
    }
}

/// The seed of a `synth` workload, if it is one and has one.
fn synth_seed(text: &str) -> Option<Option<u64>> {
    match text.strip_prefix("synth")? {
        "" => Some(Some(1)),
        rest => {
            let seed = rest.strip_prefix("(seed=");
            Some(seed.and_then(|s| s.strip_suffix(')')?.parse().ok()))
        }
    }
}

fn placed(record: Record) -> Placed {
    Ok((None, record))
}

/// The paper's loop. Computing after a read becomes computing before the next one.
fn synth_records(seed: u64, block_bytes: u32) -> impl Iterator<Item = Record> {
    let reads = synth::synth(1, seed);
    let mut before = Nanos(0);
    reads.references.into_iter().map(move |reference| {
        let compute = core::mem::replace(&mut before, reference.compute);
        Record {
            place: Place::Byte(u64::from(reference.block.0) * u64::from(block_bytes)),
            bytes: block_bytes,
            compute: Some(compute),
            ..Record::block(0)
        }
    })
}

/// The bytes that one reader takes, cut at the end of its file.
fn steps(workload: &dyn Workload) -> impl Iterator<Item = Record> {
    let file = workload.readers().first().copied().unwrap_or(0);
    let size = workload.files().get(file).map_or(0, |bytes| bytes.0);
    workload.steps(0).filter_map(move |step| {
        let taken = step.take.0.min(step.bytes.0);
        let bytes = taken.min(size.saturating_sub(step.offset.0));
        let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
        Some(Record {
            compute: Some(step.think),
            ..Record::range(step.offset.0, bytes)?
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_of_a_block_that_is_taken() {
        let manner = Manner {
            block_bytes: 8192,
            with_writes: false,
            think: None,
        };
        // Eight blocks asked for, and one taken; 16 in all, and a half.
        let retried = "retried(file_bytes=135168,ask_bytes=65536,take_bytes=8192)";
        let input = Input::of_workload(retried, manner, Room::ENDLESS).unwrap();
        let recorded = input.recorded.unwrap();
        let blocks: Vec<u32> = recorded.references().iter().map(|r| r.block.0).collect();
        assert_eq!(blocks, Vec::from_iter(0..17));
    }
}
