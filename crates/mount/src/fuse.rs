//! The FUSE adapter of a mount: requests of the kernel in, answers out, no decisions.
//!
//! `fuser` parses requests on a few threads of its own, each with its own channel to the kernel,
//! and calls in here; every operation is one call of [`SourceFs`](super::fs::SourceFs) and a
//! translation of its result. A call asks the source, which may not answer, so it is made in the
//! [lane](super::lanes) of its file system. [`reads`] does the reads: a blocked read blocks no
//! other request, and all reads together stay within their memory.
//!
//! Settings sent to the kernel: names and attributes are valid for the user's
//! [times](super::trust); data stays in its page cache until the file has another version
//! (`FOPEN_KEEP_CACHE`, `AUTO_INVAL_DATA`, the watch); it checks access lists
//! (`POSIX_ACL` beside `default_permissions`); requests may be a mebibyte long and many at once.

mod calls;
pub mod forget;
pub(crate) mod host;
mod leases;
pub mod reads;
pub mod room;
pub mod session;
pub(crate) mod wire;

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forerun_surface::daemon::caught;
use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};
use rustix::fs::SeekFrom;

pub(crate) use self::calls::mount_point;
use self::calls::{Served, answer_xattr, is_privileged};
use self::leases::Wait;
use self::reads::Read;
use self::wire::{errno, found_attr, generation, kind, unlinked};
use super::fs::Found;
use super::fs::listing::Name;
use super::fs::nodes::Node;
use super::lanes::{LaneOf, Lanes};
use super::open_file::OpenFile;

/// The longest request: 256 pages are the kernel's default limit (`fs.fuse.max_pages_limit`).
pub(super) const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Reads the kernel may have under way that no program waits for yet. Beyond this its readahead
/// stops for all programs; 256 readers with two windows each stay below.
const BACKGROUND_MAX: u16 = 1024;

/// The kernel's numbers for the two kinds of seeking a file system must help with.
const SEEK_DATA: i32 = 3;
/// See [`SEEK_DATA`].
const SEEK_HOLE: i32 = 4;

/// Needs of a call that makes others.
type Both = (Arc<Served>, Arc<Lanes>);

/// See the [module](self).
#[derive(Debug)]
struct Adapter {
    served: Arc<Served>,
    lanes: Arc<Lanes>,
}

impl Adapter {
    /// Makes a call about a node in its lane.
    fn call(&self, node: INodeNo, call: impl FnOnce(&Arc<Served>) + Send + 'static) {
        self.call_in(self.served.fs.lane(Node(node.0)), call);
    }

