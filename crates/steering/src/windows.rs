//! Windows: the engine as it is driven by reads that were seen, and whose fetches are the kernel's.
//!
//! The third driver. An observed read goes in as a `Read` that wants presence, from where the stream was seen last to
//! the page that was asked for. The engine fetches in a memory of its own, in which no bytes are; the window that it
//! opens there is the limit that the kernel's readahead gets for this open file.
//!
//! ```text
//! seen: mark at page 512         Input::Read blocks 17..=32, wants presence
//! engine                         Output::Fetch blocks 48..64: a window of 16 blocks, 1 MiB
//! kernel                         limit of the open file: 256 pages
//! ```
//!
//! Fetches complete when the reader has passed them. The window that it comes to was sent when it was seen last: if a
//! request from then or before is still at the disks, the reader waits for it, and the next window may grow; else the
//! window is there, and the reader is slower than the disks.
//!
//! Costs of disks are measured from the kernel's requests ([`disks`](crate::disks)) and told by `Input::Device`; the
//! kernel sends requests itself, so the engine holds none back: a device's number of servers is unknown to it. Blocks
//! are 64 KiB, because a window is no shorter than the kernel's default of twice that.
//!
//! The journal has all of it, and `forerun replay` decides the same windows.

mod ahead;

use std::collections::VecDeque;
use std::io::{self, Write};

use forerun_baselines::METHODS;
use forerun_core::depth::{Depth, DeviceFacts, StreamFacts};
use forerun_core::detect::Access;
use forerun_core::journal::{Entry, head};
use forerun_core::next_file;
use forerun_core::protocol::Wants;
use forerun_core::settings::SettingsError;
use forerun_core::spec::Choice;
use forerun_core::table::Table;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, Extent, Fetch, FetchOutcome, FileId, Input, Ledger, Nanos,
    Output, Placement, Profile, ReadId, ReaderId, RequestId, Settings,
};

pub use ahead::{Came, Fill};

/// Unit of the engine's memory.
pub const BLOCK_BYTES: u32 = 64 << 10;
/// Unit of the kernel's.
pub const PAGE_BYTES: u64 = 4096;
/// More memory than that makes no longer windows: 64 readers have 24 MiB each on the way.
pub const MEMORY_MAX: Bytes = Bytes(4 << 30);
/// All file systems' costs go to one device of the engine.
const DEVICE: DeviceId = DeviceId(0);
const READ: ReadId = ReadId(0);
/// Files are taken to lie so far apart.
const APART: u64 = 1 << 36;
/// The part of the memory for blocks not read yet. The kernel gives up pages in the order in which they came, read or
/// not, and a window is read to its end when its stream has had two more: two windows each are all that the memory
/// holds if all readers are equally fast. With 75 % of it 64 readers in 256 MiB lost whole windows: 35 MB/s.
const UNREAD_PERCENT: u8 = 50;
/// See [`Windows::ramped`].
const RAMP: u32 = 16;
/// Streams that an engine follows; others keep the limit that they have.
pub const STREAMS_MAX: u32 = 1 << 16;

/// A stream of one open file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Number(u32);

/// A fetch that may still be on its way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    request: RequestId,
    extent: Extent,
}

/// Where a stream is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The block behind the last one that it was seen at.
    next: u32,
    /// When that was.
    seen: Nanos,
    /// Its last window, in pages.
    window: u32,
    /// The limit that came of it.
    limit: u32,
}

/// See the [module](self).
pub struct Windows {
    engine: Engine,
    depth: Box<dyn Depth>,
    profile: Profile,
    journal: Option<Box<dyn Write>>,
    journal_error: Option<io::Error>,
    /// By the number of the stream, in the order in which they were sent.
    flights: Vec<VecDeque<Flight>>,
    /// By number; none if that is free.
    streams: Vec<Option<Place>>,
    free: Vec<u32>,
    now: Nanos,
    memory: Bytes,
    ahead: ahead::Ahead,
}

/// The settings of this driver: those of a preset, but for the parts that are the kernel's.
///
/// # Errors
/// Memory out of range.
pub fn settings(mut settings: Settings) -> Result<Settings, SettingsError> {
    settings.block_bytes = BLOCK_BYTES;
    let least = Table::memory_for(Table::FRAMES_MIN, BLOCK_BYTES);
    settings.memory = settings.memory.clamp(least, MEMORY_MAX);
    settings.measure = Choice::parse("measure", METHODS.measure, "given")?;
    settings.unread_percent = settings.unread_percent.min(UNREAD_PERCENT);
    settings.hinted = None;
    // Longer files are for windows.
    settings.next_file = METHODS.next_file("directory(bytes=262144)")?;
    // Windows are taken as a whole.
    settings.request_max = Bytes(1 << 30);
    settings.in_flight_max = 1 << 16;
    settings.check()?;
    Ok(settings)
}

