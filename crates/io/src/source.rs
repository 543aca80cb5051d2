//! Where bytes come from: a file opened for direct reads, or generated content.
//!
//! Made when a file is opened, shared by its readers and its fetches, so a descriptor closes when
//! the last of both is gone. Backends read through [`Source::read`] or take the descriptor.
//!
//! A file is opened with `O_DIRECT`, because the arena is the cache and a second copy in the page
//! cache would waste memory. Where the file system refuses, be it at the open or at the first
//! read, reading goes on buffered, with the kernel's own readahead off: two prefetchers on one
//! file fetch everything the wrong one guessed.
//!
//! [`Identity`] tells versions of a file apart. A version is as fine as the file system's times:
//! Linux 6.13 and later give a new time to the first change after any look at the old one; before
//! that, two changes within one tick (4 ms) that keep the size look like one. A write in progress
//! has its new time before its bytes, so a buffered read beside it may see part of it, as with
//! `pread(2)`; a direct read on ext4, XFS or btrfs does not.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::arena::Target;
use crate::error::Error;
use crate::generated;
use crate::served::is_served;

/// `IOV_MAX` on Linux: the most pieces of memory one read may fill.
pub const PIECES_MAX: usize = 1024;

/// No device reads in smaller units, so a direct read that ends elsewhere met the end of a file.
const SECTOR: usize = 512;

/// Which file, and which version of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its device and inode.
    pub inode: (u64, u64),
    /// Its size.
    pub bytes: u64,
    /// When its content changed last: seconds and nanoseconds.
    pub modified: (i64, i64),
    /// When its inode changed last; unlike the former it cannot be set back.
    pub changed: (i64, i64),
    /// When it was made, where that is known: tells a file from a later one of the same inode.
    pub born: Option<(i64, u32)>,
}

