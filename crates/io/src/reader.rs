//! An open file, read at any offset from any thread.
//!
//! [`Reader::read_at`] behaves as `pread(2)`. It goes block by block: as long as blocks are
//! resident it takes them on the [hit path](crate::hit), without a lock; where one is not, the
//! rest of the read enters the engine and waits.
//!
//! All bytes of one read come from one version of the file. Its number is noted when the read
//! begins and compared when it ends; if it changed in between, the read begins again. The file is
//! looked at (`fstat`) when it is opened, whenever a read enters the engine, after each fetch,
//! when a read reaches the end of the file, and else once a second.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forerun_core::{Block, Engine, FileId, ReaderId, Served};

use crate::catalog::Version;
use crate::clock::coarse_seconds;
use crate::control::Later;
use crate::hit::Hits;
use crate::shared::{Answer, Ask, Shared};
use crate::source::Source;

/// A read begins again at most this often; a file that changes faster than it can be read is an
/// error, not a loop.
const RESTARTS_MAX: u32 = 16;

/// How often a block that must be there is looked up before the engine's lock is taken for it.
const LOOKS_MAX: u32 = 64;

/// No block was touched yet: larger than any block number.
const NOWHERE: u64 = u64::MAX;

/// What a reader keeps between reads.
#[derive(Debug)]
pub(crate) struct Position {
    previous: AtomicU64,
    hits: AtomicU64,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            previous: AtomicU64::new(NOWHERE),
            hits: AtomicU64::new(0),
        }
    }
}

impl Position {
    /// The hits not reported to the engine yet; they are from now on.
    pub(crate) fn take_hits(&self) -> u64 {
        self.hits.swap(0, Ordering::Relaxed)
    }

    fn count_hits(&self, hits: u64) {
        if hits > 0 {
            self.hits.fetch_add(hits, Ordering::Relaxed);
        }
    }

    fn previous(&self) -> Option<Block> {
        u32::try_from(self.previous.load(Ordering::Relaxed))
            .ok()
            .map(Block)
    }

    fn set_previous(&self, previous: Option<Block>) {
        let previous = previous.map_or(NOWHERE, |block| u64::from(block.0));
        self.previous.store(previous, Ordering::Relaxed);
    }
}

/// An open file. Closed when dropped.
pub struct Reader {
    shared: Arc<Shared>,
    id: ReaderId,
    file: FileId,
    version: Arc<Version>,
    source: Arc<Source>,
    position: Arc<Position>,
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
    /// The file changed, so what was read is of no use.
    Changed,
}

/// The part of a read that is still to do.
pub(crate) struct Span<'a> {
    /// The bytes to fill, those of the whole read.
    buf: &'a mut [u8],
    /// Where in the file the read begins.
    offset: u64,
    /// Where in the file it ends.
    end: u64,
    block_bytes: u64,
    /// The next block.
    pub(crate) at: Block,
    /// Blocks from there on in this segment, which is as much as the engine takes at once.
    pub(crate) left: u32,
    /// Blocks after this segment.
    beyond: u32,
    /// The block touched last.
    pub(crate) previous: Option<Block>,
}

impl<'a> Span<'a> {
    /// The read of `buf` at `offset`, in a file of `file_bytes`; none if nothing lies there.
    fn new(
        buf: &'a mut [u8],
        offset: u64,
        file_bytes: u64,
        block_bytes: u64,
        previous: Option<Block>,
    ) -> Option<Self> {
        let end = offset.saturating_add(buf.len() as u64).min(file_bytes);
        if offset >= end {
            return None;
        }
        let first = offset / block_bytes;
        let at = Block(u32::try_from(first).ok()?);
        let beyond = u32::try_from(end.div_ceil(block_bytes) - first).unwrap_or(u32::MAX);
        Some(Self {
            buf,
            offset,
            end,
            block_bytes,
            at,
            left: 0,
            beyond,
            previous,
        })
    }

    /// Goes on to the next segment; false if there is none.
    fn next_segment(&mut self) -> bool {
        self.left = self.beyond.min(Engine::READ_MAX);
        self.beyond -= self.left;
        self.left > 0
    }

    /// The bytes of the next block that are wanted: where in the block they begin, and where they
    /// go.
    pub(crate) fn piece(&mut self) -> (usize, &mut [u8]) {
        let block = u64::from(self.at.0) * self.block_bytes;
        let from = self.offset.max(block);
        let to = self.end.min(block + self.block_bytes).max(from);
        let into = (from - self.offset) as usize..(to - self.offset) as usize;
        ((from - block) as usize, &mut self.buf[into])
    }

