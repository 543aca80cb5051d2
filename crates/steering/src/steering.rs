//! Steering: the limit of one open file, from the events of a kernel's readahead.
//!
//! A stream that begins is looked at once: whose is it, may it be steered, in which memory does it read? From then on
//! each event goes to the engine of its domain, and the limit is set where it differs from the open file's by more than
//! an eighth: each setting costs some 100 us, and windows that grow by a quarter would be set each time otherwise.
//!
//! ```text
//! event -> its stream -> engine of its domain: a window -> limit -> at a mark, where it differs: Kernel::set
//! ```
//!
//! Where readers are a [crowd](crate::crowd) that a fair scheduler serves better, it is asked for, and files keep the device's limit.
//!
//! The [`Kernel`] is a running one, or the simulator's. A domain is a memory that readers share.

use std::io::Write;

use forerun_core::measure::LIST;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, Settings};

use crate::Cause;
use crate::crowd::Crowd;
use crate::disks::{Disks, Spread};
use crate::events::{Ahead, Cause as Why, FileKey, Request};
use crate::limits::Limits;
use crate::streams::{Of, Steered, Stream, Streams};
use crate::windows::{PAGE_BYTES, Windows};

/// A limit is set where it differs by more than this part.
const CHANGE_PART: u32 = 8;
/// A stream that could not be steered is tried again after so long.
const AGAIN: u64 = SECOND;
/// Requests of a window that was decided by now were sent this much later at most.
const SENT_WITHIN: u64 = 2_000_000;
/// Thrashing makes the memory of a domain this part smaller, once a quarter of a second at most.
const LESS_PART: u64 = 8;
const LESS_EVERY: u64 = 250_000_000;
/// After so many ticks without thrashing a domain gets a sixteenth of its memory back.
const MORE_TICKS: u64 = 5;
/// Engines at a time, and one for the system of each file system; readers of further domains share that one.
const ENGINES_MAX: usize = 64;
const SECOND: u64 = 1_000_000_000;

/// A kernel whose readahead is steered. File systems have numbers from 0 on.
pub trait Kernel<D> {
    /// Pages of 4 KiB, in which events and limits are counted, in one of the kernel's own.
    fn page(&self) -> u32 {
        1
    }

    /// The limit that files of a file system have when they are opened, in pages; none if its device is gone.
    fn limit(&mut self, at: usize) -> Option<u32>;

    /// The open file that an event is of.
    ///
    /// # Errors
    /// It cannot be found, or is to be left alone.
    fn reader(&mut self, at: usize, key: FileKey, event: &Ahead) -> Result<Reader<D>, Cause>;

    /// Memory for the files of a domain now.
    fn memory(&mut self, domain: &D) -> Bytes;

    /// Whether the engine of this number fills files of folders that are known.
    fn has_folders(&self, _engine: usize) -> bool {
        false
    }

    /// The place for the decisions of the engine of this number; none if they are not recorded.
    fn journal(&mut self, engine: usize) -> Option<Box<dyn Write>>;

    /// Gives the open file that an event is of this limit, and tells when it was given; none if nothing is to be set.
    ///
    /// # Errors
    /// It is closed by now, or cannot be set.
    fn set(&mut self, at: usize, event: &Ahead, wanted: Wanted) -> Result<Option<Nanos>, Cause>;

    /// Lets the disks of a file system serve fairly from now on, or as before; whether they serve fairly then. None if they
    /// should be fair, and nothing is to be set.
    fn schedule(&mut self, at: usize, is_fair: bool) -> Option<bool>;
}

/// An open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader<D> {
    /// Size of its file.
    pub bytes: u64,
    /// Its descriptor.
    pub number: i32,
    /// The memory that it reads in.
    pub domain: D,
}

/// A limit for an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// In pages.
    pub pages: u32,
    /// The last one of its stream is not the open file's limit: another open file got that.
    pub has_missed: bool,
}

/// An engine, for the readers of one domain on one file system.
pub struct Engine<D> {
    at: usize,
    domain: D,
    /// Its windows.
    pub windows: Windows,
    /// The memory there is, the part of it that is told, and when that became smaller.
    bytes: Bytes,
    part: u64,
    lessened: Nanos,
}

/// Counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Streams that began.
    pub streams: u64,
    /// Pages that were read ahead and gone when their reader came.
    pub thrashed: u64,
    /// Bytes of the windows that were seen.
    pub bytes: u64,
    /// How often a crowd of readers got a fair queue.
    pub crowds: u64,
}

/// See the [module](self).
pub struct Steering<D> {
    settings: Settings,
    start: Nanos,
    /// All streams.
    pub streams: Streams,
    /// Disks, one entry for each file system.
    pub disks: Vec<Disks>,
    /// Engines by their number.
    pub engines: Vec<Engine<D>>,
    /// See there.
    pub counts: Counts,
    limits: Vec<Limits>,
    /// By file system; none where the scheduler is left alone.
    crowds: Vec<Option<Crowd>>,
    ticks: u64,
}

/// A stream that begins.
struct Admitted {
    /// Size of its file, in pages.
    pages: u64,
    /// Its descriptor.
    number: i32,
    steered: Steered,
}

impl Admitted {
    /// One that is left alone.
    fn not(cause: Cause) -> Self {
        Self {
            pages: u64::MAX,
            number: -1,
            steered: Steered::Not(cause),
        }
    }
}

impl<D: Clone + Default + PartialEq> Steering<D> {
    /// With [settings of windows](crate::windows::settings), from this time on, for file systems on these disks: each with its
    /// number and whether it turns, and how they lie together.
    #[must_use]
    pub fn new(settings: Settings, start: Nanos, below: &[(&[(u32, bool)], Spread)]) -> Self {
        let measure = || Choice::of(&LIST[0]).build();
        let disks = below.iter();
        let disks = disks.map(|(disks, spread)| Disks::new(disks, *spread, measure));
        Self {
            settings,
            start,
            streams: Streams::default(),
            disks: disks.collect(),
            engines: Vec::new(),
            counts: Counts::default(),
            limits: vec![Limits::default(); below.len()],
            crowds: vec![None; below.len()],
            ticks: 0,
        }
    }

    /// Lets [crowds](crate::crowd) on this file system have a fair queue. It is for disks that turn: where a switch costs little
    /// it is of no use to wait for a reader.
    pub fn look_for_crowds(&mut self, at: usize) {
        self.crowds[at] = Some(Crowd::new(self.start, &self.disks[at].profile()));
    }

    /// Whether the queue of a file system is fair now.
    #[must_use]
    pub fn is_fair(&self, at: usize) -> bool {
        self.crowds[at].is_some_and(|crowd| crowd.is_fair())
    }

    /// The time of the engines, which begins with the steering.
    #[must_use]
    pub fn since_start(&self, time: Nanos) -> Nanos {
        time.since(self.start)
    }

    /// A request of a disk.
    pub fn request(&mut self, request: &Request) {
        // Partitions of one disk are file systems with the same one.
        for disks in &mut self.disks {
            disks.saw(request);
        }
    }

    /// Events were lost, and among them perhaps the completions of requests that are taken to be under way.
    pub fn lost(&mut self) {
        self.disks.iter_mut().for_each(Disks::blind);
    }

    /// The kernel's readahead was asked for a page of a file on this file system.
    ///
    /// # Errors
    /// The reader cannot be steered.
    pub fn ahead(
        &mut self,
        at: usize,
        event: &Ahead,
        kernel: &mut dyn Kernel<D>,
    ) -> Result<(), Cause> {
        let key = event.file();
        let place = match self.streams.of(key, event) {
            Of::None => return Ok(()),
            Of::New => self.begin(at, event, kernel),
            Of::Known { place, has_lost } => {
                if has_lost {
                    self.lost_page(key, place, event.time);
                }
                place
            }
        };
        self.retry(at, place, event, kernel);
        let decided = self.decide(at, place, event, kernel);
        self.streams.saw(key, place, event);
        if !matches!(decided, Err(Cause::Elsewhere)) {
            self.counts.bytes += u64::from(event.size) * PAGE_BYTES;
        }
        self.steer(at, place, event, decided?, kernel)
    }

