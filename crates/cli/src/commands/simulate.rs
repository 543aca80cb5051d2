//! `forerun simulate`: presets over a trace or a workload, on modelled disks, in virtual time.
//!
//! ```text
//! args -> disk, input -> grid of runs -> threads -> rows
//! ```
//!
//! The grid is presets by disks by cache sizes; runs share nothing but the input, so as many go
//! at once as there are threads, and the rows come in the order of the grid. Grid and
//! runs are `forerun-sim`'s; errors of the input are found before the first one.

mod disk;
mod input;
mod plan;
mod row;
mod validate;

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use forerun_sim::simulate::grid::GridRun;
use indicatif::ProgressBar;
use serde_json::{Map, Value};

use crate::args::Simulate;
use crate::failure::Failure;
use crate::progress;
use input::NamedInput;
use row::Row;

/// Runs the command.
///
/// # Errors
/// A trace, a device or numbers that cannot be used.
pub fn run(args: &Simulate, out: &mut dyn Write) -> Result<(), Failure> {
    if args.validate.is_some() {
        return validate::run(args, out);
    }
    let disk = disk::disk(args)?;
    let bar = progress::steps_without_end("requests");
    let input = NamedInput::new(args, &disk, bar)?;
    let grid = plan::grid(args, &input, &disk)?;
    let runs = plan::runs(args, &input, &grid)?;
    let requests = input.input.requests();
    progress::begin_again(&input.bar, requests.saturating_mul(runs.len() as u64));
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((at, run)) = take(&next, &runs) {
            let row = Row::of(run, &grid, args, &input.name);
            if !input.input.is_read_by(&run.preset) {
                input.bar.inc(requests);
            }
            match rows.lock() {
                Ok(mut rows) => rows.push((at, row)),
                Err(_) => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..(args.threads as usize).min(runs.len()) {
            scope.spawn(work);
        }
        work();
    });
    input.bar.finish_and_clear();
    let mut rows = rows.into_inner().unwrap_or_default();
    rows.sort_by_key(|(at, _)| *at);
    let rows = rows.into_iter().map(|(_, row)| row);
    let mut rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
    row::compare(&mut rows);
    row::print(&rows, args.format, out)
}

/// The row of flags that ask for one run, which shows no progress.
///
/// # Errors
/// A trace, a device or numbers that cannot be used.
pub fn row(args: &Simulate) -> Result<Map<String, Value>, Failure> {
    let disk = disk::disk(args)?;
    let input = NamedInput::new(args, &disk, ProgressBar::hidden())?;
    let grid = plan::grid(args, &input, &disk)?;
    let runs = plan::runs(args, &input, &grid)?;
    let [run] = &runs[..] else {
        let why = format!("{} runs where there must be one", runs.len());
        return Err(Failure::Usage(why));
    };
    Ok(Row::of(run, &grid, args, &input.name)?.object())
}

/// The next run that no thread has taken yet.
fn take<'a>(next: &AtomicUsize, runs: &'a [GridRun]) -> Option<(usize, &'a GridRun)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    runs.get(at).map(|run| (at, run))
}
