//! A read in two steps, for callers that must not wait with a buffer in their hands: first have the
//! bytes fetched, then copy them.
//!
//! ```text
//! look_if_due --> is_resident? --yes--> read_resident_at
//!                   | no                 ^   | given up meanwhile: once more
//!                   v                    |   v
//!             when_resident -- there --> +   when_resident
//! ```
//!
//! Only `look_if_due` and `read_awaited_at` look at the file, which of a [served](crate::served) one may
//! take for ever; the others do not, and wait for nothing.

use std::io;
use std::sync::atomic::Ordering;

use forerun_core::protocol::Wants;
use forerun_core::{Block, ErrorCode, Served};

use super::Reader;
use crate::engine_host::Ask;
use crate::foreign::guarded;
use crate::hit::{Hits, NOT_HERE};
use crate::segments::Segments;
use crate::span::Span;
use crate::wait::Call;

impl Reader {
    /// Has these bytes fetched as a read would, and calls with true once they are there: no buffer
    /// is needed before. With false where only a read can tell the error. They may be given up
    /// again between the call and the read, which then waits for them: the first of more than
    /// [`resident_max`](Self::resident_max) perhaps before the last are there.
    ///
    /// The call comes once, on whatever thread brings the last of them, perhaps on this one before
    /// this returns; it must be short and may not come back in here. A panic in it ends in it. A reader that is dropped before
    /// drops its calls, which then never come. `fresh` says that these bytes are asked for the first time.
    pub fn when_resident(
        &self,
        offset: u64,
        bytes: usize,
        fresh: bool,
        call: impl FnOnce(bool) + Send + 'static,
    ) {
        let call = move |there: io::Result<()>| call(there.is_ok());
        self.when_resident_or_failed(offset, bytes, fresh, call);
    }

    /// The same, and calls with the error of the source if a block of these bytes cannot be had. With `EAGAIN` where
    /// only a read can tell: the file has another version, or the driver ends.
    pub fn when_resident_or_failed(
        &self,
        offset: u64,
        bytes: usize,
        fresh: bool,
        call: impl FnOnce(io::Result<()>) + Send + 'static,
    ) {
        self.await_blocks(offset, bytes, fresh, Wants::Presence, call);
    }

    /// The same in the gaps that other reads leave: the bytes are fetched when no program waits for their device,
    /// without a window ahead. On a device that is never idle the call does not come. For a scrubber: the example
    /// of that name.
    pub fn when_resident_idle(
        &self,
        offset: u64,
        bytes: usize,
        call: impl FnOnce(bool) + Send + 'static,
    ) {
        let call = move |there: io::Result<()>| call(there.is_ok());
        self.await_blocks(offset, bytes, true, Wants::Idle, call);
    }

    fn await_blocks(
        &self,
        offset: u64,
        bytes: usize,
        fresh: bool,
        wants: Wants,
        call: impl FnOnce(io::Result<()>) + Send + 'static,
    ) {
        let call = |served| {
            let there = match served {
                Served::End => Ok(()),
                Served::Failed { error } => Err(io::Error::from_raw_os_error(error.0)),
                Served::Blocks { .. } => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            };
            guarded(|| call(there));
        };
        if let Some(segments) = self.segments(offset, bytes, fresh, wants, Box::new(call))
            && segments.go_on()
        {
            self.engine_host.try_write_journal();
        }
    }

    /// The segments of these bytes; of none that lie past the end, which are there at once.
    fn segments(
        &self,
        offset: u64,
        bytes: usize,
        fresh: bool,
        wants: Wants,
        call: Call,
    ) -> Option<Box<Segments>> {
        // Before the size: one of a later version is refused then.
        let version = self.version.count();
        let end = offset.saturating_add(bytes as u64);
        let end = end.min(self.version.bytes());
        let shift = self.engine_host.block_shift;
        let first = u32::try_from(offset >> shift);
        let (Ok(first), true) = (first, offset < end) else {
            let error = ErrorCode(libc::EFBIG);
            call(match self.is_past_numbers(offset) {
                true => Served::Failed { error },
                false => Served::End,
            });
            return None;
        };
        let count = end.div_ceil(1 << shift) - u64::from(first);
        let whole = Ask {
            reader: self.id,
            file: self.file,
            version,
            previous: self.position.previous(),
            head: 0,
            first: Block(first),
            count: u32::try_from(count).unwrap_or(u32::MAX),
            fresh,
        };
        let (engine_host, position) = (self.engine_host.clone(), self.position.clone());
        Some(Segments::new(engine_host, position, whole, wants, call))
    }

