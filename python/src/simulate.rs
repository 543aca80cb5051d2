//! `simulate`: presets over a trace or a workload in virtual time, a dictionary for each run.
//!
//! Presets by cache sizes, in this order. All names, sizes and block numbers are checked before the
//! first run, so that a long list does not end in a typing error. An interrupt is seen between two
//! runs.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use forerun_core::hinted::Setup;
use forerun_core::hinted::policy::{self, Policy};
use forerun_core::preset;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, Settings};
use forerun_sim::device::scheduler;
use forerun_sim::device::{self, Device};
use forerun_sim::hinted::host::{self, Host};
use forerun_sim::scheduled;
use forerun_sim::simulate::placing::Placing;
use forerun_sim::simulate::recorded::{Recorded, Room};
use forerun_sim::simulate::requests::{Manner, Records, Requests, RequestsError, Source};
use forerun_sim::simulate::streamed::Streamed;
use forerun_sim::simulate::{Outcome, engine, hinted};
use forerun_sim::trace::{self, Record, TraceError};
use forerun_sim::workload::{self, Workload};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{self, value};

/// Processor time of a fetch (Kimbrel et al. 1996, section 3.1).
const DRIVER: Nanos = Nanos(500_000);

/// The order of requests at a disk, where the device has none of its own (section 3.1).
const SCHEDULER: &str = "cscan";

/// Presets, blocks in the cache and their size, if none are named.
const PRESETS: [&str; 2] = ["demand-lru", "forestall"];
const CACHE_BLOCKS: u32 = 1280;
const BLOCK_BYTES: u32 = 8192;

/// Most memory for references, which methods with knowledge of the future keep.
const TRACE_BYTES_MAX: u64 = 4 << 30;

/// A preset of the engine, or a hinted method.
enum Method {
    Engine(Box<Settings>),
    Hinted(Choice<Box<dyn Policy>>),
}

/// A trace, or a workload by its name.
enum Input {
    Trace(Source, Recorded),
    /// Its references are kept if it has one reader, for hinted methods.
    Workload(String, Option<Recorded>),
}

struct Run {
    name: String,
    method: Method,
    cache_blocks: u32,
}

struct Surroundings {
    device: String,
    disks: Option<u16>,
    block_bytes: u32,
}

/// Presets over a trace or a workload, on modelled disks, in virtual time.
#[pyfunction]
#[pyo3(signature = (*, workload=None, trace=None, presets=None, device="hp97560",
    cache_blocks=None, block_bytes=None, disks=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    workload: Option<&str>,
    trace: Option<PathBuf>,
    presets: Option<Vec<String>>,
    device: &str,
    cache_blocks: Option<Vec<Bound<'py, PyAny>>>,
    block_bytes: Option<&Bound<'py, PyAny>>,
    disks: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let presets = presets.unwrap_or_else(|| PRESETS.map(str::to_owned).into());
    let cache_blocks = match cache_blocks {
        None => vec![CACHE_BLOCKS],
        Some(sizes) => {
            let sizes = sizes
                .iter()
                .map(|size| within("cache_blocks", size, 1..=u32::MAX - 1));
            sizes.collect::<PyResult<_>>()?
        }
    };
    let block_bytes = block_bytes.map_or(Ok(BLOCK_BYTES), |given| {
        within("block_bytes", given, 512..=1 << 20)
    })?;
    if !block_bytes.is_power_of_two() {
        let range = "must be a power of two from 512 to 1048576";
        return Err(value(format!("block_bytes of {block_bytes}: {range}")));
    }
    let disks = disks.map(|given| within("disks", given, 1..=1024));
    let around = Surroundings {
        device: device.to_owned(),
        disks: disks
            .transpose()?
            .and_then(|disks| u16::try_from(disks).ok()),
        block_bytes,
    };
    around.device()?;
    let input = match (workload, trace) {
        (Some(text), None) => py.detach(|| Input::made(text, block_bytes))?,
        (None, Some(path)) => py.detach(|| Input::recorded(&path, block_bytes))?,
        _ => return Err(value("simulate: give either workload or trace")),
    };
    let mut runs = Vec::new();
    for name in &presets {
        for &blocks in &cache_blocks {
            runs.push(Run::new(name, blocks, &input, &around)?);
        }
    }
    let mut rows = Vec::new();
    for run in &runs {
        py.check_signals()?;
        let outcome = py.detach(|| run.outcome(&input, &around))?;
        rows.push(row(py, run, &around, &input, &outcome)?);
    }
    Ok(rows)
}

