//! `forerun report`: rows of any command as a page, and its figures as files.
//!
//! All rows are read and checked before anything is written.

use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::args::Report as Arguments;
use crate::failure::Failure;
use crate::files::{self, NewFile, plain};
use crate::report::kinds;
use crate::report::page::{Report, is_known, page};
use crate::report::points::Row;

/// A longer line is no row.
const LINE_BYTES_MAX: u64 = 1 << 20;

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
    let mut rows = Vec::new();
    for path in &args.rows {
        rows.extend(rows_of(path)?);
    }
    let against = args.against.as_deref();
    let against =
        against.map(|path| Ok::<_, Failure>((path.display().to_string(), rows_of(path)?)));
    let names: Vec<String> = args
        .rows
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let report = Report {
        title: args.title.clone().unwrap_or_else(|| names.join(", ")),
        rows,
        against: against.transpose()?,
        within: args.within,
    };
    let (text, drawn) = page(&report);
    if let Some(folder) = &args.figures {
        std::fs::create_dir_all(folder).map_err(|e| Failure::unusable(folder, plain(&e)))?;
        for figure in &drawn {
            for (ending, text) in [("svg", &figure.svg), ("csv", &figure.csv)] {
                let path = folder.join(format!("{}.{ending}", figure.file));
                NewFile::create(&path)?.write(text.as_bytes())?;
            }
        }
    }
    match files::named(Some(&args.output)) {
        Some(path) => NewFile::create(path)?.write(text.as_bytes()),
        None => out
            .write_all(text.as_bytes())
            .map_err(|e| Failure::output(&e)),
    }
}

/// The rows of a file.
fn rows_of(path: &Path) -> Result<Vec<Row>, Failure> {
    let file: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(stdin()),
        false => Box::new(files::open_stream(path)?),
    };
    let (mut rows, mut lines) = (Vec::new(), BufReader::new(file));
    for number in 1.. {
        let at = |why: String| Failure::unusable(path, format!("line {number}: {why}"));
        let mut line = Vec::new();
        let part = lines
            .by_ref()
            .take(LINE_BYTES_MAX + 1)
            .read_until(b'\n', &mut line);
        if part.map_err(|e| at(plain(&e)))? == 0 {
            break;
        }
        if line.len() as u64 > LINE_BYTES_MAX || rows.len() == ROWS_MAX {
            return Err(at(format!(
                "a line has at most {LINE_BYTES_MAX} bytes, and a report {ROWS_MAX} rows"
            )));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        rows.push(row(&line).map_err(at)?);
    }
    if rows.is_empty() {
        return Err(Failure::unusable(path, "no rows"));
    }
    Ok(rows)
}

fn row(line: &[u8]) -> Result<Row, String> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|_| "no JSON object: rows are those of --format json".to_owned())?;
    let row = value.as_object().cloned();
    row.as_ref().map_or(Ok(()), kinds::check)?;
    row.filter(is_known).ok_or_else(|| {
        "no row of simulate, sweep, bench, try, trace count, reproduce or advise: it has neither a preset with its time, nor a policy with \
         its miss ratio, nor a claim of a paper"
            .to_owned()
    })
}
