//! A run: an engine of any settings, under any inputs, with a driver that keeps book.
//!
//! Holds after every input: no panic, the ledger balances, memory stays in its bound, outputs come to
//! an end, no block is fetched while it is on its way. When all fetches have ended, all that was
//! answered was taken and all is closed, nothing is left.

use std::collections::{BTreeMap, BTreeSet};

use forerun_core::detect::Access;
use forerun_core::protocol::Wants;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, Fetch, FetchOutcome, FileId, FolderId, Input, Nanos, Output,
    ReadId, ReaderId, RequestId, Served,
};

use crate::draw::Draw;
use crate::event::{DEVICES, Event, FILES, FOLDERS, READERS, event};

/// More outputs than blocks and requests there can be means that they never end.
const OUTPUTS_MAX: u32 = 200_000;
/// Where numbers of crowds' readers and reads begin.
const CROWD: u32 = 1000;
/// Where those of readers that walk folders, or are opened ahead of them, begin.
const WALKERS: u32 = 1 << 20;

/// Events that occurred, so that a test can check its coverage.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Inputs taken and refused, by their names.
    pub(crate) inputs: BTreeMap<&'static str, [u64; 2]>,
    /// Reads that missed while their device had room for nothing more.
    pub(crate) deferred: u64,
    /// Fetches that ended before one that was given out earlier.
    pub(crate) out_of_order: u64,
    /// Files opened ahead, and programs that came for them.
    pub(crate) files_ahead: [u64; 2],
}

/// A file's contents, until they change.
type Version = (FileId, u32);

struct Driver<'a> {
    engine: Engine,
    now: u64,
    versions: BTreeMap<FileId, u32>,
    outstanding: Vec<(Fetch, Version)>,
    /// Requests to be given up.
    cancelled: Vec<RequestId>,
    in_flight: BTreeSet<(Version, Block)>,
    answered: Vec<ReadId>,
    crowds: u32,
    folders: Folders,
    seen: &'a mut Seen,
}

/// The driver's state of files opened ahead.
#[derive(Default)]
struct Folders {
    asked: Vec<(FolderId, u32)>,
    ahead: BTreeMap<(FolderId, u32), ReaderId>,
    /// To be closed.
    left: Vec<ReaderId>,
    readers: u32,
    entered: u64,
}

fn name(input: &Input) -> &'static str {
    match input {
        Input::Device { .. } => "device",
        Input::Congested { .. } => "congested",
        Input::File { .. } => "file",
        Input::Open { .. } => "open",
        Input::Read { wants, .. } => match wants {
            Wants::Blocks => "read",
            Wants::Presence => "await",
            _ => "idle",
        },
        Input::Release { .. } => "release",
        Input::Touch { .. } => "touch",
        Input::Hits { .. } => "hits",
        Input::Hint { .. } => "hint",
        Input::CpuTime { .. } => "cpu",
        Input::Decide => "decide",
        Input::Completed { .. } => "completed",
        Input::Invalidate { .. } => "invalidate",
        Input::Limit { .. } => "limit",
        Input::Close { .. } => "close",
        Input::Forget { .. } => "forget",
        Input::Folder { .. } => "folder",
        Input::Entered { .. } => "entered",
        Input::Ahead { .. } => "ahead",
        _ => panic!("an input without a name: {input:?}"),
    }
}

