//! The files the kernel knows of: their numbers, where they were found, how often they were named.
//!
//! Used by the [file system](super), which makes all system calls; this is a table behind a lock.
//! A *node* is what the kernel calls an inode of ours. On SOURCE's own device its number is the
//! source's inode number, so that `stat` shows the same as in the source; the root is 1, as FUSE
//! wants, and a file of another device mounted below SOURCE is numbered from [`FOREIGN`] up. So is one
//! that was made with the inode number of a deleted file which the kernel still remembers: of two
//! files with one number it would take the one for the other, rights and bytes included.
//!
//! No descriptor is kept for a file that is not open: it would keep the space of a deleted file.
//! A file is found again by its folder and name and must still have its key, else the answer is
//! `ESTALE` and the kernel looks its name up again. Descriptors of the last [`FOLDERS_MAX`]
//! folders used are kept, because everything goes through them; they are let go of first where
//! descriptors are short.
//!
//! A node ends when the kernel has forgotten it as often as it was told of it, and nothing has it
//! open.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::attributes::{Attributes, Key, Time, Version};
use super::io_mode::IoMode;
use super::passthrough::Backing;
use super::told::{Told, Verdict};
use crate::mount::lanes::LaneOf;
use crate::mount::lock;

/// The number of a file as the kernel knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Node(pub u64);

/// SOURCE itself. FUSE fixes the number.
pub const ROOT: Node = Node(1);

/// Where numbers begin that are not the source's: above any inode number a disk file system uses.
const FOREIGN: u64 = 1 << 63;

/// Folders whose descriptor is kept. A thousand cover the paths in use at any time.
const FOLDERS_MAX: usize = 1024;

/// Of the descriptors the process may have, the part that folders take at most: an eighth, because
/// the rest is for open files.
const FOLDERS_PART: u64 = 8;

/// Folders between a node and SOURCE: a path has at most 4096 bytes, so 2048 names.
pub const DEPTH_MAX: usize = 2048;

/// Where a node was found, and what stands for it.
#[derive(Clone, Debug)]
pub struct Place {
    /// Which file it must be.
    pub key: Key,
    /// When that was made, and what it is: a later file may have the same key.
    pub born: Time,
    /// See `born`.
    pub kind: FileType,
    /// Whether its file system is [served](forerun_io::served).
    pub served: bool,
    /// Whether it is mounted on its name.
    pub mounted: bool,
    /// Its folder, and its name there.
    pub parent: Node,
    /// See `parent`.
    pub name: OsString,
    /// Its descriptor, while it is open or as a folder in use.
    pub descriptor: Option<Arc<File>>,
}

/// The file system something was found on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSystem {
    /// Whether it is [served](forerun_io::served).
    pub served: bool,
    /// Whether what was found is what is mounted on the name.
    pub mounted: bool,
}

/// A file that is open, for whoever looks whether it changed.
#[derive(Clone, Debug)]
pub struct Held {
    /// Which file.
    pub node: Node,
    /// The device it is on.
    pub device: (u32, u32),
    /// Its descriptor.
    pub descriptor: Arc<File>,
    /// The version whose bytes the kernel has.
    pub seen: Version,
}

impl Place {
    fn new(attributes: &Attributes, parent: Node, name: &OsStr, on: FileSystem) -> Self {
        Self {
            key: attributes.key,
            born: attributes.born,
            kind: attributes.kind,
            served: on.served,
            mounted: on.mounted,
            parent,
            name: name.to_owned(),
            descriptor: None,
        }
    }

    /// Whether these are the attributes of the file that was found there.
    #[must_use]
    pub fn is(&self, now: &Attributes) -> bool {
        self.key == now.key && self.born == now.born && self.kind == now.kind
    }
}

/// What an open that entered the mode of its file found.
#[derive(Clone, Debug)]
pub struct Entered {
    /// The version before, whose bytes the kernel may have.
    pub before: Option<Version>,
    /// Its opener may give the kernel the bytes now.
    pub first: bool,
    /// How the kernel reads the file.
    pub io: IoMode<Backing>,
}

/// Why an open was not entered.
#[derive(Clone, Debug)]
pub enum NotEntered {
    /// The node is none of ours.
    Stale,
    /// The file is open in this other mode.
    Other(IoMode<Backing>),
}

