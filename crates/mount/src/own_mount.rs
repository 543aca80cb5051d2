//! A mount by its identity, so that no other one is ever taken off in its place.
//!
//! Problem: a path is no identity. Between mounting and the end another mount may stand on the path or
//! over the mount, a folder above may be renamed or replaced by a link, and `umount2(2)` of the path
//! would take off the mount found there; with the rights of root, for any user that owns such a
//! folder.
//!
//! Mechanism: the kernel gives each mount a number (`STATX_MNT_ID`), since Linux 6.8 also one that is
//! never given again. Both are noted before the mount is attached. To take it off,
//!
//! 1. its present path is looked up by number in `/proc/self/mountinfo`: none, and it is gone;
//! 2. that path is opened, and the numbers of the mount found there are compared;
//! 3. the mount behind that descriptor is detached, and no name is resolved any more.
//!
//! A mount with another one on top is left alone: the kernel unmounts only the uppermost. No
//! descriptor is held meanwhile, since it would keep the mount busy for `umount(8)`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use forerun_surface::below::mounts::Mount;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fstatfs, open, statx};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::{attach, point};

/// `STATX_MNT_ID_UNIQUE` of `linux/stat.h`.
const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The time for a program that cut the connection of a mount to take it off (`umount -f`): the kernel does both in one
/// call, microseconds apart, and tells nothing between. On a machine short of processors or memory its turn comes late,
/// and a mount that is taken for dead ends with code 1. Half of `GRACE` in [`ending`](super::ending), which bounds the
/// end. And the pause between two looks.
const GOING: Duration = Duration::from_secs(2);
const GOING_PAUSE: Duration = Duration::from_millis(10);

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnMount {
    /// Its number in mountinfo, which is given again once it is gone; none before Linux 5.8.
    number: Option<u64>,
    /// Its number that is not; none before Linux 6.8.
    unique: Option<u64>,
    device: (u32, u32),
}

impl OwnMount {
    /// The mount that a descriptor of its root is on.
    ///
    /// # Errors
    /// Errors of `statx(2)`.
    pub fn of(root: impl AsFd) -> Result<Self, Errno> {
        // Nothing is asked of the daemon, which may not serve yet, or be dead.
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let ask = |wanted: StatxFlags| -> Result<_, Errno> {
            let found = statx(root.as_fd(), "", flags, wanted)?;
            let answered = StatxFlags::from_bits_retain(found.stx_mask).contains(wanted);
            Ok((answered.then_some(found.stx_mnt_id), found))
        };
        let (number, found) = ask(StatxFlags::MNT_ID)?;
        let (unique, _) = ask(UNIQUE)?;
        Ok(Self {
            number,
            unique,
            device: (found.stx_dev_major, found.stx_dev_minor),
        })
    }

    /// The mount at a path, and a descriptor of its root.
    ///
    /// # Errors
    /// Errors of `open(2)` and `statx(2)`.
    pub fn at(path: &Path) -> Result<(OwnedFd, Self), Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty())?;
        let mount = Self::of(&root)?;
        Ok((root, mount))
    }

    /// Its device.
    #[must_use]
    pub fn device(&self) -> (u32, u32) {
        self.device
    }

    /// Whether this line of mountinfo is about it, as far as numbers that are given again tell.
    fn is(&self, listed: &Mount) -> bool {
        let same = self.number.is_none_or(|number| listed.id == number);
        same && listed.device == self.device && listed.kind == attach::TYPE
    }

    /// Whether it stands where it was attached, and on no other mount: one that lay below may have been
    /// taken off together with it. Without /proc it is believed.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        let Ok(mounts) = point::mounts() else {
            return true;
        };
        let Some(ours) = mounts.iter().find(|listed| self.is(listed)) else {
            return false;
        };
        let below = mounts.iter().find(|listed| listed.id == ours.below);
        below.is_none_or(|below| below.point != ours.point)
    }

    /// Whether a mount with its number stands on a path: this one, or a later one with the same number.
    fn is_listed(&self) -> bool {
        point::mounts().is_ok_and(|mounts| mounts.iter().any(|listed| self.is(listed)))
    }

    /// After the end of its session, when it is dead: waits until the program that takes it off has done so, and else
    /// takes it off. Whether it had to.
    ///
    /// # Errors
    /// As [`take_off`](Self::take_off).
    pub fn take_off_dead(&self, attached_at: &Path) -> io::Result<bool> {
        let begun = Instant::now();
        while self.is_listed() && begun.elapsed() < GOING {
            thread::sleep(GOING_PAUSE);
        }
        if !self.is_listed() {
            return Ok(false);
        }
        let Some(path) = self.path(attached_at) else {
            return Ok(false);
        };
        let (root, found) = Self::at(&path)?;
        // A later one may have got the number of this one, which is gone then.
        let is_later = match found == *self {
            true => fstatfs(&root).is_ok(),
            false => found.number == self.number,
        };
        if is_later {
            return Ok(false);
        }
        self.take_off(attached_at)
    }

    /// Its present path; none if it is gone.
    fn path(&self, attached_at: &Path) -> Option<PathBuf> {
        match point::mounts() {
            Ok(mounts) => {
                let ours = mounts.into_iter().find(|listed| self.is(listed))?;
                Some(ours.point)
            }
            // Without /proc the place where it was attached is all that is known.
            Err(_) => Some(attached_at.to_owned()),
        }
    }

    /// Takes it off its path, wherever that is now. Its open files stay readable until they are closed.
    /// False if it is gone already.
    ///
    /// # Errors
    /// Another mount lies over it, or the kernel refuses.
    pub fn take_off(&self, attached_at: &Path) -> io::Result<bool> {
        let Some(path) = self.path(attached_at) else {
            return Ok(false);
        };
        let (root, found) = Self::at(&path)?;
        if found != *self {
            let why = format!(
                "another mount is in the way at {}: it is left alone, and this one with it",
                path.display()
            );
            return Err(io::Error::other(why));
        }
        match detach(&root, &path) {
            // Another program was faster.
            Err(_) if self.path(attached_at).is_none() => Ok(false),
            detached => detached.map(|()| true),
        }
    }
}

/// Takes off the mount whose root this is, and which was found at this path.
fn detach(root: &OwnedFd, path: &Path) -> io::Result<()> {
    let by_descriptor: PathBuf = format!("/proc/self/fd/{}", root.as_raw_fd()).into();
    match unmount(&by_descriptor, UnmountFlags::DETACH) {
        Err(Errno::PERM) => attach::unmount_by_fusermount(path, true),
        // No /proc.
        Err(Errno::NOENT) => Ok(unmount(
            path,
            UnmountFlags::DETACH | UnmountFlags::NOFOLLOW,
        )?),
        other => Ok(other?),
    }
}
