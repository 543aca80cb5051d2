//! Answers as `fuser` sends them: attributes, kinds, times and errors of the source, translated.
//!
//! Used by the [adapter](super). The answers hold every attribute of the source that FUSE has a
//! field for; in place of the time of birth stands the *generation*, which tells a file from a
//! later one with the same inode number.

use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, Generation, INodeNo};
use rustix::fs::FileType as Kind;

use crate::fs::Found;
use crate::fs::attributes::{Attributes, Time};
use crate::fs::listing::Name;
use crate::fs::nodes::{Node, ROOT};

/// The number of an error, as FUSE sends it.
pub(crate) fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_i32(error.raw_os_error())
}

/// The inode number programs see: the source's where the node's number is ours.
pub(super) fn shown(node: Node, attributes: &Attributes) -> u64 {
    if node == ROOT {
        attributes.key.inode
    } else {
        node.0
    }
}

/// Attributes of a file sent to the kernel.
pub(super) fn found_attr(found: &Found) -> FileAttr {
    attr(&found.attributes, found.node.0)
}

/// Tells the file from a later one with the same number.
pub(super) fn generation(attributes: &Attributes) -> Generation {
    let (seconds, nanoseconds) = attributes.born;
    let seconds = seconds.cast_unsigned();
    Generation(
        seconds
            .wrapping_mul(1_000_000_000)
            .wrapping_add(u64::from(nanoseconds)),
    )
}

/// Attributes, with the number programs see.
pub(super) fn attr(attributes: &Attributes, number: u64) -> FileAttr {
    let (major, minor) = attributes.names_device;
    FileAttr {
        ino: INodeNo(number),
        size: attributes.version.bytes,
        blocks: attributes.sectors,
        atime: time(attributes.accessed),
        mtime: time(attributes.version.modified),
        ctime: time(attributes.version.changed),
        crtime: UNIX_EPOCH,
        kind: kind(attributes.kind),
        perm: attributes.permissions,
        nlink: attributes.links,
        uid: attributes.user,
        gid: attributes.group,
        // The kernel's own layout of a device number in 32 bits.
        rdev: (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12),
        blksize: attributes.read_bytes,
        flags: 0,
    }
}

/// Of a name in a folder that was not looked up: the kernel, too, is to look it up when a program asks. The library
/// cannot send the number zero, which says so, without an inode number of zero, which programs take for a deleted
/// name. A name with the number of the root is not taken either, and the root is forgotten once, which ends nothing.
/// The numbers of `.` and `..` the kernel gives on and does not take.
pub(super) fn unlinked(name: &Name) -> FileAttr {
    let is_dots = matches!(name.name.as_bytes(), b"." | b"..");
    let number = if is_dots { name.inode } else { ROOT.0 };
    nameless(number, name.kind)
}

/// Nothing but a number and a kind.
pub(super) fn nameless(inode: u64, kind_seen: Kind) -> FileAttr {
    FileAttr {
        ino: INodeNo(inode),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: kind(kind_seen),
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

fn time((seconds, nanoseconds): Time) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let begun = if seconds < 0 {
        UNIX_EPOCH - whole
    } else {
        UNIX_EPOCH + whole
    };
    begun + Duration::from_nanos(u64::from(nanoseconds))
}

/// The kind of a file.
pub(super) fn kind(kind: Kind) -> FileType {
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        Kind::RegularFile | Kind::Unknown => FileType::RegularFile,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_keep_their_nanoseconds() {
        assert_eq!(time((0, 0)), UNIX_EPOCH);
        assert_eq!(time((1, 5)), UNIX_EPOCH + Duration::new(1, 5));
        assert_eq!(
            time((-1, 999_999_999)),
            UNIX_EPOCH - Duration::from_nanos(1)
        );
    }
}
