//! A file or block device, read directly if its file system allows.
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
//! `pread(2)`; a direct read on ext4, XFS or btrfs does not. A version of which both may be true is
//! [young](Identity::young), and another one when it is old: its bytes are read once more.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Once};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Key, Source};
use crate::arena::Target;
use crate::clock::file_seconds;
use crate::error::Error;
use crate::served::{file_system, handle, is_made_as_it_is_read, is_served};

/// `IOV_MAX` on Linux: the most pieces of memory one read may fill.
pub const PIECES_MAX: usize = 1024;

/// No device reads in smaller units, so a direct read that ends elsewhere met the end of a file.
const SECTOR: usize = 512;

/// How often in a row reads of a file are tried again that the kernel interrupted, or that would have had to
/// wait. A local file system does so once or twice; a server that always answers so would be asked for ever.
const AGAIN_MAX: u32 = 16;

/// So long after its time a write may be under way, in seconds. One call of `write(2)` has 2 GiB at most,
/// which take 4 s at half a gigabyte a second; the longest steps of a file system's times, FAT's, are 2 s.
const YOUNG: i64 = 4;

/// Whether the write that modified a file of this device in this second since the epoch may be under way now. A time
/// that is yet to come was set, or is of a server's clock, and counts as that of such a write. Never on a file system
/// that has a block device (its major number is not 0): ext4 and XFS make direct reads wait for the write.
#[must_use]
pub fn is_young(device: u64, modified: i64) -> bool {
    libc::major(device) == 0 && is_recent(modified)
}

fn is_recent(modified: i64) -> bool {
    modified.saturating_add(YOUNG) >= file_seconds()
}

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
    /// Whether the write that modified it [may be under way](is_young), so that bytes read beside it may be older
    /// than its time. The same version is another one when it is not young any more.
    pub young: bool,
}

impl Identity {
    /// Whether it is of the same bytes as this one, found before. An old version stays old, however the clock is set.
    pub(crate) fn is_same_as(&self, earlier: &Self) -> bool {
        let young = self.young && earlier.young;
        Self { young, ..*self } == *earlier
    }

    /// Whether it may be the earlier version with bytes behind its end. Those before may be others, too: times do not
    /// tell.
    pub(crate) fn is_grown_from(&self, earlier: &Self) -> bool {
        (self.inode, self.born) == (earlier.inode, earlier.born) && self.bytes > earlier.bytes
    }
}

/// An open file, direct if the file system allows.
#[derive(Debug)]
pub struct OpenFile {
    file: Arc<File>,
    direct: AtomicBool,
    /// Its number, if it is a block device itself.
    block_device: Option<u64>,
    inode: (u64, u64),
    served: bool,
    /// Reads tried again since the last one that went well.
    again: AtomicU32,
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
        let (file, direct) = match open_to_read(path, libc::O_DIRECT) {
            Ok(file) => (file, true),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                warn_buffered(&e);
                (open_to_read(path, 0).map_err(failed)?, false)
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
        if Self::hides_its_size(&file) {
            return Err(Error::HiddenSize { path: path.into() });
        }
        let block_device = kind.is_block_device().then(|| metadata.rdev());
        // The file system of a block device has its name alone.
        let served = block_device.is_none() && is_served(file.as_fd());
        let born = metadata.created().ok().and_then(since_epoch);
        let inode = number(metadata.ino(), born, || handle(file.as_fd()));
        let inode = (metadata.dev(), inode);
        Ok(Self::new(file.into(), direct, block_device, inode, served))
    }

    /// Whether an open file has other bytes than its size says: it has some though it is empty, as those of `/proc`
    /// and control files of servers, or is made as it is read, as those of `/sys`, which have a page by their size.
    /// A reader that goes by sizes would find it empty, or cut. Files alone are read.
    #[must_use]
    pub fn hides_its_size(file: &File) -> bool {
        let is_empty = || {
            let found = file.metadata();
            found.is_ok_and(|found| found.is_file() && found.len() == 0)
        };
        // One that grows meanwhile has a size once it has bytes.
        let has_bytes = || matches!(file.read_at(&mut [0; 1], 0), Ok(1));
        is_made_as_it_is_read(file.as_fd()) || is_empty() && has_bytes() && is_empty()
    }

