//! The world: readers, one engine and devices, in one virtual time.
//!
//! [`Scene::run`] is the whole driver. It keeps a heap of wakings (readers that finished thinking
//! or copying) and asks devices for their next event; the earliest comes next, devices before
//! readers, otherwise in order of arrival. So the scene alone determines the run.
//!
//! ```text
//!        wakings (heap)          devices (next_event)
//!              \                    /
//!               earliest first: now
//!              /                    \
//!   reader: hit path on the table    completion
//!              \                    /
//!          later queue drained, then Engine::handle, then poll until there is no output:
//!          Fetch -> device     Serve -> reader wakes
//!                             |
//!          nothing else happens now: Decide, if the engine is undecided
//! ```
//!
//! The driver contract is the one of the real-time driver: plain hits are taken from the table
//! without the engine; first touches and releases go into a queue that is drained before the
//! next read, completion or close; hits are reported before a close.
//!
//! It moves no data. The guard checks every output, every reader's clock must add up, and the
//! ledger must balance, or the run ends in an error.

mod arrivals;
mod carry;
mod cpus;
mod error;
mod guard;
mod layout;
mod process;
mod reader;
mod walk;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::num::NonZeroU16;
use std::sync::Arc;

use forerun_core::table::Table;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, FileId, Input, Nanos, Profile, ReaderId, Settings,
};

use crate::device::Device;
use crate::record::{Digest, Record};
use crate::report::{DeviceReport, Report};
use crate::times::Times;
use crate::workload::{Announcement, Announcements, Turns, Workload};
use arrivals::{ARRIVAL, Arriving};
use cpus::Cpus;
pub use error::WorldError;
use guard::Guard;
pub(crate) use layout::begins;
use layout::{File, place};
pub use layout::{Fragments, Striping};
use reader::{Reader, State};
use walk::Walking;

/// Everything that decides a run.
#[derive(Debug)]
pub struct Scene<'a> {
    /// How the engine behaves.
    pub settings: Settings,
    /// The devices; file number i of the workload lies on device i modulo their number.
    pub devices: Vec<Box<dyn Device + 'a>>,
    /// Every file lies on one array of all devices instead.
    pub striping: Option<Striping>,
    /// The readers and their reads.
    pub workload: &'a dyn Workload,
    /// Processor time the driver takes from a reader for each fetch, at once and before anything
    /// else; the request is at the device from the beginning of that. Zero if the driver is free.
    pub driver_per_fetch: Nanos,
    /// Bytes per second at which bytes are handed to readers; 0 if that takes no time.
    pub copy_bytes_per_second: u64,
    /// The run ends in an error after this number of events, against endless loops.
    pub events_max: u64,
    /// Events of one time are planned for together, as by a driver that is told all of them; else
    /// one event after the other, as by a driver in real time, where no two are at one time.
    pub joins_instants: bool,
    /// The costs given to the engine for every device, in place of its own profile.
    pub told: Option<Profile>,
    /// Processors that all processes share; each has one of its own if there is no number.
    pub processors: Option<NonZeroU16>,
    /// The run stops at this time, also with requests under way.
    pub until: Option<Nanos>,
}

impl<'a> Scene<'a> {
    /// A scene on one device, with a driver that costs nothing.
    #[must_use]
    pub fn new(settings: Settings, device: impl Device + 'a, workload: &'a dyn Workload) -> Self {
        Self {
            settings,
            devices: vec![Box::new(device)],
            striping: None,
            workload,
            driver_per_fetch: Nanos(0),
            copy_bytes_per_second: 0,
            events_max: u64::MAX,
            joins_instants: true,
            told: None,
            processors: None,
            until: None,
        }
    }

    /// Runs until every reader is done and every fetch has ended.
    ///
    /// # Errors
    /// A scene that makes no sense, or an engine that breaks a rule, hangs or miscounts.
    pub fn run(self, record: &mut dyn Record) -> Result<Report, WorldError> {
        let (told, until) = (self.told.clone(), self.until);
        let mut world = World::new(self, record)?;
        world.set_up(told)?;
        loop {
            let next = world.next();
            if until.is_some_and(|until| next.is_none_or(|next| next > until)) {
                return Ok(world.report());
            }
            if next.is_none_or(|next| next > world.now) && world.engine.is_undecided() {
                world.decide()?;
                continue;
            }
            let Some(next) = next else {
                return world.finish();
            };
            world.now = world.now.max(next);
            world.count()?;
            world.tell_cpu_times()?;
            world.step()?;
        }
    }
}

