//! The file system of a mount, apart from FUSE: every operation as a function, tested without a
//! kernel.
//!
//! Called by the [FUSE adapter](super::fuse) from many threads, and by the watch, the control
//! socket and the metrics. Bytes come from forerun-io, everything else from the source by system
//! calls made at once and never cached here: the kernel caches names and attributes for us.
//!
//! ```text
//! lookup, getattr --> nodes (number <-> folder and name) --> beneath, attributes --> SOURCE
//! open            --> nodes: which file? --> engine: Driver::open --> file: Reader, one each open
//! read            --> slots --> file --> Reader
//! changed         --> open files whose source has another version by now
//! ```
//!
//! The caller's kernel checks its rights by mode, owner and access lists (`default_permissions`,
//! POSIX ACLs); the daemon's own rights never count. There is no operation that writes: the mount
//! is read-only, and the kernel answers `EROFS` first.

mod ahead;
pub mod announced;
pub mod attributes;
pub mod beneath;
pub mod covered;
pub mod ends;
mod folders;
mod gain;
pub mod io_mode;
pub mod listing;
pub mod nodes;
mod opening;
pub mod passthrough;
mod resolve;
mod retries;
mod standing;
pub mod told;
pub mod walk;
mod xattrs;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use forerun_io::Driver;
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, StatVfs};
use rustix::io::Errno;

use super::engine::EngineOfMount;
use super::open_file::OpenFile;
use super::slots::Slots;
use ahead::AheadFile;
use attributes::Key;
use attributes::{Attributes, Version};
use covered::Covered;
use ends::Zeros;
use io_mode::IoMode;
use listing::Listing;
use nodes::{FileSystem, Held, Node, Nodes};
use passthrough::{Backing, Mode as PassthroughMode, Passthrough};
use resolve::Child;
use retries::Retries;
use standing::Standing;
use walk::Walk;

use super::lanes::LaneOf;

/// No name, link target or list of attributes is longer: `XATTR_SIZE_MAX` and `XATTR_LIST_MAX`.
const XATTR_BYTES_MAX: usize = 64 * 1024;

/// Milliseconds that a notice waits for a cut, most: longer than the turns of many other threads.
const CUT_MS_MAX: u32 = 100;

/// A file sent to the kernel.
#[derive(Debug)]
pub struct Found {
    /// Its number.
    pub node: Node,
    /// Its attributes.
    pub attributes: Attributes,
}

/// A file that was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its number as an open file.
    pub handle: u64,
    /// The bytes the kernel has of it are still right.
    pub unchanged: bool,
    /// It has none, and may be given some: see [`SourceFs::open_to_give`].
    pub first: bool,
    /// The opened version.
    pub version: Version,
    /// The attributes the kernel has of it are not, and must be dropped before the open is
    /// answered.
    pub resized: bool,
    /// The folder it is in, if that is to be listed by [`SourceFs::list_for_walk`].
    pub unlisted: Option<Node>,
    /// How the kernel reads it.
    pub io: IoMode<Backing>,
    /// It changes often: read past the kernel's page cache, if that can be.
    pub direct: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct SourceFs {
    nodes: Nodes,
    own: OnceLock<(u32, u32)>,
    retries: Retries,
    walk: Walk<Key, AheadFile>,
    passthrough: Passthrough,
    standing: Standing,
    lists: xattrs::Lists,
    covered: Option<Covered>,
    files: Slots<OpenFile>,
    folders: Slots<Listing>,
    engine: EngineOfMount,
}

impl SourceFs {
    /// The file system of a folder, which keeps a given number of names of folders that are walked.
    ///
    /// # Errors
    /// It is not there, not a folder, or not accessible.
    pub fn new(
        source: &Path,
        covered: Option<Covered>,
        driver: Driver,
        names_max: usize,
    ) -> Result<Self, Errno> {
        let root = beneath::open_root(source)?;
        let attributes = Attributes::of(&root, "")?;
        let on = FileSystem {
            served: resolve::is_served(&root),
            mounted: false,
        };
        Ok(Self {
            own: OnceLock::new(),
            retries: Retries::default(),
            walk: Walk::new(names_max),
            passthrough: Passthrough::new(PassthroughMode::Never),
            standing: Standing::default(),
            lists: xattrs::Lists::default(),
            nodes: Nodes::new(Arc::new(root), &attributes, on),
            covered,
            files: Slots::default(),
            folders: Slots::default(),
            engine: EngineOfMount::new(driver),
        })
    }

