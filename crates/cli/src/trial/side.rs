//! Candidates of a trial, and a substitute for a mount where none can be made.
//!
//! The kernel reads the files where they are. forerun mounts their directory, or the objects of a store, on a
//! temporary one, anew for each run, so that nothing is left of the run before: programs would get the same, with
//! the cost of FUSE. Without the right to mount, its engine reads as `forerun read` does.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forerun_core::{Bytes, Settings};
use forerun_io::{Config, Driver};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::files::Part;
use super::readers::{self, Open};
use crate::failure::Failure;
use crate::files::plain;
use crate::mount::own_mount::OwnMount;
use crate::mount::point;
use crate::quantity::size;
use crate::sources::Sources;

/// How long a mount may take to appear, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked for.
const PERIOD: Duration = Duration::from_millis(5);

/// The begin of the names of mount points; the number of the process follows.
const PREFIX: &str = "forerun-try-";

/// A way to the files.
pub trait Side {
    /// Makes ready for one run.
    ///
    /// # Errors
    /// It cannot be made ready.
    fn begin(&self) -> Result<Box<dyn Run>, Failure>;
}

/// A way to the files that is ready for one run.
pub trait Run {
    /// Reads; bytes a second.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure>;
}

/// Files below this folder, read by the kernel.
#[derive(Debug)]
pub struct Kernel {
    /// The folder.
    pub folder: PathBuf,
}

impl Side for Kernel {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        Ok(Box::new(Self {
            folder: self.folder.clone(),
        }))
    }
}

impl Run for Kernel {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        readers::rate(&|name| self.open(name), parts, each)
    }
}

impl Kernel {
    /// Opens a file, with the read-ahead that the device has now.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self, name: &Path) -> Result<Open, Failure> {
        self.open_as(&self.folder.join(name), name)
    }

    /// The same, with another name in a message.
    fn open_as(&self, shown: &Path, name: &Path) -> Result<Open, Failure> {
        let file = File::open(self.folder.join(name));
        let file = file.map_err(|e| Failure::broken(shown, plain(&e)))?;
        let mut position = 0;
        // At the position of the open file, as most programs read.
        Ok(Box::new(move |buffer: &mut [u8], at| {
            if at != position {
                (&file).seek(SeekFrom::Start(at))?;
            }
            let count = (&file).read(buffer)?;
            position = at + count as u64;
            Ok(count)
        }))
    }
}

/// The folder, or the objects below an address, through a mount.
#[derive(Debug)]
pub struct Mount {
    /// The folder or address.
    pub folder: PathBuf,
    /// Memory of the mount.
    pub memory: Bytes,
    /// Requests to a store are not signed.
    pub is_anonymous: bool,
}

impl Side for Mount {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        let program = std::env::current_exe().map_err(|e| cannot(&e))?;
        let command = |point: &Path| {
            let mut command = Command::new(program);
            // Its input ends with this process, however that ends.
            command
                .args(["mount", "--foreground", "--until-input-ends", "--memory"])
                .arg(size(self.memory).to_string())
                .args(self.is_anonymous.then_some("--anonymous"))
                .args([&self.folder, point]);
            command
        };
        let is_there = |point: &Path| Ok(point::ours(point)?.is_some());
        Ok(Box::new(Mounted::start(&self.folder, command, is_there)?))
    }
}

/// A mount on a temporary directory, while it lives.
#[derive(Debug)]
pub(super) struct Mounted {
    /// The mount's source: the name of its files in messages, as the directory goes with the run.
    source: PathBuf,
    daemon: Child,
    point: TempDir,
}

fn cannot(error: &io::Error) -> Failure {
    Failure::Run(format!("cannot mount: {}", plain(error)))
}

impl Mounted {
    /// Starts a program that mounts on a folder, and waits until it has.
    pub(super) fn start(
        source: &Path,
        command: impl FnOnce(&Path) -> Command,
        is_there: impl Fn(&Path) -> Result<bool, Failure>,
    ) -> Result<Self, Failure> {
        clear_what_was_left();
        let point = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir()
            .map_err(|e| cannot(&e))?;
        let daemon = command(point.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| cannot(&e))?;
        let mut mounted = Self {
            source: source.to_owned(),
            daemon,
            point,
        };
        let end = Instant::now() + PATIENCE;
        while !is_there(mounted.point.path())? {
            let has_ended = mounted.daemon.try_wait().map_err(|e| cannot(&e))?.is_some();
            if has_ended || Instant::now() > end {
                return Err(Failure::Run(mounted.said()));
            }
            std::thread::sleep(PERIOD);
        }
        Ok(mounted)
    }

