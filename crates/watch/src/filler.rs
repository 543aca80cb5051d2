//! Filler: finds and lists folders, and fills small files of them, on a thread of its own.
//!
//! All wait for the disk, where names and inodes are cold, or for a server on the path, and the loop does not wait. A fill is a buffered read that
//! does not wait either (`RWF_NOWAIT`): it starts the kernel's readahead and comes back. `readahead(2)` and
//! `POSIX_FADV_WILLNEED` would leave single pages, and block when the queue of the disk is full.
//!
//! ```text
//! folder    list; attributes in the order of the inodes        10,000 files: some 30 reads of the disk
//! files     open in that order, look where each begins, sort   4 MB, 90 MB, 5 MB -> 4, 5, 90
//! one file  |0 .. half -> ask for this      |the kernel reads on to the end and leaves its mark at the half
//! ```
//!
//! So a program that comes for a file meets a mark, and the watch is told of it. A file of one page has none.
//!
//! Nothing in a folder is trusted: names are opened without following links, without waiting (a FIFO, a device), and
//! a file counts if it has the inode that was listed. Files with leases are passed over, because an open breaks them.

use std::collections::HashSet;
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};

use forerun_core::Bytes;
use forerun_io::position;
use forerun_surface::failure::Failure;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Statx, StatxFlags, openat, statx};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::kernel::Paths;
use crate::memory::Domain;
use crate::process;
use crate::sample::Ahead;
use crate::windows::{Fill, PAGE_BYTES};

/// Files that are open at a time, to be sorted by their places: a folder of a thousand as a whole.
const OPEN_MAX: usize = 768;
/// The same in bytes: a disk of 80 MB/s reads them in a second.
const OPEN_BYTES: u64 = 64 << 20;
/// Files of a folder; one with more is left alone.
pub(crate) const FILES_MAX: usize = forerun_core::Engine::FOLDER_MAX;
/// Bytes of one read; larger ranges are read in several.
const READ_BYTES: usize = 256 << 10;

/// A folder as it is found again: by a path, which must still lead to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

/// A file of a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) name: CString,
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
}

/// Names of a folder, which the loop and the filler share.
pub(crate) type Listing = Arc<(Folder, Vec<Listed>)>;

/// A file that was missed, and the memory that it is read in.
#[derive(Debug)]
pub(crate) struct Sought {
    pub(crate) event: Ahead,
    pub(crate) domain: Domain,
    pub(crate) paths: Paths,
}

/// The folder of a file, the number of its mount and the size of the folder itself.
pub(crate) type Found = (Folder, u64, u64);

/// Work.
#[derive(Debug)]
pub(crate) enum Job {
    /// Find the folder of a file.
    Find(Sought),
    /// List a folder, of this number.
    List(u32, Folder),
    /// Fill files of a folder, for the engine of this number; the limit of its file system is so many pages.
    Fill(usize, Listing, Vec<Fill>, u32),
}

/// Work done.
#[derive(Debug)]
pub(crate) enum Done {
    /// The folder; none if the path does not lead to that file.
    Found(Sought, Option<Found>),
    /// The folder's files; none if it is gone, not readable or too large.
    Listed(u32, Option<Listing>),
    /// A fill, of an engine, and whether it was carried out.
    Filled(usize, Fill, bool),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Filler {
    jobs: Sender<Job>,
    done: Receiver<Done>,
}

impl Filler {
    /// Starts it; `wake` ends the waiting of the loop.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(wake: UnixStream) -> Result<Self, Failure> {
        let ((jobs, jobs_of), (done_of, done)) = (channel(), channel());
        let thread = std::thread::Builder::new().name("forerun-filler".into());
        let work = move || work(&jobs_of, &done_of, &wake);
        thread
            .spawn(work)
            .map_err(|error| Failure::Run(format!("filler: {error}")))?;
        Ok(Self { jobs, done })
    }

    pub(crate) fn put(&self, job: Job) {
        // Without the thread nothing is filled.
        let _ = self.jobs.send(job);
    }