    /// The same, with files opened in passthrough by this mode; none are otherwise.
    #[must_use]
    pub fn passing(self, mode: PassthroughMode) -> Self {
        let passthrough = Passthrough::new(mode);
        Self {
            passthrough,
            ..self
        }
    }

    /// Which files are opened in passthrough.
    #[must_use]
    pub fn passthrough(&self) -> &Passthrough {
        &self.passthrough
    }

    /// The mount's own device, once it is mounted: see [`SourceFs::mounted_child`].
    pub fn is_mounted_as(&self, device: (u32, u32)) {
        let _ = self.own.set(device);
    }

    /// The mount's own device.
    #[must_use]
    pub fn own_device(&self) -> Option<(u32, u32)> {
        self.own.get().copied()
    }

    /// Lane of calls about a node.
    #[must_use]
    pub fn lane(&self, node: Node) -> LaneOf {
        self.nodes.lane(node)
    }

    /// Finds a name in a folder, on the folder's own file system. The kernel is told of it, and must
    /// [`forget`](Self::forget) it. None if something is mounted there.
    ///
    /// # Errors
    /// `ENOENT`, and other errors of the source.
    pub fn lookup_here(&self, parent: Node, name: &OsStr) -> Result<Option<Found>, Errno> {
        beneath::check_name(name)?;
        let child = self.child(parent, name)?;
        child
            .map(|child| self.found(parent, name, child))
            .transpose()
    }

    /// Finds a name in a folder, and the root of a file system mounted there.
    ///
    /// # Errors
    /// `ENOENT`, `ELOOP` if it is this mount, and other errors of the source.
    pub fn lookup(&self, parent: Node, name: &OsStr) -> Result<Found, Errno> {
        if let Some(found) = self.lookup_here(parent, name)? {
            return Ok(found);
        }
        self.found(parent, name, self.mounted_child(parent, name)?)
    }

    fn found(&self, parent: Node, name: &OsStr, child: Child) -> Result<Found, Errno> {
        let attributes = child.attributes;
        let node = self.nodes.found(parent, name, &attributes, child.on);
        if let Some(covered) = self.covered_by(parent, name)? {
            self.nodes.keep_folder(node, covered);
        }
        self.retries.found(node, child.file);
        Ok(Found { node, attributes })
    }

    /// The kernel forgot a node this many times.
    pub fn forget(&self, node: Node, lookups: u64) {
        self.nodes.forget(node, lookups);
    }

    /// The attributes of a node as they are now, for a thread of some program.
    ///
    /// # Errors
    /// `ESTALE` if it is not where it was found any more.
    pub fn attributes(&self, node: Node, thread: u32) -> Result<Attributes, Errno> {
        let asked = Instant::now();
        let attributes = self.look_up_attributes(node, thread)?;
        self.nodes.told(node, &attributes, thread, asked);
        Ok(attributes)
    }

    /// Zeros in the kernel's pages of a file, which it must drop before it has this size: see
    /// [`ends`]. Without the notice that follows its attributes will not count.
    #[must_use]
    pub fn zeros_below(&self, node: Node, size: u64) -> Option<Zeros> {
        self.nodes.ends(node)?.zeros_below(size)
    }

    /// The kernel dropped these pages.
    pub fn zeros_dropped(&self, node: Node, zeros: Zeros) {
        if let Some(ends) = self.nodes.ends(node) {
            ends.dropped(zeros);
        }
    }

