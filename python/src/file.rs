//! The class `Handle`: an open file with a position, which `forerun.File` dresses as a binary file.
//!
//! In a child process the path is opened again with the child's engine; the position stays.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::mem;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use forerun_io::error::number;
use forerun_io::{Error, Reader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};

use crate::announced::{Kept, Key};
use crate::buffer::Writable;
use crate::deferred::DropsDeferred;
use crate::engine::{Engine, Running};
use crate::errors;
use crate::fetch::{DEVICE_MIN, EIO, Object};
use crate::fork::OfThisProcess;
use crate::hint;
use crate::lines::Lines;
use crate::origin::{Opened, Origin};
use crate::place::Place;
use crate::release::{forks, is_over, over, released};
use crate::settings::{OFFSET_MAX, count, offset_from};
use crate::stores::Stored;
use crate::waiting::{self, Ended};

/// Most requests to a device at once.
const REQUESTS_MAX: u32 = 1024;

/// `errno(3)`: the object was replaced.
const ESTALE: i32 = 116;

/// An open file with a position, which `forerun.File` has.
#[pyclass(frozen, module = "forerun")]
pub(crate) struct Handle {
    engine: Py<Engine>,
    origin: Origin,
    place: Place,
    lines: Lines,
    /// When it was changed last, if its opening told.
    modified: Option<SystemTime>,
    /// Locked with the interpreter held, and never across a release of it.
    state: Mutex<State>,
    _drops: DropsDeferred,
}

/// The reader, until the file is closed.
enum State {
    Open(OfThisProcess<Arc<Reader>>),
    Closed,
}

impl Handle {
    fn of(py: Python<'_>, engine: Py<Engine>, origin: Origin) -> PyResult<Self> {
        let (reader, source) = open(py, &engine, &origin)?;
        Ok(Self {
            modified: source.and_then(|source| source.modified()),
            engine,
            origin,
            place: Place::default(),
            lines: Lines::default(),
            state: Mutex::new(State::Open(OfThisProcess::new(reader))),
            _drops: DropsDeferred,
        })
    }

    pub(crate) fn engine(&self) -> &Py<Engine> {
        &self.engine
    }

    /// Whether it has a path or an address, and no function.
    pub(crate) fn is_named(&self) -> bool {
        !matches!(self.origin, Origin::Fetched(_))
    }

    /// The reader of this process.
    pub(crate) fn reader(&self, py: Python<'_>) -> PyResult<Arc<Reader>> {
        {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match &*state {
                State::Closed => {
                    return Err(PyValueError::new_err("I/O operation on closed file"));
                }
                State::Open(reader) => {
                    if let Some(reader) = reader.get() {
                        return Ok(reader.clone());
                    }
                }
            }
        }
        let (reader, _) = open(py, &self.engine, &self.origin)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match &mut *state {
            State::Open(slot) => slot,
            State::Closed => return Ok(reader),
        };
        if let Some(other) = slot.get() {
            // Another thread was faster; this reader is dropped without the lock.
            return Ok(other.clone());
        }
        *slot = OfThisProcess::new(reader.clone());
        Ok(reader)
    }

    /// Fills a buffer from an offset on: to its end, or that of the file.
    fn read_at(&self, py: Python<'_>, into: &mut [u8], offset: u64) -> PyResult<usize> {
        let end = offset.saturating_add(into.len() as u64);
        let mut taken = 0;
        let read = self.read_with(py, |running, reader| {
            waiting::read_at(&running.driver, reader, into, offset, &mut taken)
        })?;
        let failed_at = offset.saturating_add(taken as u64);
        read.map_err(|error| self.failed(py, &error, &(failed_at..end)))
    }

    fn read_with(
        &self,
        py: Python<'_>,
        mut read: impl FnMut(&Running, &Arc<Reader>) -> Ended + Send,
    ) -> PyResult<io::Result<usize>> {
        loop {
            let reader = self.reader(py)?;
            let running = self.engine.get().running()?;
            if let Origin::Fetched(object) = &self.origin {
                object.renew(py)?;
            }
            let before = forks();
            let ended = released(py, || {
                let ended = read(&running, &reader);
                match forks() == before {
                    // The last ones close the file and end the engine, which may wait.
                    true => drop((reader, running)),
                    // They are a parent's.
                    false => mem::forget((reader, running)),
                }
                ended
            })?;
            match ended {
                Ended::Read(taken) => return Ok(taken),
                Ended::Interrupted(interrupt) => return Err(interrupt),
                // With the engine of this process.
                Ended::Forked => {}
            }
        }
    }

    /// The reader and source kept of an announced file, if its engine runs.
    fn forget(&self, key: &Key) -> Option<Kept> {
        self.engine.get().running_now()?.announced.close(key)
    }