    pub(crate) fn take(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}

fn work(jobs: &Receiver<Job>, done: &Sender<Done>, wake: &UnixStream) {
    let mut buffer = vec![0; READ_BYTES];
    let tell = |done_now| {
        let told = done.send(done_now);
        let _ = (&mut &*wake).write(b".");
        told.is_ok()
    };
    while let Ok(job) = jobs.recv() {
        let goes_on = match job {
            Job::Find(sought) => {
                let found = find(&sought);
                tell(Done::Found(sought, found))
            }
            Job::List(number, folder) => {
                let listed = list(&folder).ok();
                tell(Done::Listed(
                    number,
                    listed.map(|files| Arc::new((folder, files))),
                ))
            }
            Job::Fill(engine, listing, fills, limit) => {
                let mut goes_on = true;
                let each = |fill, is_done| goes_on = tell(Done::Filled(engine, fill, is_done));
                fill_all(&listing, fills, limit, &mut buffer, each);
                goes_on
            }
        };
        if !goes_on {
            return;
        }
    }
}

/// The folder of a file; verified by the inode of the file in it. Of a reader in another mount namespace the path is one of
/// its own root: ours may lead elsewhere, to a server that hangs.
fn find(sought: &Sought) -> Option<Found> {
    let process = sought.event.process;
    let root = match process::shares_mounts(process) {
        true => PathBuf::from("/"),
        false => PathBuf::from(format!("/proc/{process}/root")),
    };
    let path = root.join(sought.paths.0.strip_prefix("/").ok()?);
    let parent = path.parent()?;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let told = statx(CWD, parent.join(path.file_name()?), flags, wanted).ok()?;
    let folder = statx(CWD, parent, flags, wanted).ok()?;
    let is_it = told.stx_ino == sought.event.inode && device(&told) == device(&folder);
    let at = Folder {
        path: parent.to_owned(),
        device: device(&folder),
        inode: folder.stx_ino,
    };
    is_it.then_some((at, folder.stx_mnt_id, folder.stx_size))
}

impl Folder {
    /// The path as its reader names it: without the way to the reader's root.
    pub(crate) fn named(&self) -> PathBuf {
        let mut parts = self.path.components();
        let begin: Vec<_> = parts.by_ref().take(4).collect();
        match begin[..] {
            [_, proc, _, root] if proc.as_os_str() == "proc" && root.as_os_str() == "root" => {
                Path::new("/").join(parts.as_path())
            }
            _ => self.path.clone(),
        }
    }

    /// The folder, if the path leads to it.
    fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY
            | OFlags::DIRECTORY
            | OFlags::NOFOLLOW
            | OFlags::NOATIME
            | OFlags::CLOEXEC;
        let folder = openat(CWD, &self.path, flags, Mode::empty())?;
        let told = statx(&folder, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
        let is_it = told.stx_ino == self.inode && device(&told) == self.device;
        is_it.then_some(folder).ok_or_else(|| Errno::STALE.into())
    }
}

pub(crate) fn device(told: &Statx) -> (u32, u32) {
    (told.stx_dev_major, told.stx_dev_minor)
}

/// The regular files of a folder that have bytes, in the order of the listing.
fn list(folder: &Folder) -> io::Result<Vec<Listed>> {
    let file = folder.open()?;
    let mut names = names(&file)?;
    let mut by_inode: Vec<usize> = (0..names.len()).collect();
    by_inode.sort_by_key(|at| names[*at].inode);
    for at in by_inode {
        let name = &mut names[at];
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let told = statx(&file, &name.name, flags, StatxFlags::BASIC_STATS);
        name.bytes = told.map_or(0, |told| {
            let is_file = FileType::from_raw_mode(told.stx_mode.into()) == FileType::RegularFile;
            // Another device is mounted over it.
            let is_here = device(&told) == folder.device && told.stx_ino == name.inode;
            if is_file && is_here { told.stx_size } else { 0 }
        });
    }
    names.retain(|name| name.bytes > 0);
    Ok(names)
}

fn names(folder: &OwnedFd) -> io::Result<Vec<Listed>> {
    let mut buffer = [MaybeUninit::uninit(); 32 << 10];
    let mut entries = RawDir::new(folder, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if !matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown) {
            continue;
        }
        if names.len() >= FILES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        names.push(Listed {
            name: entry.file_name().to_owned(),
            inode: entry.ino(),
            bytes: 0,
        });
    }
    Ok(names)
}

