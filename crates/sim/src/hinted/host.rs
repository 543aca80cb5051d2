//! The host: a reference string read by one process, the engine, and an array of devices.
//!
//! The engine follows hints that are exact, over a plan of K blocks, in the [world](crate::world),
//! under the conditions of Kimbrel et al. 1996, section 3:
//!
//! ```text
//! disk d of the array     file d, device d: each block at its place
//! the reference string    readers 0..d of one process, by turns; all of it announced beforehand
//! a fetch                 half a millisecond of processor, at once; at its device from then on
//! ```
//!
//! The process takes a block, computes for as long as the trace says, and asks for the next. Work
//! of the processor is in one queue, so its time splits without rest:
//!
//! ```text
//! elapsed = compute + driver + stall
//!
//! processor  |driver|driver|  compute  |driver|  compute  |   stall   |  compute  |
//!            ^ two fetches start       ^ one more         ^ asks      ^ arrives
//! ```
//!
//! Stall is time in which the processor has nothing to do. The reader's last computation counts.
//! Devices get everything at once, queue and reorder by themselves. When the engine notices that a
//! fetch ended is a choice: see [`Notice`].

use forerun_core::hinted::Setup;
use forerun_core::profile::SERVERS_MAX;
use forerun_core::settings::{Notice, SettingsError};
use forerun_core::table::Table;
use forerun_core::{Bytes, Engine, Ledger, Nanos, Profile, Settings, preset};

use super::{BLOCK_BYTES, HostError, Reads};
use crate::device::Device;
use crate::times::Times;
use crate::workload::{Announcement, Announcements, Step, Steps, Turns, Workload};
use crate::wrap::{Layer, Meter, Wrapped};
use crate::{Report, Scene, WorldError};

/// Processor time of a fetch (Kimbrel et al. 1996, section 3.1, a DECstation 5000/200).
pub const DRIVER_OVERHEAD: Nanos = Nanos(500_000);

/// Parameters of the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// When the engine notices that a fetch ended.
    pub notice: Notice,
    /// Processor time of a fetch.
    pub driver: Nanos,
    /// Size of a block.
    pub block_bytes: Bytes,
}

impl Default for Host {
    /// The paper's half a millisecond and blocks of 8 KiB, and the live engine's decisions.
    fn default() -> Self {
        Self {
            notice: Notice::default(),
            driver: DRIVER_OVERHEAD,
            block_bytes: Bytes(BLOCK_BYTES),
        }
    }
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostReport {
    /// The engine's counters.
    pub ledger: Ledger,
    /// From the first request to the end of the last computation.
    pub elapsed: Nanos,
    /// Computing time of the reader.
    pub compute: Nanos,
    /// Processor time of the fetches.
    pub driver: Nanos,
    /// Waiting time of the processor.
    pub stall: Nanos,
    /// Sum over fetches that ended of the time from submission to completion.
    pub response: Nanos,
    /// Fetches that ended.
    pub completed: u64,
    /// Of these, the ones that failed.
    pub failed: u64,
    /// Busy time of each device.
    pub busy: Vec<Nanos>,
    /// From the begin of each read to its end.
    pub responses: Times,
    /// Stall of the reads that waited.
    pub waits: Times,
}

impl HostReport {
    /// Blocks fetched.
    #[must_use]
    pub fn fetches(&self) -> u64 {
        self.ledger.prefetched + self.ledger.demanded
    }

    /// Mean time from submission to completion.
    #[must_use]
    pub fn response_mean(&self) -> Nanos {
        Nanos(self.response.0.checked_div(self.completed).unwrap_or(0))
    }

    /// Share of the elapsed time that the devices worked, in millionths, on average.
    #[must_use]
    pub fn utilisation_ppm(&self) -> u64 {
        let busy: u128 = self.busy.iter().map(|busy| u128::from(busy.0)).sum();
        let time = u128::from(self.elapsed.0) * self.busy.len() as u128;
        (busy * 1_000_000).checked_div(time).unwrap_or(0) as u64
    }

    /// Whether time and counters add up.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let parts = [self.compute, self.driver, self.stall].map(|part| u128::from(part.0));
        u128::from(self.elapsed.0) == parts.iter().sum() && self.ledger.check().is_ok()
    }
}

/// Runs a reference string over devices, one a disk.
///
/// # Errors
/// A setup out of range, references without a place, fewer devices than disks, or an engine that
/// breaks a rule.
pub fn run(
    setup: &Setup,
    host: &Host,
    reads: &Reads,
    devices: Vec<Box<dyn Device>>,
) -> Result<HostReport, HostError> {
    reads.check_for(setup)?;
    if devices.len() < usize::from(setup.disks) {
        return Err(HostError::Devices(devices.len()));
    }
    let meters: Vec<Meter> = devices.iter().map(|_| Meter::default()).collect();
    let process = Process {
        reads,
        disks: setup.disks,
        block_bytes: host.block_bytes,
    };
    let metered = devices.into_iter().zip(&meters);
    let open = |(device, meter): (_, &Meter)| {
        let inner = meter.over(device);
        Box::new(Wrapped::around(AllAtOnce, inner)) as Box<dyn Device>
    };
    let scene = Scene {
        processors: None,
        settings: settings(setup, host, reads.references.len()).map_err(WorldError::Settings)?,
        devices: metered.take(setup.disks.into()).map(open).collect(),
        striping: None,
        workload: &process,
        driver_per_fetch: host.driver,
        copy_bytes_per_second: 0,
        events_max: u64::MAX,
        joins_instants: true,
        told: None,
        until: None,
    };
    let report = scene.run(&mut ())?;
    if report.ledger.hints < reads.references.len() as u64 {
        return Err(HostError::TooLong(reads.references.len()));
    }
    Ok(told(&report, reads, &meters))
}

