//! Presets over a trace or a workload in virtual time, for every kind of preset and clock.
//!
//! [`grid::Grid`] is the entrance: it checks runs and runs them, for `forerun simulate` and for Python. Three hosts answer with different reports; an [`Outcome`] is their
//! common part, so that a hinted method, an engine preset and the theory stand in one table:
//!
//! ```text
//! simulated  a preset by its name         disk  each disk by its name, with its scheduler
//! input      a trace or a workload        grid  runs, checked         run  one of them
//! requests   a trace as requests for blocks, a stream that can be opened again
//! recorded   its blocks, numbered, and its references if they are kept
//! placing    where each block lies on so many disks
//! pacing     readers of a trace, and when its requests begin
//! hinted     a hinted method over devices                 -> hinted::host  \
//! in_units   the same, 1 for a hit and F a fetch   -> hinted::unit   \
//! lru        demand fetching, from a stream         -> lru             > Outcome
//! engine     the engine over an array of devices    -> world          /
//! kernel     a kernel's readahead over the same      -> kernel        /
//! streamed   a trace as the reads of these last two
//! bound      the least that any of them can take
//! ```
//!
//! Methods, devices and clocks are elsewhere.

pub mod bound;
pub mod disk;
pub mod grid;
pub mod input;
pub mod lru;
pub mod opened;
pub mod pacing;
pub mod placing;
pub mod recorded;
pub mod requests;
pub mod run;
pub mod simulated;
pub mod streamed;

use forerun_core::{Bytes, Nanos, Settings};

use crate::device::Device;
use crate::device::array::Array;
use crate::hinted::host::{self, Host};
use crate::hinted::unit::{self, Instance};
use crate::hinted::{HostError, Reads, Setup};
use crate::kernel::{Kernel, KernelError, Machine};
use crate::times::Times;
use crate::workload::Workload;
use crate::world::Striping;
use crate::wrap::Meter;
use crate::{Scene, WorldError};

/// The unit of presets of the engine, whatever the block that is counted: the page of the kernel and of a mount.
pub const PAGE_BYTES: u32 = 4096;

/// The result of a run. Times are in nanoseconds, or in units for a run in units.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// References to blocks.
    pub reads: u64,
    /// Resident when asked for.
    pub hits: u64,
    /// On their way when asked for.
    pub late_hits: u64,
    /// Neither.
    pub misses: u64,
    /// Blocks fetched.
    pub fetches: u64,
    /// Of these, the prefetches: no reader waited for them when they started.
    pub prefetched: u64,
    /// Prefetched and given up unused.
    pub evicted_unused: u64,
    /// From the first request to the end of the last computation.
    pub elapsed: u64,
    /// Computing time of readers, added up over readers.
    pub compute: u64,
    /// Processor time of fetches.
    pub driver: u64,
    /// Waiting time of readers.
    pub stall: u64,
    /// Mean time from submission to completion; none in units.
    pub response_mean: Option<u64>,
    /// Busy time of each disk, for each request it can work on at once.
    pub busy: Vec<u64>,
    /// The longest computation of one reader.
    pub compute_longest: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Responses of reads, hits included: from the time at which a read was due, else from its begin. None
    /// in units.
    pub responses: Times,
    /// Stall of the reads that waited.
    pub waits: Times,
    /// Reads arrived faster than the devices served them, and responses grew to the end.
    pub is_saturated: bool,
}

