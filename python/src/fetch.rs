//! Objects that a function of Python reads, for file systems of fsspec.
//!
//! `fetch(start, end)` returns the bytes of a range. It is called on threads of Python, several at once:
//! see [`calls`](crate::calls). Its answer is copied once, into the engine's memory, by the engine's thread.
//!
//! An answer of another length than was asked for is `EIO`: the object is not the one whose size
//! was given. An exception of the function for a range reaches a reader in that range as the cause of its `OSError`, also
//! where that of another file with the same object was called for it.
//!
//! The function may refer to the file that has it. The collector of garbage therefore sees it by way of the
//! file's handle, and takes them apart where nothing else refers to them, in any order: a function without its
//! variables crashes the process where it is called. Before that it ends all weak references to them. So a source,
//! which the collector cannot see, has its function by a weak reference: `EBADF`, on which another file's is asked.
//! Where a finalizer of the garbage has kept it, a read by its open handle makes the weak reference anew, behind the
//! collection: one that was made amid it would not end, so that reads of finalizers themselves are errors.
//! ```text
//! Handle -> Object -> References -> function -> the file's owner -> Handle    one cycle of garbage
//! engine -> source -> Object ~weak~> References                               none once that is found
//! ```

use std::fmt;
use std::io;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use forerun_core::Profile;
use forerun_io::arena::Target;
use forerun_io::source::{Key, Source, remote};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use pyo3::{PyTraverseError, PyVisit};

use crate::calls::{Calls, is_none_collecting};
use crate::deferred::Deferred;

/// `errno(3)`: an error of input or output; a closed file; no threads; a wait that may not end; the process is ending.
pub(crate) const EIO: i32 = 5;
pub(crate) const EBADF: i32 = 9;
pub(crate) const EAGAIN: i32 = 11;
pub(crate) const EDEADLK: i32 = 35;
pub(crate) const ESHUTDOWN: i32 = 108;

/// Numbers of devices that are none of the system's begin here.
pub(crate) const DEVICE_MIN: u64 = (1 << 32) + 1;

/// An object: its identity, and the function that reads it.
pub(crate) struct Object {
    pub(crate) name: Arc<str>,
    pub(crate) version: Arc<str>,
    pub(crate) bytes: u64,
    pub(crate) device: u64,
    pub(crate) requests: u32,
    references: Deferred<Py<References>>,
    /// To the same. None once the collector is about to take them apart. Locked with the interpreter held.
    alive: Mutex<Deferred<Py<PyWeakrefReference>>>,
}

/// The objects of Python that a source holds, as one object that the collector sees.
#[pyclass(frozen, weakref, module = "forerun")]
struct References {
    /// Locked with the interpreter held. Nothing is called or dropped under it: that may run Python code.
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// None once the collector took it.
    function: Option<Py<PyAny>>,
    /// The last calls that failed, of different places: one for each request that may be under way at most. Each
    /// explains all reads that it fails.
    failures: Vec<Failure>,
}

struct Failure {
    range: Range<u64>,
    number: i32,
    exception: Py<PyBaseException>,
}

impl Failure {
    /// Whether the call was for bytes of this range.
    fn is_of(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }
}

/// The objects of an engine that had a call that failed.
#[derive(Debug, Default)]
pub(crate) struct Failed(Mutex<Vec<Weak<Object>>>);

impl Failed {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Object>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, object: &Arc<Object>) {
        let added = Arc::downgrade(object);
        let mut objects = self.lock();
        objects.retain(|object| object.strong_count() > 0 && !object.ptr_eq(&added));
        objects.push(added);
    }

    /// An exception with this number in this range, of another file with the same object.
    fn of_another(
        &self,
        py: Python<'_>,
        object: &Object,
        number: i32,
        range: &Range<u64>,
    ) -> Option<Py<PyBaseException>> {
        let objects: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        let is_same = |of: &&Arc<Object>| of.name == object.name && of.version == object.version;
        let find = |of: &Arc<Object>| {
            let references = of.references(py)?;
            let held = references.get().held();
            held.cause(py, number, range)
        };
        objects.iter().rev().filter(is_same).find_map(find)
    }
}

impl Held {
    /// The exception with this number of the first call in this range.
    fn cause(
        &self,
        py: Python<'_>,
        number: i32,
        range: &Range<u64>,
    ) -> Option<Py<PyBaseException>> {
        let failures = self.failures.iter();
        let failures = failures.filter(|it| it.number == number && it.is_of(range));
        let first = failures.min_by_key(|failure| failure.range.start)?;
        Some(first.exception.clone_ref(py))
    }
}

impl References {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl References {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // It may have come out of the middle of a change.
        let Ok(held) = self.held.try_lock() else {
            return Ok(());
        };
        visit.call(&held.function)?;
        let mut failures = held.failures.iter();
        failures.try_for_each(|failure| visit.call(&failure.exception))
    }

    fn __clear__(&self) {
        let before = mem::take(&mut *self.held());
        drop(before);
    }
}

fn reference_to(references: &Bound<'_, References>) -> PyResult<Deferred<Py<PyWeakrefReference>>> {
    Ok(Deferred::new(PyWeakrefReference::new(references)?.unbind()))
}