    fn begin(&mut self, at: usize, event: &Ahead, kernel: &mut dyn Kernel<D>) -> usize {
        self.counts.streams += 1;
        let mut over = Vec::new();
        self.streams
            .finished(event.thread, |_, stream| over.push(stream));
        over.iter()
            .for_each(|stream| self.closed(stream, event.time));
        if let Some(crowd) = &mut self.crowds[at] {
            crowd.began(event.time);
        }
        let admitted = self.admit(at, event, kernel);
        let admitted = admitted.unwrap_or_else(Admitted::not);
        let key = event.file();
        let (pages, steered) = (admitted.pages, admitted.steered);
        let place = self.streams.begin(key, event, pages, steered);
        if let Some(stream) = self.streams.get(key, place) {
            stream.set = Some((0, event.time));
            stream.number = admitted.number;
        }
        place
    }

    /// Windows that could not be steered by chance are tried again.
    fn retry(&mut self, at: usize, place: usize, event: &Ahead, kernel: &mut dyn Kernel<D>) {
        let key = event.file();
        let Some(stream) = self.streams.get(key, place).map(|stream| *stream) else {
            return;
        };
        let is_final = match stream.steered {
            Steered::By { .. } => true,
            Steered::Not(cause) => cause.is_final(),
        };
        let tried = stream.set.map_or(Nanos(0), |(_, tried)| tried);
        if is_final || event.time.since(tried).0 < AGAIN {
            return;
        }
        let admitted = self.admit(at, event, kernel);
        if let Some(stream) = self.streams.get(key, place) {
            stream.set = Some((0, event.time));
            if let Ok(admitted) = admitted {
                (stream.pages, stream.steered) = (admitted.pages, admitted.steered);
                stream.number = admitted.number;
            }
        }
    }

    /// Whether a stream may be steered, and by which engine.
    fn admit(
        &mut self,
        at: usize,
        event: &Ahead,
        kernel: &mut dyn Kernel<D>,
    ) -> Result<Admitted, Cause> {
        let Reader {
            bytes,
            number,
            domain,
        } = kernel.reader(at, event.file(), event)?;
        let domain = self
            .domain(at, &domain, event.time, kernel)
            .ok_or(Cause::NotRaised)?;
        let ahead = u64::from(event.size.saturating_sub(event.async_size));
        let begin = event.index.saturating_sub(ahead);
        let now = self.since_start(event.time);
        let windows = &mut self.engines[domain].windows;
        let of_engine = windows.open(now, bytes, begin).ok_or(Cause::NotRaised)?;
        Ok(Admitted {
            pages: bytes.div_ceil(PAGE_BYTES),
            number,
            steered: Steered::By {
                domain,
                number: of_engine,
            },
        })
    }

    /// The limit that the stream's open file should have.
    fn decide(
        &mut self,
        at: usize,
        place: usize,
        event: &Ahead,
        kernel: &mut dyn Kernel<D>,
    ) -> Result<u32, Cause> {
        let now = self.since_start(event.time);
        let oldest = match self.disks[at].oldest() {
            Nanos(u64::MAX) => Nanos(u64::MAX),
            Nanos(sent) => self.since_start(Nanos(sent.saturating_sub(SENT_WITHIN))),
        };
        let own = kernel.limit(at).ok_or(Cause::NotRaised)?;
        self.limits[at].note_own(own);
        let stream = self.streams.get(event.file(), place);
        let stream = stream.ok_or(Cause::Closed)?;
        let (domain, number) = match stream.steered {
            Steered::By { domain, number } => (domain, number),
            Steered::Not(cause) => return Err(cause),
        };
        let windows = &mut self.engines[domain].windows;
        let window = windows.seen(now, number, event.index, oldest);
        stream.window = window.unwrap_or(stream.window);
        let share = windows.share();
        let is_held = self.crowds[at].is_some_and(|crowd| crowd.holds(event.time, share));
        match is_held {
            true => Ok(own),
            false => Ok(self.limits[at].settable(stream.window.max(own), kernel.page())),
        }
    }

