//! One value of the kernel in a file below `/sys`: a read-ahead in KiB, or a scheduler.
//!
//! The file of a scheduler lists all, the present one in brackets (`none [mq-deadline] bfq`); its value here is the
//! present one's name. Other names of files are refused, so that a record that was tampered with writes nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the file of a bdi's read-ahead.
pub const READ_AHEAD: &str = "read_ahead_kb";

/// Name of the file of a disk's scheduler.
pub const SCHEDULER: &str = "scheduler";

/// Pages are of 4 KiB, or of 16 or 64 on some processors.
const PAGE_KIB_MAX: u64 = 64;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Knob(PathBuf);

impl Knob {
    /// The value in a file.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether it is a scheduler.
    #[must_use]
    pub fn is_scheduler(&self) -> bool {
        self.0.file_name().is_some_and(|name| name == SCHEDULER)
    }

    /// The present value.
    ///
    /// # Errors
    /// The device is gone, or has no such file.
    pub fn read(&self) -> io::Result<String> {
        let text = fs::read_to_string(&self.0)?;
        let text = text.trim();
        let chosen = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        Ok(match chosen {
            Some((name, _)) if self.is_scheduler() => name.to_owned(),
            _ => text.to_owned(),
        })
    }

    /// The values there are, of a scheduler; of a read-ahead none.
    #[must_use]
    pub fn choices(&self) -> Vec<String> {
        if !self.is_scheduler() {
            return Vec::new();
        }
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let names = text.split_whitespace();
        names
            .map(|name| name.trim_matches(['[', ']']).to_owned())
            .collect()
    }

    /// Sets it; the value that the kernel makes of it, which rounds a read-ahead down to whole pages. Another value that
    /// is there right after is another program's, and not returned.
    ///
    /// # Errors
    /// No right, no such value, or no such file.
    pub fn write(&self, value: &str) -> io::Result<String> {
        let is_read_ahead = self.0.file_name().is_some_and(|name| name == READ_AHEAD);
        if !is_read_ahead && !self.is_scheduler() {
            return Err(io::Error::other("neither a read-ahead nor a scheduler"));
        }
        // Not made if it is not there: then its device is gone.
        let file = fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&self.0)?;
        io::Write::write_all(&mut &file, value.as_bytes())?;
        let present = self.read()?;
        let number = |text: &str| text.parse::<u64>().ok();
        let lost = number(value).zip(number(&present));
        let lost = lost.and_then(|(wanted, present)| wanted.checked_sub(present));
        match lost {
            Some(lost) if lost < PAGE_KIB_MAX => Ok(present),
            _ => Ok(value.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_is_the_one_in_brackets_and_nothing_else_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            Knob::new(path)
        };
        let scheduler = at(SCHEDULER, "none [mq-deadline] bfq\n");
        assert_eq!(scheduler.read().unwrap(), "mq-deadline");
        assert_eq!(scheduler.choices(), ["none", "mq-deadline", "bfq"]);
        assert_eq!(scheduler.write("bfq").unwrap(), "bfq");
        let read_ahead = at(READ_AHEAD, "128\n");
        assert_eq!(read_ahead.write("1024").unwrap(), "1024");
        assert!(read_ahead.choices().is_empty());
        let other = at("shadow", "x");
        other.write("y").unwrap_err();
        assert_eq!(fs::read_to_string(other.path()).unwrap(), "x");
        let gone = Knob::new(folder.path().join("gone").join(SCHEDULER));
        gone.write("bfq").unwrap_err();
        assert!(!gone.path().exists());
    }
}
