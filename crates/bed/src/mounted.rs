//! A program that mounts a file system and serves it: started, waited for, ended.
//!
//! Used by `table` and `small` for `forerun mount`, and by `small` for `forerun-bed passthrough`.
//! The mount is recorded as ours before the program begins, so `down` finds it after a kill:
//!
//! ```text
//! record the mount -> start -> [join a memory group] -> wait for a change of the mounts
//!                                      .. measured ..
//! SIGTERM, as a service manager ends it, or unmount -> wait for its end -> undo the mount
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::failure::{At, Failure};
use crate::kernel;
use crate::memory_group;
use crate::state::{self, State};
use crate::thing::Thing;

/// A mount takes milliseconds; this is for a machine that stands still.
const START_MAX: Duration = Duration::from_secs(20);
/// It has nothing to write back.
const STOP_MAX: Duration = Duration::from_secs(10);
/// Time to wait for a change of the mounts before looking whether the program still runs.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// How the program is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// By SIGTERM.
    Signal,
    /// By unmounting: it handles no signal.
    Unmount,
}

/// A running program with its mount.
#[derive(Debug)]
pub struct Mounted {
    child: Child,
    name: String,
    path: PathBuf,
    end: End,
}

fn mount(path: &Path) -> Thing {
    Thing::Mount {
        path: path.into(),
        kind: "fuse".into(),
    }
}

impl Mounted {
    /// Starts the program, which mounts on `path` and stays in the foreground, and waits until it
    /// has mounted. It is in the memory group from its first page on.
    ///
    /// # Errors
    /// It cannot be started, or ended without having mounted; with its complaints.
    pub fn start(
        state: &mut State,
        path: &Path,
        name: (&str, End),
        command: Command,
        group: Option<&Path>,
    ) -> Result<Self, Failure> {
        state.record(mount(path))?;
        let log = state.folder().join(state::RIVAL_LOG);
        Self::start_unrecorded(path, name, command, group, &log)
    }

    /// The same without a bed: the caller unmounts a mount that was killed.
    ///
    /// # Errors
    /// As above.
    pub fn start_unrecorded(
        path: &Path,
        (name, end): (&str, End),
        mut command: Command,
        group: Option<&Path>,
        log: &Path,
    ) -> Result<Self, Failure> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log).at(log)?)
            .spawn()
            .map_err(|e| Failure::Usage(format!("{name}: {e}")))?;
        let mut mounted = Self {
            child,
            name: name.into(),
            path: path.into(),
            end,
        };
        // It has touched next to nothing yet: its cache is charged to the group.
        let joined = group.map_or(Ok(()), |group| memory_group::add(group, mounted.child.id()));
        match joined.and_then(|()| mounted.wait(log)) {
            Ok(()) => Ok(mounted),
            Err(failure) => {
                // It may have ended already, and then there is nothing to end.
                let _ = mounted.child.kill();
                let _ = mounted.child.wait();
                Err(failure)
            }
        }
    }

    /// The kernel signals changes of the list of mounts.
    fn wait(&mut self, log: &Path) -> Result<(), Failure> {
        let (name, path) = (&self.name, &self.path);
        let began = Instant::now();
        let list = File::open("/proc/self/mountinfo").at(path)?;
        while kernel::mounts_on(path)?.is_empty() {
            if let Some(status) = self.child.try_wait().at(path)? {
                let said = fs::read_to_string(log).unwrap_or_default();
                let text = format!("{name} ended with {status}: {}", said.trim_end());
                return Err(Failure::Run(text));
            }
            if began.elapsed() > START_MAX {
                return Err(Failure::broken(path, format!("{name} does not mount")));
            }
            poll(&mut [PollFd::new(&list, PollFlags::PRI)], Some(&LOOK)).at(path)?;
        }
        Ok(())
    }

    /// The number of its process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, and waits until it and its mount are gone.
    ///
    /// # Errors
    /// It did not end in time, or not well.
    pub fn stop(mut self) -> Result<(), Failure> {
        let path = &self.path;
        let pid = Pid::from_child(&self.child);
        let ended = pidfd_open(pid, PidfdFlags::empty()).at(path)?;
        let asked = match self.end {
            // One that ended by itself cannot be signalled; its status tells.
            End::Signal => {
                let _ = kill_process(pid, Signal::TERM);
                Ok(())
            }
            End::Unmount => mount(path).undo(),
        };
        let limit = Timespec::try_from(STOP_MAX).at(path)?;
        let stopped = asked.is_ok()
            && poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&limit)).at(path)? > 0;
        if !stopped {
            self.child.kill().at(path)?;
        }
        let status = self.child.wait().at(path)?;
        mount(path).undo()?;
        asked?;
        if stopped && status.success() {
            return Ok(());
        }
        let (name, end) = (&self.name, self.end);
        let text = format!("{name} did not end well by {end:?}: {status}");
        Err(Failure::broken(path, text))
    }
}
