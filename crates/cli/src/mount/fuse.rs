//! FUSE's side of a mount: requests of the kernel in, answers out, nothing decided.
//!
//! `fuser` parses requests on a few threads of its own, each with its own channel to the kernel,
//! and calls in here; every operation is one call of [`SourceFs`] and a translation of what came
//! back. Reads are the only ones that may take long: [`reads`] sees to it that a blocked read never
//! blocks another request, and that all of them together stay within their memory.
//!
//! What is told to the kernel, and why: names and attributes are good for [`TTL`]; data stays in
//! its page cache until the file has another version (`FOPEN_KEEP_CACHE`, `AUTO_INVAL_DATA`, the
//! watch); links are cached; access lists are checked by it (`POSIX_ACL` beside
//! `default_permissions`); requests may be a mebibyte long and many at once.

pub mod reads;
pub mod room;
mod wire;

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{
    BackgroundSession, Config, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, Notifier, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr,
    Request, Session, SessionACL,
};
use rustix::fs::SeekFrom;

use self::reads::{Read, Reads};
use self::room::Sizes;
use self::wire::{attr, errno, found_attr, generation, kind, nameless, shown};
use super::fs::SourceFs;
use super::fs::nodes::Node;

/// How long the kernel may believe a name or an attribute: the longest time a change in the source
/// goes unnoticed. A second, as network file systems use; a shorter one costs a round trip for
/// almost every `stat`.
pub const TTL: Duration = Duration::from_secs(1);

/// The longest request: 256 pages are the kernel's default limit (`fs.fuse.max_pages_limit`).
pub(super) const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Reads the kernel may have under way that no program waits for yet. Beyond this its readahead
/// stops for everyone; 256 readers with two windows each stay below.
const BACKGROUND_MAX: u16 = 1024;

/// Threads that take requests, and answer what is in memory. None ever waits for a device, so they
/// are as many as can be busy at once on most machines.
const THREADS: usize = 16;

/// The kernel's numbers for the two kinds of seeking a file system must help with.
const SEEK_DATA: i32 = 3;
/// See [`SEEK_DATA`].
const SEEK_HOLE: i32 = 4;

/// See the [module](self).
#[derive(Debug)]
struct Adapter {
    fs: Arc<SourceFs>,
    reads: Reads,
    /// Where the kernel is told to drop something; set before the first open.
    kernel: Arc<OnceLock<Notifier>>,
}

