//! Real mounts in temporary folders, used by real programs. Where there is no `/dev/fuse`, or no
//! right to mount, each test is skipped.

mod announced;
mod attributes;
mod background;
mod bad_input;
#[cfg(feature = "object-store")]
mod bad_keys;
mod change;
mod death;
mod doctor;
#[cfg(feature = "object-store")]
mod emulators;
mod everyday;
mod faults;
#[cfg(feature = "object-store")]
#[path = "../../../store/tests/http_server/mod.rs"]
#[expect(dead_code, reason = "most faults are in the clients' tests")]
mod http_server;
mod lifecycle;
mod limits;
mod listing;
mod liveness;
mod memory;
mod metrics;
mod monitoring;
mod owners;
mod passed_bytes;
mod passthrough;
mod port;
mod reading;
mod record;
mod rights;
mod sessions;
mod silent;
#[path = "../../../skipped.rs"]
mod skipped;
mod small;
mod staleness;
#[cfg(feature = "object-store")]
mod store_walks;
#[cfg(feature = "object-store")]
mod stores;
mod tune;
mod wait;
mod watching;
mod zeros;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use skipped::skipped;
use wait::eventually;

/// Whether this machine can mount; if not, the test is skipped.
#[track_caller]
fn can_mount() -> bool {
    let device = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .is_ok();
    let root = rustix::process::geteuid().is_root();
    if !device || !root {
        skipped("needs /dev/fuse and root");
    }
    device && root
}

/// A folder with a source and a mount point in it, and a mount while it lives.
struct Mounted {
    folder: TempDir,
    daemon: Child,
}

/// A tree below a folder that others may enter.
fn folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["source", "point"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    folder
}

impl Mounted {
    /// A mount of an empty source; none if this machine cannot.
    fn new(flags: &[&str]) -> Option<Self> {
        Self::of(folder(), flags)
    }

    /// A mount of the source in this folder; none if this machine cannot.
    fn of(folder: TempDir, flags: &[&str]) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let daemon = start(folder.path(), flags);
        Some(Self { folder, daemon })
    }

    fn source(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join("source").join(name)
    }

    fn point(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join("point").join(name)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.daemon.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the daemon to end by itself.
    fn ended(&mut self) -> ExitStatus {
        wait::end(&mut self.daemon).expect("the daemon ends")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let mut in_time = true;
        if self.daemon.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.signal(Signal::TERM);
            in_time = wait::end(&mut self.daemon).is_some();
            let _ = self.daemon.kill();
            let _ = self.daemon.wait();
        }
        let _ = Command::new("umount")
            .args(["-lq"])
            .arg(self.folder.path().join("point"))
            .status();
        assert!(
            in_time || std::thread::panicking(),
            "the daemon had to be killed"
        );
    }
}

/// Starts the daemon for a folder and waits until it serves.
fn start(folder: &Path, flags: &[&str]) -> Child {
    start_of(&folder.join("source"), folder, flags, &[])
}

/// The same for any source, with variables.
fn start_of(source: &Path, folder: &Path, flags: &[&str], variables: &[(&str, String)]) -> Child {
    let point = folder.join("point");
    let memory: &[_] = if flags.contains(&"--memory") {
        &[]
    } else {
        &["--memory", "32MiB"]
    };
    let daemon = Command::new(cargo_bin!("forerun"))
        .args(["mount", "--foreground"])
        .args(memory)
        .args(flags)
        .arg(source)
        .arg(&point)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .env("FORERUN_RUNTIME_DIR", folder.join("run"))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    // A dead mount may be there until the daemon has cleared it away.
    wait::mounts_while("the mount appears", &daemon, || {
        is_mounted(&point) && rustix::fs::statfs(&point).is_ok()
    });
    daemon
}

fn is_mounted(point: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = point.to_str().unwrap();
    mounts
        .lines()
        .any(|line| line.split(' ').nth(4) == Some(point))
}

/// Runs a program; its output, on success and failure.
fn run(program: &str, arguments: &[&OsStr]) -> Output {
    Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"))
}

/// Whether `fusermount3` is installed, by which users other than root mount.
fn has_fusermount() -> bool {
    Command::new("fusermount3")
        .arg("--version")
        .output()
        .is_ok()
}

/// Takes a mount off as its user does, or as root does where users cannot.
fn take_off(point: &Path) -> Output {
    match has_fusermount() {
        true => run("fusermount3", &["-u".as_ref(), point.as_ref()]),
        false => run("umount", &[point.as_ref()]),
    }
}

/// Runs forerun; its exit code and its messages.
fn forerun(arguments: &[&OsStr]) -> (i32, String) {
    let output = run(cargo_bin!("forerun").to_str().unwrap(), arguments);
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// Bytes that differ from place to place.
fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; count];
    random.fill(&mut bytes);
    bytes
}
