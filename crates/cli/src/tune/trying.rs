//! Settings that are tried: changed many times, and put back at the end, however that comes.
//!
//! ```text
//! begin    lock; put back what dead processes left; write the record; start the guardian
//! set      compare with the value last written; record the next one; write it
//! end      put back, remove the record, let the guardian go      (also when dropped)
//! killed   the guardian reads the end of its input and puts back
//! both     the next start finds the record
//! ```
//!
//! Record and guardian are those of [`forerun_surface::undo`]. A value that another program changed between two settings ends the trial with an error, and stays.

use std::io;
use std::path::Path;

use forerun_surface::undo::guardian::Guardian;
use forerun_surface::undo::knob::Knob;
use forerun_surface::undo::record::{self, Record, in_words};

use super::Setting;
use super::devices::Devices;
use super::folder::{Folder, Lock};
use crate::failure::Failure;
use crate::files::plain;

/// See the [module](self).
#[derive(Debug)]
pub struct Trying {
    record: Record,
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
        let knobs: Vec<Knob> = knobs.into_iter().collect();
        for knob in &knobs {
            let there = knob.read();
            there.map_err(|e| Failure::unusable(knob.path(), plain(&e)))?;
        }
        let path = folder.path(&format!("tune-tried-{}", std::process::id()));
        let words = guardian_of(&path)?;
        let record = Record::create(&path, knobs);
        let mut trying = Self {
            record: record.map_err(|e| Failure::unusable(&path, plain(&e)))?,
            guardian: None,
            _lock: lock,
        };
        trying.guardian = Some(Guardian::start(words)?);
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
        let mut changes = self.record.changes().iter();
        let Some(at) = changes.position(|change| &change.knob == knob) else {
            return Err(Failure::broken(
                knob.path(),
                "is not among the values of this trial",
            ));
        };
        let broken = |e: io::Error| Failure::broken(knob.path(), plain(&e));
        let change = &self.record.changes()[at];
        let before = change.before.clone();
        let last = match change.ours.is_empty() {
            true => vec![before.clone()],
            false => change.ours.clone(),
        };
        // Ahead of the comparison, so that nothing slow is between that and the write.
        let known = last.iter().cloned().chain([value.to_owned()]).collect();
        self.note(at, &before, known)?;
        let present = knob.read().map_err(broken)?;
        if !last.contains(&present) {
            self.note(at, &before, last)?;
            let why =
                format!("another program has set it to {present}, which stays; this trial is over");
            return Err(Failure::broken(knob.path(), why));
        }
        let written = match present == value {
            true => present,
            false => knob.write(value).map_err(broken)?,
        };
        self.note(at, &before, vec![written])
    }

    fn note(&mut self, at: usize, before: &str, ours: Vec<String>) -> Result<(), Failure> {
        let noted = self.record.note(at, before.to_owned(), ours);
        noted.map_err(|e| Failure::unusable(self.record.path(), plain(&e)))
    }

    /// Puts all values back for now.
    ///
    /// # Errors
    /// One was changed by another program, or cannot be put back.
    pub fn pause(&mut self) -> Result<(), Failure> {
        let restored = self.record.put_back();
        let restored = restored.map_err(|e| Failure::unusable(self.record.path(), plain(&e)))?;
        let lines: Vec<_> = restored
            .iter()
            .filter_map(|(change, restored)| in_words(change, restored))
            .collect();
        match lines.is_empty() {
            true => Ok(()),
            false => Err(Failure::Run(lines.join("; "))),
        }
    }
}

/// The words that start the guardian of a record.
fn guardian_of(record: &Path) -> Result<Vec<String>, Failure> {
    let name = record.to_str();
    let name = name.ok_or_else(|| Failure::unusable(record, "its name must be UTF-8"))?;
    Ok(["watch", "--guardian", name].map(str::to_owned).into())
}

impl Drop for Trying {
    fn drop(&mut self) {
        if let Err(failure) = self.pause() {
            tracing::error!("{failure}");
        }
        // Before the guardian reads the end of its input: without a record it has nothing to do.
        self.record.remove();
    }
}

/// Puts back what processes left that were killed together with their guardians. The lock is held.
pub fn clear(folder: &Folder) {
    for path in folder.tried() {
        match record::carry_out(&path) {
            // Its process lives, or its guardian is at it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => tracing::warn!("{}: {}", path.display(), plain(&error)),
            Ok(()) => {}
        }
    }
}
