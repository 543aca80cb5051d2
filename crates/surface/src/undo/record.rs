//! The record of values that are changed: each as it was before, and the values that are ours.
//!
//! A record is written ahead of the value it is about, so that a process that reads it after a crash can undo the change. A
//! value is put back only while it is one of ours; one that was changed from outside meanwhile is left alone:
//!
//! ```text
//! before 128   ours 1024    present 1024 -> 128
//!                           present 4096 -> left: an administrator's, or udev's
//!                           present 128  -> nothing to do
//! ```
//!
//! The file has a slot of 512 bytes for each value, which one `pwrite` of 4 us replaces, so a value may change a thousand times a
//! second. It names the boot, after which all values are the kernel's own, and is locked by the process that changes
//! the values: those of an unlocked record are left over.
//!
//! ```text
//! forerun-record 1 BOOT-ID
//! /sys/class/bdi/8:0/read_ahead_kb 128 1024,2048 17      file, before, ours (- is none), how often it was written
//! ```

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::knob::Knob;
use crate::failure::Failure;
use crate::files::plain;

/// Where the kernel tells the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const NAME: &str = "forerun-record 1";
/// A slot; a path below /sys has 200 bytes at most.
const SLOT: usize = 512;
/// Values of a record: read-ahead, and the schedulers of an array of 1,023 disks.
const CHANGES_MAX: usize = 1024;

/// A value that is changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The file of the value.
    pub knob: Knob,
    /// Its value before.
    pub before: String,
    /// Values that are ours: the last one written, and one that is about to be. None if it is as before.
    pub ours: Vec<String>,
    /// How often it was written.
    pub count: u64,
}

/// How a value came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Restored {
    /// It has its value of before again, or had it still.
    Back,
    /// Another program changed it to this, and it stays so.
    Others(String),
    /// The device is gone, or the value is refused.
    Failed(String),
}

/// A record, and the values of its slots.
#[derive(Debug)]
pub struct Record {
    file: File,
    path: PathBuf,
    changes: Vec<Change>,
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
            before,
            ours: Vec::new(),
            count: 0,
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

    fn line(&self) -> String {
        let (path, before, count) = (self.knob.path().display(), &self.before, self.count);
        let ours = match self.ours.is_empty() {
            true => "-".to_owned(),
            false => self.ours.join(","),
        };
        format!("{path} {before} {ours} {count}")
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (path, before, ours) = (words.next()?, words.next()?, words.next()?);
        let ours = match ours {
            "-" => Vec::new(),
            ours => ours.split(',').map(str::to_owned).collect(),
        };
        let count = words.next()?.parse().ok()?;
        let change = Self {
            knob: Knob::new(path.into()),
            before: before.to_owned(),
            ours,
            count,
        };
        words.next().is_none().then_some(change)
    }
}

