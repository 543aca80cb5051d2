//! A run: an engine of any settings, under any inputs, with a driver that keeps book.
//!
//! Holds after every input: no panic, the ledger balances, memory stays in its bound, outputs come to
//! an end, no block is fetched while it is on its way. When all fetches have ended, all that was
//! answered was taken and all is closed, nothing is left.

use std::collections::{BTreeMap, BTreeSet};

use forerun_core::detect::Access;
use forerun_core::protocol::Wants;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, Fetch, FetchOutcome, FileId, Input, Nanos, Output, ReadId,
    ReaderId, Served,
};

use crate::draw::Draw;
use crate::event::{DEVICES, Event, FILES, READERS, event};

/// More outputs than blocks and requests there can be means that they never end.
const OUTPUTS_MAX: u32 = 200_000;
/// Where numbers of crowds' readers and reads begin.
const CROWD: u32 = 1000;

/// What came to pass, so that a test can say what it covers.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Inputs taken and refused, by their names.
    pub(crate) inputs: BTreeMap<&'static str, [u64; 2]>,
    /// Reads that missed while their device had room for nothing more.
    pub(crate) deferred: u64,
    /// Fetches that ended before one that was given out earlier.
    pub(crate) out_of_order: u64,
}

/// A file's contents, until they change.
type Version = (FileId, u32);

struct Driver<'a> {
    engine: Engine,
    now: u64,
    versions: BTreeMap<FileId, u32>,
    outstanding: Vec<(Fetch, Version)>,
    in_flight: BTreeSet<(Version, Block)>,
    answered: Vec<ReadId>,
    crowds: u32,
    seen: &'a mut Seen,
}

fn name(input: &Input) -> &'static str {
    match input {
        Input::Device { .. } => "device",
        Input::File { .. } => "file",
        Input::Open { .. } => "open",
        Input::Read { wants, .. } => match wants {
            Wants::Blocks => "read",
            Wants::Presence => "await",
        },
        Input::Release { .. } => "release",
        Input::Touch { .. } => "touch",
        Input::Hits { .. } => "hits",
        Input::Hint { .. } => "hint",
        Input::Computed { .. } => "computed",
        Input::Decide => "decide",
        Input::Completed { .. } => "completed",
        Input::Invalidate { .. } => "invalidate",
        Input::Limit { .. } => "limit",
        Input::Close { .. } => "close",
        Input::Forget { .. } => "forget",
    }
}

/// Runs what the bytes say.
pub(crate) fn run(bytes: &[u8], seen: &mut Seen) {
    let mut draw = Draw(bytes);
    let engine = Engine::new(draw.settings()).expect("settings in range");
    let mut driver = Driver {
        engine,
        now: 0,
        versions: BTreeMap::new(),
        outstanding: Vec::new(),
        in_flight: BTreeSet::new(),
        answered: Vec::new(),
        crowds: 0,
        seen,
    };
    let block_bytes = driver.engine.settings().block_bytes.into();
    driver.set_up(&mut draw, block_bytes);
    while !draw.is_empty() {
        // Often at one time, now and then much later.
        driver.now = driver.now.saturating_add(match draw.below(8) {
            0 => draw.any(),
            more => more as u64 * 100_000,
        });
        match event(&mut draw, block_bytes) {
            Event::Input(input) => driver.input(input),
            Event::Ends(which, outcome) => driver.end(which, outcome),
            Event::Taken(which) => driver.take(which),
            Event::Crowd(file, readers) => driver.crowd(file, readers),
        }
    }
    driver.wind_down();
}