impl Windows {
    /// An engine for disks of these costs.
    ///
    /// # Errors
    /// The engine refuses the settings.
    pub fn new(
        settings: Settings,
        profile: Profile,
        journal: Option<Box<dyn Write>>,
    ) -> io::Result<Self> {
        let memory = settings.memory;
        let depth = settings.depth.build();
        let engine = Engine::new(settings).map_err(io::Error::other)?;
        let mut windows = Self {
            engine,
            depth,
            profile: profile.clone(),
            journal,
            journal_error: None,
            flights: Vec::new(),
            streams: Vec::new(),
            free: Vec::new(),
            now: Nanos(0),
            memory,
            ahead: ahead::Ahead::default(),
        };
        let begin = head(windows.engine.settings());
        windows.write(|journal| writeln!(journal, "{begin}"));
        windows.costs(Nanos(0), profile);
        Ok(windows)
    }

    /// Costs of the disks, from now on.
    pub fn costs(&mut self, now: Nanos, profile: Profile) {
        let device = DEVICE;
        self.profile = profile.clone();
        self.feed(now, Input::Device { device, profile });
    }

    /// The kernel has about so much memory for these readers' files. Told where it changed by a sixteenth.
    pub fn limit(&mut self, now: Nanos, memory: Bytes) {
        let least = Table::memory_for(Table::FRAMES_MIN, BLOCK_BYTES);
        let memory = memory.clamp(least, self.engine.settings().memory);
        if memory.0.abs_diff(self.memory.0) > self.memory.0 / 16 {
            self.memory = memory;
            self.feed(now, Input::Limit { memory });
        }
    }

