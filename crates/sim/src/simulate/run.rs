//! One run of the grid, and the bound it is measured against.
//!
//! A run makes its own devices, so several can go on at once; the input is shared. Which host runs
//! a preset:
//!
//! ```text
//! unit            every hinted method, in the theory's units
//! lru             demand-lru, from the references that are kept or from the trace itself
//! hinted          the other hinted methods in the engine, from the references that are kept
//! engine          presets of the engine, from the trace itself or a workload
//! kernel          the readahead of a kernel, for a workload
//! ```

use core::fmt;

use forerun_core::hinted::BlockNo;
use forerun_core::hinted::policy::Policy;
use forerun_core::spec::{Choice, ChoiceError};
use forerun_core::{Bytes, DeviceId, Settings};

use super::bound::{self, Bound};
use super::grid::{Grid, GridRun};
use super::pacing::{Loop, Readers};
use super::placing::{Placing, Regions};
use super::recorded::Recorded;
use super::requests::{RequestsError, Source};
use super::simulated::Simulated;
use super::streamed::{self, References, Streamed};
use super::{Outcome, PAGE_BYTES, engine, hinted, in_units, kernel, lru};
use crate::WorldError;
use crate::device::Device;
use crate::device::array::Array;
use crate::hinted::unit::Instance;
use crate::hinted::{HostError, Place, Reads};
use crate::kernel::{Kernel, KernelError};
use crate::scheduled::BehindError;
use crate::workload::{self, Workload};
use crate::world::Striping;