impl From<NotEntered> for Errno {
    fn from(_: NotEntered) -> Self {
        Self::STALE
    }
}

#[derive(Debug)]
struct Known {
    place: Place,
    told: Told,
    lookups: u64,
    opens: u32,
    io: IoMode<Backing>,
    seen: Option<Version>,
    /// The kernel is being given its bytes.
    giving: bool,
}

#[derive(Debug)]
struct Table {
    nodes: HashMap<u64, Known>,
    foreign: HashMap<(Key, Time), u64>,
    next_foreign: u64,
    folders: VecDeque<Node>,
    device: (u32, u32),
}

/// See the [module](self).
#[derive(Debug)]
pub struct Nodes {
    table: Mutex<Table>,
    /// Somebody has given the kernel the bytes of a file.
    given: Condvar,
    folders_max: usize,
}

impl Nodes {
    /// A table that knows the root only.
    #[must_use]
    pub fn new(root: Arc<File>, attributes: &Attributes, on: FileSystem) -> Self {
        let place = Place {
            descriptor: Some(root),
            ..Place::new(attributes, ROOT, OsStr::new(""), on)
        };
        let known = Known {
            place,
            told: Told::default(),
            lookups: 1,
            opens: 0,
            io: IoMode::Cached,
            seen: None,
            giving: false,
        };
        let table = Table {
            nodes: HashMap::from([(ROOT.0, known)]),
            foreign: HashMap::new(),
            next_foreign: FOREIGN,
            folders: VecDeque::new(),
            device: attributes.key.device,
        };
        let part = getrlimit(Resource::Nofile)
            .current
            .map(|limit| limit / FOLDERS_PART);
        let part = part.and_then(|part| usize::try_from(part).ok());
        Self {
            table: table.into(),
            given: Condvar::new(),
            folders_max: part.map_or(FOLDERS_MAX, |part| part.min(FOLDERS_MAX)),
        }
    }

    /// The kernel is told of a file found here; its number.
    pub fn found(
        &self,
        parent: Node,
        name: &OsStr,
        attributes: &Attributes,
        on: FileSystem,
    ) -> Node {
        let mut table = lock(&self.table);
        let node = table.number_of(attributes);
        let known = table.nodes.entry(node.0).or_insert_with(|| Known {
            place: Place::new(attributes, parent, name, on),
            told: Told::default(),
            lookups: 0,
            opens: 0,
            io: IoMode::Cached,
            seen: None,
            giving: false,
        });
        if !known.place.is(attributes) {
            // Another file got the number of one that is gone.
            known.place = Place::new(attributes, parent, name, on);
            known.told = Told::default();
            known.seen = None;
        }
        known.told.add(attributes);
        known.place.mounted = on.mounted;
        known.place.parent = parent;
        if known.place.name != name {
            known.place.name = name.to_owned();
        }
        known.lookups += 1;
        node
    }

    /// The kernel forgot this many lookups.
    pub fn forget(&self, node: Node, lookups: u64) {
        let mut table = lock(&self.table);
        if let Some(known) = table.nodes.get_mut(&node.0) {
            known.lookups = known.lookups.saturating_sub(lookups);
        }
        table.end_if_unused(node);
    }

    /// Where a node is.
    ///
    /// # Errors
    /// `ESTALE` if it is none of ours.
    pub fn place(&self, node: Node) -> Result<Place, Errno> {
        let table = lock(&self.table);
        let known = table.nodes.get(&node.0).ok_or(Errno::STALE)?;
        Ok(known.place.clone())
    }

    /// The kernel is told of a node's attributes.
    pub fn told(&self, node: Node, attributes: &Attributes) {
        if let Some(known) = lock(&self.table).nodes.get_mut(&node.0) {
            known.told.add(attributes);
        }
    }

    /// The kernel is told of a node's access list.
    pub fn told_access_list(&self, node: Node, digest: u64) {
        if let Some(known) = lock(&self.table).nodes.get_mut(&node.0) {
            known.told.add_access_list(digest);
        }
    }