fn told(report: &Report, reads: &Reads, meters: &[Meter]) -> HostReport {
    let sum = |part: &dyn Fn(&crate::ReaderReport) -> Nanos| {
        let parts = report.readers.iter().map(|reader| part(reader).0);
        Nanos(parts.fold(0, u64::saturating_add))
    };
    let compute = reads.references.iter().map(|r| r.compute.0);
    let responses = meters.iter().map(|meter| meter.response().0);
    HostReport {
        ledger: report.ledger,
        elapsed: report.elapsed,
        compute: Nanos(compute.fold(0, u64::saturating_add)),
        driver: sum(&|reader| reader.driver),
        stall: sum(&|reader| reader.stall),
        response: Nanos(responses.fold(0, u64::saturating_add)),
        completed: meters.iter().map(Meter::completed).sum(),
        failed: meters.iter().map(Meter::failed).sum(),
        busy: report.devices.iter().map(|d| d.usage.busy).collect(),
        responses: report.responses.clone(),
        waits: report.waits.clone(),
    }
}

/// An engine that only follows exact hints, over a plan of K blocks. Its memory exceeds K by the
/// rest of its needs, so that K is as the setup says: a reserve for reads that were not announced,
/// of which there are none, and bookkeeping.
///
/// # Errors
/// A block size or a cache that no engine has.
pub fn settings(setup: &Setup, host: &Host, references: usize) -> Result<Settings, SettingsError> {
    let block_bytes = u32::try_from(host.block_bytes.0).unwrap_or(u32::MAX);
    let kept = Engine::HINT_BYTES * references as u64 + SPARE.0;
    let beside = kept.div_ceil(host.block_bytes.0.max(1)) + RESERVE;
    let frames = beside.saturating_add(setup.cache_blocks.into());
    let frames = u32::try_from(frames).unwrap_or(u32::MAX);
    let memory = Table::memory_for(frames, block_bytes);
    let preset = forerun_baselines::preset("none").unwrap_or(preset::default());
    let mut settings = preset.settings(Bytes(1 << 30))?;
    settings.memory = memory;
    settings.block_bytes = block_bytes;
    settings.request_max = host.block_bytes;
    settings.in_flight_max = IN_FLIGHT_MAX;
    settings.hinted = Some(setup.policy.clone());
    settings.hinting.notice = host.notice;
    settings.hinting.exact = true;
    settings.hinting.blocks = setup.cache_blocks;
    settings.check()?;
    Ok(settings)
}

/// Frames the engine keeps for reads that were not announced, at most: 256, and the fewest it works
/// with.
const RESERVE: u64 = 512;
/// Bookkeeping beside that of references: some kilobytes for readers, and less than 256 bytes for
/// each of the most fetches under way.
const SPARE: Bytes = Bytes(IN_FLIGHT_MAX as u64 * 256);
/// The largest batch.
const IN_FLIGHT_MAX: u32 = 1 << 16;

/// A device that takes every request at once and orders them itself.
#[derive(Debug)]
struct AllAtOnce;

impl Layer for AllAtOnce {
    fn profile<D: Device>(&self, inner: &D) -> Profile {
        let profile = inner.profile();
        profile.clone().with_servers(SERVERS_MAX).unwrap_or(profile)
    }
}

/// The reference string as the turns of one process, a reader a disk.
#[derive(Debug)]
struct Process<'a> {
    reads: &'a Reads,
    disks: u16,
    block_bytes: Bytes,
}

impl Process<'_> {
    /// The disk and place of each reference, and the computing time before it.
    fn references(&self) -> impl Iterator<Item = (usize, Bytes, Nanos)> {
        let mut before = Nanos(0);
        self.reads.references.iter().map(move |reference| {
            let place = self.reads.places[reference.block.0 as usize];
            let think = std::mem::replace(&mut before, reference.compute);
            (place.disk.0.into(), place.at, think)
        })
    }

    /// The reader that computes last, and for how long.
    fn last(&self) -> Option<(usize, Nanos)> {
        let last = self.reads.references.last()?;
        let place = self.reads.places[last.block.0 as usize];
        Some((place.disk.0.into(), last.compute))
    }
}

impl Workload for Process<'_> {
    fn files(&self) -> Vec<Bytes> {
        // One block where there would be none: a disk of the array counts, used or not.
        let mut files = vec![self.block_bytes; self.disks.into()];
        for place in &self.reads.places {
            let file = &mut files[usize::from(place.disk.0)];
            let end = place.at.0.saturating_add(self.block_bytes.0);
            file.0 = file.0.max(end);
        }
        files
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.disks.into()).collect()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let bytes = self.block_bytes.0;
        let own = move |(disk, at, think): (usize, Bytes, Nanos)| {
            (disk == reader).then(|| Step::read(at.0, bytes, think.0))
        };
        let last = self.last().filter(|(disk, _)| *disk == reader);
        let last = last.map(|(_, think)| Step::read(0, 0, think.0));
        Box::new(self.references().filter_map(own).chain(last))
    }

    fn turns(&self) -> Option<Turns<'_>> {
        let disks = self.references().map(|(disk, ..)| disk);
        Some(Box::new(disks.chain(self.last().map(|(disk, _)| disk))))
    }

    fn hints(&self) -> Announcements<'_> {
        let bytes = self.block_bytes;
        Box::new(
            self.references()
                .map(move |(reader, offset, _)| Announcement {
                    reader,
                    offset,
                    bytes,
                }),
        )
    }
}
