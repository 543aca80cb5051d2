//! A writer: changes files below SOURCE, one step after the other.
//!
//! Started by [`changes`](super). Each step is one system call that leads from one version of the
//! [`history`](super::history) to the next, so that every state a file is ever in is a version:
//!
//! ```text
//! rewrite, longer    pwrite all of the new content
//! rewrite, shorter   ftruncate | pwrite all of the new content
//! grow, shrink       ftruncate          append   pwrite at the end
//! replace            (write a temporary file) | rename it over
//! recreate           unlink | create, empty | pwrite
//! rights             chmod 000 or 600, and the next time back to 644
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::content::Draws;
use crate::failure::{At, Failure};

use super::history::{Clock, History, Version};
use super::{FILES_PER_WRITER, SharedCheck, WRITERS, judge};

/// Half of the lengths are below this: a block or two, which come with the open.
const SHORT_BYTES: u64 = 9_000;
/// Lengths: more than the 128 KiB and 256 KiB that the kernel reads ahead.
const LENGTH_MAX: u64 = 300_000;
/// Pauses between changes, at most: shorter ones leave nothing unchanged while it is read.
const PAUSE_US_MAX: u64 = 4_000;

/// Makes a file, with its first content.
pub(super) fn create(clock: &Clock, seed: u64, file: u64, path: &Path) -> io::Result<History> {
    let length = 1 + file * 1_000;
    let made = new_file(path, true)?;
    write(&made, seed, file, 1, 0, length)?;
    let version = Version {
        incarnation: 1,
        content: 1,
        written: length,
        length,
        is_public: true,
    };
    Ok(History::new(version, clock.now()))
}

/// Changes its files until the time is over; how many changes there were of each kind.
pub(super) fn run(shared: &SharedCheck, number: u64) -> Result<BTreeMap<String, u64>, Failure> {
    let mut draws = Draws::new(shared.changing.seed ^ (number + 1) << 32);
    let mut changes = BTreeMap::new();
    while shared.goes_on() {
        // The first of its files changes as often as all others together.
        let own = match draws.below(2) {
            0 => 0,
            _ => draws.below(FILES_PER_WRITER),
        };
        let file = number + own * WRITERS;
        let path = shared.source(file);
        let mut change = Change {
            shared,
            history: &shared.histories[usize::try_from(file).unwrap_or(0)],
            file,
            path: &path,
            draws: &mut draws,
        };
        let kind = change.any().at(&path)?;
        *changes.entry(kind.to_owned()).or_default() += 1;
        thread::sleep(Duration::from_micros(draws.below(PAUSE_US_MAX)));
    }
    Ok(changes)
}

struct Change<'a> {
    shared: &'a SharedCheck,
    history: &'a History,
    file: u64,
    path: &'a Path,
    draws: &'a mut Draws,
}

impl Change<'_> {
    fn any(&mut self) -> io::Result<&'static str> {
        let current = self.history.current();
        match self.draws.below(7) {
            0 => self.grow(current),
            1 => self.shrink(current),
            // Appended bytes come right after the written ones.
            2 if current.written == current.length && current.length < LENGTH_MAX => {
                self.append(current)
            }
            3 => self.replace(current),
            4 => self.recreate(current),
            5 => self.change_rights(current),
            _ => self.rewrite(current),
        }
    }

    fn step<T>(
        &self,
        version: Version,
        is_in_place: bool,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let clock = &self.shared.clock;
        self.history.change(clock, version, is_in_place, act)
    }

    fn length(&mut self) -> u64 {
        let max = match self.draws.below(2) {
            0 => SHORT_BYTES,
            _ => LENGTH_MAX,
        };
        1 + self.draws.below(max)
    }

    fn new_content(&self) -> u32 {
        u32::try_from(self.history.contents() + 1).unwrap_or(u32::MAX)
    }

    fn write(&self, file: &File, content: u32, from: u64, to: u64) -> io::Result<()> {
        let seed = self.shared.changing.seed;
        write(file, seed, self.file, content, from, to)
    }

    fn opened(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path)
    }

    fn rewrite(&mut self, current: Version) -> io::Result<&'static str> {
        let (length, file) = (self.length(), self.opened()?);
        if length < current.length {
            self.set_length(&file, current, length)?;
        }
        let version = Version {
            content: self.new_content(),
            written: length,
            length,
            ..current
        };
        self.step(version, true, || {
            self.write(&file, version.content, 0, length)
        })?;
        Ok("rewrite")
    }

    fn set_length(&self, file: &File, current: Version, length: u64) -> io::Result<()> {
        let version = Version {
            written: current.written.min(length),
            length,
            ..current
        };
        self.step(version, true, || file.set_len(length))
    }

    fn grow(&mut self, current: Version) -> io::Result<&'static str> {
        let length = current.length + self.draws.below(SHORT_BYTES);
        self.set_length(&self.opened()?, current, length.min(2 * LENGTH_MAX))?;
        Ok("grow")
    }

    fn shrink(&mut self, current: Version) -> io::Result<&'static str> {
        let length = self.draws.below(current.length);
        self.set_length(&self.opened()?, current, length)?;
        Ok("shrink")
    }

    fn append(&mut self, current: Version) -> io::Result<&'static str> {
        let length = current.length + 1 + self.draws.below(SHORT_BYTES);
        let version = Version {
            content: current.content.max(1),
            written: length,
            length,
            ..current
        };
        let file = self.opened()?;
        self.step(version, true, || {
            self.write(&file, version.content, current.length, length)
        })?;
        Ok("append")
    }

    /// The next file of this name, not public one time in four.
    fn next_file(&mut self, current: Version) -> Version {
        let length = self.length();
        Version {
            incarnation: current.incarnation + 1,
            content: self.new_content(),
            written: length,
            length,
            is_public: self.draws.below(4) > 0,
        }
    }

    fn replace(&mut self, current: Version) -> io::Result<&'static str> {
        let version = self.next_file(current);
        let temporary = self.path.with_extension("new");
        let file = new_file(&temporary, version.is_public)?;
        self.write(&file, version.content, 0, version.length)?;
        self.step(version, false, || fs::rename(&temporary, self.path))?;
        Ok("replace")
    }

    fn recreate(&mut self, current: Version) -> io::Result<&'static str> {
        let version = self.next_file(current);
        let absent = Version::default();
        let empty = Version {
            content: 0,
            written: 0,
            length: 0,
            ..version
        };
        self.step(absent, false, || fs::remove_file(self.path))?;
        let file = self.step(empty, false, || new_file(self.path, version.is_public))?;
        self.step(version, true, || {
            self.write(&file, version.content, 0, version.length)
        })?;
        Ok("recreate")
    }

    fn change_rights(&mut self, current: Version) -> io::Result<&'static str> {
        let mode = match (current.is_public, self.draws.below(2)) {
            (false, _) => 0o644,
            (true, 0) => 0o000,
            (true, _) => 0o600,
        };
        let version = Version {
            is_public: !current.is_public,
            ..current
        };
        let rights = Permissions::from_mode(mode);
        self.step(version, false, || fs::set_permissions(self.path, rights))?;
        Ok("rights")
    }
}

fn new_file(path: &Path, is_public: bool) -> io::Result<File> {
    let mode = if is_public { 0o644 } else { 0o600 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// Writes a content from one place to another, by one call.
fn write(file: &File, seed: u64, number: u64, content: u32, from: u64, to: u64) -> io::Result<()> {
    let length = usize::try_from(to - from).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    judge::fill(seed, number, content, from, &mut bytes);
    file.write_all_at(&bytes, from)
}
