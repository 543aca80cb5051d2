//! A file as `statx(2)` tells it: its key, its version, its attributes.
//!
//! Taken by the [file system](super) for every answer about a file. The *key* (device and inode)
//! says which file it is, the *version* (size and both change times) which content it has, and the
//! time of birth tells a file from a later one that was given the same inode number. A file system
//! without such times may be a server that gives several files one number: there the kernel's
//! [`handle`] is part of the key.
//!
//! The numbers here are the source's; [`nodes`](super::nodes) assigns the numbers of the mount.

use std::os::fd::AsFd;

use forerun_io::served::handle;
use forerun_io::source::{Identity, is_young, number};
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp, statx};
use rustix::io::Errno;

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Which file: device and inode, as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode on that device.
    pub inode: u64,
    /// A digest of its handle; 0 where the time of birth tells files apart.
    pub handle: u64,
}

impl Key {
    /// Device and inode in the driver's form.
    #[must_use]
    pub fn inode(&self) -> (u64, u64) {
        let (major, minor) = self.device;
        (rustix::fs::makedev(major, minor), self.inode)
    }

    /// Its key in the engine, if it was born then: files of one inode number have none in common.
    #[must_use]
    pub fn in_engine(&self, born: Time) -> (u64, u64) {
        let (device, inode) = self.inode();
        (device, number(inode, known(born), || self.handle))
    }

    /// Whether device and inode are the same.
    #[must_use]
    pub fn is_inode_of(&self, other: &Self) -> bool {
        self.inode() == other.inode()
    }
}

/// A time since the epoch: seconds, and nanoseconds on top of them.
pub type Time = (i64, u32);

/// Which content a file has: it changed if any of these did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// Its size.
    pub bytes: u64,
    /// Time of the last change of its content.
    pub modified: Time,
    /// Time of the last change of its inode; programs cannot set this one back.
    pub changed: Time,
    /// Whether the write that modified it may be under way: see [`Identity::young`].
    pub young: bool,
}

impl Version {
    /// Whether it is of the same bytes as this one, found before, as [`Identity`] has it: an old version stays old.
    #[must_use]
    pub fn is_same_as(&self, earlier: &Self) -> bool {
        let young = self.young && earlier.young;
        Self { young, ..*self } == *earlier
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Attributes {
    /// Which file.
    pub key: Key,
    /// Which content.
    pub version: Version,
    /// Directory, regular file, symbolic link and so on.
    pub kind: FileType,
    /// Permission bits, set-user-id and the like included.
    pub permissions: u16,
    /// Hard links to it.
    pub links: u32,
    /// Its owner.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// Space it takes, in units of 512 bytes.
    pub sectors: u64,
    /// The size of reads it likes.
    pub read_bytes: u32,
    /// Time of the last read.
    pub accessed: Time,
    /// Time of birth; zero if the file system has no such time.
    pub born: Time,
    /// Major and minor number, if it is a device itself.
    pub names_device: (u32, u32),
}

impl Attributes {
    /// Those of `name` in `folder`, without following a link; of `folder` itself if `name` is
    /// empty.
    ///
    /// # Errors
    /// Errors of `statx(2)`.
    pub fn of(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        let is_itself = name.as_str().is_ok_and(str::is_empty);
        let mut found = statx(&folder, name, flags, WANTED).map(|stat| Self::from(&stat))?;
        if is_itself && found.born == (0, 0) {
            found.key.handle = handle(folder.as_fd());
        }
        Ok(found)
    }

    /// Version and file in the driver's form.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let time = |(seconds, nanoseconds): Time| (seconds, i64::from(nanoseconds));
        Identity {
            inode: self.key.inode(),
            bytes: self.version.bytes,
            modified: time(self.version.modified),
            changed: time(self.version.changed),
            born: known(self.born),
            young: self.version.young,
        }
    }
}

/// A time of birth, if the file system has such times.
fn known(born: Time) -> Option<Time> {
    (born != (0, 0)).then_some(born)
}

/// The device of an open file, from this kernel alone: no request to a server.
///
/// # Errors
/// Errors of `statx(2)`.
pub fn device_of(file: impl AsFd) -> Result<(u32, u32), Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let stat = statx(file, "", flags, StatxFlags::empty())?;
    Ok((stat.stx_dev_major, stat.stx_dev_minor))
}

impl From<&Statx> for Attributes {
    fn from(stat: &Statx) -> Self {
        let time = |t: StatxTimestamp| (t.tv_sec, t.tv_nsec);
        let mode = u32::from(stat.stx_mode);
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        Self {
            key: Key {
                device: (stat.stx_dev_major, stat.stx_dev_minor),
                inode: stat.stx_ino,
                handle: 0,
            },
            version: Version {
                bytes: stat.stx_size,
                modified: time(stat.stx_mtime),
                changed: time(stat.stx_ctime),
                young: is_young(device, stat.stx_mtime.tv_sec),
            },
            kind: FileType::from_raw_mode(mode),
            permissions: stat.stx_mode & 0o7777,
            links: stat.stx_nlink,
            user: stat.stx_uid,
            group: stat.stx_gid,
            sectors: stat.stx_blocks,
            read_bytes: stat.stx_blksize,
            accessed: time(stat.stx_atime),
            born: time(stat.stx_btime),
            names_device: (stat.stx_rdev_major, stat.stx_rdev_minor),
        }
    }
}