    /// The same for a call that opens a file: it is made again, with its reply, while the file has a lease.
    fn attempt<R: Send + 'static>(
        &self,
        node: INodeNo,
        thread: u32,
        reply: R,
        call: impl Fn(&Both, R, bool) -> Option<R> + Send + 'static,
    ) {
        let node = Node(node.0);
        let (wait, both) = (Wait::of(thread), (self.served.clone(), self.lanes.clone()));
        let attempt = move || leases::attempt(both, node, wait, reply, call);
        self.lanes.call(self.served.fs.lane(node), attempt);
    }

    fn call_in(&self, lane: LaneOf, call: impl FnOnce(&Arc<Served>) + Send + 'static) {
        let served = self.served.clone();
        self.lanes.call(lane, move || call(&served));
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = vec![
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_AUTO_INVAL_DATA,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_POSIX_ACL,
        ];
        if self.served.trust.unchanging {
            // The kernel keeps the target of a link, however its attributes change.
            wanted.push(InitFlags::FUSE_CACHE_SYMLINKS);
        }
        session::configure(config, &wanted);
        let maps_direct = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        let direct = &self.served.maps_direct;
        direct.store(maps_direct.is_ok(), Ordering::Relaxed);
        self.served.ask_for_passthrough(config);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (name, lanes, served) = (name.to_owned(), self.lanes.clone(), self.served.clone());
        self.call(parent, move |here| {
            let parent_node = Node(parent.0);
            match here.with_descriptors(|fs| fs.lookup_here(parent_node, &name)) {
                Ok(Some(found)) => here.lookup(Ok(found), reply),
                Err(error) => here.lookup(Err(error), reply),
                // The file system mounted there may not answer, and this lane is its folder's.
                Ok(None) => lanes.later(mount_point(parent, &name), move || {
                    let found = served.with_descriptors(|fs| fs.lookup(parent_node, &name));
                    served.lookup(found, reply);
                }),
            }
        });
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        caught(|| self.served.fs.forget(Node(node.0), lookups));
    }

    fn getattr(&self, request: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let thread = request.pid();
        self.call(node, move |served| {
            match served.with_descriptors(|fs| fs.attributes(Node(node.0), thread)) {
                Ok(attributes) => served.attributes(node, attributes, reply),
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

    fn open(&self, request: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if self.served.trust.unchanging {
            // The kernel opens files by itself from now on, and keeps their pages.
            return reply.error(Errno::ENOSYS);
        }
        let thread = request.pid();
        self.attempt(node, thread, reply, move |both, reply, may_last| {
            let (served, lanes) = both;
            let (again, folder) = served.open(node, thread, flags, reply, may_last);
            if let Some(folder) = folder {
                let (lane, later) = (served.fs.lane(folder), served.clone());
                lanes.later(lane, move || later.fs.list_for_walk(folder));
            }
            again
        });
    }

    fn read(
        &self,
        request: &Request,
        node: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if size > REQUEST_BYTES_MAX {
            return reply.error(Errno::EINVAL);
        }
        let reply = self.served.times.begin(reply);
        let thread = request.pid();
        if let Some(record) = &self.served.record {
            let nodes = self.served.fs.nodes();
            let file = (Node(node.0), nodes.serial(Node(node.0)));
            record.read(thread, file, || nodes.path(Node(node.0)), offset, size);
        }
        let read = move |file: Arc<OpenFile>, reply| Read {
            file,
            offset,
            bytes: size as usize,
            thread,
            // Reads for its page cache have no owner.
            direct: owner.is_some(),
            looked: false,
            reply,
        };
        let fs = &self.served.fs;
        let file = match self.served.trust.unchanging {
            false => fs.open_file(handle.0),
            true => match fs.stands(Node(node.0)) {
                Some(file) => Ok(file),
                None => {
                    let thread = request.pid();
                    return self.attempt(
                        node,
                        thread,
                        reply,
                        move |(served, _), reply, may_last| {
                            match served.standing(node, thread, may_last) {
                                Ok(Some(file)) => served.reads.begin(read(file, reply)),
                                Ok(None) => return Some(reply),
                                Err(error) => reply.error(error),
                            }
                            None
                        },
                    );
                }
            },
        };
        if let Ok(file) = &file {
            file.asked_by(thread);
        }
        match file {
            Ok(file) if file.reader().is_none() => {
                let fs = self.served.fs.clone();
                self.call_in(file.lane, move |served| match fs.begin_reader(&file) {
                    Ok(()) => served.reads.begin(read(file, reply)),
                    Err(error) => reply.error(errno(error)),
                });
            }
            Ok(file) if file.is_served() => {
                self.call_in(file.lane, move |served| {
                    served.reads.begin(read(file, reply));
                });
            }
            Ok(file) => {
                caught(|| self.served.reads.begin(read(file, reply)));
            }
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
            // Before the beginning of a file it has neither.
            (Err(_), SEEK_DATA | SEEK_HOLE) => return reply.error(Errno::ENXIO),
            // The kernel has sizes and positions itself and requests nothing else.
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
        // Closing a file of a server is a request to it.
        let Ok(lane) = self.served.fs.open_file(handle.0).map(|file| file.lane) else {
            return reply.ok();
        };
        self.call_in(lane, move |served| {
            served.fs.release(handle.0);
            reply.ok();
        });
    }

    fn opendir(&self, request: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if self.served.trust.unchanging {
            return reply.error(Errno::ENOSYS);
        }
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
        request: &Request,
        node: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        let thread = request.pid();
        self.call(node, move |served| {
            let mut take = |node: Node, name: &Name| {
                !reply.add(INodeNo(node.0), name.next, kind(name.kind), &name.name)
            };
            let read = served.listing(node, handle, thread).and_then(|folder| {
                served
                    .fs
                    .read_folder(Node(node.0), &folder, from, &mut take)
            });
            match read {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn readdirplus(
        &self,
        request: &Request,
        node: INodeNo,
        handle: FileHandle,
        from: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let thread = request.pid();
        self.call(node, move |served| {
            // Both times are one for the library; the shorter one is never too long.
            let believed = served.trust.attributes.min(served.trust.entries);
            let mut take = |found: Option<&Found>, name: &Name| {
                let (attr, generation) = match found {
                    Some(found) => (found_attr(found), generation(&found.attributes)),
                    None => (unlinked(name), Generation(0)),
                };
                // The library takes the number from the attributes.
                !reply.add(
                    attr.ino, name.next, &name.name, &believed, &attr, generation,
                )
            };
            let read = served.listing(node, handle, thread).and_then(|folder| {
                served
                    .fs
                    .read_folder_found(Node(node.0), &folder, from, &mut take)
            });
            match read {
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
            let value = served
                .with_descriptors(|fs| fs.xattr(Node(node.0), &name, served.trust.attributes));
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
