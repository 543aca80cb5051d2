//! Forks. A child process has a copy of its parent's engine, and none of the threads that complete
//! its fetches: a read would wait for ever, and so would the drop, which waits for requests in
//! flight and may find the engine's lock held by a thread that was not copied.
//!
//! A value of [`OfThisProcess`] is therefore unreachable in a child, and its memory is left as it
//! is there. The owner makes a new one: a file opens its path again, an engine starts again with
//! its settings.
//!
//! ```text
//! parent  engine made (forks = 0)   get -> Some
//! child   after_fork (forks = 1)    get -> None, drop -> forgotten; new engine (forks = 1)
//! ```

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

/// Forks between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Tells the module that this process is a new child; for `os.register_at_fork`.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct OfThisProcess<T> {
    value: Option<T>,
    forks: u64,
}

impl<T> OfThisProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Some(value),
            forks: FORKS.load(Ordering::Relaxed),
        }
    }

    /// The value, in the process that made it.
    pub(crate) fn get(&self) -> Option<&T> {
        let is_ours = self.forks == FORKS.load(Ordering::Relaxed);
        self.value.as_ref().filter(|_| is_ours)
    }
}

impl<T> Drop for OfThisProcess<T> {
    fn drop(&mut self) {
        if self.get().is_none() {
            mem::forget(self.value.take());
        }
    }
}