struct World<'a, 'r> {
    engine: Engine,
    table: Arc<Table>,
    record: &'r mut dyn Record,
    digest: Digest,
    guard: Guard,
    now: Nanos,
    events: u64,
    events_max: u64,
    /// Readers that wake, by time and then by order of arrival.
    heap: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    pushed: u64,
    devices: Vec<Box<dyn Device + 'a>>,
    /// When each device must be asked next: it changes only when the device is.
    due: Vec<Option<Nanos>>,
    /// Whether the engine was told that a device's queue is congested.
    congested: Vec<bool>,
    files: Vec<File>,
    readers: Vec<Reader<'a>>,
    /// Number of readers with an open file, where each is a process of its own.
    opened: usize,
    /// The order of turns, if readers take turns.
    turns: Option<Turns<'a>>,
    processors: Cpus,
    /// The reader whose turn it is, if readers take turns.
    turn: Option<usize>,
    /// Time of the next report of processor time to the engine.
    cpu_told: Nanos,
    /// Reads that arrive in an open loop.
    arriving: Option<Arriving<'a>>,
    /// See [`Report`].
    responses: Times,
    waits: Times,
    /// The folders that the readers walk, if they are one process that does.
    walking: Option<Walking>,
    /// The driver's work before any reader's turn, up to when.
    owed: Nanos,
    /// Something was taken or closed since the last decision.
    is_taken: bool,
    /// A read was answered with blocks since the last event that was one of its own.
    is_answered: bool,
    joins_instants: bool,
    workload: &'a dyn Workload,
    /// Touches and releases on their way to the engine.
    later: VecDeque<Input>,
    /// Readers that wait for room in a device's queue, in their order.
    held: VecDeque<usize>,
    /// The reader that waits under each read number.
    reads: Vec<Option<usize>>,
    free_reads: BTreeSet<u32>,
    driver_per_fetch: Nanos,
    copy_bytes_per_second: u64,
    block_bytes: u64,
}

impl<'a, 'r> World<'a, 'r> {
    fn new(scene: Scene<'a>, record: &'r mut dyn Record) -> Result<Self, WorldError> {
        let Scene {
            settings,
            devices,
            striping,
            workload,
            ..
        } = scene;
        if devices.is_empty() || devices.len() > usize::from(u16::MAX) + 1 {
            return Err(WorldError::Devices(devices.len()));
        }
        let block_bytes = u64::from(settings.block_bytes);
        record.begin(&settings);
        let engine = Engine::new(settings).map_err(WorldError::Settings)?;
        let (sizes, is_packed) = (workload.files(), workload.is_packed());
        let files = place(
            &sizes,
            devices.len(),
            striping.as_ref(),
            workload.places(),
            block_bytes,
            is_packed,
        )?;
        let opened = workload.readers();
        if opened.len() > FileId::LIMIT as usize {
            return Err(WorldError::Count(opened.len()));
        }
        if let Some(reader) = opened.iter().position(|file| *file >= files.len()) {
            return Err(WorldError::NoFile(reader));
        }
        let walk = workload.walk();
        if walk
            .as_ref()
            .is_some_and(|walk| walk.visits.len() != opened.len())
        {
            return Err(WorldError::Count(opened.len()));
        }
        let reader = |(at, file)| Reader::new(file, workload.steps(at));
        let arrivals = workload.arrivals();
        Ok(Self {
            arriving: arrivals.map(|steps| Arriving::new(steps, opened.len())),
            responses: Times::default(),
            waits: Times::default(),
            table: Arc::clone(engine.table()),
            engine,
            record,
            digest: Digest::default(),
            guard: Guard::default(),
            now: Nanos(0),
            events: 0,
            events_max: scene.events_max,
            heap: BinaryHeap::new(),
            pushed: 0,
            due: devices.iter().map(|device| device.next_event()).collect(),
            congested: vec![false; devices.len()],
            devices,
            files,
            readers: opened.into_iter().enumerate().map(reader).collect(),
            opened: 0,
            turns: walk.is_none().then(|| workload.turns()).flatten(),
            walking: walk.map(Walking::new),
            turn: None,
            processors: Cpus::new(scene.processors),
            cpu_told: Nanos(0),
            owed: Nanos(0),
            is_taken: false,
            is_answered: false,
            joins_instants: scene.joins_instants,
            workload,
            later: VecDeque::new(),
            held: VecDeque::new(),
            reads: Vec::new(),
            free_reads: BTreeSet::new(),
            driver_per_fetch: scene.driver_per_fetch,
            copy_bytes_per_second: scene.copy_bytes_per_second,
            block_bytes,
        })
    }

