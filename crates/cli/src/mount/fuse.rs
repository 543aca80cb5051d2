//! FUSE's side of a mount: requests of the kernel in, answers out, nothing decided.
//!
//! `fuser` parses requests on a few threads of its own, each with its own channel to the kernel,
//! and calls in here; every operation is one call of [`SourceFs`] and a translation of what came
//! back. A call asks the source, which may not answer, so it is made in the [lane](super::lanes) of
//! its file system. Reads are done by [`reads`]: it sees to it that a blocked one never blocks another
//! request, and that all of them together stay within their memory.
//!
//! What is told to the kernel, and why: names and attributes are good for [`TTL`]; data stays in
//! its page cache until the file has another version (`FOPEN_KEEP_CACHE`, `AUTO_INVAL_DATA`, the
//! watch); links are cached; access lists are checked by it (`POSIX_ACL` beside
//! `default_permissions`); requests may be a mebibyte long and many at once.

pub mod reads;
pub mod room;
mod wire;

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
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
use rustix::process::{Resource, getrlimit};

use self::reads::{Read, Reads};
use self::wire::{attr, errno, found_attr, generation, kind, nameless, shown};
use super::fs::listing::Name;
use super::fs::nodes::Node;
use super::fs::{Found, SourceFs};
use super::lanes::{LaneOf, Lanes};
use super::read_times::ReadTimes;

/// How long the kernel may believe a name or an attribute: the longest time a change in the source
/// goes unnoticed. A second, as network file systems use; a shorter one costs a round trip for
/// almost every `stat`.
pub const TTL: Duration = Duration::from_secs(1);

/// The longest request: 256 pages are the kernel's default limit (`fs.fuse.max_pages_limit`).
pub(super) const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Reads the kernel may have under way that no program waits for yet. Beyond this its readahead
/// stops for everyone; 256 readers with two windows each stay below.
const BACKGROUND_MAX: u16 = 1024;

/// Threads that take requests, and answer what is in memory: as many as can be busy at once on most
/// machines.
const THREADS: usize = 16;

/// Descriptors of the daemon beside those of its threads and of open files: standard streams, engine,
/// control socket, SOURCE.
const DESCRIPTORS: u64 = 12;

/// Descriptors a thread needs: its channel, and three for a call.
const DESCRIPTORS_EACH: u64 = 4;

/// How often a call is made again that found no descriptor left, though those kept to save work were
/// let go of: others let go of theirs when they end.
const TRIES: u32 = 16;

/// The kernel's numbers for the two kinds of seeking a file system must help with.
const SEEK_DATA: i32 = 3;
/// See [`SEEK_DATA`].
const SEEK_HOLE: i32 = 4;

/// What calls need, on whatever thread they are made.
#[derive(Debug)]
struct Served {
    fs: Arc<SourceFs>,
    reads: Reads,
    times: Arc<ReadTimes>,
    /// Where the kernel is told to drop something; set before the first open.
    kernel: OnceLock<Notifier>,
}

/// See the [module](self).
#[derive(Debug)]
struct Adapter {
    served: Arc<Served>,
    lanes: Arc<Lanes>,
}

/// How many threads take requests: fewer where the process may have few descriptors.
#[must_use]
pub fn threads() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let enough = limit.saturating_sub(DESCRIPTORS) / DESCRIPTORS_EACH;
    usize::try_from(enough).map_or(THREADS, |enough| enough.clamp(2, THREADS))
}

/// Descriptors for channels beside the first: a channel for each thread is faster.
#[must_use]
pub fn channels(threads: usize) -> usize {
    if threads == THREADS { threads - 1 } else { 0 }
}

