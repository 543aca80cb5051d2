//! The class `Engine`: one memory limit and one set of decisions for all files opened with it.
//!
//! The driver starts at the first use, and once more in a child process: see [`fork`](crate::fork).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use forerun_core::Bytes;
use forerun_io::Driver;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::announced::Announced;
use crate::calls::Calls;
use crate::errors;
use crate::fork::OfThisProcess;
use crate::hint;
use crate::ledger;
use crate::release::{begin_the_end, is_ending, is_over, over, released, wait_for_the_others};
use crate::settings::{Choices, size};
use crate::stores::Stores;

/// One memory limit and one set of decisions for all files opened with it.
///
/// `memory` is in bytes or a size as "1GiB", 256 MiB if not given. `preset` is a name of `forerun
/// list presets`. `profile` has the costs of a device, as `tomllib` reads them from a file of
/// `forerun profile`; they are estimated from reads if not given. `emulate` puts a slow device in
/// front of the real one, as (nanoseconds for a switch, bytes per second).
#[pyclass(frozen, weakref, module = "forerun")]
pub(crate) struct Engine {
    choices: Choices,
    /// The memory limit: that of the choices, or a lower one, which a child process keeps.
    limit: AtomicU64,
    /// Locked with the interpreter held, and never across a release of it.
    running: Mutex<Option<OfThisProcess<Arc<Running>>>>,
}

impl Engine {
    /// The driver of this process, if there is one.
    pub(crate) fn running_now(&self) -> Option<Arc<Running>> {
        let slot = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().and_then(OfThisProcess::get).cloned()
    }

    /// The driver of this process, and its connections.
    pub(crate) fn running(&self) -> PyResult<Arc<Running>> {
        if is_over() {
            return Err(over());
        }
        let mut slot = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = slot.as_ref().and_then(OfThisProcess::get) {
            return Ok(running.clone());
        }
        let driver = self.choices.start()?;
        let limit = self.limit.load(Ordering::Relaxed);
        if limit < self.choices.memory {
            driver.limit_memory(Bytes(limit)).map_err(errors::of)?;
        }
        let stores = Stores::default();
        let running = Arc::new(Running {
            driver,
            stores,
            calls: Arc::default(),
            announced: Announced::default(),
        });
        if is_ending() {
            // No thread calls functions any more.
            running.calls.close();
        }
        let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        engines.retain(|engine| engine.get().is_some_and(|e| e.strong_count() > 0));
        engines.push(OfThisProcess::new(Arc::downgrade(&running)));
        *slot = Some(OfThisProcess::new(running.clone()));
        Ok(running)
    }
}

/// The parts of an engine that no child process may use.
pub(crate) struct Running {
    pub(crate) driver: Driver,
    pub(crate) stores: Stores,
    pub(crate) calls: Arc<Calls>,
    pub(crate) announced: Announced,
}

impl Drop for Running {
    /// The driver, which is dropped next, waits for its requests in flight.
    fn drop(&mut self) {
        self.calls.close();
    }
}

/// The engines that run. Locked as the slots are.
static ENGINES: Mutex<Vec<OfThisProcess<Weak<Running>>>> = Mutex::new(Vec::new());

/// How long the end of the process waits for requests in flight, and for threads that wait for
/// them: as long as any disk takes. Others are left behind; no thread of an engine runs Python
/// code.
const END_MAX: Duration = Duration::from_millis(200);

/// Ends all engines of this process, for `atexit`, and calls the threads back that wait for them.
#[pyfunction]
pub(crate) fn finish_engines(py: Python<'_>) {
    begin_the_end();
    let engines = {
        let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *engines)
    };
    let engines = engines.iter().filter_map(OfThisProcess::get);
    let engines: Vec<_> = engines.filter_map(Weak::upgrade).collect();
    py.detach(|| {
        engines.iter().for_each(|engine| engine.calls.close());
        let until = Instant::now() + END_MAX;
        for engine in engines {
            let left = until.saturating_duration_since(Instant::now());
            // Without a journal, nothing of it can fail.
            let _ = engine.driver.finish_within(left);
        }
        wait_for_the_others(Instant::now() + END_MAX);
    });
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
        emulate: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let usual = MEMORY.into_pyobject(py)?.into_any();
        let choices = Choices::new(memory.unwrap_or(&usual), preset, profile, emulate)?;
        Ok(Self {
            limit: AtomicU64::new(choices.memory),
            choices,
            running: Mutex::default(),
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

    /// The costs of a device, if they were given.
    #[getter]
    fn profile<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.choices.profile(py)
    }

    /// The emulated device as (switching_ns, rate_bytes_per_second), if there is one.
    #[getter]
    fn emulate(&self) -> Option<(u64, u64)> {
        let device = self.choices.emulate?;
        Some((device.switching().0, device.bytes_per_second()))
    }

    /// Lowers the memory limit, in bytes or as "1GiB", or raises it up to that of the construction.
    fn limit_memory(&self, py: Python<'_>, memory: &Bound<'_, PyAny>) -> PyResult<()> {
        let memory = size("memory", memory)?;
        match self.running_now() {
            Some(running) => {
                released(py, || running.driver.limit_memory(Bytes(memory)))?.map_err(errors::of)?;
            }
            // A child process that reads nothing starts no engine for its limit.
            None => self.choices.check_limit(memory)?,
        }
        self.limit.store(memory, Ordering::Relaxed);
        Ok(())
    }

    /// Announces reads as (file, offset, length), in the order in which they will come.
    ///
    /// `file` is one of `forerun.open`, a path or an address, and a length of None is all the rest
    /// of it. Files of names are opened side by side. Returns how many were taken. The rest can be
    /// announced once half of them has been read. A file that was announced is kept open until
    /// then, unless it is closed; an object that was announced by its address is opened in the
    /// version that it had then, once for each announced read. Announced reads that come to
    /// nothing are warned of once, with the reason.
    fn hint(&self, order: &Bound<'_, PyAny>) -> PyResult<usize> {
        hint::announce(self, order)
    }

    /// The counters, as of now.
    fn ledger<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let running = self.running()?;
        hint::tidy(py, &running)?;
        let counters = released(py, || running.driver.ledger())?;
        ledger::dict(py, counters)
    }

    fn __repr__(&self) -> String {
        let Choices { memory, preset, .. } = &self.choices;
        format!("Engine(memory={memory}, preset={:?})", preset.name)
    }
}

impl Drop for Engine {
    /// The driver waits for its requests in flight, of which a server may never answer one: a
    /// thread does that, which runs no Python code.
    fn drop(&mut self) {
        let slot = self.running.get_mut();
        let Some(running) = slot.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        if let Some(running) = running.get() {
            running.calls.close();
        }
        let thread = thread::Builder::new().name("forerun-end".into());
        // Where no thread can be started, this one waits: the closure is dropped here.
        let _ = thread.spawn(move || drop(running));
    }
}

/// The memory of an engine if none is named: 256 MiB.
const MEMORY: u64 = 256 << 20;
