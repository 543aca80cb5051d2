//! An open file, read at any offset from any thread.
//!
//! [`Reader::read_at`] behaves as `pread(2)`. It goes block by block: as long as blocks are
//! resident it takes them on the hit path, without a lock; where one is not, the
//! rest of the read enters the engine and waits.
//!
//! The number of the file's version is noted when a read begins and compared when it ends; if it
//! changed in between, the read begins again. Growth makes it do so once, and then go on where it was: a
//! file that is appended to all the time would never be read. When the file itself is looked at (`fstat`) says
//! [`Looks`](crate::Looks): at most once in 100 ms by default, by the thread of a reader, which holds no lock then.

#[cfg(feature = "async")]
pub mod asynchronous;
mod awaited;
mod cursor;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forerun_core::{Block, FileId, ReaderId, Served};

use crate::catalog::Version;
use crate::deferred_inputs::DeferredInput;
use crate::engine_host::{Answer, Ask, EngineHost};
use crate::error::ReadError;
use crate::hit::{Guess, Hits};
use crate::owner::Owner;
use crate::source::{Key, OpenFile, Source};
use crate::span::Span;

/// A read begins again at most this often, and goes on as often in a row without a byte; a file that changes faster
/// than it can be read is an error, not a loop.
const RESTARTS_MAX: u32 = 16;

/// How often a block that must be there is looked up before the engine's lock is taken for it.
const LOOKS_MAX: u32 = 64;

/// No block was touched yet: larger than any block number.
const NOWHERE: u64 = u64::MAX;

/// State of a reader between reads. On cache lines of its own (processors fetch them in pairs):
/// every hit writes here, and readers on other processors must not feel it.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Position {
    previous: AtomicU64,
    hits: AtomicU64,
    /// A [`Guess`].
    guess: AtomicU64,
    /// Whose processor time counts; no hit asks.
    pub(crate) owner: Owner,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            previous: AtomicU64::new(NOWHERE),
            hits: AtomicU64::new(0),
            guess: AtomicU64::new(0),
            owner: Owner::default(),
        }
    }
}

impl Position {
    /// The hits not reported to the engine yet; they are from now on.
    pub(crate) fn take_hits(&self) -> u64 {
        self.hits.swap(0, Ordering::Relaxed)
    }

    fn previous(&self) -> Option<Block> {
        u32::try_from(self.previous.load(Ordering::Relaxed))
            .ok()
            .map(Block)
    }

    fn guess(&self) -> Guess {
        Guess::from_bits(self.guess.load(Ordering::Relaxed))
    }

    /// The reader is at this block now, guesses this for the next, and had `hits` more hits.
    fn came_to(&self, previous: Option<Block>, guess: Guess, hits: u64) {
        let previous = previous.map_or(NOWHERE, |block| u64::from(block.0));
        self.previous.store(previous, Ordering::Relaxed);
        self.guess.store(guess.to_bits(), Ordering::Relaxed);
        if hits > 0 {
            self.hits.fetch_add(hits, Ordering::Relaxed);
        }
    }
}

/// An open file. Closed when dropped.
pub struct Reader {
    engine_host: Arc<EngineHost>,
    id: ReaderId,
    file: FileId,
    version: Arc<Version>,
    source: Arc<dyn Source>,
    position: Arc<Position>,
    /// Where [`io::Read`] goes on; [`Reader::read_at`] neither uses nor moves it.
    cursor: u64,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            id, file, source, ..
        } = self;
        write!(f, "Reader {{ id: {id}, file: {file}, source: {source:?} }}")
    }
}

/// How far a segment of a read got.
enum Filled {
    /// All of it.
    Whole,
    /// To the end of the file, or to a block that cannot be read.
    ToEnd,
    /// The file changed, so the bytes read are of no use.
    Changed,
}

impl Reader {
    pub(crate) fn new(
        engine_host: Arc<EngineHost>,
        id: ReaderId,
        file: FileId,
        version: Arc<Version>,
        source: Arc<dyn Source>,
        position: Arc<Position>,
    ) -> Self {
        Self {
            engine_host,
            id,
            file,
            version,
            source,
            position,
            cursor: 0,
        }
    }

    /// Its number among the open readers of its driver; see [`crate::Driver::streams`].
    #[must_use]
    pub fn id(&self) -> ReaderId {
        self.id
    }

    /// Its device (`st_dev`, or `st_rdev` of a block device); none if its content is made up.
    #[must_use]
    pub fn device(&self) -> Option<u64> {
        self.source.device()
    }

