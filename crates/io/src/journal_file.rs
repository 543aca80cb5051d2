//! Where the lines of the journal go.
//!
//! The engine's lock holder only gathers lines; they are fetched and written here, under a lock of
//! their own, taken before the engine's so that chunks cannot change places. The first error ends
//! the writing and is reported when the journal is closed.

use crate::sync::Mutex;
use std::io::{self, Write};

/// See the [module](self).
pub(crate) struct JournalFile(Mutex<State>);

struct State {
    write: Option<Box<dyn Write + Send>>,
    failed: Option<io::Error>,
}

impl JournalFile {
    pub(crate) fn new(write: Option<Box<dyn Write + Send>>) -> Self {
        Self(Mutex::new(State {
            write,
            failed: None,
        }))
    }

    /// Writes the lines there are by now.
    pub(crate) fn write(&self, lines: impl FnOnce() -> String) {
        let mut state = self.0.lock();
        let lines = lines();
        let State {
            write: Some(write),
            failed,
        } = &mut *state
        else {
            return;
        };
        if failed.is_none() {
            *failed = write.write_all(lines.as_bytes()).err();
        }
    }

    /// Closes the journal; the first error of any line.
    pub(crate) fn close(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        match (state.failed.take(), state.write.take()) {
            (Some(error), _) => Err(error),
            (None, Some(mut write)) => write.flush(),
            (None, None) => Ok(()),
        }
    }
}
