//! The readers of a soak: so many at a time, each a process, replaced when it has ended or was
//! killed.
//!
//! Driven by [`soak`](super) with one call a tick. A reader that ends by itself with an error is a
//! complaint; one that was killed is not. At most 25 readers are started a tick, because a busy
//! machine takes up to 30 ms for a process and memory is to be looked at meanwhile.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::bed::Files;
use crate::failure::{At, Failure};

use super::life::Life;

/// Readers started a tick.
const STARTED_MAX: usize = 25;
/// Complaints that are shown.
const COMPLAINTS_MAX: usize = 5;

/// How the readers ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Processes started.
    pub started: u64,
    /// Ended by themselves, all bytes right.
    pub exited: u64,
    /// Killed.
    pub killed: u64,
    /// Ended with an error, a wrong byte among them.
    pub failed: u64,
}

struct Alive {
    child: Child,
    kill_at: Option<Instant>,
    is_killed: bool,
}

/// See the [module](self).
pub(super) struct Crowd<'a> {
    mount: &'a Path,
    files: &'a Files,
    /// Complaints of readers; a pipe for each would be a descriptor for each.
    log: PathBuf,
    size: usize,
    alive: Vec<Alive>,
    pub(super) counts: Counts,
}

impl<'a> Crowd<'a> {
    /// A crowd that reads the files of a mount.
    pub(super) fn new(mount: &'a Path, files: &'a Files, log: PathBuf, size: usize) -> Self {
        Self {
            mount,
            files,
            log,
            size,
            alive: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Reaps, kills and starts.
    ///
    /// # Errors
    /// A process cannot be started.
    pub(super) fn tick(&mut self, now: Instant) -> Result<(), Failure> {
        self.reap(now);
        for _ in self.alive.len()..self.size.min(self.alive.len() + STARTED_MAX) {
            self.start(now)?;
        }
        Ok(())
    }

    /// Kills all, and reaps them: nothing is left.
    pub(super) fn end(&mut self) {
        for alive in &mut self.alive {
            alive.is_killed |= alive.child.kill().is_ok();
        }
        for mut alive in std::mem::take(&mut self.alive) {
            let status = alive.child.wait().ok();
            self.count(&mut alive, status.is_some_and(|status| status.success()));
        }
    }

    fn reap(&mut self, now: Instant) {
        let mut left = Vec::with_capacity(self.size);
        for mut alive in std::mem::take(&mut self.alive) {
            if alive.kill_at.is_some_and(|at| at <= now) && !alive.is_killed {
                alive.is_killed = alive.child.kill().is_ok();
            }
            match alive.child.try_wait() {
                Ok(None) => left.push(alive),
                Ok(Some(status)) => self.count(&mut alive, status.success()),
                Err(_) => self.count(&mut alive, false),
            }
        }
        self.alive = left;
    }

    fn count(&mut self, alive: &mut Alive, is_success: bool) {
        match (is_success, alive.is_killed) {
            (true, _) => self.counts.exited += 1,
            (false, true) => self.counts.killed += 1,
            (false, false) => self.counts.failed += 1,
        }
    }

    /// The first complaints of readers.
    pub(super) fn complaints(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines()
            .take(COMPLAINTS_MAX)
            .map(str::to_owned)
            .collect()
    }

    fn start(&mut self, now: Instant) -> Result<(), Failure> {
        let number = self.counts.started;
        let program = std::env::current_exe().at(self.mount)?;
        let log = File::options().create(true).append(true).open(&self.log);
        let option = |name: &str, value: u64| [format!("--{name}"), value.to_string()];
        let child = Command::new(program)
            .arg("soak-reader")
            .arg(self.mount)
            .args(option("files", self.files.count))
            .args(option("file-bytes", self.files.file_bytes))
            .args(option("seed", self.files.seed))
            .args(option("number", number))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.at(&self.log)?)
            .spawn()
            .at(self.mount)?;
        let after = Life::of(self.files, number).killed_after();
        self.alive.push(Alive {
            child,
            kill_at: after.map(|after| now + after),
            is_killed: false,
        });
        self.counts.started += 1;
        Ok(())
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
