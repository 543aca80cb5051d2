//! Runs on a striped array: one workload, one preset, five disks of one model, each with a
//! scheduler.
//!
//! The conditions of Baek and Park 2009, section 5.1, as far as they are known: Cheetah 15K.4,
//! RAID-0, the anticipatory scheduler per disk, ext3 on Linux 2.6.18 with 1 GB of memory. The
//! members are devices of the engine, so windows are split at strips as md splits them, and each
//! part is complete when its disk has read it:
//!
//! ```text
//! reader -> two windows -> [shape] -> pieces at strips -> anticipatory, merging -> drive, cache
//! ```
//!
//! A run is as long as its time, not its work, so that no reader is left alone at the end:
//! bandwidth is the bytes of all readers by then. IOzone also stops its clock when the first
//! process is done.

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, Settings};

use super::Broken;
use super::knobs::{self, Knobs};
use forerun_sim::Scene;
use forerun_sim::device::{self, Device};
use forerun_sim::report::Report;
use forerun_sim::world::{Fragments, Striping};
use forerun_sim::wrap::Queued;

/// Disks of the array.
pub const DISKS: u16 = 5;

/// The page cache of section 5.1. The 512 MB of the RAID driver, in which MSP keeps its stripes,
/// are no cache of their own here: MSP has at most 8 stripes ahead, half a hundredth of this.
const MEMORY: Bytes = Bytes(1 << 30);

/// Requests that the queue of a disk holds: `nr_requests` of Linux.
const REQUESTS_MAX: u32 = 128;

/// How long a run is: a thousand requests of each disk and more.
pub const RUN: Nanos = Nanos(8_000_000_000);

/// How long it is in a sample.
pub const SAMPLE: Nanos = Nanos(2_000_000_000);

/// Each file in one piece, one right behind the other in a drawn order: at any block of the array, as a file
/// system puts them.
const BEHIND_EACH_OTHER: Fragments = Fragments {
    mean: Bytes(1 << 40),
    seed: 1,
};

/// The line of the model that has it read on by itself.
const READING_ON: &str = "readahead_bytes";

/// Models in place of the paper's disks and their schedulers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Host {
    /// Anticipatory, requests up to 512 KiB merged.
    #[default]
    Linux,
    /// The same, nothing merged.
    Unmerged,
    /// No waiting: an upward elevator with merging.
    Elevator,
    /// In the order of arrival.
    Fcfs,
    /// As Linux, on drives that do not read on by themselves.
    NoReadingOn,
}

impl Host {
    fn scheduler(self) -> &'static str {
        match self {
            Self::Linux | Self::NoReadingOn => "anticipatory",
            Self::Unmerged => "anticipatory(merge_bytes=0)",
            Self::Elevator => "anticipatory(wait_ns=0)",
            Self::Fcfs => "fcfs",
        }
    }

    fn disk(self, with: &Knobs) -> Result<Box<dyn Device>, Broken> {
        let keys = [
            (READING_ON, knobs::READING_ON),
            ("segments", knobs::SEGMENTS),
        ];
        let sheet = include_str!("../../sim/models/cheetah_15k_st373454.toml");
        let sheet = with.model(sheet, &keys);
        let kept = |line: &&str| self != Self::NoReadingOn || !line.starts_with(READING_ON);
        let text: Vec<&str> = sheet.lines().filter(kept).collect();
        let model = device::from_toml(&text.join("\n"));
        let model = model.map_err(|error| Broken::Model(error.to_string()))?;
        let scheduler = knobs::scheduler(self.scheduler(), with)?;
        Ok(Box::new(Queued::new(scheduler, model.build())))
    }
}

/// A run on the array.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ArrayRun {
    /// The workload with its parameters.
    pub workload: String,
    /// Of the presets of Baek and Park, or `none`.
    pub preset: &'static str,
    /// Its shape with parameters, where they are not the preset's.
    pub shape: Option<String>,
    /// Largest window.
    pub prefetch: Bytes,
    /// Strip of the array.
    pub strip: Bytes,
    /// Schedulers and drives.
    pub host: Host,
    /// Files begin at rows of strips; else one right behind the other, wherever that is.
    pub is_aligned: bool,
    /// Length.
    pub time: Nanos,
}