impl Record {
    /// The record of a bdi's read-ahead, which is its lock, too: one process at a time changes it in moments or tries values
    /// of it.
    ///
    /// # Errors
    /// Another process has it, by its command and number; or the folder cannot be written.
    pub fn of_bdi(
        folder: &Path,
        bdi: &str,
        knobs: impl IntoIterator<Item = Knob>,
    ) -> Result<Self, Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| Failure::unusable(folder, plain(&error)))?;
        let path = path_of_bdi(folder, bdi);
        Self::create(&path, knobs).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                let why = taken(folder, bdi).unwrap_or_else(|| taken_by(bdi, "another process"));
                Failure::unusable(&path, why)
            }
            _ => Failure::unusable(&path, plain(&error)),
        })
    }

    /// Makes a record of these values and locks it. Values that a dead process left in it are put back first.
    ///
    /// # Errors
    /// The folder cannot be written; [`io::ErrorKind::WouldBlock`] if a process that lives has it locked.
    pub fn create(path: &Path, knobs: impl IntoIterator<Item = Knob>) -> io::Result<Self> {
        let mut record = Self::open(path)?;
        record.restore();
        record.file.set_len(0)?;
        let changes = knobs.into_iter().map(Change::of);
        record.changes = changes.collect::<io::Result<_>>()?;
        record.write_all()?;
        Ok(record)
    }

    /// Opens a record, or an empty one, and locks it.
    ///
    /// # Errors
    /// See [`create`](Self::create).
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self {
            changes: load(&file)?,
            file,
            path: path.to_owned(),
        })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its values.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Writes of the value at this place that it was this before and may be those from now on.
    ///
    /// # Errors
    /// The file system is full.
    pub fn note(&mut self, at: usize, before: String, ours: Vec<String>) -> io::Result<()> {
        let change = &mut self.changes[at];
        (change.before, change.ours) = (before, ours);
        change.count += 1;
        self.write(at)
    }

    /// The same of a value that may have no place yet.
    ///
    /// # Errors
    /// The file system is full.
    pub fn note_of(&mut self, knob: &Knob, before: String, ours: Vec<String>) -> io::Result<()> {
        let at = self.changes.iter().position(|change| &change.knob == knob);
        if let Some(at) = at {
            return self.note(at, before, ours);
        }
        self.changes.push(Change {
            knob: knob.clone(),
            before,
            ours,
            count: 0,
        });
        self.write_all()
    }

    /// Keeps these values alone.
    ///
    /// # Errors
    /// The file system is full.
    pub fn replace(&mut self, changes: Vec<Change>) -> io::Result<()> {
        self.changes = changes;
        self.write_all()
    }

    /// Puts all values back that are ours, and says so of those that were not.
    pub fn restore(&self) -> Vec<(Change, Restored)> {
        let restore = |change: &Change| (change.clone(), change.restore());
        // The last change first, as each may have been made upon the one before.
        let changes = self.changes.iter().rev();
        changes
            .filter(|change| !change.ours.is_empty())
            .map(restore)
            .collect()
    }

    /// The same, and those that came back are no longer ours.
    ///
    /// # Errors
    /// The file system is full.
    pub fn put_back(&mut self) -> io::Result<Vec<(Change, Restored)>> {
        let restored = self.restore();
        for at in 0..self.changes.len() {
            let Change { knob, before, .. } = self.changes[at].clone();
            if restored
                .iter()
                .any(|(of, how)| of.knob == knob && *how == Restored::Back)
            {
                self.note(at, before, Vec::new())?;
            }
        }
        Ok(restored)
    }

    /// The values are as before, and the record goes.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }

    fn write(&self, at: usize) -> io::Result<()> {
        slot(&self.file, at + 1, &self.changes[at].line())
    }

    fn write_all(&self) -> io::Result<()> {
        slot(&self.file, 0, &format!("{NAME} {}", boot_id()))?;
        self.file
            .set_len(((self.changes.len() + 1) * SLOT) as u64)?;
        (0..self.changes.len()).try_for_each(|at| self.write(at))
    }
}

fn path_of_bdi(folder: &Path, bdi: &str) -> PathBuf {
    folder.join(format!("watch-{bdi}"))
}

/// That another process has the record of a bdi, in words; none as well where this user may not see it.
#[must_use]
pub fn taken(folder: &Path, bdi: &str) -> Option<String> {
    holder(&path_of_bdi(folder, bdi)).map(|holder| taken_by(bdi, &holder))
}

fn taken_by(bdi: &str, holder: &str) -> String {
    format!("the read-ahead of bdi {bdi} is changed by {holder}: end it first, by SIGTERM (`kill`)")
}

/// The process that has a file locked, by its command: `7: FLOCK  ADVISORY  WRITE 3568 00:1b:99 0 EOF` in the list of locks.
fn holder(path: &Path) -> Option<String> {
    let there = fs::metadata(path).ok()?;
    let (major, minor) = (
        rustix::fs::major(there.dev()),
        rustix::fs::minor(there.dev()),
    );
    let file = format!("{major:02x}:{minor:02x}:{}", there.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let of = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it = words.get(1) == Some(&"FLOCK") && words.get(5)? == &file;
        is_it.then(|| words.get(4)?.parse().ok())?
    };
    let process: u32 = locks.lines().find_map(of)?;
    let words = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let mut words = words.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let program = words.next()?.rsplit('/').next()?.to_owned();
    let command = words.next().unwrap_or_default();
    Some(format!("`{program} {command}` (process {process})"))
}

