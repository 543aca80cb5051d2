//! The FUSE adapter of an object store: requests of the kernel in, answers out, no decisions.
//!
//! As the [adapter of directories](crate::fuse), for a tree without links, rights and extended attributes.
//! A name is answered when the store has answered, without a thread for it; a listing waits in the least busy of some
//! [lanes](crate::lanes); [`reads`](crate::fuse::reads) does the reads.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use forerun_io::source::tree::Entry;
use forerun_surface::daemon::caught;
use fuser::{
    BackgroundSession, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};
use rustix::process::{getgid, getuid};

use super::{Looked, ObjectFs};
use crate::fs::nodes::Node;
use crate::fuse::host::AheadHost;
use crate::fuse::reads::{Read, Reads};
use crate::fuse::wire::errno;
use crate::fuse::{REQUEST_BYTES_MAX, session};
use crate::lanes::{LaneOf, Lanes};
use crate::mounted::{Mounted, Serving};
use crate::read_times::ReadTimes;
use crate::record::Recorder;
use crate::trust::{TTL, Trust};
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

/// Lanes of listings, each with one thread beside those that take requests.
const LISTING_LANES: usize = 16;

/// Needs of calls, on any thread.
struct Served {
    fs: Arc<ObjectFs>,
    reads: Reads,
    times: Arc<ReadTimes>,
    record: Option<Arc<Recorder>>,
    trust: Trust,
    /// Calls in each lane of listings.
    listings: [AtomicUsize; LISTING_LANES],
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
        record: serving.record,
        trust: serving.trust,
        listings: Default::default(),
        user: getuid().as_raw(),
        group: getgid().as_raw(),
    };
    let fs = served.fs.clone();
    AheadHost::serve(&fs, fs.engine.driver(), &lanes);
    let adapter = Adapter {
        served: Arc::new(served),
        lanes,
    };
    let (session, forget) = session::serve(adapter, channel, serving.everyone, threads, drop)?;
    // An object is looked at where it is opened; names alone are watched. A store lists 25,000 a second.
    let pass = move || {
        forget.surplus(&*fs);
        fs.tidy();
        fs.close_idle();
    };
    Ok((session, Watch::every(TTL / 4, pass)?))
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

    fn found(&self, found: Result<Looked, rustix::io::Errno>, reply: ReplyEntry) {
        let Looked { found, age } = match found {
            Ok(looked) => looked,
            Err(error) => return reply.error(errno(error)),
        };
        let Trust {
            attributes,
            entries,
            negative,
            ..
        } = self.trust;
        let left = |believed: Duration| believed.saturating_sub(age);
        match found {
            Some((node, entry)) => {
                let attr = self.attr(node, &entry);
                let (attributes, entries) = (left(attributes), left(entries));
                reply.entry_with_ttls(&attributes, &entries, &attr, Generation(0));
            }
            None if !negative.is_zero() => {
                let negative = left(negative);
                let nothing = self.attr(Node(0), &Entry::Folder);
                reply.entry_with_ttls(&negative, &negative, &nothing, Generation(0));
            }
            None => reply.error(Errno::ENOENT),
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
    /// Makes a call that lists, in the lane with the fewest: those that hang leave the other lanes free.
    fn list(&self, call: impl FnOnce(&Served) + Send + 'static) {
        let served = self.served.clone();
        let busy = |lane: &usize| served.listings[*lane].load(Ordering::Relaxed);
        let lane = (0..LISTING_LANES).min_by_key(busy).unwrap_or_default();
        served.listings[lane].fetch_add(1, Ordering::Relaxed);
        // Those of open files have the numbers of their nodes, from 1 on.
        let of = LaneOf::MountPoint(u64::MAX - lane as u64);
        self.lanes.call(of, move || {
            // Also at a panic.
            let _ends = Ends(&served.listings[lane]);
            call(&served);
        });
    }
}

/// One call less in a lane.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        session::configure(
            config,
            &[
                InitFlags::FUSE_PARALLEL_DIROPS,
                InitFlags::FUSE_DO_READDIRPLUS,
                InitFlags::FUSE_ASYNC_DIO,
            ],
        );
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let served = self.served.clone();
        let Some(name) = name.to_str() else {
            // Keys are text.
            return served.found(Ok(Looked::NOTHING), reply);
        };
        let then = move |found| served.found(found, reply);
        caught(|| self.served.fs.look_up(Node(parent.0), name, then));
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        caught(|| self.served.fs.forget(Node(node.0), lookups));
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        caught(|| match self.served.fs.entry(Node(node.0)) {
            Ok(entry) => {
                let attr = self.served.attr(Node(node.0), &entry);
                reply.attr(&self.served.trust.attributes, &attr);
            }
            Err(error) => reply.error(errno(error)),
        });
    }

    fn open(&self, request: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let then = move |opened| match opened {
            Ok(handle) => reply.opened(
                FileHandle(handle),
                FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH,
            ),
            Err(error) => reply.error(errno(error)),
        };
        caught(|| self.served.fs.open(Node(node.0), request.pid(), then));
    }

    fn read(
        &self,
        request: &Request,
        node: INodeNo,
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
        if let Some(record) = &self.served.record {
            let path = || self.served.fs.path(Node(node.0));
            // A number is given once.
            let file = (Node(node.0), 0);
            record.read(request.pid(), file, path, offset, size);
        }
        caught(|| match self.served.fs.open_file(handle.0) {
            Ok(file) => {
                file.asked_by(request.pid());
                self.served.reads.begin(Read {
                    file,
                    offset,
                    bytes: size as usize,
                    thread: request.pid(),
                    direct: false,
                    looked: false,
                    reply,
                });
            }
            Err(error) => reply.error(errno(error)),
        });
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
        caught(|| self.served.fs.release(handle.0));
        reply.ok();
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        caught(|| match self.served.fs.open_folder(Node(node.0)) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        self.list(move |served| {
            let mut take =
                |name: &str, entry: &Entry, _, next| !reply.add(NO_NUMBER, next, kind(entry), name);
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
        self.list(move |served| {
            let (folder, fs) = (Node(node.0), &served.fs);
            // Both times are one for the library; the shorter one is never too long.
            let believed = served.trust.attributes.min(served.trust.entries);
            let mut take = |name: &str, entry: &Entry, as_of, next| {
                // The kernel takes nothing of these, whatever their number.
                let looked = match [".", ".."].contains(&name) {
                    true => Looked::NOTHING,
                    false => fs.listed(folder, name, entry, as_of),
                };
                let attr = match &looked.found {
                    Some((node, entry)) => served.attr(*node, entry),
                    None => served.attr(Node(NO_NUMBER.0), entry),
                };
                let left = believed.saturating_sub(looked.age);
                let full = reply.add(attr.ino, next, name, &left, &attr, Generation(0));
                if let (Some((node, _)), true) = (looked.found, full) {
                    fs.forget(node, 1);
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
        caught(|| self.served.fs.release_folder(handle.0));
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
