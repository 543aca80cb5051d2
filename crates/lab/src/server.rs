//! Runs of a server: request handlers on shared processors, a page cache, a disk scheduler, one drive.
//!
//! The machine of Li et al. 2004 and of Li and Shen 2005: two Xeons of 2 GHz, 2 GB of memory or
//! less, an IBM drive of 36.4 GB behind Linux 2.6. Every part is the simulator's own:
//!
//! ```text
//! requests -> processors -> readahead (the engine: its detector, its depth) -> page cache (the engine's memory)
//!                                          |                                   less what handlers and kernel have
//!                                          v
//!                               disk scheduler, merging -> drive with its cache
//! ```
//!
//! **Assumed**, where the papers say nothing; none was chosen by a figure that is compared:
//!
//! | | |
//! | --- | --- |
//! | memory of the kernel | 24 MB, the part of Linux 2.6 with its services that others cannot use |
//! | memory of handlers | 1 MB each, as published, but no more than 80 % of the machine: beyond that Linux 2.6 (swappiness 60) takes their pages before those of files. With `handlers-memory=0` all of it is swapped out |
//! | queue | 128 requests (`nr_requests`): a handler with one more sleeps, unless the disk waits for it; congested from 112 on until there are fewer than 104 |
//! | longest request | 1 MiB, so that a window comes as a whole. Notes of li04 show the result with 512 KiB (`max_sectors_kb` for SCSI), where a reader goes on with the first part |
//! | processor time | that of the workloads, see [`server`](forerun_sim::workload::server) |
//! | place | the files lie one behind the other from the beginning of the disk on |
//!
//! A run is as long as its time, not its work, so that concurrency is the same until the end;
//! throughput is the bytes of all handlers by then.

use std::num::NonZeroU16;

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, Settings};

use super::Broken;
use super::knobs::{self, Knobs};
use forerun_sim::Scene;
use forerun_sim::device::{self, Device};
use forerun_sim::report::Report;
use forerun_sim::wrap::Queued;

/// Two Xeons.
const PROCESSORS: NonZeroU16 = NonZeroU16::new(2).expect("2 is not 0");

/// As long as a window of AP.
pub const REQUEST: Bytes = Bytes(1 << 20);

/// Requests of the engine that the scheduler sees: all.
const REQUESTS_MAX: u32 = 1 << 16;

/// The parameter of reclaim methods with a prefetch cache: where its part begins. And its most.
const PART: &str = "part_percent";
const PREFETCHED_PERCENT_MAX: u64 = 99;

/// See the [module](self).
const KERNEL: u64 = 24 << 20;
const HANDLER: u64 = 1 << 20;
const HANDLERS_PERCENT: u64 = 80;

/// A run of a server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ServerRun {
    /// The workload with its parameters, without `handlers` and the bracket behind that.
    pub workload: String,
    /// Requests served at a time.
    pub handlers: u64,
    /// A preset.
    pub preset: &'static str,
    /// The readahead of the paper's kernel, which takes the place of the preset's detection.
    pub detect: &'static str,
    /// The longest request to the disk.
    pub request: Bytes,
    /// Its depth with parameters, where that is not the preset's.
    pub depth: Option<&'static str>,
    /// Memory of the machine.
    pub memory: Bytes,
    /// The disk scheduler.
    pub scheduler: &'static str,
    /// Length.
    pub time: Nanos,
}

/// Its result.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ServerReport {
    /// Read by all handlers.
    pub bytes: Bytes,
    /// In this time.
    pub elapsed: Nanos,
    /// Requests that were done by then.
    pub requests: u64,
    /// How long those took, all together.
    pub response: Nanos,
    /// Pages that were fetched ahead and given up before their reader came.
    pub thrashed: u64,
    /// Bytes fetched from the disk.
    pub fetched: Bytes,
    /// The engine's memory beside blocks in the end, and the memory it had.
    pub bookkeeping: (Bytes, Bytes),
}

impl ServerRun {
    /// The page cache's part of the memory.
    fn cache(&self, with: &Knobs) -> Bytes {
        let percent = with.number(knobs::HANDLERS_MEMORY);
        let percent = percent.unwrap_or(HANDLERS_PERCENT);
        let handlers = self.handlers.saturating_mul(HANDLER);
        let handlers = handlers.min(self.memory.0 / 100 * percent);
        Bytes(self.memory.0.saturating_sub(handlers + KERNEL))
    }

