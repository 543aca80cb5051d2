//! Forks. A child process has a copy of its parent's engine, and none of the threads that complete
//! its fetches: a read would wait for ever, and so would the drop, which waits for requests in
//! flight and may find the engine's lock held by a thread that was not copied.
//!
//! A value of [`OfThisProcess`] is therefore unreachable in a child, and its memory is left as it
//! is there. The owner makes a new one: a file opens its path again, an engine starts again with
//! its settings.
//!
//! ```text
//! parent  engine made by process 41   get -> Some
//! child   process 42                  get -> None, drop -> forgotten; new engine by process 42
//! ```
//!
//! The process is asked for its number each time (0.1 us). A hook of `os.register_at_fork` would be
//! late: hooks that were registered before, those of `threading` among them, collect garbage.

use std::{mem, process};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct OfThisProcess<T> {
    value: Option<T>,
    process: u32,
}

impl<T> OfThisProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Some(value),
            process: process::id(),
        }
    }

    /// The value, in the process that made it.
    pub(crate) fn get(&self) -> Option<&T> {
        let is_ours = self.process == process::id();
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
