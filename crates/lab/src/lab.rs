//! The lab: traces under one method on so many modelled disks, each run made once.
//!
//! The conditions of a [`TraceRun`] are those of Kimbrel et al. 1996, section 3: an HP 97560 a disk,
//! CSCAN, striping by one block, the cache the trace was run with, half a millisecond of processor
//! a fetch. The paper does not say when a free disk is noticed; the lab has one [`Notice`] at a
//! time. A measurement asks for the runs it needs as if they were there. A missing one is noted,
//! and answered with zeroes; the noted runs are then made, on the caller's threads, and the
//! measurement is made again, until nothing is missing:
//!
//! ```text
//! measure -> missing jobs -> done, in any order -> measure -> .. -> nothing missing: the result
//! ```
//!
//! So a measurement declares no runs in advance, and may choose its next runs by results. A job
//! depends on nothing but itself and the traces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use forerun_baselines::METHODS;
use forerun_core::Nanos;
use forerun_sim::hinted::Setup;
use forerun_sim::hinted::host::Notice;

use super::Broken;
use super::array::{ArrayReport, ArrayRun, Host};
use super::drive::{DriveReport, DriveRun};
use super::knobs::{self, Knobs};
use super::server::{ServerReport, ServerRun};
use super::theory::{self, Bounds};
use forerun_sim::device::{self, Device};
use forerun_sim::hinted::host::{self, HostReport};
use forerun_sim::hinted::stand_in::{self, Trace};

/// The seed of all traces. The compute times of `synth` add up to 0.3 s more than the paper's.
pub const SEED: u64 = 1;

/// postgres-select with a tenth of the compute time that Table 3 prints: see
/// [`postgres`](forerun_sim::hinted::stand_in::postgres).
pub const SELECT_TENTH: &str = "postgres-select/10";

/// cscope3 without its bursts: every compute time the mean.
pub const CSCOPE_3_EVEN: &str = "cscope3, even";

/// The paper's disk and scheduler, as notes name them.
pub const DISK: &str = "CSCAN, HP 97560 by its published figures (hp97560)";

/// Models in place of the paper's disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Disk {
    /// By its published figures alone, behind CSCAN.
    #[default]
    Cscan,
    /// The same, first come first served.
    Fcfs,
    /// With a cylinder switch calibrated to another simulator's means, behind CSCAN. The paper's own simulator
    /// had no part in that.
    Calibrated,
}

/// One method over one trace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TraceRun {
    /// Name of the trace.
    pub trace: &'static str,
    /// The method with its parameters.
    pub policy: String,
    /// Disks.
    pub disks: u16,
    /// Blocks of the cache; the trace's own unless given.
    pub cache_blocks: Option<u32>,
    /// The disk.
    pub disk: Disk,
}

/// The subject of a job.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Task {
    /// A run, and when its engine notices that a fetch ended.
    Run(TraceRun, Notice),
    /// One on a striped array.
    Array(ArrayRun),
    /// One of a server.
    Server(ServerRun),
    /// One on a single disk.
    Drive(DriveRun),
    /// Figure 1.
    Figure1,
    /// So many random instances of the theorems, from a seed.
    Theorems {
        /// The seed.
        seed: u64,
        /// How many.
        instances: u64,
    },
}

/// Something to be done.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Job {
    /// Its subject.
    pub task: Task,
    /// Conditions with values of their own.
    pub with: Knobs,
}

/// Its result.
#[derive(Clone, Debug)]
pub enum Done {
    /// Of a run.
    Run(Box<HostReport>),
    /// Of a run on an array.
    Array(ArrayReport),
    /// Of a run of a server.
    Server(Box<ServerReport>),
    /// Of a run on a single disk.
    Drive(DriveReport),
    /// Of figure 1.
    Figure1([u64; 2]),
    /// Of the theorems.
    Theorems(Bounds),
}

/// Does jobs; in any order, on any number of threads.
pub type Perform<'a> = &'a mut dyn FnMut(&Traces, Vec<Job>) -> Result<Vec<(Job, Done)>, Broken>;

/// The traces, generated once, when the first is asked for.
#[derive(Debug, Default)]
pub struct Traces(OnceLock<BTreeMap<&'static str, Trace>>);

impl Traces {
    fn get(&self, name: &str) -> Option<&Trace> {
        self.0.get_or_init(Self::generated).get(name)
    }

    fn generated() -> BTreeMap<&'static str, Trace> {
        let stand_ins = stand_in::LIST.iter().chain(stand_in::WITHOUT_FIT);
        let mut all: Vec<Trace> = stand_ins.map(|t| t.trace(SEED)).collect();
        let mut tenth = stand_in::postgres::SELECT.trace(SEED);
        tenth.name = SELECT_TENTH;
        for reference in &mut tenth.references {
            reference.compute = Nanos(reference.compute.0 / 10);
        }
        let bursty = &stand_in::cscope::CSCOPE_3;
        let mut even = bursty.trace(SEED);
        even.name = CSCOPE_3_EVEN;
        for reference in &mut even.references {
            reference.compute = Nanos(bursty.compute.0 / u64::from(bursty.reads));
        }
        all.extend([tenth, even, Trace::synth(SEED)]);
        all.into_iter().map(|trace| (trace.name, trace)).collect()
    }
}

