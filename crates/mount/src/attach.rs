//! Attaching a channel to a mount point, and taking a mount off again.
//!
//! Called when a mount starts and ends. Root does both by `fsmount(2)` and
//! `umount2(2)`, on a [mount that is known](super::own_mount) by its number; other users ask `fusermount3`, which is set-user-id root and passes the channel back over a socket. It
//! is done here and not by `fuser`, which unmounts a path again when its session ends: by then
//! another program may have mounted something there.

use std::borrow::Cow;
use std::ffi::CString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, ResolveFlags, flock, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};
use rustix::process::{getgid, getuid};

use super::own_mount::OwnMount;
use super::point;
use crate::failure::Failure;
use crate::files::plain;

/// The type of our mounts in `/proc/mounts`.
pub const TYPE: &str = "fuse.forerun";

/// The same without the name of the file system.
const SUBTYPE: &str = "forerun";

/// The kernel's device of FUSE.
const DEVICE: &str = "/dev/fuse";

/// The longest value of `fsconfig(2)`, without its zero byte.
const NAME_BYTES_MAX: usize = 255;

/// How often the turn to mount is asked for, and the pause between: others mount within milliseconds,
/// and a lock that a stranger has on the folder costs a second.
const TURN_TRIES: u32 = 100;
const TURN_PAUSE: Duration = Duration::from_millis(10);

/// Mounts and unmounts for users other than root.
pub const FUSERMOUNT: &str = "fusermount3";

/// Mounts a new channel; and the mount it is, if the kernel tells.
///
/// # Errors
/// FUSE is not there, or the mount is not allowed, or another mount came first.
pub fn mount(
    source: &Path,
    mountpoint: &Path,
    flags: MountFlags,
    everyone: bool,
) -> Result<(OwnedFd, Option<OwnMount>), Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!("cannot mount on {}: {why}", mountpoint.display()))
    };
    let occupied = || refused(&"something is mounted here already");
    let turn = turn(mountpoint);
    if point::mounts().is_ok_and(|all| all.iter().any(|other| other.point == mountpoint)) {
        return Err(occupied());
    }
    let device = OFlags::RDWR | OFlags::CLOEXEC;
    let channel = match rustix::fs::open(DEVICE, device, Mode::empty()) {
        Err(Errno::NOENT | Errno::NODEV | Errno::NXIO) => {
            return Err(refused(&format!("{DEVICE} is not there (modprobe fuse)")));
        }
        opened => opened,
    };
    let mounted = channel.and_then(|channel| {
        let own = match mount_directly(&channel, source, mountpoint, flags, everyone) {
            // An old container may allow root the old call only.
            Err(Errno::NOSYS | Errno::PERM) if getuid().is_root() => {
                mount_by_path(&channel, source, mountpoint, flags, everyone)?
            }
            own => Some(own?),
        };
        Ok((channel, own))
    });
    let (channel, own) = match mounted {
        // A container may refuse these calls, and allow that program its own.
        Err(direct @ (Errno::PERM | Errno::ACCESS | Errno::NOSYS)) => {
            let channel = mount_by_fusermount(source, mountpoint, flags, everyone);
            let channel = channel.map_err(|error| match getuid().is_root() {
                true => refused(&format!("{}; {error}", io::Error::from(direct))),
                false => refused(&error),
            })?;
            (channel, OwnMount::at(mountpoint).ok().map(|(_, own)| own))
        }
        mounted => mounted.map_err(|e| refused(&io::Error::from(e)))?,
    };
    // Another program asks for no turn.
    if let Some(own) = own
        && !own.stands_alone()
    {
        own.take_off(mountpoint).map_err(|error| refused(&error))?;
        return Err(occupied());
    }
    drop(turn);
    Ok((channel, own))
}

/// The turn to mount here: a lock on the folder that is to be covered, because the kernel stacks two
/// mounts of one path, and takes off the upper one whichever is meant. None where folders cannot be locked.
fn turn(mountpoint: &Path) -> Option<OwnedFd> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(mountpoint, folder, Mode::empty()).ok()?;
    for _ in 0..TURN_TRIES {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::WOULDBLOCK) => thread::sleep(TURN_PAUSE),
            Err(_) => return None,
        }
    }
    None
}

