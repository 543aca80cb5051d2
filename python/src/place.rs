//! The position of a file, which threads that share the file use in turns: each gets other bytes.
//!
//! ```text
//! thread 1   turn at 0 -- reads 0..4096 -- set 4096, next
//! thread 2      waits ------------------------ turn at 4096 -- reads 4096..8192
//! ```
//!
//! Its lock is held with the interpreter and never across a release of it, so that a child process cannot have
//! it locked; a turn that another process began has ended there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, ThreadId};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::release::{forks, is_main_thread, released};
use crate::waiting::SIGNALS_EVERY;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Place(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    at: u64,
    /// Whose turn it is: a process, by its forks, and a thread.
    turn: Option<(u64, ThreadId)>,
    waiting: Vec<Thread>,
}

/// The turn of this thread, until it is dropped.
pub(crate) struct Turn<'a>(&'a Place);

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position, as of now.
    pub(crate) fn at(&self) -> u64 {
        self.state().at
    }

    /// Waits for this thread's turn.
    ///
    /// # Errors
    /// The exception of a signal's handler; the thread has the turn already, because a handler reads the file that it
    /// interrupted.
    pub(crate) fn turn(&self, py: Python<'_>) -> PyResult<Turn<'_>> {
        loop {
            // A handler of a signal may have forked: in the child no thread has it.
            let this = (forks(), thread::current().id());
            {
                let mut state = self.state();
                match state.turn.filter(|(forks, _)| *forks == this.0) {
                    None => {
                        state.turn = Some(this);
                        return Ok(Turn(self));
                    }
                    Some(turn) if turn == this => break,
                    Some(_) => state.waiting.push(thread::current()),
                }
            }
            released(py, || thread::park_timeout(SIGNALS_EVERY))?;
            if is_main_thread() {
                py.check_signals()?;
            }
        }
        Err(PyRuntimeError::new_err(
            "reentrant call inside a read of the same file",
        ))
    }
}

impl Turn<'_> {
    pub(crate) fn at(&self) -> u64 {
        self.0.at()
    }

    pub(crate) fn set(&self, at: u64) {
        self.0.state().at = at;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.state();
            state.turn = None;
            std::mem::take(&mut state.waiting)
        };
        waiting.iter().for_each(Thread::unpark);
    }
}
