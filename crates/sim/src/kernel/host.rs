//! The host: readers over a page cache and a device, and the steering that is told what they do.
//!
//! Readers and device take turns by time, as in [`world`](crate::world); a device's completions come before the readers
//! of the same time. After each of them the steering gets the events that came of it, and sets limits:
//!
//! ```text
//! reader -> page cache -> readahead -> device        events -> Steering -> limit of an open file
//! ```

use core::cmp::Reverse;
use core::fmt;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::Write;

use forerun_core::settings::SettingsError;
use forerun_core::{Bytes, Nanos, Settings};
use forerun_steering::disks::Spread;
use forerun_steering::events::{Ahead, Cause as Why, FileKey, Request as Told};
use forerun_steering::windows::settings;
use forerun_steering::{Cause, Counts, Kernel, Reader as Found, Steering, Wanted};

use super::cache::{self, Cache};
use super::readahead::{REQUEST_PAGES, ReadAhead, Window};
use crate::device::{self, Device, Process};
use crate::simulate::Outcome;
use crate::workload::{Step, Steps, Workload};
use crate::world::begins;

const PAGE: u64 = 4096;
const SECTOR: u64 = 512;
/// The steering looks at costs and memory that often.
const TICK: u64 = 1_000_000_000;
/// Requests that the disk's queue holds; a reader whose window does not fit waits until it is sent.
const QUEUE_MAX: usize = 128;
/// Number of the one file system, and of the disk below it.
const DEVICE: u32 = 1;

/// An input of the steering, or its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The readahead was asked for a page.
    Ahead(Ahead),
    /// A request went to the disk, or came back.
    Request(Told),
    /// A second has passed.
    Tick(Nanos),
    /// The open file that this process has gets this limit, in pages.
    Set(u32, u32),
}

/// Why a run has no outcome.
#[derive(Clone, PartialEq, Debug)]
pub enum KernelError {
    /// Readers that take turns, walk folders, arrive in an open loop or read for each other.
    Workload,
    /// A reader's file is not there.
    NoFile(usize),
    /// The watch cannot have these settings.
    Settings(SettingsError),
    /// Readers wait, and nothing is on its way.
    Hangs,
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workload => f.write_str(
                "a simulated kernel takes a --workload whose readers are processes of their own, each with one file \
                 from the begin of the run, as many-readers: for this one take a preset of the engine",
            ),
            Self::NoFile(reader) => write!(f, "reader {reader} reads a file that is not there"),
            Self::Settings(error) => error.fmt(f),
            Self::Hangs => f.write_str("readers wait, and nothing is on its way"),
        }
    }
}

impl core::error::Error for KernelError {}

/// Everything that decides a run.
#[derive(Debug)]
pub struct Machine<'a> {
    /// The readers and their files, which lie on the device one behind the other.
    pub workload: &'a dyn Workload,
    /// The disk.
    pub device: Box<dyn Device + 'a>,
    /// Memory for pages.
    pub cache: Bytes,
    /// The limit of open files when they are opened, in pages.
    pub limit: u32,
    /// Methods and memory of the watch; none if no limit is set.
    pub watch: Option<Settings>,
}

