//! `listed`: the objects below an address, with sizes and versions.
//!
//! Problem: a store is asked for each object before it is read, unless its version is known. A listing tells a thousand
//! versions an answer.
//!
//! Mechanism: folders are listed level by level, up to [`FOLDERS_AT_ONCE`] at a time. An interrupt leaves the
//! listing behind, and it ends with the next folder of each thread.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use forerun_io::source::tree::{Entry, Stat, Tree};
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::errors;
use crate::waiting::interruptible;

/// Folders listed at once: a thousand classes of 30 ms each take two seconds.
const FOLDERS_AT_ONCE: usize = 16;

/// An address, its size, and its version if the store tells one.
type Row = (String, u64, Option<String>);

/// The objects below an address, in the order of their names, as (address, size, version).
#[pyfunction]
pub(crate) fn listed(py: Python<'_>, engine: Py<Engine>, address: String) -> PyResult<Vec<Row>> {
    let running = engine.get().running()?;
    let url = address.clone();
    let walked = interruptible(py, move || {
        let tree = running.stores.tree(&url)?;
        Ok((walk(&*tree), tree))
    })?;
    let (walked, tree) = walked.map_err(errors::opening)?;
    let objects = walked.map_err(|error| errors::system(&error, Some(address.as_ref())))?;
    let root = tree.address().trim_end_matches('/');
    let row = |(name, stat): (String, Stat)| {
        let version = stat.version.as_deref().map(str::to_owned);
        (format!("{root}/{name}"), stat.bytes, version)
    };
    Ok(objects.into_iter().map(row).collect())
}

/// All objects of a tree, in the order of their names.
fn walk(tree: &dyn Tree) -> io::Result<Vec<(String, Stat)>> {
    let mut objects = Vec::new();
    let mut level = vec![String::new()];
    while !level.is_empty() {
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let list = || {
            while let Some(folder) = level.get(next.fetch_add(1, Ordering::Relaxed)) {
                let entries = tree.list(folder).and_then(Iterator::collect);
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push((folder, entries));
            }
        };
        thread::scope(|threads| {
            for _ in 1..level.len().min(FOLDERS_AT_ONCE) {
                threads.spawn(list);
            }
            list();
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut folders = Vec::new();
        for (folder, entries) in found {
            let entries: Vec<(String, Entry)> = entries?;
            for (name, entry) in entries {
                let path = match folder.is_empty() {
                    true => name,
                    false => format!("{folder}/{name}"),
                };
                match entry {
                    Entry::Folder => folders.push(path),
                    Entry::Object(stat) => objects.push((path, stat)),
                }
            }
        }
        level = folders;
    }
    objects.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(objects)
}