    /// Notifies the kernel that its attributes of a file do not hold, before an answer to this thread.
    /// Waits for a moment if the file was cut just now.
    pub fn notify<T>(&self, node: Node, thread: u32, notice: impl FnOnce() -> T) -> T {
        let ends = self.nodes.ends(node);
        if let Some(ends) = &ends {
            ends.will_notify();
            // A cut that is being given is written by another thread, which waits for nothing.
            for _ in 0..CUT_MS_MAX {
                if !ends.is_cutting() {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            ends.notifies(thread, Instant::now());
        }
        let told = notice();
        if let Some(ends) = &ends {
            ends.notified(thread, Instant::now());
        }
        told
    }

    /// The kernel may not take in the attributes of a file that are sent now.
    pub fn doubt(&self, node: Node) {
        self.nodes.doubt(node);
    }

    fn look_up_attributes(&self, node: Node, thread: u32) -> Result<Attributes, Errno> {
        let place = self.nodes.place(node)?;
        if let Some(descriptor) = &place.descriptor {
            return Attributes::of(descriptor, "");
        }
        if self.covered_by(place.parent, &place.name)?.is_some() {
            return Attributes::of(self.descriptor(node)?, "");
        }
        let found = match place.kind {
            // Its descriptor is kept from now on, because everything in it goes through that.
            FileType::Directory => self.present(node).map(|(_, attributes)| attributes),
            _ => self.attributes_of_file(&place),
        };
        match found {
            Err(Errno::STALE) => {
                let file = self.retries.at_hand(thread, node).ok_or(Errno::STALE)?;
                resolve::same(&place, Attributes::of(file, ""))
            }
            found => found,
        }
    }

    /// Target of a symbolic link, as it is written there.
    ///
    /// # Errors
    /// `EINVAL` if it is no link.
    pub fn read_link(&self, node: Node) -> Result<Vec<u8>, Errno> {
        let link = self.descriptor(node)?;
        rustix::fs::readlinkat(&link, "", Vec::new()).map(|target| target.into_bytes())
    }

    /// An open file.
    ///
    /// # Errors
    /// `EBADF` if there is none of this number.
    pub fn open_file(&self, handle: u64) -> Result<Arc<OpenFile>, Errno> {
        self.files.get(handle)
    }

    /// Closes an open file.
    pub fn release(&self, handle: u64) {
        if let Some(file) = self.files.remove(handle) {
            let node = file.node;
            drop(file);
            self.nodes.closed(node);
        }
    }

    /// Start of the next bytes or the next hole of a file, from `at` on.
    ///
    /// # Errors
    /// `ENXIO` past the last, and those of the source.
    pub fn seek(&self, node: Node, at: SeekFrom) -> Result<u64, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let descriptor = self.descriptor(node)?;
        let path = beneath::path_of(&descriptor);
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        rustix::fs::seek(file, at)
    }

    /// The file system a node is on.
    ///
    /// # Errors
    /// Errors of the source.
    pub fn space(&self, node: Node) -> Result<StatVfs, Errno> {
        rustix::fs::fstatvfs(self.descriptor(node)?)
    }

    /// Open files, by device.
    #[must_use]
    pub fn held(&self) -> HashMap<(u32, u32), Vec<Held>> {
        self.retries.prune();
        self.nodes.tidy();
        let mut devices = HashMap::<_, Vec<_>>::new();
        for held in self.nodes.held() {
            devices.entry(held.device).or_default().push(held);
        }
        devices
    }

    /// Those of these files whose source has changed since the kernel read of them. From now on no
    /// old byte of them is given out, so the caller can have the kernel drop those it has.
    #[must_use]
    pub fn changed(&self, held: &[Held]) -> Vec<Node> {
        let mut changed = Vec::new();
        for held in held {
            let Ok(now) = Attributes::of(&held.descriptor, "") else {
                continue;
            };
            if !now.version.is_same_as(&held.seen) {
                let files = self.files.all();
                let mut readers = files
                    .iter()
                    .filter(|file| file.node == held.node)
                    .filter_map(|file| file.reader());
                if let Some(reader) = readers.next() {
                    let _ = reader.look();
                }
                self.nodes.saw(held.node, now.version);
                changed.push(held.node);
            }
        }
        changed
    }

    /// The open files.
    #[must_use]
    pub fn open_files(&self) -> Vec<Arc<OpenFile>> {
        self.files.all()
    }

    /// The table of nodes, for reports.
    #[must_use]
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Lets go of descriptors that are kept to save work. False if there are none.
    pub fn free_descriptors(&self) -> bool {
        self.retries.clear();
        let ahead = !self.walk.take_all().is_empty();
        let standing = self.close_standing();
        self.nodes.let_folders_go() || ahead || standing
    }

    /// The engine behind the file system.
    #[must_use]
    pub fn engine(&self) -> &EngineOfMount {
        &self.engine
    }
}
