//! The grid of a simulation: presets by numbers of disks by cache sizes, each run checked before any is run.
//!
//! ```text
//! Input + Disk -> Grid -> plan(preset, disks, blocks) -> GridRun -> run -> Outcome and Bound
//! ```
//!
//! Runs share nothing but the input, so as many may go at once as there are threads.

use core::fmt;

use forerun_core::hinted::policy::Policy;
use forerun_core::preset::default;
use forerun_core::settings::SettingsError;
use forerun_core::spec::{Choice, ChoiceError};
use forerun_core::{Bytes, Nanos, Settings};

use super::PAGE_BYTES;
use super::disk::Disk;
use super::input::Input;
use super::opened::Opened;
use super::pacing::{Loop, Pacing, Readers};
use super::placing::{Layout, Order, Placing, Regions};
use super::recorded::Recorded;
use super::simulated::Simulated;
use crate::hinted::host::{Host, Notice};
use crate::hinted::{HostError, Setup};
use crate::kernel::{self, KernelError};
use crate::scheduled::BehindError;
use crate::trace::Position;
use crate::workload;

/// The surroundings of all runs.
///
/// # Examples
/// Two presets over a made workload, on a disk of 1992.
///
/// ```
/// use forerun_core::Nanos;
/// use forerun_sim::hinted::host::Notice;
/// use forerun_sim::simulate::disk::Disk;
/// use forerun_sim::simulate::grid::Grid;
/// use forerun_sim::simulate::input::Input;
/// use forerun_sim::simulate::recorded::Room;
/// use forerun_sim::simulate::requests::Manner;
///
/// let manner = Manner { block_bytes: 8192, with_writes: false, think: None };
/// let input = Input::of_workload("synth", manner, Room::ENDLESS)?;
/// let disk = Disk::named("hp97560", None)?;
/// let grid = Grid::new(&input, &disk, Nanos(500_000));
/// let [lru, forestall] = ["demand-lru", "forestall"].map(|name| {
///     let run = grid.plan(&name.parse().unwrap(), Some(2), 1280, &|_| ()).unwrap();
///     grid.run(&run).unwrap().0
/// });
/// assert!(forestall.elapsed < lru.elapsed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Grid<'a> {
    /// The reads.
    pub input: &'a Input,
    /// Each disk.
    pub disk: &'a Disk,
    /// Processor time of a fetch.
    pub driver: Nanos,
    /// When free disks are noticed by methods that follow announced reads.
    pub notice: Notice,
    /// Where blocks of a trace lie.
    pub layout: Layout,
    /// Readers of a trace, and when its requests begin.
    pub pacing: Pacing,
    /// In the theory: the time of a fetch, in units.
    pub fetch_units: u64,
    /// In the theory: numbers of the blocks in the cache at the beginning.
    pub warm: Vec<u64>,
}

/// A run that can be tried.
#[derive(Clone, Debug)]
pub struct GridRun {
    /// The preset.
    pub preset: Simulated,
    /// Disks to stripe over; none for as many as the trace has.
    pub wanted: Option<u16>,
    /// Blocks in the cache; of an engine all its memory.
    pub cache_blocks: u32,
    /// Of an engine, or of the one that steers a kernel.
    pub(super) settings: Option<Settings>,
}

