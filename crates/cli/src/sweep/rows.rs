//! Files of rows: JSON objects, one a line, each with the key of its run.
//!
//! A part of a row, which a killed sweep or a full disk leaves, is cut off before the next row is appended. Two sweeps that
//! write to one file would spoil each other's rows, so the file is locked (`flock(2)`) while one does.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::files::{self, plain};
use crate::lines::{self, End};

/// A row.
pub type Row = Map<String, Value>;

/// The key of a row.
pub const KEY: &str = "key";
/// In place of a result, the message of a run that failed.
pub const ERROR: &str = "error";

/// The key, if it is a row.
#[must_use]
pub fn key(row: &Row) -> Option<&str> {
    row.get(KEY)?.as_str()
}

/// The rows of a file, and where the last of them ends.
fn rows(path: &Path, file: &File) -> Result<(Vec<Row>, End), Failure> {
    let mut rows = Vec::new();
    let end = lines::read(path, file, |line| {
        let row = serde_json::from_slice(line)
            .ok()
            .filter(|row| key(row).is_some());
        rows.push(row.ok_or("no row of a sweep: a JSON object with a key")?);
        Ok(())
    })?;
    Ok((rows, end))
}

/// The rows of a file.
///
/// # Errors
/// There is none, or it has other lines.
pub fn read(path: &Path) -> Result<Vec<Row>, Failure> {
    let file = files::open_stream(path)?;
    Ok(rows(path, &file)?.0)
}

/// The [last] rows of a file that must have some.
///
/// # Errors
/// It has none, or cannot be read.
pub fn some(path: &Path) -> Result<Vec<Row>, Failure> {
    let rows = last(read(path)?);
    match rows.is_empty() {
        true => Err(Failure::unusable(path, "no rows")),
        false => Ok(rows),
    }
}

/// Of each run one row, in the place of its first: its last result, or where it has none its last error.
#[must_use]
pub fn last(rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    let (mut last, mut places) = (Vec::<Row>::new(), HashMap::new());
    for row in rows {
        let key = key(&row).unwrap_or_default().to_owned();
        let place = *places.entry(key).or_insert(last.len());
        match last.get_mut(place) {
            None => last.push(row),
            Some(kept) if row.contains_key(ERROR) && !kept.contains_key(ERROR) => {}
            Some(kept) => *kept = row,
        }
    }
    last
}

/// A file that rows are appended to.
#[derive(Debug)]
pub struct Rows {
    path: PathBuf,
    file: Mutex<File>,
    /// Keys of the runs that it has a result of.
    pub done: HashSet<String>,
    /// Keys of all runs that it has a row of.
    pub known: HashSet<String>,
}

impl Rows {
    /// Opens or makes it.
    ///
    /// # Errors
    /// It cannot be written, another sweep writes to it, or it has other lines.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let unusable = |e: io::Error| Failure::unusable(path, plain(&e));
        files::check_target(path)?;
        let options = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .to_owned();
        let mut file = options.open(path).map_err(unusable)?;
        if !file.metadata().map_err(unusable)?.is_file() {
            return Err(Failure::unusable(path, "no regular file"));
        }
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| Failure::unusable(path, "another sweep writes to it"))?;
        let (rows, end) = rows(path, &file)?;
        file.set_len(end.bytes).map_err(unusable)?;
        file.seek(SeekFrom::End(0)).map_err(unusable)?;
        if end.bytes > 0 && !end.has_newline {
            file.write_all(b"\n").map_err(unusable)?;
        }
        let keys = |rows: &[&Row]| {
            rows.iter()
                .copied()
                .filter_map(key)
                .map(str::to_owned)
                .collect()
        };
        let all: Vec<&Row> = rows.iter().collect();
        let results: Vec<&Row> = all
            .iter()
            .copied()
            .filter(|row| !row.contains_key(ERROR))
            .collect();
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
            done: keys(&results),
            known: keys(&all),
        })
    }

    /// Appends a row, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&self, row: Row) -> Result<(), Failure> {
        let line = format!("{}\n", Value::Object(row));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let broken = |e: io::Error| Failure::broken(&self.path, plain(&e));
        let end = file.metadata().map_err(broken)?.len();
        file.write_all(line.as_bytes()).map_err(|e| {
            // A part of a row would be the beginning of the next thread's line.
            let cut = file.set_len(end);
            broken(cut.err().unwrap_or(e))
        })
    }
}