/// An open file, direct if the file system allows.
#[derive(Debug)]
pub struct OpenFile {
    file: Arc<File>,
    direct: AtomicBool,
    block_device: bool,
    inode: (u64, u64),
    served: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub enum Source {
    /// A file or block device.
    File(OpenFile),
    /// Content as [`generated::fill`] makes it.
    Generated {
        /// Its seed.
        seed: u64,
        /// The number of the file under this seed.
        index: u64,
        /// Its size.
        bytes: u64,
    },
}

static BUFFERED: Once = Once::new();

fn warn_buffered(reason: &io::Error) {
    BUFFERED.call_once(|| {
        tracing::warn!("direct I/O refused ({reason}): reading through the page cache");
    });
}

impl OpenFile {
    /// Opens a regular file or block device for reading.
    ///
    /// # Errors
    /// Missing, unreadable, a directory, nothing with positions, or no descriptor left; each
    /// names the path.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => Error::TooManyOpenFiles {
                path: path.into(),
                limit: descriptor_limit(),
            },
            Some(libc::EISDIR) => Error::Directory { path: path.into() },
            _ => Error::Open {
                path: path.into(),
                source,
            },
        };
        // Not blocking, so that a pipe without a writer is refused below instead of waited for.
        let open = |flags| {
            let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
            File::options().read(true).custom_flags(flags).open(path)
        };
        let (file, direct) = match open(libc::O_DIRECT) {
            Ok(file) => (file, true),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                warn_buffered(&e);
                (open(0).map_err(failed)?, false)
            }
            Err(e) => return Err(failed(e)),
        };
        let metadata = file.metadata().map_err(failed)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            return Err(Error::Directory { path: path.into() });
        }
        if !kind.is_file() && !kind.is_block_device() {
            return Err(Error::NotAFile { path: path.into() });
        }
        let block_device = kind.is_block_device();
        let served = is_served(file.as_fd());
        let inode = (metadata.dev(), metadata.ino());
        Ok(Self::new(file.into(), direct, block_device, inode, served))
    }

    /// A regular file that its caller opened for reading, with `O_DIRECT` or not, and knows to be this
    /// inode on a file system that is [served](crate::served) or not.
    #[must_use]
    pub fn of(file: Arc<File>, direct: bool, inode: (u64, u64), served: bool) -> Self {
        Self::new(file, direct, false, inode, served)
    }

    fn new(
        file: Arc<File>,
        direct: bool,
        block_device: bool,
        inode: (u64, u64),
        served: bool,
    ) -> Self {
        let opened = Self {
            file,
            direct: AtomicBool::new(direct),
            block_device,
            inode,
            served,
        };
        if !direct {
            opened.advise_random();
        }
        opened
    }

    /// Whether its file system is [served](crate::served).
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.served
    }

    /// Its device and inode, which stay.
    #[must_use]
    pub fn inode(&self) -> (u64, u64) {
        self.inode
    }

    /// Its version, as of now.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn identity(&self) -> io::Result<Identity> {
        let m = self.file.metadata()?;
        let bytes = if self.block_device {
            (&*self.file).seek(SeekFrom::End(0))?
        } else {
            m.len()
        };
        Ok(Identity {
            inode: (m.dev(), m.ino()),
            bytes,
            modified: (m.mtime(), m.mtime_nsec()),
            changed: (m.ctime(), m.ctime_nsec()),
            born: m.created().ok().and_then(since_epoch),
        })
    }

    /// Whether reads bypass the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.direct.load(Ordering::Relaxed)
    }

    /// Goes on buffered after a direct read was refused; false if reads were buffered already.
    pub fn leave_direct(&self, reason: &io::Error) -> bool {
        if !self.is_direct() {
            return false;
        }
        // SAFETY: plain calls on a descriptor we own; no memory is involved.
        let cleared = unsafe {
            let flags = libc::fcntl(self.as_raw_fd(), libc::F_GETFL);
            flags != -1
                && libc::fcntl(self.as_raw_fd(), libc::F_SETFL, flags & !libc::O_DIRECT) != -1
        };
        if cleared && self.direct.swap(false, Ordering::Relaxed) {
            warn_buffered(reason);
            self.advise_random();
        }
        cleared
    }

    fn advise_random(&self) {
        // SAFETY: advice about a descriptor we own; no memory is involved.
        unsafe { libc::posix_fadvise(self.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    }

    fn read(&self, target: &Target, offset: u64, skip: usize) -> io::Result<usize> {
        let end = target.bytes();
        let mut pieces = Vec::new();
        let mut done = skip;
        while done < end {
            target.pieces(done, PIECES_MAX, &mut pieces);
            // SAFETY: the pieces lie in the arena, which the target keeps alive, and nobody else
            // uses them while the target exists.
            let n = unsafe {
                let count = pieces.len() as libc::c_int;
                let at = (offset + done as u64) as libc::off_t;
                libc::preadv(self.as_raw_fd(), pieces.as_ptr(), count, at)
            };
            match usize::try_from(n) {
                Ok(n) => {
                    done += n;
                    if self.is_end(n, done) {
                        break;
                    }
                }
                Err(_) => self.retry(io::Error::last_os_error())?,
            }
        }
        Ok(done)
    }

    /// Whether a read that returned `n` bytes, `done` in all, met the end of the file: nothing
    /// came, or a direct read stopped inside a sector and cannot be continued from there.
    #[must_use]
    pub fn is_end(&self, n: usize, done: usize) -> bool {
        n == 0 || (self.is_direct() && !done.is_multiple_of(SECTOR))
    }

    /// Whether a failed read should be tried again as it is, or buffered.
    ///
    /// # Errors
    /// The error itself, if trying again would not help.
    pub fn retry(&self, error: io::Error) -> io::Result<()> {
        match error.raw_os_error() {
            Some(libc::EINTR | libc::EAGAIN) => Ok(()),
            Some(libc::EINVAL) if self.leave_direct(&error) => Ok(()),
            _ => Err(error),
        }
    }
}

/// Seconds and nanoseconds; the epoch itself stands for a time that is not known.
fn since_epoch(time: SystemTime) -> Option<(i64, u32)> {
    let (seconds, nanoseconds) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).ok()?, after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let whole = -i64::try_from(before.as_secs()).ok()?;
            match before.subsec_nanos() {
                0 => (whole, 0),
                part => (whole - 1, 1_000_000_000 - part),
            }
        }
    };
    (seconds != 0 || nanoseconds != 0).then_some((seconds, nanoseconds))
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for OpenFile {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Source {
    /// The device it is on; none if it is made up.
    #[must_use]
    pub fn device(&self) -> Option<u64> {
        match self {
            Self::File(file) => Some(file.inode.0),
            Self::Generated { .. } => None,
        }
    }

    /// Whether a call about it may wait for a server: see [`served`](crate::served).
    #[must_use]
    pub fn is_served(&self) -> bool {
        matches!(self, Self::File(file) if file.served)
    }

    /// Its size, as of now.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn bytes(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.identity()?.bytes),
            Self::Generated { bytes, .. } => Ok(*bytes),
        }
    }

    /// Its version; none if it cannot change.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn identity(&self) -> io::Result<Option<Identity>> {
        match self {
            Self::File(file) => file.identity().map(Some),
            Self::Generated { .. } => Ok(None),
        }
    }

    /// Reads from `offset + skip` on into the target's memory from `skip` on, until it is full or
    /// the source ends. Returns where it stopped in the target.
    ///
    /// # Errors
    /// The original error of the read.
    pub fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(target, offset, skip),
            Self::Generated { seed, index, bytes } => {
                let left = usize::try_from(bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
                let end = target.bytes().min(left);
                target.fill(skip, end, |at, slice| {
                    generated::fill(*seed, *index, offset + at as u64, slice);
                });
                Ok(end.max(skip))
            }
        }
    }
}

/// Raises the soft limit of descriptors to the hard one, so that ten thousand open files work
/// where the system allows them. A refusal is no error: an open will then name the limit.
pub(crate) fn raise_descriptor_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit for both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

fn descriptor_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit for the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use forerun_core::table::Frame;
    use std::io::Write;

    #[test]
    fn a_file_is_read_to_its_unaligned_end_whether_direct_or_not() {
        let mut named = tempfile::NamedTempFile::new().unwrap();
        let mut content = vec![0; 3 * 4096 + 777];
        generated::fill(1, 2, 0, &mut content);
        named.write_all(&content).unwrap();
        let file = OpenFile::open(named.path()).unwrap();
        let arena = Arc::new(Arena::new(8, 4096).unwrap());
        for _ in 0..2 {
            // SAFETY: nobody else uses this arena.
            let mut target = unsafe { Target::new(arena.clone(), [5, 2, 3, 0].map(Frame)) };
            assert_eq!(file.read(&target, 0, 0).unwrap(), content.len());
            target.fill(0, content.len(), |at, slice| {
                assert_eq!(slice, &content[at..at + slice.len()]);
            });
            file.leave_direct(&io::Error::from_raw_os_error(libc::EINVAL));
            assert!(!file.is_direct());
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(
            OpenFile::open(dir.path()),
            Err(Error::Directory { .. })
        ));
        let missing = OpenFile::open(&dir.path().join("absent")).unwrap_err();
        assert!(missing.to_string().contains("absent"), "{missing}");
        let character = OpenFile::open(Path::new("/dev/null")).unwrap_err();
        assert!(
            matches!(character, Error::NotAFile { .. } | Error::Open { .. }),
            "{character}"
        );
    }
}