    /// A regular file that its caller opened for reading, with `O_DIRECT` or not, and knows to be this
    /// inode on a file system that is [served](crate::served) or not.
    #[must_use]
    pub fn of(file: Arc<File>, direct: bool, inode: (u64, u64), served: bool) -> Self {
        Self::new(file, direct, None, inode, served)
    }

    fn new(
        file: Arc<File>,
        direct: bool,
        block_device: Option<u64>,
        inode: (u64, u64),
        served: bool,
    ) -> Self {
        let opened = Self {
            file,
            direct: AtomicBool::new(direct),
            block_device,
            inode,
            served,
            again: AtomicU32::new(0),
        };
        if !direct {
            opened.advise_random();
        }
        opened
    }

    /// Its device and the [`number`] of its inode, which stay.
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
        let bytes = if self.block_device.is_some() {
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
            young: match self.is_direct() {
                true => is_young(m.dev(), m.mtime()),
                false => is_recent(m.mtime()),
            },
        })
    }

    /// `f_type` of the file system that has its bytes; none if it is a block device.
    pub(crate) fn file_system(&self) -> Option<u32> {
        (self.block_device.is_none()).then(|| file_system(self.as_fd()))
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

    fn read_into(&self, target: &Target, offset: u64, skip: usize) -> io::Result<usize> {
        let end = target.bytes();
        let mut pieces = Vec::new();
        let mut done = skip;
        while done < end {
            target.pieces(done, PIECES_MAX, &mut pieces);
            // SAFETY: the pieces lie in the arena, which the target keeps alive, and no other code
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
        if self.again.load(Ordering::Relaxed) != 0 {
            self.again.store(0, Ordering::Relaxed);
        }
        n == 0 || (self.is_direct() && !done.is_multiple_of(SECTOR))
    }

    /// Whether a failed read should be tried again as it is, or buffered. A server's `EINTR` and `EAGAIN`
    /// are its answer; those of other file systems count as one after [`AGAIN_MAX`] in a row.
    ///
    /// # Errors
    /// The error itself, if trying again would not help.
    pub fn retry(&self, error: io::Error) -> io::Result<()> {
        match error.raw_os_error() {
            Some(libc::EINTR | libc::EAGAIN) if self.served => Err(error),
            Some(libc::EINTR | libc::EAGAIN) => {
                let tried = self.again.fetch_add(1, Ordering::Relaxed);
                (tried < AGAIN_MAX).then_some(()).ok_or(error)
            }
            Some(libc::EINVAL) if self.leave_direct(&error) => Ok(()),
            _ => Err(error),
        }
    }
}

/// Opens without waiting, so that a pipe without a writer is refused by its caller. `EWOULDBLOCK` says that another
/// program holds a lease: a file or block device is then waited for, as by any open, until the program or the kernel
/// gives the lease up.
fn open_to_read(path: &Path, flags: i32) -> io::Result<File> {
    let open = |path: &Path, flags| {
        let flags = flags | libc::O_NOCTTY;
        File::options().read(true).custom_flags(flags).open(path)
    };
    let found = open(path, flags | libc::O_NONBLOCK);
    let is_leased = |error: &io::Error| error.raw_os_error() == Some(libc::EWOULDBLOCK);
    if !found.as_ref().is_err_and(is_leased) {
        return found;
    }
    // The very file that is found to be none that waits for ever, whatever its name leads to by then.
    let place = open(path, libc::O_PATH)?;
    let kind = place.metadata()?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return found;
    }
    open(
        Path::new(&format!("/proc/self/fd/{}", place.as_raw_fd())),
        flags,
    )
}