    /// Compares the attributes of a node with those the kernel was told: see [`Told::compare`]. The
    /// access list is asked for without the lock.
    ///
    /// # Errors
    /// `ESTALE` if it is none of ours.
    pub fn compare(
        &self,
        node: Node,
        now: &Attributes,
        access_list: impl FnOnce() -> u64,
    ) -> Result<Verdict, Errno> {
        let known = |table: &Table| table.nodes.get(&node.0).map(|known| known.told);
        let told = known(&lock(&self.table)).ok_or(Errno::STALE)?;
        let digest = told.needs_access_list(now).then(access_list);
        let mut table = lock(&self.table);
        let known = table.nodes.get_mut(&node.0).ok_or(Errno::STALE)?;
        Ok(known.told.compare(now, digest))
    }

    /// Keeps the descriptor of a folder, and lets go of the one kept longest if there are many.
    pub fn keep_folder(&self, node: Node, descriptor: &Arc<File>) {
        let mut table = lock(&self.table);
        let Some(known) = table.nodes.get_mut(&node.0) else {
            return;
        };
        if known.place.descriptor.is_some() {
            return;
        }
        known.place.descriptor = Some(descriptor.clone());
        table.folders.push_back(node);
        if table.folders.len() > self.folders_max {
            table.let_a_folder_go();
        }
    }

    /// A file is open, and how the kernel reads it.
    #[must_use]
    pub fn io_mode(&self, node: Node) -> Option<IoMode<Backing>> {
        let table = lock(&self.table);
        let known = table.nodes.get(&node.0).filter(|known| known.opens > 0)?;
        Some(known.io.clone())
    }

    /// Whether this file is open in passthrough.
    #[must_use]
    pub fn is_passed_through(&self, found: &Attributes) -> bool {
        let table = lock(&self.table);
        let identity = (found.key, found.born);
        let foreign = table.foreign.get(&identity).map(|number| Node(*number));
        let node = foreign.or_else(|| table.native(&found.key));
        let known = node.and_then(|node| table.nodes.get(&node.0));
        known.is_some_and(|known| {
            known.opens > 0 && known.place.is(found) && known.io.backing().is_some()
        })
    }