    /// Gives the open file this limit, at a mark and where it has another.
    fn steer(
        &mut self,
        at: usize,
        place: usize,
        event: &Ahead,
        want: u32,
        kernel: &mut dyn Kernel<D>,
    ) -> Result<(), Cause> {
        let Some(stream) = self.streams.get(event.file(), place) else {
            return Ok(());
        };
        let last = stream.set.filter(|(pages, _)| *pages > 0);
        let is_old = last.is_some_and(|(_, set)| set >= event.time);
        let is_foreign = !self.limits[at].is_ours_or_own(event.limit);
        stream.is_ours = event.cause == Why::Mark && !is_foreign;
        // A lower limit shortens no window of a stream that runs: it is of use where the window is shorter yet.
        let [next, wanted] = [event.limit, want].map(|limit| limit.max(event.size));
        let is_near = wanted.abs_diff(next) <= next / CHANGE_PART;
        if event.cause != Why::Mark || is_old || is_near {
            return Ok(());
        }
        if is_foreign {
            return Err(Cause::OwnLimit);
        }
        self.limits[at].note_ours(want);
        let wanted = Wanted {
            pages: want,
            has_missed: last.is_some_and(|(pages, _)| pages != event.limit),
        };
        if let Some(time) = kernel.set(at, event, wanted)? {
            stream.set = Some((want, time));
        }
        Ok(())
    }

    /// A page that was read ahead is gone: the windows of its domain take more memory than there is.
    fn lost_page(&mut self, key: FileKey, place: usize, time: Nanos) {
        self.counts.thrashed += 1;
        let steered = self.streams.get(key, place).map(|stream| stream.steered);
        if let Some(Steered::By { domain, .. }) = steered {
            self.lessen(domain, time);
        }
    }

    /// The memory that a domain is told of becomes smaller.
    pub fn lessen(&mut self, domain: usize, time: Nanos) {
        let now = self.since_start(time);
        let engine = &mut self.engines[domain];
        if time.since(engine.lessened).0 >= LESS_EVERY {
            engine.lessened = time;
            engine.part -= engine.part / LESS_PART;
            engine.part = engine.part.max(Engine::<D>::PART_MIN);
            engine.tell(now);
        }
    }

    fn closed(&mut self, stream: &Stream, time: Nanos) {
        let now = self.since_start(time);
        if let Steered::By { domain, number } = stream.steered {
            self.engines[domain].windows.close(now, number);
        }
    }

    /// The engine of a domain, which is made for its first reader. Where there are as many as there may be, it is one of
    /// another that no reader has, or else the one of the system.
    pub fn domain(
        &mut self,
        at: usize,
        domain: &D,
        time: Nanos,
        kernel: &mut dyn Kernel<D>,
    ) -> Option<usize> {
        let is_it = |engine: &Engine<D>| engine.at == at && engine.domain == *domain;
        if let Some(place) = self.engines.iter().position(is_it) {
            return Some(place);
        }
        let is_free = |place: &usize| {
            let Engine {
                domain, windows, ..
            } = &self.engines[*place];
            windows.streams() == 0 && *domain != D::default() && !kernel.has_folders(*place)
        };
        let is_full = self.engines.len() >= ENGINES_MAX;
        let free = (0..self.engines.len()).filter(|_| is_full).find(is_free);
        let place = match free {
            Some(place) => place,
            None if is_full && *domain != D::default() => {
                return self.domain(at, &D::default(), time, kernel);
            }
            None => self.make(at, domain, kernel)?,
        };
        let now = self.since_start(time);
        let bytes = kernel.memory(domain);
        let profile = self.disks[at].profile();
        let engine = &mut self.engines[place];
        (engine.at, engine.domain, engine.bytes) = (at, domain.clone(), bytes);
        (engine.part, engine.lessened) = (Engine::<D>::PART, Nanos(0));
        if free.is_some() {
            engine.windows.costs(now, profile);
        }
        engine.tell(now);
        Some(place)
    }

