//! Sweeps: the runs of a plan, each of which any process can make, and the file of their rows.
//!
//! Which run goes where is decided in Python, on an executor of the program's; the plan, a run and the file are those of
//! `forerun sweep`. A run travels as text.

use std::collections::BTreeMap;
use std::path::PathBuf;

use forerun::failure::Failure;
use forerun::files;
use forerun::flags::{Own, OwnMethod};
use forerun::sweep::cells::{self, Cell, Stamp};
use forerun::sweep::{plan, rows};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors::value;
use crate::own::{Registered, caught};
use crate::release::released;
use crate::simulate::{check_file, failed};

/// Reclaim methods of the program's, each with a digest of its source, by the names that a plan has for them.
type Methods = BTreeMap<String, (Py<PyAny>, String)>;

/// Methods that runs can use while the others live.
fn registered(methods: Methods) -> (Own, Vec<Registered>) {
    let (mut own, mut all) = (Own::new(), Vec::new());
    for (name, (class, digest)) in methods {
        let registered = Registered::new(class);
        if let Some(choice) = registered.reclaim() {
            own.insert(name, OwnMethod { choice, digest });
        }
        all.push(registered);
    }
    (own, all)
}

/// The plan's runs as (key, run), and the stamp of its rows; `program` is the file that runs them.
#[pyfunction]
pub(crate) fn planned(
    py: Python<'_>,
    plan_file: PathBuf,
    program: PathBuf,
    methods: Methods,
) -> PyResult<(String, Vec<(String, String)>)> {
    check_file(&plan_file)?;
    let (own, _all) = registered(methods);
    let read = || -> Result<_, Failure> {
        let text = files::read_text(&plan_file, plan::BYTES_MAX)?;
        let cells = cells::cells(plan::read(&plan_file, &text, &own)?, &own)?;
        Ok((Stamp::of(&text, &program), cells))
    };
    let (stamp, cells) = released(py, read)?.map_err(|failure| failed(&failure))?;
    let text = |cell: &Cell| Ok((cell.key.clone(), serde_json::to_string(cell)?));
    let cells: Result<Vec<_>, serde_json::Error> = cells.iter().map(text).collect();
    let stamp = serde_json::to_string(&stamp).map_err(value)?;
    Ok((stamp, cells.map_err(value)?))
}

fn parsed(cell: &str, stamp: &str) -> PyResult<(Cell, Stamp)> {
    let cell = serde_json::from_str(cell).map_err(value)?;
    Ok((cell, serde_json::from_str(stamp).map_err(value)?))
}

/// Runs one; its row. An exception of a method of the program's makes a row with its message.
#[pyfunction]
pub(crate) fn run_planned(
    py: Python<'_>,
    cell: &str,
    stamp: &str,
    methods: Methods,
) -> PyResult<String> {
    let (cell, stamp) = parsed(cell, stamp)?;
    let (own, _all) = registered(methods);
    let row = released(py, || caught(|| cell.run(&stamp, &own)))?;
    let row = row.or_else(|error| match error.is_instance_of::<PyException>(py) {
        true => Ok(cell.failed(&error.to_string(), &stamp)),
        false => Err(error),
    })?;
    Ok(Value::Object(row).to_string())
}

/// The row of a run that failed.
#[pyfunction]
pub(crate) fn failed_planned(cell: &str, stamp: &str, why: &str) -> PyResult<String> {
    let (cell, stamp) = parsed(cell, stamp)?;
    Ok(Value::Object(cell.failed(why, &stamp)).to_string())
}

/// A file of rows, which no other sweep writes to meanwhile.
#[pyclass(frozen)]
pub(crate) struct Rows(rows::Rows);

#[pymethods]
impl Rows {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let rows = rows::Rows::open(&path);
        rows.map(Self).map_err(|failure| failed(&failure))
    }

    /// Whether it has the result of a run.
    fn has(&self, key: &str) -> bool {
        self.0.done.contains(key)
    }

    /// Appends a row.
    fn append(&self, row: &str) -> PyResult<()> {
        let row = serde_json::from_str(row).map_err(value)?;
        self.0.append(row).map_err(|failure| failed(&failure))
    }
}
