//! The input of a simulation: a trace or a workload, read once for its contents, shared by all
//! runs.
//!
//! A method that must know future references gets all of them, kept in memory, as far as
//! `--trace-memory` goes. A trace that only goes to methods that do not is not kept: each run reads
//! it again, a pipe from the copy that was made of it on the way.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use forerun_core::Nanos;
use forerun_core::spec::ChoiceError;
use forerun_sim::hinted::synth;
use forerun_sim::simulate::recorded::{Recorded, Room};
use forerun_sim::simulate::requests::{
    Manner, Open, Placed, Records, Requests, RequestsError, Source,
};
use forerun_sim::trace::{self, Op, Place, Record, TraceError};
use forerun_sim::workload::{self, Workload};
use indicatif::ProgressBar;

use super::cell::Cell;
use super::disk::Disk;
use crate::args::{Reading, Simulate, Simulated};
use crate::commands::trace::source::{Kept, Named};
use crate::commands::trace::{options, unreadable};
use crate::failure::Failure;
use crate::progress;
use crate::quantity::size;

/// Size of a block where no requests say one, and of the papers.
const BLOCK_BYTES: u32 = 8 << 10;

/// Sizes of blocks that follow from a trace lie between these, as the engine takes no others.
const BLOCK_BYTES_LEAST: u32 = 512;
const BLOCK_BYTES_MOST: u32 = 1 << 20;

/// Requests that say how large a block is: as many as take 1 MB.
const SAMPLE_REQUESTS: usize = 10_000;

/// See the [module](self).
pub(super) struct Input {
    /// Its name in messages.
    pub(super) name: String,
    /// Its contents; nothing if there is more than one reader.
    pub(super) recorded: Option<Recorded>,
    /// The trace, to be read again.
    pub(super) source: Option<Source>,
    /// The workload by name, if it is one of the list's.
    pub(super) workload: Option<String>,
    /// Size of a block.
    pub(super) block_bytes: u32,
    /// Where compute times come from.
    pub(super) compute_from: &'static str,
    /// Moves with the bytes read of a trace.
    pub(super) bar: ProgressBar,
}

impl Input {
    /// From the arguments.
    ///
    /// # Errors
    /// A trace or a workload that cannot be used.
    pub(super) fn new(args: &Simulate, disk: &Disk) -> Result<Self, Failure> {
        let bar = progress::steps_without_end("requests");
        match (&args.trace, &args.workload) {
            (Some(path), _) => Self::trace(args, path, disk, bar),
            (None, workload) => Self::made(args, workload.as_deref().unwrap_or_default(), bar),
        }
    }

    fn trace(args: &Simulate, path: &Path, disk: &Disk, bar: ProgressBar) -> Result<Self, Failure> {
        let trace = Named::new(path)?;
        let (name, room) = (trace.name(), room(args, needs_references(args, disk)));
        let is_engine = |preset: &Simulated| !preset.is_hinted();
        let again = !room.keeps || args.preset.0.iter().any(is_engine);
        let open = opener(name.clone(), trace.kept(again)?, &args.reading, &bar);
        let records = open().map_err(|e| refused(args, &name, e.into()))?;
        let (block_bytes, records) = sized(args, &name, records);
        let manner = manner(args, block_bytes);
        let recorded = Recorded::of(Requests::new(records, manner), Some(room));
        let source = Source { open, manner };
        let mut recorded = recorded.map_err(|e| refused(args, &name, e))?;
        if !recorded.references().is_empty() && args.preset.0.iter().all(Simulated::is_hinted) {
            recorded.forget_lookup();
        }
        let told = recorded.told();
        if told.writes > 0 {
            tracing::warn!("{name}: {} writes are left out", told.writes);
        }
        Ok(Self {
            name,
            block_bytes,
            compute_from: match (args.think, told.says_compute, told.says_arrival) {
                (Some(_), _, _) => "think",
                (None, true, _) => "trace",
                (None, false, true) => "arrivals",
                (None, false, false) => "none",
            },
            recorded: Some(recorded),
            source: Some(source),
            workload: None,
            bar,
        })
    }