    /// The memory as it was told last.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        self.memory
    }

    /// A stream that was first seen at this page; none if there are too many.
    pub fn open(&mut self, now: Nanos, bytes: u64, page: u64) -> Option<Number> {
        let first = block_of(page)?;
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.streams.len() < STREAMS_MAX as usize => {
                self.streams.push(None);
                self.flights.push(VecDeque::new());
                self.streams.len() as u32 - 1
            }
            None => return None,
        };
        let place = Place {
            next: first,
            seen: now,
            window: 0,
            limit: 0,
        };
        self.streams[number as usize] = Some(place);
        let (file, reader) = (FileId(number), ReaderId(number));
        let placement = Placement::linear(DEVICE, Bytes(u64::from(number) * APART));
        let bytes = Bytes(bytes.min(u64::from(u32::MAX) * u64::from(BLOCK_BYTES)));
        self.feed(
            now,
            Input::File {
                file,
                placement,
                bytes,
            },
        );
        self.feed(now, Input::Open { reader, file });
        Some(Number(number))
    }

    /// It ended, or was not seen for long.
    pub fn close(&mut self, now: Nanos, number: Number) {
        let Some(stream) = self.streams.get_mut(number.0 as usize) else {
            return;
        };
        if stream.take().is_none() {
            return;
        }
        let (file, reader) = (FileId(number.0), ReaderId(number.0));
        self.arrived(now, number, |_| true);
        self.feed(now, Input::Close { reader });
        self.feed(now, Input::Forget { file });
        self.free.push(number.0);
    }

    /// A stream was seen at this page, while the oldest request of the disks is from `oldest`. The limit of the windows
    /// of its next pages, in pages; none as long as no window opened.
    pub fn seen(&mut self, now: Nanos, number: Number, page: u64, oldest: Nanos) -> Option<u32> {
        let last = block_of(page)?;
        let place = (*self.streams.get(number.0 as usize)?)?;
        if last < place.next {
            return None;
        }
        let next = last.checked_add(1)?;
        let waits = oldest <= place.seen;
        let mut window = None;
        // One block after the other, because windows open on the way whose blocks were there, too.
        for block in place.next..=last {
            self.arrived(now, number, |extent| match waits {
                true => extent.end() <= u64::from(last),
                false => extent.first.0 <= last,
            });
            window = self.read(now, number, block).or(window);
        }
        let limit = match window {
            Some(window) => self.ramped(&place, window),
            None => place.limit,
        };
        // The engine counts streams with blocks ahead, and there may have been fewer when it decided. Linux 6.18 shortens
        // no window of a stream that runs, so one that was too long once stays so.
        let share = u32::try_from(self.share().0 / PAGE_BYTES).unwrap_or(u32::MAX);
        let limit = limit.min(share);
        self.streams[number.0 as usize] = Some(Place {
            next,
            seen: now,
            window: window.unwrap_or(place.window),
            limit,
        });
        (limit > 0).then_some(limit)
    }

    /// The longest window for which there is memory: one that is read and one that comes, of each stream.
    #[must_use]
    pub fn share(&self) -> Bytes {
        let percent = u64::from(self.engine.settings().unread_percent);
        Bytes(self.memory.0 / 100 * percent / self.streams().max(1) as u64 / 2)
    }

    /// The limit for a window. While windows still double, the kernel's own ramp goes up to it, which starts two windows
    /// later and multiplies by four below a sixteenth of the limit; so it gets a limit that is so much higher, but no
    /// more than the depth method allows.
    fn ramped(&self, before: &Place, window: u32) -> u32 {
        if window < before.window.saturating_mul(2) {
            return window;
        }
        let mut stream = StreamFacts::default();
        stream.asked = Bytes(BLOCK_BYTES.into());
        stream.consumed = Bytes(u64::from(before.next) * u64::from(BLOCK_BYTES));
        stream.waited = true;
        let streams = u32::try_from(self.streams()).unwrap_or(u32::MAX);
        let device = DeviceFacts::new(&self.profile, Bytes(0), streams.max(1));
        let depth = self.depth.limit(&stream, &device).0 / PAGE_BYTES;
        let most = u32::try_from(depth).unwrap_or(u32::MAX);
        window.saturating_mul(RAMP).min(most).max(window)
    }

    /// Reads a block that was read, and gives the window that opened.
    fn read(&mut self, now: Nanos, number: Number, block: u32) -> Option<u32> {
        let previous = block.checked_sub(1).map(Block);
        let input = Input::Read {
            read: READ,
            reader: ReaderId(number.0),
            access: Access::new(Block(block), 1).with_previous(previous),
            fresh: true,
            wants: Wants::Presence,
        };
        let file = FileId(number.0);
        let mut opened = Opened::new(file, block.saturating_add(1));
        let mut is_served = self.feed_with(now, input, &mut opened);
        // It waits for a fetch that is under way: the reader waited, too.
        while !is_served {
            let flight = self.flights.get_mut(number.0 as usize)?.pop_front()?;
            is_served = self.complete(now, flight.request, &mut opened);
        }
        opened.pages()
    }

    /// Completes the fetches of a stream of which this is true.
    fn arrived(&mut self, now: Nanos, number: Number, is_there: impl Fn(&Extent) -> bool) {
        let Some(flights) = self.flights.get_mut(number.0 as usize) else {
            return;
        };
        let mut there = Vec::new();
        flights.retain(|flight| {
            let is = is_there(&flight.extent);
            there.extend(is.then_some(flight.request));
            !is
        });
        for request in there {
            let mut none = Opened::default();
            self.complete(now, request, &mut none);
        }
    }

    fn complete(&mut self, now: Nanos, request: RequestId, opened: &mut Opened) -> bool {
        let outcome = FetchOutcome::Done;
        self.feed_with(now, Input::Completed { request, outcome }, opened)
    }

    fn feed(&mut self, now: Nanos, input: Input) {
        let mut none = Opened::default();
        self.feed_with(now, input, &mut none);
    }

    /// Hands in an input, and completes the fetches that a reader waits for; whether the read was answered.
    fn feed_with(&mut self, now: Nanos, input: Input, opened: &mut Opened) -> bool {
        let mut inputs = VecDeque::from([input]);
        let mut is_served = false;
        while let Some(input) = inputs.pop_front() {
            self.now = self.now.max(now);
            self.note(|now| Entry::Input(now, input.clone()));
            self.engine.handle(self.now, input);
            while let Some(output) = self.engine.poll() {
                match output {
                    Output::Fetch(fetch) => inputs.extend(self.fetch(&fetch, opened)),
                    Output::OpenAhead { folder, entry } => {
                        self.open_ahead(next_file::Place { folder, entry }, &mut inputs);
                    }
                    Output::CloseAhead { reader } => self.close_ahead(reader, &mut inputs),
                    Output::Serve { .. } => is_served = true,
                    Output::Cancel { request } => {
                        // Nothing was asked of a disk, so nothing is given up but the wait.
                        let flights = self.flights.iter_mut();
                        flights.for_each(|of| of.retain(|flight| flight.request != request));
                        self.cancelled_small(request);
                        let outcome = FetchOutcome::Cancelled { blocks: 0 };
                        inputs.push_back(Input::Completed { request, outcome });
                    }
                }
                self.note(|_| Entry::Output(output));
            }
        }
        is_served
    }

    fn fetch(&mut self, fetch: &Fetch, opened: &mut Opened) -> Option<Input> {
        if fetch.extent.file.0 >= STREAMS_MAX {
            return self.fetch_small(fetch);
        }
        opened.add(fetch);
        let request = fetch.request;
        if fetch.demand {
            let outcome = FetchOutcome::Done;
            return Some(Input::Completed { request, outcome });
        }
        let extent = fetch.extent;
        if let Some(flights) = self.flights.get_mut(extent.file.0 as usize) {
            flights.push_back(Flight { request, extent });
        }
        None
    }

    fn note(&mut self, entry: impl FnOnce(Nanos) -> Entry) {
        let now = self.now;
        if self.journal.is_some() {
            let line = entry(now);
            self.write(|journal| writeln!(journal, "{line}"));
        }
    }

    /// A journal that cannot be written ends there.
    fn write(&mut self, call: impl FnOnce(&mut Box<dyn Write>) -> io::Result<()>) {
        let written = self.journal.as_mut().map(call);
        if let Some(Err(error)) = written {
            (self.journal, self.journal_error) = (None, Some(error));
        }
    }

    /// Writes the lines of the journal that are not written yet.
    pub fn flush(&mut self) {
        self.write(|journal| journal.flush());
    }

    /// The error that ended the journal, if one did.
    #[must_use]
    pub fn journal_error(&self) -> Option<&io::Error> {
        self.journal_error.as_ref()
    }

    /// The engine's counters.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.engine.ledger()
    }

    /// How many streams there are.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len() - self.free.len()
    }
}

