//! Calls of fetch functions: from threads of the engine, to threads that Python started.
//!
//! Problem: a thread that Python did not start must not run Python code. When the interpreter ends, it is
//! unwound in the middle of that, and the process aborts.
//!
//! ```text
//! engine's thread    Object::read -> ask -> [queue]    waits, at most until the end   <- bytes
//! Python's thread    _calls.serve -> take <-+    function(start, end) -> Call.answer --+
//! ```
//!
//! A function that hangs holds up its own call alone: [`IDLE_MIN`] threads are idle, and one that takes a call
//! and leaves fewer starts another first. So there are as many as the engine's requests, and two.
//!
//! A collection of garbage runs code of other libraries, on any thread: it may wait for a lock that the reader holds
//! while it waits for the call (h5py's). A call whose thread collects is given to another thread as well, and the
//! first answer counts; while one thread collects, no other begins to.
//!
//! The queue's lock is taken without the interpreter and with it, and nothing is called or dropped under it.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes};
use rustix::thread::gettid;

use crate::deferred::{Deferred, drop_deferred, has_deferred};
use crate::fetch::{EAGAIN, EBADF, EIO, ESHUTDOWN, Failed, Object};
use crate::fork::OfThisProcess;
use crate::release::released;

/// Threads that wait for a call, so that the start of one can be held up, too.
const IDLE_MIN: usize = 2;

/// How long more of them wait before they end.
const IDLE: Duration = Duration::from_secs(10);

/// How soon the end of the process, or a collection, is seen by a thread of the engine.
const LOOK: Duration = Duration::from_millis(50);

/// The thread that collects garbage; zero if none does.
static COLLECTING: AtomicU32 = AtomicU32::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The system's number of this thread.
pub(crate) fn this_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// For `gc.callbacks`: a collection begins or ends on this thread.
#[pyfunction]
#[pyo3(signature = (phase, info, /))]
pub(crate) fn collecting(phase: &str, info: &Bound<'_, PyAny>) {
    let thread = if phase == "start" { this_thread() } else { 0 };
    COLLECTING.store(thread, Ordering::Relaxed);
    drop_deferred(info.py());
}

/// Whether this thread collects garbage.
pub(crate) fn is_collecting(thread: u32) -> bool {
    COLLECTING.load(Ordering::Relaxed) == thread
}

/// Whether no thread collects garbage.
pub(crate) fn is_none_collecting() -> bool {
    is_collecting(0)
}

/// The calls of an engine that no thread has taken. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Calls {
    queue: Mutex<Queue>,
    came: Condvar,
    failed: Arc<Failed>,
}

#[derive(Debug, Default)]
struct Queue {
    calls: VecDeque<Arc<Asked>>,
    threads: usize,
    idle: usize,
    /// Threads that were started and have not come yet.
    starting: usize,
    is_closed: bool,
}

/// A call that a thread of the engine waits for.
#[derive(Debug)]
struct Asked {
    object: Arc<Object>,
    failed: Arc<Failed>,
    start: u64,
    end: u64,
    /// Which thread calls the function; zero while none does.
    caller: AtomicU32,
    answer: Mutex<Option<Answer>>,
    answered: Condvar,
}

type Answer = Result<Deferred<PyBackedBytes>, i32>;

impl Asked {
    /// The first answer counts.
    fn answer(&self, answer: Answer) {
        let mut place = lock(&self.answer);
        if place.is_none() {
            *place = Some(answer);
        }
        drop(place);
        self.answered.notify_one();
    }

    fn failed(&self, py: Python<'_>, error: PyErr) {
        let number = self
            .object
            .failed(py, self.start..self.end, error, &self.failed);
        self.answer(Err(number));
    }
}

