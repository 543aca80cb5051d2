//! Reads that an interrupt ends. A server may take minutes to answer, or for ever; Ctrl-C must not
//! wait for it. A file of the system is read without this, as `os.pread` reads it.
//!
//! ```text
//! resident? --yes--> copied
//!    | no
//! when_resident --> wait, 50 ms at a time; a signal between them ends the read
//!                   resident or failed --> read
//! ```
//!
//! The engine goes on with the fetch that nothing waits for any more, and keeps its blocks.
//!
//! Handlers of signals run in the main thread alone. Reads of other threads are plain ones, which copy each
//! block as it arrives: a read that waits for all of its blocks holds them in the engine's memory until
//! then, which is 16 MiB for 256 threads of 64 KiB each.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use forerun_io::{Driver, Reader};
use pyo3::prelude::*;
use rustix::process::getpid;
use rustix::thread::gettid;

/// How long a signal may remain unseen.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Whether this is the thread that the process began with, or that forked it.
fn is_main_thread() -> bool {
    gettid() == getpid()
}

/// How a read ended.
pub(crate) enum Ended {
    Read(io::Result<usize>),
    /// The exception of the signal's handler.
    Interrupted(PyErr),
}

/// Reads at an offset. The interpreter is not held.
pub(crate) fn read_at(driver: &Driver, reader: &Reader, into: &mut [u8], offset: u64) -> Ended {
    if !reader.is_served() || !is_main_thread() {
        return Ended::Read(reader.read_at(into, offset));
    }
    if let Err(error) = reader.look_if_due() {
        return Ended::Read(Err(error));
    }
    if let Some(taken) = reader.read_resident_at(into, offset, true) {
        return Ended::Read(Ok(taken));
    }
    // More than the memory can hold until it is read would be given up before.
    let fits = |max| into.len() as u64 <= max;
    if !driver.awaited_max().is_none_or(|max| fits(max.0)) {
        return Ended::Read(reader.read_at(into, offset));
    }
    let there = Arc::new((Mutex::new(false), Condvar::new()));
    let call = {
        let there = there.clone();
        move |_: bool| {
            let (is_there, called) = &*there;
            *is_there.lock().unwrap_or_else(PoisonError::into_inner) = true;
            called.notify_one();
        }
    };
    reader.when_resident(offset, into.len(), true, call);
    let (is_there, called) = &*there;
    loop {
        let waiting = is_there.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = called.wait_timeout_while(waiting, SIGNALS_EVERY, |is_there| !*is_there);
        let (is_there, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *is_there {
            return Ended::Read(reader.read_awaited_at(into, offset));
        }
        // Before the interpreter is taken: the thread that calls may have it.
        drop(is_there);
        if let Err(interrupt) = Python::attach(|py| py.check_signals()) {
            return Ended::Interrupted(interrupt);
        }
    }
}
