//! The class `Turn`: a lock of a target, which bears one call at a time.
//!
//! Problem: a lock of Python (`threading.RLock`) in a class of Python stays locked where an interrupt comes between the
//! lock and the `try` around it. A `with` looks at no signal between `__enter__` of a builtin and its body, and this one
//! looks only while it does not have the turn.
//!
//! The thread that has a turn may collect garbage meanwhile, and wait for a lock of the reader (h5py's): a wait
//! for such a thread ends with an error. A thread that has the turn has it again; in a forked child it is free.
//!
//! The lock of the state is held with the interpreter, and never across a release of it: see [`crate`].

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

/// A lock of a target.
#[pyclass(frozen, weakref, module = "forerun")]
pub(crate) struct Turn {
    state: Mutex<State>,
    /// How long a wait for a thread that collects may take.
    collection_max: Duration,
}

#[derive(Default)]
struct State {
    /// Whose turn it is: a process and a thread of it.
    holder: Option<(u32, u32)>,
    /// How often it has been taken by that thread.
    depth: u32,
    waiting: Vec<Thread>,
}

/// This thread, in no other process.
fn this() -> (u32, u32) {
    (process::id(), this_thread())
}

impl Turn {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn, unless another thread has it: that one.
    fn take(&self) -> Option<u32> {
        let this = this();
        let mut state = self.state();
        match state.holder.filter(|(process, _)| *process == this.0) {
            Some(holder) if holder != this => {
                let thread = thread::current();
                if state.waiting.iter().all(|other| other.id() != thread.id()) {
                    state.waiting.push(thread);
                }
                return Some(holder.1);
            }
            Some(_) => state.depth += 1,
            None => (state.holder, state.depth) = (Some(this), 1),
        }
        None
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

    /// Waits for the turn.
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
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
            released(py, || thread::park_timeout(SIGNALS_EVERY))?;
            if is_main_thread() {
                py.check_signals()?;
            }
        }
        Ok(())
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyTuple>) {
        let waiting = {
            let mut state = self.state();
            // A forked child has not what its parent took.
            if state.holder != Some(this()) {
                return;
            }
            state.depth -= 1;
            if state.depth > 0 {
                return;
            }
            state.holder = None;
            std::mem::take(&mut state.waiting)
        };
        waiting.iter().for_each(Thread::unpark);
    }
}