impl Machine<'_> {
    /// Runs until every reader is done; each event of the steering is recorded.
    ///
    /// # Errors
    /// See [`KernelError`].
    pub fn run(self, record: &mut dyn FnMut(Event)) -> Result<(Outcome, Counts), KernelError> {
        check(self.workload)?;
        let watch = self.watch.map(settings).transpose();
        let disk = [(DEVICE, self.device.servers() == 1)];
        let below = [(&disk[..], Spread::Striped)];
        let watch = watch.map_err(KernelError::Settings)?;
        let watch = watch.map(|settings| Steering::new(settings, Nanos(0), &below));
        let sizes = self.workload.files();
        let readers = self.workload.readers();
        if let Some(reader) = readers.iter().position(|file| *file >= sizes.len()) {
            return Err(KernelError::NoFile(reader));
        }
        let begins = begins(&sizes, PAGE, self.workload.is_packed());
        let count = readers.len();
        let opened = readers
            .into_iter()
            .map(|file| (file, ReadAhead::new(self.limit.into())));
        let mut host = Host {
            os: Os {
                now: Nanos(0),
                files: sizes.into_iter().zip(begins).collect(),
                opened: opened.collect(),
                cache: Cache::new(self.cache.0 / PAGE),
                memory: self.cache,
                device: self.device,
                limit: self.limit,
                flights: BTreeMap::new(),
                requests: 0,
                unsent: VecDeque::new(),
                unsent_of: vec![0; count],
                queued: 0,
                outcome: Outcome::default(),
                events: Vec::new(),
                sets: Vec::new(),
            },
            watch,
            record,
            readers: Vec::new(),
            wakings: BinaryHeap::new(),
            begun: 0,
            running: 0,
        };
        let steps = |at| Reader::new(self.workload.steps(at));
        host.readers = (0..count).map(steps).collect();
        (0..self.workload.at_once().max(1).min(count)).for_each(|_| host.begin_next());
        host.run()
    }
}

/// The readers are processes of their own.
///
/// # Errors
/// They are others.
pub(crate) fn check(workload: &dyn Workload) -> Result<(), KernelError> {
    let readers = workload.readers().len();
    let is_own = (0..readers).all(|reader| workload.owner(reader) == reader);
    let others = [
        workload.turns().is_some(),
        workload.arrivals().is_some(),
        workload.walk().is_some(),
    ];
    match is_own && !others.contains(&true) {
        true => Ok(()),
        false => Err(KernelError::Workload),
    }
}

/// A request on its way.
#[derive(Debug)]
struct Flight {
    reader: usize,
    file: usize,
    pages: core::ops::Range<u64>,
    told: Told,
    waiting: Vec<usize>,
}

/// A process that reads.
struct Reader<'a> {
    steps: Steps<'a>,
    /// The pages that it takes of its read and are left, the page at which those that it asks for end, and when it began.
    pages: core::ops::Range<u64>,
    asks_until: u64,
    end: u64,
    asked: Nanos,
    /// Since when it waits, and how it found the page that it waits for.
    waits: Option<Nanos>,
    found: cache::Found,
    stalled: u64,
    compute: u64,
}

impl<'a> Reader<'a> {
    fn new(steps: Steps<'a>) -> Self {
        Self {
            steps,
            pages: 0..0,
            asks_until: 0,
            end: 0,
            asked: Nanos(0),
            waits: None,
            found: cache::Found::There,
            stalled: 0,
            compute: 0,
        }
    }
}

/// Files, cache and device: the kernel that the steering sees.
#[derive(Debug)]
struct Os<'a> {
    now: Nanos,
    /// Size of each file, and where it begins on the device.
    files: Vec<(Bytes, u64)>,
    /// The file of each reader, and its readahead.
    opened: Vec<(usize, ReadAhead)>,
    cache: Cache,
    memory: Bytes,
    device: Box<dyn Device + 'a>,
    limit: u32,
    flights: BTreeMap<u64, Flight>,
    requests: u64,
    /// Requests that wait for room in the queue, how many of each reader, and those in it.
    unsent: VecDeque<u64>,
    unsent_of: Vec<usize>,
    queued: usize,
    outcome: Outcome,
    events: Vec<Event>,
    /// Limits that were set since the last event was recorded.
    sets: Vec<(u32, u32)>,
}

