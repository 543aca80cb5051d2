//! Steering: the window of one stream, from the event to the limit of its open file.
//!
//! Called by the [loop](crate::watch) for each event of the page cache. A stream that begins is looked at once: whose is
//! it, may it be steered, in which memory does it read? From then on each event goes to the engine of its domain, and
//! the limit is set where it differs from the open file's by more than an eighth: each setting costs some 100 us, and
//! windows that grow by a quarter would be set each time otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forerun_core::{Bytes, Nanos};

use crate::causes::Cause;
use crate::descriptors::{FileKey, Found};
use crate::memory::Domain;
use crate::process::{Program, is_idle};
use crate::sample::{Ahead, Cause as Why};
use crate::streams::{Of, Steered, Stream};
use crate::watch::{Engine, Watch};
use crate::windows::PAGE_BYTES;

/// A limit is set where it differs by more than this part.
const CHANGE_PART: u32 = 8;
/// A stream that could not be steered is tried again after so long.
const AGAIN: u64 = 1_000_000_000;
/// Requests of a window that was decided by now were sent this much later at most.
const SENT_WITHIN: u64 = 2_000_000;
/// Open files whose limits are put back at the end; older ones keep theirs.
pub(crate) const TOUCHED_MAX: usize = 1 << 16;
/// Thrashing makes the memory of a domain this part smaller, once a quarter of a second at most.
const LESS_PART: u64 = 8;
const LESS_EVERY: u64 = 250_000_000;

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

impl Watch {
    /// The kernel's readahead was asked for a page.
    pub(crate) fn ahead(&mut self, event: &Ahead) {
        let own = [Some(std::process::id()), self.guardian_process()];
        let Some(at) = self.file_system(event.device) else {
            return;
        };
        if own.contains(&Some(event.process)) {
            return;
        }
        self.counts.events += 1;
        let key = FileKey {
            device: event.device,
            inode: event.inode,
        };
        if self.small_file(at, key, event) || event.size == 0 {
            return;
        }
        let place = match self.streams.of(key, event) {
            Of::None => return,
            Of::New => self.begin(at, key, event),
            Of::Known { place, has_lost } => {
                if has_lost {
                    self.lost_page(key, place, event.time);
                }
                place
            }
        };
        self.retry(at, key, place, event);
        let decided = self.decide(at, key, place, event);
        self.streams.saw(key, place, event);
        self.counts.bytes += u64::from(event.size) * PAGE_BYTES;
        let Err(cause) = decided.and_then(|want| self.steer(at, key, place, event, want)) else {
            return;
        };
        let bytes = u64::from(event.size) * PAGE_BYTES;
        self.causes.add(cause, event.process, bytes);
    }

    fn begin(&mut self, at: usize, key: FileKey, event: &Ahead) -> usize {
        self.counts.streams += 1;
        let mut over = Vec::new();
        self.streams
            .finished(event.thread, |_, stream| over.push(stream));
        over.iter().for_each(|stream| self.closed(stream));
        let admitted = self.admit(at, key, event).unwrap_or_else(Admitted::not);
        let (pages, steered) = (admitted.pages, admitted.steered);
        let place = self.streams.begin(key, event, pages, steered);
        if let Some(stream) = self.streams.get(key, place) {
            stream.set = Some((0, event.time));
            stream.number = admitted.number;
        }
        place
    }

    /// Windows that could not be steered by chance are tried again.
    fn retry(&mut self, at: usize, key: FileKey, place: usize, event: &Ahead) {
        let Some(stream) = self.streams.get(key, place).map(|stream| *stream) else {
            return;
        };
        let is_final = matches!(
            stream.steered,
            Steered::By { .. }
                | Steered::Not(
                    Cause::Excluded | Cause::Idle | Cause::KernelThread | Cause::OtherNamespace
                )
        );
        let tried = stream.set.map_or(Nanos(0), |(_, tried)| tried);
        if is_final || event.time.since(tried).0 < AGAIN {
            return;
        }
        let admitted = self.admit(at, key, event);
        if let Some(stream) = self.streams.get(key, place) {
            stream.set = Some((0, event.time));
            if let Ok(admitted) = admitted {
                (stream.pages, stream.steered) = (admitted.pages, admitted.steered);
                stream.number = admitted.number;
            }
        }
    }

