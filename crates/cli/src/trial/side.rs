//! The two candidates of a trial, and a substitute for a mount where none can be made.
//!
//! The kernel reads the files where they are. forerun mounts their directory on a temporary one,
//! anew for each run, so that nothing is left of the run before: programs would get the same, with
//! the cost of FUSE. Without the right to mount, its engine reads as `forerun read` does.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
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

/// How long a mount may take to appear, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked for.
const PERIOD: Duration = Duration::from_millis(5);

/// The begin of the names of mount points.
const PREFIX: &str = "forerun-try-";

/// The mount point of a trial that was killed is removed when it is so old: one in use is busy, and one that is
/// new may be another trial's that mounts now.
const LEFT_AGE: Duration = Duration::from_secs(60 * 60);

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
        let open = |name: &Path| -> Result<Open, Failure> {
            let path = self.folder.join(name);
            let file = File::open(&path).map_err(|e| Failure::broken(&path, plain(&e)))?;
            Ok(Box::new(move |buffer: &mut [u8], at| {
                file.read_at(buffer, at)
            }))
        };
        readers::rate(&open, parts, each)
    }
}

/// The folder through a mount of it.
#[derive(Debug)]
pub struct Mount {
    /// The folder.
    pub folder: PathBuf,
    /// Memory of the mount.
    pub memory: Bytes,
}

impl Side for Mount {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        Ok(Box::new(Mounted::start(&self.folder, self.memory)?))
    }
}

/// A mount on a temporary directory, while it lives.
#[derive(Debug)]
struct Mounted {
    daemon: Child,
    point: TempDir,
}

impl Mounted {
    fn start(folder: &Path, memory: Bytes) -> Result<Self, Failure> {
        let cannot = |e: io::Error| Failure::Run(format!("cannot mount: {}", plain(&e)));
        clear_what_was_left();
        let point = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir()
            .map_err(cannot)?;
        let program = std::env::current_exe().map_err(cannot)?;
        let daemon = Command::new(program)
            // Its input ends with this process, however that ends.
            .args(["mount", "--foreground", "--until-input-ends", "--memory"])
            .arg(size(memory).to_string())
            .args([folder, point.path()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let mut mounted = Self { daemon, point };
        let end = Instant::now() + PATIENCE;
        while point::ours(mounted.point.path())?.is_none() {
            if mounted.daemon.try_wait().map_err(cannot)?.is_some() || Instant::now() > end {
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
        let folder = self.point.path().to_owned();
        Kernel { folder }.rate(parts, each)
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
        let age = entry
            .metadata()
            .ok()
            .and_then(|m| m.modified().ok()?.elapsed().ok());
        if is_dead || age.is_some_and(|age| age > LEFT_AGE) {
            // It may be in use, or another user's.
            let _ = std::fs::remove_dir(&path);
        }
    }
}

/// The folder through the engine, without a mount.
#[derive(Debug)]
pub struct Engine {
    /// The folder.
    pub folder: PathBuf,
    /// The settings of each run's engine.
    pub settings: Settings,
}

impl Side for Engine {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        let driver = Driver::new(Config::new(self.settings.clone()));
        let driver = driver.map_err(|e| Failure::Run(e.to_string()))?;
        Ok(Box::new(Driven {
            folder: self.folder.clone(),
            driver: driver.into(),
        }))
    }
}

struct Driven {
    folder: PathBuf,
    driver: Arc<Driver>,
}

impl Run for Driven {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        let open = |name: &Path| -> Result<Open, Failure> {
            let path = self.folder.join(name);
            let reader = self.driver.open(&path);
            let reader = reader.map_err(|e| Failure::Run(e.to_string()))?;
            Ok(Box::new(move |buffer: &mut [u8], at| {
                reader.read_at(buffer, at)
            }))
        };
        readers::rate(&open, parts, each)
    }
}