    /// The last line of a daemon that does not run.
    fn said(&mut self) -> String {
        let _ = self.daemon.kill();
        let mut said = String::new();
        if let Some(stderr) = &mut self.daemon.stderr {
            let _ = io::Read::read_to_string(stderr, &mut said);
        }
        let line = said.lines().last().unwrap_or("it does not answer");
        line.trim_start_matches("forerun: ").to_owned()
    }
}

impl Run for Mounted {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        let below = Kernel {
            folder: self.point.path().to_owned(),
        };
        let open = |name: &Path| below.open_as(&self.source.join(name), name);
        readers::rate(&open, parts, each)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let process = i32::try_from(self.daemon.id()).ok().and_then(Pid::from_raw);
        let _ = process.map(|process| kill_process(process, Signal::TERM));
        let end = Instant::now() + PATIENCE;
        while matches!(self.daemon.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(PERIOD);
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        if matches!(point::ours(self.point.path()), Ok(Some(_))) {
            let left = OwnMount::at(self.point.path());
            let _ = left.map(|(_, left)| left.take_off(self.point.path()));
        } else if super::peers::is_mounted(self.point.path()) {
            super::peers::take_off(self.point.path());
        }
    }
}

/// Mounts and mount points of trials that were killed together with their daemons.
fn clear_what_was_left() {
    let there = std::fs::read_dir(tempfile::env::temp_dir());
    for entry in there.into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let is_dead = matches!(rustix::fs::statfs(&path), Err(Errno::NOTCONN));
        if is_dead
            && matches!(point::ours(&path), Ok(Some(_)))
            && let Ok((_, dead)) = OwnMount::at(&path)
        {
            let _ = dead.take_off(&path);
        }
        if is_dead || has_ended(&entry.file_name().to_string_lossy()) {
            // It may be in use, or another user's.
            let _ = std::fs::remove_dir(&path);
        }
    }
}

/// Whether the process in the name of a mount point runs no longer.
fn has_ended(name: &str) -> bool {
    let number = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split('-').next());
    let number = number.and_then(|number| number.parse::<u32>().ok());
    number.is_none_or(|number| !Path::new(&format!("/proc/{number}")).exists())
}

/// The folder or address through the engine, without a mount.
#[derive(Debug)]
pub struct Engine {
    /// The folder or address.
    pub folder: PathBuf,
    /// The settings of each run's engine.
    pub settings: Settings,
    /// Requests to a store are not signed.
    pub is_anonymous: bool,
}

impl Side for Engine {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        let driver = Driver::new(Config::new(self.settings.clone()));
        let driver = driver.map_err(|e| Failure::Run(e.to_string()))?;
        Ok(Box::new(Driven {
            folder: self.folder.clone(),
            driver: driver.into(),
            sources: Sources::default().anonymous(self.is_anonymous),
        }))
    }
}

struct Driven {
    folder: PathBuf,
    driver: Arc<Driver>,
    sources: Sources,
}

impl Run for Driven {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        let open = |name: &Path| -> Result<Open, Failure> {
            let reader = self.sources.open(&self.driver, &self.folder.join(name))?;
            Ok(Box::new(move |buffer: &mut [u8], at| {
                reader.read_at(buffer, at)
            }))
        };
        readers::rate(&open, parts, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_point_of_a_process_that_has_ended_is_left_over() {
        let own = format!("{PREFIX}{}-Ab3", std::process::id());
        assert!(!has_ended(&own));
        // No process has the largest number.
        assert!(has_ended(&format!("{PREFIX}{}-Ab3", u32::MAX)));
        assert!(has_ended(&format!("{PREFIX}Ab3")));
    }

    #[test]
    fn a_file_that_is_gone_is_named_below_what_is_mounted() {
        let daemon = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let mounted = Mounted {
            source: "/data".into(),
            daemon,
            point: tempfile::tempdir().unwrap(),
        };
        let part = Part {
            file: "gone".into(),
            offset: 0,
            bytes: 1,
        };
        let said = mounted.rate(&[vec![part]], Duration::ZERO).unwrap_err();
        assert_eq!(said.to_string(), "/data/gone: no such file");
    }
}