/// Runs the events that the bytes encode.
pub(crate) fn run(bytes: &[u8], seen: &mut Seen) {
    let mut draw = Draw(bytes);
    let engine = Engine::new(draw.settings()).expect("settings in range");
    let mut driver = Driver {
        engine,
        now: 0,
        versions: BTreeMap::new(),
        outstanding: Vec::new(),
        cancelled: Vec::new(),
        in_flight: BTreeSet::new(),
        answered: Vec::new(),
        crowds: 0,
        folders: Folders::default(),
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
            Event::Opened(which, is_open) => driver.opened(which, is_open),
            Event::Walk {
                folder,
                from,
                stride,
                files,
                opener,
                takes,
            } => {
                for entry in (0..files).map(|at| from + at * stride) {
                    driver.walk(folder, entry, opener, takes);
                    // Some are late.
                    let answers = if takes { 4 } else { entry % 3 };
                    (0..answers).for_each(|_| driver.opened(0, true));
                }
            }
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
        self.folders.entered += u64::from(matches!(input, Input::Entered { .. }));
        match input {
            Input::Ahead { folder, entry, .. } => self.answered((folder, entry), &input),
            Input::Close { reader } => self.folders.ahead.retain(|_, ahead| *ahead != reader),
            _ => {}
        }
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
        self.give_up();
        let missed = misses && after.misses > before.misses;
        let waits = missed && outputs == 0 && !self.engine.wants_releases();
        self.seen.deferred += u64::from(waits);
        let ledger = self.engine.ledger();
        ledger.check().expect("the ledger balances");
        let (peak, memory) = (ledger.memory_peak, self.engine.settings().memory);
        assert!(peak <= memory, "{peak} over {memory}");
        // By the law of waste, or by that of time on a device that does one thing at a time.
        let most = 16 + 16 * ledger.files_ahead_used + self.folders.entered / 16;
        let asked = self.folders.asked.len() as u64;
        let spent = ledger.files_ahead_wasted + ledger.files_ahead_open + asked;
        assert!(spent <= most, "{spent} files for nothing, yet or ever");
    }

    /// Carries out the outputs. Returns their number.
    fn carry_out(&mut self) -> u32 {
        let mut outputs = 0;
        while let Some(output) = self.engine.poll() {
            match output {
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
                Output::Cancel { request } => self.cancelled.push(request),
                Output::Serve { .. } => {}
                Output::OpenAhead { folder, entry } => {
                    let place = (folder, entry);
                    let is_known = self.folders.asked.contains(&place);
                    assert!(!is_known, "{place:?} is asked for twice");
                    assert!(!self.folders.ahead.contains_key(&place));
                    self.folders.asked.push(place);
                }
                Output::CloseAhead { reader } => {
                    self.folders.ahead.retain(|_, ahead| *ahead != reader);
                    self.folders.left.push(reader);
                }
            }
            outputs += 1;
            assert!(outputs < OUTPUTS_MAX, "outputs without end");
        }
        outputs
    }

    /// Gives up every other fetch that is to be given up; drivers cannot do so with all.
    fn give_up(&mut self) {
        for request in std::mem::take(&mut self.cancelled) {
            let mut outstanding = self.outstanding.iter();
            let is_there = outstanding.any(|(fetch, _)| fetch.request == request);
            assert!(is_there, "{request} is given up, and not under way");
            if request.0 % 2 == 0 {
                let blocks = request.0 % 3;
                let outcome = FetchOutcome::Cancelled { blocks };
                self.input(Input::Completed { request, outcome });
            }
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

    /// A program opens a file, reads a little and closes it, now and then later.
    fn walk(&mut self, folder: FolderId, entry: u32, opener: u64, takes: bool) {
        let ahead = self.folders.ahead.get(&(folder, entry)).copied();
        let reader = match ahead.filter(|_| takes) {
            Some(reader) => reader,
            None => self.open_another(entry),
        };
        let ended = |engine: &Engine| {
            let ledger = engine.ledger();
            ledger.files_ahead_used + ledger.files_ahead_wasted
        };
        let before = ended(&self.engine);
        self.input(Input::Entered {
            folder,
            entry,
            reader,
            opener,
        });
        let came = ahead == Some(reader);
        if came {
            self.folders.ahead.remove(&(folder, entry));
        }
        if entry % 4 != 2 {
            let (first, count) = (Block(entry % 5 * (opener as u32 % 3)), 2);
            self.input(Input::Touch {
                reader,
                first,
                count,
            });
        }
        if entry % 3 != 1 {
            self.input(Input::Close { reader });
            let ended = ended(&self.engine) - before;
            assert!(ended >= u64::from(came), "{folder} {entry}");
        }
    }

    fn open_another(&mut self, entry: u32) -> ReaderId {
        let reader = ReaderId(WALKERS + self.folders.readers);
        self.folders.readers += 1;
        let file = FileId(entry % FILES);
        self.input(Input::Open { reader, file });
        reader
    }

    /// An answer is on its way in: the files the engine holds ahead from now on.
    fn answered(&mut self, place: (FolderId, u32), input: &Input) {
        let at = self.folders.asked.iter().position(|asked| *asked == place);
        let Input::Ahead { reader, .. } = input else {
            return;
        };
        // Readers of other files and programs are refused or taken, as any.
        if let Some(at) = at.filter(|_| reader.is_none_or(|r| r.0 >= WALKERS)) {
            self.folders.asked.remove(at);
            self.folders
                .ahead
                .extend(reader.map(|reader| (place, reader)));
        }
    }

    /// One of the files asked for is open, or could not be; one that was to be closed is.
    fn opened(&mut self, which: usize, is_open: bool) {
        for reader in std::mem::take(&mut self.folders.left) {
            self.input(Input::Close { reader });
        }
        if self.folders.asked.is_empty() {
            return;
        }
        let (folder, entry) = self.folders.asked[which % self.folders.asked.len()];
        let reader = is_open.then(|| self.open_another(entry));
        // Where no file is known the reader is not open.
        let before = self.engine.ledger().refused_inputs;
        self.input(Input::Ahead {
            folder,
            entry,
            reader,
        });
        if self.engine.ledger().refused_inputs != before {
            self.folders.ahead.remove(&(folder, entry));
            self.folders.asked.push((folder, entry));
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
                access: Access::new(Block(number * 7 % 1000), 1 + number % 3),
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
            !self.engine.wants_releases() || self.engine.ledger().hints > 0,
            "a read waits for memory, which is free"
        );
        for reader in (0..READERS).chain(CROWD..CROWD + self.crowds).map(ReaderId) {
            self.input(Input::Close { reader });
        }
        while !self.folders.asked.is_empty() {
            self.opened(0, false);
        }
        for folder in (0..FOLDERS).map(FolderId) {
            let entries = Default::default();
            self.input(Input::Folder { folder, entries });
        }
        for reader in (WALKERS..WALKERS + self.folders.readers).map(ReaderId) {
            self.input(Input::Close { reader });
        }
        self.settle();
        for file in (0..=FILES).map(FileId) {
            self.input(Input::Forget { file });
        }
        self.settle();
        let ledger = self.engine.ledger();
        self.seen.files_ahead[0] += ledger.files_ahead;
        self.seen.files_ahead[1] += ledger.files_ahead_used;
        assert_eq!(ledger.files_ahead_open, 0);
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
        while self.engine.is_undecided()
            || !self.outstanding.is_empty()
            || !self.answered.is_empty()
        {
            self.end(0, FetchOutcome::Done);
            self.take(0);
            self.input(Input::Decide);
        }
    }
}