impl Surroundings {
    /// A new device.
    fn device(&self) -> PyResult<Box<dyn Device>> {
        let text = &self.device;
        let refused = |why: &dyn Display| value(format!("device {text}: {why}"));
        let plain = device::parse(text).map_err(|e| refused(&e))?;
        if scheduled::own(text).is_some() {
            return Ok(plain);
        }
        scheduler::parse(SCHEDULER).map_err(|e| refused(&e))?;
        // A device of several servers orders its requests itself.
        Ok(scheduled::behind(text, SCHEDULER).unwrap_or(plain))
    }

    fn devices(&self, count: u16) -> PyResult<Vec<Box<dyn Device>>> {
        (0..count).map(|_| self.device()).collect()
    }

    fn host(&self) -> Host {
        Host {
            driver: DRIVER,
            block_bytes: Bytes(self.block_bytes.into()),
            notice: forerun_core::settings::Notice::default(),
        }
    }
}

fn within(name: &str, given: &Bound<'_, PyAny>, range: RangeInclusive<u32>) -> PyResult<u32> {
    let number = given.extract().ok().filter(|number| range.contains(number));
    let (least, most) = (range.start(), range.end());
    number.ok_or_else(|| {
        value(format!(
            "{name} of {given}: must lie from {least} to {most}"
        ))
    })
}

fn manner(block_bytes: u32) -> Manner {
    Manner {
        block_bytes,
        with_writes: false,
        think: None,
    }
}

fn room() -> Option<Room> {
    Some(Room {
        bytes: TRACE_BYTES_MAX,
        keeps: true,
        runs: 1,
        plans: true,
    })
}

impl Input {
    fn recorded(path: &Path, block_bytes: u32) -> PyResult<Self> {
        // A missing file is an `OSError`, anything wrong inside it a `ValueError`.
        std::fs::File::open(path).map_err(|e| errors::system(&e, Some(path)))?;
        let path = path.to_owned();
        let open = move || -> Result<Records<'static>, TraceError> {
            let mut records = trace::open(&path, None, &trace::Options::default())?;
            Ok(Box::new(std::iter::from_fn(move || {
                let record = records.next()?;
                Some(record.map(|record| (records.position(), record)))
            })))
        };
        let source = Source {
            open: Box::new(open),
            manner: manner(block_bytes),
        };
        let requests = source.requests().map_err(|e| refused("trace", &e))?;
        let recorded = Recorded::of(requests, room()).map_err(|e| refused("trace", &e))?;
        Ok(Self::Trace(source, recorded))
    }

    fn made(text: &str, block_bytes: u32) -> PyResult<Self> {
        let name = format!("workload {text}");
        let made = made(text)?;
        if made.readers().len() != 1 {
            return Ok(Self::Workload(text.to_owned(), None));
        }
        let steps = steps(&*made).map(|record| Ok((None, record)));
        let requests = Requests::new(Box::new(steps), manner(block_bytes));
        let recorded = Recorded::of(requests, room()).map_err(|e| refused(&name, &e))?;
        Ok(Self::Workload(text.to_owned(), Some(recorded)))
    }

    fn references(&self) -> Option<&Recorded> {
        match self {
            Self::Trace(_, recorded) => Some(recorded),
            Self::Workload(_, recorded) => recorded.as_ref(),
        }
    }

    fn disks(&self, around: &Surroundings) -> u16 {
        let own = self
            .references()
            .map(|recorded| recorded.disks(around.disks));
        own.unwrap_or(around.disks.unwrap_or(1))
    }
}

fn made(text: &str) -> PyResult<Box<dyn Workload>> {
    workload::parse(text).map_err(|e| value(format!("workload {text}: {e}")))
}

fn refused(name: &str, error: &RequestsError) -> PyErr {
    value(format!("{name}: {error}"))
}

/// The reads of a workload's only reader, cut at the end of its file.
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

