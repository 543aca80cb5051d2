//! Checks of what a mount needs of the system: kernel, FUSE, rights, log, clock, space.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use super::{Check, Machine};
use crate::files::plain;
use crate::quantity::rough_size;

/// Numbers of `linux/capability.h`.
const DAC_OVERRIDE: u32 = 1;
const DAC_READ_SEARCH: u32 = 2;
const SYS_ADMIN: u32 = 21;

/// The first kernel with `openat2(2)`, by which nothing leads out of a source.
const KERNEL: (u32, u32) = (5, 6);
/// The first with FUSE passthrough.
const PASSTHROUGH: (u32, u32) = (6, 9);

/// Where `fusermount3` is looked for beside the search path, which cron and systemd make short.
const FOLDERS: &[&str] = &["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"];

/// A clock that is behind by less was set meanwhile.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// A control socket and a journal's first part are smaller.
const SPACE: u64 = 1 << 20;

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    let mut checks = vec![kernel(machine), fuse(machine)];
    if machine.is_root() {
        checks.push(rights(machine));
    } else {
        checks.extend([fusermount(machine), allow_other(machine)]);
    }
    checks.extend([
        passthrough(machine),
        log(machine),
        clock(machine),
        sockets(machine),
    ]);
    checks
}

fn kernel(machine: &Machine) -> Check {
    let (major, minor) = KERNEL;
    match machine.kernel() {
        Some((version, name)) if version < KERNEL => Check::fail(
            "kernel",
            format!("Linux {name}"),
            format!("a mount needs Linux {major}.{minor} or later"),
        ),
        Some((_, name)) => Check::ok("kernel", format!("Linux {name}")),
        None => Check::warn(
            "kernel",
            "its version cannot be read",
            "mount /proc: `mount -t proc proc /proc`",
        ),
    }
}