/// Why a run cannot be tried.
#[derive(Clone, PartialEq, Debug)]
pub enum Refusal {
    /// A hinted method plans for one reader, and this workload has more.
    Readers,
    /// A hinted method follows one reader in a closed loop.
    Pacing,
    /// The trace has no times of arrival.
    Untimed,
    /// Requests of the trace have no time of arrival.
    Arrivals {
        /// How many.
        requests: u64,
        /// Where the first one stands.
        at: Option<Position>,
    },
    /// The trace has no numbers of processes.
    Nameless,
    /// More processes and files of each than may be open.
    Opened,
    /// A workload has readers and times of its own.
    Made,
    /// Readers of a kernel are processes of their own, in a workload.
    Kernel,
    /// The theory has no engine.
    Unit,
    /// The preset prefetches by place, and blocks lie in the order of first use.
    FirstUse,
    /// Blocks have names and no addresses, so that the order of first use is the only one.
    Names,
    /// Blocks have names and no addresses, by which the preset prefetches.
    Addresses,
    /// The strip of an array, which is a block, is no multiple of a page.
    Strip {
        /// The strip.
        bytes: Bytes,
    },
    /// Regions one behind the other on more disks than there are regions.
    Idle {
        /// Disks.
        disks: u16,
        /// Regions.
        regions: u16,
    },
    /// The files take so many bytes, and the disks have fewer.
    Files {
        /// Needed.
        needed: u64,
        /// On all disks.
        there: u64,
    },
    /// Less memory than the engine can work with.
    Memory {
        /// The least, in blocks.
        blocks: u64,
        /// The least.
        minimum: Bytes,
    },
    /// Settings of an engine out of range.
    Settings(SettingsError),
    /// Parameters of a planner out of range.
    Setup(HostError),
    /// There is no such workload.
    Workload(ChoiceError),
    /// The device cannot be made.
    Disk(BehindError),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Readers => f.write_str(
                "a hinted method plans for one reader, and this workload has more, whose order depends on the run: \
                 take presets of the engine",
            ),
            Self::Pacing => f.write_str(
                "demand-lru and hinted methods follow one reader in a closed loop: take presets of the engine",
            ),
            Self::Untimed => f.write_str("the trace has no times of arrival"),
            Self::Arrivals { requests, .. } => {
                write!(f, "{requests} requests of the trace have no time of arrival")
            }
            Self::Nameless => f.write_str("the trace names no process: a csv does in a column pid, and so does blkparse"),
            Self::Opened => write!(
                f,
                "more than {} open files, counted for each process",
                Opened::MAX
            ),
            Self::Made => f.write_str("a workload has readers and times of its own"),
            Self::Kernel => KernelError::Workload.fmt(f),
            Self::Unit => f.write_str("device unit is for hinted methods"),
            Self::FirstUse => f.write_str(
                "blocks lie in the order of first use, which a preset that prefetches would foresee",
            ),
            Self::Names => f.write_str(
                "blocks have names and no addresses: only the order of first use (dense) can lay them out, \
                 for presets that do not prefetch by place",
            ),
            Self::Addresses => f.write_str(
                "takes addresses, and blocks have names: none of the engine's presets that prefetch can run it; \
                 demand-lru, none and hinted methods can",
            ),
            Self::Strip { bytes } => write!(
                f,
                "{} bytes are the strip of the disks, which must be at most {PAGE_BYTES} bytes or a multiple of that: \
                 an engine has pages of {PAGE_BYTES}",
                bytes.0
            ),
            Self::Idle { disks, regions } => write!(
                f,
                "{regions} regions, concatenated, leave some of {disks} disks empty: take striped, or fewer disks"
            ),
            Self::Files { needed, there } => {
                write!(f, "its files take {needed} bytes, the disks have {there}")
            }
            Self::Memory { blocks, minimum } => {
                write!(f, "must be at least {blocks} blocks, {minimum} bytes")
            }
            Self::Setup(error) => error.fmt(f),
            Self::Settings(error) => error.fmt(f),
            Self::Workload(error) => error.fmt(f),
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Refusal {}

/// A block that its disk or its file does not reach to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beyond {
    /// Its device in the trace.
    pub device: u16,
    /// Its number there.
    pub number: u64,
    /// Where it ends on its disk, the disk's name and size; none where the file of an engine is too short.
    pub end: Option<(u64, String, Bytes)>,
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match &self.end {
            Some((end, name, capacity)) => write!(
                f,
                "block {number} ends at byte {end} of its disk, {name} has {capacity} bytes"
            ),
            None => {
                write!(
                    f,
                    "block {number} is beyond the 2^32 - 1 blocks, or pages of 4 KiB, of a file that an engine has"
                )
            }
        }
    }
}

/// Whether an engine prefetches by place.
#[must_use]
pub fn prefetches(settings: &Settings) -> bool {
    settings.detect.spec().name != "none"
}

impl<'a> Grid<'a> {
    /// Runs over this input on such disks; a fetch takes so much processor time. In the theory a fetch takes four
    /// units, and the cache is empty at the beginning.
    #[must_use]
    pub fn new(input: &'a Input, disk: &'a Disk, driver: Nanos) -> Self {
        Self {
            input,
            disk,
            driver,
            notice: Notice::default(),
            layout: Layout::default(),
            pacing: Pacing::default(),
            fetch_units: 4,
            warm: Vec::new(),
        }
    }

    /// The unit of a preset's counts: a page, or the block of a hinted method.
    #[must_use]
    pub fn unit(&self, preset: &Simulated) -> u32 {
        match preset.is_hinted() {
            true => self.input.block_bytes,
            false => PAGE_BYTES,
        }
    }