/// A file that is open, to be filled in its turn.
struct Open {
    file: File,
    begins: Option<Bytes>,
    fills: Vec<Fill>,
}

fn fill_all(
    listing: &Listing,
    fills: Vec<Fill>,
    limit: u32,
    buffer: &mut [u8],
    mut done: impl FnMut(Fill, bool),
) {
    let (folder, files) = &**listing;
    let folder = folder.open().ok();
    let mut leases = leases();
    let (mut open, mut bytes): (Vec<Open>, u64) = (Vec::new(), 0);
    for fill in fills {
        if fill.called_off.load(Ordering::Relaxed) {
            continue;
        }
        if let Some(last) = open.last_mut()
            && last.fills[0].place == fill.place
        {
            last.fills.push(fill);
            continue;
        }
        let listed = files.get(fill.place.entry as usize);
        let listed = listed.filter(|listed| !leases.contains(&listed.inode));
        let file = folder.as_ref().zip(listed);
        let own = listing.0.device;
        match file.and_then(|(folder, listed)| open_file(folder, own, listed)) {
            Some(file) => {
                bytes += fill.bytes.end - fill.bytes.start;
                let begins = position::of(file.as_fd());
                open.push(Open {
                    file,
                    begins,
                    fills: vec![fill],
                });
            }
            None => done(fill, false),
        }
        if open.len() >= OPEN_MAX || bytes >= OPEN_BYTES {
            fill_open(&mut open, limit, buffer, &mut done);
            (bytes, leases) = (0, self::leases());
        }
    }
    fill_open(&mut open, limit, buffer, &mut done);
}

/// Fills files in the order of the disk, and closes each.
fn fill_open(
    open: &mut Vec<Open>,
    limit: u32,
    buffer: &mut [u8],
    done: &mut dyn FnMut(Fill, bool),
) {
    open.sort_by_key(|file| (file.begins.is_none(), file.begins));
    for Open { file, fills, .. } in open.drain(..) {
        for fill in fills {
            let is_wanted = !fill.called_off.load(Ordering::Relaxed);
            let is_done = is_wanted && fill_range(&file, fill.bytes.clone(), limit, buffer);
            done(fill, is_done);
        }
    }
}

/// A file of a folder, if it is the one that was listed.
fn open_file(folder: &OwnedFd, own: (u32, u32), listed: &Listed) -> Option<File> {
    let flags = OFlags::RDONLY
        | OFlags::NOATIME
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let told = |at: AtFlags, name: &std::ffi::CStr, of: &OwnedFd| {
        let told = statx(of, name, at, StatxFlags::BASIC_STATS).ok()?;
        let is_file = FileType::from_raw_mode(told.stx_mode.into()) == FileType::RegularFile;
        let is_it = told.stx_ino == listed.inode && device(&told) == own;
        (is_file && is_it).then_some(())
    };
    // An open of a device or a FIFO has effects.
    told(AtFlags::SYMLINK_NOFOLLOW, &listed.name, folder)?;
    let file = openat(folder, &listed.name, flags, Mode::empty()).ok()?;
    told(AtFlags::EMPTY_PATH, c"", &file)?;
    Some(file.into())
}

/// Asks for a range of a file, so that the kernel leaves its mark at the half of it; whether the kernel was asked.
fn fill_range(file: &File, bytes: Range<u64>, limit: u32, buffer: &mut [u8]) -> bool {
    let pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
    asks(pages, limit).all(|asked| {
        let count = ((asked.end - asked.start) * PAGE_BYTES) as usize;
        let count = count.min(buffer.len());
        let mut buffers = [IoSliceMut::new(&mut buffer[..count])];
        let at = asked.start * PAGE_BYTES;
        match preadv2(file, &mut buffers, at, ReadWriteFlags::NOWAIT) {
            Ok(_) | Err(Errno::AGAIN) => true,
            Err(_) => false,
        }
    })
}

