//! Settings as Python gives them: sizes as integers of bytes or with a unit, a preset by its name,
//! and the costs of a device as the tables that `forerun profile` writes, read by `tomllib`.
//!
//! ```python
//! {"switching": [{"distance_bytes": 0, "switching_ns": 8_000_000}],
//!  "rate": [{"location_bytes": 0, "rate_bytes_per_second": 80_000_000}], "servers": 1}
//! ```

use forerun_core::preset::Preset;
use forerun_core::{Bytes, Nanos, Profile, Settings};
use forerun_emulated::Emulation;
use forerun_io::emulate::Emulate;
use forerun_io::{Config, Driver};
use forerun_surface::quantity::parse_size;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};

use crate::errors;

/// The largest offset of `pread(2)`, and the largest length.
pub(crate) const OFFSET_MAX: u64 = i64::MAX as u64;

/// An integer from 0 to `most`.
///
/// # Errors
/// `TypeError` if it is none, `ValueError` with its name and value if it is not in the range.
pub(crate) fn count(name: &str, given: &Bound<'_, PyAny>, most: u64) -> PyResult<u64> {
    // Integers of NumPy are none of Python's, and have `__index__`.
    let number = match given.cast::<PyInt>() {
        Ok(number) => number.clone().into_any(),
        Err(_) => given.call_method0("__index__").map_err(|_| {
            let kind = given.get_type();
            PyTypeError::new_err(format!("{name} must be an int, not {kind}"))
        })?,
    };
    let accepted = number.extract().ok().filter(|number| *number <= most);
    let refused = || errors::value(format!("{name} of {given}: must lie from 0 to {most}"));
    accepted.ok_or_else(refused)
}

/// A size: an integer of bytes, or a text with a unit.
///
/// # Errors
/// `TypeError` if it is neither, `ValueError` with its name and value if it is no such number.
pub(crate) fn size(name: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(text) = given.cast::<PyString>() {
        let size = parse_size(text.to_str()?);
        let size = size.map_err(|e| errors::value(format!("{name} of {text}: {e}")))?;
        return Ok(size.0);
    }
    count(name, given, u64::MAX).map_err(|error| {
        match error.is_instance_of::<PyTypeError>(given.py()) {
            true => {
                let kind = given.get_type();
                let wanted = "must be an int of bytes or a size as \"1GiB\"";
                PyTypeError::new_err(format!("{name} {wanted}, not {kind}"))
            }
            false => error,
        }
    })
}

/// A name, or several.
///
/// # Errors
/// `TypeError` if it is neither.
pub(crate) fn names(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(one) = given.extract::<String>() {
        return Ok(vec![one]);
    }
    let refused = |_| {
        let kind = given.get_type();
        PyTypeError::new_err(format!("{name} must be a name or several, not {kind}"))
    };
    let several = given.try_iter().map_err(refused)?;
    several
        .map(|one| one?.extract().map_err(|e: PyErr| refused(e)))
        .collect()
}

/// A distance from a place in a file.
///
/// # Errors
/// `TypeError` if it is no integer, `ValueError` if no file is as long.
pub(crate) fn offset_from(given: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Ok(offset) = given.extract::<i64>() {
        return Ok(offset);
    }
    // Integers of other kinds, and those out of range.
    count("offset", given, OFFSET_MAX).map(u64::cast_signed)
}

#[derive(FromPyObject, IntoPyObject)]
struct SwitchingPoint {
    #[pyo3(item)]
    distance_bytes: u64,
    #[pyo3(item)]
    switching_ns: u64,
}

#[derive(FromPyObject, IntoPyObject)]
struct RatePoint {
    #[pyo3(item)]
    location_bytes: u64,
    #[pyo3(item)]
    rate_bytes_per_second: u64,
}

/// The settings of an engine, in this process or another.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) memory: u64,
    pub(crate) preset: &'static Preset,
    pub(crate) profile: Option<Profile>,
    /// A device to emulate.
    pub(crate) emulate: Option<Emulation>,
}

