//! Runs on a single disk: one workload, one preset, one drive behind a queue that merges.
//!
//! Linux 2.6.22 or 2.6.24 over a Hitachi T7K250, whose own readahead is on or off, behind an
//! elevator that merges. Conditions that a paper leaves open are fields of [`DriveRun`]; the
//! paper's module says which values it assumes and why.
//!
//! ```text
//! reader -> windows -> requests up to a size -> elevator, merging -> drive, its readahead on or off
//! ```

use forerun_baselines::METHODS;
use forerun_core::journal::Entry;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Input, Nanos, Output, Settings};

use super::Broken;
use super::knobs::{self, Knobs};
use forerun_sim::Scene;
use forerun_sim::device::scheduler;
use forerun_sim::device::{self, Device};
use forerun_sim::record::Record;
use forerun_sim::report::Report;
use forerun_sim::workload::{Steps, Workload};
use forerun_sim::wrap::Queued;

/// Upwards, adjoining requests merged to at most 512 KiB, nothing waited for.
const SCHEDULER: &str = "anticipatory(wait_ns=0)";

/// The line of the model that says how far it reads on by itself.
const READING_ON: &str = "readahead_bytes";

/// A run on the drive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DriveRun {
    /// The workload with its parameters.
    pub workload: String,
    /// `linux-2.6.22` or `linux-2.6.24`.
    pub preset: &'static str,
    /// How far the drive reads on by itself; 0 is off.
    pub reading_on: Bytes,
    /// Where the first file begins.
    pub location: Bytes,
    /// The page cache.
    pub memory: Bytes,
    /// Largest window.
    pub window: Bytes,
    /// Longest request.
    pub request: Bytes,
    /// When it ends, if not with its work.
    pub until: Option<Nanos>,
}

/// Its result.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriveReport {
    /// Taken by all readers.
    pub bytes: Bytes,
    /// In this time.
    pub elapsed: Nanos,
    /// Of which readers waited, all together.
    pub stall: Nanos,
    /// Requests the drive served, and their bytes.
    pub requests: u64,
    /// See [`requests`](Self::requests).
    pub fetched: Bytes,
    /// How long it worked.
    pub busy: Nanos,
    /// Blocks fetched ahead and given up before they were read.
    pub lost: u64,
}

/// A fetch of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The block after whose read it was sent.
    pub at: u32,
    /// Its first block.
    pub first: u32,
    /// How many.
    pub count: u32,
}

#[derive(Debug, Default)]
struct Fetches {
    at: u32,
    all: Vec<Fetched>,
}

/// A workload behind a given number of bytes of the disk that it does not read.
#[derive(Debug)]
struct Behind {
    before: Bytes,
    inner: Box<dyn Workload>,
}

impl Workload for Behind {
    fn files(&self) -> Vec<Bytes> {
        let mut files = vec![self.before];
        files.extend(self.inner.files());
        files
    }

    fn readers(&self) -> Vec<usize> {
        let readers = self.inner.readers().into_iter();
        readers.map(|file| file + 1).collect()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        self.inner.steps(reader)
    }
}

impl DriveRun {
    fn settings(&self, with: &Knobs) -> Result<Settings, Broken> {
        let preset = forerun_baselines::preset(self.preset);
        let preset = preset.map_err(|error| Broken::Settings(error.to_string()))?;
        // Where memory is plenty it stays so.
        let memory = match with.number(knobs::PAGES) {
            Some(bytes) if self.until.is_some() => Bytes(bytes),
            _ => self.memory,
        };
        let settings = preset.settings(memory);
        let mut settings = settings.map_err(|error| Broken::Settings(error.to_string()))?;
        settings.depth = Choice::parse("depth", METHODS.depth, "fixed")?;
        settings.depth = settings.depth.with("depth_bytes", self.window.0)?;
        settings.request_max = with.number(knobs::REQUEST).map_or(self.request, Bytes);
        Ok(settings)
    }

    fn disk(&self, with: &Knobs) -> Result<Box<dyn Device>, Broken> {
        let keys = [
            ("read_miss_ms", knobs::READ_MISS),
            ("track_to_track_ms", knobs::TRACK_TO_TRACK),
            ("segments", knobs::SEGMENTS),
        ];
        let sheet = include_str!("../../sim/models/hitachi_t7k250_160.toml");
        let sheet = with.model(sheet, &keys);
        let kept = sheet.lines().filter(|line| !line.starts_with(READING_ON));
        let mut text: Vec<String> = kept.map(str::to_owned).collect();
        let reading_on = match (self.reading_on.0, with.number(knobs::READING_ON)) {
            (1.., Some(bytes)) => bytes,
            (bytes, _) => bytes,
        };
        // The cache is the last table of the sheet.
        text.push(format!("{READING_ON} = {reading_on}"));
        let model = device::from_toml(&text.join("\n"));
        let model = model.map_err(|error| Broken::Model(error.to_string()))?;
        let scheduler = scheduler::parse(SCHEDULER)?;
        Ok(Box::new(Queued::new(scheduler, model.build())))
    }