/// The pages that are asked for, so that a range is read whose open file has this limit. The kernel's first window is
/// twice to four times the pages asked for, up to the limit; from there on it is the pages asked for.
fn asks(pages: Range<u64>, limit: u32) -> impl Iterator<Item = Range<u64>> {
    let limit = u64::from(limit).clamp(1, READ_BYTES as u64 / PAGE_BYTES);
    let first = match pages.end - pages.start {
        count if pages.start > 0 => count.min(limit),
        count => count.min(limit).div_ceil(2),
    };
    let begin = pages.start + (pages.end - pages.start).min(limit);
    let rest = (0..)
        .map(move |number| begin + number * limit)
        .take_while(move |at| *at < pages.end)
        .map(move |at| at..pages.end.min(at + limit));
    std::iter::once(pages.start..pages.start + first).chain(rest)
}

/// Inodes with leases and delegations: an open breaks them.
fn leases() -> HashSet<u64> {
    let text = fs::read("/proc/locks").unwrap_or_default();
    text.split(|byte| *byte == b'\n')
        .filter_map(lease)
        .collect()
}

/// `7: LEASE  ACTIVE    WRITE 3568 08:01:13107 0 EOF`; a lock that another waits for has `->` behind its number.
fn lease(line: &[u8]) -> Option<u64> {
    let line = OsStr::from_bytes(line).to_str()?;
    let mut words = line.split_ascii_whitespace();
    let kind = words.by_ref().skip(1).find(|word| *word != "->")?;
    let inode = words.nth(3)?.rsplit(':').next()?.parse().ok()?;
    matches!(kind, "LEASE" | "DELEG").then_some(inode)
}

#[cfg(test)]
mod tests {
    use forerun_core::next_file::Place;
    use forerun_core::{FolderId, RequestId};

    use super::*;

    #[test]
    fn leases_are_told_from_locks() {
        let text = |line: &str| lease(line.as_bytes());
        assert_eq!(
            text("1: LEASE  ACTIVE    WRITE 3568 08:01:13107 0 EOF"),
            Some(13107)
        );
        assert_eq!(
            text("2: DELEG  ACTIVE    READ 3568 fd:1a:77 0 EOF"),
            Some(77)
        );
        assert_eq!(
            text("3: FLOCK  ADVISORY  WRITE 3568 08:01:13107 0 EOF"),
            None
        );
        assert_eq!(
            text("3: -> LEASE  BREAKING  READ 3568 08:01:9 0 EOF"),
            Some(9)
        );
        assert_eq!(text(""), None);
    }

    #[test]
    fn a_range_is_asked_for_whole_with_the_kernels_first_window_at_its_begin() {
        let asked = |pages, limit| {
            let asks = asks(pages, limit).map(|ask| (ask.start, ask.end));
            asks.collect::<Vec<_>>()
        };
        assert_eq!(asked(0..1, 32), [(0, 1)]);
        assert_eq!(asked(0..15, 32), [(0, 8)]);
        assert_eq!(asked(0..32, 32), [(0, 16)]);
        assert_eq!(asked(0..64, 32), [(0, 16), (32, 64)]);
        assert_eq!(asked(0..70, 32), [(0, 16), (32, 64), (64, 70)]);
        assert_eq!(asked(16..20, 32), [(16, 20)]);
        assert_eq!(asked(0..3, 0), [(0, 1), (1, 2), (2, 3)]);
    }

