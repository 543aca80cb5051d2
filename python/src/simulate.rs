//! `simulate`: presets over a trace or a workload in virtual time, a dictionary for each run.
//!
//! Presets by cache sizes, in this order; the simulator's grid checks and runs them. All names,
//! sizes and block numbers are checked before the first run, so that a long list does not end in a
//! typing error. An interrupt is seen between two runs.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use forerun_core::Nanos;
use forerun_sim::simulate::Outcome;
use forerun_sim::simulate::disk::Disk;
use forerun_sim::simulate::grid::{Grid, GridRun};
use forerun_sim::simulate::input::{BLOCK_BYTES, Input, suggest};
use forerun_sim::simulate::pacing::{Loop, Pacing, Readers, Speed};
use forerun_sim::simulate::placing::{Layout, Order, Regions};
use forerun_sim::simulate::recorded::Room;
use forerun_sim::simulate::requests::{Manner, Records, RequestsError, Source};
use forerun_sim::simulate::run::RunError;
use forerun_sim::simulate::simulated::Simulated;
use forerun_sim::trace::{self, TraceError};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{self, value};
use crate::release::released;
use crate::settings::names;

/// Processor time of a fetch: the default of the command line.
const DRIVER: Nanos = Nanos(25_000);

/// Presets, and blocks in the cache, if none are named.
const PRESETS: [&str; 2] = ["demand-lru", "forestall"];
const CACHE_BLOCKS: u32 = 1280;

/// Most memory for references, which methods with knowledge of the future keep.
const TRACE_BYTES_MAX: u64 = 4 << 30;

/// Presets over a trace or a workload, on modelled disks, in virtual time.
///
/// A dictionary for each preset and cache size, which `pandas.DataFrame` takes; each is one or a
/// sequence of them. If not given, presets are demand-lru and forestall, with 1280 cache blocks, as large as
/// most requests of the trace, else of 8192 bytes, on one disk, or on as many as the trace has. Defaults,
/// `place` (address, packed or dense), `regions` (concatenated or striped), `readers_by` (one or device), `loop`
/// (closed, open or paced) and `arrivals` (recorded, or as "2x") are those of `forerun simulate`. Times are in nanoseconds.
#[pyfunction]
#[pyo3(signature = (*, workload=None, trace=None, presets=None, device="hdd",
    cache_blocks=None, block_bytes=None, disks=None, place="address", regions=None,
    readers_by="one", r#loop=None, arrivals=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    workload: Option<&str>,
    trace: Option<PathBuf>,
    presets: Option<&Bound<'py, PyAny>>,
    device: &str,
    cache_blocks: Option<&Bound<'py, PyAny>>,
    block_bytes: Option<&Bound<'py, PyAny>>,
    disks: Option<&Bound<'py, PyAny>>,
    place: &str,
    regions: Option<&str>,
    readers_by: &str,
    r#loop: Option<&str>,
    arrivals: Option<&str>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let presets = match presets {
        None => PRESETS.map(str::to_owned).into(),
        Some(given) => names("presets", given)?,
    };
    let cache_blocks = match cache_blocks {
        None => vec![CACHE_BLOCKS],
        Some(one) if one.hasattr("__index__")? => vec![blocks(one)?],
        Some(sizes) => {
            let refused = |_| {
                let kind = sizes.get_type();
                PyTypeError::new_err(format!(
                    "cache_blocks must be an int or several, not {kind}"
                ))
            };
            let sizes = sizes.try_iter().map_err(refused)?;
            sizes.map(|size| blocks(&size?)).collect::<PyResult<_>>()?
        }
    };
    let block_bytes = block_bytes.map(|given| within("block_bytes", given, 512..=1 << 20));
    let block_bytes = block_bytes.transpose()?;
    if let Some(odd) = block_bytes.filter(|bytes| !bytes.is_power_of_two()) {
        let range = "must be a power of two from 512 to 1048576";
        return Err(value(format!("block_bytes of {odd}: {range}")));
    }
    let layout = layout(place, regions)?;
    let pacing = pacing(readers_by, r#loop, arrivals)?;
    let disks = disks.map(|given| within("disks", given, 1..=1024));
    let disks = disks.transpose()?;
    let wanted = disks.and_then(|disks| u16::try_from(disks).ok());
    let disk = Disk::named(device, None).map_err(value)?;
    let input = match (workload, trace) {
        (Some(text), None) => released(py, || made(text, block_bytes.unwrap_or(BLOCK_BYTES)))??,
        (None, Some(path)) => released(py, || recorded(&path, block_bytes))??,
        _ => return Err(value("simulate: give either workload or trace")),
    };
    let grid = Grid {
        layout,
        pacing,
        ..Grid::new(&input, &disk, DRIVER)
    };
    let mut runs = Vec::new();
    for name in &presets {
        for &blocks in &cache_blocks {
            let refused = |why: &dyn Display| {
                value(format!("preset {name} with {blocks} cache_blocks: {why}"))
            };
            let preset: Simulated = name.parse().map_err(|e| refused(&e))?;
            let run = grid.plan(&preset, wanted, blocks, &|_| Ok(()));
            runs.push(run.map_err(|e| refused(&e))?);
        }
    }
    let has_engine = !runs.iter().all(|run| run.preset.is_lru());
    if let Some(beyond) = grid.beyond(wanted, has_engine).map_err(value)? {
        let way_out = "place=\"packed\" lays the touched blocks without gaps";
        return Err(value(format!("device {device}: {beyond}; {way_out}")));
    }
    let mut rows = Vec::new();
    for run in &runs {
        py.check_signals()?;
        let done = released(py, || grid.run(run))?;
        let (outcome, _) = done.map_err(|e| match e {
            RunError::Requests(error) => refused("trace", &error),
            other => PyRuntimeError::new_err(format!("simulation: {other}")),
        })?;
        rows.push(row(py, &grid, run, &outcome)?);
    }
    Ok(rows)
}