impl Run {
    fn new(name: &str, cache_blocks: u32, input: &Input, around: &Surroundings) -> PyResult<Self> {
        let refused = |why: &dyn Display| {
            value(format!(
                "preset {name} with {cache_blocks} cache_blocks: {why}"
            ))
        };
        let first = name.split('(').next().unwrap_or_default();
        let method = if policy::LIST.iter().any(|method| method.spec.name == first) {
            let choice = Choice::parse("hinted", policy::LIST, name).map_err(|e| refused(&e))?;
            let Some(recorded) = input.references() else {
                let why = "a hinted method plans for one reader, and this workload has several";
                return Err(refused(&why));
            };
            let setup = setup(&choice, input.disks(around), cache_blocks);
            let count = recorded.references().len();
            host::settings(&setup, &around.host(), count).map_err(|e| refused(&e))?;
            Method::Hinted(choice)
        } else {
            let preset = preset::find(name).map_err(|e| refused(&e))?;
            // Memory enough for any preset, until the size of a block is known.
            let mut settings = preset.settings(Bytes(1 << 30)).map_err(|e| refused(&e))?;
            settings.block_bytes = around.block_bytes;
            settings.memory = Bytes(u64::from(cache_blocks) * u64::from(around.block_bytes));
            settings.check().map_err(|e| refused(&e))?;
            Method::Engine(Box::new(settings))
        };
        check_end(input, around)?;
        Ok(Self {
            name: name.to_owned(),
            method,
            cache_blocks,
        })
    }

    fn outcome(&self, input: &Input, around: &Surroundings) -> PyResult<Outcome> {
        let devices = around.devices(input.disks(around))?;
        let failed = |why: &dyn Display| PyRuntimeError::new_err(format!("simulation: {why}"));
        match (&self.method, input) {
            (Method::Hinted(choice), _) => {
                let recorded = input.references().ok_or_else(|| failed(&self.name))?;
                let setup = setup(choice, input.disks(around), self.cache_blocks);
                let reads = recorded.reads(around.disks, None, around.block_bytes);
                hinted(&setup, &around.host(), &reads, devices).map_err(|e| failed(&e))
            }
            (Method::Engine(settings), Input::Workload(text, _)) => {
                let workload = made(text)?;
                engine((**settings).clone(), DRIVER, &*workload, devices).map_err(|e| failed(&e))
            }
            (Method::Engine(settings), Input::Trace(source, recorded)) => {
                let placing = Placing::new(recorded, around.disks, None, around.block_bytes);
                let streamed = Streamed::new(source, recorded, &placing);
                let outcome = engine((**settings).clone(), DRIVER, &streamed, devices);
                match streamed.failure() {
                    Some(error) => Err(refused("trace", &error)),
                    None => outcome.map_err(|e| failed(&e)),
                }
            }
        }
    }
}

fn setup(choice: &Choice<Box<dyn Policy>>, disks: u16, cache_blocks: u32) -> Setup {
    Setup {
        policy: choice.clone(),
        disks,
        cache_blocks,
        blocks_max: u32::MAX,
        hints_max: u32::MAX - 1,
    }
}

/// Refuses blocks beyond the end of a disk.
fn check_end(input: &Input, around: &Surroundings) -> PyResult<()> {
    let capacity = around.device()?.capacity();
    let (Some(capacity), Some(recorded)) = (capacity, input.references()) else {
        return Ok(());
    };
    let placing = Placing::new(recorded, around.disks, None, around.block_bytes);
    match recorded.beyond(&placing, capacity) {
        None => Ok(()),
        Some((_, block, end)) => Err(value(format!(
            "device {}: block {block} ends at {end}, the disk at {capacity}",
            around.device
        ))),
    }
}

fn row<'py>(
    py: Python<'py>,
    run: &Run,
    around: &Surroundings,
    input: &Input,
    outcome: &Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("preset", &run.name)?;
    dict.set_item("device", &around.device)?;
    dict.set_item("disks", input.disks(around))?;
    dict.set_item("cache_blocks", run.cache_blocks)?;
    dict.set_item("block_bytes", around.block_bytes)?;
    let counts = [
        ("reads", outcome.reads),
        ("hits", outcome.hits),
        ("late_hits", outcome.late_hits),
        ("misses", outcome.misses),
        ("fetches", outcome.fetches),
        ("prefetched", outcome.prefetched),
        ("evicted_unused", outcome.evicted_unused),
        ("failed", outcome.failed),
        ("elapsed_ns", outcome.elapsed),
        ("compute_ns", outcome.compute),
        ("driver_ns", outcome.driver),
        ("stall_ns", outcome.stall),
    ];
    for (name, count) in counts {
        dict.set_item(name, count)?;
    }
    dict.set_item("response_mean_ns", outcome.response_mean)?;
    let share = |busy: &u64| (*busy as f64 / outcome.elapsed.max(1) as f64).min(1.0);
    let busy: Vec<f64> = outcome.busy.iter().map(share).collect();
    dict.set_item("device_utilisation", busy)?;
    Ok(dict)
}