    /// Devices, files and readers are announced, and every reader begins to think.
    fn set_up(&mut self, told: Option<Profile>) -> Result<(), WorldError> {
        for device in 0..self.devices.len() {
            let own = || self.devices[device].profile();
            let profile = told.clone().unwrap_or_else(own);
            self.handle(Input::Device {
                device: DeviceId(device as u16),
                profile,
            })?;
        }
        for at in 0..self.files.len() {
            let File {
                placement, bytes, ..
            } = &self.files[at];
            let (placement, bytes) = (placement.clone(), *bytes);
            self.handle(Input::File {
                file: FileId(at as u32),
                placement,
                bytes,
            })?;
        }
        if self.walking.is_some() {
            return self.walk_on();
        }
        let at_once = match self.turns {
            Some(_) => usize::MAX,
            None => self.workload.at_once().max(1),
        };
        self.opened = self.readers_of(at_once);
        for (process, reader) in (0..).zip(&mut self.readers[..self.opened]) {
            reader.process = if self.turns.is_some() { 0 } else { process };
        }
        let owner = |reader| self.workload.owner(reader);
        let is_beside = |reader: usize| owner(reader) != reader && self.turns.is_none();
        let beside: Vec<usize> = (0..self.opened).filter(|r| is_beside(*r)).collect();
        for reader in &beside {
            let owner = self.workload.owner(*reader);
            let Some(one) = self.readers.get_mut(owner) else {
                return Err(WorldError::NoFile(owner));
            };
            one.beside.push(*reader);
            self.readers[*reader].process = owner as u32;
        }
        (0..self.opened).try_for_each(|reader| self.open(reader))?;
        self.announce(self.workload.hints())?;
        if self.arriving.is_some() {
            return self.expect_arrival();
        }
        match self.turns {
            Some(_) => self.next_turn(),
            None => (0..self.opened)
                .filter(|reader| beside.binary_search(reader).is_err())
                .try_for_each(|reader| self.think(reader)),
        }
    }

    /// Number of readers of the first processes.
    fn readers_of(&self, processes: usize) -> usize {
        let all = self.readers.len();
        if processes == usize::MAX {
            return all;
        }
        (0..processes).fold(0, |next, _| {
            if next < all {
                self.after_group(next)
            } else {
                all
            }
        })
    }

    /// The reader behind this one and those that are there for its steps.
    fn after_group(&self, owner: usize) -> usize {
        let mut behind = owner + 1..self.readers.len();
        let next = behind.find(|reader| self.workload.owner(*reader) != owner);
        next.unwrap_or(self.readers.len())
    }

    /// The readers' announcements go to the engine, as many as it takes.
    fn announce(&mut self, hints: Announcements<'_>) -> Result<(), WorldError> {
        let mut last = None;
        for announcement in hints {
            let Some((reader, first, count)) = self.blocks_of(&announcement) else {
                continue;
            };
            if self.engine.takes_hint(count) != Some(true) {
                break;
            }
            last = Some(reader);
            let more = true;
            self.handle(Input::Hint {
                reader,
                first,
                count,
                more,
            })?;
        }
        let end = |reader| Input::Hint {
            reader,
            first: Block(0),
            count: 0,
            more: false,
        };
        last.map_or(Ok(()), |reader| self.handle(end(reader)))
    }

    /// The blocks of a read that is announced; none if nothing of it is in the file.
    fn blocks_of(&self, announced: &Announcement) -> Option<(ReaderId, Block, u32)> {
        let file = &self.files[self.readers.get(announced.reader)?.file];
        let end = announced.offset.0.saturating_add(announced.bytes.0);
        let end = end.min(file.bytes.0).div_ceil(self.block_bytes);
        let first = announced.offset.0 / self.block_bytes;
        let count = u32::try_from(end.checked_sub(first)?).ok()?;
        let first = Block(u32::try_from(first).ok()?);
        (count > 0).then_some((ReaderId(announced.reader as u32), first, count))
    }

