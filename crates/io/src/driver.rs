//! The driver: builds everything from a [`Config`], opens files, and ends the run.
//!
//! Used by the command line and the mount. It owns the backend and its threads; readers
//! share the engine's lock with it and may outlive it, with the blocks that are resident then.
//!
//! ```text
//! Reader::read_at --> hit: resident? copy, done            (no lock, no system call)
//!        | no
//!        v
//!     engine_host: lock { engine } --> dispatch queue --> fault > emulated > uring | pread | memory
//!        ^                                                                   |
//!        +------------------------ completed, from a backend's thread -------+
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | `driver`, `opening`, `reader`, `hint`, `kept`, `folder` | the face |
//! | `hit`, `hazard`, `threads` | resident blocks, lock-free; a slot for each thread |
//! | `engine_host`, `engine_state`, `deferred_inputs`, `dispatch_queue`, `wait`, `alarm`, `journal_file` | the engine's lock, the state behind it, the queues before and after it, its timer |
//! | `catalog`, `version_number`, `source` | which files, which version of them, where bytes come from |
//! | `arena`, `footprint` | the memory, and the little beside it |
//! | `backend`, `wrap`, `emulate`, `generated` | carry fetches out; wrappers around them; content that need not be stored |
//! | `geometry`, `arrays`, `placing` | on which devices a file lies, by the system or made up |
//!
//! It never decides which blocks to fetch or to give up, and never sees the simulator.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use forerun_core::engine::view::{DeviceView, StreamView};
use forerun_core::settings::SettingsError;
use forerun_core::{Bytes, Engine, Ledger, Profile, Settings};

use crate::alarm::Timer;
use crate::arena::Arena;
use crate::arrays::Arrays;
use crate::backend::{Backend, BackendChoice, Setup, Sink};
use crate::clock::{Clock, Ticker};
use crate::emulate::{DeviceUse, Emulate, Emulated};
use crate::engine_host::{EngineHost, Port};
use crate::engine_state::EngineState;
use crate::error::Error;
use crate::owner::OwnerClocks;
use crate::pages_ahead::PagesAhead;
use crate::placing::{Placing, Striping};
use crate::prior::{PriorSource, Priors};
use crate::settle::Looks;
use crate::source::file::raise_descriptor_limit;
use crate::sync::Mutex;
use crate::wrap::fault::{Fault, FaultPlan};

/// Options of a driver. [`Config::new`] has a value for everything; the fields, and the methods of
/// the same names, change one.
#[non_exhaustive]
pub struct Config {
    /// How the engine behaves, and how much memory it has.
    pub settings: Settings,
    /// The backend that carries fetches out.
    pub backend: BackendChoice,
    /// Costs of devices; the emulated device's values, or [`Profile::default`], if not given.
    pub profile: Option<Profile>,
    /// When files are looked at for changes.
    pub looks: Looks,
    /// Where the journal goes.
    pub journal: Option<Box<dyn Write + Send>>,
    /// Options of experiments and tests.
    pub lab: Lab,
}

/// Options of experiments and tests; a program that reads files needs none of them.
#[non_exhaustive]
pub struct Lab {
    /// A device to emulate in front of the real ones.
    pub emulate: Option<Box<dyn Emulate>>,
    /// How many devices generated content lies on, and everything when a device is emulated: file
    /// after file, round and round. At least 1.
    pub disks: u16,
    /// An array on which all files lie, those of emulated devices and others; in place of `disks`.
    pub striping: Option<Striping>,
    /// Faults to inject.
    pub fault: Option<FaultPlan>,
    /// Which time the engine is told.
    pub clock: Clock,
}

impl Default for Lab {
    fn default() -> Self {
        Self {
            emulate: None,
            disks: 1,
            striping: None,
            fault: None,
            clock: Clock::Monotonic,
        }
    }
}

impl Config {
    /// These settings, on the best backend there is, with nothing around it.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            backend: BackendChoice::Auto,
            profile: None,
            looks: Looks::default(),
            journal: None,
            lab: Lab::default(),
        }
    }

    /// With this backend.
    #[must_use]
    pub fn backend(self, backend: BackendChoice) -> Self {
        Self { backend, ..self }
    }

    /// With devices of these costs, instead of those that the system tells and those that are measured.
    #[must_use]
    pub fn profile(self, profile: Profile) -> Self {
        let profile = Some(profile);
        Self { profile, ..self }
    }

    /// With files looked at for changes then.
    #[must_use]
    pub fn looks(self, looks: Looks) -> Self {
        Self { looks, ..self }
    }

    /// With a journal of all decisions, which the simulator replays.
    #[must_use]
    pub fn journal(self, journal: impl Write + Send + 'static) -> Self {
        let journal: Option<Box<dyn Write + Send>> = Some(Box::new(journal));
        Self { journal, ..self }
    }

    /// The costs that the engine is told.
    fn told(&self) -> Profile {
        let emulated = || self.lab.emulate.as_ref().map(|device| device.profile());
        self.profile.clone().or_else(emulated).unwrap_or_default()
    }
}

