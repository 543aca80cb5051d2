//! A reader for asynchronous programs, on whatever executor: `futures_io::AsyncRead` and `AsyncSeek`.
//!
//! Bytes that are resident are copied at once. For others the engine is asked, and the task is woken by the
//! thread that brings the last of them; no thread waits, and no buffer is held meanwhile.
//!
//! ```text
//! poll_read --> resident? --yes--> copied: Ready
//!                  | no
//!                  v
//!          engine asked: Pending .. last block arrives: wake --> poll_read
//! ```
//!
//! A read takes at most [`PIECE_MAX`] bytes and [`Reader::resident_max`]: more might never be resident at
//! once. A poll may make one `fstat(2)` in 100 ms ([`Looks`](crate::Looks)), and reads by itself where a block
//! cannot be had, to learn the error, or was given up [`LOST_MAX`] times before it was copied.

use std::io::{self, SeekFrom};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_io::{AsyncRead, AsyncSeek};

use super::Reader;
use crate::sync::Mutex;

/// Most bytes of one read: several requests of a fast device, and less than the blocks that the engine takes at once.
const PIECE_MAX: usize = 1 << 20;

/// How often bytes that came may be given up before they are copied: others need the memory more.
const LOST_MAX: u32 = 4;

/// State of the question to the engine.
#[derive(Debug, Default)]
enum Asked {
    /// There is none.
    #[default]
    Nothing,
    /// No answer yet; the task to wake.
    Waiting(Waker),
    /// The bytes are there, or only a read can tell the error.
    Answered { are_there: bool },
}

/// See the [module](self).
///
/// # Examples
/// ```
/// use forerun_core::{Bytes, preset};
/// use forerun_io::reader::asynchronous::AsyncReader;
/// use forerun_io::{Config, Driver};
/// use futures::AsyncReadExt;
///
/// let driver = Driver::new(Config::new(preset::default().settings(Bytes(1 << 20))?))?;
/// let mut reader = AsyncReader::new(driver.open_generated(1, 0, 100_000)?);
/// let mut bytes = Vec::new();
/// futures::executor::block_on(reader.read_to_end(&mut bytes))?;
/// assert_eq!(bytes.len(), 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AsyncReader {
    reader: Reader,
    asked: Arc<Mutex<Asked>>,
    /// How often the engine was asked again for the bytes at the cursor.
    lost: u32,
}

impl AsyncReader {
    /// The same open file.
    #[must_use]
    pub fn new(reader: Reader) -> Self {
        let asked = Arc::default();
        let lost = 0;
        Self {
            reader,
            asked,
            lost,
        }
    }

    /// The reader inside.
    #[must_use]
    pub fn get_ref(&self) -> &Reader {
        &self.reader
    }

    /// Whether the answer is still to come; then it wakes this task. No waker is made or dropped under the lock: that is
    /// the executor's code.
    fn goes_on_waiting(&self, task: &Context<'_>) -> bool {
        if !matches!(*self.asked.lock(), Asked::Waiting(_)) {
            return false;
        }
        let mut waker = task.waker().clone();
        let mut asked = self.asked.lock();
        let is_waiting = match &mut *asked {
            Asked::Waiting(before) => {
                mem::swap(before, &mut waker);
                true
            }
            Asked::Nothing | Asked::Answered { .. } => false,
        };
        drop(asked);
        drop(waker);
        is_waiting
    }

    fn ask(&self, bytes: usize, fresh: bool, task: &Context<'_>) {
        let waker = task.waker().clone();
        *self.asked.lock() = Asked::Waiting(waker);
        let asked = self.asked.clone();
        let call = move |are_there| {
            let before = mem::replace(&mut *asked.lock(), Asked::Answered { are_there });
            if let Asked::Waiting(waker) = before {
                waker.wake();
            }
        };
        self.reader
            .when_resident(self.reader.cursor, bytes, fresh, call);
    }
}

impl AsyncRead for AsyncReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.goes_on_waiting(task) {
            return Poll::Pending;
        }
        let cursor = self.reader.cursor;
        let piece_bytes = buf.len().min(self.reader.resident_max()).min(PIECE_MAX);
        let buf = &mut buf[..piece_bytes];
        let before = mem::take(&mut *self.asked.lock());
        let read = match before {
            Asked::Answered { are_there } if !are_there || self.lost == LOST_MAX => {
                self.lost = 0;
                Some(self.reader.read_awaited_at(buf, cursor)?)
            }
            Asked::Answered { .. } => {
                self.lost += 1;
                self.reader.read_resident_at(buf, cursor, false)
            }
            Asked::Nothing | Asked::Waiting(_) => {
                self.lost = 0;
                self.reader.look_if_due()?;
                let is_there = self.reader.is_resident(cursor, buf.len());
                let read = is_there.then(|| self.reader.read_resident_at(buf, cursor, true));
                read.flatten()
            }
        };
        let Some(read) = read else {
            let fresh = matches!(before, Asked::Nothing);
            self.ask(buf.len(), fresh, task);
            return Poll::Pending;
        };
        self.reader.cursor += read as u64;
        Poll::Ready(Ok(read))
    }
}

impl AsyncSeek for AsyncReader {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let before = self.reader.cursor;
        let to = io::Seek::seek(&mut self.reader, to)?;
        if to != before {
            // A read that was begun and let go of asked for the bytes there: its answer is none for those here.
            self.asked = Arc::default();
            self.lost = 0;
        }
        Poll::Ready(Ok(to))
    }
}
