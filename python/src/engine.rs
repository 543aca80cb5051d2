//! The class `Engine`: one memory limit and one set of decisions for all files opened with it.
//!
//! The driver starts at the first use, and once more in a child process: see [`fork`](crate::fork).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forerun_core::Bytes;
use forerun_io::{Driver, Error, Reader};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::file::Handle;
use crate::fork::OfThisProcess;
use crate::ledger;
use crate::settings::{Choices, OFFSET_MAX, count};

/// See the [module](self).
#[pyclass(frozen, weakref, module = "forerun")]
pub(crate) struct Engine {
    choices: Choices,
    /// The memory limit: that of the choices, or a lower one, which a child process keeps.
    limit: AtomicU64,
    /// Locked with the interpreter held, and never across a release of it.
    driver: Mutex<Option<OfThisProcess<Arc<Driver>>>>,
}

impl Engine {
    /// The driver of this process.
    pub(crate) fn driver(&self) -> PyResult<Arc<Driver>> {
        let mut slot = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(driver) = slot.as_ref().and_then(OfThisProcess::get) {
            return Ok(driver.clone());
        }
        let driver = Arc::new(self.choices.start()?);
        let limit = self.limit.load(Ordering::Relaxed);
        if limit < self.choices.memory {
            driver.limit_memory(Bytes(limit)).map_err(errors::of)?;
        }
        *slot = Some(OfThisProcess::new(driver.clone()));
        Ok(driver)
    }
}

/// The handle of a `forerun.File`, or of another class that has one.
fn handle_of<'py>(file: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Handle>> {
    if let Ok(handle) = file.cast::<Handle>() {
        return Ok(handle.clone());
    }
    let handle = file.getattr("_handle").ok();
    handle.and_then(|h| h.cast_into().ok()).ok_or_else(|| {
        let kind = file.get_type();
        PyTypeError::new_err(format!("file must be a forerun.File, not {kind}"))
    })
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (memory=None, preset="forerun", *, profile=None, emulate=None))]
    fn new(
        py: Python<'_>,
        memory: Option<&Bound<'_, PyAny>>,
        preset: &str,
        profile: Option<&Bound<'_, PyAny>>,
        emulate: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<Self> {
        let usual = MEMORY.into_pyobject(py)?.into_any();
        let choices = Choices::new(memory.unwrap_or(&usual), preset, profile, emulate)?;
        Ok(Self {
            limit: AtomicU64::new(choices.memory),
            choices,
            driver: Mutex::default(),
        })
    }

    /// The memory in bytes that it was made with.
    #[getter]
    fn memory(&self) -> u64 {
        self.choices.memory
    }

    /// The memory limit in bytes, as of now.
    #[getter]
    fn memory_limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The name of the preset.
    #[getter]
    fn preset(&self) -> &'static str {
        self.choices.preset.name
    }

    /// What a device costs, if it was given.
    #[getter]
    fn profile<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.choices.profile(py)
    }

    /// The emulated device as (switching_ns, rate_bytes_per_second), if there is one.
    #[getter]
    fn emulate(&self) -> Option<(u64, u64)> {
        self.choices.emulate
    }

    /// Lowers the memory limit, or raises it up to that of the construction.
    fn limit_memory(&self, py: Python<'_>, memory: &Bound<'_, PyAny>) -> PyResult<()> {
        let memory = count("memory", memory, u64::MAX)?;
        let driver = self.driver()?;
        py.detach(|| driver.limit_memory(Bytes(memory)))
            .map_err(errors::of)?;
        self.limit.store(memory, Ordering::Relaxed);
        Ok(())
    }

    /// Announces reads, in the order in which they will come.
    fn hint(&self, py: Python<'_>, order: &Bound<'_, PyAny>) -> PyResult<usize> {
        let driver = self.driver()?;
        let mut announced: Vec<(Arc<Reader>, u64, u64)> = Vec::new();
        for item in order.try_iter()? {
            let item = item?;
            let (file, offset, length): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) =
                item.extract()?;
            let handle = handle_of(&file)?;
            let handle = handle.get();
            if !std::ptr::eq(handle.engine().get(), self) {
                return Err(errors::value(format!(
                    "hint of {file}: must be a file of this engine"
                )));
            }
            let offset = count("offset", &offset, OFFSET_MAX)?;
            let length = count("length", &length, OFFSET_MAX)?;
            announced.push((handle.reader(py)?, offset, length));
        }
        let taken = py.detach(|| {
            let order = announced.iter();
            let order = order.map(|(reader, offset, length)| (&**reader, *offset, *length));
            let taken = driver.hint(order);
            drop(announced);
            taken
        });
        match taken {
            Err(Error::HintsFull { .. }) => Ok(0),
            taken => taken.map_err(errors::of),
        }
    }

    /// The counters, as of now.
    fn ledger<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let driver = self.driver()?;
        let counters = py.detach(|| driver.ledger());
        ledger::dict(py, counters)
    }

    fn __repr__(&self) -> String {
        let Choices { memory, preset, .. } = &self.choices;
        format!("Engine(memory={memory}, preset={:?})", preset.name)
    }
}

impl Drop for Engine {
    /// The driver waits for its requests in flight, so the interpreter is released.
    fn drop(&mut self) {
        let slot = self.driver.get_mut();
        let driver = slot.unwrap_or_else(PoisonError::into_inner).take();
        if driver.is_some() {
            Python::try_attach(|py| py.detach(|| drop(driver)));
        }
    }
}

/// The memory of an engine if none is named: 256 MiB.
const MEMORY: u64 = 256 << 20;
