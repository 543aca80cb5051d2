//! The state directory: the bed that is up, and all its resources in the order of their making.
//!
//! ```text
//! bed.toml      the bed, as it was read
//! made.jsonl    one resource a line, each written before it is made; the lock of up, down and table
//! serve.log     complaints of the daemon
//! mount.toml, mount.log     of a mount of table and small: its profile, its complaints
//! export/ files/ mount/     where the images, the file system and that are mounted
//! nginx.*, requests.*, search.py    of servers: configuration, log, requests, clients
//! images/       of a bed with local disks, in place of export/
//! ```
//!
//! A line is one write, so after a kill the last may be torn; then its resource was not made yet,
//! and it is left out. Resources are undone from the last to the first: a mount goes before the
//! device under it. A directory that holds anything else is never used, and never removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::bed::{self, Bed};
use crate::failure::{At, Failure};
use crate::servers;
use crate::thing::Thing;

/// The default state directory.
pub const DEFAULT: &str = "/run/forerun-bed";
/// The daemon's complaints.
pub const LOG: &str = "serve.log";
/// Complaints of the mount.
pub const RIVAL_LOG: &str = "mount.log";
/// The mount's profile of the disk.
pub const PROFILE: &str = "mount.toml";
const BED: &str = "bed.toml";
const MADE: &str = "made.jsonl";

/// The state of a bed that is up, or half up; open in one process only.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    made: File,
    things: Vec<Thing>,
}

impl State {
    /// Begins the state of a new bed.
    ///
    /// # Errors
    /// A directory that holds a bed already, or anything else.
    pub fn create(folder: &Path, bed: &Bed) -> Result<Self, Failure> {
        fs::create_dir_all(folder).at(folder)?;
        let folder = fs::canonicalize(folder).at(folder)?;
        if fs::read_dir(&folder).at(&folder)?.next().is_some() {
            let is_bed = folder.join(MADE).exists();
            let why = if is_bed {
                "a bed is up: `forerun-bed down` first"
            } else {
                "not empty"
            };
            return Err(Failure::Usage(format!("{}: {why}", folder.display())));
        }
        let path = folder.join(MADE);
        let made = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&path)
            .at(&path)?;
        lock(&made, &path)?;
        let text = toml::to_string(bed).at(&folder)?;
        fs::write(folder.join(BED), text).at(&folder)?;
        let things = Vec::new();
        Ok(Self {
            folder,
            made,
            things,
        })
    }

    /// Opens the state of a bed that was begun.
    ///
    /// # Errors
    /// No bed there; one that another process has open.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(MADE);
        let made = OpenOptions::new().read(true).append(true).open(&path);
        let mut made = made.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::Usage(format!("{}: no bed is up here", folder.display()))
            }
            _ => Failure::broken(&path, error),
        })?;
        lock(&made, &path)?;
        let mut text = String::new();
        made.read_to_string(&mut text).at(&path)?;
        let whole = text.rfind('\n').map_or(0, |last| last + 1);
        // Bytes after a torn line must not be taken for its end.
        made.set_len(whole as u64).at(&path)?;
        Ok(Self {
            folder: fs::canonicalize(folder).at(folder)?,
            made,
            things: parse(&text[..whole]).at(&path)?,
        })
    }

    /// Its path.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Resources made, or about to be made, in order.
    #[must_use]
    pub fn things(&self) -> &[Thing] {
        &self.things
    }

    /// Writes down a resource before it is made. One on the list already keeps its place.
    ///
    /// # Errors
    /// It could not be written; then it must not be made.
    pub fn record(&mut self, thing: Thing) -> Result<(), Failure> {
        if self.things.contains(&thing) {
            return Ok(());
        }
        let mut line = serde_json::to_string(&thing).at(&self.folder)?;
        line.push('\n');
        self.made.write_all(line.as_bytes()).at(&self.folder)?;
        self.things.push(thing);
        Ok(())
    }

    /// Ends the state: removes its own files, and the directory if nothing else is in it.
    ///
    /// # Errors
    /// They cannot be removed.
    pub fn remove(self) -> Result<(), Failure> {
        let names = [LOG, RIVAL_LOG, PROFILE].into_iter();
        for name in names.chain(servers::WRITTEN).chain([BED, MADE]) {
            let path = self.folder.join(name);
            if path.exists() {
                fs::remove_file(&path).at(&path)?;
            }
        }
        match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            result => result.at(&self.folder),
        }
    }
}

fn parse(text: &str) -> Result<Vec<Thing>, serde_json::Error> {
    text.lines().map(serde_json::from_str).collect()
}

/// The resources of a bed, without opening its state: another process may be at work on it.
///
/// # Errors
/// No bed there.
pub fn things(folder: &Path) -> Result<Vec<Thing>, Failure> {
    let path = folder.join(MADE);
    let text = fs::read_to_string(&path).at(&path)?;
    let whole = text.rfind('\n').map_or(0, |last| last + 1);
    parse(&text[..whole]).at(&path)
}

fn lock(file: &File, path: &Path) -> Result<(), Failure> {
    flock(file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| Failure::broken(path, "another forerun-bed is at work on this bed"))
}

/// The bed of a state directory.
///
/// # Errors
/// No bed there.
pub fn bed(folder: &Path) -> Result<Bed, Failure> {
    let path = folder.join(BED);
    if !path.exists() {
        let why = "no bed is up here";
        return Err(Failure::Usage(format!("{}: {why}", folder.display())));
    }
    bed::load(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_bed() -> Bed {
        bed::parse(include_str!("../beds/disk.toml")).unwrap()
    }

    fn folder(path: &Path) -> Thing {
        Thing::Folder { path: path.into() }
    }

    #[test]
    fn what_was_recorded_is_found_in_order_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let mut state = State::create(place.path(), &a_bed()).unwrap();
        let (one, two) = (folder(Path::new("/one")), folder(Path::new("/two")));
        for thing in [&one, &two, &one] {
            state.record(thing.clone()).unwrap();
        }
        drop(state);
        let state = State::open(place.path()).unwrap();
        assert_eq!(state.things(), [one, two]);
        assert_eq!(bed(place.path()).unwrap(), a_bed());
        state.remove().unwrap();
        assert!(!place.path().exists());
    }

    #[test]
    fn a_torn_line_was_not_made() {
        let place = tempfile::tempdir().unwrap();
        let mut state = State::create(place.path(), &a_bed()).unwrap();
        state.record(folder(Path::new("/one"))).unwrap();
        state.made.write_all(b"{\"folder\":{\"pa").unwrap();
        drop(state);
        let mut state = State::open(place.path()).unwrap();
        assert_eq!(state.things(), [folder(Path::new("/one"))]);
        state.record(folder(Path::new("/two"))).unwrap();
        drop(state);
        assert_eq!(State::open(place.path()).unwrap().things().len(), 2);
    }

    #[test]
    fn one_at_a_time_and_never_in_a_directory_of_others() {
        let place = tempfile::tempdir().unwrap();
        let state = State::create(place.path(), &a_bed()).unwrap();
        let said = |r: Result<State, Failure>| r.unwrap_err().to_string();
        assert!(said(State::open(place.path())).contains("another forerun-bed"));
        assert!(said(State::create(place.path(), &a_bed())).contains("a bed is up"));
        assert!(things(place.path()).unwrap().is_empty());
        drop(state);
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("x"), "").unwrap();
        assert!(said(State::create(other.path(), &a_bed())).contains("not empty"));
        assert!(said(State::open(other.path())).contains("no bed"));
        assert!(bed(other.path()).is_err());
    }
}
