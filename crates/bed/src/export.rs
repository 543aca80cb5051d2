//! The export: a FUSE file system whose files are the images of the emulated disks.
//!
//! Mounted by [`serve`](crate::serve); the kernel's loop driver reads and writes it with direct
//! I/O. Its root holds `disk0`, `disk1`, .. and two files to steer by:
//!
//! ```text
//! delay   "off" while file systems are made and filled, "on" to measure; written and read
//! usage   counters of each disk, as JSON
//! ```
//!
//! A read copies its bytes when it is asked and answers when the [`Disk`] says that they
//! would have arrived. Writes are never delayed: beds are measured read-only.
//!
//! One thread receives all requests; it becomes punctual when the delay is turned on, and stays
//! out of the way of others while the bed is filled.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use forerun_emulated::Disk;
use forerun_sim::device::{self, Outcome};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::bed::Disks;
use crate::clock::{self, Priority};
use crate::status::DiskUsage;
use crate::store::Store;

/// Sizes and names never change, so the kernel may keep them for ever.
const KEEP: Duration = Duration::from_secs(1 << 30);

/// Requests the kernel may have under way here: more than the 128 of a loop device, so that the
/// emulated disk's queue is the only one. The kernel's own default is 12.
const REQUESTS_MAX: u16 = 1024;

/// The two control files come before the images.
const DELAY: u64 = 2;
const USAGE: u64 = 3;
const FIRST_DISK: u64 = 4;

/// A read on its way: the reply, and the bytes or the error.
struct Pending(ReplyData, io::Result<Vec<u8>>);

struct Image {
    store: Store,
    disk: Disk<Pending>,
}

/// See the [module](self).
pub struct Export {
    images: Vec<Image>,
    is_delayed: AtomicBool,
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Export of {} images", self.images.len())
    }
}

/// The name of an image in the export, and of its files.
#[must_use]
pub fn image_name(index: usize) -> String {
    format!("disk{index}")
}

impl Export {
    /// Opens the images in `folder` and starts their disks, without delay.
    ///
    /// # Errors
    /// An image cannot be opened; no more threads.
    pub fn open(folder: &Path, disks: &Disks) -> io::Result<Self> {
        let image = |index| {
            let name = image_name(index);
            let store = Store::open(folder, &name, disks.image_bytes)?;
            let device = disks.device.clone();
            let disk = Disk::start(&name, move || device::parse(&device), finish)?;
            Ok(Image { store, disk })
        };
        Ok(Self {
            images: (0..disks.count).map(image).collect::<io::Result<_>>()?,
            is_delayed: AtomicBool::new(false),
        })
    }

    fn image(&self, inode: INodeNo) -> Option<&Image> {
        let index = inode.0.checked_sub(FIRST_DISK)?;
        self.images.get(usize::try_from(index).ok()?)
    }

    /// The text of a control file at the moment.
    fn control(&self, inode: INodeNo) -> Option<String> {
        match inode.0 {
            DELAY if self.is_delayed.load(Ordering::Relaxed) => Some("on\n".into()),
            DELAY => Some("off\n".into()),
            USAGE => {
                let meters = self.images.iter().map(|image| image.disk.meter());
                let usage: Vec<DiskUsage> = meters.map(|meter| DiskUsage::of(meter)).collect();
                serde_json::to_string(&usage).ok()
            }
            _ => None,
        }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, size) = match (inode, self.image(inode)) {
            (INodeNo::ROOT, _) => (FileType::Directory, 0),
            (_, Some(image)) => (FileType::RegularFile, image.store.bytes()),
            _ => (FileType::RegularFile, self.control(inode)?.len() as u64),
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: if kind == FileType::Directory {
                0o700
            } else {
                0o600
            },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn names(&self) -> Vec<(u64, String)> {
        let control = [(DELAY, "delay".to_owned()), (USAGE, "usage".to_owned())];
        let images = (0..self.images.len()).map(image_name);
        control
            .into_iter()
            .chain((FIRST_DISK..).zip(images))
            .collect()
    }

    fn steer(&self, inode: INodeNo, text: &[u8]) -> Result<(), Errno> {
        let on = match (inode.0, text.trim_ascii()) {
            (DELAY, b"on") => true,
            (DELAY, b"off") => false,
            (DELAY, _) => return Err(Errno::EINVAL),
            _ => return Err(Errno::EPERM),
        };
        if on {
            clock::be_punctual(Priority::Export);
        }
        self.is_delayed.store(on, Ordering::Relaxed);
        Ok(())
    }
}

/// Answers a read; an outcome other than done is the device's to decide.
fn finish(Pending(reply, bytes): Pending, outcome: Outcome) {
    match (outcome, bytes) {
        (Outcome::Done, Ok(bytes)) => reply.data(&bytes),
        (Outcome::Short { bytes: count }, Ok(bytes)) => {
            let count = usize::try_from(count.0).unwrap_or(usize::MAX);
            reply.data(&bytes[..count.min(bytes.len())]);
        }
        _ => reply.error(Errno::EIO),
    }
}

impl Filesystem for Export {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Old kernels lack the one and limit the other; the bed works without either.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(REQUESTS_MAX);
        let _ = config.set_congestion_threshold(REQUESTS_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let names = self.names();
        let mut named = names.iter().filter(|(_, own)| name == own.as_str());
        match named.next().filter(|_| parent == INodeNo::ROOT) {
            Some(&(inode, _)) => match self.attributes(INodeNo(inode)) {
                Some(attributes) => reply.entry(&KEEP, &attributes, Generation(0)),
                None => reply.error(Errno::ENOENT),
            },
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&KEEP, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // A control file's size changes after a look at it.
        let flags = if self.image(inode).is_some() {
            FopenFlags::empty()
        } else {
            FopenFlags::FOPEN_DIRECT_IO
        };
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(image) = self.image(inode) else {
            let text = self.control(inode).unwrap_or_default();
            let from = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(text.len());
            let end = text.len().min(from.saturating_add(size as usize));
            return reply.data(&text.as_bytes()[from..end]);
        };
        let pending = Pending(reply, image.store.read(offset, size as usize));
        if self.is_delayed.load(Ordering::Relaxed) {
            image.disk.submit(offset, u64::from(size), pending);
        } else {
            finish(pending, Outcome::Done);
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = match self.image(inode) {
            Some(image) => image.store.write(offset, bytes).map_err(Errno::from),
            None => self.steer(inode, bytes),
        };
        match written {
            Ok(()) => reply.written(u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (next, (inode, name)) in (1..).zip(self.names()).skip(from) {
            if reply.add(INodeNo(inode), next, FileType::RegularFile, name) {
                break;
            }
        }
        reply.ok();
    }
}