    /// Checks a run. `adjust` puts methods in place of the preset's, where it is one of the engine.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn plan(
        &self,
        preset: &Simulated,
        wanted: Option<u16>,
        cache_blocks: u32,
        adjust: &dyn Fn(&mut Settings),
    ) -> Result<GridRun, Refusal> {
        let mut settings = None;
        self.check_layout(wanted)?;
        self.check_pacing(preset)?;
        match preset {
            Simulated::Engine(_) | Simulated::Kernel(..) if self.disk.is_unit() => {
                return Err(Refusal::Unit);
            }
            Simulated::Kernel(..) => {
                self.check_readers()?;
                self.check_files(wanted)?;
                self.check_strip(wanted)?;
                let made = default().settings(Bytes(1 << 30));
                let made = made.map_err(Refusal::Settings)?;
                settings = Some(self.sized(made, cache_blocks, adjust)?);
            }
            Simulated::Engine(engine) => {
                self.check_files(wanted)?;
                self.check_strip(wanted)?;
                // Memory enough for any preset, until the size of a block is known.
                let made = engine.settings(Bytes(1 << 30)).map_err(Refusal::Settings)?;
                let sized = self.sized(made, cache_blocks, adjust)?;
                self.check_places(&sized)?;
                settings = Some(sized);
            }
            Simulated::Hinted(choice, _) => {
                if self.input.recorded.is_none() {
                    return Err(Refusal::Readers);
                }
                if preset.is_told() && !self.disk.is_unit() {
                    let setup = self.setup(choice, wanted, cache_blocks);
                    setup.check().map_err(Refusal::Setup)?;
                }
            }
        }
        self.check_names()?;
        Ok(GridRun {
            preset: preset.clone(),
            wanted,
            cache_blocks,
            settings,
        })
    }

    /// An engine with so many blocks as memory for everything.
    fn sized(
        &self,
        mut settings: Settings,
        cache_blocks: u32,
        adjust: &dyn Fn(&mut Settings),
    ) -> Result<Settings, Refusal> {
        let block_bytes = self.input.block_bytes;
        settings.memory = Bytes(u64::from(cache_blocks) * u64::from(block_bytes));
        settings.block_bytes = PAGE_BYTES;
        adjust(&mut settings);
        settings.check().map_err(|error| match error {
            SettingsError::Memory { given, minimum, .. } if given < minimum => Refusal::Memory {
                blocks: minimum.0.div_ceil(block_bytes.into()),
                minimum,
            },
            other => Refusal::Settings(other),
        })?;
        Ok(settings)
    }

    /// Blocks that have names lie in the order of first use.
    fn check_names(&self) -> Result<(), Refusal> {
        match self.has_names() && !self.disk.is_unit() && self.layout.order != Order::Dense {
            true => Err(Refusal::Names),
            false => Ok(()),
        }
    }

    fn has_names(&self) -> bool {
        let recorded = self.input.recorded.as_ref();
        recorded.is_some_and(|recorded| recorded.told().has_names)
    }

    /// Every disk has some blocks.
    fn check_layout(&self, wanted: Option<u16>) -> Result<(), Refusal> {
        let recorded = self.input.recorded.as_ref();
        let Some(recorded) = recorded.filter(|_| !self.disk.is_unit()) else {
            return Ok(());
        };
        let (disks, regions) = (recorded.disks(wanted), recorded.told().devices);
        match self.layout.regions {
            Some(Regions::Concatenated) if disks > regions => Err(Refusal::Idle { disks, regions }),
            _ => Ok(()),
        }
    }

    /// Readers and times as told are there for this preset.
    fn check_pacing(&self, preset: &Simulated) -> Result<(), Refusal> {
        match (self.pacing.is_usual(), &self.input.recorded) {
            (true, _) => Ok(()),
            _ if self.input.workload.is_some() => Err(Refusal::Made),
            _ if preset.is_hinted() => Err(Refusal::Pacing),
            (_, Some(recorded)) => self.check_trace(recorded),
            _ => Err(Refusal::Untimed),
        }
    }

    /// The trace has arrivals for a loop that follows them, and processes for readers by process.
    fn check_trace(&self, recorded: &Recorded) -> Result<(), Refusal> {
        let (told, by_process) = (recorded.told(), self.pacing.readers == Readers::Process);
        if self.pacing.when != Loop::Closed && told.untimed > 0 {
            return Err(match told.says_arrival {
                true => Refusal::Arrivals {
                    requests: told.untimed,
                    at: told.untimed_at,
                },
                false => Refusal::Untimed,
            });
        }
        if by_process && !told.says_process {
            return Err(Refusal::Nameless);
        }
        match by_process && recorded.opened().is_full() {
            true => Err(Refusal::Opened),
            false => Ok(()),
        }
    }

    /// Places are the trace's own where a method prefetches by them.
    fn check_places(&self, settings: &Settings) -> Result<(), Refusal> {
        let is_trace = self.input.recorded.is_some() && self.input.workload.is_none();
        let prefetches = prefetches(settings);
        if prefetches && self.has_names() {
            return Err(Refusal::Addresses);
        }
        match is_trace && prefetches && self.layout.order == Order::Dense {
            true => Err(Refusal::FirstUse),
            false => Ok(()),
        }
    }

    /// An array has strips of whole pages.
    fn check_strip(&self, wanted: Option<u16>) -> Result<(), Refusal> {
        let bytes = self.strip();
        let is_striped = || match (&self.input.workload, &self.input.recorded) {
            (None, Some(recorded)) => {
                let placing = Placing::new(recorded, wanted, self.layout, self.input.block_bytes);
                placing.regions() == Regions::Striped
            }
            _ => true,
        };
        match !bytes.0.is_multiple_of(PAGE_BYTES.into()) && is_striped() {
            true => Err(Refusal::Strip { bytes }),
            false => Ok(()),
        }
    }

    /// A kernel runs the readers of a workload.
    fn check_readers(&self) -> Result<(), Refusal> {
        let name = self.input.workload.as_ref().ok_or(Refusal::Kernel)?;
        let workload = workload::parse(name).map_err(Refusal::Workload)?;
        kernel::check(&*workload).map_err(|_| Refusal::Kernel)
    }

    /// The files of a workload lie one after the other on the array, a block between.
    fn check_files(&self, wanted: Option<u16>) -> Result<(), Refusal> {
        let Some(name) = &self.input.workload else {
            return Ok(());
        };
        let workload = workload::parse(name).map_err(Refusal::Workload)?;
        let block = u64::from(PAGE_BYTES);
        let files = workload.files().into_iter();
        let blocks: Vec<u64> = files.map(|bytes| bytes.0.div_ceil(block)).collect();
        let Some(capacity) = self.disk.build().map_err(Refusal::Disk)?.capacity() else {
            return Ok(());
        };
        let sum = |sum: u64, blocks: &u64| sum.saturating_add(blocks + 1);
        let needed = blocks.iter().fold(0, sum).saturating_mul(block);
        let there = capacity.0.saturating_mul(wanted.unwrap_or(1).into());
        match needed <= there {
            true => Ok(()),
            false => Err(Refusal::Files { needed, there }),
        }
    }

    /// The first block of a trace that lies beyond its disk, or, where an engine runs, beyond the file that
    /// it reads.
    ///
    /// # Errors
    /// The device cannot be made.
    pub fn beyond(
        &self,
        wanted: Option<u16>,
        has_engine: bool,
    ) -> Result<Option<Beyond>, BehindError> {
        let (Some(recorded), false) = (&self.input.recorded, self.disk.is_unit()) else {
            return Ok(None);
        };
        let placing = Placing::new(recorded, wanted, self.layout, self.input.block_bytes);
        let capacity = self.disk.build()?.capacity();
        let of_disk = capacity.and_then(|capacity| {
            let (device, number, end) = recorded.beyond(&placing, capacity)?;
            let end = Some((end, self.disk.name().to_owned(), capacity));
            Some(Beyond {
                device,
                number,
                end,
            })
        });
        let of_file = || {
            let (device, number) = recorded.beyond_a_file(&placing)?;
            let end = None;
            Some(Beyond {
                device,
                number,
                end,
            })
        };
        Ok(of_disk.or_else(|| has_engine.then(of_file).flatten()))
    }

    pub(super) fn setup(
        &self,
        choice: &Choice<Box<dyn Policy>>,
        wanted: Option<u16>,
        cache_blocks: u32,
    ) -> Setup {
        Setup::new(choice.clone(), self.input.disks(wanted), cache_blocks)
    }

    pub(super) fn host(&self) -> Host {
        Host {
            driver: self.driver,
            block_bytes: Bytes(self.input.block_bytes.into()),
            notice: self.notice,
        }
    }
}