/// Serves a mounted file system on this channel, on threads of its own, until it is unmounted.
///
/// # Errors
/// The kernel does not speak FUSE as we do, or threads cannot start.
pub fn serve(
    fs: Arc<SourceFs>,
    channel: OwnedFd,
    everyone: bool,
    room: usize,
    times: Arc<ReadTimes>,
) -> io::Result<BackgroundSession> {
    let threads = threads();
    let lanes = Lanes::new(threads);
    let limits = fs.clone();
    let reads = Reads::start(room, lanes.clone(), Box::new(move || limits.awaited_max()))?;
    let kernel = OnceLock::new();
    let served = Arc::new(Served {
        fs,
        reads,
        times,
        kernel,
    });
    let adapter = Adapter {
        served: served.clone(),
        lanes,
    };
    let acl = if everyone {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    let mut config = Config::default();
    config.acl = acl;
    config.n_threads = Some(threads);
    config.clone_fd = channels(threads) > 0;
    let session = Session::from_fd(adapter, channel, acl, config)?;
    // Nothing but the first handshake was served until now.
    let _ = served.kernel.set(session.notifier());
    session.spawn()
}

impl Adapter {
    /// Makes a call about a node in its lane.
    fn call(&self, node: INodeNo, call: impl FnOnce(&Served) + Send + 'static) {
        self.call_in(self.served.fs.lane(Node(node.0)), call);
    }

    fn call_in(&self, lane: LaneOf, call: impl FnOnce(&Served) + Send + 'static) {
        let served = self.served.clone();
        self.lanes.call(lane, move || call(&served));
    }
}

impl Served {
    /// Makes a call that takes descriptors; if none is left those kept to save work go first.
    fn with_descriptors<T>(
        &self,
        call: impl Fn(&SourceFs) -> Result<T, rustix::io::Errno>,
    ) -> Result<T, rustix::io::Errno> {
        use rustix::io::Errno;
        let mut result = call(&self.fs);
        for _ in 0..TRIES {
            if !matches!(result, Err(Errno::MFILE | Errno::NFILE)) {
                break;
            }
            if !self.fs.free_descriptors() {
                std::thread::yield_now();
            }
            result = call(&self.fs);
        }
        result
    }

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

    /// The answer to an open that failed, or to the question before it. After `ESTALE` the kernel walks the path again, and must
    /// not do so with the attributes that led here.
    fn refusal(&self, node: INodeNo, thread: u32, error: rustix::io::Errno) -> Errno {
        if error == rustix::io::Errno::STALE {
            self.fs.refused(thread);
            self.drop_attributes(node);
        }
        errno(error)
    }

    fn lookup(&self, found: Result<Found, rustix::io::Errno>, reply: ReplyEntry) {
        match found {
            Ok(found) => reply.entry(&TTL, &found_attr(&found), generation(&found.attributes)),
            Err(error) => reply.error(errno(error)),
        }
    }
}

/// Tells a name from the others of its folder, mostly.
fn mount_point(parent: INodeNo, name: &OsStr) -> LaneOf {
    let mut hasher = DefaultHasher::new();
    (parent.0, name).hash(&mut hasher);
    LaneOf::MountPoint(hasher.finish())
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
        let (name, lanes, served) = (name.to_owned(), self.lanes.clone(), self.served.clone());
        self.call(parent, move |here| {
            let parent_node = Node(parent.0);
            match here.with_descriptors(|fs| fs.lookup_here(parent_node, &name)) {
                Ok(Some(found)) => here.lookup(Ok(found), reply),
                Err(error) => here.lookup(Err(error), reply),
                // What is mounted there may not answer, and this lane is its folder's.
                Ok(None) => lanes.later(mount_point(parent, &name), move || {
                    let found = served.with_descriptors(|fs| fs.lookup(parent_node, &name));
                    served.lookup(found, reply);
                }),
            }
        });
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        self.served.fs.forget(Node(node.0), lookups);
    }

    fn getattr(&self, request: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let thread = request.pid();
        self.call(node, move |served| {
            match served.with_descriptors(|fs| fs.attributes(Node(node.0))) {
                Ok(attributes) => {
                    reply.attr(&TTL, &attr(&attributes, shown(Node(node.0), &attributes)));
                }
                Err(error) => reply.error(served.refusal(node, thread, error)),
            }
        });
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        self.call(node, move |served| {
            match served.with_descriptors(|fs| fs.read_link(Node(node.0))) {
                Ok(target) => reply.data(&target),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn open(&self, request: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let thread = request.pid();
        self.call(node, move |served| {
            match served.with_descriptors(|fs| fs.open(Node(node.0), thread)) {
                Ok(opened) => {
                    if opened.resized {
                        served.drop_attributes(node);
                    }
                    let mut flags = FopenFlags::FOPEN_NOFLUSH;
                    flags.set(FopenFlags::FOPEN_KEEP_CACHE, opened.unchanged);
                    reply.opened(FileHandle(opened.handle), flags);
                }
                Err(error) => reply.error(served.refusal(node, thread, error)),
            }
        });
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
        let file = match self.served.fs.open_file(handle.0) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        let (lane, is_served) = (file.lane, file.reader.is_served());
        let read = Read {
            file,
            offset,
            bytes: size as usize,
            reply: self.served.times.begin(reply),
        };
        if is_served {
            self.call_in(lane, move |served| served.reads.begin(read));
        } else {
            self.served.reads.begin(read);
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
        self.call(node, move |served| {
            match served.with_descriptors(|fs| fs.seek(Node(node.0), at)) {
                Ok(found) => reply.offset(found.cast_signed()),
                Err(error) => reply.error(errno(error)),
            }
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
        // To close a file of a server is to ask it.
        let Ok(lane) = self.served.fs.open_file(handle.0).map(|file| file.lane) else {
            return reply.ok();
        };
        self.call_in(lane, move |served| {
            served.fs.release(handle.0);
            reply.ok();
        });
    }

    fn opendir(&self, request: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let thread = request.pid();
        self.call(node, move |served| {
            match served.with_descriptors(|fs| fs.open_folder(Node(node.0), thread)) {
                Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
                Err(error) => reply.error(served.refusal(node, thread, error)),
            }
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
        self.call(node, move |served| {
            let read = served.fs.read_folder(handle.0, from, &mut |node, name| {
                !reply.add(INodeNo(node.0), name.next, kind(name.kind), &name.name)
            });
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
            let mut take = |found: Option<&Found>, name: &Name| {
                let (number, attr, generation) = match found {
                    Some(found) => {
                        let generation = generation(&found.attributes);
                        (INodeNo(found.node.0), found_attr(found), generation)
                    }
                    // Number zero: a name without attributes.
                    None => (INodeNo(0), nameless(name.inode, name.kind), Generation(0)),
                };
                !reply.add(number, name.next, &name.name, &TTL, &attr, generation)
            };
            let fs = &served.fs;
            match fs.read_folder_found(Node(node.0), handle.0, from, &mut take) {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn releasedir(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.call(node, move |served| {
            served.fs.release_folder(handle.0);
            reply.ok();
        });
    }

    fn statfs(&self, _: &Request, node: INodeNo, reply: ReplyStatfs) {
        self.call(node, move |served| {
            match served.with_descriptors(|fs| fs.space(Node(node.0))) {
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
        });
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.call(node, move |served| {
            let value = served.with_descriptors(|fs| fs.xattr(Node(node.0), &name));
            answer_xattr(value, size, reply);
        });
    }

    fn listxattr(&self, request: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        let (user, thread) = (request.uid(), request.pid());
        self.call(node, move |served| {
            let may_see_all = user == 0 && is_privileged(thread);
            let names = served.with_descriptors(|fs| fs.xattrs(Node(node.0), may_see_all));
            answer_xattr(names, size, reply);
        });
    }
}

/// Whether a thread has the right to administer the system (`CAP_SYS_ADMIN`), which is asked of those
/// who would see attributes named `trusted.*`.
fn is_privileged(thread: u32) -> bool {
    const SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let rights = line.and_then(|rights| u64::from_str_radix(rights.trim(), 16).ok());
    rights.is_some_and(|rights| rights >> SYS_ADMIN & 1 == 1)
}

fn answer_xattr(value: Result<Vec<u8>, rustix::io::Errno>, size: u32, reply: ReplyXattr) {
    match value {
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(errno(error)),
    }
}