impl Outcome {
    /// Percentiles of responses and waits by their names in rows, in nanoseconds; none where there are no
    /// times, or a queue grew to the end.
    pub fn tails(&self) -> impl Iterator<Item = (&'static str, Option<u64>)> + use<'_> {
        let of = |names: [&'static str; 5], times: &Times| {
            let tail = times.tail().filter(|_| !self.is_saturated);
            let values = tail.map_or([None; 5], |tail| tail.map(|time| Some(time.0)));
            names.into_iter().zip(values)
        };
        of(RESPONSES, &self.responses).chain(of(WAITS, &self.waits))
    }

    /// Busy time of the busiest device, in a thousandth of the run's.
    fn utilisation(&self) -> u64 {
        let busiest = self.busy.iter().max().copied().unwrap_or(0);
        let share = u128::from(busiest) * 1000;
        let share = share.checked_div(self.elapsed.into()).unwrap_or(0);
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

/// Names of the percentiles of responses and of waits.
const RESPONSES: [&str; 5] = [
    "response_p50_ns",
    "response_p90_ns",
    "response_p99_ns",
    "response_p99_9_ns",
    "response_max_ns",
];
const WAITS: [&str; 5] = [
    "wait_p50_ns",
    "wait_p90_ns",
    "wait_p99_ns",
    "wait_p99_9_ns",
    "wait_max_ns",
];

/// Busy time of the busiest device from which on a queue that grows is that of the device, in a thousandth of the
/// run's.
const BUSY: u64 = 900;

/// Runs a hinted method over devices, one a disk.
///
/// # Errors
/// See [`host::run`].
pub fn hinted(
    setup: &Setup,
    host: &Host,
    reads: &Reads,
    devices: Vec<Box<dyn Device>>,
) -> Result<Outcome, HostError> {
    let servers: Vec<u64> = devices.iter().map(|d| d.servers().max(1).into()).collect();
    let report = host::run(setup, host, reads, devices)?;
    let busy = report.busy.iter().zip(servers);
    let ledger = &report.ledger;
    Ok(Outcome {
        reads: ledger.reads,
        hits: ledger.hits,
        late_hits: ledger.late_hits,
        misses: ledger.misses,
        fetches: report.fetches(),
        prefetched: ledger.prefetched,
        evicted_unused: ledger.evicted_unused,
        failed: report.failed,
        elapsed: report.elapsed.0,
        compute: report.compute.0,
        driver: report.driver.0,
        stall: report.stall.0,
        response_mean: Some(report.response_mean().0),
        busy: busy.map(|(busy, servers)| busy.0 / servers).collect(),
        compute_longest: report.compute.0,
        responses: report.responses.clone(),
        waits: report.waits.clone(),
        is_saturated: false,
    })
}

/// Runs a hinted method in the theory's units.
///
/// # Errors
/// See [`unit::run`].
pub fn in_units(setup: &Setup, instance: &Instance) -> Result<Outcome, HostError> {
    let report = unit::run(setup, instance)?;
    let ledger = report.ledger;
    let mut busy = vec![0; usize::from(setup.disks)];
    for fetch in &report.fetches {
        let place = instance.reads.places.get(fetch.block.0 as usize);
        if let Some(disk) = place.and_then(|place| busy.get_mut(usize::from(place.disk.0))) {
            *disk += instance.fetch_units;
        }
    }
    Ok(Outcome {
        elapsed: report.elapsed_units,
        compute: ledger.reads,
        stall: report.stall_units,
        busy,
        compute_longest: ledger.reads,
        reads: ledger.reads,
        hits: ledger.hits,
        late_hits: ledger.late_hits,
        misses: ledger.misses,
        fetches: ledger.fetches,
        prefetched: ledger.prefetched,
        evicted_unused: ledger.evicted_unused,
        ..Outcome::default()
    })
}

/// Runs the engine over devices, on one of which each file lies, or all on an array.
///
/// # Errors
/// See [`Scene::run`].
pub fn engine(
    settings: Settings,
    driver_per_fetch: Nanos,
    workload: &dyn Workload,
    striping: Option<Striping>,
    devices: Vec<Box<dyn Device>>,
) -> Result<Outcome, WorldError> {
    let (meters, metered) = Metered::over(devices);
    let striping = striping.filter(|_| metered.len() > 1);
    let scene = Scene {
        settings,
        devices: metered,
        striping,
        workload,
        driver_per_fetch,
        copy_bytes_per_second: 0,
        events_max: u64::MAX,
        joins_instants: true,
        told: None,
        processors: None,
        until: None,
    };
    let report = scene.run(&mut ())?;
    let ledger = report.ledger;
    let sum = |part: fn(&crate::ReaderReport) -> Nanos| {
        let parts = report.readers.iter().map(|reader| part(reader).0);
        parts.fold(0, u64::saturating_add)
    };
    let outcome = Outcome {
        reads: ledger.reads,
        hits: ledger.hits,
        late_hits: ledger.late_hits,
        misses: ledger.misses,
        fetches: ledger.prefetched + ledger.demanded,
        prefetched: ledger.prefetched,
        evicted_unused: ledger.evicted_unused,
        elapsed: report.elapsed.0,
        compute: sum(crate::ReaderReport::own_compute),
        driver: sum(|reader| reader.driver),
        stall: sum(|reader| reader.stall),
        compute_longest: report
            .readers
            .iter()
            .map(|r| r.own_compute().0)
            .max()
            .unwrap_or(0),
        responses: report.responses,
        waits: report.waits,
        is_saturated: report.is_growing,
        ..Outcome::default()
    };
    let outcome = meters.told(outcome);
    Ok(Outcome {
        is_saturated: outcome.is_saturated && outcome.utilisation() >= BUSY,
        ..outcome
    })
}

/// Runs a kernel's readahead over an array of devices, with so much memory for pages as these settings have, by which
/// its limits are steered if it is watched.
///
/// # Errors
/// See [`Machine::run`].
pub fn kernel(
    kernel: Kernel,
    settings: &Settings,
    workload: &dyn Workload,
    strip: Bytes,
    devices: Vec<Box<dyn Device>>,
) -> Result<Outcome, KernelError> {
    let (meters, metered) = Metered::over(devices);
    let machine = Machine {
        workload,
        device: Box::new(Array::new(metered, strip)),
        cache: settings.memory,
        limit: kernel.limit,
        watch: kernel.is_watched.then(|| settings.clone()),
    };
    let (outcome, _) = machine.run(&mut |_| ())?;
    Ok(meters.told(outcome))
}

/// Meters over devices, and how many requests each can work on at once.
struct Metered(Vec<(Meter, u64)>);

impl Metered {
    fn over(devices: Vec<Box<dyn Device>>) -> (Self, Vec<Box<dyn Device>>) {
        let meter = |device: Box<dyn Device>| {
            let (meter, servers) = (Meter::default(), device.servers().max(1).into());
            let device = meter.over(device);
            ((meter, servers), device)
        };
        let (meters, devices) = devices.into_iter().map(meter).unzip();
        (Self(meters), devices)
    }

    /// The outcome with what they count.
    fn told(&self, outcome: Outcome) -> Outcome {
        let meters = || self.0.iter().map(|(meter, _)| meter);
        let response: u64 = meters().map(|meter| meter.response().0).sum();
        let completed: u64 = meters().map(Meter::completed).sum();
        let busy = self
            .0
            .iter()
            .map(|(meter, servers)| meter.busy().0 / servers);
        Outcome {
            response_mean: Some(response.checked_div(completed).unwrap_or(0)),
            busy: busy.collect(),
            failed: meters().map(Meter::failed).sum(),
            ..outcome
        }
    }
}
