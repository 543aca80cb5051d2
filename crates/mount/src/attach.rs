//! Attaching a channel to a mount point, and taking a mount off again.
//!
//! Called when a mount starts and ends. Root does both with `mount(2)` and `umount2(2)`; other
//! users ask `fusermount3`, which is set-user-id root and passes the channel back over a socket. It
//! is done here and not by `fuser`, which unmounts a path again when its session ends: by then
//! another program may have mounted something there.

use std::ffi::CString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};
use rustix::process::{getgid, getuid};

use crate::failure::Failure;

/// The type of our mounts in `/proc/mounts`.
pub const TYPE: &str = "fuse.forerun";

/// The kernel's device of FUSE.
const DEVICE: &str = "/dev/fuse";

/// Mounts and unmounts for those who are not root.
pub const FUSERMOUNT: &str = "fusermount3";

/// Mounts a new channel.
///
/// # Errors
/// FUSE is not there, or the mount is not allowed.
pub fn mount(
    source: &Path,
    mountpoint: &Path,
    flags: MountFlags,
    everyone: bool,
) -> Result<OwnedFd, Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!("cannot mount on {}: {why}", mountpoint.display()))
    };
    match mount_directly(source, mountpoint, flags, everyone) {
        Err(Errno::PERM | Errno::ACCESS) => {
            mount_by_fusermount(source, mountpoint, flags, everyone).map_err(|e| refused(&e))
        }
        Err(Errno::NOENT | Errno::NODEV) => {
            Err(refused(&format!("{DEVICE} is not there (modprobe fuse)")))
        }
        other => other.map_err(|e| refused(&io::Error::from(e))),
    }
}

fn mount_directly(
    source: &Path,
    mountpoint: &Path,
    flags: MountFlags,
    everyone: bool,
) -> Result<OwnedFd, Errno> {
    let channel = rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions",
        channel.as_raw_fd(),
        getuid(),
        getgid()
    );
    if everyone {
        options.push_str(",allow_other");
    }
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    rustix::mount::mount(source, mountpoint, TYPE, flags, options.as_c_str())?;
    Ok(channel)
}

fn mount_by_fusermount(
    source: &Path,
    mountpoint: &Path,
    flags: MountFlags,
    everyone: bool,
) -> io::Result<OwnedFd> {
    let pair = |flags| socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let (theirs, ours) = pair(SocketFlags::empty())?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    // Commas and backslashes of the name would end it.
    let name = String::from_utf8_lossy(source.as_os_str().as_bytes());
    let name = name.replace('\\', "\\\\").replace(',', "\\,");
    let mut options = format!("ro,default_permissions,subtype=forerun,fsname={name}");
    for (flag, word) in [
        (MountFlags::NODEV, ",nodev"),
        (MountFlags::NOSUID, ",nosuid"),
        (MountFlags::NOEXEC, ",noexec"),
        (MountFlags::NOATIME, ",noatime"),
    ] {
        if flags.contains(flag) {
            options.push_str(word);
        }
    }
    if everyone {
        options.push_str(",allow_other");
    }
    let output = Command::new(FUSERMOUNT)
        .args(["-o", &options, "--"])
        .arg(mountpoint)
        .env("_FUSE_COMMFD", theirs.as_raw_fd().to_string())
        .output()
        .map_err(|e| io::Error::other(format!("{FUSERMOUNT}: {e}")))?;
    drop(theirs);
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(message.trim().to_owned()));
    }
    receive(&ours)
}

/// The channel that was sent over a socket.
fn receive(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut passed = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut bytes, &mut passed, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = passed.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let channel = descriptors.next();
    channel.ok_or_else(|| io::Error::other(format!("{FUSERMOUNT} passed no channel")))
}

/// Takes a mount off its path at once. Files that are open stay readable until they are closed.
///
/// # Errors
/// Nothing is mounted there, or not by this user.
pub fn unmount(mountpoint: &Path) -> io::Result<()> {
    match rustix::mount::unmount(mountpoint, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Err(Errno::PERM) => {
            let arguments = ["-u", "-z", "-q", "--"];
            let output = Command::new(FUSERMOUNT)
                .args(arguments)
                .arg(mountpoint)
                .output()?;
            let message = String::from_utf8_lossy(&output.stderr);
            let failed = || io::Error::other(message.trim().to_owned());
            output.status.success().then_some(()).ok_or_else(failed)
        }
        other => Ok(other?),
    }
}
