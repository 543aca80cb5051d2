//! The class `Handle`: an open file with a position, which `forerun.File` dresses as a binary file.
//!
//! In a child process the path is opened again with the child's engine; the position stays.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forerun_io::Reader;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::Writable;
use crate::engine::Engine;
use crate::errors;
use crate::fetch::{DEVICE_MIN, Failure, Object};
use crate::fork::OfThisProcess;
use crate::origin::Origin;
use crate::settings::{OFFSET_MAX, count};
use crate::waiting::{self, Ended};

/// Most requests to a device at once.
const REQUESTS_MAX: u32 = 1024;

/// See the [module](self).
#[pyclass(frozen, module = "forerun")]
pub(crate) struct Handle {
    engine: Py<Engine>,
    origin: Origin,
    position: AtomicU64,
    /// Locked with the interpreter held, and never across a release of it.
    state: Mutex<State>,
}

/// The reader, until the file is closed.
enum State {
    Open(OfThisProcess<Arc<Reader>>),
    Closed,
}

impl Handle {
    fn of(py: Python<'_>, engine: Py<Engine>, origin: Origin) -> PyResult<Self> {
        let reader = open(py, &engine, &origin)?;
        Ok(Self {
            engine,
            origin,
            position: AtomicU64::new(0),
            state: Mutex::new(State::Open(OfThisProcess::new(reader))),
        })
    }

    pub(crate) fn engine(&self) -> &Py<Engine> {
        &self.engine
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
        let reader = open(py, &self.engine, &self.origin)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Open(slot) = &mut *state {
            *slot = OfThisProcess::new(reader.clone());
        }
        Ok(reader)
    }

    fn read_at(&self, py: Python<'_>, into: &mut [u8], offset: u64) -> PyResult<usize> {
        let reader = self.reader(py)?;
        let running = self.engine.get().running()?;
        let ended = py.detach(move || {
            let ended = waiting::read_at(&running.driver, &reader, into, offset);
            // The last ones close the file and end the engine, which may wait.
            drop((reader, running));
            ended
        });
        match ended {
            Ended::Read(taken) => taken.map_err(|error| self.failed(py, &error)),
            Ended::Interrupted(interrupt) => Err(interrupt),
        }
    }

    fn failed(&self, py: Python<'_>, error: &io::Error) -> PyErr {
        let error = errors::system(error, Some(self.origin.name().as_ref()));
        match &self.origin {
            Origin::Fetched(object) => object.failure.explain(py, error),
            _ => error,
        }
    }

    fn bytes_at<'py>(
        &self,
        py: Python<'py>,
        length: u64,
        offset: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let there = self.reader(py)?.size().saturating_sub(offset);
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

fn open(py: Python<'_>, engine: &Py<Engine>, origin: &Origin) -> PyResult<Arc<Reader>> {
    let running = engine.get().running()?;
    let origin = origin.clone();
    let reader = py.detach(move || {
        let reader = origin.open(&running);
        // The last one ends the engine, which waits for its requests in flight.
        drop(running);
        reader
    });
    reader.map(Arc::new).map_err(errors::opening)
}

/// An offset that a file can have.
fn offset_of(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    count("offset", given, OFFSET_MAX)
}

#[pymethods]
impl Handle {
    #[new]
    fn new(py: Python<'_>, engine: Py<Engine>, path: PathBuf) -> PyResult<Self> {
        Self::of(py, engine, Origin::of(path))
    }

    /// An object of which `function(start, end)` returns the bytes of a range.
    #[staticmethod]
    #[pyo3(signature = (engine, function, name, version, size, *, device=0, requests=16))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn fetched(
        py: Python<'_>,
        engine: Py<Engine>,
        function: Py<PyAny>,
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
        let object = Object {
            function,
            name: name.into(),
            version: version.into(),
            bytes: count("size", size, OFFSET_MAX)?,
            device: DEVICE_MIN + u64::from(device),
            requests,
            failure: Failure::default(),
        };
        Self::of(py, engine, Origin::Fetched(Arc::new(object)))
    }

    /// Fills a buffer from the position on, and moves the position; the number of bytes.
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut buffer = Writable::of(buffer)?;
        let at = self.position.load(Ordering::Relaxed);
        let taken = self.read_at(py, buffer.bytes(), at)?;
        self.position.store(at + taken as u64, Ordering::Relaxed);
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
        let at = self.position.load(Ordering::Relaxed);
        let bytes = self.bytes_at(py, length, at)?;
        let end = at + bytes.as_bytes().len() as u64;
        self.position.store(end, Ordering::Relaxed);
        Ok(bytes)
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
        self.position.load(Ordering::Relaxed)
    }

    /// Sets the position.
    fn seek(&self, position: &Bound<'_, PyAny>) -> PyResult<u64> {
        let position = offset_of(position)?;
        self.position.store(position, Ordering::Relaxed);
        Ok(position)
    }

    /// The size in bytes, as of now.
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        let reader = self.reader(py)?;
        let size = py.detach(|| {
            let looked = reader.look();
            let size = reader.size();
            drop(reader);
            looked.map(|_| size)
        });
        size.map_err(|error| self.failed(py, &error))
    }

    /// Closes the file; reads that other threads began end first.
    fn close(&self, py: Python<'_>) {
        let closed = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, State::Closed)
        };
        py.detach(|| drop(closed));
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
