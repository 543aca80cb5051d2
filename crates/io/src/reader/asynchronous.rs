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
//! A poll may make one `fstat(2)` in 100 ms ([`Looks`](crate::Looks)), and reads by itself where a block
//! cannot be had, to learn the error.

use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_io::{AsyncRead, AsyncSeek};

use super::Reader;
use crate::sync::Mutex;

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
}

impl AsyncReader {
    /// The same open file.
    #[must_use]
    pub fn new(reader: Reader) -> Self {
        let asked = Arc::default();
        Self { reader, asked }
    }

    /// The reader inside.
    #[must_use]
    pub fn get_ref(&self) -> &Reader {
        &self.reader
    }

    fn ask(&self, bytes: usize, fresh: bool, task: &Context<'_>) {
        *self.asked.lock() = Asked::Waiting(task.waker().clone());
        let asked = self.asked.clone();
        let call = move |are_there| {
            let before = std::mem::replace(&mut *asked.lock(), Asked::Answered { are_there });
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
        let cursor = self.reader.cursor;
        let mut asked = self.asked.lock();
        if let Asked::Waiting(waker) = &mut *asked {
            waker.clone_from(task.waker());
            return Poll::Pending;
        }
        let before = std::mem::take(&mut *asked);
        drop(asked);
        let read = match before {
            Asked::Answered { are_there: false } => Some(self.reader.read_awaited_at(buf, cursor)?),
            Asked::Answered { are_there: true } => self.reader.read_resident_at(buf, cursor, false),
            Asked::Nothing | Asked::Waiting(_) => {
                self.reader.look_if_due()?;
                self.reader.read_resident_at(buf, cursor, true)
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
        Poll::Ready(io::Seek::seek(&mut self.reader, to))
    }
}
