//! The input that the flags of a simulation name: a trace from a file or a pipe, or a workload.
//!
//! A trace that only goes to methods without knowledge of the future is not kept: each run reads
//! it again, a pipe from the copy that was made of it on the way.

use std::path::Path;

use forerun_core::spec::ChoiceError;
use forerun_sim::simulate::disk::Disk;
use forerun_sim::simulate::input::{BLOCK_BYTES, Input, InputError, suggest};
use forerun_sim::simulate::recorded::{Recorded, Room};
use forerun_sim::simulate::requests::{Manner, Open, Records, RequestsError, Source};
use forerun_sim::trace::TraceError;
use indicatif::ProgressBar;

use crate::args::{Reading, Simulate, Simulated};
use crate::commands::trace::source::{Kept, Named};
use crate::commands::trace::{opened_logs, unreadable};
use crate::failure::Failure;
use crate::flags::nearest_of;
use crate::progress;
use crate::quantity::size;

/// See the [module](self).
pub(super) struct NamedInput {
    /// Its name in messages.
    pub(super) name: String,
    /// Its contents.
    pub(super) input: Input,
    /// Moves with the bytes read of a trace.
    pub(super) bar: ProgressBar,
}

impl NamedInput {
    /// From the arguments.
    ///
    /// # Errors
    /// A trace or a workload that cannot be used.
    pub(super) fn new(args: &Simulate, disk: &Disk, bar: ProgressBar) -> Result<Self, Failure> {
        match (&args.trace, &args.workload) {
            (Some(path), _) => Self::trace(args, path, disk, bar),
            (None, workload) => Self::made(args, workload.as_deref().unwrap_or_default(), bar),
        }
    }

    fn trace(args: &Simulate, path: &Path, disk: &Disk, bar: ProgressBar) -> Result<Self, Failure> {
        let traces = Named::all(path, &args.reading.merge)?;
        let names: Vec<String> = traces.iter().map(Named::name).collect();
        let (name, room) = (names.join(" + "), room(args, needs_references(args, disk)));
        let is_engine = |preset: &Simulated| !preset.is_hinted();
        let again = !room.keeps || args.preset.0.iter().any(is_engine);
        let kept = traces.into_iter().map(|trace| trace.kept(again));
        let kept: Vec<Kept> = kept.collect::<Result<_, _>>()?;
        let open = opener(names.into_iter().zip(kept).collect(), &args.reading, &bar)?;
        let records = open().map_err(|e| refused(args, &name, e.into()))?;
        let (block_bytes, records) = sized(args, &name, records);
        let manner = manner(args, block_bytes);
        let input = Input::of_trace(records, Source { open, manner }, room);
        let mut input = input.map_err(|e| refused(args, &name, e))?;
        if input.is_kept() && args.preset.0.iter().all(Simulated::is_hinted) {
            input.recorded.iter_mut().for_each(|it| it.forget_lookup());
        }
        warn(&name, &input);
        Ok(Self { name, input, bar })
    }

    fn made(args: &Simulate, text: &str, bar: ProgressBar) -> Result<Self, Failure> {
        let refused = |why: String| Failure::Usage(format!("--workload {text}: {why}"));
        if let Some(flag) = args.reading.values().keys().next() {
            return Err(refused(format!("has no trace, which --{flag} is for")));
        }
        if args.writes {
            return Err(refused("has no writes, which --writes is for".to_owned()));
        }
        let room = room(args, args.preset.0.iter().any(Simulated::is_hinted));
        let manner = manner(args, args.block_bytes.unwrap_or(BLOCK_BYTES));
        let input = Input::of_workload(text, manner, room).map_err(|e| match e {
            InputError::Think => Failure::Usage(format!("--think: {e}")),
            InputError::Requests(error) => refused(memory(args, &error)),
            other => no_workload(text, &other),
        })?;
        let name = text.to_owned();
        Ok(Self { name, input, bar })
    }
}

/// Says which facts of a trace a simulation leaves out.
fn warn(name: &str, input: &Input) {
    let Some(told) = input.recorded.as_ref().map(Recorded::told) else {
        return;
    };
    if told.writes > 0 {
        tracing::warn!("{name}: {} writes are left out", told.writes);
    }
    if told.sized > 0 {
        tracing::warn!(
            "{name}: {} requests have a size of their own, and each counts as a block of {} bytes (--block-bytes)",
            told.sized,
            input.block_bytes
        );
    }
}

/// A workload that there is not.
pub(super) fn no_workload(text: &str, error: &InputError) -> Failure {
    let why = match error {
        InputError::Workload(ChoiceError::Unknown { name, known, .. }) => {
            let known = known.iter().copied().chain(["synth"]);
            format!("{error}; the nearest are {}", nearest_of(name, known))
        }
        other => other.to_string(),
    };
    Failure::Usage(format!("--workload {text}: {why}"))
}

/// The size of a block as asked for, or as the requests at the beginning of a trace say; and all
/// its requests.
fn sized(args: &Simulate, name: &str, records: Records<'static>) -> (u32, Records<'static>) {
    if let Some(block_bytes) = args.block_bytes {
        return (block_bytes, records);
    }
    let (suggested, records) = suggest(records, args.writes);
    let block_bytes = suggested.block_bytes;
    if let Some((size, n)) = suggested.common {
        tracing::warn!(
            "{name}: blocks of {block_bytes} bytes: {n} of its first {} requests have {size} \
             (--block-bytes)",
            suggested.requests
        );
    }
    (block_bytes, records)
}

fn manner(args: &Simulate, block_bytes: u32) -> Manner {
    Manner {
        block_bytes,
        with_writes: args.writes,
        think: args.think,
    }
}

/// Opens the logs of a trace; reading moves the bar.
fn opener(
    logs: Vec<(String, Kept)>,
    reading: &Reading,
    bar: &ProgressBar,
) -> Result<Open, Failure> {
    let (reading, filter, bar) = (reading.clone(), reading.filter()?, bar.clone());
    Ok(Box::new(move || {
        let opened = logs.iter().map(|(name, log)| {
            let bytes = log.open().map_err(|e| TraceError::unread(name, &e))?;
            Ok((name.clone(), bytes))
        });
        let opened = opened.collect::<Result<Vec<_>, TraceError>>()?;
        let mut records = opened_logs(opened, &reading, filter.clone())?;
        let (mut count, bar) = (0u64, bar.clone());
        Ok(Box::new(std::iter::from_fn(move || {
            let record = records.next()?;
            count += 1;
            if count.is_multiple_of(progress::REQUESTS_PER_STEP) {
                bar.inc(progress::REQUESTS_PER_STEP);
            }
            Some(record.map(|record| (records.position(), record)))
        })))
    }))
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
        bytes: args.trace_memory().0,
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
            size(args.trace_memory()),
            Room::BLOCK
        );
    }
    format!(
        "{error} in --trace-memory {}, where presets that plan ahead keep them all; \
         demand-lru and the engine's presets keep none",
        size(args.trace_memory())
    )
}
