//! The class `Turn`: a lock of a target, which bears one call at a time.
//!
//! Problem: a lock of Python (`threading.RLock`) in a class of Python stays locked where an interrupt comes between the
//! lock and the `try` around it. Up to Python 3.13 a `with` looks at no signal between `__enter__` of a builtin and its
//! body, and this one looks only while it does not have the turn.
//!
//! Threads have it in the order in which they came: one that gives it back has the interpreter, which the next one
//! waits for, and would take it again and again. One that collects garbage meanwhile may wait for a lock of the
//! reader (h5py's): a wait for such a thread ends with an error. A thread that has the turn has it again; in a forked
//! child it is free.
//!
//! The lock of the state is held with the interpreter, and never across a release of it: see [`crate`].

use std::collections::VecDeque;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::calls::{is_collecting, this_thread};
use crate::fetch::EDEADLK;
use crate::release::{is_main_thread, released};
use crate::waiting::SIGNALS_EVERY;

/// How soon a thread that is not interrupted sees that the one before collects garbage.
const LOOK: Duration = Duration::from_secs(1);

/// A lock of a target.
#[pyclass(frozen, weakref, module = "forerun")]
pub(crate) struct Turn {
    state: Mutex<State>,
    /// How long a wait for a thread that collects may take.
    collection_max: Duration,
}

/// Of this process; that of a parent counts for nothing.
#[derive(Default)]
struct State {
    process: u32,
    /// The thread that has the turn, or had it last.
    holder: u32,
    /// How often it has been taken by that thread: free if not at all.
    depth: u32,
    /// Those that wait for it, with their numbers, the next one first.
    waiting: VecDeque<(u32, Thread)>,
}

impl State {
    fn wake_next(&self) {
        if let Some((_, next)) = self.waiting.front().filter(|_| self.depth == 0) {
            next.unpark();
        }
    }
}

impl Turn {
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let process = process::id();
        if state.process != process {
            *state = State {
                process,
                ..State::default()
            };
        }
        state
    }

    /// Takes the turn, unless other threads come before: the one that has it, or will.
    fn take(&self) -> Option<u32> {
        let this = this_thread();
        let mut state = self.state();
        if state.depth > 0 && state.holder == this {
            state.depth += 1;
            return None;
        }
        let next = state.waiting.front().map_or(this, |(next, _)| *next);
        if state.depth == 0 && next == this {
            state.waiting.pop_front();
            (state.holder, state.depth) = (this, 1);
            return None;
        }
        if state.waiting.iter().all(|(other, _)| *other != this) {
            state.waiting.push_back((this, thread::current()));
        }
        Some(if state.depth > 0 { state.holder } else { next })
    }
}

/// A wait for the turn, whether it ends with that or not.
struct Wait<'a>(&'a Turn);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let this = this_thread();
        let mut state = self.0.state();
        state.waiting.retain(|(thread, _)| *thread != this);
        state.wake_next();
    }
}

#[pymethods]
impl Turn {
    #[new]
    fn new(collection_seconds: f64) -> Self {
        Self {
            state: Mutex::default(),
            collection_max: Duration::try_from_secs_f64(collection_seconds).unwrap_or_default(),
        }
    }

    /// How many threads wait for it.
    #[getter]
    fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Waits for the turn.
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let _wait = Wait(self);
        let mut collects_since = None;
        while let Some(holder) = self.take() {
            collects_since = match is_collecting(holder) {
                true => collects_since.or_else(|| Some(Instant::now())),
                false => None,
            };
            if collects_since.is_some_and(|since| since.elapsed() >= self.collection_max) {
                let why = "the call before waits for a collection of garbage, and that perhaps for this reader";
                return Err(PyOSError::new_err((EDEADLK, why)));
            }
            let is_main = is_main_thread();
            let look = if is_main { SIGNALS_EVERY } else { LOOK };
            released(py, || thread::park_timeout(look))?;
            if is_main {
                py.check_signals()?;
            }
        }
        Ok(())
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyTuple>) {
        let mut state = self.state();
        // A forked child has no turn that its parent took.
        if state.depth > 0 && state.holder == this_thread() {
            state.depth -= 1;
            state.wake_next();
        }
    }
}