/// See the [module](self). A child made by `fork` has neither its threads nor its memory and must not use it.
pub struct Driver {
    engine_host: Arc<EngineHost>,
    stack: Stack,
    /// Held while a limit is set.
    limiting: Mutex<()>,
    _pages_ahead: PagesAhead,
    /// None where the clock only counts.
    _timer: Option<Timer>,
    /// None if no method asks for the CPU time of owners.
    _owner_clocks: Option<OwnerClocks>,
    /// Priors of device costs; none if the user gave them.
    pub(crate) priors: Option<Priors>,
    pub(crate) emulated: bool,
    pub(crate) arrays: Arrays,
    /// Costs of a device, if they were measured.
    measured: Option<Profile>,
}

/// The backend with its wrappers, and those of them that are asked for something later.
struct Stack {
    top: Arc<dyn Backend>,
    emulated: Option<Arc<dyn Emulated>>,
}

impl Stack {
    /// Starts the backend inside the wrappers asked for, from the outermost in.
    fn start(
        port: Arc<dyn Sink>,
        setup: &Setup,
        backend: BackendChoice,
        emulate: Option<Box<dyn Emulate>>,
        fault: Option<FaultPlan>,
    ) -> Result<Self, Error> {
        let mut emulated = None;
        let bare = |sink| backend.start(&sink, setup);
        let timed = |sink: Arc<dyn Sink>| -> Result<Arc<dyn Backend>, Error> {
            let Some(device) = emulate else {
                return bare(sink);
            };
            let wrapped = device.start(sink, Box::new(bare))?;
            emulated = Some(wrapped.clone());
            Ok(wrapped)
        };
        let top: Arc<dyn Backend> = match fault {
            None => timed(port)?,
            Some(plan) => Fault::start(port, plan, Box::new(timed))?,
        };
        Ok(Self { top, emulated })
    }
}

impl Driver {
    /// Builds the engine, maps its memory and starts the backend.
    ///
    /// # Errors
    /// Settings or fault rates out of range; no memory; no backend.
    pub fn new(config: Config) -> Result<Self, Error> {
        raise_descriptor_limit();
        let profile = config.told();
        let Config {
            settings,
            backend,
            profile: told,
            looks,
            journal,
            lab,
        } = config;
        let Lab {
            emulate,
            disks,
            striping,
            fault,
            clock,
        } = lab;
        let priors = (told.is_none() && emulate.is_none()).then(Priors::default);
        let measured = told.filter(|_| emulate.is_none());
        let (block_bytes, in_flight_max) = (settings.block_bytes, settings.in_flight_max);
        let engine = Engine::new(settings)?;
        let table = engine.table().clone();
        let arena = Arena::new(table.frames(), block_bytes).map_err(|source| {
            let bytes = u64::from(table.frames()) * u64::from(block_bytes);
            Error::Memory { bytes, source }
        })?;
        let arena = Arc::new(arena);
        let ticker = Ticker::start(clock);
        if let Some(striping) = &striping {
            striping.check(block_bytes)?;
        }
        let arrays = Arrays::new(striping.is_none());
        let placing = Placing::new(disks, striping);
        let state = EngineState::new(
            engine,
            ticker,
            arena.clone(),
            profile,
            placing,
            journal.is_some(),
        );
        let engine_host = EngineHost::new(state, table, arena.clone(), looks, journal);
        let port = Arc::new(Port(Arc::downgrade(&engine_host)));
        let pages_ahead = PagesAhead::start(&arena);
        let setup = Setup {
            arena,
            in_flight_max,
        };
        let is_emulated = emulate.is_some();
        let stack = Stack::start(port, &setup, backend, emulate, fault)?;
        engine_host.connect(stack.top.clone());
        let timer = || Timer::start(engine_host.alarm.clone(), Arc::downgrade(&engine_host));
        let timer = (clock == Clock::Monotonic).then(timer).transpose();
        let timer = timer.map_err(Error::Thread)?;
        let clocks = || OwnerClocks::start(Arc::downgrade(&engine_host)).map_err(Error::Thread);
        let owner_clocks = engine_host.uses_cpu_time.then(clocks).transpose()?;
        Ok(Self {
            engine_host,
            stack,
            limiting: Mutex::default(),
            _pages_ahead: pages_ahead,
            _timer: timer,
            _owner_clocks: owner_clocks,
            priors,
            emulated: is_emulated,
            arrays,
            measured,
        })
    }

    pub(crate) fn engine_host(&self) -> &Arc<EngineHost> {
        &self.engine_host
    }