    /// Another engine; its place.
    fn make(&mut self, at: usize, domain: &D, kernel: &mut dyn Kernel<D>) -> Option<usize> {
        let profile = self.disks[at].profile();
        let journal = kernel.journal(self.engines.len());
        let windows = Windows::new(self.settings.clone(), profile, journal).ok()?;
        self.engines.push(Engine {
            at,
            domain: domain.clone(),
            windows,
            bytes: Bytes(0),
            part: Engine::<D>::PART,
            lessened: Nanos(0),
        });
        Some(self.engines.len() - 1)
    }

    /// Once a second: streams that ended, costs and memory that changed.
    pub fn tick(&mut self, now: Nanos, kernel: &mut dyn Kernel<D>) {
        self.ticks += 1;
        let mut over = Vec::new();
        let by_turns = (0..self.crowds.len()).any(|at| self.is_fair(at));
        self.streams
            .ended(now, by_turns, |_, stream| over.push(stream));
        over.iter().for_each(|stream| self.closed(stream, now));
        let time = self.since_start(now);
        for at in 0..self.disks.len() {
            let Some(profile) = self.disks[at].changed() else {
                continue;
            };
            let engines = self.engines.iter_mut().filter(|engine| engine.at == at);
            engines.for_each(|engine| engine.windows.costs(time, profile.clone()));
        }
        self.tell_memory(now, kernel);
        (0..self.crowds.len()).for_each(|at| self.schedule(at, now, kernel));
    }

    fn schedule(&mut self, at: usize, now: Nanos, kernel: &mut dyn Kernel<D>) {
        let work = self.disks[at].take_work(now);
        let Some(crowd) = &mut self.crowds[at] else {
            return;
        };
        let readers = self.engines.iter();
        let readers = readers.filter(|engine| engine.at == at && engine.windows.streams() > 0);
        let window = readers.map(|engine| engine.windows.share()).min();
        let was_crowd = crowd.is_fair();
        let is_crowd = crowd.is_there(now, window, &self.disks[at].profile(), work);
        match kernel.schedule(at, is_crowd) {
            None => crowd.paused(),
            Some(is_fair) if is_fair != is_crowd => crowd.refused(now),
            Some(_) => self.counts.crowds += u64::from(is_crowd && !was_crowd),
        }
    }

    fn tell_memory(&mut self, now: Nanos, kernel: &mut dyn Kernel<D>) {
        let time = self.since_start(now);
        for place in 0..self.engines.len() {
            let domain = &self.engines[place].domain;
            let at_work =
                |engine: &&Engine<D>| engine.domain == *domain && engine.windows.streams() > 0;
            let sharing = self.engines.iter().filter(at_work).count().max(1) as u64;
            let bytes = Bytes(kernel.memory(domain).0 / sharing);
            let engine = &mut self.engines[place];
            let is_quiet = now.since(engine.lessened).0 > MORE_TICKS * SECOND;
            if is_quiet && self.ticks.is_multiple_of(MORE_TICKS) {
                engine.part = (engine.part + Engine::<D>::PART / 16).min(Engine::<D>::PART);
            }
            engine.bytes = bytes;
            engine.tell(time);
        }
    }

    /// The settings of its engines.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The error that ended the first of the journals that ended before the run.
    #[must_use]
    pub fn journal_error(&self) -> Option<&std::io::Error> {
        let engines = self.engines.iter();
        engines.filter_map(|of| of.windows.journal_error()).next()
    }

    /// Writes the lines of the journals that are not written yet.
    pub fn flush(&mut self) {
        let engines = self.engines.iter_mut();
        engines.for_each(|engine| engine.windows.flush());
    }
}

impl<D> Engine<D> {
    /// In 256ths of the memory that there is.
    const PART: u64 = 256;
    const PART_MIN: u64 = 32;

    /// Tells the engine of the memory it may reckon with.
    fn tell(&mut self, now: Nanos) {
        let bytes = u128::from(self.bytes.0) * u128::from(self.part) / u128::from(Self::PART);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.windows.limit(now, Bytes(bytes));
    }
}
