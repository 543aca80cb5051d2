//! Reads and other calls that an interrupt ends. A server may take minutes to answer, or for ever; Ctrl-C must not
//! wait for it. A file of a local disk is read without this, as `os.pread` reads it. Calls that are no reads
//! (`open` of an address, `reproduce`) have a thread of their own, which the interrupt leaves behind.
//!
//! ```text
//! resident? --yes--> copied
//!    | no
//! when_resident --> wait, 50 ms at a time; a signal between them ends the read
//!                   resident --> copied; failed --> read on another thread, for the error
//! ```
//!
//! A look at the file (`fstat`) may wait for a server as well, and is made on another thread where it is due.
//!
//! The handler of a signal may fork, and the child go on: its read or look begins again with an engine of its own, and
//! other calls are errors. Where no thread can be started, calls are made in place, and no interrupt ends them.
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

/// How often bytes that came may be given up before they are copied: other readers need the memory more.
const LOST_MAX: u32 = 4;

/// The end of a wait before that of the call.
enum Stopped {
    /// The exception of the signal's handler.
    Raised(PyErr),
    /// The signal's handler forked, and this is the child.
    Forked,
}

impl From<Stopped> for Ended {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Raised(error) => Self::Interrupted(error),
            Stopped::Forked => Self::Forked,
        }
    }
}

/// Calls something that may wait for a server, or work for minutes. A signal ends the wait in the main thread; the
/// call goes on in a thread of its own, which must not run Python code, and its result is dropped.
///
/// # Errors
/// The exception of a signal's handler; the handler forked, and this is the child.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    unless_forked(py, call)?.ok_or_else(forked_amid)
}

/// The same; none if the handler forked, and this is the child.
pub(crate) fn unless_forked<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> T + Send + 'static,
) -> PyResult<Option<T>> {
    if !is_main_thread() {
        return released(py, call).map(Some);
    }
    match released(py, || beside(call))? {
        Ok(answer) => Ok(Some(answer)),
        Err(Stopped::Raised(error)) => Err(error),
        Err(Stopped::Forked) => Ok(None),
    }
}

/// The same in the main thread, without the interpreter.
fn beside<T, Call>(call: Call) -> Result<T, Stopped>
where
    T: Send + 'static,
    Call: FnOnce() -> T + Send + 'static,
{
    let (ended, result) = channel();
    // A thread that cannot be started would drop the call that it was given at once.
    let (give, given) = channel::<Call>();
    let work = move || {
        if let Ok(call) = given.recv() {
            // It fails if nothing waits any more.
            let _ = ended.send(call());
        }
    };
    let thread = thread::Builder::new().name("forerun-call".into());
    if thread.spawn(work).is_err() {
        return Ok(call());
    }
    // The thread waits for it.
    let _ = give.send(call);
    let result = OfThisProcess::new(Mutex::new(result));
    loop {
        let result = result.get().ok_or(Stopped::Forked)?;
        let result = result.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = result.recv_timeout(SIGNALS_EVERY);
        // Before the interpreter is taken.
        drop(result);
        match answer {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                Python::attach(|py| py.check_signals()).map_err(Stopped::Raised)?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                let error = PyRuntimeError::new_err("the call ended without a result");
                return Err(Stopped::Raised(error));
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
/// bytes that were read is an error; `taken` of them. The interpreter is not held.
pub(crate) fn read_at(
    driver: &Driver,
    reader: &Arc<Reader>,
    into: &mut [u8],
    offset: u64,
    taken: &mut usize,
) -> Ended {
    let is_awaited = is_awaited(driver, reader);
    *taken = 0;
    loop {
        let at = offset.saturating_add(*taken as u64);
        let left = &mut into[*taken..];
        let read = match is_awaited {
            true => awaited(reader, left, at),
            false => Ended::Read(reader.read_at(left, at)),
        };
        match read {
            Ended::Read(Ok(read)) => {
                *taken += read;
                let end = at.saturating_add(read as u64);
                if read == 0 || *taken == into.len() || end >= reader.size() {
                    return Ended::Read(Ok(*taken));
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
pub(crate) fn read_once(
    driver: &Driver,
    reader: &Arc<Reader>,
    into: &mut [u8],
    offset: u64,
) -> Ended {
    match is_awaited(driver, reader) {
        true => awaited(reader, into, offset),
        false => Ended::Read(reader.read_at(into, offset)),
    }
}

/// Reads a piece, and sees signals meanwhile.
fn awaited(reader: &Arc<Reader>, into: &mut [u8], offset: u64) -> Ended {
    // More than the memory can hold until it is read would be given up before.
    let piece_bytes = into.len().min(reader.resident_max()).min(PIECE_MAX);
    let into = &mut into[..piece_bytes];
    let ended = has_come(reader, into, offset);
    ended.map_or_else(Ended::from, Ended::Read)
}

fn has_come(
    reader: &Arc<Reader>,
    into: &mut [u8],
    offset: u64,
) -> Result<io::Result<usize>, Stopped> {
    for turn in 0..LOST_MAX {
        if reader.look_is_due()
            && let Err(error) = look(reader)?
        {
            return Ok(Err(error));
        }
        let fresh = turn == 0;
        let is_there = reader.is_resident(offset, into.len());
        let taken = is_there.then(|| reader.read_resident_at(into, offset, fresh));
        if let Some(taken) = taken.flatten() {
            return Ok(Ok(taken));
        }
        if !comes(reader, offset, into.len(), fresh)? {
            break;
        }
    }
    read_beside(reader, into, offset)
}

/// Looks at the file.
fn look(reader: &Arc<Reader>) -> Result<io::Result<bool>, Stopped> {
    if !reader.is_served() {
        return Ok(reader.look());
    }
    let reader = reader.clone();
    beside(move || reader.look())
}

/// Reads bytes that were asked for before, where only a read can tell the error, or they are given up again and again.
fn read_beside(
    reader: &Arc<Reader>,
    into: &mut [u8],
    offset: u64,
) -> Result<io::Result<usize>, Stopped> {
    if !reader.is_served() {
        return Ok(reader.read_awaited_at(into, offset));
    }
    let (reader, bytes) = (reader.clone(), into.len());
    let read = beside(move || {
        // The buffer of the caller is gone where the wait is interrupted.
        let mut own = vec![0; bytes];
        let taken = reader.read_awaited_at(&mut own, offset)?;
        own.truncate(taken);
        Ok(own)
    })?;
    Ok(read.map(|own: Vec<u8>| {
        into[..own.len()].copy_from_slice(&own);
        own.len()
    }))
}

/// Waits until these bytes are there; false if only a read can tell the error.
fn comes(reader: &Reader, offset: u64, bytes: usize, fresh: bool) -> Result<bool, Stopped> {
    let there = Arc::new((Mutex::new(None), Condvar::new()));
    let call = {
        let there = there.clone();
        move |is_there: bool| {
            let (answer, called) = &*there;
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(is_there);
            called.notify_one();
        }
    };
    reader.when_resident(offset, bytes, fresh, call);
    let (answer, called) = &*there;
    let before = forks();
    loop {
        let waiting = answer.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = called.wait_timeout_while(waiting, SIGNALS_EVERY, |answer| answer.is_none());
        let (answer, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(is_there) = *answer {
            return Ok(is_there);
        }
        // Before the interpreter is taken: the thread that calls may have it.
        drop(answer);
        Python::attach(|py| py.check_signals()).map_err(Stopped::Raised)?;
        if forks() != before {
            return Err(Stopped::Forked);
        }
    }
}
