//! The interpreter released around a call that may wait, and taken again; also at the end of the process.
//!
//! Problem: a thread that comes back from such a call once the interpreter has ended stops there for ever.
//! That is right for threads of Python, which nothing waits for then; a pool of a C++ library is waited for by
//! the process's last steps, which then never end.
//!
//! Mechanism: threads that are away are counted. The first step of the end ([`begin_the_end`]) lets no thread go
//! away any more but the main one, [`wait_for_the_others`] gives those that are away time to come back.
//!
//! ```text
//! thread of a pool   away --------- back: SystemExit
//! main thread             the end begins, engines halt .. all are back: the interpreter ends
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PySystemExit;
use pyo3::marker::Ungil;
use pyo3::prelude::*;
use rustix::process::getpid;
use rustix::thread::gettid;

/// How many threads are away. Changed with the interpreter held.
static AWAY: AtomicU64 = AtomicU64::new(0);

/// The process is ending.
static ENDING: AtomicBool = AtomicBool::new(false);

/// How many forks led to this process.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Between two looks whether all threads are back.
const LOOK: Duration = Duration::from_millis(1);

/// Whether this is the thread that the process began with, or that forked it.
pub(crate) fn is_main_thread() -> bool {
    gettid() == getpid()
}

/// Whether the end of the process has begun.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Whether this thread must not go on: its process is ending.
pub(crate) fn is_over() -> bool {
    is_ending() && !is_main_thread()
}

/// How a thread ends whose process is ending: without a word, as threads of Python do then.
pub(crate) fn over() -> PyErr {
    PySystemExit::new_err("the process is ending")
}

/// For `os.register_at_fork`, in the child: it has no other threads. Cheaper than its number, which the system is
/// asked for (0.1 us), at each read.
#[pyfunction]
pub(crate) fn forked() {
    AWAY.store(0, Ordering::Relaxed);
    ENDING.store(false, Ordering::Relaxed);
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A number that another process has not, parents and children of this one.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Counts this thread as away, and at its drop as back; the interpreter is held at both.
pub(crate) struct Away(u64);

impl Away {
    pub(crate) fn new(_: Python<'_>) -> Self {
        AWAY.fetch_add(1, Ordering::Relaxed);
        Self(forks())
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        // A handler of a signal may have forked meanwhile.
        if self.0 == forks() {
            AWAY.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Calls without the interpreter.
///
/// # Errors
/// `SystemExit` if the process is ending.
pub(crate) fn released<T: Ungil>(py: Python<'_>, call: impl FnOnce() -> T + Ungil) -> PyResult<T> {
    if is_over() {
        return Err(over());
    }
    let _away = Away::new(py);
    Ok(py.detach(call))
}

/// No thread but the main one goes away from now on.
pub(crate) fn begin_the_end() {
    ENDING.store(true, Ordering::Relaxed);
}

/// Waits until all are back, or this time is over. The interpreter is not held, so that they can.
pub(crate) fn wait_for_the_others(until: Instant) {
    while AWAY.load(Ordering::Relaxed) > 0 && Instant::now() < until {
        thread::sleep(LOOK);
    }
}
