//! `forerun sweep`: the runs of a plan, as rows of a file; `forerun rerun`: rows made once more and compared.
//!
//! Rows are appended as runs end. A run that fails has a row with its message, is tried again by the next sweep, and
//! makes the exit code 1; the other runs go on.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use serde_json::Value;

use crate::args::{Diff, Merge, Rerun, Sweep, SweepCommand};
use crate::failure::Failure;
use crate::files;
use crate::flags::Own;
use crate::progress;
use crate::sweep::cells::{self, Cell, PROGRAM, Stamp};
use crate::sweep::compare::{by_settings, differences, settings};
use crate::sweep::plan;
use crate::sweep::rows::{self, ERROR, Row, Rows};

/// Runs the command.
///
/// # Errors
/// A plan that cannot be run, rows that cannot be written, a run that failed.
pub fn run(args: &Sweep, out: &mut dyn Write) -> Result<(), Failure> {
    match (&args.command, &args.plan, &args.output) {
        (Some(SweepCommand::Merge(args)), ..) => merge(args, out),
        (Some(SweepCommand::Diff(args)), ..) => diff(args, out),
        (None, Some(plan), Some(output)) => sweep(args, plan, output, out),
        _ => Err(Failure::Usage("a plan and --output are needed".to_owned())),
    }
}

fn sweep(args: &Sweep, plan: &Path, output: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let text = files::read_text(plan, plan::BYTES_MAX)?;
    let cells = cells::cells(plan::read(plan, &text, &Own::new())?, &Own::new())?;
    let rows = Rows::open(output)?;
    let mine = (0..)
        .zip(&cells)
        .filter(|(at, _)| at % args.shard.of == args.shard.number);
    let mine: Vec<&Cell> = mine.map(|(_, cell)| cell).collect();
    let left: Vec<&Cell> = mine
        .iter()
        .copied()
        .filter(|cell| !rows.done.contains(&cell.key))
        .collect();
    let stamp = Stamp::of(&text, Path::new(PROGRAM));
    let failed = run_all(&left, &stamp, args.threads, &|row| rows.append(row))?;
    let (all, there) = (mine.len(), mine.len() - left.len());
    let path = output.display();
    writeln!(
        out,
        "{all} runs: {there} were in {path}, {} are added",
        left.len()
    )
    .map_err(|e| Failure::output(&e))?;
    match failed.first() {
        Some(first) => Err(Failure::Run(format!(
            "{} of {all} runs failed: {first}",
            failed.len()
        ))),
        None => Ok(()),
    }
}

/// Runs them on so many threads, or as many as there are processors, and hands on each row when it ends; the messages of those that failed.
///
/// # Errors
/// Those of `take`.
pub(super) fn run_all(
    cells: &[&Cell],
    stamp: &Stamp,
    threads: Option<u32>,
    take: &(dyn Fn(Row) -> Result<(), Failure> + Sync),
) -> Result<Vec<String>, Failure> {
    let threads = threads.map(|threads| threads as usize);
    let threads = threads
        .or_else(|| available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let bar = progress::steps("runs", cells.len() as u64);
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<(), Failure> {
        while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = cell.run(stamp, &Own::new());
            let message = row.get(ERROR).and_then(Value::as_str).map(str::to_owned);
            if let (Some(message), Ok(mut failed)) = (message, failed.lock()) {
                failed.push(message);
            }
            if let Err(failure) = take(row) {
                // The others begin no further run.
                next.store(cells.len(), Ordering::Relaxed);
                return Err(failure);
            }
            bar.inc(1);
        }
        Ok(())
    };
    let ends = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(cells.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let own = work();
        let others = others.into_iter().map(|thread| match thread.join() {
            Ok(end) => end,
            Err(_) => Err(Failure::Run("a run panicked".to_owned())),
        });
        std::iter::once(own)
            .chain(others)
            .collect::<Result<Vec<()>, _>>()
    });
    bar.finish_and_clear();
    ends.map(|_| failed.into_inner().unwrap_or_default())
}

