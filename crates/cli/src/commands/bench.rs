//! `forerun bench`: runs a plan's candidates in turns and prints a row for each.
//!
//! In turns, because a machine that is busy for a minute should not fall on one of them alone.
//! A run is defined in `bench`; here is the order of things, the progress bar and which kind of run
//! each needs.

use std::io::{Write, stderr};

use forerun_io::source::file::raise_descriptor_limit;
use indicatif::ProgressBar;

use crate::args::{Bench, Clock, Format};
use crate::bench::plan::{Entrant, Hints, Plan};
use crate::bench::report::{self, Row};
use crate::bench::{Measured, engine, kernel, modelled};
use crate::failure::Failure;
use crate::progress;
use crate::quantity::rough_size;

/// Runs the command.
///
/// # Errors
/// Arguments that cannot be combined, a failed read, a wrong byte.
pub fn run(args: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    let plan = Plan::new(args)?;
    raise_descriptor_limit();
    let ended = measure(&plan, args, out);
    // On a failure, too: they may be large.
    if !matches!(ended, Err(Failure::Usage(_)))
        && let Some((names, bytes)) = plan.content.left_behind()
    {
        let bytes = rough_size(bytes as f64);
        let _ = writeln!(stderr(), "{bytes} stay for the next bench: {names}");
    }
    ended
}

/// Makes the files, runs all and prints the rows.
fn measure(plan: &Plan, args: &Bench, out: &mut dyn Write) -> Result<(), Failure> {
    plan.content.make()?;
    let bytes = plan.bytes_asked()?;
    let mut runs: Vec<Vec<Measured>> = vec![Vec::new(); plan.entrants.len()];
    for turn in 0..plan.runs {
        for (entrant, runs) in plan.entrants.iter().zip(&mut runs) {
            let what = format!("{} {}/{}", entrant.name(), turn + 1, plan.runs);
            let bar = progress::bytes(&what, bytes);
            runs.push(one(plan, entrant, &bar)?);
            bar.finish_and_clear();
        }
    }
    let rows = plan.entrants.iter().zip(&mut runs);
    let rows: Vec<Row> = rows
        .filter_map(|(e, runs)| Row::new(e, plan, runs))
        .collect();
    report::print(&rows, args.format, out)?;
    match plan.hints {
        Some(hints) if args.format == Format::Table => announce(plan, hints, out),
        _ => Ok(()),
    }
}

/// The hints of the runs, below a table that has no room for them.
fn announce(plan: &Plan, hints: Hints, out: &mut dyn Write) -> Result<(), Failure> {
    let Hints {
        wrong_percent,
        missing_percent,
    } = hints;
    let (pattern, seed) = (plan.name(), plan.seed);
    let line = format!(
        "\n{pattern}, seed {seed}; hints: {wrong_percent} % wrong, {missing_percent} % missing\n"
    );
    out.write_all(line.as_bytes())
        .map_err(|e| Failure::output(&e))
}

fn one(plan: &Plan, entrant: &Entrant, bar: &ProgressBar) -> Result<Measured, Failure> {
    match (entrant, plan.clock) {
        (Entrant::Kernel, _) => kernel::run(plan, bar),
        (Entrant::Engine(_, settings), Clock::Real) => engine::run(plan, settings, bar),
        (Entrant::Engine(_, settings), Clock::Virtual) => modelled::run(plan, settings, bar),
    }
}