fn slot(file: &File, at: usize, line: &str) -> io::Result<()> {
    if line.len() >= SLOT || at > CHANGES_MAX {
        return Err(io::Error::other("a record of this length is none of ours"));
    }
    let line = format!("{line:<width$}\n", width = SLOT - 1);
    file.write_all_at(line.as_bytes(), (at * SLOT) as u64)
}

/// The values of a record; none of another boot, or of one that is cut off.
///
/// # Errors
/// It cannot be read.
pub fn load(file: &File) -> io::Result<Vec<Change>> {
    let mut bytes = vec![0; SLOT * (CHANGES_MAX + 1)];
    let count = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    Ok(parse(&text, &boot_id()))
}

fn parse(text: &str, boot: &str) -> Vec<Change> {
    let mut lines = text.lines();
    let head = lines.next().and_then(|line| line.strip_prefix(NAME));
    match head.is_some_and(|head| head.trim() == boot) {
        true => lines.filter_map(Change::parse).collect(),
        false => Vec::new(),
    }
}

/// Whether an open record still is the file of its path: its process may have removed it.
///
/// # Errors
/// It cannot be looked at.
pub fn is_there(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() > 0)
}

/// Carries out a record that no living process has locked, and removes it. Values that did not come back are in the log.
pub fn carry_out(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let record = Record::open(path)?;
    for (change, restored) in record.restore() {
        match in_words(&change, &restored) {
            Some(line) => tracing::warn!("{line}"),
            None => tracing::info!(
                "{} is {} again",
                change.knob.path().display(),
                change.before
            ),
        }
    }
    record.remove();
    Ok(())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::knob::READ_AHEAD;
    use super::*;

    fn knob(folder: &Path, value: &str) -> Knob {
        let knob = Knob::new(folder.join(READ_AHEAD));
        fs::write(knob.path(), value).unwrap();
        knob
    }

    fn words(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn a_value_is_put_back_only_while_it_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let knob = knob(folder.path(), "128\n");
        let mut change = Change::of(knob.clone()).unwrap();
        change.ours = words(&["1024", "2048"]);
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
    fn a_record_is_locked_while_its_process_lives_and_carried_out_after() {
        let folder = tempfile::tempdir().unwrap();
        let (path, knob) = (folder.path().join("record"), knob(folder.path(), "128"));
        let mut record = Record::create(&path, [knob.clone()]).unwrap();
        record.note(0, "128".into(), words(&["1024"])).unwrap();
        fs::write(knob.path(), "1024").unwrap();
        let refused = carry_out(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(knob.read().unwrap(), "1024");
        assert_eq!(load(&record.file).unwrap(), record.changes());
        // A value that a dead process left is put back by the next one, too, which has the value of before that.
        drop(record);
        let next = Record::create(&path, [knob.clone()]).unwrap();
        assert_eq!(
            (next.changes()[0].before.as_str(), next.changes().len()),
            ("128", 1)
        );
        drop(next);
        carry_out(&path).unwrap();
        assert!(!path.exists() && knob.read().unwrap() == "128");
        carry_out(&path).unwrap();
    }

    #[test]
    fn a_record_of_another_boot_or_half_of_one_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, knob) = (folder.path().join("record"), knob(folder.path(), "128"));
        let mut record = Record::create(&path, []).unwrap();
        record
            .note_of(&knob, "128".into(), words(&["1", "2"]))
            .unwrap();
        record
            .note_of(&knob, "128".into(), words(&["1024"]))
            .unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(parse(&text, &boot_id()), record.changes());
        assert_eq!(record.changes()[0].count, 1);
        assert!(parse(&text, "another").is_empty());
        for cut in [0, 20, SLOT, text.len() - SLOT / 2 - 460] {
            assert!(parse(&text[..cut], &boot_id()).is_empty(), "{cut}");
        }
        let line = "x".repeat(SLOT);
        assert!(slot(&record.file, 1, &line).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_record_or_none(text in "(forerun-record 1 b\n)?([a-z0-9/:,.-]{0,9} ?|\n){0,30}") {
            let _ = parse(&text, "b");
        }
    }
}