    /// The program that reads a file, and its descriptor, if it may be steered.
    pub(crate) fn reader_of(
        &mut self,
        at: usize,
        key: FileKey,
        event: &Ahead,
    ) -> Result<(Program, Found, PathBuf), Cause> {
        let program = Program::of(event.process).ok_or(Cause::Ended)?;
        if program.is_kernel {
            return Err(Cause::KernelThread);
        }
        if is_idle(event.thread) {
            return Err(Cause::Idle);
        }
        let found = self.descriptors.find(event.process, key, event.index)?;
        let path = path_of(event.process, found.number);
        let below = &self.file_systems[at].below;
        let is_below = below.is_empty() || below.iter().any(|below| path.starts_with(below));
        let mut rules = self.excludes.iter();
        if !is_below || rules.any(|rule| rule.is_true_of(&program, &path)) {
            return Err(Cause::Excluded);
        }
        Ok((program, found, path))
    }

    /// Whether a stream may be steered, and by which engine.
    fn admit(&mut self, at: usize, key: FileKey, event: &Ahead) -> Result<Admitted, Cause> {
        let (program, found, _) = self.reader_of(at, key, event)?;
        let Found { number, bytes, .. } = found;
        let domain = self
            .domain(at, Domain::of(&program))
            .ok_or(Cause::NotRaised)?;
        let begin = event.index
            - event
                .index
                .min(u64::from(event.size.saturating_sub(event.async_size)));
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
        key: FileKey,
        place: usize,
        event: &Ahead,
    ) -> Result<u32, Cause> {
        let now = self.since_start(event.time);
        let oldest = self.file_systems[at].disks.oldest();
        let oldest = match oldest {
            Nanos(u64::MAX) => oldest,
            Nanos(sent) => self.since_start(Nanos(sent.saturating_sub(SENT_WITHIN))),
        };
        let own = self.file_systems[at]
            .limit
            .pages()
            .map_err(|_| Cause::NotRaised)?;
        let Some(stream) = self.streams.get(key, place) else {
            return Err(Cause::Closed);
        };
        let (domain, number) = match stream.steered {
            Steered::By { domain, number } => (domain, number),
            Steered::Not(cause) => return Err(cause),
        };
        let window = self.engines[domain]
            .windows
            .seen(now, number, event.index, oldest);
        stream.window = window.unwrap_or(stream.window);
        Ok(self.file_systems[at].limit.settable(stream.window.max(own)))
    }

    /// Gives the open file this limit, at a mark and where it has another.
    fn steer(
        &mut self,
        at: usize,
        key: FileKey,
        place: usize,
        event: &Ahead,
        want: u32,
    ) -> Result<(), Cause> {
        let Some(stream) = self.streams.get(key, place).map(|stream| *stream) else {
            return Ok(());
        };
        let is_old = stream
            .set
            .is_some_and(|(pages, set)| pages > 0 && set >= event.time);
        // A lower limit shortens no window of a stream that runs: it is of use where the window is shorter yet.
        let reached = want.max(event.size);
        let is_near = reached.abs_diff(event.limit) <= event.limit / CHANGE_PART;
        if event.cause != Why::Mark || is_old || is_near {
            return Ok(());
        }
        if !self.file_systems[at].limit.is_ours_or_own(event.limit) {
            return Err(Cause::OwnLimit);
        }
        if self.is_dry || self.is_paused() {
            self.counts.spared += 1;
            return Ok(());
        }
        if stream
            .set
            .is_some_and(|(pages, _)| pages > 0 && pages != event.limit)
        {
            // The last setting met another open file of this process: its descriptors are listed anew.
            self.descriptors.forget(event.process);
        }
        self.set(at, key, event.process, event.index, want)?;
        self.bios.set(event.process, key, want);
        let now = self.now();
        if let Some(stream) = self.streams.get(key, place) {
            stream.set = Some((want, now));
        }
        if self.touched.len() < TOUCHED_MAX || self.touched.contains_key(&(event.process, key)) {
            self.touched.insert((event.process, key), event.index);
        }
        Ok(())
    }