/// Why a run has no outcome.
#[derive(Clone, PartialEq, Debug)]
pub enum RunError {
    /// The trace cannot be read again.
    Requests(RequestsError),
    /// The input cannot be read again.
    Source,
    /// More blocks at the beginning than the cache has.
    Warm {
        /// Blocks at the beginning.
        blocks: usize,
        /// Blocks in the cache.
        cache_blocks: u32,
    },
    /// A rule of the planner's host is broken.
    Host(HostError),
    /// A rule of the engine's host is broken.
    World(WorldError),
    /// A kernel's readers cannot be run.
    Kernel(KernelError),
    /// The device cannot be made.
    Disk(BehindError),
    /// The workload cannot be made again.
    Workload(ChoiceError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(error) => error.fmt(f),
            Self::Source => f.write_str("the input cannot be read again"),
            Self::Warm {
                blocks,
                cache_blocks,
            } => write!(f, "{blocks} blocks, the cache has {cache_blocks}"),
            Self::Host(error) => error.fmt(f),
            Self::World(error) => error.fmt(f),
            Self::Kernel(error) => error.fmt(f),
            Self::Disk(error) => error.fmt(f),
            Self::Workload(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RunError {}

type Done = Result<(Outcome, Bound), RunError>;

impl Grid<'_> {
    /// Runs one.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(&self, run: &GridRun) -> Done {
        let (outcome, bound) = match (&run.preset, &self.input.recorded, &run.settings) {
            (Simulated::Hinted(choice, _), Some(recorded), _) if self.disk.is_unit() => {
                self.in_units(run, choice, recorded)
            }
            (preset, Some(recorded), _) if preset.is_lru() => self.lru(run, recorded),
            (Simulated::Hinted(choice, _), Some(recorded), _) => self.told(run, choice, recorded),
            (Simulated::Engine(_), _, Some(settings)) => self.engine(run, settings),
            (Simulated::Kernel(choice, _), _, Some(settings)) => {
                self.kernel(run, choice.build(), settings)
            }
            _ => Err(RunError::Source),
        }?;
        match outcome.elapsed {
            u64::MAX => Err(RunError::World(WorldError::Time)),
            _ => Ok((outcome, bound)),
        }
    }

    fn devices(&self, run: &GridRun) -> Result<Vec<Box<dyn Device>>, RunError> {
        let disks = 0..self.input.disks(run.wanted);
        let devices = disks.map(|_| self.disk.build());
        devices.collect::<Result<_, _>>().map_err(RunError::Disk)
    }

    /// Where the blocks of a run lie.
    #[must_use]
    pub fn placing<'r>(&self, run: &GridRun, recorded: &'r Recorded) -> Placing<'r> {
        Placing::new(recorded, run.wanted, self.layout, self.input.block_bytes)
    }

    fn reads(&self, run: &GridRun, recorded: &Recorded) -> Reads {
        recorded.reads(run.wanted, self.layout, self.input.block_bytes)
    }

    fn in_units(
        &self,
        run: &GridRun,
        choice: &Choice<Box<dyn Policy>>,
        recorded: &Recorded,
    ) -> Done {
        let instance = self.instance(run, recorded)?;
        let setup = self.setup(choice, run.wanted, run.cache_blocks);
        let outcome = in_units(&setup, &instance).map_err(RunError::Host)?;
        Ok((outcome, bound::in_units(&instance, run.cache_blocks)))
    }

    fn told(&self, run: &GridRun, choice: &Choice<Box<dyn Policy>>, recorded: &Recorded) -> Done {
        // The bound first: its lookahead data is freed before the run takes its memory.
        let compute = recorded.references().iter().map(|r| r.compute.0);
        let bound = self.by_block(run, recorded, compute.fold(0, u64::saturating_add))?;
        let reads = self.reads(run, recorded);
        let setup = self.setup(choice, run.wanted, run.cache_blocks);
        let outcome = hinted(&setup, &self.host(), &reads, self.devices(run)?);
        Ok((outcome.map_err(RunError::Host)?, bound))
    }

    fn by_block(
        &self,
        run: &GridRun,
        recorded: &Recorded,
        compute: u64,
    ) -> Result<Bound, RunError> {
        let (placing, host, devices) =
            (self.placing(run, recorded), self.host(), self.devices(run)?);
        let blocks = run.cache_blocks;
        Ok(bound::by_block(
            recorded, &placing, blocks, &host, compute, &devices,
        ))
    }

    fn lru(&self, run: &GridRun, recorded: &Recorded) -> Done {
        let (host, blocks) = (self.host(), run.cache_blocks);
        let (placing, devices) = (self.placing(run, recorded), self.devices(run)?);
        let place = |block| placing.place(block);
        let outcome = if recorded.references().is_empty() {
            let references = References::new(self.source()?, recorded);
            let references = references.map_err(RunError::Requests)?;
            lru::run(&host, blocks, devices, place, references)
        } else {
            lru::run(&host, blocks, devices, place, streamed::kept(recorded))
        };
        let outcome = outcome.map_err(RunError::Requests)?;
        let bound = self.by_block(run, recorded, outcome.compute)?;
        Ok((outcome, bound))
    }

    fn engine(&self, run: &GridRun, settings: &Settings) -> Done {
        match (&self.input.workload, &self.input.recorded) {
            (Some(name), _) => self.made(run, settings, name),
            (None, Some(recorded)) => self.streamed(run, settings, recorded),
            (None, None) => Err(RunError::Source),
        }
    }

    /// The engine over the files of a workload, which are striped over all disks.
    fn made(&self, run: &GridRun, settings: &Settings, name: &str) -> Done {
        let workload = workload::parse(name).map_err(RunError::Workload)?;
        let needs = bound::needs_of(&*workload, settings.block_bytes);
        let array = Array::new(self.devices(run)?, self.strip());
        let outcome = self.engine_over(run, settings, &*workload, Regions::Striped)?;
        let readers = workload.readers().len();
        let bound = bound::by_extent(outcome.compute_longest, array.least(&needs), readers);
        Ok((outcome, bound))
    }

    /// A kernel's readahead over the files of a workload, which are striped over all disks.
    fn kernel(&self, run: &GridRun, of: Kernel, settings: &Settings) -> Done {
        let name = self.input.workload.as_ref().ok_or(RunError::Source)?;
        let workload = workload::parse(name).map_err(RunError::Workload)?;
        let needs = bound::needs_of(&*workload, settings.block_bytes);
        let least = Array::new(self.devices(run)?, self.strip()).least(&needs);
        let outcome = kernel(of, settings, &*workload, self.strip(), self.devices(run)?);
        let outcome = outcome.map_err(RunError::Kernel)?;
        let readers = workload.readers().len();
        let bound = bound::by_extent(outcome.compute_longest, least, readers);
        Ok((outcome, bound))
    }

    /// The engine over the regions of a trace.
    fn streamed(&self, run: &GridRun, settings: &Settings, recorded: &Recorded) -> Done {
        let placing = self.placing(run, recorded);
        let streamed = Streamed::new(self.source()?, recorded, &placing, self.pacing);
        let done = self.engine_over(run, settings, &streamed, placing.regions());
        if let Some(error) = streamed.failure() {
            return Err(RunError::Requests(error));
        }
        let (outcome, mut devices) = (done?, self.devices(run)?);
        if placing.regions() == Regions::Striped {
            devices = vec![Box::new(Array::new(devices, self.strip()))];
        }
        let least = bound::least_of(&devices, &streamed.needs());
        let bound = match (self.pacing.when, self.pacing.readers) {
            (Loop::Closed, Readers::One) => bound::by_extent(outcome.compute, least, 1),
            (Loop::Closed, Readers::Device | Readers::Process) => {
                bound::by_extent(outcome.compute_longest, least, streamed.count())
            }
            (Loop::Open | Loop::Paced, _) => {
                let last = self.pacing.speed.of(recorded.told().until);
                Bound::of(last.0, "arrivals", least)
            }
        };
        Ok((outcome, bound))
    }

    fn engine_over(
        &self,
        run: &GridRun,
        settings: &Settings,
        workload: &dyn Workload,
        regions: Regions,
    ) -> Result<Outcome, RunError> {
        let (settings, devices) = (settings.clone(), self.devices(run)?);
        let striping = Striping::raid0(self.strip()).ok();
        let striping = striping.filter(|_| regions == Regions::Striped);
        let outcome = engine(settings, self.driver, workload, striping, devices);
        outcome.map_err(RunError::World)
    }

    /// A block, but no less than a page.
    pub(super) fn strip(&self) -> Bytes {
        Bytes(self.input.block_bytes.max(PAGE_BYTES).into())
    }

    fn source(&self) -> Result<&Source, RunError> {
        self.input.source.as_ref().ok_or(RunError::Source)
    }

    /// The theory's problem, with the cache as it is at the beginning. A block that the trace does
    /// not name takes its place there, too.
    fn instance(&self, run: &GridRun, recorded: &Recorded) -> Result<Instance, RunError> {
        let mut reads = self.reads(run, recorded);
        let mut warm = Vec::new();
        for (at, number) in self.warm.iter().enumerate() {
            if self.warm[..at].contains(number) {
                continue;
            }
            let unnamed = || u32::try_from(reads.places.len()).ok().map(BlockNo);
            let block = recorded.block(*number).or_else(unnamed);
            let block = block.ok_or(RunError::Requests(RequestsError::Blocks))?;
            if block.0 as usize == reads.places.len() {
                reads.places.push(Place {
                    disk: DeviceId(0),
                    at: Bytes(0),
                });
            }
            warm.push(block);
        }
        if warm.len() > run.cache_blocks as usize {
            let (blocks, cache_blocks) = (warm.len(), run.cache_blocks);
            return Err(RunError::Warm {
                blocks,
                cache_blocks,
            });
        }
        Ok(Instance {
            reads,
            warm,
            fetch_units: self.fetch_units,
        })
    }
}