    /// A file was opened, by this descriptor and in this version, to be read in this mode. Its opener,
    /// if that wants to, may give the kernel the bytes now: it has none, and nobody else has the file
    /// open. Others wait until that was [done](Nodes::given), or bytes given late would come after those
    /// of a later version.
    ///
    /// # Errors
    /// It is open in the other mode, and this open was not counted; it is none of ours.
    pub fn opened(
        &self,
        node: Node,
        descriptor: &Arc<File>,
        version: Version,
        wants_to_give: bool,
        wanted: &IoMode<Backing>,
    ) -> Result<Entered, NotEntered> {
        let mut table = lock(&self.table);
        while table.nodes.get(&node.0).is_some_and(|known| known.giving) {
            table = self
                .given
                .wait(table)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let known = table.nodes.get_mut(&node.0).ok_or(NotEntered::Stale)?;
        let io = known.io.enter(known.opens, wanted);
        let io = io.map_err(NotEntered::Other)?;
        known.opens += 1;
        known.giving =
            wants_to_give && known.seen.is_none() && known.opens == 1 && io.backing().is_none();
        known
            .place
            .descriptor
            .get_or_insert_with(|| descriptor.clone());
        Ok(Entered {
            before: known.seen.replace(version),
            first: known.giving,
            io,
        })
    }

    /// The kernel was given the bytes of this version of a file, or will not be: whether it should have
    /// no other.
    pub fn given(&self, node: Node, version: Version) -> bool {
        let mut table = lock(&self.table);
        self.given.notify_all();
        let Some(known) = table.nodes.get_mut(&node.0) else {
            return false;
        };
        known.giving = false;
        known.seen == Some(version)
    }

    /// An open file was closed.
    pub fn closed(&self, node: Node) {
        let mut table = lock(&self.table);
        let mut last = None;
        if let Some(known) = table.nodes.get_mut(&node.0) {
            known.opens = known.opens.saturating_sub(1);
            if known.opens == 0 {
                last = Some((known.place.descriptor.take(), mem::take(&mut known.io)));
            }
        }
        table.end_if_unused(node);
        drop(table);
        // The kernel is told that the backing id ends, and a server that the file is closed.
        drop(last);
    }

    /// The open files.
    #[must_use]
    pub fn held(&self) -> Vec<Held> {
        let table = lock(&self.table);
        let open = table.nodes.iter().filter(|(_, known)| known.opens > 0);
        open.filter_map(|(&number, known)| {
            Some(Held {
                node: Node(number),
                device: known.place.key.device,
                descriptor: known.place.descriptor.clone()?,
                seen: known.seen?,
            })
        })
        .collect()
    }

    /// The kernel has nothing older than this version any more.
    pub fn saw(&self, node: Node, version: Version) {
        if let Some(known) = lock(&self.table).nodes.get_mut(&node.0) {
            known.seen = Some(version);
        }
    }

    /// Where calls about a node are made: in the lane of its file system; of one that is served and
    /// on the way to it, if it is reached through one.
    #[must_use]
    pub fn lane(&self, node: Node) -> LaneOf {
        let table = lock(&self.table);
        let mut at = node;
        let mut lane = None;
        for _ in 0..DEPTH_MAX {
            let Some(known) = table.nodes.get(&at.0) else {
                break;
            };
            let (major, minor) = known.place.key.device;
            if lane.is_none() || known.place.served {
                lane = Some(LaneOf::Device(major, minor));
            }
            if known.place.served || known.place.descriptor.is_some() {
                break;
            }
            at = known.place.parent;
        }
        lane.unwrap_or(LaneOf::Device(table.device.0, table.device.1))
    }

    /// Lets go of the descriptors of all folders but the root. False if there were none.
    pub fn let_folders_go(&self) -> bool {
        let mut table = lock(&self.table);
        let any = !table.folders.is_empty();
        while !table.folders.is_empty() {
            table.let_a_folder_go();
        }
        any
    }

    /// The number a file would have, without telling the kernel of it.
    #[must_use]
    pub fn number_on_device(&self, inode: u64) -> Node {
        let table = lock(&self.table);
        let device = table.device;
        let key = Key { device, inode };
        table.native(&key).unwrap_or(Node(FOREIGN))
    }

    /// The path of a node below SOURCE, as it was when it was last looked up.
    #[must_use]
    pub fn path(&self, node: Node) -> PathBuf {
        let table = lock(&self.table);
        let mut names = Vec::new();
        let mut at = node;
        // A folder moved below its own former child would make a circle; no path is that deep.
        while let Some(known) = table
            .nodes
            .get(&at.0)
            .filter(|_| at != ROOT && names.len() < 4096)
        {
            names.push(known.place.name.clone());
            at = known.place.parent;
        }
        names.iter().rev().collect()
    }

    /// How many files the kernel knows of.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.table).nodes.len()
    }
}

impl Table {
    /// The number of a file that was found: that of the source, unless another file has it.
    fn number_of(&mut self, found: &Attributes) -> Node {
        let identity = (found.key, found.born);
        if let Some(number) = self.foreign.get(&identity) {
            return Node(*number);
        }
        if let Some(node) = self.native(&found.key) {
            let known = self.nodes.get(&node.0);
            if node == ROOT || known.is_none_or(|known| known.place.is(found)) {
                return node;
            }
        }
        let number = self.next_foreign;
        self.next_foreign += 1;
        self.foreign.insert(identity, number);
        Node(number)
    }

    /// The number of a file on SOURCE's own device.
    fn native(&self, key: &Key) -> Option<Node> {
        let is_root = self
            .nodes
            .get(&ROOT.0)
            .is_some_and(|root| root.place.key == *key);
        if is_root {
            return Some(ROOT);
        }
        let is_native = key.device == self.device && (ROOT.0 + 1..FOREIGN).contains(&key.inode);
        is_native.then_some(Node(key.inode))
    }

    fn end_if_unused(&mut self, node: Node) {
        let unused = |known: &Known| known.lookups == 0 && known.opens == 0;
        if node != ROOT && self.nodes.get(&node.0).is_some_and(unused) {
            let ended = self.nodes.remove(&node.0);
            if node.0 >= FOREIGN
                && let Some(known) = ended
            {
                self.foreign.remove(&(known.place.key, known.place.born));
            }
        }
    }

    fn let_a_folder_go(&mut self) {
        if let Some(node) = self.folders.pop_front()
            && let Some(known) = self.nodes.get_mut(&node.0)
            && known.opens == 0
        {
            known.place.descriptor = None;
        }
    }
}
