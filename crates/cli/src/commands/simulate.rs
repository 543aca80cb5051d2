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
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use forerun_core::spec::ChoiceError;
use forerun_sim::simulate::disk::Disk;
use forerun_sim::simulate::grid::GridRun;
use forerun_sim::simulate::input::check_workload;
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};

use crate::args::Simulate;
use crate::failure::Failure;
use crate::flags::nearest_of;
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
    let bar = progress::steps_without_end("requests");
    let simulation = Simulation::new(args.clone(), Some(bar))?;
    let (input, runs) = (&simulation.input, &simulation.runs);
    let requests = input.input.requests();
    progress::begin_again(&input.bar, requests.saturating_mul(runs.len() as u64));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            run.result(&simulation);
            if !input.input.is_read_by(&run.run.preset) {
                input.bar.inc(requests);
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
    row::print(&simulation.rows()?, args.format, out)
}

/// Looks up the names of devices and workloads, without reading an input or making one.
///
/// # Errors
/// A name that there is not; the message begins with its flag.
pub fn check(args: &Simulate) -> Result<(), Failure> {
    disk::disk(args)?;
    match &args.workload {
        Some(text) => check_workload(text).map_err(|e| input::no_workload(text, &e)),
        None => Ok(()),
    }
}

/// Checks that presets can run a trace whose blocks have names, without reading it.
///
/// # Errors
/// A preset that takes addresses, or an order of blocks by their numbers.
pub fn check_named(args: &Simulate, input: &str) -> Result<(), Failure> {
    match disk::disk(args)?.is_unit() {
        true => Ok(()),
        false => plan::check_named(args, input),
    }
}

/// The error of a name, with the nearest names there are.
fn with_nearest(error: &ChoiceError) -> String {
    match error {
        ChoiceError::Unknown { name, known, .. } => {
            let nearest = nearest_of(name, known.iter().copied());
            format!("{error}; the nearest are {nearest}")
        }
        other => other.to_string(),
    }
}

/// Runs that can be tried, over an input that was read: the description of a run of the command line, of a sweep
/// and of Python.
pub struct Simulation {
    args: Simulate,
    disk: Disk,
    input: NamedInput,
    runs: Vec<Run>,
}

/// A run, and its row once it has ended.
struct Run {
    run: GridRun,
    row: OnceLock<Result<Row, Failure>>,
}

impl Run {
    fn result(&self, simulation: &Simulation) -> &Result<Row, Failure> {
        let run = || {
            let (args, input) = (&simulation.args, &simulation.input);
            let grid = plan::grid(args, input, &simulation.disk);
            Row::of(&self.run, &grid, args, &input.name)
        };
        self.row.get_or_init(run)
    }
}

impl Simulation {
    /// Reads the input and checks all runs; `bar`, if there is one, moves with the requests that are read.
    ///
    /// # Errors
    /// A trace, a device or numbers that cannot be used.
    pub fn new(args: Simulate, bar: Option<ProgressBar>) -> Result<Self, Failure> {
        let bar = bar.unwrap_or_else(ProgressBar::hidden);
        let disk = disk::disk(&args)?;
        let input = NamedInput::new(&args, &disk, bar)?;
        let runs = plan::runs(&args, &input, &plan::grid(&args, &input, &disk))?;
        let runs = runs.into_iter().map(|run| Run {
            run,
            row: OnceLock::new(),
        });
        Ok(Self {
            runs: runs.collect(),
            args,
            disk,
            input,
        })
    }

    /// Number of runs: presets by numbers of disks by cache sizes, in this order.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Runs at the same time, as told.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.args.threads as usize
    }

    /// The columns of a run, which is run unless it was; with it those of reverse aggressive that it is compared
    /// with. None beyond the last.
    ///
    /// # Errors
    /// A run that failed.
    pub fn object(&self, at: usize) -> Option<Result<Map<String, Value>, &Failure>> {
        let run = self.runs.get(at)?;
        Some(run.result(self).as_ref().map(|row| {
            let mut object = row.object();
            let over = self.over_reverse(run, row);
            object.insert(row::OVER_REVERSE.to_owned(), json!(over));
            object
        }))
    }

    /// Elapsed time over reverse aggressive's on the same disks with the same cache.
    fn over_reverse(&self, run: &Run, row: &Row) -> Option<f64> {
        let is_it = |other: &&Run| {
            let (own, other) = (&run.run, &other.run);
            other.preset.name().starts_with("reverse-aggressive")
                && (own.wanted, own.cache_blocks) == (other.wanted, other.cache_blocks)
        };
        let others = self.runs.iter().filter(is_it);
        let others = others.filter_map(|other| other.result(self).as_ref().ok());
        let best = others.map(|other| other.outcome.elapsed).min()?;
        row.over(best).filter(|_| run.run.preset.is_hinted())
    }

    /// The columns of all rows, in the order of the runs, none of which need have been run.
    ///
    /// # Errors
    /// A run that failed.
    pub fn into_objects(self) -> Result<Vec<Map<String, Value>>, Failure> {
        Ok(self.rows()?.iter().map(Row::object).collect())
    }

    /// All rows, in the order of the runs.
    fn rows(self) -> Result<Vec<Row>, Failure> {
        let over = |run: &Run| {
            let row = run.result(&self).as_ref().ok()?;
            self.over_reverse(run, row)
        };
        let over: Vec<Option<f64>> = self.runs.iter().map(over).collect();
        let rows = self.runs.into_iter().zip(over);
        let rows = rows.filter_map(|(run, over)| Some((run.row.into_inner()?, over)));
        let with = |(row, over_reverse): (Result<Row, Failure>, _)| {
            Ok(Row {
                over_reverse,
                ..row?
            })
        };
        rows.map(with).collect()
    }
}