    /// Most bytes that are sure to be resident at once, if other readers leave them: those of a quarter of the blocks
    /// that the memory's limit allows.
    #[must_use]
    pub fn resident_max(&self) -> usize {
        let frames = self.engine_host.frames.load(Ordering::Relaxed);
        frames as usize / 4 * self.engine_host.arena.block_bytes()
    }

    /// Whether a read of these bytes would find all of them in memory and none that the engine has to
    /// see used, so that it would not have to wait. It may have to all the same if they are given up
    /// in between.
    #[must_use]
    pub fn is_resident(&self, offset: u64, bytes: usize) -> bool {
        let end = offset.saturating_add(bytes as u64);
        let end = end.min(self.version.bytes());
        let shift = self.engine_host.block_shift;
        let here = |block| {
            let found = self.engine_host.table.find(self.file, Block(block));
            found.is_some_and(|found| found.flags & NOT_HERE == 0)
        };
        let blocks = (offset >> shift)..end.div_ceil(1 << shift);
        offset >= end || { blocks }.all(|block| u32::try_from(block).is_ok_and(here))
    }

    /// Looks as a read would: if that is due. A read by [`Reader::read_resident_at`] after this is as good as any.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn look_if_due(&self) -> io::Result<()> {
        if self.look_is_due() {
            self.look()?;
        }
        Ok(())
    }

    /// Whether a look is due. True for one caller in an interval, which then [looks](Reader::look): on a thread that
    /// may wait.
    #[must_use]
    pub fn look_is_due(&self) -> bool {
        self.version.look_is_due()
    }

    /// As [`Reader::read_awaited_at`], of resident blocks: it waits for nothing and looks at
    /// nothing. None if a byte is not there: then nothing is counted, and the reader stands where it
    /// stood, because the same bytes are asked for again. The blocks before count as accessed twice then, so
    /// [`Reader::is_resident`] is asked before.
    #[must_use]
    pub fn read_resident_at(&self, buf: &mut [u8], offset: u64, fresh: bool) -> Option<usize> {
        let version = self.version.count();
        if !version.is_multiple_of(2) || (fresh && self.engine_host.sees_every_read) {
            return None;
        }
        let (bytes, shift) = (self.version.bytes(), self.engine_host.block_shift);
        let Some(mut span) = Span::new(buf, offset, bytes, shift, self.position.previous()) else {
            let is_end = self.version.count() == version && !self.is_past_numbers(offset);
            return is_end.then_some(0);
        };
        let (mut guess, mut taken) = (self.position.guess(), 0);
        while span.next_segment() {
            let mut hits = Hits::new(&self.engine_host, self.file, self.id, guess);
            taken += hits.take(&mut span);
            guess = hits.guess;
            if span.left > 0 {
                return None;
            }
        }
        if self.version.count() != version {
            return None;
        }
        let counted = if fresh { taken } else { 0 };
        self.position.came_to(span.previous, guess, counted);
        Some(span.taken())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use forerun_core::{Bytes, preset};

    use super::*;
    use crate::{Config, Driver};

    #[test]
    fn all_hits_between_two_reports_are_counted() {
        let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
        let driver = Driver::new(Config::new(settings)).unwrap();
        let reader = driver.open_generated(1, 1, 1 << 20).unwrap();
        let most = u64::from(u32::MAX);
        let mut all = 0;
        for hits in [most, most + 1, 5 * most] {
            reader.position.hits.store(hits, Ordering::Relaxed);
            all += hits;
            assert_eq!(driver.ledger_as_reported().hits, all - hits);
            let ledger = driver.ledger();
            assert_eq!((ledger.hits, ledger.refused_inputs), (all, 0));
        }
    }

    #[test]
    fn segments_of_a_reader_that_closed_are_not_asked_for_by_the_next_of_its_number() {
        let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
        let driver = Driver::new(Config::new(settings)).unwrap();
        let open = |index| driver.open_generated(1, index, 1 << 30).unwrap();
        for bytes in [4096, 100 << 20] {
            let reader = open(1);
            let (tell, told) = channel();
            let call = move |_| tell.send(()).unwrap();
            let segments = reader.segments(0, bytes, true, Wants::Presence, Box::new(call));
            let closed = reader.id();
            drop(reader);
            let next = open(2);
            assert_eq!(next.id(), closed);
            segments.unwrap().go_on();
            assert!(told.recv().is_err(), "the call is dropped");
        }
        assert_eq!(driver.ledger().reads, 0);
    }
}