/// The window that opened behind a read.
#[derive(Clone, Copy, Debug, Default)]
struct Opened {
    file: Option<FileId>,
    begin: u64,
    end: u64,
}

impl Opened {
    fn new(file: FileId, end: u32) -> Self {
        let end = u64::from(end);
        Self {
            file: Some(file),
            begin: end,
            end,
        }
    }

    fn add(&mut self, fetch: &Fetch) {
        let (first, end) = (u64::from(fetch.extent.first.0), fetch.extent.end());
        if Some(fetch.extent.file) != self.file || end <= self.end {
            return;
        }
        if first > self.end {
            self.begin = first;
        }
        self.end = end;
    }

    fn pages(&self) -> Option<u32> {
        let bytes = (self.end - self.begin).saturating_mul(u64::from(BLOCK_BYTES));
        u32::try_from(bytes / PAGE_BYTES)
            .ok()
            .filter(|pages| *pages > 0)
    }
}

fn block_of(page: u64) -> Option<u32> {
    let block = page.checked_mul(PAGE_BYTES)? / u64::from(BLOCK_BYTES);
    u32::try_from(block).ok().filter(|block| *block < u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use forerun_core::preset;
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;
    /// Pages of a mebibyte.
    const PAGES: u64 = MIB / PAGE_BYTES;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn disk() -> Profile {
        Profile::constant(Nanos(8_000_000), 80_000_000).unwrap()
    }

    fn windows(memory: u64, depth: &str, journal: Option<Box<dyn Write>>) -> Windows {
        let mut wanted = preset::default().settings(Bytes(memory)).unwrap();
        wanted.depth = Choice::parse("depth", METHODS.depth, depth).unwrap();
        Windows::new(settings(wanted).unwrap(), disk(), journal).unwrap()
    }

    /// So many readers come by turns to the next mark, while the disks are always busy; the last window of each.
    fn run(windows: &mut Windows, readers: u64, rounds: u64) -> Vec<u32> {
        let numbers: Vec<_> = (0..readers)
            .map(|_| windows.open(Nanos(0), 1 << 40, 0).unwrap())
            .collect();
        let mut last = vec![32; numbers.len()];
        let mut pages = vec![0; numbers.len()];
        for round in 1..=rounds {
            for (at, number) in numbers.iter().enumerate() {
                pages[at] += u64::from(last[at]);
                let now = Nanos(round * 1_000_000_000);
                let window = windows.seen(now, *number, pages[at], Nanos(0));
                last[at] = window.unwrap_or(last[at]);
            }
        }
        last
    }

    #[test]
    fn a_stream_alone_gets_the_competitive_depth_and_more_as_it_goes_on() {
        let competitive = run(&mut windows(256 * MIB, "competitive", None), 1, 40)[0];
        let bytes = u64::from(competitive) * PAGE_BYTES;
        assert!(
            (512 << 10..=704 << 10).contains(&bytes),
            "{bytes}: 640 kB in blocks of 64 KiB"
        );
        let growing = run(&mut windows(256 * MIB, "growing", None), 1, 40)[0];
        assert!(growing > 2 * competitive, "{growing} of {competitive}");
    }

    #[test]
    fn streams_share_the_memory() {
        for readers in [4, 16, 64] {
            let memory = 256 * MIB;
            let windows = run(&mut windows(memory, "growing", None), readers, 60);
            let two_each: u64 = windows
                .iter()
                .map(|pages| 2 * u64::from(*pages) * PAGE_BYTES)
                .sum();
            assert!(two_each <= memory, "{readers}: {two_each}");
            let least = windows.iter().min().unwrap();
            assert!(
                u64::from(*least) * PAGE_BYTES * readers >= memory / 8,
                "{readers}: {windows:?}"
            );
        }
    }

    #[test]
    fn less_memory_gives_shorter_windows() {
        let mut windows = windows(256 * MIB, "growing", None);
        let before = run(&mut windows, 16, 60)[0];
        for number in 0..16 {
            windows.close(Nanos(u64::MAX / 2), Number(number));
        }
        assert_eq!(windows.streams(), 0);
        windows.limit(Nanos(u64::MAX / 2), Bytes(64 * MIB));
        let after = run(&mut windows, 16, 60)[0];
        assert!(after < before / 2, "{after} of {before}");
    }

    #[test]
    fn a_reader_that_never_waits_gets_no_longer_windows_than_one_switch_is_worth() {
        let mut windows = windows(256 * MIB, "growing", None);
        let number = windows.open(Nanos(0), 1 << 40, 0).unwrap();
        let mut longest = 0;
        for step in 1..200 {
            // The disks are idle: blocks fetched before are there.
            let window = windows.seen(
                Nanos(step * 1_000_000_000),
                number,
                step * PAGES,
                Nanos(u64::MAX),
            );
            longest = longest.max(window.unwrap_or(0));
        }
        assert!(
            u64::from(longest) * PAGE_BYTES <= 704 << 10,
            "{longest} pages"
        );
    }

    #[test]
    fn a_journal_decides_the_same_windows_and_another_depth_others() {
        let journal = |depth| {
            let lines = Lines::default();
            run(
                &mut windows(64 * MIB, depth, Some(Box::new(lines.clone()))),
                3,
                30,
            );
            String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
        };
        let (growing, competitive) = (journal("growing"), journal("competitive"));
        let fetches = |text: &str| {
            text.lines()
                .filter(|line| line.starts_with("> fetch"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_ne!(fetches(&growing), fetches(&competitive));
        let mut lines = growing.lines();
        let (magic, second) = (lines.next().unwrap(), lines.next().unwrap());
        let settings = forerun_core::journal::parse_head(magic, second, &METHODS).unwrap();
        let mut engine = Engine::new(settings).unwrap();
        for line in lines {
            match line.parse::<Entry>().unwrap() {
                Entry::Input(now, input) => engine.handle(now, input),
                Entry::Output(output) => assert_eq!(engine.poll(), Some(output)),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_order_of_what_is_seen_leaves_a_ledger_that_adds_up(
            steps in proptest::collection::vec((0u32..6, 0u64..1 << 14, 0u64..50, 0u32..8), 1..200),
        ) {
            let mut windows = windows(8 * MIB, "growing", None);
            for (at, (number, page, oldest, what)) in steps.into_iter().enumerate() {
                let now = Nanos(at as u64);
                match what {
                    0 => windows.close(now, Number(number)),
                    1 => drop(windows.open(now, page * PAGE_BYTES, page / 2)),
                    2 => windows.limit(now, Bytes(page * 1024)),
                    _ => drop(windows.seen(now, Number(number), page, Nanos(oldest))),
                }
            }
            let ledger = windows.engine.ledger();
            prop_assert_eq!(ledger.reads, ledger.hits + ledger.late_hits + ledger.misses);
            prop_assert_eq!(ledger.refused_inputs, 0);
        }
    }
}
