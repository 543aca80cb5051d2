//! How far the kernel itself reads ahead on the mount.
//!
//! It does not decide what the disk does, the engine does; but a program that reads 4 KiB at a
//! time should not cost a round trip to the daemon for each, and two windows of the kernel keep
//! bytes on the way while the program works. FUSE mounts get 128 KiB unless somebody with the right
//! to do so writes another value under `/sys/class/bdi`. Where that is refused, it stays so.

use std::path::{Path, PathBuf};
use std::{fs, io};

use forerun_core::Bytes;
use rustix::fs::{major, minor, stat};

/// The best of 128 KiB to 1 MiB with ten readers and more; the table is in docs/MOUNT.md.
pub const DEFAULT: Bytes = Bytes(256 << 10);

/// Sets it for the file system mounted here.
///
/// # Errors
/// No right to do so.
pub fn set(mountpoint: &Path, bytes: Bytes) -> io::Result<()> {
    fs::write(setting(mountpoint)?, format!("{}\n", bytes.0 >> 10))
}

/// What it is for the file system mounted here.
///
/// # Errors
/// `/sys` is not there.
pub fn get(mountpoint: &Path) -> io::Result<Bytes> {
    let text = fs::read_to_string(setting(mountpoint)?)?;
    let kib: u64 = text.trim().parse().map_err(io::Error::other)?;
    Ok(Bytes(kib << 10))
}

fn setting(mountpoint: &Path) -> io::Result<PathBuf> {
    let device = stat(mountpoint)?.st_dev;
    let (major, minor) = (major(device), minor(device));
    Ok(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb").into())
}