/// The number of an inode, by which files have bytes in common. A server may give several files one inode: the time
/// of birth is in it, or the [`handle`] where there is none.
pub fn number(inode: u64, born: Option<(i64, u32)>, handle: impl FnOnce() -> u64) -> u64 {
    let digest = |born| {
        let mut hasher = DefaultHasher::new();
        Hash::hash(&born, &mut hasher);
        hasher.finish()
    };
    inode ^ born.map_or_else(handle, digest)
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

impl Source for OpenFile {
    fn key(&self) -> Key {
        Key::Inode(self.inode.0, self.inode.1)
    }

    fn device(&self) -> Option<u64> {
        Some(self.block_device.unwrap_or(self.inode.0))
    }

    fn is_served(&self) -> bool {
        self.served
    }

    fn file(&self) -> Option<&OpenFile> {
        Some(self)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.identity()?.bytes)
    }

    fn identity(&self) -> io::Result<Option<Identity>> {
        self.identity().map(Some)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        self.read_into(target, offset, skip)
    }
}

/// Raises the soft limit of descriptors to the hard one, so that ten thousand open files work
/// where the system allows them. A refusal is no error: an open will then name the limit.
pub fn raise_descriptor_limit() {
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

/// Descriptors that the process may have.
pub(crate) fn descriptor_limit() -> u64 {
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
    use crate::generated;
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
            // SAFETY: this arena is used here alone.
            let mut target = unsafe { Target::new(arena.clone(), [5, 2, 3, 0].map(Frame)) };
            assert_eq!(file.read(&mut target, 0, 0).unwrap(), content.len());
            target.fill(0, content.len(), |at, slice| {
                assert_eq!(slice, &content[at..at + slice.len()]);
            });
            file.leave_direct(&io::Error::from_raw_os_error(libc::EINVAL));
            assert!(!file.is_direct());
        }
    }

    #[test]
    fn a_read_that_would_always_have_to_wait_ends_with_that_error() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let open = |served| {
            let file = File::open(named.path()).unwrap();
            OpenFile::of(file.into(), false, (1, 2), served)
        };
        for number in [libc::EAGAIN, libc::EINTR] {
            let retry = |file: &OpenFile| file.retry(io::Error::from_raw_os_error(number));
            let local = open(false);
            for _ in 0..3 {
                let tried = (0..1000).take_while(|_| retry(&local).is_ok()).count();
                assert_eq!(tried, AGAIN_MAX as usize);
                let error = retry(&local).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(number));
                // A read that goes well.
                assert!(!local.is_end(1, 1));
            }
            assert!(retry(&open(true)).is_err(), "a server's answer");
        }
    }

    #[test]
    fn a_time_of_birth_or_a_handle_tells_inodes_of_one_number_apart() {
        let born = |nanoseconds| number(5, Some((1, nanoseconds)), || unreachable!("not asked"));
        assert_eq!(born(0), born(0));
        assert_ne!(born(0), born(1));
        assert_ne!(number(5, None, || 7), number(5, None, || 8));
        assert_eq!(number(5, None, || 0), 5, "no handles");
    }

    #[test]
    fn a_file_is_young_until_some_time_after_it_was_modified() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let file = OpenFile::open(named.path()).unwrap();
        let young = |modified: SystemTime| {
            named.as_file().set_modified(modified).unwrap();
            file.identity().unwrap().young
        };
        let hour = std::time::Duration::from_secs(3600);
        let found = named.as_file().metadata().unwrap();
        let now = found.modified().unwrap();
        let waits = file.is_direct() && libc::major(found.dev()) != 0;
        assert_eq!(young(now + hour), !waits);
        assert!(!young(now - hour) && !young(UNIX_EPOCH));
        assert!(is_young(0, i64::MAX) && !is_young(0, i64::MIN));
        assert!(!is_young(libc::makedev(8, 1), i64::MAX));
    }

    #[test]
    fn a_version_becomes_old_and_never_young() {
        let file = OpenFile::open(tempfile::NamedTempFile::new().unwrap().path()).unwrap();
        let old = Identity {
            young: false,
            ..file.identity().unwrap()
        };
        let young = Identity { young: true, ..old };
        assert!(young.is_same_as(&young) && old.is_same_as(&old) && young.is_same_as(&old));
        assert!(!old.is_same_as(&young));
        let other = Identity { bytes: 5, ..young };
        assert!(!other.is_same_as(&old) && !other.is_same_as(&young));
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
