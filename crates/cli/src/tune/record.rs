//! The record of values that were changed: each as it was before, and as it was changed.
//!
//! A record is written before the value it is about, so that a process that reads it after a crash can undo the change. A value
//! is put back only while it is one of ours; one that was changed from outside meanwhile is left alone:
//!
//! ```text
//! before 128   ours 1024    present 1024 -> 128
//!                           present 4096 -> left: an administrator's, or udev's
//!                           present 128  -> nothing to do
//! ```
//!
//! Records are in the folder of the runtime files of root (`/run/forerun`), one JSON object each. They name the boot:
//! after another one all values are the kernel's own. One lock, a file beside them, admits one process at a time.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::knob::Knob;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::files::plain;

/// Where the kernel tells the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A value that was changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The file of the value.
    pub knob: Knob,
    /// Its value before.
    pub before: String,
    /// Values that are ours: the last one written, and one that is about to be.
    pub ours: Vec<String>,
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The boot in which it holds.
    pub boot_id: String,
    /// The values.
    pub changes: Vec<Change>,
}

/// How a value came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Restored {
    /// It has its value of before again, or had it still.
    Back,
    /// Somebody else changed it to this, and it stays so.
    Others(String),
    /// The device is gone, or the value is refused.
    Failed(String),
}

impl Change {
    /// A value as it is, not changed yet.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(knob: Knob) -> io::Result<Self> {
        let before = knob.read()?;
        Ok(Self {
            knob,
            ours: vec![before.clone()],
            before,
        })
    }

    /// Puts the value back, if it is ours.
    pub fn restore(&self) -> Restored {
        match self.knob.read() {
            Err(error) => Restored::Failed(plain(&error)),
            Ok(present) if present == self.before => Restored::Back,
            Ok(present) if self.ours.contains(&present) => match self.knob.write(&self.before) {
                Ok(_) => Restored::Back,
                Err(error) => Restored::Failed(plain(&error)),
            },
            Ok(present) => Restored::Others(present),
        }
    }
}

impl Record {
    /// A record of this boot.
    #[must_use]
    pub fn new(changes: Vec<Change>) -> Self {
        Self {
            boot_id: boot_id(),
            changes,
        }
    }

    /// Reads one; none if there is none, if it is of another boot, or cut off by a full file system.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let record: Option<Self> = serde_json::from_slice(&text).ok();
        Ok(record.filter(|record| record.boot_id == boot_id()))
    }

    /// Writes it in one step: a reader sees this one or the one before.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut file, self)?;
        file.persist(path).map_err(|failed| failed.error)?;
        Ok(())
    }

    /// Puts all values back that are ours, and says so of those that were not.
    pub fn restore(&self) -> Vec<(Change, Restored)> {
        let restore = |change: &Change| (change.clone(), change.restore());
        // The last change first, as each may have been made upon the one before.
        self.changes.iter().rev().map(restore).collect()
    }
}

fn boot_id() -> String {
    let id = fs::read_to_string(BOOT_ID).unwrap_or_default();
    id.trim().to_owned()
}

/// A line about a value that did not come back.
#[must_use]
pub fn in_words(change: &Change, restored: &Restored) -> Option<String> {
    let (path, before) = (change.knob.path().display(), &change.before);
    match restored {
        Restored::Back => None,
        Restored::Others(present) => Some(format!(
            "{path} was {before}; another program has set it to {present}, which stays"
        )),
        Restored::Failed(why) => Some(format!("{path} was {before} and cannot be put back: {why}")),
    }
}

/// The folder of records.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Only one process changes settings at a time: while this lives, this one.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, and let go when it is closed")] File);

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
            name.starts_with("tune-tried-") && name.ends_with(".json")
        };
        let there = fs::read_dir(&self.0).into_iter().flatten().flatten();
        there.map(|entry| entry.path()).filter(is_tried).collect()
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
pub(super) fn lock(folder: &Path, how: FlockOperation) -> io::Result<Lock> {
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
    use crate::tune::knob::READ_AHEAD;

    fn knob(folder: &Path, value: &str) -> Knob {
        let knob = Knob::new(folder.join(READ_AHEAD));
        fs::write(knob.path(), value).unwrap();
        knob
    }

    #[test]
    fn a_value_is_put_back_only_while_it_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let knob = knob(folder.path(), "128\n");
        let mut change = Change::of(knob.clone()).unwrap();
        change.ours = vec!["1024".into(), "2048".into()];
        for (present, restored, after) in [
            ("1024\n", Restored::Back, "128"),
            ("2048\n", Restored::Back, "128"),
            ("128\n", Restored::Back, "128"),
            ("4096\n", Restored::Others("4096".into()), "4096"),
        ] {
            fs::write(knob.path(), present).unwrap();
            assert_eq!(change.restore(), restored);
            assert_eq!(knob.read().unwrap(), after);
        }
        fs::remove_file(knob.path()).unwrap();
        let gone = change.restore();
        assert!(
            in_words(&change, &gone)
                .unwrap()
                .contains("was 128 and cannot be put back")
        );
    }

    #[test]
    fn a_record_of_another_boot_or_half_of_one_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        assert_eq!(Record::load(&path).unwrap(), None);
        let change = Change::of(knob(folder.path(), "128")).unwrap();
        let record = Record::new(vec![change]);
        record.save(&path).unwrap();
        assert_eq!(Record::load(&path).unwrap().as_ref(), Some(&record));
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(Record::load(&path).unwrap(), None);
        let older = Record {
            boot_id: "another".into(),
            ..record
        };
        older.save(&path).unwrap();
        assert_eq!(Record::load(&path).unwrap(), None);
    }

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