    /// The error of a read, as its reader sees it: it failed where this range begins, and was of the rest.
    fn failed(&self, py: Python<'_>, error: &io::Error, range: &Range<u64>) -> PyErr {
        if is_over() {
            return over();
        }
        let code = number(error).unwrap_or(EIO);
        if code == ESTALE {
            // The next one to open it gets the version that is there now.
            let kept = self.forget(&Key::Name(self.origin.name().into()));
            let _ = released(py, || drop(kept));
        }
        let error = errors::system(error, Some(self.origin.name().as_ref()));
        match &self.origin {
            Origin::Fetched(object) => {
                let running = self.engine.get().running_now();
                let failed = running.as_ref().map(|running| running.calls.failed());
                // The last one ends the engine, which may wait.
                let _ = released(py, || drop(running));
                object.explain(py, error, code, range, failed.as_deref())
            }
            _ => error,
        }
    }

    /// Looks at the file; its size.
    fn look(&self, py: Python<'_>) -> PyResult<u64> {
        loop {
            let reader = self.reader(py)?;
            let may_wait = reader.is_served() && reader.may_change();
            let look = move || {
                let looked = reader.look();
                let size = reader.size();
                drop(reader);
                looked.map(|_| size)
            };
            let size = match may_wait {
                true => waiting::unless_forked(py, look)?,
                false => Some(released(py, look)?),
            };
            // In a child with the reader of this process.
            if let Some(size) = size {
                return size.map_err(|error| self.failed(py, &error, &(0..0)));
            }
        }
    }

    fn bytes_at<'py>(
        &self,
        py: Python<'py>,
        length: u64,
        offset: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let end = offset.saturating_add(length);
        let (mut size, looks) = {
            let reader = self.reader(py)?;
            let size = reader.size();
            // It may have grown.
            (size, end > size && reader.look_is_due())
        };
        if looks {
            size = self.look(py)?;
        }
        let there = size.saturating_sub(offset);
        let length = usize::try_from(length.min(there)).unwrap_or(usize::MAX);
        let mut taken = 0;
        let bytes = PyBytes::new_with(py, length, |into| {
            taken = self.read_at(py, into, offset)?;
            Ok(())
        })?;
        match bytes.as_bytes() {
            all if all.len() == taken => Ok(bytes),
            all => Ok(PyBytes::new(py, all.get(..taken).unwrap_or(all))),
        }
    }
}

fn open(py: Python<'_>, engine: &Py<Engine>, origin: &Origin) -> PyResult<Opened> {
    let running = engine.get().running()?;
    if let Origin::Fetched(_) = origin {
        running.calls.serve(py)?;
    }
    hint::tidy(py, &running)?;
    let origin = origin.clone();
    let may_wait = origin.asks() && !origin.is_announced(&running);
    let work = move || {
        let reader = origin.open(&running);
        // The last one ends the engine, which waits for its requests in flight.
        drop(running);
        reader
    };
    let reader = match may_wait {
        true => waiting::interruptible(py, work)?,
        false => released(py, work)?,
    };
    reader.map_err(errors::opening)
}

/// An offset that a file can have.
fn offset_of(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    count("offset", given, OFFSET_MAX)
}

#[pymethods]
impl Handle {
    #[new]
    #[pyo3(signature = (engine, path, version=None))]
    fn new(
        py: Python<'_>,
        engine: Py<Engine>,
        path: PathBuf,
        version: Option<(u64, String)>,
    ) -> PyResult<Self> {
        let version = version.map(|(bytes, version)| (bytes, version.into()));
        Self::of(py, engine, Origin::of(path, version))
    }

