//! An open file: the reader that owns its streams, and counts of its reads.
//!
//! One for each `open(2)` of a program, made and closed by the [file system](super::mounted). One in
//! [passthrough](crate::fs::passthrough) has a reader only once the kernel asks for bytes of it.
//!
//! The [`Reader`] is the owner of its prefetched blocks: when the program closes the file or ends,
//! in any way, the kernel releases the file, the reader is dropped, and the engine frees blocks
//! that were prefetched for it and not read. A child that inherited the file still reads it, and
//! keeps it alive: so the release is a better signal than the end of a process (a pidfd). Processor
//! time, if it is requested, is that of the thread of the last request ([`Reader::belongs_to`]).

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use forerun_io::Reader;
use rustix::io::Errno;

use crate::fs::beneath;
use crate::fs::ends::Ends;
use crate::fs::nodes::Node;
use crate::lanes::LaneOf;

/// Reads in a row that are answered `EINTR`, most: each costs a fifth of a millisecond at least, and the pages
/// that they ask for are dropped by a thread that may have to wait for a processor.
const REFUSED_MAX: u32 = 1024;
/// How many were opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// See the [module](self).
#[derive(Debug)]
pub struct OpenFile {
    /// Its number among all that were opened.
    pub number: u64,
    /// Which file.
    pub node: Node,
    /// The thread that opened it, as FUSE tells it.
    pub thread: u32,
    /// Its size when it was opened.
    pub size: u64,
    /// The kernel reads it from the source.
    pub passthrough: bool,
    /// Reads it.
    reader: OnceLock<Reader>,
    /// Lane of calls about it.
    pub lane: LaneOf,
    /// Where the kernel takes it to end; none if its size cannot change.
    ends: Option<Arc<Ends>>,
    /// Reads in a row that were refused because that was in doubt.
    refused: AtomicU32,
    /// Set where a read fails.
    doubted: Option<Arc<AtomicBool>>,
    /// Times the kernel asked for bytes.
    requests: AtomicU64,
    /// Bytes given to the kernel.
    bytes: AtomicU64,
    /// End of the last read.
    at: AtomicU64,
}

impl OpenFile {
    /// A file just opened, of this size; without a reader the kernel reads it.
    #[must_use]
    pub fn new(node: Node, thread: u32, size: u64, reader: Option<Reader>, lane: LaneOf) -> Self {
        if let Some(reader) = &reader {
            reader.belongs_to(thread);
        }
        Self {
            number: OPENED.fetch_add(1, Ordering::Relaxed),
            node,
            thread,
            size,
            passthrough: reader.is_none(),
            reader: reader.map_or_else(OnceLock::new, OnceLock::from),
            lane,
            ends: None,
            refused: AtomicU32::new(0),
            doubted: None,
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            at: AtomicU64::new(0),
        }
    }

    /// The same, of a file whose size may change.
    #[must_use]
    pub fn ending(self, ends: Arc<Ends>) -> Self {
        let ends = Some(ends);
        Self { ends, ..self }
    }

    /// The same, of a file that its opener was told of some time before: this is set where a read fails.
    #[must_use]
    pub fn doubted_by(self, doubted: Arc<AtomicBool>) -> Self {
        let doubted = Some(doubted);
        Self { doubted, ..self }
    }

    /// Where the kernel takes it to end.
    pub fn ends(&self) -> Option<&Ends> {
        self.ends.as_deref()
    }

    /// A read met an end that is in doubt, for good or not. The error to answer: programs try again after
    /// `EINTR`, and a file that changes all the time is not one to try for ever.
    pub fn refuses(&self) -> Errno {
        match self.refused.fetch_add(1, Ordering::Relaxed) < REFUSED_MAX {
            true => Errno::INTR,
            false => Errno::STALE,
        }
    }

    /// A read was answered.
    pub fn answered(&self) {
        if self.refused.load(Ordering::Relaxed) > 0 {
            self.refused.store(0, Ordering::Relaxed);
        }
    }

    /// Its reader, if it has one.
    pub fn reader(&self) -> Option<&Reader> {
        self.reader.get()
    }

    /// It is read by this one from now on, unless it has one.
    pub(super) fn begin_reader(&self, reader: Reader) {
        reader.belongs_to(self.thread);
        // Another request was faster.
        drop(self.reader.set(reader));
    }

    /// A thread asks for bytes: its computing from now on tells whether it comes to the next ones.
    pub fn asked_by(&self, thread: u32) {
        if let Some(reader) = self.reader() {
            reader.belongs_to(thread);
        }
    }

    /// Whether reads of it wait for a server before they enter the engine: they look whether it changed.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let looks = |reader: &Reader| reader.is_served() && reader.may_change();
        self.reader().is_some_and(looks)
    }

    /// Reads all bytes asked for, or those up to the end of the file. If some of them cannot be had
    /// the whole read fails, because the kernel takes a short answer for the end of the file; it
    /// then asks again page by page, and programs get the bytes before the bad one.
    ///
    /// # Errors
    /// Errors of the source.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let reader = self.reader().ok_or(Errno::BADF)?;
        let mut filled = 0;
        while filled < buffer.len() {
            let (rest, at) = (&mut buffer[filled..], offset + filled as u64);
            match reader.read_awaited_at(rest, at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => return Err(self.failed(&error)),
            }
        }
        self.count(offset, filled);
        Ok(filled)
    }

    /// A read of it failed: the number to answer.
    pub fn failed(&self, error: &io::Error) -> Errno {
        if let Some(doubted) = &self.doubted {
            doubted.store(true, Ordering::Relaxed);
        }
        beneath::errno(error)
    }

    /// Copies these bytes as far as the file has them, if all of those are in memory; waits for
    /// nothing. `fresh` says that these bytes were not awaited before ([`Reader::when_resident`]).
    pub fn read_resident(&self, buffer: &mut [u8], offset: u64, fresh: bool) -> Option<usize> {
        let count = self.reader()?.read_resident_at(buffer, offset, fresh)?;
        self.count(offset, count);
        Some(count)
    }

    /// Notes a read that gave this many bytes at this offset.
    fn count(&self, offset: u64, bytes: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.at.store(offset + bytes as u64, Ordering::Relaxed);
    }

    /// Requests, bytes, and where the last one ended.
    #[must_use]
    pub fn counts(&self) -> (u64, u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.requests), load(&self.bytes), load(&self.at))
    }
}
