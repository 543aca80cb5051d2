//! An open folder, listed from any position.
//!
//! Used by the [file system](super) for `readdir`. Positions are the source's own cookies, so a
//! listing that goes on after a pause, or begins again, sees the same as one of the source, also
//! while names come and go. Entries are read a buffer at a time; entries beyond the kernel's answer
//! are kept for the next one.
//!
//! A listing from the first name to the last is also the input of [`walk`](super::walk): its
//! regular files are gathered on the way, if they are wanted.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use rustix::fs::{FileType, RawDir, SeekFrom, seek};
use rustix::io::Errno;

use super::attributes::Attributes;
use super::walk::{Gathered, Listed};
use crate::lock;

/// One system call brings a few hundred names; more only delays the first answer.
const BUFFER_BYTES: usize = 32 * 1024;

/// A name in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// The name, `.` and `..` included.
    pub name: OsString,
    /// Its inode in the source.
    pub inode: u64,
    /// Its kind, if the source's folder holds it.
    pub kind: FileType,
    /// Position of the next name.
    pub next: u64,
}

#[derive(Debug)]
struct Position {
    folder: File,
    /// The position of the first of `ahead`, or of the next read.
    at: u64,
    ahead: VecDeque<Name>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Listing {
    position: Mutex<Position>,
    gathered: Mutex<Gathered>,
}

impl Listing {
    /// The listing of a folder that was opened for reading, which gathers a given number of files
    /// at most.
    #[must_use]
    pub fn new(folder: File, gathers: usize) -> Self {
        let position = Position {
            folder,
            at: 0,
            ahead: VecDeque::new(),
        };
        Self {
            position: position.into(),
            gathered: Gathered::new(gathers).into(),
        }
    }

    /// A name was given, which stands at this position; its size, if it was asked for.
    pub(super) fn gather(&self, at: u64, name: &Name, bytes: u64) {
        let file = || {
            (name.kind == FileType::RegularFile).then(|| Listed {
                name: name.name.clone(),
                inode: name.inode,
                bytes,
            })
        };
        lock(&self.gathered).add(at, name.next, file);
    }

    /// The last name was given: the gathered files, if none before it was passed over, and once.
    pub(super) fn all_gathered(&self) -> Option<Vec<Listed>> {
        lock(&self.gathered).take()
    }

    /// Gives names from a position on to `take`, each with its position, until it does not take one or
    /// there are no more; whether there are no more.
    ///
    /// # Errors
    /// Errors of `getdents64(2)`. None if a name was taken: the kernel would lose it, and the next call has the error.
    pub fn read(&self, from: u64, take: &mut dyn FnMut(u64, &Name) -> bool) -> Result<bool, Errno> {
        let mut position = lock(&self.position);
        position.go_to(from)?;
        let mut is_any_taken = false;
        loop {
            while let Some(name) = position.ahead.front() {
                if !take(position.at, name) {
                    return Ok(false);
                }
                is_any_taken = true;
                position.at = name.next;
                position.ahead.pop_front();
            }
            match position.read_ahead() {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(_) if is_any_taken => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Position {
    fn go_to(&mut self, from: u64) -> Result<(), Errno> {
        // From the start means: as the folder is now.
        if from != self.at || from == 0 {
            seek(&self.folder, SeekFrom::Start(from))?;
            self.ahead.clear();
            self.at = from;
        }
        Ok(())
    }

    /// Reads one buffer of names; false at the end.
    fn read_ahead(&mut self) -> Result<bool, Errno> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut names = RawDir::new(&self.folder, &mut buffer);
        while let Some(name) = names.next() {
            let name = name?;
            let kind = match name.file_type() {
                // Some file systems leave the kind out; programs that walk trees need it.
                FileType::Unknown => Attributes::of(&self.folder, name.file_name())
                    .map_or(FileType::Unknown, |attributes| attributes.kind),
                known => known,
            };
            self.ahead.push_back(Name {
                name: OsStr::from_bytes(name.file_name().to_bytes()).to_owned(),
                inode: name.ino(),
                kind,
                next: name.next_entry_cookie(),
            });
            if names.is_buffer_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A folder of a process, whose listing fails once the process is gone.
    #[test]
    fn a_fault_comes_behind_the_names_before_it_and_is_no_end() {
        let mut process = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let folder = File::open(format!("/proc/{}/task", process.id())).unwrap();
        let listing = Listing::new(folder, 0);
        let (mut count, mut next) = (0, 0);
        let read = listing.read(0, &mut |_, name| {
            process.kill().unwrap();
            process.wait().unwrap();
            (count, next) = (count + 1, name.next);
            true
        });
        assert_eq!((read, count), (Ok(false), 3));
        let mut none = |_, name: &Name| panic!("{name:?}");
        assert!(listing.read(next, &mut none).is_err());
    }
}