impl Job {
    /// Does it.
    ///
    /// # Errors
    /// A trace, a method or a device there is not, or a run that came to no end.
    pub fn perform(&self, traces: &Traces) -> Result<Done, Broken> {
        let with = &self.with;
        match &self.task {
            Task::Run(run, notice) => run
                .perform(*notice, traces, with)
                .map(|report| Done::Run(Box::new(report))),
            Task::Array(run) => run.perform_with(with).map(Done::Array),
            Task::Server(run) => run
                .perform_with(with)
                .map(|report| Done::Server(Box::new(report))),
            Task::Drive(run) => run.perform_with(with).map(Done::Drive),
            Task::Figure1 => theory::figure_1_units().map(Done::Figure1),
            Task::Theorems { seed, instances } => {
                theory::check(*seed, *instances).map(Done::Theorems)
            }
        }
    }
}

impl TraceRun {
    /// The method, with the values that were set where it has none of its own: a claim about batches goes through them.
    fn policy(&self, with: &Knobs) -> String {
        let (horizon, batch) = (with.number(knobs::HORIZON), with.number(knobs::BATCH));
        match (self.policy.as_str(), horizon, batch) {
            ("fixed-horizon", Some(refs), _) => format!("fixed-horizon(horizon_refs={refs})"),
            ("aggressive", _, Some(blocks)) => format!("aggressive(batch_blocks={blocks})"),
            (policy, ..) => policy.to_owned(),
        }
    }

    fn perform(&self, notice: Notice, traces: &Traces, with: &Knobs) -> Result<HostReport, Broken> {
        let trace = traces.get(self.trace).ok_or(Broken::Trace(self.trace))?;
        let cache_blocks = self.cache_blocks.unwrap_or(trace.cache_blocks);
        let setup = Setup::of(&self.policy(with), self.disks, cache_blocks, &METHODS)?;
        let devices = (0..self.disks).map(|_| self.disk.device());
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        let reads = trace.on(self.disks);
        let host = host::Host {
            notice,
            ..host::Host::default()
        };
        let report = host::run(&setup, &host, &reads, devices)?;
        if report.adds_up() {
            Ok(report)
        } else {
            Err(Broken::Books)
        }
    }
}

impl Disk {
    fn device(self) -> Result<Box<dyn Device>, Broken> {
        let device = device::parse(match self {
            Self::Cscan => "cscan:hp97560",
            Self::Fcfs => "fcfs:hp97560",
            Self::Calibrated => "cscan:hp97560_calibrated",
        });
        device.map_err(|error| Broken::Model(error.to_string()))
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Lab {
    /// When engines notice that a fetch ended.
    pub notice: Notice,
    /// Fewer arrays, parameters and seconds, for tests: see [`Wanted`](super::Wanted).
    pub is_sample: bool,
    /// Conditions with values of their own.
    pub with: Knobs,
    /// The seed of draws, where it is not that of the workloads: measurements under it are there for the numbers,
    /// so runs that only notes show are left out.
    pub(crate) seed: Option<u64>,
    done: BTreeMap<Job, Done>,
    missing: BTreeSet<Job>,
}

impl Lab {
    /// The result of a task; it is missing if there is none.
    fn ask(&mut self, task: Task) -> Option<&Done> {
        let seed = match task {
            Task::Array(_) | Task::Server(_) => self.seed,
            _ => None,
        };
        let with = self.with.seeded(seed);
        let job = Job { task, with };
        if !self.done.contains_key(&job) {
            self.missing.insert(job);
            return None;
        }
        self.done.get(&job)
    }

    /// Whether runs that only notes show are made: not in a sample, under another seed, or for an experiment,
    /// which is about the claim's own numbers.
    pub(crate) fn has_notes(&self) -> bool {
        !self.is_sample && self.seed.is_none() && !self.with.is_experiment()
    }

    /// The run of this method, with its parameters, over a trace on a given number of disks.
    pub fn run(&mut self, trace: &'static str, policy: &str, disks: u16) -> HostReport {
        self.under(TraceRun {
            trace,
            policy: policy.to_owned(),
            disks,
            cache_blocks: None,
            disk: Disk::default(),
        })
    }

    /// A run under conditions of its own.
    pub fn under(&mut self, run: TraceRun) -> HostReport {
        match self.ask(Task::Run(run, self.notice)) {
            Some(Done::Run(report)) => (**report).clone(),
            _ => HostReport::default(),
        }
    }

    /// A run on a striped array.
    pub fn array(&mut self, run: ArrayRun) -> ArrayReport {
        if !self.has_notes() && run.host != Host::default() {
            return ArrayReport::default();
        }
        match self.ask(Task::Array(run)) {
            Some(Done::Array(report)) => *report,
            _ => ArrayReport::default(),
        }
    }

    /// A run of a server.
    pub fn server(&mut self, run: ServerRun) -> ServerReport {
        match self.ask(Task::Server(run)) {
            Some(Done::Server(report)) => **report,
            _ => ServerReport::default(),
        }
    }

    /// A run on a single disk.
    pub fn drive(&mut self, run: DriveRun) -> DriveReport {
        match self.ask(Task::Drive(run)) {
            Some(Done::Drive(report)) => *report,
            _ => DriveReport::default(),
        }
    }

    /// Units of aggressive for figure 1, and the optimum.
    pub fn figure_1(&mut self) -> [u64; 2] {
        match self.ask(Task::Figure1) {
            Some(Done::Figure1(units)) => *units,
            _ => [0; 2],
        }
    }

    /// Results of random instances.
    pub fn theorems(&mut self, seed: u64, instances: u64) -> Bounds {
        match self.ask(Task::Theorems { seed, instances }) {
            Some(Done::Theorems(bounds)) => *bounds,
            _ => Bounds::default(),
        }
    }

    /// The requested jobs that are missing.
    #[must_use]
    pub fn missing(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.missing).into_iter().collect()
    }

    /// A job is done.
    pub fn learn(&mut self, job: Job, done: Done) {
        self.done.insert(job, done);
    }
}
