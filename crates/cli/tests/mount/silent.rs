//! A file system whose server stops answering: some requests, or all of them, for as long as a test
//! wants. It is FUSE itself, mounted on the folder `slow` of a source.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{Errno, FileAttr, FileHandle, FileType, Generation, INodeNo, LockOwner, OpenFlags};
use fuser::{ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, Request};
use tempfile::TempDir;

use super::wait::PATIENCE;
use super::{Mounted, bytes, can_mount, folder, run};

/// The file `N` has the number `N + FIRST`.
const FIRST: u64 = 2;
/// Enough for a reader to be in the middle of one.
pub(crate) const FILE_BYTES: u64 = 8 << 20;

/// The server's behaviour from now on.
#[derive(Default)]
pub(crate) struct Orders {
    /// Nothing is answered.
    pub(crate) silent: bool,
    /// Reads from this offset on are not answered.
    pub(crate) no_reads_from: Option<u64>,
    /// This file has a new time whenever it is asked for; so many answers are given.
    pub(crate) flips: HashMap<u64, u32>,
    held: Vec<Box<dyn FnOnce() + Send>>,
    flipped: u64,
}

impl Orders {
    /// Waiting requests are answered after all.
    pub(crate) fn held_go(&mut self) {
        self.silent = false;
        self.no_reads_from = None;
        for answer in self.held.drain(..) {
            answer();
        }
    }
}

struct Server(Arc<Mutex<Orders>>);

impl Server {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().unwrap()
    }

    /// Answers, unless nothing is to be answered; then a request waits until it is cut off.
    fn answer(&self, held: bool, answer: impl FnOnce() + Send + 'static) {
        let mut orders = self.orders();
        if held || orders.silent {
            orders.held.push(Box::new(answer));
        } else {
            drop(orders);
            answer();
        }
    }

    fn attributes(&self, node: u64) -> FileAttr {
        let (kind, perm, size) = match node {
            1 => (FileType::Directory, 0o755, 0),
            _ => (FileType::RegularFile, 0o644, FILE_BYTES),
        };
        let mut orders = self.orders();
        let flips = orders.flips.contains_key(&(node - FIRST.min(node)));
        orders.flipped += u64::from(flips);
        let flipped = if flips { orders.flipped } else { 0 };
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(flipped);
        file_attributes(node, kind, perm, size, time)
    }
}

/// A byte of a file: it tells which, and where.
pub(crate) fn content(file: u64, offset: u64, count: usize) -> Vec<u8> {
    let at = |index: u64| (file as u8) ^ ((offset + index) >> 12) as u8;
    (0..count as u64).map(at).collect()
}

const ZERO: Duration = Duration::ZERO;

impl fuser::Filesystem for Server {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let number = name.to_str().and_then(|name| name.parse::<u64>().ok());
        match number {
            Some(number) => {
                let attributes = self.attributes(number + FIRST);
                self.answer(false, move || {
                    reply.entry(&ZERO, &attributes, Generation(0))
                });
            }
            None => self.answer(false, || reply.error(Errno::ENOENT)),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let file = node.0 - FIRST.min(node.0);
        let held = match self.orders().flips.get_mut(&file) {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
        };
        let attributes = self.attributes(node.0);
        self.answer(held, move || reply.attr(&ZERO, &attributes));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.answer(false, || {
            reply.opened(FileHandle(0), fuser::FopenFlags::empty())
        });
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let end = (offset + u64::from(size)).min(FILE_BYTES);
        let data = content(node.0 - FIRST, offset, end.saturating_sub(offset) as usize);
        let held = self.orders().no_reads_from.is_some_and(|from| end > from);
        self.answer(held, move || reply.data(&data));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.answer(false, || reply.ok());
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.answer(false, || reply.statfs(1, 1, 1, 1, 1, 4096, 255, 4096));
    }
}

/// A mount of a source with a file of its own, `good`, and a silent server below. Cut off at the
/// end.
pub(crate) struct Silent {
    pub(crate) mounted: Mounted,
    pub(crate) orders: Arc<Mutex<Orders>>,
    served: Option<fuser::BackgroundSession>,
    slow: PathBuf,
    _place: TempDir,
}

const GOOD_BYTES: usize = 3 << 20;

impl Silent {
    /// With these flags of the mount; none if this machine cannot.
    pub(crate) fn new(flags: &[&str]) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let slow = place.path().join("source/slow");
        fs::create_dir_all(&slow).unwrap();
        fs::write(place.path().join("source/good"), bytes(GOOD_BYTES, 7)).unwrap();
        let orders = Arc::<Mutex<Orders>>::default();
        let server = Server(orders.clone());
        let served = fuser::spawn_mount(server, &slow, &fuser::Config::default()).unwrap();
        let above = folder();
        fs::remove_dir(above.path().join("source")).unwrap();
        symlink(place.path().join("source"), above.path().join("source")).unwrap();
        let mounted = Mounted::of(above, flags)?;
        Some(Self {
            mounted,
            orders,
            served: Some(served),
            slow,
            _place: place,
        })
    }

    /// The orders of the server, to be changed.
    pub(crate) fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap()
    }

    /// How many requests wait for an answer.
    pub(crate) fn held(&self) -> usize {
        self.orders().held.len()
    }

    /// The other file is read whole, from the source, not from the kernel's cache.
    pub(crate) fn good_is_read(&self) {
        // A new time: the kernel drops its cache.
        let file = fs::File::options()
            .write(true)
            .open(self.mounted.source("good"));
        file.unwrap().set_modified(SystemTime::now()).unwrap();
        let good = self.mounted.point("good");
        let read = apart(move || fs::read(good).unwrap() == bytes(GOOD_BYTES, 7));
        let whole = read.recv_timeout(PATIENCE);
        assert!(whole.expect("another file is read to its end"));
        let point = self.mounted.point("");
        let listed = apart(move || fs::read_dir(point).unwrap().count());
        assert_eq!(listed.recv_timeout(PATIENCE), Ok(2), "the root is listed");
    }

    /// Ends the server's mount: requests that wait for it fail.
    pub(crate) fn cut_off(&self) {
        run("umount", &["-f".as_ref(), self.slow.as_ref()]);
        self.orders().silent = false;
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.cut_off();
        run("umount", &["-l".as_ref(), self.slow.as_ref()]);
        drop(self.served.take());
    }
}

/// Attributes of a file that a test serves.
pub(crate) fn file_attributes(
    node: u64,
    kind: FileType,
    perm: u16,
    size: u64,
    time: SystemTime,
) -> FileAttr {
    FileAttr {
        ino: INodeNo(node),
        size,
        blocks: size / 512,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Does something on a thread of its own, which is left behind if it hangs.
pub(crate) fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = channel();
    thread::spawn(move || tell.send(work()));
    told
}