    /// The next block was taken.
    pub(crate) fn advance(&mut self) {
        self.previous = Some(self.at);
        self.left -= 1;
        self.at = Block(self.at.0.saturating_add(1));
    }

    /// Bytes taken so far.
    fn taken(&self) -> usize {
        let reached = u64::from(self.at.0) * self.block_bytes;
        (reached.clamp(self.offset, self.end) - self.offset) as usize
    }
}

impl Reader {
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: ReaderId,
        file: FileId,
        version: Arc<Version>,
        source: Arc<Source>,
        position: Arc<Position>,
    ) -> Self {
        Self {
            shared,
            id,
            file,
            version,
            source,
            position,
        }
    }

    /// The size of the file, as of the last look at it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.version.bytes()
    }

    /// Reads at an offset, as `pread(2)`: the number of bytes is smaller than the buffer only at
    /// the end of the file, or if a later part of it cannot be read; zero is the end.
    ///
    /// # Errors
    /// The original error of the device, if not one byte could be read before it. `ResourceBusy`
    /// if the file changes all the time. `ESHUTDOWN` after [`crate::Driver::finish`].
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut fresh = true;
        for _ in 0..RESTARTS_MAX {
            if let Some(taken) = self.attempt(buf, offset, fresh)? {
                return Ok(taken);
            }
            fresh = false;
        }
        Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "the file keeps changing while it is read",
        ))
    }

    /// Reads once; nothing if the file changed meanwhile.
    fn attempt(&self, buf: &mut [u8], offset: u64, fresh: bool) -> io::Result<Option<usize>> {
        let version = self.version.count();
        let bytes = self.version.bytes();
        let at_end = offset.saturating_add(buf.len() as u64) > bytes;
        if self.look_is_due(at_end) && self.shared.look(self.file, &self.source)? {
            return Ok(None);
        }
        let block_bytes = self.shared.arena.block_bytes() as u64;
        let previous = self.position.previous();
        let Some(mut span) = Span::new(buf, offset, bytes, block_bytes, previous) else {
            return Ok((self.version.count() == version).then_some(0));
        };
        let done = self.fill(&mut span, version, fresh);
        self.position.set_previous(span.previous);
        Ok((done? && self.version.count() == version).then(|| span.taken()))
    }

    fn look_is_due(&self, at_end: bool) -> bool {
        match &*self.source {
            Source::File(_) => at_end || self.version.check_is_due(coarse_seconds()),
            Source::Generated { .. } => false,
        }
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
            if !self.shared.sees_every_read {
                let hits = Hits::new(&self.shared, self.file, self.id).take(span);
                if fresh {
                    self.position.count_hits(hits);
                }
            }
            if span.left == 0 {
                return Ok(Filled::Whole);
            }
            match self.ask(span, fresh)? {
                Answer::Changed => return Ok(Filled::Changed),
                Answer::Served(read, Served::Blocks { count }) => {
                    let taken = self.take_served(span, count, version);
                    self.shared.queue(Later::Release(read));
                    if !taken {
                        return Ok(Filled::Changed);
                    }
                }
                Answer::Served(..) if self.version.count() != version => {
                    return Ok(Filled::Changed);
                }
                Answer::Served(_, Served::Failed { error }) if span.taken() == 0 => {
                    return Err(io::Error::from_raw_os_error(error.0));
                }
                Answer::Served(..) => return Ok(Filled::ToEnd),
            }
            fresh = false;
        }
    }

    fn ask(&self, span: &Span<'_>, fresh: bool) -> io::Result<Answer> {
        self.shared.read(&Ask {
            reader: self.id,
            file: self.file,
            source: &self.source,
            previous: span.previous,
            first: span.at,
            count: span.left,
            fresh,
        })
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
            unsafe { self.shared.arena.copy_out(frame, from, into) };
            span.advance();
        }
        true
    }

    /// The frame of a pinned block. A lookup beside a change of the table may miss it, so it is
    /// tried again, at last with the table at rest.
    fn find_served(&self, block: Block, version: u64) -> Option<forerun_core::table::Frame> {
        let table = &self.shared.table;
        let found = (0..LOOKS_MAX).find_map(|_| {
            std::hint::spin_loop();
            table.find(self.file, block).map(|found| found.frame)
        });
        let frame = found.or_else(|| self.shared.find_exactly(self.file, block));
        // The number of the version changes before its blocks go, so a frame found before that
        // is ours, whatever happens from here on.
        frame.filter(|_| self.version.count() == version)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.close(self.id, self.file);
    }
}