/// The mount exists, and is known, before it is attached: to the folder found without following a
/// link, because none was in the path when it was checked.
fn mount_directly(
    channel: &OwnedFd,
    source: &Path,
    mountpoint: &Path,
    flags: MountFlags,
    everyone: bool,
) -> Result<OwnMount, Errno> {
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let text = |key, value: &str| fsconfig_set_string(&context, key, value);
    fsconfig_set_string(&context, "source", &*shown(source))?;
    text("subtype", SUBTYPE)?;
    text("fd", &channel.as_raw_fd().to_string())?;
    text("rootmode", "40000")?;
    text("user_id", &getuid().to_string())?;
    text("group_id", &getgid().to_string())?;
    fsconfig_set_flag(&context, "default_permissions")?;
    fsconfig_set_flag(&context, "ro")?;
    if everyone {
        fsconfig_set_flag(&context, "allow_other")?;
    }
    fsconfig_create(&context)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
    for (flag, attribute) in [
        (MountFlags::NODEV, MountAttrFlags::MOUNT_ATTR_NODEV),
        (MountFlags::NOSUID, MountAttrFlags::MOUNT_ATTR_NOSUID),
        (MountFlags::NOEXEC, MountAttrFlags::MOUNT_ATTR_NOEXEC),
        (MountFlags::NOATIME, MountAttrFlags::MOUNT_ATTR_NOATIME),
        (
            MountFlags::NODIRATIME,
            MountAttrFlags::MOUNT_ATTR_NODIRATIME,
        ),
    ] {
        attributes.set(attribute, flags.contains(flag));
    }
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let own = OwnMount::of(&root)?;
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let folder = match openat2(CWD, mountpoint, folder, Mode::empty(), no_links) {
        // A store needs no such call beside this one.
        Err(Errno::NOSYS | Errno::PERM) => {
            rustix::fs::open(mountpoint, folder | OFlags::NOFOLLOW, Mode::empty())?
        }
        opened => opened?,
    };
    let both_empty =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&root, "", &folder, "", both_empty)?;
    Ok(own)
}

/// By `mount(2)`: the mount is known only after it was attached, if at all. It works in any case.
fn mount_by_path(
    channel: &OwnedFd,
    source: &Path,
    mountpoint: &Path,
    flags: MountFlags,
    everyone: bool,
) -> Result<Option<OwnMount>, Errno> {
    let (channel, user, group) = (channel.as_raw_fd(), getuid(), getgid());
    let others = if everyone { ",allow_other" } else { "" };
    let options = format!(
        "fd={channel},rootmode=40000,user_id={user},group_id={group},default_permissions{others}"
    );
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    rustix::mount::mount(source, mountpoint, TYPE, flags, options.as_c_str())?;
    Ok(OwnMount::at(mountpoint).ok().map(|(_, own)| own))
}

/// The name of a source in the kernel's list, which takes 255 bytes: of a longer one the end.
fn shown(source: &Path) -> Cow<'_, [u8]> {
    const CUT: &[u8] = b"...";
    let name = source.as_os_str().as_bytes();
    match name.len().checked_sub(NAME_BYTES_MAX) {
        None | Some(0) => name.into(),
        Some(more) => [CUT, &name[more + CUT.len()..]].concat().into(),
    }
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
    receive(&ours).inspect_err(|_| {
        // No process serves the mount of that program.
        if let Err(error) = unmount_by_fusermount(mountpoint, true) {
            tracing::warn!("cannot unmount {}: {error}", mountpoint.display());
        }
    })
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

/// Takes a mount off its path, for users other than root; one that is in use only if `lazy`.
///
/// # Errors
/// Nothing is mounted there, or not by this user, or it is in use.
pub fn unmount_by_fusermount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let output = Command::new(FUSERMOUNT)
        .arg("-u")
        .args(lazy.then_some("-z"))
        .arg("--")
        .arg(mountpoint)
        .output()
        .map_err(|e| io::Error::other(format!("{FUSERMOUNT}: {}", plain(&e))))?;
    let message = String::from_utf8_lossy(&output.stderr);
    let failed = || io::Error::other(message.trim().to_owned());
    output.status.success().then_some(()).ok_or_else(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_source_is_shown_by_its_end() {
        let name = |count: usize| "/a".to_owned() + &"b".repeat(count - 2);
        for count in [2, 254, 255] {
            let name = name(count);
            assert_eq!(&*shown(Path::new(&name)), name.as_bytes());
        }
        for count in [256, 257, 4000] {
            let name = name(count);
            let shown = shown(Path::new(&name)).into_owned();
            assert_eq!(shown.len(), NAME_BYTES_MAX);
            assert!(shown.starts_with(b"...b") && shown.ends_with(b"b"));
        }
    }
}