    fn made(args: &Simulate, text: &str, bar: ProgressBar) -> Result<Self, Failure> {
        let refused = |why: String| Failure::Usage(format!("--workload {text}: {why}"));
        let of = |requests| {
            let recorded = Recorded::of(requests, Some(room(args, true)));
            recorded.map_err(|e| refused(memory(args, &e)))
        };
        let block_bytes = args.block_bytes.unwrap_or(BLOCK_BYTES);
        let mut input = Self {
            name: text.to_owned(),
            recorded: None,
            source: None,
            workload: None,
            block_bytes,
            compute_from: if args.think.is_some() {
                "think"
            } else {
                "workload"
            },
            bar,
        };
        if let Some(seed) = synth_seed(text) {
            let seed = seed.ok_or_else(|| refused("synth takes seed=N".to_owned()))?;
            let records = move || -> Result<Records<'static>, TraceError> {
                Ok(Box::new(synth_records(seed, block_bytes).map(placed)))
            };
            let open = Box::new(records);
            let manner = manner(args, block_bytes);
            let source = Source { open, manner };
            let requests = source.requests().map_err(|e| refused(e.to_string()))?;
            input.recorded = Some(of(requests)?);
            input.source = Some(source);
            return Ok(input);
        }
        if args.think.is_some() {
            let why = "--think: a workload has think_ns, as in sequential(think_ns=1000000)";
            return Err(Failure::Usage(why.to_owned()));
        }
        let made = workload::parse(text).map_err(|e| {
            refused(match e {
                ChoiceError::Unknown { .. } => format!("{e}, synth"),
                other => other.to_string(),
            })
        })?;
        if made.readers().len() == 1 && args.preset.0.iter().any(Simulated::is_hinted) {
            let records = Box::new(steps(&*made).map(placed));
            input.recorded = Some(of(Requests::new(records, manner(args, block_bytes)))?);
        }
        input.workload = Some(text.to_owned());
        Ok(input)
    }
}

impl Input {
    /// How many requests a run goes through, as far as that is known.
    pub(super) fn requests(&self) -> u64 {
        let recorded = self.recorded.as_ref();
        recorded.map_or(1, |r| r.requests() + r.told().writes)
    }