    /// An object of which `function(start, end)` returns the bytes of a range.
    #[staticmethod]
    #[pyo3(signature = (engine, function, name, version, size, *, device=0, requests=16))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn fetched(
        py: Python<'_>,
        engine: Py<Engine>,
        function: Bound<'_, PyAny>,
        name: &str,
        version: &str,
        size: &Bound<'_, PyAny>,
        device: u32,
        requests: u32,
    ) -> PyResult<Self> {
        if !(1..=REQUESTS_MAX).contains(&requests) {
            return Err(errors::value(format!(
                "requests of {requests}: must lie from 1 to {REQUESTS_MAX}"
            )));
        }
        let bytes = count("size", size, OFFSET_MAX)?;
        let device = DEVICE_MIN + u64::from(device);
        let object = Object::new(function, (name, version), bytes, device, requests)?;
        Self::of(py, engine, Origin::Fetched(Arc::new(object)))
    }

    /// An object of a store that is reached by variables in place of the environment's.
    #[staticmethod]
    #[pyo3(signature = (engine, url, variables, *, size=None, e_tag=None, first=0, last=0))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn stored(
        py: Python<'_>,
        engine: Py<Engine>,
        url: String,
        variables: BTreeMap<String, String>,
        size: Option<&Bound<'_, PyAny>>,
        e_tag: Option<String>,
        first: u32,
        last: u32,
    ) -> PyResult<Self> {
        let size = size
            .map(|size| count("size", size, OFFSET_MAX))
            .transpose()?;
        let stored = Stored {
            url,
            variables,
            version: size.zip(e_tag),
            part: (first.into(), last.into()),
        };
        Self::of(py, engine, Origin::Stored(Arc::new(stored)))
    }

    /// Announces reads of this file as (offset, length), for code that announces unasked: without a warning of those
    /// that come to nothing. The number that was taken.
    fn announce(&self, py: Python<'_>, ranges: Vec<(u64, u64)>) -> PyResult<usize> {
        let reader = self.reader(py)?;
        let running = self.engine.get().running()?;
        let taken = released(py, move || {
            let order = ranges.iter();
            let order = order.map(|(offset, length)| (&*reader, *offset, *length));
            let taken = running.driver.hint(order);
            // The last ones close the file and end the engine, which may wait.
            drop((reader, running));
            taken
        })?;
        match taken {
            Err(Error::HintsFull { .. }) => Ok(0),
            taken => taken.map_err(errors::of),
        }
    }

    /// Fills a buffer from the position on, and moves the position; the number of bytes.
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut buffer = Writable::of(buffer)?;
        let turn = self.place.turn(py)?;
        let at = turn.at();
        let taken = self.read_at(py, buffer.bytes(), at)?;
        turn.set(at + taken as u64);
        Ok(taken)
    }

    /// Fills a buffer from an offset on; the number of bytes.
    fn readinto_at(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let offset = offset_of(offset)?;
        self.read_at(py, Writable::of(buffer)?.bytes(), offset)
    }

    /// At most so many bytes from the position on, and moves the position.
    fn read<'py>(
        &self,
        py: Python<'py>,
        length: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let length = count("length", length, OFFSET_MAX)?;
        let turn = self.place.turn(py)?;
        let at = turn.at();
        let bytes = self.bytes_at(py, length, at)?;
        turn.set(at + bytes.as_bytes().len() as u64);
        Ok(bytes)
    }

    /// A line from the position on, at most so many bytes of it, and moves the position.
    #[pyo3(signature = (length=None))]
    fn readline<'py>(&self, py: Python<'py>, length: Option<i64>) -> PyResult<Bound<'py, PyBytes>> {
        let most = length.and_then(|length| usize::try_from(length).ok());
        let turn = self.place.turn(py)?;
        // Closed, or of another process.
        self.reader(py)?;
        let at = turn.at();
        let read = |into: &mut [u8], offset: u64| {
            let range = offset..offset.saturating_add(into.len() as u64);
            let read = self.read_with(py, |running, reader| {
                waiting::read_once(&running.driver, reader, into, offset)
            })?;
            read.map_err(|error| self.failed(py, &error, &range))
        };
        let line = self.lines.next(at, most.unwrap_or(usize::MAX), read)?;
        turn.set(at + line.len() as u64);
        Ok(PyBytes::new(py, &line))
    }

    /// At most so many bytes from an offset on.
    fn pread<'py>(
        &self,
        py: Python<'py>,
        length: &Bound<'py, PyAny>,
        offset: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes_at(py, count("length", length, OFFSET_MAX)?, offset_of(offset)?)
    }

    /// The position.
    fn tell(&self) -> u64 {
        self.place.at()
    }

    /// Sets the position, from the beginning, the position or the end; the new one.
    #[pyo3(signature = (offset, whence=0))]
    fn seek(&self, py: Python<'_>, offset: &Bound<'_, PyAny>, whence: u8) -> PyResult<u64> {
        let offset = offset_from(offset)?;
        let turn = self.place.turn(py)?;
        let base = match whence {
            0 => 0,
            1 => turn.at(),
            _ => self.size(py)?,
        };
        let to = i128::from(base) + i128::from(offset);
        let to = u64::try_from(to).ok().filter(|to| *to <= OFFSET_MAX);
        let to = to.ok_or_else(|| errors::position(offset, base, &self.origin.name()))?;
        turn.set(to);
        Ok(to)
    }

    /// The size in bytes, as of now.
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.look(py)
    }

    /// When it was changed last, if the answer to its opening told.
    #[getter]
    fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// Closes the file; reads that other threads began end first. Announced reads of it are dropped unless it
    /// keeps them, as for a file that was let go of.
    #[pyo3(signature = (keeps_hints=false))]
    fn close(&self, py: Python<'_>, keeps_hints: bool) {
        let closed = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            mem::replace(&mut *state, State::Closed)
        };
        let reader = match &closed {
            State::Open(reader) if !keeps_hints => reader.get(),
            _ => None,
        };
        let kept = reader.and_then(|reader| self.forget(&Key::Opened(reader.id())));
        // At the end of the process in place, which waits for nothing.
        let _ = released(py, || drop((closed, kept)));
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.origin {
            Origin::Fetched(object) => object.visit(&visit),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        if let Origin::Fetched(_) = &self.origin {
            // Others of the object are read by their own functions from now on.
            Python::attach(|py| self.close(py, false));
        }
    }

    /// The path, the address or the name of the object.
    #[getter]
    fn name(&self) -> OsString {
        self.origin.name()
    }

    /// The engine it is read through.
    #[getter(engine)]
    fn engine_of(&self, py: Python<'_>) -> Py<Engine> {
        self.engine.clone_ref(py)
    }
}
