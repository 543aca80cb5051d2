//! Settings that are tried: changed many times, and put back at the end, however that comes.
//!
//! ```text
//! begin    lock; put back what dead processes left; write the record; start the guardian
//! set      compare with the value last written; record the next one; write it
//! end      put back, remove the record, let the guardian go      (also when dropped)
//! killed   the guardian reads the end of its input and puts back  -> guardian.rs
//! both     the next start finds the record
//! ```
//!
//! A value that another program changed between two settings ends the trial with an error, and stays.

use std::path::PathBuf;

use super::devices::Devices;
use super::guardian::Guardian;
use super::knob::Knob;
use super::record::{Change, Folder, Lock, Record, Restored, in_words};
use super::{Setting, record};
use crate::failure::Failure;
use crate::files::plain;

/// See the [module](self).
#[derive(Debug)]
pub struct Trying {
    record: Record,
    path: PathBuf,
    guardian: Option<Guardian>,
    _lock: Lock,
}

/// The values of a setting, in the order in which they are written.
#[must_use]
pub fn values(devices: &Devices, setting: &Setting) -> Vec<(Knob, String)> {
    let read_ahead = (
        devices.read_ahead.clone(),
        setting.read_ahead_kib.to_string(),
    );
    let of_leaf = |leaf: &super::devices::Leaf| {
        // A leaf without a choice has no value to set.
        let scheduler = setting
            .scheduler
            .clone()
            .filter(|_| leaf.scheduler.is_some())?;
        Some((leaf.scheduler_knob(), scheduler))
    };
    let schedulers = devices.leaves.iter().filter_map(of_leaf);
    [read_ahead].into_iter().chain(schedulers).collect()
}

impl Trying {
    /// Prepares for changes of these values.
    ///
    /// # Errors
    /// Another process changes settings, a value cannot be read or written, or no guardian can be started.
    pub fn begin(folder: &Folder, knobs: impl IntoIterator<Item = Knob>) -> Result<Self, Failure> {
        let lock = folder.lock()?;
        clear(folder);
        let changes = knobs.into_iter().map(|knob| {
            let path = knob.path().to_owned();
            Change::of(knob).map_err(|e| Failure::unusable(&path, plain(&e)))
        });
        let record = Record::new(changes.collect::<Result<_, _>>()?);
        let path = folder.path(&format!("tune-tried-{}.json", std::process::id()));
        let mut trying = Self {
            record,
            path,
            guardian: None,
            _lock: lock,
        };
        trying.save()?;
        trying.guardian = Some(Guardian::start(&trying.path)?);
        Ok(trying)
    }

    /// Sets values; those that are not named stay as they are.
    ///
    /// # Errors
    /// Another program changed one, the guardian is gone, or one is refused.
    pub fn set(&mut self, values: &[(Knob, String)]) -> Result<(), Failure> {
        if !self.guardian.as_mut().is_some_and(Guardian::is_there) {
            return Err(Failure::Run(
                "the process that would put settings back is gone".to_owned(),
            ));
        }
        for (knob, value) in values {
            self.set_one(knob, value)?;
        }
        Ok(())
    }

    fn set_one(&mut self, knob: &Knob, value: &str) -> Result<(), Failure> {
        let Some(at) = self
            .record
            .changes
            .iter()
            .position(|change| &change.knob == knob)
        else {
            return Err(Failure::broken(
                knob.path(),
                "is not among the values of this trial",
            ));
        };
        let broken = |e: std::io::Error| Failure::broken(knob.path(), plain(&e));
        let last = self.record.changes[at].ours.clone();
        // Ahead of the comparison, so that nothing slow is between that and the write.
        let known = last.iter().cloned().chain([value.to_owned()]);
        self.record.changes[at].ours = known.collect();
        self.save()?;
        let present = knob.read().map_err(broken)?;
        if !last.contains(&present) {
            self.record.changes[at].ours = last;
            let why =
                format!("another program has set it to {present}, which stays; this trial is over");
            return Err(Failure::broken(knob.path(), why));
        }
        let written = match present == value {
            true => present,
            false => knob.write(value).map_err(broken)?,
        };
        self.record.changes[at].ours = vec![written];
        self.save()
    }

    fn save(&self) -> Result<(), Failure> {
        let unusable = |e: std::io::Error| Failure::unusable(&self.path, plain(&e));
        self.record.save(&self.path).map_err(unusable)
    }

    /// Puts all values back for now.
    ///
    /// # Errors
    /// One was changed by another program, or cannot be put back.
    pub fn pause(&mut self) -> Result<(), Failure> {
        let restored = self.record.restore();
        for (change, restored) in self.record.changes.iter_mut().rev().zip(&restored) {
            if restored.1 == Restored::Back {
                change.ours = vec![change.before.clone()];
            }
        }
        let lines: Vec<_> = restored
            .iter()
            .filter_map(|(c, r)| in_words(c, r))
            .collect();
        match lines.is_empty() {
            true => Ok(()),
            false => Err(Failure::Run(lines.join("; "))),
        }
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        if let Err(failure) = self.pause() {
            tracing::error!("{failure}");
        }
        // Before the guardian reads the end of its input: without a record it has nothing to do.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Puts back what processes left that were killed together with their guardians. The lock is held.
pub fn clear(folder: &Folder) {
    for path in folder.tried() {
        put_back(&path);
    }
}

/// Carries out a record of settings that were tried.
pub(super) fn put_back(path: &std::path::Path) {
    match record::Record::load(path) {
        Ok(record) => {
            for (change, restored) in record.iter().flat_map(Record::restore) {
                match in_words(&change, &restored) {
                    Some(line) => tracing::warn!("{line}"),
                    None => tracing::info!(
                        "{} is {} again",
                        change.knob.path().display(),
                        change.before
                    ),
                }
            }
            let _ = std::fs::remove_file(path);
        }
        Err(error) => tracing::warn!("{}: {}", path.display(), plain(&error)),
    }
}