fn fuse(machine: &Machine) -> Check {
    const DEVICE: &str = "/dev/fuse";
    let path = machine.path(DEVICE);
    let (major, minor) = machine.fuse;
    let Ok(there) = fs::metadata(&path) else {
        return Check::fail(
            "fuse",
            format!("{DEVICE} is not there"),
            "modprobe fuse; a container is started with --device /dev/fuse --cap-add SYS_ADMIN",
        );
    };
    let device = there.rdev();
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    if !there.file_type().is_char_device() || device != (major, minor) {
        return Check::fail(
            "fuse",
            format!("{DEVICE} is not the device {major}:{minor}"),
            format!("rm {DEVICE} && mknod -m 666 {DEVICE} c {major} {minor}"),
        );
    }
    match File::options().read(true).write(true).open(&path) {
        Ok(_) => Check::ok("fuse", format!("{DEVICE} can be opened")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Check::fail(
            "fuse",
            format!("{DEVICE}: {}", plain(&error)),
            format!("chmod 666 {DEVICE}; a container is started with --device {DEVICE}"),
        ),
        Err(error) => Check::fail(
            "fuse",
            format!("{DEVICE}: {}", plain(&error)),
            "modprobe fuse",
        ),
    }
}

/// Users mount by this program, which is root's by its set-user-id bit.
fn fusermount(machine: &Machine) -> Check {
    const NAME: &str = crate::mount::attach::FUSERMOUNT;
    const SET_USER_ID: u32 = 0o4000;
    let path = machine.search_path.clone().unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let folders = folders.chain(FOLDERS.iter().map(Into::into));
    let mut programs = folders.map(|folder| folder.join(NAME));
    let found = programs.find_map(|path| Some((fs::metadata(machine.path(&path)).ok()?, path)));
    match found {
        None => Check::fail(
            "fusermount",
            format!("{NAME} is not installed, and users other than root mount by it"),
            "install the package fuse3",
        ),
        Some((there, path)) if there.mode() & SET_USER_ID == 0 => Check::fail(
            "fusermount",
            format!("{} has no set-user-id bit", path.display()),
            format!("chmod u+s {} as root, if it is root's", path.display()),
        ),
        Some((_, path)) => Check::ok("fusermount", path.display().to_string()),
    }
}

fn allow_other(machine: &Machine) -> Check {
    const FILE: &str = "/etc/fuse.conf";
    const LINE: &str = "user_allow_other";
    let text = machine.text(FILE).unwrap_or_default();
    match text.lines().any(|line| line.trim() == LINE) {
        true => Check::ok("allow-other", format!("{FILE} has {LINE}")),
        false => Check::warn(
            "allow-other",
            format!("{FILE} has no {LINE}: a user's mount is for that user alone"),
            format!("for --allow-other: echo {LINE} | sudo tee -a {FILE}"),
        ),
    }
}

/// Root in a container may have no right to mount.
fn rights(machine: &Machine) -> Check {
    if !machine.has(SYS_ADMIN) {
        return Check::fail(
            "rights",
            "root without CAP_SYS_ADMIN, as in a container: it may not mount",
            "start the container with --cap-add SYS_ADMIN --device /dev/fuse",
        );
    }
    match machine.has(DAC_READ_SEARCH) || machine.has(DAC_OVERRIDE) {
        true => Check::ok("rights", "root may mount, and read every file"),
        false => Check::warn(
            "rights",
            "root without CAP_DAC_READ_SEARCH: files of other users cannot be read",
            "start the container or the unit with CAP_DAC_READ_SEARCH",
        ),
    }
}

/// No fault where it is missing: a mount works without.
fn passthrough(machine: &Machine) -> Check {
    let (major, minor) = PASSTHROUGH;
    let is_possible = machine.is_linux(major, minor) && machine.has(SYS_ADMIN);
    Check::ok(
        "passthrough",
        match is_possible {
            true => "possible: files in the page cache are read without the daemon".to_owned(),
            false => format!("not used: it needs root and Linux {major}.{minor}"),
        },
    )
}

fn log(machine: &Machine) -> Check {
    const LOG: &str = "/dev/log";
    match machine.path(LOG).exists() {
        true => Check::ok(
            "log",
            format!("{LOG} takes the lines of mounts in the background"),
        ),
        false => Check::warn(
            "log",
            format!("{LOG} is not there: lines of a mount in the background are lost"),
            "start a syslog daemon, or mount with --foreground below a supervisor",
        ),
    }
}

/// No clock of reference is asked: this program cannot be newer than the present.
fn clock(machine: &Machine) -> Check {
    let program = fs::metadata(machine.path("/proc/self/exe"));
    let behind = program.and_then(|program| program.modified()).ok();
    let behind = behind.and_then(|time| time.duration_since(machine.now).ok());
    match behind.filter(|behind| *behind > CLOCK_TOLERANCE) {
        None => Check::ok("clock", "not before this program was installed"),
        Some(behind) => {
            let hours = behind.as_secs().div_ceil(3600);
            Check::fail(
                "clock",
                format!("{hours} h before the time at which this program was installed"),
                "timedatectl set-ntp true; object stores refuse requests that are 15 minutes off",
            )
        }
    }
}

/// The folder in which a mount makes the socket by which `top` finds it.
fn sockets(machine: &Machine) -> Check {
    let folder = match machine.sockets.preferred() {
        Ok(folder) => folder,
        Err(why) => {
            return Check::warn(
                "sockets",
                format!("`forerun top` will not find mounts: {why}"),
                "set FORERUN_RUNTIME_DIR to a folder of this user alone (mode 0700)",
            );
        }
    };
    let there = folder.ancestors().find(|folder| folder.exists());
    let there = there.unwrap_or(Path::new("/"));
    match (machine.space)(there) {
        Ok(space) if space.bytes < SPACE || space.inodes == Some(0) => Check::fail(
            "sockets",
            format!(
                "{}: {} and {} left: a mount cannot make its control socket",
                there.display(),
                rough_size(space.bytes as f64),
                space
                    .inodes
                    .map_or_else(|| "inodes".to_owned(), |inodes| format!("{inodes} inodes")),
            ),
            format!("make room: df {}", there.display()),
        ),
        _ => Check::ok("sockets", folder.display().to_string()),
    }
}