    /// Time of the next event.
    fn next(&self) -> Option<Nanos> {
        let waking = self.heap.peek().map(|Reverse((at, ..))| *at);
        self.due.iter().flatten().copied().chain(waking).min()
    }

    /// One device's completions, or one waking.
    fn step(&mut self) -> Result<(), WorldError> {
        let now = self.now;
        let is_due = |at: &Option<Nanos>| at.is_some_and(|at| at <= now);
        if let Some(device) = self.due.iter().position(is_due) {
            let mut done = Vec::new();
            self.devices[device].advance(now, &mut done);
            self.due[device] = self.devices[device].next_event();
            self.tell_congestion()?;
            done.into_iter()
                .try_for_each(|one| self.complete(device, one))?;
            return self.let_on();
        }
        match self.heap.pop() {
            Some(Reverse((_, _, ARRIVAL))) => self.arrive(),
            Some(Reverse((_, _, reader))) => self.wake(reader),
            None => Ok(()),
        }
    }

    /// An event is over. If it is an instant of its own, the engine decides now; except after an
    /// answer whose release must be immediate, which belongs to it.
    fn end_event(&mut self) -> Result<(), WorldError> {
        let is_released_at_once = std::mem::take(&mut self.is_answered);
        let goes_on = is_released_at_once && self.engine.wants_releases();
        match !self.joins_instants && !goes_on && self.engine.is_undecided() {
            true => self.decide(),
            false => Ok(()),
        }
    }

    /// All that happens now was handed in.
    fn decide(&mut self) -> Result<(), WorldError> {
        self.is_taken = false;
        self.handle(Input::Decide)
    }

    fn count(&mut self) -> Result<(), WorldError> {
        self.events += 1;
        if self.events > self.events_max {
            return Err(WorldError::Events(self.events_max));
        }
        Ok(())
    }

    /// A reader wakes at a time.
    fn push(&mut self, at: Nanos, reader: usize) {
        self.pushed += 1;
        self.heap.push(Reverse((at, self.pushed, reader)));
    }

    fn rule<T>(&self, rule: String) -> Result<T, WorldError> {
        Err(WorldError::Rule {
            now: self.now,
            rule,
        })
    }

    fn keep(&self, rule: guard::Rule) -> Result<(), WorldError> {
        rule.or_else(|rule| self.rule(rule))
    }

    /// In the end no reader waits, nothing is under way, and all counters add up.
    fn check(&self) -> Result<(), WorldError> {
        let now = self.now;
        if now.0 == u64::MAX {
            return Err(WorldError::Time);
        }
        let waiting = (0..).zip(&self.readers);
        let waiting = waiting.filter(|(_, reader)| reader.state != State::Done);
        let readers: Vec<usize> = waiting.map(|(at, _)| at).collect();
        if !readers.is_empty() {
            return Err(WorldError::Stuck { now, readers });
        }
        self.keep(self.guard.at_rest(&self.table))?;
        self.engine.ledger().check().map_err(WorldError::Ledger)?;
        match self.readers.iter().position(|r| !r.report.adds_up()) {
            Some(reader) => Err(WorldError::Clock(reader)),
            None => Ok(()),
        }
    }

    /// Everything has come to rest: the accounts are closed.
    fn finish(mut self) -> Result<Report, WorldError> {
        self.drain()?;
        self.check()?;
        Ok(self.report())
    }

    fn report(&self) -> Report {
        let readers: Vec<_> = self.readers.iter().map(|reader| reader.report).collect();
        let views = self.engine.devices().into_iter();
        let accounts = self
            .devices
            .iter()
            .zip(views)
            .map(|(device, view)| DeviceReport {
                usage: device.usage(),
                servers: device.servers(),
                estimate: view.profile,
                confidence: view.confidence,
            });
        Report {
            ledger: self.engine.ledger(),
            elapsed: readers
                .iter()
                .map(|reader| reader.elapsed)
                .max()
                .unwrap_or_default(),
            quiet: self.now,
            bookkeeping: self.engine.bookkeeping(),
            bytes: Bytes(readers.iter().map(|reader| reader.bytes.0).sum()),
            devices: accounts.collect(),
            responses: self.responses.clone(),
            waits: self.waits.clone(),
            is_growing: self.arriving.as_ref().is_some_and(Arriving::is_growing),
            readers,
            digest: self.digest.0,
            events: self.events,
            block_bytes: self.block_bytes as u32,
        }
    }
}