    /// Whether a run reads the trace once more, and the bar moves with it.
    pub(super) fn is_read_by(&self, cell: &Cell) -> bool {
        let kept = self
            .recorded
            .as_ref()
            .is_some_and(|r| !r.references().is_empty());
        self.source.is_some() && !(cell.preset.is_hinted() && kept)
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

/// The size of a block as asked for, or as the requests at the beginning of a trace say; and all
/// its requests.
fn sized(args: &Simulate, name: &str, mut records: Records<'static>) -> (u32, Records<'static>) {
    if let Some(block_bytes) = args.block_bytes {
        return (block_bytes, records);
    }
    let sample: Vec<Placed> = records.by_ref().take(SAMPLE_REQUESTS).collect();
    let mut counts = BTreeMap::<u32, u32>::new();
    for (_, record) in sample.iter().flatten() {
        let is_range = matches!(record.place, Place::Byte(_)) && record.bytes > 0;
        if is_range && (args.writes || record.op == Op::Read) {
            *counts.entry(record.bytes).or_default() += 1;
        }
    }
    let common = counts.iter().max_by_key(|(size, n)| (**n, Reverse(**size)));
    let block_bytes = common.map_or(BLOCK_BYTES, |(size, n)| {
        let block_bytes = (1 << size.ilog2()).clamp(BLOCK_BYTES_LEAST, BLOCK_BYTES_MOST);
        tracing::warn!(
            "{name}: blocks of {block_bytes} bytes: {n} of its first {} requests have {size} \
             (--block-bytes)",
            sample.len()
        );
        block_bytes
    });
    (block_bytes, Box::new(sample.into_iter().chain(records)))
}

fn manner(args: &Simulate, block_bytes: u32) -> Manner {
    Manner {
        block_bytes,
        with_writes: args.writes,
        think: args.think,
    }
}

/// Opens a trace; reading moves the bar.
fn opener(name: String, trace: Kept, reading: &Reading, bar: &ProgressBar) -> Open {
    let (format, options, bar) = (reading.trace_format, options(reading), bar.clone());
    Box::new(move || {
        let bytes = trace.open().map_err(|e| TraceError::unread(&name, &e))?;
        let mut records = trace::read(&name, bytes, format, &options)?;
        let (mut count, bar) = (0u64, bar.clone());
        Ok(Box::new(std::iter::from_fn(move || {
            let record = records.next()?;
            count += 1;
            if count.is_multiple_of(progress::REQUESTS_PER_STEP) {
                bar.inc(progress::REQUESTS_PER_STEP);
            }
            Some(record.map(|record| (records.position(), record)))
        })))
    })
}

/// Whether any of the presets needs all references.
fn needs_references(args: &Simulate, disk: &Disk) -> bool {
    let mut presets = args.preset.0.iter();
    presets.any(|preset| preset.is_hinted() && (disk.is_unit() || !preset.is_lru()))
}

/// In how much memory blocks, and references if they are needed, are kept.
fn room(args: &Simulate, keeps: bool) -> Room {
    let plans = |preset: &Simulated| preset.name().starts_with("reverse-aggressive");
    Room {
        bytes: args.trace_memory.0,
        keeps,
        runs: args.threads.into(),
        plans: args.preset.0.iter().any(plans),
    }
}

fn refused(args: &Simulate, name: &str, error: RequestsError) -> Failure {
    match error {
        RequestsError::Read(error) => unreadable(&error),
        RequestsError::Kept { at: Some(at), .. } => {
            Failure::Usage(format!("{name}{at}: {}", memory(args, &error)))
        }
        other => Failure::Usage(format!("{name}: {}", memory(args, &other))),
    }
}

/// The error in the words of the flags.
fn memory(args: &Simulate, error: &RequestsError) -> String {
    let RequestsError::Kept { references, .. } = error else {
        return error.to_string();
    };
    if *references == 0 {
        return format!(
            "{error} in --trace-memory {}, of which each takes {} bytes in each of --threads",
            size(args.trace_memory),
            Room::BLOCK
        );
    }
    format!(
        "{error} in --trace-memory {}, where presets that plan ahead keep them all; \
         demand-lru and the engine's presets keep none",
        size(args.trace_memory)
    )
}

fn placed(record: Record) -> Placed {
    Ok((None, record))
}

/// The paper's loop. Computing after a read becomes computing before the next one.
fn synth_records(seed: u64, block_bytes: u32) -> impl Iterator<Item = Record> {
    let reads = synth::synth(1, seed);
    let mut before = Nanos(0);
    reads.references.into_iter().map(move |reference| {
        let compute = std::mem::replace(&mut before, reference.compute);
        Record {
            place: Place::Byte(u64::from(reference.block.0) * u64::from(block_bytes)),
            bytes: block_bytes,
            compute: Some(compute),
            ..Record::block(0)
        }
    })
}

/// The reads of one reader, cut at the end of its file.
fn steps(workload: &dyn Workload) -> impl Iterator<Item = Record> {
    let file = workload.readers().first().copied().unwrap_or(0);
    let size = workload.files().get(file).map_or(0, |bytes| bytes.0);
    workload.steps(0).filter_map(move |step| {
        let bytes = step.bytes.0.min(size.saturating_sub(step.offset.0));
        let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
        Some(Record {
            compute: Some(step.think),
            ..Record::range(step.offset.0, bytes)?
        })
    })
}