    /// Whether a device is emulated in front of the real ones.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        self.emulated
    }

    /// Costs of the device of this number (`st_dev`), if they were measured: by the giver of a profile,
    /// or by enough requests of ours. None if it is assumed or emulated.
    #[must_use]
    pub fn measured(&self, device: u64) -> Option<Profile> {
        if self.emulated {
            return None;
        }
        let estimate = || self.engine_host.with(|state| state.estimate(device));
        self.measured.clone().or_else(estimate)
    }

    /// Where the costs came from that a device had before its first request; by its number, as in
    /// [`queues`](Self::queues).
    #[must_use]
    pub fn prior_source(&self, device: Option<u64>) -> PriorSource {
        match (&self.priors, device) {
            (None, _) => PriorSource::Told,
            (Some(priors), Some(device)) if priors.knows(device) => PriorSource::System,
            _ => PriorSource::Assumed,
        }
    }

    /// The counters, as of now.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.engine_host.ledger()
    }

    /// The same without the hits that readers have had since [`Driver::ledger`] was asked. It visits no reader, and
    /// takes as long however many are open: for a look at the counts of hints.
    #[must_use]
    pub fn ledger_as_reported(&self) -> Ledger {
        self.engine_host.ledger_as_reported()
    }

    /// The streams of all open files, as of now; a reader's are those under its
    /// [number](crate::Reader::id).
    #[must_use]
    pub fn streams(&self) -> Vec<StreamView> {
        self.engine_host.with(|state| state.streams())
    }

    /// Reads that wait for an answer now, of streams and of none.
    #[must_use]
    pub fn reads_waiting(&self) -> usize {
        self.engine_host.with(|state| state.reads_waiting())
    }

    /// The queues of devices, as of now, each with the number of the device (`st_dev`); none for
    /// one that is emulated or made up.
    #[must_use]
    pub fn queues(&self) -> Vec<(Option<u64>, DeviceView)> {
        self.engine_host.with(|state| state.queues())
    }

    /// Holds at most this much memory from now on: up to the settings' memory, down to the least an
    /// engine needs. Memory above it is given up as readers and devices let go of it, and its pages go
    /// back to the system, but for a 64th of the limit. Below the settings' memory the arena has no
    /// huge pages.
    ///
    /// # Errors
    /// Less or more than that, with both ends named.
    pub fn limit_memory(&self, memory: Bytes) -> Result<(), Error> {
        let (minimum, maximum) = self.engine_host.with(|state| state.memory_range());
        if !(minimum..=maximum).contains(&memory) {
            let refused = SettingsError::Memory {
                given: memory,
                minimum,
                maximum,
            };
            return Err(refused.into());
        }
        let _limiting = self.limiting.lock();
        let lowered = memory < maximum;
        // Before pages are given back: one that is filled again would bring 2 MiB.
        self.engine_host.arena.allow_huge_pages(!lowered);
        let frames = (self.engine_host).after_deferred(|state| state.limit(memory, lowered));
        self.engine_host.frames.store(frames, Ordering::Relaxed);
        if lowered {
            self.engine_host.give_back_surplus();
        }
        Ok(())
    }

    /// The most memory the engine uses: that of the settings, or the last limit.
    #[must_use]
    pub fn memory_limit(&self) -> Bytes {
        self.engine_host.with(|state| state.limit)
    }

    /// How many bytes may be awaited at once ([`Reader::when_resident`](crate::Reader::when_resident)) without pushing out each
    /// other; any number where waiting reads hold no memory.
    #[must_use]
    pub fn awaited_max(&self) -> Option<Bytes> {
        self.engine_host.with(|state| state.awaited_max())
    }

    /// The error that ended the writing of the journal, if one did. [`Driver::finish`] reports it, too, once.
    #[must_use]
    pub fn journal_error(&self) -> Option<std::io::Error> {
        self.engine_host.journal_error()
    }

    /// The requests of the emulated device; none if none is emulated.
    #[must_use]
    pub fn device_use(&self) -> Option<DeviceUse> {
        self.stack.emulated.as_ref().map(|device| device.used())
    }

    /// Writes the lines of the journal that were gathered so far. They are written by the 64 KiB otherwise, and
    /// those of a process that is killed are lost.
    pub fn write_journal(&self) {
        self.engine_host.write_journal();
    }

    /// Ends the run: waits for requests in flight, ends the threads, writes out the journal.
    /// Readers that are still open keep their resident blocks and get `ESHUTDOWN` for the rest.
    ///
    /// # Errors
    /// The journal could not be written.
    pub fn finish(&self) -> Result<Ledger, Error> {
        self.engine_host.halt(None);
        self.close()
    }

    /// The same, and waits no longer than this: a server may never answer. A request in flight then is
    /// left behind with its threads, and counts as in flight.
    ///
    /// # Errors
    /// The journal could not be written.
    pub fn finish_within(&self, time: Duration) -> Result<(Ledger, bool), Error> {
        let ended = self.engine_host.halt(Some(Instant::now() + time));
        self.close().map(|ledger| (ledger, ended))
    }

    fn close(&self) -> Result<Ledger, Error> {
        let ledger = self.engine_host.ledger();
        let journal = self.engine_host.close_journal();
        journal.map_err(Error::Journal)?;
        Ok(ledger)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.engine_host.halt(None);
        // Errors are reported by `finish`.
        let _ = self.engine_host.close_journal();
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver")
            .field("emulated", &self.emulated)
            .finish_non_exhaustive()
    }
}