impl Kernel<()> for Os<'_> {
    fn limit(&mut self, _: usize) -> Option<u32> {
        Some(self.limit)
    }

    fn reader(&mut self, _: usize, key: FileKey, event: &Ahead) -> Result<Found<()>, Cause> {
        let file = self.files.get(key.inode as usize).ok_or(Cause::Closed)?;
        Ok(Found {
            bytes: file.0.0,
            number: i32::try_from(event.process).unwrap_or(i32::MAX),
            domain: (),
        })
    }

    fn memory(&mut self, (): &()) -> Bytes {
        self.memory
    }

    fn journal(&mut self, _: usize) -> Option<Box<dyn Write>> {
        None
    }

    fn set(&mut self, _: usize, event: &Ahead, wanted: Wanted) -> Result<Option<Nanos>, Cause> {
        let opened = self.opened.get_mut(event.process as usize);
        let (_, ahead) = opened.ok_or(Cause::Closed)?;
        ahead.limit = wanted.pages.into();
        self.sets.push((event.process, wanted.pages));
        Ok(Some(self.now))
    }

    /// The simulator has no scheduler that waits for readers.
    fn schedule(&mut self, _: usize, _: bool) -> Option<bool> {
        Some(false)
    }
}

impl Os<'_> {
    /// The state of a page that a reader comes to, after the readahead was asked for it.
    fn look(&mut self, reader: usize, page: u64, asked: u64) -> cache::Found {
        let (file, mut ahead) = self.opened[reader].clone();
        let found = self.cache.find((file, page));
        let cache = &self.cache;
        let is_cached = |page| cache.holds((file, page));
        let window = if found == cache::Found::Missing {
            self.events.push(event(
                Why::Miss,
                self.now,
                reader,
                (file, page, asked),
                &ahead,
            ));
            Some(ahead.miss(page, asked, &is_cached))
        } else if self.cache.take_mark((file, page)) {
            self.events.push(event(
                Why::Mark,
                self.now,
                reader,
                (file, page, asked),
                &ahead,
            ));
            let cache = &self.cache;
            ahead.mark(page, asked, &|page| cache.holds((file, page)))
        } else {
            None
        };
        self.opened[reader].1 = ahead;
        if let Some(window) = window {
            self.fetch(reader, file, window, page..page + asked);
        }
        found
    }

    /// Asks the device for the pages of a window that are missing.
    fn fetch(&mut self, reader: usize, file: usize, window: Window, asked: core::ops::Range<u64>) {
        let end = self.files[file].0.0.div_ceil(PAGE);
        let end = window.start.saturating_add(window.size).min(end);
        let mark = (window.async_size > 0).then(|| window.start + window.size - window.async_size);
        let mut run = window.start..window.start;
        for page in window.start..end {
            let is_held = self.cache.holds((file, page));
            let is_demanded = asked.contains(&page);
            let has_room = is_held || self.cache.makes_room() || is_demanded;
            if is_held || !has_room || run.end - run.start == REQUEST_PAGES {
                self.submit(reader, file, run);
                run = page..page;
            }
            if !has_room {
                return;
            }
            if is_held {
                run = page + 1..page + 1;
            } else {
                self.cache
                    .add((file, page), self.requests, mark == Some(page));
                self.outcome.fetches += 1;
                self.outcome.prefetched += u64::from(!is_demanded);
                run.end = page + 1;
            }
        }
        self.submit(reader, file, run);
    }

    fn submit(&mut self, reader: usize, file: usize, pages: core::ops::Range<u64>) {
        if pages.is_empty() {
            return;
        }
        let at = self.files[file].1.saturating_add(pages.start * PAGE);
        let bytes = (pages.end - pages.start) * PAGE;
        let told = Told {
            time: self.now,
            is_complete: false,
            device: DEVICE,
            sector: at / SECTOR,
            sectors: bytes / SECTOR,
        };
        let flight = Flight {
            reader,
            file,
            pages,
            told,
            waiting: Vec::new(),
        };
        self.flights.insert(self.requests, flight);
        self.unsent.push_back(self.requests);
        self.unsent_of[reader] += 1;
        self.requests += 1;
        self.send();
    }

    /// Sends requests for which the queue has room; the readers that have sent all of theirs.
    fn send(&mut self) -> Vec<usize> {
        let mut all_sent = Vec::new();
        while self.queued < QUEUE_MAX
            && let Some(id) = self.unsent.pop_front()
        {
            let Some(flight) = self.flights.get_mut(&id) else {
                continue;
            };
            let told = &mut flight.told;
            told.time = self.now;
            self.events.push(Event::Request(*told));
            let (at, bytes) = (told.sector * SECTOR, told.sectors * SECTOR);
            let request = device::Request::new(id, Bytes(at), Bytes(bytes));
            let process = Process(flight.reader as u32);
            self.device.submit(self.now, request.by(process));
            self.queued += 1;
            self.unsent_of[flight.reader] -= 1;
            if self.unsent_of[flight.reader] == 0 {
                all_sent.push(flight.reader);
            }
        }
        all_sent
    }

    /// Takes the requests that have ended; the readers that waited for them, or for room in the queue.
    fn advance(&mut self) -> Vec<usize> {
        let mut done = Vec::new();
        self.device.advance(self.now, &mut done);
        let mut waiting = Vec::new();
        for ended in done {
            let Some(flight) = self.flights.remove(&ended.id) else {
                continue;
            };
            self.queued -= 1;
            for page in flight.pages {
                self.cache.came((flight.file, page));
            }
            self.events.push(Event::Request(Told {
                time: self.now,
                is_complete: true,
                ..flight.told
            }));
            waiting.extend(flight.waiting);
        }
        waiting.extend(self.send());
        waiting
    }
}

