//! The kernel's own readahead on the mount.
//!
//! The engine alone decides the disk's requests. But a program that reads 4 KiB at a time should
//! not cost a round trip to the daemon for each read, and two windows of the kernel keep bytes on
//! the way while the program works. FUSE mounts have 128 KiB unless a privileged user writes
//! another value under `/sys/class/bdi`. Without that right the value stays.

use std::path::PathBuf;
use std::{fs, io};

use forerun_core::Bytes;
use forerun_surface::quantity::size;
use rustix::io::Errno;
use rustix::param::page_size;

/// The best of 128 KiB to 1 MiB with ten readers and more; the table is in docs/MOUNT.md.
pub const DEFAULT: Bytes = Bytes(256 << 10);

/// That of the kernel itself, where a longer read would take two requests: see [`Budget`](super::budget::Budget).
pub const SMALL: Bytes = Bytes(128 << 10);

/// Most: a file that is read alone has 64 of the 1024 requests under way that the kernel shares among all.
const MAX: Bytes = Bytes(64 << 20);

/// Makes sure that the kernel takes a value as it is: it counts pages, and would round the rest of one away.
///
/// # Errors
/// The values that it takes, in words.
pub fn check(bytes: Bytes) -> Result<Bytes, String> {
    let page = Bytes(page_size() as u64);
    match bytes.0.is_multiple_of(page.0) && bytes <= MAX {
        true => Ok(bytes),
        false => Err(format!(
            "must be a multiple of {}, a page of the kernel, from 0 to {}",
            size(page),
            size(MAX)
        )),
    }
}

/// A mount's device: its major and minor number. It is known from the kernel's list of mounts; to ask
/// the mount itself would be to ask ourselves.
type Device = Option<(u32, u32)>;

/// Sets it for the file system of this device.
///
/// # Errors
/// No right to do so.
pub fn set(device: Device, bytes: Bytes) -> io::Result<()> {
    fs::write(setting(device)?, format!("{}\n", bytes.0 >> 10))
}

/// The value for the file system of this device.
///
/// # Errors
/// `/sys` is not there.
pub fn get(device: Device) -> io::Result<Bytes> {
    let text = fs::read_to_string(setting(device)?)?;
    let kib: u64 = text.trim().parse().map_err(io::Error::other)?;
    Ok(Bytes(kib << 10))
}

fn setting(device: Device) -> io::Result<PathBuf> {
    let (major, minor) = device.ok_or(Errno::NODEV)?;
    Ok(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_the_kernel_would_round_is_refused() {
        let page = page_size() as u64;
        for bytes in [0, page, 64 * page, MAX.0] {
            assert_eq!(check(Bytes(bytes)), Ok(Bytes(bytes)));
        }
        for bytes in [1, 256, page - 1, page + 1, MAX.0 + page, 1 << 30, u64::MAX] {
            let said = check(Bytes(bytes)).unwrap_err();
            assert!(said.ends_with("from 0 to 64MiB"), "{bytes}: {said}");
        }
    }
}