    fn folder(path: &Path) -> Folder {
        let told = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).unwrap();
        Folder {
            path: path.to_owned(),
            device: device(&told),
            inode: told.stx_ino,
        }
    }

    /// A lease of this process, as long as the file is open.
    #[expect(unsafe_code, reason = "leases have no safe interface")]
    fn leased(path: &Path) -> Option<File> {
        use std::os::fd::AsRawFd;
        let file = File::open(path).unwrap();
        // SAFETY: the call takes numbers alone.
        let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
        (taken == 0).then_some(file)
    }

    /// A process in a mount namespace of its own; none where there is no right to one.
    fn apart() -> Option<std::process::Child> {
        let mut child = std::process::Command::new("unshare")
            .args(["--mount", "sh", "-c", "echo; read _"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .ok()?;
        let mut said = [0];
        let is_there = io::Read::read(child.stdout.as_mut()?, &mut said).is_ok_and(|n| n == 1);
        if !is_there {
            let _ = child.wait();
        }
        is_there.then_some(child)
    }

    #[test]
    fn a_path_is_followed_in_its_readers_namespace_alone() {
        let root = fs::canonicalize(tempfile::tempdir().unwrap().keep()).unwrap();
        fs::write(root.join("file"), "x").unwrap();
        let inode = |path: &Path| {
            statx(CWD, path, AtFlags::empty(), StatxFlags::INO)
                .unwrap()
                .stx_ino
        };
        let sought = |process, inode| Sought {
            event: Ahead {
                time: forerun_core::Nanos(0),
                cause: crate::sample::Cause::Miss,
                process,
                thread: process,
                device: 0,
                inode,
                index: 0,
                size: 0,
                async_size: 0,
                limit: 32,
                asked: 1,
            },
            domain: Domain::default(),
            paths: (root.join("file"), None),
        };
        let own = std::process::id();
        let file = inode(&root.join("file"));
        let (at, ..) = find(&sought(own, file)).unwrap();
        assert_eq!((&at.path, at.inode), (&root, inode(&root)));
        assert_eq!(at.named(), root);
        assert!(find(&sought(own, file + 1)).is_none(), "another file");
        if let Some(mut child) = apart() {
            let (at, ..) = find(&sought(child.id(), file)).unwrap();
            drop(child.stdin.take());
            child.wait().unwrap();
            let of_reader = PathBuf::from(format!("/proc/{}/root", child.id()));
            assert_eq!(at.path, of_reader.join(root.strip_prefix("/").unwrap()));
            assert_eq!(at.named(), root);
        } else {
            crate::skipped::skipped("needs unshare and the right to a mount namespace");
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_folder_has_its_regular_files_with_bytes_by_whatever_names() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let names = ["a\nb", "c (deleted)", "-rf", "\u{1b}[2J"];
        names
            .iter()
            .for_each(|name| fs::write(at(name), "12345").unwrap());
        fs::write(at("empty"), "").unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("-rf"), at("link")).unwrap();
        rustix::fs::mkfifoat(CWD, at("pipe"), Mode::RUSR).unwrap();
        let listed = list(&folder(root.path())).unwrap();
        let mut found: Vec<_> = listed.iter().map(|of| of.name.to_str().unwrap()).collect();
        found.sort_unstable();
        let mut expected = names;
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(listed.iter().all(|of| of.bytes == 5));
        // Another folder at the same path is not listed.
        let stranger = Folder {
            inode: 1,
            ..folder(root.path())
        };
        assert!(list(&stranger).is_err());
    }

    #[test]
    fn a_file_that_vanished_was_replaced_or_has_a_lease_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["vanishes", "replaced", "leased", "stays"] {
            fs::write(at(name), "12345").unwrap();
        }
        let here = folder(root.path());
        let files = list(&here).unwrap();
        fs::remove_file(at("vanishes")).unwrap();
        fs::rename(at("replaced"), at("elsewhere")).unwrap();
        rustix::fs::mkfifoat(CWD, at("replaced"), Mode::RUSR | Mode::WUSR).unwrap();
        let lease = leased(&at("leased"));
        let listing: Listing = Arc::new((here, files));
        let fill = |entry: u32| Fill {
            place: Place {
                folder: FolderId(0),
                entry,
            },
            bytes: 0..5,
            called_off: Arc::default(),
            request: RequestId(0),
        };
        let fills = (0..listing.1.len() as u32).map(fill).collect();
        let mut done = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        fill_all(&listing, fills, 32, &mut buffer, |fill, is_done| {
            let name = listing.1[fill.place.entry as usize].name.to_str().unwrap();
            done.push((name.to_owned(), is_done));
        });
        done.sort();
        let expected = [
            ("leased", lease.is_none()),
            ("replaced", false),
            ("stays", true),
            ("vanishes", false),
        ];
        assert_eq!(
            done,
            expected.map(|(name, is_done)| (name.to_owned(), is_done))
        );
    }
}