fn event(
    cause: Why,
    time: Nanos,
    reader: usize,
    (file, index, asked): (usize, u64, u64),
    ahead: &ReadAhead,
) -> Event {
    let pages = |pages: u64| u32::try_from(pages).unwrap_or(u32::MAX);
    let window = ahead.window();
    Event::Ahead(Ahead {
        time,
        cause,
        process: reader as u32,
        thread: reader as u32,
        device: DEVICE,
        inode: file as u64,
        index,
        size: pages(window.size),
        async_size: pages(window.async_size),
        limit: pages(ahead.limit),
        asked,
    })
}

struct Host<'a, 'r> {
    os: Os<'a>,
    watch: Option<Steering<()>>,
    record: &'r mut dyn FnMut(Event),
    readers: Vec<Reader<'a>>,
    wakings: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Readers that began, and those of them that are not done.
    begun: usize,
    running: usize,
}

impl Host<'_, '_> {
    fn run(mut self) -> Result<(Outcome, Counts), KernelError> {
        let mut tick = TICK;
        while self.running > 0 {
            let waking = self.wakings.peek().map(|Reverse((time, _))| *time);
            let next = self.os.device.next_event().into_iter().chain(waking).min();
            let next = next.ok_or(KernelError::Hangs)?;
            if tick <= next.0 && self.watch.is_some() {
                self.os.now = self.os.now.max(Nanos(tick));
                self.os.events.push(Event::Tick(Nanos(tick)));
                tick += TICK;
            } else {
                self.os.now = self.os.now.max(next);
                self.step();
            }
            self.deliver();
        }
        let counts = self.watch.map(|watch| watch.counts).unwrap_or_default();
        let mut outcome = self.os.outcome;
        let compute = || self.readers.iter().map(|reader| reader.compute);
        outcome.compute = compute().fold(0, u64::saturating_add);
        outcome.compute_longest = compute().max().unwrap_or(0);
        outcome.evicted_unused = self.os.cache.unread;
        Ok((outcome, counts))
    }

    /// The events of this time: completions, else one reader.
    fn step(&mut self) {
        let is_due = |time: Nanos| time <= self.os.now;
        if self.os.device.next_event().is_some_and(is_due) {
            for reader in self.os.advance() {
                self.wakings.push(Reverse((self.os.now, reader)));
            }
        } else if let Some(Reverse((_, reader))) = self.wakings.pop() {
            self.read(reader);
        }
    }