impl Choices {
    /// Checks all of them, without an engine.
    ///
    /// # Errors
    /// `ValueError` with the value and the range.
    pub(crate) fn new(
        memory: &Bound<'_, PyAny>,
        preset: &str,
        profile: Option<&Bound<'_, PyAny>>,
        emulate: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let emulate = emulate.map(|given| {
            let (switching, rate): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                given.extract().map_err(|_| {
                    let wanted = "must be (nanoseconds for a switch, bytes per second)";
                    PyTypeError::new_err(format!("emulate of {given}: {wanted}"))
                })?;
            let switching = count("switching_ns of emulate", &switching, u64::MAX)?;
            let rate = count("bytes_per_second of emulate", &rate, u64::MAX)?;
            Emulation::new(Nanos(switching), rate, 1).map_err(errors::value)
        });
        let choices = Self {
            memory: size("memory", memory)?,
            preset: forerun_baselines::preset(preset).map_err(errors::value)?,
            profile: profile.map(profile_of).transpose()?,
            emulate: emulate.transpose()?,
        };
        choices.settings()?;
        Ok(choices)
    }

    fn settings(&self) -> PyResult<Settings> {
        self.preset
            .settings(Bytes(self.memory))
            .map_err(errors::value)
    }

    /// Checks a limit that an engine has from its start on.
    ///
    /// # Errors
    /// `ValueError` with the value and the range.
    pub(crate) fn check_limit(&self, memory: u64) -> PyResult<()> {
        if memory > self.memory {
            let most = format!("must be at most {} bytes", self.memory);
            return Err(errors::value(format!("memory of {memory} bytes: {most}")));
        }
        let settings = self.preset.settings(Bytes(memory));
        settings.map(drop).map_err(errors::value)
    }

    /// Starts an engine.
    ///
    /// # Errors
    /// `OSError` if the system gives no memory, thread or descriptor.
    pub(crate) fn start(&self) -> PyResult<Driver> {
        let mut config = Config::new(self.settings()?);
        config.profile.clone_from(&self.profile);
        config.lab.emulate = self
            .emulate
            .map(|device| Box::new(device) as Box<dyn Emulate>);
        Driver::new(config).map_err(errors::of)
    }

    /// The profile as it was given.
    pub(crate) fn profile<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(profile) = &self.profile else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        let points = profile.switching_points().iter();
        let points = points.map(|(distance, cost)| SwitchingPoint {
            distance_bytes: distance.0,
            switching_ns: cost.0,
        });
        dict.set_item("switching", points.collect::<Vec<_>>())?;
        let points = profile.rate_points().iter();
        let points = points.map(|(location, rate)| RatePoint {
            location_bytes: location.0,
            rate_bytes_per_second: *rate,
        });
        dict.set_item("rate", points.collect::<Vec<_>>())?;
        dict.set_item("servers", profile.servers())?;
        Ok(Some(dict))
    }
}

fn profile_of(given: &Bound<'_, PyAny>) -> PyResult<Profile> {
    let refused = |error: PyErr| {
        errors::value(format!(
            "profile: must have the keys switching and rate, as `forerun profile` writes them \
             ({error})"
        ))
    };
    let given = given.cast::<PyDict>().map_err(|e| refused(e.into()))?;
    let part = |name| given.as_any().get_item(name).map_err(refused);
    let switching: Vec<SwitchingPoint> = part("switching")?.extract().map_err(refused)?;
    let rate: Vec<RatePoint> = part("rate")?.extract().map_err(refused)?;
    let switching = switching.iter();
    let rate = rate.iter();
    let profile = Profile::new(
        switching
            .map(|point| (Bytes(point.distance_bytes), Nanos(point.switching_ns)))
            .collect(),
        rate.map(|point| (Bytes(point.location_bytes), point.rate_bytes_per_second))
            .collect(),
    );
    let profile = profile.map_err(|e| errors::value(format!("profile: {e}")))?;
    match given.get_item("servers")? {
        None => Ok(profile),
        Some(servers) => {
            let servers = count("servers", &servers, u64::MAX)?;
            let profile = profile.with_servers(u32::try_from(servers).unwrap_or(u32::MAX));
            profile.map_err(|e| errors::value(format!("profile: {e}")))
        }
    }
}