    /// Whether a call about its file may wait for a server: see [`served`](crate::served).
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.source.is_served()
    }

    /// Whether its file may change while it is open, so that it is looked at now and then. An object may
    /// not: it is read in one version.
    #[must_use]
    pub fn may_change(&self) -> bool {
        self.version.can_change()
    }

    /// It is read for this thread, of whatever process, from now on: its CPU time tells whether it
    /// still comes to the blocks fetched for it. Without a word it is read for the threads that call. Zero
    /// says nothing.
    pub fn belongs_to(&self, thread: u32) {
        if self.engine_host.uses_cpu_time {
            self.position.owner.is(thread);
        }
    }

    /// Whether its file is read past the page cache; none if it is generated as it is read.
    #[must_use]
    pub fn is_direct(&self) -> Option<bool> {
        self.source.file().map(OpenFile::is_direct)
    }

    /// The size of the file, as of the last look at it.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.version.size()
    }

    /// How many bytes of it can be read: all, unless it has grown past the largest that is opened.
    pub(crate) fn readable(&self) -> u64 {
        self.version.bytes()
    }

    /// Whether bytes of the file lie there that cannot be read, because it has grown past the largest that is opened.
    fn is_past_numbers(&self, offset: u64) -> bool {
        offset >= self.engine_host.arena.file_bytes_max() && offset < self.size()
    }

    /// Reads at an offset, as `pread(2)`: the number of bytes is smaller than the buffer only at
    /// the end of the file, or if a later part of it cannot be read; zero is the end.
    ///
    /// # Errors
    /// The original error of the device, if not one byte could be read before it; of an object a
    /// [`ReadError`] with its name. `ResourceBusy`
    /// if the file changes all the time, other than by growing. `EFBIG` where it has grown past the largest that is
    /// opened. `ESHUTDOWN` after [`crate::Driver::finish`].
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.version.look_is_due() {
            return self.look_and_read(buf, offset);
        }
        if let Some(taken) = self.take_single(buf, offset) {
            return Ok(taken);
        }
        self.attempts(buf, offset, true)
    }

    /// A read for which a look is due. Not by the way of a single block: that one would no longer be
    /// inlined above.
    #[cold]
    #[inline(never)]
    fn look_and_read(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.look()?;
        self.attempts(buf, offset, true)
    }

    /// Reads until no change of the file came in between, other than growth after the first time. Kept out of line, or
    /// a read of one resident block, which does not come here, saves and restores registers for it.
    #[cold]
    #[inline(never)]
    fn attempts(&self, buf: &mut [u8], offset: u64, mut fresh: bool) -> io::Result<usize> {
        // Bytes that are kept, and the number of the version since which the file has only grown.
        let (mut done, mut since) = (0, 0);
        let (mut restarts, mut stalls) = (0, 0);
        while restarts < RESTARTS_MAX && stalls < RESTARTS_MAX {
            let version = self.version_at_rest();
            if done == 0 {
                since = version.0;
            }
            let at = offset.saturating_add(done as u64);
            let (taken, is_whole) = match self.attempt(&mut buf[done..], at, fresh, version) {
                Err(_) if done > 0 => return Ok(done),
                attempt => attempt?,
            };
            fresh = false;
            if is_whole && self.version.count() == since {
                return Ok(done + taken);
            }
            if restarts == 0 || !self.version.only_grew_since(since) {
                (done, restarts) = (0, restarts + 1);
                continue;
            }
            done += taken;
            if is_whole {
                return Ok(done);
            }
            stalls = if taken > 0 { 0 } else { stalls + 1 };
        }
        if done > 0 {
            return Ok(done);
        }
        Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "the file keeps changing while it is read",
        ))
    }

    /// As [`Reader::read_at`], of bytes that [`Reader::when_resident`] was asked for before: they
    /// are counted already.
    ///
    /// # Errors
    /// The same.
    pub fn read_awaited_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.version.look_is_due() {
            self.look()?;
        }
        self.attempts(buf, offset, false)
    }

    /// Looks at the file now: if it changed, its old blocks are dropped and [`Reader::size`] is its
    /// new size. True if it had changed.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn look(&self) -> io::Result<bool> {
        self.engine_host
            .look(self.file, &self.version, &*self.source)
    }

    /// The whole of a read inside one resident block. Most small reads are, and this does for them
    /// what [`Reader::attempt`] does for any, without its bookkeeping; it counts nothing unless it
    /// succeeds.
    #[inline]
    fn take_single(&self, buf: &mut [u8], offset: u64) -> Option<usize> {
        let engine_host = &*self.engine_host;
        let version = self.version.count();
        let last = (buf.len() as u64).checked_sub(1)?.checked_add(offset)?;
        let (first, shift) = (offset >> engine_host.block_shift, engine_host.block_shift);
        if first != last >> shift
            || last >= self.version.bytes()
            || engine_host.sees_every_read
            || !version.is_multiple_of(2)
        {
            return None;
        }
        let block = Block(first as u32);
        let from = (offset - (first << shift)) as usize;
        let position = &*self.position;
        let mut hits = Hits::new(engine_host, self.file, self.id, position.guess());
        if !hits.take_single(block, position.previous(), from, buf) {
            return None;
        }
        position.came_to(Some(block), hits.guess, 1);
        (self.version.count() == version).then_some(buf.len())
    }

    /// The number of the file's version with its size, once no change is under way.
    fn version_at_rest(&self) -> (u64, u64) {
        loop {
            if let Some(found) = self.version.at_rest() {
                return found;
            }
            self.engine_host.wait_for_changes();
        }
    }

    /// Reads once, as much of the version of this number and size as there is; how many bytes, and whether those are
    /// all. Its caller compares the number.
    fn attempt(
        &self,
        buf: &mut [u8],
        offset: u64,
        fresh: bool,
        (version, bytes): (u64, u64),
    ) -> io::Result<(usize, bool)> {
        let shift = self.engine_host.block_shift;
        let previous = self.position.previous();
        let Some(mut span) = Span::new(&mut *buf, offset, bytes, shift, previous) else {
            return match !buf.is_empty() && self.is_past_numbers(offset) {
                true => Err(self.error(libc::EFBIG)),
                false => Ok((0, true)),
            };
        };
        let is_whole = self.fill(&mut span, version, fresh);
        self.position
            .came_to(span.previous, self.position.guess(), 0);
        let is_whole = is_whole?;
        if is_whole && self.version.look_is_due() {
            self.look()?;
        }
        Ok((span.taken(), is_whole))
    }

    /// Takes blocks until the span or the file ends; false if the file changed meanwhile.
    fn fill(&self, span: &mut Span<'_>, version: u64, fresh: bool) -> io::Result<bool> {
        while span.next_segment() {
            match self.fill_segment(span, version, fresh)? {
                Filled::Whole => {}
                Filled::ToEnd => return Ok(true),
                Filled::Changed => return Ok(false),
            }
        }
        Ok(true)
    }

    fn fill_segment(
        &self,
        span: &mut Span<'_>,
        version: u64,
        mut fresh: bool,
    ) -> io::Result<Filled> {
        loop {
            if !self.engine_host.sees_every_read {
                self.take_hits(span, fresh);
            }
            if span.left == 0 {
                return Ok(Filled::Whole);
            }
            match self.ask(span, version, fresh)? {
                Answer::Changed => return Ok(Filled::Changed),
                Answer::Served(read, Served::Blocks { count }) => {
                    let taken = self.take_served(span, count, version);
                    self.engine_host.queue(DeferredInput::Release(read));
                    if !taken {
                        return Ok(Filled::Changed);
                    }
                }
                Answer::Served(..) if self.version.count() != version => {
                    return Ok(Filled::Changed);
                }
                // A file that was cut ends before the bytes that were asked for.
                Answer::Served(_, Served::Failed { .. }) if self.has_changed() => {
                    return Ok(Filled::Changed);
                }
                Answer::Served(_, Served::Failed { error }) if span.taken() == 0 => {
                    return Err(self.error(error.0));
                }
                Answer::Served(..) => return Ok(Filled::ToEnd),
            }
            fresh = false;
        }
    }

    fn take_hits(&self, span: &mut Span<'_>, fresh: bool) {
        let mut hits = Hits::new(&self.engine_host, self.file, self.id, self.position.guess());
        let taken = hits.take(span);
        let counted = if fresh { taken } else { 0 };
        self.position.came_to(span.previous, hits.guess, counted);
    }

    fn ask(&self, span: &Span<'_>, version: u64, fresh: bool) -> io::Result<Answer> {
        if self.engine_host.uses_cpu_time {
            self.position.owner.is_this_thread();
        }
        self.engine_host.read(&Ask {
            reader: self.id,
            file: self.file,
            version,
            previous: span.before,
            head: span.head,
            first: span.at,
            count: span.left,
            fresh,
        })
    }

    /// The error of a fetch, as its reader sees it.
    fn error(&self, code: i32) -> io::Error {
        match self.source.key() {
            Key::Object { name, .. } => ReadError::named(name, code),
            Key::Inode(..) | Key::Generated { .. } => io::Error::from_raw_os_error(code),
        }
    }

    /// Whether a look now finds another version; not if it fails, because the read has failed already.
    fn has_changed(&self) -> bool {
        self.version.can_change() && self.look().unwrap_or(false)
    }

    /// Copies blocks the engine pinned for this read; false if the file changed meanwhile.
    fn take_served(&self, span: &mut Span<'_>, count: u32, version: u64) -> bool {
        for _ in 0..count.min(span.left) {
            let Some(frame) = self.find_served(span.at, version) else {
                return false;
            };
            let (from, into) = span.piece();
            // SAFETY: the frame was found under the version this read was served in, so it is the
            // one the engine pinned for it, and it stays as it is until the read is released.
            unsafe { self.engine_host.arena.copy_out(frame, from, into) };
            span.advance();
        }
        true
    }

    /// The frame of a pinned block. A lookup beside a change of the table may miss it, so it is
    /// tried again, at last with the table at rest.
    fn find_served(&self, block: Block, version: u64) -> Option<forerun_core::table::Frame> {
        let table = &self.engine_host.table;
        let found = (0..LOOKS_MAX).find_map(|_| {
            std::hint::spin_loop();
            table.find(self.file, block).map(|found| found.frame)
        });
        let frame = found.or_else(|| self.engine_host.find_exactly(self.file, block));
        // The number of the version changes before its blocks go, so a frame found before that
        // is ours, whatever happens from here on.
        frame.filter(|_| self.version.count() == version)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.engine_host.close(self.id, self.file);
    }
}