impl Driver<'_> {
    /// Devices, files and readers to begin with, or the bytes end before.
    fn set_up(&mut self, draw: &mut Draw<'_>, block_bytes: u64) {
        for device in (0..DEVICES).map(DeviceId) {
            let profile = draw.profile();
            self.input(Input::Device { device, profile });
        }
        for file in 0..FILES {
            self.input(Input::File {
                file: FileId(file),
                placement: draw.placement(DEVICES, block_bytes),
                bytes: Bytes(u64::from(draw.short() % 1000) * block_bytes + 17),
            });
        }
        for reader in 0..READERS {
            self.input(Input::Open {
                reader: ReaderId(reader),
                file: FileId(reader % FILES),
            });
        }
    }

    fn input(&mut self, input: Input) {
        let name = name(&input);
        let before = self.engine.ledger();
        let changed = match input {
            Input::Invalidate { file, .. } | Input::Forget { file } => Some(file),
            _ => None,
        };
        let misses = matches!(input, Input::Read { .. });
        let completed = match &input {
            Input::Completed { request, .. } => Some(*request),
            _ => None,
        };
        self.engine.handle(Nanos(self.now), input);
        let after = self.engine.ledger();
        let refused = after.refused_inputs != before.refused_inputs;
        self.seen.inputs.entry(name).or_default()[usize::from(refused)] += 1;
        if let Some(file) = changed.filter(|_| !refused) {
            *self.versions.entry(file).or_default() += 1;
        }
        if let Some(request) = completed {
            // Named by chance, or by `end`: over in either case.
            let at = self
                .outstanding
                .iter()
                .position(|(fetch, _)| fetch.request == request);
            if let Some((fetch, version)) = at.map(|at| self.outstanding.remove(at)) {
                self.seen.out_of_order += u64::from(at != Some(0));
                for block in fetch.extent.blocks() {
                    self.in_flight.remove(&(version, block));
                }
            }
        }
        let outputs = self.carry_out();
        let missed = misses && after.misses > before.misses;
        let waits = missed && outputs == 0 && !self.engine.wants_releases();
        self.seen.deferred += u64::from(waits);
        let ledger = self.engine.ledger();
        ledger.check().expect("the ledger balances");
        let (peak, memory) = (ledger.memory_peak, self.engine.settings().memory);
        assert!(peak <= memory, "{peak} over {memory}");
    }

    /// Carries out what the engine wants. Returns how much that is.
    fn carry_out(&mut self) -> u32 {
        let mut outputs = 0;
        loop {
            match self.engine.poll() {
                Output::Idle { .. } => return outputs,
                Output::Fetch(fetch) => {
                    let file = fetch.extent.file;
                    let version = (file, self.versions.get(&file).copied().unwrap_or(0));
                    for block in fetch.extent.blocks() {
                        let is_new = self.in_flight.insert((version, block));
                        assert!(is_new, "{} is fetched twice at once", fetch.extent);
                    }
                    self.outstanding.push((fetch, version));
                }
                Output::Serve {
                    read,
                    served: Served::Blocks { count },
                } => {
                    assert!(count > 0);
                    self.answered.push(read);
                }
                Output::Serve { .. } | Output::Evict(_) => {}
            }
            outputs += 1;
            assert!(outputs < OUTPUTS_MAX, "outputs without end");
        }
    }

    fn end(&mut self, which: usize, outcome: FetchOutcome) {
        if !self.outstanding.is_empty() {
            let (fetch, _) = self.outstanding[which % self.outstanding.len()];
            let request = fetch.request;
            self.input(Input::Completed { request, outcome });
        }
    }

    fn take(&mut self, which: usize) {
        if !self.answered.is_empty() {
            let read = self.answered.swap_remove(which % self.answered.len());
            self.input(Input::Release { read });
        }
    }

    /// Many readers at once: on a device with few servers nearly all of them wait undecided.
    fn crowd(&mut self, file: FileId, readers: u32) {
        let already = self.crowds;
        for number in (0..readers).map(|at| at + CROWD + already) {
            let (reader, read) = (ReaderId(number), ReadId(number));
            self.input(Input::Open { reader, file });
            self.input(Input::Read {
                read,
                reader,
                access: Access {
                    previous: None,
                    head: 0,
                    block: Block(number * 7 % 1000),
                    count: 1 + number % 3,
                },
                fresh: true,
                wants: Wants::Blocks,
            });
        }
        self.crowds += readers;
    }

    /// Everything ends.
    fn wind_down(mut self) {
        self.settle();
        // With a plan, a piece may be asked for whose reader never comes back for it.
        assert!(
            !self.engine.wants_releases() || self.engine.has_plan(),
            "a read waits for memory, which is free"
        );
        for reader in (0..READERS).chain(CROWD..CROWD + self.crowds).map(ReaderId) {
            self.input(Input::Close { reader });
        }
        self.settle();
        for file in (0..=FILES).map(FileId) {
            self.input(Input::Forget { file });
        }
        self.settle();
        let ledger = self.engine.ledger();
        assert_eq!(
            (ledger.resident_unused, ledger.in_flight),
            (0, 0),
            "blocks are left"
        );
        assert!(self.in_flight.is_empty());
        for (file, block) in (0..=FILES).flat_map(|file| (0..1000).map(move |b| (file, b))) {
            let found = self.engine.table().find(FileId(file), Block(block));
            assert_eq!(found, None, "block {block} of file {file} is left");
        }
    }

    /// Until nothing is under way.
    fn settle(&mut self) {
        while !self.outstanding.is_empty() || !self.answered.is_empty() {
            self.end(0, FetchOutcome::Done);
            self.take(0);
            self.input(Input::Decide);
        }
    }
}
