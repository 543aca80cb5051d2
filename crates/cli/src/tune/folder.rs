//! The folder of the runtime files of root (`/run/forerun`), in which records stand, and its lock.
//!
//! One lock, a file beside the records, admits one process at a time that changes settings for long.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use forerun_surface::undo::record::{Record, taken};
use rustix::fs::{FlockOperation, flock};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::files::plain;

/// The folder of records.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Only one process changes settings at a time: while this lives, this one.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, and let go when it is closed")] File);

/// The lock of a bdi. A watch sets the same read-ahead for moments, and each would take the other's value for an
/// administrator's.
#[derive(Debug)]
pub struct Alone(Record);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.remove();
    }
}

impl Folder {
    /// That of this machine.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        let named = environment.forerun_runtime_dir.as_ref();
        let named = named.filter(|name| !name.is_empty());
        Self(named.map_or_else(|| "/run/forerun".into(), PathBuf::from))
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Records of settings that were tried by processes; those of a process that lives are locked.
    #[must_use]
    pub fn tried(&self) -> Vec<PathBuf> {
        let is_tried = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("tune-tried-")
        };
        let there = fs::read_dir(&self.0).into_iter().flatten().flatten();
        there.map(|entry| entry.path()).filter(is_tried).collect()
    }

    /// Keeps other processes from changing the read-ahead of a bdi while the lock lives.
    ///
    /// # Errors
    /// Another process changes it, by its name; or the folder cannot be made.
    pub fn alone(&self, bdi: &str) -> Result<Alone, Failure> {
        Record::of_bdi(&self.0, bdi, []).map(Alone)
    }

    /// That another process changes the read-ahead of a bdi, in words; none as well where this user may not see it.
    #[must_use]
    pub fn taken(&self, bdi: &str) -> Option<String> {
        taken(&self.0, bdi)
    }

    /// Waits for no other process.
    ///
    /// # Errors
    /// Another process changes settings, or the folder cannot be made.
    pub fn lock(&self) -> Result<Lock, Failure> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.0);
        made.map_err(|e| Failure::unusable(&self.0, plain(&e)))?;
        match lock(&self.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(lock) => Ok(lock),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Failure::Run(
                "another forerun changes settings of devices now: wait until it has ended"
                    .to_owned(),
            )),
            Err(error) => Err(Failure::unusable(&self.0, plain(&error))),
        }
    }
}

/// The lock of a folder of records.
fn lock(folder: &Path, how: FlockOperation) -> io::Result<Lock> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(folder.join("tune.lock"))?;
    flock(&file, how)?;
    Ok(Lock(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_changes_settings_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder(folder.path().join("made"));
        let held = folder.lock().unwrap();
        let why = folder.lock().unwrap_err().to_string();
        assert!(why.contains("another forerun"), "{why}");
        drop(held);
        folder.lock().unwrap();
    }
}