/// Serves a mounted file system on this channel, on threads of its own, until it is unmounted.
///
/// # Errors
/// The kernel does not speak FUSE as we do, or threads cannot start.
pub fn serve(
    fs: Arc<SourceFs>,
    channel: OwnedFd,
    everyone: bool,
    room: Sizes,
) -> io::Result<BackgroundSession> {
    let limits = fs.clone();
    let reads = Reads::start(room, Box::new(move || limits.awaited_max()))?;
    let kernel = Arc::new(OnceLock::new());
    let adapter = Adapter {
        fs,
        reads,
        kernel: kernel.clone(),
    };
    let acl = if everyone {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    let mut config = Config::default();
    config.acl = acl;
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    let session = Session::from_fd(adapter, channel, acl, config)?;
    // Nothing but the first handshake was served until now.
    let _ = kernel.set(session.notifier());
    session.spawn()
}

impl Adapter {
    /// The kernel drops what it believes of a file's attributes. Unlike dropping pages this waits
    /// for nothing, so a thread that serves may do it; a reply sent afterwards comes after it.
    fn drop_attributes(&self, node: INodeNo) {
        const ATTRIBUTES_ONLY: i64 = -1;
        if let Some(kernel) = self.kernel.get()
            && let Err(error) = kernel.inval_inode(node, ATTRIBUTES_ONLY, 0)
        {
            tracing::debug!("the kernel keeps the attributes of {node:?}: {error}");
        }
    }

    /// The answer to an open that failed. After `ESTALE` the kernel walks the path again, and must
    /// not do so with the attributes that led here.
    fn refusal(&self, node: INodeNo, error: rustix::io::Errno) -> Errno {
        if error == rustix::io::Errno::STALE {
            self.drop_attributes(node);
        }
        errno(error)
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What the kernel does not have is only slower, or checked once more.
        for wanted in [
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_AUTO_INVAL_DATA,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_POSIX_ACL,
        ] {
            if let Err(missing) = config.add_capabilities(wanted) {
                tracing::debug!("the kernel has no {missing:?}");
            }
        }
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_congestion_threshold(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.fs.lookup(Node(parent.0), name) {
            Ok(found) => reply.entry(&TTL, &found_attr(&found), generation(&found.attributes)),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        self.fs.forget(Node(node.0), lookups);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.fs.attributes(Node(node.0)) {
            Ok(attributes) => {
                reply.attr(&TTL, &attr(&attributes, shown(Node(node.0), &attributes)))
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        match self.fs.read_link(Node(node.0)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn open(&self, request: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.fs.open(Node(node.0), request.pid()) {
            Ok(opened) => {
                if opened.resized {
                    self.drop_attributes(node);
                }
                let mut flags = FopenFlags::FOPEN_NOFLUSH;
                flags.set(FopenFlags::FOPEN_KEEP_CACHE, opened.unchanged);
                reply.opened(FileHandle(opened.handle), flags);
            }
            Err(error) => reply.error(self.refusal(node, error)),
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
        if size > REQUEST_BYTES_MAX {
            return reply.error(Errno::EINVAL);
        }
        match self.fs.open_file(handle.0) {
            Ok(file) => self.reads.begin(Read {
                file,
                offset,
                bytes: size as usize,
                reply,
            }),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn lseek(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let at = match (u64::try_from(offset), whence) {
            (Ok(offset), SEEK_DATA) => SeekFrom::Data(offset),
            (Ok(offset), SEEK_HOLE) => SeekFrom::Hole(offset),
            // The kernel knows sizes and positions itself and asks for nothing else.
            _ => return reply.error(Errno::EINVAL),
        };
        match self.fs.seek(Node(node.0), at) {
            Ok(found) => reply.offset(found.cast_signed()),
            Err(error) => reply.error(errno(error)),
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
        self.fs.release(handle.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.fs.open_folder(Node(node.0)) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(self.refusal(node, error)),
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
        let read = self.fs.read_folder(handle.0, from, &mut |node, name| {
            !reply.add(INodeNo(node.0), name.next, kind(name.kind), &name.name)
        });
        match read {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let fs = &self.fs;
        let read = fs.read_folder_found(Node(node.0), handle.0, from, &mut |found, name| {
            let (number, attr, generation) = match found {
                Some(found) => {
                    let generation = generation(&found.attributes);
                    (INodeNo(found.node.0), found_attr(found), generation)
                }
                // Number zero: a name without attributes.
                None => (INodeNo(0), nameless(name.inode, name.kind), Generation(0)),
            };
            !reply.add(number, name.next, &name.name, &TTL, &attr, generation)
        });
        match read {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.fs.release_folder(handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, node: INodeNo, reply: ReplyStatfs) {
        match self.fs.space(Node(node.0)) {
            Ok(space) => {
                let short = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
                reply.statfs(
                    space.f_blocks,
                    space.f_bfree,
                    space.f_bavail,
                    space.f_files,
                    space.f_ffree,
                    short(space.f_bsize),
                    short(space.f_namemax),
                    short(space.f_frsize),
                );
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        answer_xattr(self.fs.xattr(Node(node.0), name), size, reply);
    }

    fn listxattr(&self, _: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        answer_xattr(self.fs.xattrs(Node(node.0)), size, reply);
    }
}

fn answer_xattr(value: Result<Vec<u8>, rustix::io::Errno>, size: u32, reply: ReplyXattr) {
    match value {
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(errno(error)),
    }
}