impl Calls {
    /// Has a range of an object fetched, and waits for it.
    ///
    /// # Errors
    /// The number of the function's exception; `EAGAIN` if there is no thread; `ESHUTDOWN` at the end.
    pub(crate) fn ask(&self, object: Arc<Object>, start: u64, end: u64) -> Answer {
        let asked = Arc::new(Asked {
            object,
            failed: self.failed.clone(),
            start,
            end,
            caller: AtomicU32::new(0),
            answer: Mutex::new(None),
            answered: Condvar::new(),
        });
        self.put(asked.clone());
        loop {
            let place = lock(&asked.answer);
            let waited = asked
                .answered
                .wait_timeout_while(place, LOOK, |answer| answer.is_none());
            let (mut place, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if let Some(answer) = place.take() {
                return answer;
            }
            drop(place);
            let queue = lock(&self.queue);
            let (is_closed, threads) = (queue.is_closed, queue.threads);
            drop(queue);
            match (is_closed, threads) {
                (true, _) => return Err(ESHUTDOWN),
                (false, 0) => return Err(EAGAIN),
                _ => {}
            }
            let caller = asked.caller.load(Ordering::Relaxed);
            if caller != 0 && is_collecting(caller) {
                asked.caller.store(0, Ordering::Relaxed);
                self.put(asked.clone());
            }
        }
    }

    /// The objects that had a call that failed.
    pub(crate) fn failed(&self) -> Arc<Failed> {
        self.failed.clone()
    }

    fn put(&self, asked: Arc<Asked>) {
        lock(&self.queue).calls.push_back(asked);
        self.came.notify_one();
    }

    /// The next call; none if there was none for long, or the end has come.
    fn next(&self, is_new: bool) -> Option<Arc<Asked>> {
        let until = Instant::now() + IDLE;
        let mut queue = lock(&self.queue);
        queue.starting -= usize::from(is_new);
        queue.idle += 1;
        let next = loop {
            if queue.is_closed {
                break None;
            }
            if let Some(next) = queue.calls.pop_front() {
                break Some(next);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() && queue.idle > IDLE_MIN {
                break None;
            }
            let left = if left.is_zero() { IDLE } else { left };
            let waited = self.came.wait_timeout(queue, left);
            (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        };
        queue.idle -= 1;
        next
    }

    /// The threads that are to be started, unless enough are idle.
    fn lacking(self: &Arc<Self>) -> Vec<CallThread> {
        let lacking = {
            let mut queue = lock(&self.queue);
            let there = if queue.is_closed {
                IDLE_MIN
            } else {
                queue.idle + queue.starting
            };
            let lacking = IDLE_MIN.saturating_sub(there);
            queue.starting += lacking;
            queue.threads += lacking;
            lacking
        };
        let thread = |_| CallThread {
            calls: OfThisProcess::new(self.clone()),
            is_new: AtomicBool::new(true),
        };
        (0..lacking).map(thread).collect()
    }

    /// Starts threads, unless enough are idle. A thread of their own starts them: the start of one waits for it with
    /// the interpreter released, and this one must not come back to an interpreter that has ended.
    ///
    /// # Errors
    /// The system gives none.
    pub(crate) fn serve(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let lacking = self.lacking();
        if lacking.is_empty() {
            return Ok(());
        }
        let start = py.import("forerun._calls")?.getattr("start")?;
        let begin = py.import("_thread")?.getattr("start_new_thread")?;
        begin.call1((start, (lacking,))).map(drop)
    }

    /// Ends all calls and threads.
    pub(crate) fn close(&self) {
        let calls = {
            let mut queue = lock(&self.queue);
            queue.is_closed = true;
            mem::take(&mut queue.calls)
        };
        drop(calls);
        self.came.notify_all();
    }
}

/// A call, its function, and the range.
type Taken = (Call, Py<PyAny>, u64, u64);

/// A thread that calls. It counts from before its start until this is dropped, however it ends.
#[pyclass(frozen, module = "forerun")]
pub(crate) struct CallThread {
    calls: OfThisProcess<Arc<Calls>>,
    /// It has not come yet.
    is_new: AtomicBool,
}

#[pymethods]
impl CallThread {
    /// Whether objects are to be let go of first, on a thread that no call waits for.
    #[expect(clippy::unused_self, reason = "a method of Python")]
    fn has_deferred(&self) -> bool {
        has_deferred()
    }

    /// Lets go of them.
    #[expect(clippy::unused_self, reason = "a method of Python")]
    fn drop_deferred(&self, py: Python<'_>) {
        drop_deferred(py);
    }

    /// Waits for the next call. None if the thread is to end.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Taken>> {
        let Some(calls) = self.calls.get() else {
            return Ok(None);
        };
        loop {
            let next = released(py, || {
                calls.next(self.is_new.swap(false, Ordering::Relaxed))
            })?;
            let Some(asked) = next else {
                return Ok(None);
            };
            let Some(function) = asked.object.function(py) else {
                asked.answer(Err(EBADF));
                continue;
            };
            asked.caller.store(this_thread(), Ordering::Relaxed);
            let (start, end) = (asked.start, asked.end);
            return Ok(Some((
                Call(OfThisProcess::new(asked)),
                function,
                start,
                end,
            )));
        }
    }

    /// The threads that are to be started beside it.
    fn lacking(&self) -> Vec<Self> {
        self.calls.get().map_or(Vec::new(), Calls::lacking)
    }
}

impl Drop for CallThread {
    fn drop(&mut self) {
        if let Some(calls) = self.calls.get() {
            let mut queue = lock(&calls.queue);
            queue.starting -= usize::from(*self.is_new.get_mut());
            queue.threads -= 1;
        }
    }
}

/// A call that a thread of the engine waits for. One that is dropped without an answer has failed.
#[pyclass(frozen, module = "forerun")]
pub(crate) struct Call(OfThisProcess<Arc<Asked>>);

#[pymethods]
impl Call {
    /// The function returned this.
    fn answer(&self, py: Python<'_>, answer: &Bound<'_, PyAny>) {
        let Some(asked) = self.0.get() else { return };
        let (start, end, object) = (asked.start, asked.end, &asked.object);
        let answer = bytes_of(py, answer).and_then(|bytes| {
            let (length, wanted) = (bytes.len() as u64, end - start);
            if length == wanted {
                return Ok(bytes);
            }
            let why = format!("{length} bytes for the range {start}..{end}: must be {wanted}");
            Err(PyOSError::new_err((EIO, why, object.name.to_string())))
        });
        match answer {
            Ok(bytes) => {
                object.succeeded(py, start..end);
                asked.answer(Ok(Deferred::new(bytes)));
            }
            Err(error) => asked.failed(py, error),
        }
    }

    /// The function raised this, below a frame that has the call, which has the exception: that one is left out.
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) {
        let Some(asked) = self.0.get() else { return };
        let error = PyErr::from_value(error);
        let trace = error.traceback(py);
        let below = trace.and_then(|trace| trace.getattr("tb_next").ok()?.cast_into().ok());
        error.set_traceback(py, below);
        asked.failed(py, error);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(asked) = self.0.get() {
            asked.answer(Err(EIO));
        }
    }
}

fn bytes_of(py: Python<'_>, answer: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    if let Ok(bytes) = answer.cast::<PyBytes>() {
        return Ok(bytes.clone().into());
    }
    if let Ok(bytes) = answer.cast::<PyByteArray>() {
        return Ok(bytes.clone().into());
    }
    // Other buffers may change while they are read.
    let bytes = PyBuffer::<u8>::get(answer)?.to_vec(py)?;
    Ok(PyBytes::new(py, &bytes).into())
}
