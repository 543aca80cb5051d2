//! What is simulated: a trace or a workload, as references for hinted methods and as a workload
//! for the engine. Read once, shared by all cells.

use std::path::Path;

use forerun_core::Nanos;
use forerun_sim::hinted::synth;
use forerun_sim::simulate::recorded::Recorded;
use forerun_sim::trace::{Place, Record, TraceError};
use forerun_sim::workload::{self, Workload};

use crate::args::Simulate;
use crate::commands::trace::{records, unreadable};
use crate::failure::Failure;
use crate::progress;

/// See the [module](self).
pub(super) struct Input {
    /// Its name in messages.
    pub(super) name: String,
    /// The references; none if there is more than one reader.
    pub(super) recorded: Option<Recorded>,
    /// The workload by name, if it is one of the list's.
    pub(super) workload: Option<String>,
    /// Where compute times come from.
    pub(super) compute_from: &'static str,
}

impl Input {
    /// From the arguments.
    ///
    /// # Errors
    /// A trace or a workload that cannot be used.
    pub(super) fn new(args: &Simulate) -> Result<Self, Failure> {
        let mut input = match (&args.trace, &args.workload) {
            (Some(path), _) => Self::trace(args, path)?,
            (None, workload) => Self::made(args, workload.as_deref().unwrap_or_default())?,
        };
        if let Some(think) = args.think {
            if input.workload.is_some() {
                let why = "--think: a workload has think_ns, as in sequential(think_ns=1000000)";
                return Err(Failure::Usage(why.to_owned()));
            }
            input.recorded = input.recorded.map(|recorded| recorded.with_compute(think));
            input.compute_from = "think";
        }
        Ok(input)
    }

    fn trace(args: &Simulate, path: &Path) -> Result<Self, Failure> {
        let mut records = records(path, &args.reading)?;
        let bar = progress::steps_without_end("requests");
        let placed = std::iter::from_fn(|| {
            let record = records.next()?;
            bar.inc(1);
            Some(record.map(|record| (records.position(), record)))
        });
        let recorded = Recorded::of(placed, args.block_bytes, args.writes);
        bar.finish_and_clear();
        let recorded = recorded.map_err(|e| match e {
            forerun_sim::simulate::recorded::RecordedError::Read(e) => unreadable(&e),
            other => Failure::unusable(path, other),
        })?;
        if recorded.writes > 0 {
            let writes = recorded.writes;
            tracing::warn!("{}: {writes} writes are left out", path.display());
        }
        Ok(Self {
            name: path.display().to_string(),
            workload: None,
            compute_from: match (recorded.says_compute, recorded.says_arrival) {
                (true, _) => "trace",
                (false, true) => "arrivals",
                (false, false) => "none",
            },
            recorded: Some(recorded),
        })
    }

    fn made(args: &Simulate, text: &str) -> Result<Self, Failure> {
        let refused = |why: String| Failure::Usage(format!("--workload {text}: {why}"));
        let seed = match text.strip_prefix("synth") {
            Some("") => Some(1),
            Some(rest) => {
                let seed = rest
                    .strip_prefix("(seed=")
                    .and_then(|s| s.strip_suffix(')'));
                let seed = seed.and_then(|seed| seed.parse().ok());
                Some(seed.ok_or_else(|| refused("synth takes seed=N".to_owned()))?)
            }
            None => None,
        };
        if let Some(seed) = seed {
            let records = synth_records(seed, args.block_bytes);
            return Ok(Self {
                name: text.to_owned(),
                recorded: Some(of(records, args.block_bytes).map_err(refused)?),
                workload: None,
                compute_from: "workload",
            });
        }
        let made = workload::parse(text).map_err(|e| refused(format!("{e}, synth")))?;
        let recorded = match made.readers().len() {
            1 => Some(of(steps(&*made), args.block_bytes).map_err(refused)?),
            _ => None,
        };
        Ok(Self {
            name: text.to_owned(),
            recorded,
            workload: Some(text.to_owned()),
            compute_from: "workload",
        })
    }
}

fn of(records: impl Iterator<Item = Record>, block_bytes: u32) -> Result<Recorded, String> {
    let records = records.map(|record| Ok::<_, TraceError>((None, record)));
    Recorded::of(records, block_bytes, false).map_err(|e| e.to_string())
}

/// The paper's loop. What it computes after a read is computed before the next one.
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

/// What one reader reads, cut at the end of its file.
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