    /// The prefetch cache's part in the beginning: a quarter of the machine's memory, of which the page
    /// cache has only a part (Li and Shen 2005, section 3.3).
    fn prefetched_percent(&self, with: &Knobs) -> u64 {
        let percent = self.memory.0 / 4 * 100 / self.cache(with).0.max(1);
        percent.min(PREFETCHED_PERCENT_MAX)
    }

    fn settings(&self, with: &Knobs) -> Result<Settings, Broken> {
        let refused = |error: &dyn std::fmt::Display| Broken::Settings(error.to_string());
        let preset = forerun_baselines::preset(self.preset).map_err(|error| refused(&error))?;
        let settings = preset.settings(self.cache(with));
        let mut settings = settings.map_err(|error| refused(&error))?;
        settings.detect = Choice::parse("detect", METHODS.detect, self.detect)?;
        let mut reclaim = settings.reclaim;
        if reclaim.value(PART).is_some() {
            reclaim = reclaim.with(PART, self.prefetched_percent(with))?;
        }
        settings.reclaim = knobs::reclaim(reclaim, with)?;
        settings.request_max = self.request;
        // The queue is that of the disk scheduler.
        settings.in_flight_max = REQUESTS_MAX;
        if let Some(depth) = self.depth {
            settings.depth = Choice::parse("depth", METHODS.depth, depth)?;
        }
        if let Some(detect) = with.name(knobs::DETECT) {
            settings.detect = Choice::parse("detect", METHODS.detect, detect)?;
        }
        if let Some(requests) = with.number(knobs::ENGINE_QUEUE) {
            settings.in_flight_max = u32::try_from(requests).unwrap_or(REQUESTS_MAX);
        }
        Ok(settings)
    }

    fn disk(&self, with: &Knobs) -> Result<Box<dyn Device>, Broken> {
        let model = device::from_toml(include_str!("../../sim/models/ibm_36gb_10k.toml"));
        let model = model.map_err(|error| Broken::Model(error.to_string()))?;
        let scheduler = knobs::scheduler(self.scheduler, with)?;
        Ok(Box::new(Queued::new(scheduler, model.build())))
    }

    /// Makes it.
    ///
    /// # Errors
    /// A workload, a preset or a model there is not, or a run that breaks a rule.
    pub fn perform(&self) -> Result<ServerReport, Broken> {
        self.perform_with(&Knobs::default())
    }

    /// Makes it with conditions changed.
    ///
    /// # Errors
    /// As [`perform`](Self::perform).
    pub fn perform_with(&self, with: &Knobs) -> Result<ServerReport, Broken> {
        let workload = format!("{},handlers={})", self.workload, self.handlers);
        let workload = knobs::workload(&workload, with)?;
        let time = with.number(knobs::RUN).map_or(self.time, Nanos);
        let mut scene = Scene::new(self.settings(with)?, self.disk(with)?, &*workload);
        scene.processors = Some(PROCESSORS);
        scene.until = Some(time);
        let run = scene.run(&mut ());
        let report = run.map_err(|error| Broken::Settings(error.to_string()))?;
        let owners = |reader: &usize| workload.owner(*reader) == *reader;
        Ok(ServerReport {
            bookkeeping: (report.bookkeeping, self.cache(with)),
            ..ServerReport::of(&report, time, owners)
        })
    }
}

impl ServerReport {
    fn of(report: &Report, time: Nanos, is_owner: impl Fn(&usize) -> bool) -> Self {
        let done = (0..report.readers.len()).filter(is_owner);
        let done = done.map(|reader| report.readers[reader]);
        let done: Vec<_> = done.filter(|reader| reader.elapsed > Nanos(0)).collect();
        let response = done
            .iter()
            .map(|reader| reader.elapsed.since(reader.opened).0);
        let usages = report.devices.iter().map(|device| device.usage);
        Self {
            bytes: report.bytes,
            elapsed: if report.quiet < time {
                report.quiet
            } else {
                time
            },
            requests: done.len() as u64,
            response: Nanos(response.sum()),
            thrashed: report.ledger.thrashed,
            fetched: Bytes(usages.map(|usage| usage.bytes.0).sum()),
            bookkeeping: Default::default(),
        }
    }

    /// Throughput that the server sees, in MB/s of 10^6 bytes.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes.0 as f64 * 1e3 / self.elapsed.0.max(1) as f64
    }

    /// Mean response time, in ms.
    #[must_use]
    pub fn response_ms(&self) -> f64 {
        self.response.0 as f64 / self.requests.max(1) as f64 / 1e6
    }

    /// Pages thrashed for each request that was done.
    #[must_use]
    pub fn thrashed_per_request(&self) -> f64 {
        self.thrashed as f64 / self.requests.max(1) as f64
    }
}