impl Object {
    pub(crate) fn new(
        function: Bound<'_, PyAny>,
        (name, version): (&str, &str),
        bytes: u64,
        device: u64,
        requests: u32,
    ) -> PyResult<Self> {
        let held = Mutex::new(Held {
            function: Some(function.clone().unbind()),
            failures: Vec::new(),
        });
        let references = Bound::new(function.py(), References { held })?;
        Ok(Self {
            name: name.into(),
            version: version.into(),
            bytes,
            device,
            requests,
            alive: Mutex::new(reference_to(&references)?),
            references: Deferred::new(references.unbind()),
        })
    }

    /// None once the collector is about to take them apart.
    fn references<'py>(&self, py: Python<'py>) -> Option<Bound<'py, References>> {
        let alive = self.alive().clone_ref(py);
        alive.bind(py).upgrade()?;
        Some(self.references.bind(py).clone())
    }

    fn alive(&self) -> MutexGuard<'_, Deferred<Py<PyWeakrefReference>>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a read by a handle that is open: where a finalizer kept its garbage, the function is whole, and called again.
    pub(crate) fn renew(&self, py: Python<'_>) -> PyResult<()> {
        if self.references(py).is_some() {
            return Ok(());
        }
        let renewed = reference_to(self.references.bind(py))?;
        if is_none_collecting() {
            let before = mem::replace(&mut *self.alive(), renewed);
            drop(before);
        }
        Ok(())
    }

    pub(crate) fn function(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let references = self.references(py)?;
        let held = references.get().held();
        held.function
            .as_ref()
            .map(|function| function.clone_ref(py))
    }

    /// The exception of a call as a number; it is kept for the reader.
    pub(crate) fn failed(
        self: &Arc<Self>,
        py: Python<'_>,
        range: Range<u64>,
        error: PyErr,
        failed: &Failed,
    ) -> i32 {
        let exception = error.into_value(py);
        let number = exception.bind(py).getattr("errno");
        let number = number.and_then(|number| number.extract());
        let number = number.ok().filter(|number| *number > 0).unwrap_or(EIO);
        drop(self.take_failures(py, |failure| failure.is_of(&range)));
        if let Some(references) = self.references(py) {
            let failure = Failure {
                range,
                number,
                exception,
            };
            let before = {
                let mut held = references.get().held();
                held.failures.push(failure);
                let is_full = held.failures.len() > self.requests as usize;
                is_full.then(|| held.failures.remove(0))
            };
            drop(before);
            failed.add(self);
        }
        number
    }

    /// A call for this range went well: an exception in it explains nothing any more.
    pub(crate) fn succeeded(&self, py: Python<'_>, range: Range<u64>) {
        let is_of_it = |failure: &Failure| range.contains(&failure.range.start);
        drop(self.take_failures(py, is_of_it));
    }

    /// Takes those out, for the caller to drop: that may run Python code.
    fn take_failures(&self, py: Python<'_>, is_it: impl Fn(&Failure) -> bool) -> Vec<Failure> {
        let Some(references) = self.references(py) else {
            return Vec::new();
        };
        let mut held = references.get().held();
        let failures = mem::take(&mut held.failures).into_iter();
        let (taken, left) = failures.partition(is_it);
        held.failures = left;
        taken
    }

    /// Makes the exception of the first call with this number in a range the cause of its reader's. It stays: other
    /// readers may wait for the same bytes.
    pub(crate) fn explain(
        &self,
        py: Python<'_>,
        error: PyErr,
        number: i32,
        range: &Range<u64>,
        failed: Option<&Failed>,
    ) -> PyErr {
        let own = self.references(py);
        let own = own.and_then(|own| own.get().held().cause(py, number, range));
        let another = || failed?.of_another(py, self, number, range);
        if let Some(cause) = own.or_else(another) {
            let cause = PyErr::from_value(cause.into_bound(py).into_any());
            error.set_cause(py, Some(cause));
        }
        error
    }

    /// Shows the collector the references, as those of the one handle that calls this.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.references)
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

/// An object as an engine reads it.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) object: Arc<Object>,
    pub(crate) calls: Arc<Calls>,
}

impl Source for Fetched {
    fn key(&self) -> Key {
        Key::Object {
            name: self.object.name.clone(),
            version: self.object.version.clone(),
        }
    }

    fn device(&self) -> Option<u64> {
        Some(self.object.device)
    }

    fn is_served(&self) -> bool {
        true
    }

    fn requests_max(&self) -> Option<u32> {
        Some(self.object.requests)
    }

    /// As objects read by HTTP, and as many servers as there may be requests.
    fn profile(&self) -> Option<Profile> {
        remote::profile(self.object.requests)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.object.bytes)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let left = usize::try_from(self.object.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let stop = target.bytes().min(left);
        if stop <= skip {
            return Ok(skip);
        }
        let (start, end) = (offset + skip as u64, offset + stop as u64);
        let bytes = self.calls.ask(self.object.clone(), start, end);
        let bytes = bytes.map_err(io::Error::from_raw_os_error)?;
        target.fill(skip, stop, |at, memory| {
            memory.copy_from_slice(&bytes[at - skip..][..memory.len()]);
        });
        Ok(stop)
    }
}
