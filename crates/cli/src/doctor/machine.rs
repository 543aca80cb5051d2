//! The machine that is examined, as files below a root and a few answers of the system.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use forerun_surface::daemon::status;

use crate::mount::sockets::Sockets;

/// No file that is looked at is longer.
const BYTES_MAX: u64 = 1 << 20;

/// Room on a file system for a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Free bytes.
    pub bytes: u64,
    /// Free inodes; none where the file system does not count them.
    pub inodes: Option<u64>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Machine {
    /// A folder in place of `/`.
    pub root: PathBuf,
    /// The number of the device of FUSE.
    pub fuse: (u32, u32),
    /// The time.
    pub now: SystemTime,
    /// Asks for the room on the file system of a path.
    pub space: fn(&Path) -> io::Result<Space>,
    /// This program, which is started for [probes](super::probe).
    pub program: PathBuf,
    /// The folders in which a shell looks for programs.
    pub search_path: Option<OsString>,
    /// Control sockets of mounts.
    pub sockets: Sockets,
    /// A journal that is to be replayed.
    pub journal: Option<PathBuf>,
}

impl Machine {
    /// The machine this program runs on.
    #[must_use]
    pub fn this(sockets: Sockets, search_path: Option<OsString>, journal: Option<PathBuf>) -> Self {
        Self {
            root: "/".into(),
            fuse: (10, 229),
            now: SystemTime::now(),
            space,
            // Also where the file was replaced or removed since.
            program: "/proc/self/exe".into(),
            search_path,
            sockets,
            journal,
        }
    }

    /// A path below the root.
    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file, with replacements for bytes that are none.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let mut bytes = Vec::new();
        let file = File::open(self.path(path))?;
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The names in a folder, sorted; none if it is not there.
    pub(super) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A field of `/proc/self/status`.
    fn status(&self, name: &str) -> Option<String> {
        let status = self.text("/proc/self/status").ok()?;
        status::field(&status, name).map(str::to_owned)
    }

    /// Whether the user is root, by the effective number.
    pub(super) fn is_root(&self) -> bool {
        let numbers = self.status("Uid:").unwrap_or_default();
        numbers.split_whitespace().nth(1) == Some("0")
    }

    /// Whether the process has this capability, by its number in `linux/capability.h`.
    pub(super) fn has(&self, capability: u32) -> bool {
        let status = self.text("/proc/self/status").unwrap_or_default();
        status::has(&status, "CapEff:", capability)
    }

    /// Major and minor version of the kernel, and its whole name.
    pub(super) fn kernel(&self) -> Option<((u32, u32), String)> {
        let name = self.text("/proc/sys/kernel/osrelease").ok()?;
        let mut numbers = name.trim().split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok();
        Some(((number()?, number()?), name.trim().to_owned()))
    }

    /// Whether the kernel is of this version or a later one; not if its version is not known.
    pub(super) fn is_linux(&self, major: u32, minor: u32) -> bool {
        let kernel = self.kernel();
        kernel.is_some_and(|(version, _)| version >= (major, minor))
    }
}

fn space(path: &Path) -> io::Result<Space> {
    let told = rustix::fs::statvfs(path)?;
    Ok(Space {
        bytes: told.f_bavail.saturating_mul(told.f_frsize),
        inodes: (told.f_files > 0).then_some(told.f_favail),
    })
}
