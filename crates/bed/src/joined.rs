//! Ends of threads: a panic of one is a failure of the run, as any other.

use std::thread;

use crate::failure::Failure;

/// The result of a thread, by its `join`.
pub(crate) fn joined<T>(ended: thread::Result<Result<T, Failure>>) -> Result<T, Failure> {
    let panicked = |_| Err(Failure::Run("a thread panicked".into()));
    ended.unwrap_or_else(panicked)
}