    /// Hands the events to the steering, in their order.
    fn deliver(&mut self) {
        for event in std::mem::take(&mut self.os.events) {
            let Some(watch) = &mut self.watch else {
                continue;
            };
            (self.record)(event);
            match event {
                // A reader that cannot be steered keeps its limit. Events without a window are filtered in a kernel.
                Event::Ahead(event) if event.size > 0 => {
                    let _ = watch.ahead(0, &event, &mut self.os);
                }
                Event::Request(request) => watch.request(&request),
                Event::Tick(now) => watch.tick(now, &mut self.os),
                Event::Ahead(_) | Event::Set(..) => {}
            }
            for (process, pages) in self.os.sets.drain(..) {
                (self.record)(Event::Set(process, pages));
            }
        }
    }

    fn begin_next(&mut self) {
        if self.begun < self.readers.len() {
            self.begun += 1;
            self.running += 1;
            self.next_step(self.begun - 1);
        }
    }

    /// A reader thinks before its next read, or is done.
    fn next_step(&mut self, at: usize) {
        let now = self.os.now;
        let reader = &mut self.readers[at];
        let Some(step) = reader.steps.next() else {
            self.running -= 1;
            self.os.outcome.elapsed = self.os.outcome.elapsed.max(now.0);
            return self.begin_next();
        };
        let Step {
            pause,
            think,
            offset,
            bytes,
            take,
            not_before,
            ..
        } = step;
        let size = self.os.files[self.os.opened[at].0].0;
        let end = |bytes: Bytes| offset.0.saturating_add(bytes.0).min(size.0);
        reader.end = end(take.min(bytes));
        reader.pages = offset.0 / PAGE..reader.end.div_ceil(PAGE);
        reader.asks_until = end(bytes).div_ceil(PAGE);
        reader.compute = reader.compute.saturating_add(think.0);
        let due = not_before.unwrap_or_default();
        let begin = now.0.saturating_add(pause.0).max(due.0);
        let wake = Nanos(begin.saturating_add(think.0));
        reader.asked = not_before.unwrap_or(wake);
        self.wakings.push(Reverse((wake, at)));
    }

    /// A reader goes on with its read, up to a page that it has to wait for.
    fn read(&mut self, at: usize) {
        let now = self.os.now;
        if let Some(since) = self.readers[at].waits.take() {
            let stall = now.since(since);
            self.readers[at].stalled += stall.0;
        }
        while !self.readers[at].pages.is_empty() {
            let reader = &mut self.readers[at];
            let (page, asked) = (reader.pages.start, reader.asks_until - reader.pages.start);
            let found = self.os.look(at, page, asked);
            let reader = &mut self.readers[at];
            if reader.found == cache::Found::There {
                reader.found = found;
            }
            if self.os.unsent_of[at] > 0 {
                reader.waits = Some(now);
                return;
            }
            let file = self.os.opened[at].0;
            if let cache::Found::Coming(request) = self.os.cache.find((file, page)) {
                reader.waits = Some(now);
                if let Some(flight) = self.os.flights.get_mut(&request) {
                    flight.waiting.push(at);
                }
                return;
            }
            if self.os.cache.find((file, page)) == cache::Found::Missing {
                continue;
            }
            self.os.cache.read((file, page));
            let outcome = &mut self.os.outcome;
            outcome.reads += 1;
            match std::mem::replace(&mut reader.found, cache::Found::There) {
                cache::Found::There => outcome.hits += 1,
                cache::Found::Coming(_) => outcome.late_hits += 1,
                cache::Found::Missing => outcome.misses += 1,
            }
            reader.pages.start += 1;
        }
        self.end_read(at);
    }

    fn end_read(&mut self, at: usize) {
        let reader = &mut self.readers[at];
        let outcome = &mut self.os.outcome;
        outcome.responses.add(self.os.now.since(reader.asked));
        let stall = std::mem::take(&mut reader.stalled);
        if stall > 0 {
            outcome.waits.add(Nanos(stall));
            outcome.stall = outcome.stall.saturating_add(stall);
        }
        self.os.opened[at].1.reached(reader.end / PAGE);
        self.next_step(at);
    }
}
