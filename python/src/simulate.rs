//! `simulate` and `count`: runs of the command line, a row for each.
//!
//! Options are values of the command line's flags as text, and so are refused in its words; rows are its objects of
//! JSON. Python files make the ones of values and dictionaries of the others. The interpreter is released around
//! each run; an interrupt is seen between two.

use std::collections::BTreeMap;
use std::path::Path;

use forerun::args::{Command, Policies, Trace, TraceCommand};
use forerun::commands::{simulate, trace};
use forerun::failure::Failure;
use forerun::flags::{self, COUNT, Flag, Parser, SIMULATE, Values};
use forerun_sim::count::counting::Counter;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::errors::{system, value};
use crate::own::{Registered, caught};
use crate::release::released;

/// Flags that make no rows of objects.
const NONE: [&str; 2] = ["format", "validate"];

/// A failed command.
pub(crate) fn failed(failure: &Failure) -> PyErr {
    match failure {
        Failure::Usage(why) => value(why),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// The options of `simulate`, or of `count`, as (name, default, whether it takes a value, help).
#[pyfunction]
pub(crate) fn options(of: &str) -> Vec<(String, Option<String>, bool, String)> {
    let path = if of == "count" { COUNT } else { SIMULATE };
    let flags = flags::flags(path).into_iter();
    let flags = flags.filter(|flag| !NONE.contains(&flag.name.as_str()));
    let row = |flag: Flag| {
        let name = match flag.name.as_str() {
            // A word of the language.
            "from" => "from_".to_owned(),
            name => name.replace('-', "_"),
        };
        (name, flag.default, flag.takes_value, flag.help)
    };
    flags.map(row).collect()
}

/// A file that is not there is an `OSError` with its number.
pub(crate) fn check_file(path: &Path) -> PyResult<()> {
    std::fs::metadata(path).map_err(|e| system(&e, Some(path)))?;
    Ok(())
}

fn check_files(values: &Values) -> PyResult<()> {
    let named = ["trace", "device-file"].iter();
    let single = named
        .filter_map(|name| values.get(*name))
        .map(String::as_str);
    let merged = values
        .get("merge")
        .into_iter()
        .flat_map(|paths| paths.split(','));
    let mut paths = single.chain(merged).filter(|path| *path != "-");
    paths.try_for_each(|path| check_file(Path::new(path)))
}

/// A simulation whose runs are checked and none of which has been run. `own` is a reclaim method of the program's.
#[pyclass(frozen)]
pub(crate) struct Simulation {
    inner: simulate::Simulation,
    _own: Option<Registered>,
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (values, own=None))]
    fn new(py: Python<'_>, values: Values, own: Option<Py<PyAny>>) -> PyResult<Self> {
        check_files(&values)?;
        let own = own.map(Registered::new);
        let command = Parser::new(SIMULATE).parse(&values);
        let Command::Simulate(mut args) = command.map_err(|refused| value(refused.why))? else {
            return Err(value("no simulation"));
        };
        if let Some(own) = &own {
            args.methods.reclaim = own.reclaim();
        }
        let made = released(py, || caught(|| simulate::Simulation::new(*args, None)))??;
        Ok(Self {
            inner: made.map_err(|failure| failed(&failure))?,
            _own: own,
        })
    }

    /// How many there are.
    #[getter]
    fn runs(&self) -> usize {
        self.inner.runs()
    }

    /// Runs at the same time, as told.
    #[getter]
    fn threads(&self) -> usize {
        self.inner.threads()
    }

    /// Runs one; its row.
    fn row(&self, py: Python<'_>, at: usize) -> PyResult<String> {
        let run = || {
            let object = self.inner.object(at);
            let object = object.unwrap_or(Ok(serde_json::Map::new()));
            object
                .map(|object| Value::Object(object).to_string())
                .map_err(failed)
        };
        released(py, || caught(run))??
    }
}

/// The rows of `forerun trace count`; `own` are policies of the program's, by the names that they have among the others.
#[pyfunction]
#[pyo3(signature = (values, policies, own))]
pub(crate) fn counted(
    py: Python<'_>,
    mut values: Values,
    policies: Vec<String>,
    own: BTreeMap<String, Py<PyAny>>,
) -> PyResult<Vec<String>> {
    check_files(&values)?;
    values.remove("policy");
    let command = Parser::new(COUNT).parse(&values);
    let command = command.map_err(|refused| value(refused.why))?;
    let Command::Trace(Trace {
        what: TraceCommand::Count(mut args),
    }) = command
    else {
        return Err(value("no count"));
    };
    let own = own
        .into_iter()
        .map(|(name, class)| (name, Registered::new(class)));
    let own: BTreeMap<String, Registered> = own.collect();
    let mut all = Vec::new();
    for name in policies {
        match own.get(&name).and_then(Registered::policy) {
            Some(choice) => all.push((name, Counter::Policy(choice))),
            None => {
                let named: Policies = name
                    .parse()
                    .map_err(|why| value(format!("--policy {name}: {why}")))?;
                all.extend(named.0);
            }
        }
    }
    args.policy = Policies(all);
    let rows = released(py, || caught(|| trace::count::objects(&args)))??;
    let rows = rows.map_err(|failure| failed(&failure))?;
    Ok(rows
        .into_iter()
        .map(|row| Value::Object(row).to_string())
        .collect())
}
