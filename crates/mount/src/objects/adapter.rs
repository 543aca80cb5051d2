//! The FUSE adapter of an object store: requests of the kernel in, answers out, no decisions.
//!
//! As the [adapter of directories](crate::fuse), for a tree without links, rights and extended attributes.
//! A call that asks the store waits for its answer, so each is made in a [lane](crate::lanes) of its own;
//! [`reads`](crate::fuse::reads) does the reads.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use forerun_io::source::tree::Entry;
use fuser::{
    BackgroundSession, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};
use rustix::process::{getgid, getuid};

use super::{ObjectFs, lane};
use crate::fs::nodes::Node;
use crate::fuse::reads::{Read, Reads};
use crate::fuse::wire::errno;
use crate::fuse::{REQUEST_BYTES_MAX, session};
use crate::lanes::Lanes;
use crate::mounted::Serving;
use crate::read_times::ReadTimes;
use crate::trust::Trust;
use crate::watch::Watch;

/// Rights of objects and of folders.
const OBJECT_MODE: u16 = 0o444;
const FOLDER_MODE: u16 = 0o555;

/// The unit of sizes in `statfs` and of `st_blocks`; and of reads that programs find good: a longer one
/// would have a program that reads single records fetch more than it asked for.
const BLOCK_BYTES: u32 = 4096;
const SECTOR_BYTES: u64 = 512;

/// A number in a listing without attributes: it is not known, as libfuse says it.
const NO_NUMBER: INodeNo = INodeNo(0xffff_ffff);

/// The longest name, for `statfs`.
const NAME_BYTES: u32 = super::NAME_BYTES_MAX as u32;

/// Needs of calls, on any thread.
struct Served {
    fs: Arc<ObjectFs>,
    reads: Reads,
    times: Arc<ReadTimes>,
    trust: Trust,
    user: u32,
    group: u32,
}

struct Adapter {
    served: Arc<Served>,
    lanes: Arc<Lanes>,
}

/// Serves the file system on this channel until it is unmounted.
pub(super) fn serve(
    fs: Arc<ObjectFs>,
    channel: OwnedFd,
    serving: Serving,
) -> io::Result<(BackgroundSession, Watch)> {
    let threads = session::threads();
    let lanes = Lanes::new(threads);
    let served = Served {
        reads: Reads::of(fs.clone(), serving.room, lanes.clone())?,
        fs,
        times: serving.times,
        trust: serving.trust,
        user: getuid().as_raw(),
        group: getgid().as_raw(),
    };
    let adapter = Adapter {
        served: Arc::new(served),
        lanes,
    };
    let session = session::serve(adapter, channel, serving.everyone, threads, drop)?;
    // What objects are is asked where they are opened.
    Ok((session, Watch::default()))
}

impl Served {
    fn attr(&self, node: Node, entry: &Entry) -> FileAttr {
        let (size, time, kind, perm) = match entry {
            Entry::Folder => (0, self.fs.begun(), FileType::Directory, FOLDER_MODE),
            Entry::Object(stat) => (
                stat.bytes,
                stat.modified,
                FileType::RegularFile,
                OBJECT_MODE,
            ),
        };
        FileAttr {
            ino: INodeNo(node.0),
            size,
            blocks: size.div_ceil(SECTOR_BYTES),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: 1,
            uid: self.user,
            gid: self.group,
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        }
    }

    fn look_up(&self, parent: Node, name: &OsStr, reply: ReplyEntry) {
        // Keys are text.
        let name = name.to_str().ok_or(rustix::io::Errno::NOENT);
        match name.and_then(|name| self.fs.look_up(parent, name)) {
            Ok((node, entry)) => {
                let Trust {
                    attributes,
                    entries,
                    ..
                } = self.trust;
                let attr = self.attr(node, &entry);
                reply.entry_with_ttls(&attributes, &entries, &attr, Generation(0));
            }
            Err(rustix::io::Errno::NOENT) if !self.trust.negative.is_zero() => {
                let negative = self.trust.negative;
                let nothing = self.attr(Node(0), &Entry::Folder);
                reply.entry_with_ttls(&negative, &negative, &nothing, Generation(0));
            }
            Err(error) => reply.error(errno(error)),
        }
    }
}

fn kind(entry: &Entry) -> FileType {
    match entry {
        Entry::Folder => FileType::Directory,
        Entry::Object(_) => FileType::RegularFile,
    }
}

impl Adapter {
    /// Makes a call about a node in its lane.
    fn call(&self, node: INodeNo, call: impl FnOnce(&Served) + Send + 'static) {
        let served = self.served.clone();
        self.lanes.call(lane(Node(node.0)), move || call(&served));
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        session::configure(
            config,
            &[
                InitFlags::FUSE_PARALLEL_DIROPS,
                InitFlags::FUSE_DO_READDIRPLUS,
                InitFlags::FUSE_READDIRPLUS_AUTO,
                InitFlags::FUSE_ASYNC_DIO,
            ],
        );
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (name, served) = (name.to_owned(), self.served.clone());
        let lane = crate::fuse::mount_point(parent, &name);
        self.lanes
            .call(lane, move || served.look_up(Node(parent.0), &name, reply));
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        self.served.fs.forget(Node(node.0), lookups);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.served.fs.entry(Node(node.0)) {
            Ok(entry) => {
                let attr = self.served.attr(Node(node.0), &entry);
                reply.attr(&self.served.trust.attributes, &attr);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn open(&self, request: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let thread = request.pid();
        self.call(node, move |served| {
            match served.fs.open(Node(node.0), thread) {
                Ok(handle) => reply.opened(
                    FileHandle(handle),
                    FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH,
                ),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn read(
        &self,
        request: &Request,
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
        let reply = self.served.times.begin(reply);
        match self.served.fs.open_file(handle.0) {
            Ok(file) => {
                file.asked_by(request.pid());
                self.served.reads.begin(Read {
                    file,
                    offset,
                    bytes: size as usize,
                    reply,
                });
            }
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
        self.served.fs.release(handle.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.served.fs.open_folder(Node(node.0)) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        self.call(node, move |served| {
            let mut take =
                |name: &str, entry: &Entry, next| !reply.add(NO_NUMBER, next, kind(entry), name);
            let read = served
                .fs
                .read_folder(Node(node.0), handle.0, from, &mut take);
            match read {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn readdirplus(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        self.call(node, move |served| {
            let (folder, fs) = (Node(node.0), &served.fs);
            // Both times are one for the library; the shorter one is never too long.
            let believed = served.trust.attributes.min(served.trust.entries);
            let mut take = |name: &str, entry: &Entry, next| {
                // The kernel looks these up by itself: number zero, without attributes.
                let is_dot = [".", ".."].contains(&name);
                let found = match is_dot {
                    true => Node(0),
                    false => fs.listed(folder, name, entry),
                };
                let mut attr = served.attr(found, entry);
                if is_dot {
                    attr.ino = NO_NUMBER;
                }
                let number = INodeNo(found.0);
                let full = reply.add(number, next, name, &believed, &attr, Generation(0));
                if full && !is_dot {
                    fs.forget(found, 1);
                }
                !full
            };
            match fs.read_folder(folder, handle.0, from, &mut take) {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.served.fs.release_folder(handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // A store does not tell how much it holds, and has room.
        let most = u64::from(u32::MAX);
        reply.statfs(
            most,
            most,
            most,
            most,
            most,
            BLOCK_BYTES,
            NAME_BYTES,
            BLOCK_BYTES,
        );
    }
}