    /// Sets the limit of an open file, which is held for as long as that takes.
    fn set(
        &mut self,
        at: usize,
        key: FileKey,
        process: u32,
        page: u64,
        want: u32,
    ) -> Result<(), Cause> {
        let begun = Instant::now();
        let found = self.descriptors.find(process, key, page)?;
        let held = Instant::now();
        let guardian = self.guardian.as_mut().ok_or(Cause::NotRaised)?;
        let limit = &mut self.file_systems[at].limit;
        let set = limit.set(&found.file, want, guardian);
        drop(found);
        self.counts.held_most = self.counts.held_most.max(held.elapsed());
        match set {
            Ok(true) => {
                self.counts.set += 1;
                self.counts.setting += begun.elapsed();
                Ok(())
            }
            _ => Err(Cause::NotRaised),
        }
    }

    /// A page that was read ahead is gone: the windows of its domain take more memory than there is.
    fn lost_page(&mut self, key: FileKey, place: usize, time: Nanos) {
        self.counts.thrashed += 1;
        let steered = self.streams.get(key, place).map(|stream| stream.steered);
        let Some(Steered::By { domain, .. }) = steered else {
            return;
        };
        self.lessen(domain, time);
    }

    /// The memory that a domain is told of becomes smaller.
    pub(crate) fn lessen(&mut self, domain: usize, time: Nanos) {
        let now = self.since_start(time);
        let engine = &mut self.engines[domain];
        if time.since(engine.lessened).0 >= LESS_EVERY {
            engine.lessened = time;
            engine.part -= engine.part / LESS_PART;
            engine.part = engine.part.max(Engine::PART_MIN);
            engine.tell(now);
        }
    }

    /// A stream has ended.
    pub(crate) fn closed(&mut self, stream: &Stream) {
        let now = self.since_start(self.now());
        if let Steered::By { domain, number } = stream.steered {
            self.engines[domain].windows.close(now, number);
        }
    }

    /// Open files that were touched get the limit of their file system, as far as they are still open. How many did.
    pub(crate) fn put_all_back(&mut self) -> usize {
        let touched = std::mem::take(&mut self.touched);
        let until = Instant::now() + Duration::from_secs(5);
        let mut count = 0;
        for ((process, key), page) in touched {
            let at = self.file_system(key.device);
            let own = at.map(|at| self.file_systems[at].limit.pages());
            if let (Some(at), Some(Ok(own))) = (at, own)
                && Instant::now() < until
                && self.set(at, key, process, page, own).is_ok()
            {
                count += 1;
            }
        }
        count
    }
}

impl Engine {
    /// In 256ths of the memory that there is.
    pub(crate) const PART: u64 = 256;
    const PART_MIN: u64 = 32;

    /// Tells the engine of the memory it may reckon with.
    pub(crate) fn tell(&mut self, now: Nanos) {
        let bytes = u128::from(self.bytes.0) * u128::from(self.part) / u128::from(Self::PART);
        self.windows
            .limit(now, Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)));
    }
}

/// The path of a descriptor, as its process would name it; of a file without a name what the kernel says.
pub(crate) fn path_of(process: u32, number: i32) -> PathBuf {
    let link = fs::read_link(format!("/proc/{process}/fd/{number}")).unwrap_or_default();
    // What the kernel puts behind the name of a file that was unlinked is no part of it.
    match link
        .to_str()
        .and_then(|text| text.strip_suffix(" (deleted)"))
    {
        Some(path) => Path::new(path).to_owned(),
        None => link,
    }
}
