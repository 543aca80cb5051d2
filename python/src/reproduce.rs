//! `reproduce`: the claims of a paper measured again, a dictionary for each.
//!
//! An interrupt ends the call at once, and its threads after the run that each has begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forerun_lab::{self as lab, Broken, Figures, Finding, Wanted, rows, threads};
use forerun_sim::hinted::host::Notice;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::value;
use crate::settings::names;
use crate::waiting::interruptible;

/// The claims of a paper (li04, li05, wu10, kimbrel96, baek09), measured again on modelled disks.
///
/// A dictionary for each claim: paper, id, claim, published and measured figures, verdict (met;
/// met, fitted; differs), the fit, and a note. `only` names a claim or several. A `sample` has
/// fewer and shorter runs and the same verdicts. All processors work; a whole paper takes minutes.
#[pyfunction]
#[pyo3(signature = (paper, *, only=None, sample=false))]
pub(crate) fn reproduce<'py>(
    py: Python<'py>,
    paper: &str,
    only: Option<&Bound<'py, PyAny>>,
    sample: bool,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let found = lab::find(paper).map_err(|error| value(format!("{paper}: {error}")))?;
    let broken = |error: &Broken| PyRuntimeError::new_err(error.to_string());
    let claims = found.claims().map_err(|error| broken(&error))?;
    let known: Vec<&str> = claims.claims.iter().map(|one| one.id.as_str()).collect();
    let only = only.map_or(Ok(Vec::new()), |given| names("only", given))?;
    if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        return Err(value(format!("only={unknown:?}: {paper} has {known}")));
    }
    let wanted = Wanted {
        notices: vec![Notice::default()],
        only,
        is_sample: sample,
        ..Wanted::default()
    };
    let goes_on = Arc::new(AtomicBool::new(true));
    let work = {
        let goes_on = goes_on.clone();
        move || {
            found.reproduce(&wanted, &mut |traces, jobs| {
                threads::perform(traces, &jobs, &|| goes_on.load(Ordering::Relaxed))
            })
        }
    };
    let all = interruptible(py, work).inspect_err(|_| goes_on.store(false, Ordering::Relaxed))?;
    let all = all.map_err(|error| broken(&error))?;
    let row = |finding| row(py, paper, finding);
    all.findings.iter().map(row).collect()
}

fn row<'py>(py: Python<'py>, paper: &str, finding: &Finding) -> PyResult<Bound<'py, PyDict>> {
    let one = finding.measured.first();
    let row = PyDict::new(py);
    row.set_item("paper", paper)?;
    row.set_item("id", &finding.claim.id)?;
    row.set_item("claim", &finding.claim.what)?;
    row.set_item("published", numbers(finding.claim.published().as_ref()))?;
    row.set_item("measured", numbers(one.map(|one| &one.figures)))?;
    row.set_item("verdict", one.map(|one| one.verdict.name()))?;
    row.set_item("fitted", rows::fitted(finding))?;
    row.set_item("note", rows::note(finding))?;
    Ok(row)
}

/// A list also of one number, so that a column has one type.
fn numbers(figures: Option<&Figures>) -> Option<Vec<f64>> {
    figures.map(|figures| figures.all().to_vec())
}
