//! Objects that a function of Python reads, for file systems of fsspec.
//!
//! `fetch(start, end)` returns the bytes of a range. The engine calls it from threads of its own,
//! several at once, with the interpreter held; a function that waits for a network releases it
//! there. Its answer is copied once, into the engine's memory.
//!
//! An answer of another length than was asked for is `EIO`: the object is not the one whose size
//! was given. An exception of the function reaches the reader: as the cause of its `OSError`.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use forerun_core::Profile;
use forerun_io::arena::Target;
use forerun_io::source::{Key, Source, remote};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// `errno(3)`: an error of input or output; the process is ending.
const EIO: i32 = 5;
const ESHUTDOWN: i32 = 108;

/// Numbers of devices that are none of the system's begin here.
pub(crate) const DEVICE_MIN: u64 = (1 << 32) + 1;

/// An object: its identity, and the function that reads it.
pub(crate) struct Object {
    pub(crate) function: Py<PyAny>,
    pub(crate) name: Arc<str>,
    pub(crate) version: Arc<str>,
    pub(crate) bytes: u64,
    pub(crate) device: u64,
    pub(crate) requests: u32,
    pub(crate) failure: Failure,
}

/// Bytes of the object from `start` on, for a target from `skip` to `stop`.
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    skip: usize,
    stop: usize,
}

/// The exception of the last call that failed.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    fn set(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Makes it the cause of the reader's exception.
    pub(crate) fn explain(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let failure = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if failure.is_some() {
            error.set_cause(py, failure);
        }
        error
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Object {
    /// Calls the function for a range, and copies its answer into the target.
    fn fetch(&self, py: Python<'_>, target: &mut Target, range: Range) -> PyResult<()> {
        let Range { start, skip, stop } = range;
        let end = start + (stop - skip) as u64;
        let answer = self.function.bind(py).call1((start, end))?;
        let owned;
        let bytes = match answer.cast::<PyBytes>() {
            Ok(bytes) => bytes.as_bytes(),
            // Other buffers may change while they are read.
            Err(_) => {
                owned = PyBuffer::<u8>::get(&answer)?.to_vec(py)?;
                &owned
            }
        };
        if bytes.len() != stop - skip {
            let (length, wanted) = (bytes.len(), stop - skip);
            let why = format!("{length} bytes for the range {start}..{end}: must be {wanted}");
            return Err(PyOSError::new_err((EIO, why, self.name.to_string())));
        }
        py.detach(|| {
            target.fill(skip, stop, |at, memory| {
                memory.copy_from_slice(&bytes[at - skip..][..memory.len()]);
            });
        });
        Ok(())
    }

    /// The error of the function as one of the engine.
    fn failed(&self, py: Python<'_>, error: PyErr) -> io::Error {
        let number = error.value(py).getattr("errno").and_then(|e| e.extract());
        self.failure.set(error);
        io::Error::from_raw_os_error(number.ok().filter(|number| *number > 0).unwrap_or(EIO))
    }
}

impl Source for Object {
    fn key(&self) -> Key {
        Key::Object {
            name: self.name.clone(),
            version: self.version.clone(),
        }
    }

    fn device(&self) -> Option<u64> {
        Some(self.device)
    }

    fn is_served(&self) -> bool {
        true
    }

    fn requests_max(&self) -> Option<u32> {
        Some(self.requests)
    }

    /// As objects read by HTTP, and as many servers as there may be requests.
    fn profile(&self) -> Option<Profile> {
        remote::profile(self.requests)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let stop = target.bytes().min(left);
        if stop <= skip {
            return Ok(skip);
        }
        let start = offset + skip as u64;
        let range = Range { start, skip, stop };
        let fetched = Python::try_attach(|py| {
            let fetched = self.fetch(py, target, range);
            fetched.map_err(|error| self.failed(py, error))
        });
        match fetched {
            Some(fetched) => fetched.map(|()| stop),
            // The interpreter is ending.
            None => Err(io::Error::from_raw_os_error(ESHUTDOWN)),
        }
    }
}
