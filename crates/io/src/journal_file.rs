//! Where the lines of the journal go.
//!
//! The engine's lock holder only gathers lines; they are fetched and written here, under a lock of
//! their own, taken before the engine's so that chunks cannot change places. A thread of a reader that finds it taken
//! goes on, so that a slow writer holds up one at most. The first error ends
//! the writing and is reported when the journal is closed.

use std::io::{self, Write};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::foreign::guarded;
use crate::sync::{Mutex, MutexGuard};

/// See the [module](self).
pub(crate) struct JournalFile {
    state: Mutex<State>,
    /// The number of the first error; zero if there was none. Read without the lock, which is held
    /// while lines are written, for as long as that takes.
    failed: AtomicI32,
}

struct State {
    write: Option<Box<dyn Write + Send>>,
    failed: Option<io::Error>,
}

impl JournalFile {
    pub(crate) fn new(write: Option<Box<dyn Write + Send>>) -> Self {
        let state = State {
            write,
            failed: None,
        };
        Self {
            state: Mutex::new(state),
            failed: AtomicI32::new(0),
        }
    }

    /// The error that ended the writing, if one did.
    pub(crate) fn error(&self) -> Option<io::Error> {
        let number = self.failed.load(Ordering::Relaxed);
        (number != 0).then(|| io::Error::from_raw_os_error(number))
    }

    /// Lines without room, behind those that are being written, are lost.
    pub(crate) fn ends_behind(&self, bytes: usize) {
        tracing::error!("the journal ends here: {bytes} bytes wait for its writer");
        let (none, relaxed) = (0, Ordering::Relaxed);
        let _ = self
            .failed
            .compare_exchange(none, libc::ETIMEDOUT, relaxed, relaxed);
    }

    /// Writes the lines there are by now.
    pub(crate) fn write(&self, lines: impl FnOnce() -> String) {
        self.write_under(self.state.lock(), lines);
    }

    /// The same, unless another thread writes.
    pub(crate) fn try_write(&self, lines: impl FnOnce() -> String) {
        if let Some(state) = self.state.try_lock() {
            self.write_under(state, lines);
        }
    }

    fn write_under(&self, mut state: MutexGuard<'_, State>, lines: impl FnOnce() -> String) {
        let lines = lines();
        let State {
            write: Some(write),
            failed,
        } = &mut *state
        else {
            return;
        };
        if failed.is_none()
            && let Err(error) = written(&mut **write, &lines)
        {
            tracing::error!("the journal ends here: {error}");
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            self.failed.store(number, Ordering::Relaxed);
            *failed = Some(error);
        }
    }

    /// Closes the journal; the first error of any line, once. Lines that were written before others were lost are
    /// flushed.
    pub(crate) fn close(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let number = self.failed.swap(0, Ordering::Relaxed);
        let flushed = match (state.failed.take(), state.write.take()) {
            (Some(error), _) => return Err(error),
            (None, Some(mut write)) => write.flush(),
            (None, None) => Ok(()),
        };
        match number {
            0 => flushed,
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }
}

/// Writes lines to a writer that may panic, on whatever thread has gathered enough of them.
fn written(write: &mut dyn Write, lines: &str) -> io::Result<()> {
    let result = guarded(|| write.write_all(lines.as_bytes()));
    result.unwrap_or_else(|| Err(io::Error::other("the writer panicked")))
}
