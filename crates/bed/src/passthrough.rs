//! A plain passthrough file system: the cost of FUSE itself, with nothing read ahead.
//!
//! Mounted by [`small`](crate::small) beside `forerun mount`, so that a ratio between the two is
//! the daemon's own part. The usual design: a path for each inode in the kernel, a descriptor
//! for each open file, names and attributes good for a second, pages kept from one open to the
//! next, folders answered with attributes. It is read-only, open to all users if root mounts it,
//! and ignores changes: a reference, and the file system in which
//! [`changes`](crate::changes) must find violations. Not one to use.
//!
//! ```text
//! lookup, readdirplus --> lstat(path)        open --> open(path)       read --> pread(descriptor)
//! ```

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, Request, Session,
    SessionACL,
};

use crate::failure::{At, Failure};

/// As network file systems, and `forerun mount`, have it.
const TTL: Duration = Duration::from_secs(1);

/// Threads that serve: more only wake each other on the processors these comparisons run on.
const THREADS: usize = 2;

/// The root's number, by FUSE.
const ROOT: u64 = 1;

/// A name of a folder as it is listed.
struct Name {
    name: OsString,
    inode: u64,
    kind: FileType,
}

#[derive(Default)]
struct Tables {
    /// The path of each inode, and the number of its look-ups by the kernel.
    paths: HashMap<u64, (PathBuf, u64)>,
    files: HashMap<u64, std::sync::Arc<File>>,
    folders: HashMap<u64, std::sync::Arc<Vec<Name>>>,
    next: u64,
}

/// See the [module](self).
struct Passthrough {
    root: PathBuf,
    tables: Mutex<Tables>,
}

/// Serves `source` on `mountpoint` until it is unmounted.
///
/// # Errors
/// It cannot be mounted or served.
pub fn run(source: &Path, mountpoint: &Path) -> Result<(), Failure> {
    let root = fs::canonicalize(source).at(source)?;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("forerun-bed".into()),
        MountOption::Subtype("passthrough".into()),
        MountOption::DefaultPermissions,
        MountOption::RO,
    ];
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    // Other users of a mount that is not root's need leave in /etc/fuse.conf.
    if rustix::process::geteuid().is_root() {
        config.acl = SessionACL::All;
    }
    let served = Passthrough {
        root,
        tables: Mutex::default(),
    };
    let session = Session::new(served, mountpoint, &config).at(mountpoint)?;
    session.run().at(mountpoint)
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_i32(error.raw_os_error().unwrap_or(5))
}

fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let since = Duration::new(
        u64::try_from(seconds).unwrap_or(0),
        u32::try_from(nanoseconds).unwrap_or(0),
    );
    UNIX_EPOCH + since
}

fn kind(of: fs::FileType) -> FileType {
    FileType::from_std(of).unwrap_or(FileType::RegularFile)
}

fn attr(found: &Metadata, inode: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(inode),
        size: found.size(),
        blocks: found.blocks(),
        atime: time(found.atime(), found.atime_nsec()),
        mtime: time(found.mtime(), found.mtime_nsec()),
        ctime: time(found.ctime(), found.ctime_nsec()),
        crtime: UNIX_EPOCH,
        kind: kind(found.file_type()),
        perm: u16::try_from(found.mode() & 0o7777).unwrap_or(0),
        nlink: u32::try_from(found.nlink()).unwrap_or(u32::MAX),
        uid: found.uid(),
        gid: found.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Passthrough {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, inode: INodeNo) -> io::Result<PathBuf> {
        if inode.0 == ROOT {
            return Ok(self.root.clone());
        }
        let tables = self.tables();
        let known = tables.paths.get(&inode.0).map(|(path, _)| path.clone());
        known.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Looks a name up for the kernel.
    fn found(&self, path: PathBuf) -> io::Result<FileAttr> {
        let found = fs::symlink_metadata(&path)?;
        let mut tables = self.tables();
        let known = tables.paths.entry(found.ino()).or_default();
        known.0 = path;
        known.1 += 1;
        Ok(attr(&found, found.ino()))
    }

    fn folder(&self, handle: FileHandle) -> Option<std::sync::Arc<Vec<Name>>> {
        self.tables().folders.get(&handle.0).cloned()
    }
}

/// All names of a folder, with its own two.
fn names(path: &Path) -> io::Result<Vec<Name>> {
    let own = |name: &str| Name {
        name: name.into(),
        inode: u64::MAX,
        kind: FileType::Directory,
    };
    let mut names = vec![own("."), own("..")];
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        names.push(Name {
            name: entry.file_name(),
            inode: std::os::unix::fs::DirEntryExt::ino(&entry),
            kind: kind(entry.file_type()?),
        });
    }
    Ok(names)
}

impl Filesystem for Passthrough {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO;
        // Without them it is only slower.
        let _ = config.add_capabilities(wanted);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self
            .path(parent)
            .and_then(|path| self.found(path.join(name)))
        {
            Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn forget(&self, _: &Request, inode: INodeNo, lookups: u64) {
        let mut tables = self.tables();
        if let Some((_, known)) = tables.paths.get_mut(&inode.0) {
            *known = known.saturating_sub(lookups);
            if *known == 0 {
                tables.paths.remove(&inode.0);
            }
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.path(inode).and_then(fs::symlink_metadata) {
            Ok(found) => reply.attr(&TTL, &attr(&found, inode.0)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.path(inode).and_then(fs::read_link) {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.path(inode).and_then(File::open) {
            Ok(file) => {
                let mut tables = self.tables();
                tables.next += 1;
                let number = tables.next;
                tables.files.insert(number, file.into());
                let flags = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH;
                reply.opened(FileHandle(number), flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(file) = self.tables().files.get(&handle.0).cloned() else {
            return reply.error(Errno::EBADF);
        };
        let mut buffer = vec![0; size as usize];
        match file.read_at(&mut buffer, offset) {
            Ok(count) => reply.data(&buffer[..count]),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let closed = self.tables().files.remove(&handle.0);
        reply.ok();
        drop(closed);
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.path(inode).and_then(|path| names(&path)) {
            Ok(names) => {
                let mut tables = self.tables();
                tables.next += 1;
                let number = tables.next;
                tables.folders.insert(number, names.into());
                reply.opened(FileHandle(number), FopenFlags::empty());
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(folder) = self.folder(handle) else {
            return reply.error(Errno::EBADF);
        };
        for (place, name) in (1..).zip(folder.iter()).skip(from as usize) {
            if reply.add(INodeNo(name.inode), place, name.kind, &name.name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let (Some(folder), Ok(path)) = (self.folder(handle), self.path(inode)) else {
            return reply.error(Errno::EBADF);
        };
        for (place, name) in (1..).zip(folder.iter()).skip(from as usize) {
            let own = name.name == "." || name.name == "..";
            // Its own two names need a kind only; of others one may be gone since it was listed.
            let found = match own {
                true => fs::symlink_metadata(&path).map(|found| (0, attr(&found, u64::MAX))),
                false => self.found(path.join(&name.name)).map(|a| (name.inode, a)),
            };
            let Ok((number, attr)) = found else { continue };
            let (node, generation) = (INodeNo(number), Generation(0));
            if reply.add(node, place, &name.name, &TTL, &attr, generation) {
                self.forget_one(number);
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.tables().folders.remove(&handle.0);
        reply.ok();
    }
}

impl Passthrough {
    /// A name that did not fit the answer was not sent.
    fn forget_one(&self, inode: u64) {
        if let Some((_, known)) = self.tables().paths.get_mut(&inode) {
            *known = known.saturating_sub(1);
        }
    }
}
