//! Reads and other calls that an interrupt ends. A server may take minutes to answer, or for ever; Ctrl-C must not
//! wait for it. A file of a local disk is read without this, as `os.pread` reads it. Calls that are no reads
//! (`open` of an address, `reproduce`) have a thread of their own, which the interrupt leaves behind.
//!
//! ```text
//! resident? --yes--> copied
//!    | no
//! when_resident --> wait, 50 ms at a time; a signal between them ends the read
//!                   resident or failed --> read
//! ```
//!
//! The handler of a signal may fork, and the child go on: its read begins again with an engine of its own, and other
//! calls are errors.
//!
//! The engine goes on with the fetch that nothing waits for any more, and keeps its blocks.
//!
//! Handlers of signals run in the main thread alone. Reads of other threads are plain ones, which copy each
//! block as it arrives: a read that waits for all of its blocks holds them in the engine's memory until
//! then, which is 16 MiB for 256 threads of 64 KiB each.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use forerun_io::{Driver, Reader};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::fork::OfThisProcess;
use crate::release::{forks, is_main_thread, released};

/// How long a signal may remain unseen.
pub(crate) const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Most bytes that are waited for at once. The engine lets a read wait for [`READ_MAX`](forerun_core::Engine::READ_MAX)
/// blocks, 16 MiB of the smallest; the rest of a longer one would be read without a look at signals.
const PIECE_MAX: usize = 4 << 20;

/// Calls something that may wait for a server, or work for minutes. A signal ends the wait in the main thread; the
/// call goes on in a thread of its own, which must not run Python code, and its result is dropped.
///
/// # Errors
/// The exception of a signal's handler; no thread; the handler forked, and this is the child.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    if !is_main_thread() {
        return released(py, call);
    }
    let (ended, result) = channel();
    let work = move || {
        // It fails if nothing waits any more.
        let _ = ended.send(call());
    };
    let thread = thread::Builder::new().name("forerun-call".into());
    thread.spawn(work)?;
    let result = OfThisProcess::new(Mutex::new(result));
    loop {
        let result = result.get().ok_or_else(forked_amid)?;
        let answer = released(py, || {
            let result = result.lock().unwrap_or_else(PoisonError::into_inner);
            result.recv_timeout(SIGNALS_EVERY)
        })?;
        match answer {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the call ended without a result"));
            }
        }
    }
}

/// The call of a process whose child this is has no thread here.
pub(crate) fn forked_amid() -> PyErr {
    PyRuntimeError::new_err(
        "a handler of a signal forked this process amid the call, which its parent goes on with",
    )
}

/// How a read ended.
pub(crate) enum Ended {
    Read(io::Result<usize>),
    /// The exception of the signal's handler.
    Interrupted(PyErr),
    /// The signal's handler forked, and this is the child, which has no thread that completes the read.
    Forked,
}

/// Reads at an offset, as often as it takes: less than asked for is the end of the file, and an error behind
/// bytes that were read is an error. The interpreter is not held.
pub(crate) fn read_at(driver: &Driver, reader: &Reader, into: &mut [u8], offset: u64) -> Ended {
    let is_awaited = is_awaited(driver, reader);
    let mut taken = 0;
    loop {
        let at = offset.saturating_add(taken as u64);
        let left = &mut into[taken..];
        let read = match is_awaited {
            true => awaited(reader, left, at),
            false => Ended::Read(reader.read_at(left, at)),
        };
        match read {
            Ended::Read(Ok(read)) => {
                taken += read;
                let end = at.saturating_add(read as u64);
                if read == 0 || taken == into.len() || end >= reader.size() {
                    return Ended::Read(Ok(taken));
                }
            }
            other => return other,
        }
    }
}

fn is_awaited(driver: &Driver, reader: &Reader) -> bool {
    is_main_thread() && (reader.is_served() || driver.is_emulated())
}

/// Reads once, as `pread(2)`: less than asked for may also be the beginning of an error.
pub(crate) fn read_once(driver: &Driver, reader: &Reader, into: &mut [u8], offset: u64) -> Ended {
    match is_awaited(driver, reader) {
        true => awaited(reader, into, offset),
        false => Ended::Read(reader.read_at(into, offset)),
    }
}

/// Reads a piece, and sees signals meanwhile.
fn awaited(reader: &Reader, into: &mut [u8], offset: u64) -> Ended {
    // More than the memory can hold until it is read would be given up before.
    let piece_bytes = into.len().min(reader.resident_max()).min(PIECE_MAX);
    let into = &mut into[..piece_bytes];
    if let Err(error) = reader.look_if_due() {
        return Ended::Read(Err(error));
    }
    let is_there = reader.is_resident(offset, into.len());
    let taken = is_there.then(|| reader.read_resident_at(into, offset, true));
    if let Some(taken) = taken.flatten() {
        return Ended::Read(Ok(taken));
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
    let before = forks();
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
        if forks() != before {
            return Ended::Forked;
        }
    }
}