    /// Makes it.
    ///
    /// # Errors
    /// A workload, a preset or a model there is not, or a run that breaks a rule.
    pub fn perform(&self) -> Result<DriveReport, Broken> {
        self.perform_with(&Knobs::default())
    }

    /// Makes it with conditions changed.
    ///
    /// # Errors
    /// As [`perform`](Self::perform).
    pub fn perform_with(&self, with: &Knobs) -> Result<DriveReport, Broken> {
        let report = self.recorded(with, &mut ())?;
        Ok(DriveReport::of(&report, self.until))
    }

    /// Its requests to the drive, in order, with conditions changed.
    ///
    /// # Errors
    /// As [`perform`](Self::perform).
    pub fn fetches(&self, with: &Knobs) -> Result<Vec<Fetched>, Broken> {
        let mut fetches = Fetches::default();
        self.recorded(with, &mut fetches)?;
        Ok(fetches.all)
    }

    fn recorded(&self, with: &Knobs, record: &mut dyn Record) -> Result<Report, Broken> {
        let workload = Behind {
            before: self.location,
            inner: knobs::workload(&self.workload, with)?,
        };
        let mut scene = Scene::new(self.settings(with)?, self.disk(with)?, &workload);
        scene.until = self.until;
        let run = scene.run(record);
        run.map_err(|error| Broken::Settings(error.to_string()))
    }
}

impl Record for Fetches {
    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Input(_, Input::Read { access, .. }) => self.at = access.block.0,
            Entry::Output(Output::Fetch(fetch)) => self.all.push(Fetched {
                at: self.at,
                first: fetch.extent.first.0,
                count: fetch.extent.count,
            }),
            _ => {}
        }
    }
}

impl DriveReport {
    fn of(report: &Report, until: Option<Nanos>) -> Self {
        let usages = || report.devices.iter().map(|device| device.usage);
        Self {
            bytes: report.bytes,
            elapsed: until.unwrap_or(report.elapsed),
            stall: Nanos(report.readers.iter().map(|r| r.stall.0).sum()),
            requests: usages().map(|usage| usage.requests).sum(),
            fetched: Bytes(usages().map(|usage| usage.bytes.0).sum()),
            busy: Nanos(usages().map(|usage| usage.busy.0).sum()),
            lost: report.ledger.thrashed,
        }
    }

    /// This one and another, added up.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            bytes: Bytes(self.bytes.0 + other.bytes.0),
            elapsed: Nanos(self.elapsed.0 + other.elapsed.0),
            stall: Nanos(self.stall.0 + other.stall.0),
            requests: self.requests + other.requests,
            fetched: Bytes(self.fetched.0 + other.fetched.0),
            busy: Nanos(self.busy.0 + other.busy.0),
            lost: self.lost + other.lost,
        }
    }

    /// The difference to an earlier report of the same run.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            bytes: Bytes(self.bytes.0.saturating_sub(before.bytes.0)),
            elapsed: self.elapsed.since(before.elapsed),
            stall: self.stall.since(before.stall),
            requests: self.requests.saturating_sub(before.requests),
            fetched: Bytes(self.fetched.0.saturating_sub(before.fetched.0)),
            busy: self.busy.since(before.busy),
            lost: self.lost.saturating_sub(before.lost),
        }
    }

    /// Bytes taken, in MB/s of 10^6 bytes.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes.0 as f64 * 1e3 / self.elapsed.0.max(1) as f64
    }

    /// Mean size of a request, in KB of 1,024 bytes.
    #[must_use]
    pub fn request_kb(&self) -> f64 {
        self.fetched.0 as f64 / 1024.0 / self.requests.max(1) as f64
    }

    /// Share of the time that the drive worked.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.busy.0 as f64 / self.elapsed.0.max(1) as f64
    }

    /// Seconds that readers waited, for each 100 MB they took.
    #[must_use]
    pub fn delay_s(&self) -> f64 {
        self.stall.0 as f64 / 1e9 * 1e8 / self.bytes.0.max(1) as f64
    }
}