/// Its result.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ArrayReport {
    /// Taken by all readers.
    pub bytes: Bytes,
    /// In this time.
    pub elapsed: Nanos,
    /// Readers that were done by then.
    pub closed: u64,
    /// How long those read, from open to close, all together.
    pub open: Nanos,
    /// Requests of the engine to all disks.
    pub requests: u64,
    /// How often a disk went on elsewhere than where it was.
    pub switches: u64,
}

impl ArrayRun {
    fn settings(&self) -> Result<Settings, Broken> {
        let preset = forerun_baselines::preset(self.preset);
        let preset = preset.map_err(|error| Broken::Settings(error.to_string()))?;
        let settings = preset.settings(MEMORY);
        let mut settings = settings.map_err(|error| Broken::Settings(error.to_string()))?;
        settings.in_flight_max = REQUESTS_MAX;
        settings.depth = Choice::parse("depth", METHODS.depth, "fixed")?;
        settings.depth = settings
            .depth
            .with("depth_bytes", self.prefetch.0.max(512))?;
        if let Some(shape) = &self.shape {
            settings.shape = Choice::parse("shape", METHODS.shape, shape)?;
        }
        Ok(settings)
    }

    /// Makes it.
    ///
    /// # Errors
    /// A workload, a preset or a model there is not, or a run that breaks a rule.
    pub fn perform(&self) -> Result<ArrayReport, Broken> {
        self.perform_with(&Knobs::default())
    }

    /// Makes it with conditions changed.
    ///
    /// # Errors
    /// As [`perform`](Self::perform).
    pub fn perform_with(&self, with: &Knobs) -> Result<ArrayReport, Broken> {
        let workload = knobs::workload(&self.workload, with)?;
        let time = with.number(knobs::RUN).map_or(self.time, Nanos);
        let mut scene = Scene::new(self.settings()?, self.host.disk(with)?, &*workload);
        for _ in 1..DISKS {
            scene.devices.push(self.host.disk(with)?);
        }
        let mut striping = Striping::raid0(self.strip)?;
        if !self.is_aligned {
            striping.fragments = Some(BEHIND_EACH_OTHER);
        }
        scene.striping = Some(striping);
        scene.until = Some(time);
        let run = scene.run(&mut ());
        let report = run.map_err(|error| Broken::Settings(error.to_string()))?;
        Ok(ArrayReport::of(&report, time))
    }
}

impl ArrayReport {
    fn of(report: &Report, time: Nanos) -> Self {
        let closed = report.readers.iter().filter(|r| r.elapsed > Nanos(0));
        let is_over = report.readers.iter().all(|r| r.elapsed > Nanos(0));
        let usages = || report.devices.iter().map(|device| device.usage);
        Self {
            bytes: report.bytes,
            elapsed: if is_over { report.elapsed } else { time },
            closed: closed.clone().count() as u64,
            open: Nanos(closed.map(|r| r.stall.0 + r.driver.0).sum()),
            requests: usages().map(|usage| usage.requests).sum(),
            switches: usages().map(|usage| usage.switches).sum(),
        }
    }

    /// Bandwidth in MB/s, of 10^6 bytes.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes.0 as f64 * 1e3 / self.elapsed.0.max(1) as f64
    }

    /// Files read whole in a second.
    #[must_use]
    pub fn closed_per_second(&self) -> f64 {
        self.closed as f64 * 1e9 / self.elapsed.0.max(1) as f64
    }

    /// Mean time to read a file whole, in ms, computing left out.
    #[must_use]
    pub fn open_ms(&self) -> f64 {
        self.open.0 as f64 / self.closed.max(1) as f64 / 1e6
    }
}