/// Each run once: its last result, or where it has none its last error. Rows that the output has stay.
fn merge(args: &Merge, out: &mut dyn Write) -> Result<(), Failure> {
    files::check_once(&args.rows.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let mut merged = Vec::new();
    for path in &args.rows {
        merged.extend(rows::read(path)?);
    }
    let merged = rows::last(merged);
    let Some(path) = files::named(args.output.as_deref()) else {
        let lines = merged
            .into_iter()
            .map(|row| format!("{}\n", Value::Object(row)));
        let lines: String = lines.collect();
        return out
            .write_all(lines.as_bytes())
            .map_err(|e| Failure::output(&e));
    };
    let there = Rows::open(path)?;
    for row in merged {
        let known = match row.contains_key(ERROR) {
            true => &there.known,
            false => &there.done,
        };
        if !rows::key(&row).is_some_and(|key| known.contains(key)) {
            there.append(row)?;
        }
    }
    Ok(())
}

/// Runs in one file alone differ, too; a file without rows is a mistake, and no comparison.
fn diff(args: &Diff, out: &mut dyn Write) -> Result<(), Failure> {
    files::check_once(&[&args.before, &args.after])?;
    let (before, after) = (rows::some(&args.before)?, rows::some(&args.after)?);
    let (before, after) = (by_settings(&before), by_settings(&after));
    let (mut text, mut differ, mut same) = (String::new(), 0, 0);
    for (name, row) in &before {
        let changed = after.get(name).map(|other| differences(row, other));
        match changed {
            Some(changed) if changed.is_empty() => same += 1,
            Some(changed) => {
                differ += 1;
                text += &format!("{name}: {}\n", changed.join(", "));
            }
            None => {}
        }
    }
    let only = [before.len() - same - differ, after.len() - same - differ];
    text += &format!(
        "{differ} of {} runs differ, {} are only in {}, {} only in {}\n",
        same + differ,
        only[0],
        args.before.display(),
        only[1],
        args.after.display()
    );
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))?;
    match differ + only[0] + only[1] {
        0 => Ok(()),
        _ => Err(Failure::Run("the rows differ".to_owned())),
    }
}

/// Makes the last row of each run once more.
///
/// # Errors
/// A row that comes out otherwise, a key that no row has, files that are gone.
pub fn rerun(args: &Rerun, out: &mut dyn Write) -> Result<(), Failure> {
    let mut rows = rows::some(&args.rows)?;
    let has = |wanted: &str| rows.iter().any(|row| rows::key(row) == Some(wanted));
    if let Some(missing) = args.keys.iter().find(|key| !has(key)) {
        return Err(Failure::unusable(
            &args.rows,
            format!("no row has the key {missing}"),
        ));
    }
    let is_wanted =
        |key: &str| args.keys.is_empty() || args.keys.iter().any(|wanted| wanted == key);
    rows.retain(|row| rows::key(row).is_some_and(is_wanted));
    let (mut differ, stamp) = (0, Stamp::of("", Path::new(PROGRAM)));
    for row in &rows {
        let cell = cells::of_row(row)?;
        let key = rows::key(row).unwrap_or_default();
        let mut changed = differences(row, &cell.run(&stamp, &Own::new()));
        if cell.key != key {
            changed.insert(
                0,
                "its files or the version of the program changed".to_owned(),
            );
        }
        differ += usize::from(!changed.is_empty());
        let outcome = match changed.is_empty() {
            true => "the same".to_owned(),
            false => changed.join(", "),
        };
        writeln!(out, "{key} {}: {outcome}", settings(row)).map_err(|e| Failure::output(&e))?;
    }
    match differ {
        0 => Ok(()),
        _ => Err(Failure::Run(format!(
            "{differ} of {} rows differ",
            rows.len()
        ))),
    }
}