/// Where blocks of a trace lie, by the names of the command line.
fn layout(place: &str, regions: Option<&str>) -> PyResult<Layout> {
    let orders = [Order::Address, Order::Packed, Order::Dense];
    let order = orders.into_iter().find(|order| order.name() == place);
    let order = order.ok_or_else(|| {
        value(format!(
            "place of {place:?}: must be address, packed or dense"
        ))
    })?;
    let all = [Regions::Concatenated, Regions::Striped];
    let regions = regions.map(|name| {
        let found = all.into_iter().find(|regions| regions.name() == name);
        found.ok_or_else(|| {
            value(format!(
                "regions of {name:?}: must be concatenated or striped"
            ))
        })
    });
    Ok(Layout {
        order,
        regions: regions.transpose()?,
    })
}

/// Readers and when requests begin, by the names of the command line.
fn pacing(readers: &str, when: Option<&str>, arrivals: Option<&str>) -> PyResult<Pacing> {
    let readers = match readers {
        "one" => Readers::One,
        "device" | "file" | "lun" => Readers::Device,
        _ => {
            return Err(value(format!(
                "readers_by of {readers:?}: must be one or device"
            )));
        }
    };
    let speed = arrivals.map(|text| {
        let speed = text.parse::<Speed>();
        speed.map_err(|e| value(format!("arrivals of {text:?}: {e}")))
    });
    let speed = speed.transpose()?;
    let when = match (when, speed) {
        (Some("closed"), Some(_)) => return Err(value("arrivals: a closed loop has none")),
        (Some("closed"), None) | (None, None) => Loop::Closed,
        (Some("open"), _) | (None, Some(_)) => Loop::Open,
        (Some("paced"), _) => Loop::Paced,
        (Some(other), _) => {
            return Err(value(format!(
                "loop of {other:?}: must be closed, open or paced"
            )));
        }
    };
    Ok(Pacing {
        readers,
        when,
        speed: speed.unwrap_or_default(),
    })
}

fn blocks(given: &Bound<'_, PyAny>) -> PyResult<u32> {
    within("cache_blocks", given, 1..=u32::MAX - 1)
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

fn room() -> Room {
    Room {
        bytes: TRACE_BYTES_MAX,
        keeps: true,
        runs: 1,
        plans: true,
    }
}

fn recorded(path: &Path, block_bytes: Option<u32>) -> PyResult<Input> {
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
    let records = open().map_err(|e| refused("trace", &e.into()))?;
    let (block_bytes, records) = match block_bytes {
        Some(block_bytes) => (block_bytes, records),
        None => {
            let (suggested, records) = suggest(records, false);
            (suggested.block_bytes, records)
        }
    };
    let source = Source {
        open: Box::new(open),
        manner: manner(block_bytes),
    };
    Input::of_trace(records, source, room()).map_err(|e| refused("trace", &e))
}

fn made(text: &str, block_bytes: u32) -> PyResult<Input> {
    let input = Input::of_workload(text, manner(block_bytes), room());
    input.map_err(|e| value(format!("workload {text}: {e}")))
}

fn refused(name: &str, error: &RequestsError) -> PyErr {
    value(format!("{name}: {error}"))
}

fn row<'py>(
    py: Python<'py>,
    grid: &Grid<'_>,
    run: &GridRun,
    outcome: &Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("preset", run.preset.name())?;
    dict.set_item("device", grid.disk.name())?;
    dict.set_item("disks", grid.input.disks(run.wanted))?;
    dict.set_item("cache_blocks", run.cache_blocks)?;
    let memory = u64::from(run.cache_blocks) * u64::from(grid.input.block_bytes);
    dict.set_item("cache_bytes", memory)?;
    dict.set_item("block_bytes", grid.unit(&run.preset))?;
    let is_files = grid.input.workload.is_some() && !run.preset.is_hinted();
    let recorded = grid.input.recorded.as_ref();
    let recorded = recorded.filter(|_| !is_files && !grid.disk.is_unit());
    let disks = grid.input.disks(run.wanted);
    let regions = recorded.map(|recorded| grid.layout.regions_of(recorded, disks).name());
    dict.set_item("place", recorded.map(|_| grid.layout.order.name()))?;
    dict.set_item("regions", regions)?;
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
    dict.set_item("device_response_mean_ns", outcome.response_mean)?;
    let pacing = grid.input.source.as_ref().map(|_| grid.pacing);
    dict.set_item("readers_by", pacing.map(|pacing| pacing.readers.name()))?;
    dict.set_item("loop", pacing.map(|pacing| pacing.when.name()))?;
    dict.set_item("saturated", outcome.is_saturated)?;
    for (name, time) in outcome.tails() {
        dict.set_item(name, time)?;
    }
    let share = |busy: &u64| (*busy as f64 / outcome.elapsed.max(1) as f64).min(1.0);
    let busy: Vec<f64> = outcome.busy.iter().map(share).collect();
    dict.set_item("device_utilisation", busy)?;
    Ok(dict)
}
