//! `forerun report`: rows of any command as a page, and its figures as files.
//!
//! All rows are read and checked before anything is written, each file whole or not at all, the page last.

use std::io::{Read, Write, stdin};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::args::Report as Arguments;
use crate::failure::Failure;
use crate::files::{self, NewFile};
use crate::lines::{self, name};
use crate::report::kinds;
use crate::report::page::{Drawn, Report, is_known, page};
use crate::report::points::Row;

/// More rows are more than a page shows: some 2 GB in memory.
const ROWS_MAX: usize = 1_000_000;

/// Runs the command.
///
/// # Errors
/// Lines that are no rows, or files that cannot be read or written.
pub fn run(args: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let read = args.rows.iter().chain(&args.against);
    let read: Vec<PathBuf> = read.cloned().collect();
    files::check_not_read(Some(&args.output), &read)?;
    files::check_once(&read.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let target = files::named(Some(&args.output));
    let target = target.map(NewFile::create).transpose()?;
    let mut rows = Vec::new();
    for path in &args.rows {
        rows.extend(rows_of(path)?);
    }
    let against = args.against.as_deref();
    let against = against.map(|path| Ok::<_, Failure>((name(path), rows_of(path)?)));
    let names: Vec<String> = args.rows.iter().map(|path| name(path)).collect();
    let report = Report {
        title: args.title.clone().unwrap_or_else(|| names.join(", ")),
        rows,
        against: against.transpose()?,
        within: args.within,
    };
    let (text, drawn) = page(&report);
    if let Some(target) = &target {
        target.put(text.as_bytes())?;
    }
    if let Some(folder) = &args.figures {
        write_figures(folder, &drawn)?;
    }
    match target {
        Some(target) => target.finish(),
        None => out
            .write_all(text.as_bytes())
            .map_err(|e| Failure::output(&e)),
    }
}

/// Each figure as two files.
fn write_figures(folder: &Path, drawn: &[Drawn]) -> Result<(), Failure> {
    files::make_folder(folder)?;
    for figure in drawn {
        for (ending, text) in [("svg", &figure.svg), ("csv", &figure.csv)] {
            let path = folder.join(format!("{}.{ending}", figure.file));
            NewFile::create(&path)?.write(text.as_bytes())?;
        }
    }
    Ok(())
}

/// The rows of a file.
fn rows_of(path: &Path) -> Result<Vec<Row>, Failure> {
    let file: Box<dyn Read> = match files::named(Some(path)) {
        None => Box::new(stdin()),
        Some(path) => Box::new(files::open_stream(path)?),
    };
    let mut rows = Vec::new();
    lines::read(path, file, |line| match rows.len() {
        ROWS_MAX => Err(format!("a report has at most {ROWS_MAX} rows")),
        _ => row(line).map(|row| rows.push(row)),
    })?;
    if rows.is_empty() {
        return Err(Failure::Usage(format!("{}: no rows", name(path))));
    }
    Ok(rows)
}

fn row(line: &[u8]) -> Result<Row, String> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|_| "no JSON object: rows are those of --format json".to_owned())?;
    let row = value.as_object().cloned();
    if row.as_ref().is_some_and(is_claim) {
        return Err(
            "a claim of a paper: `forerun-lab reproduce PAPER -o DIR` writes a page of those"
                .to_owned(),
        );
    }
    row.as_ref().map_or(Ok(()), kinds::check)?;
    row.filter(is_known).ok_or_else(|| {
        "no row of simulate, sweep, bench, try, trace count or advise: it has neither a preset with its time, nor a policy with \
         its miss ratio"
            .to_owned()
    })
}

/// Whether a row is one of forerun-lab.
fn is_claim(row: &Row) -> bool {
    row.contains_key("paper") && row.contains_key("claim")
}
