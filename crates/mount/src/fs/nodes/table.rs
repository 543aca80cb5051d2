//! The numbers of files, where each was found, and the descriptors of folders in use.
//!
//! Kept by [`Nodes`](super::Nodes) behind its lock; nothing here waits or makes a system call, but
//! for descriptors that are closed. On SOURCE's own device the number of a node is the source's
//! inode number, so that `stat` shows the same as in the source; the root is 1, as FUSE requires.
//! Two kinds of files are numbered from [`FOREIGN`] up: those of another device mounted below
//! SOURCE, and one with the inode number of another file which the kernel still remembers: a deleted
//! one, or one that a server gave the same number. With
//! one number the kernel would take one for the other, rights and bytes included.
//!
//! ```text
//! 1 (SOURCE)   2 .. FOREIGN: inode numbers of its device        FOREIGN ..: other devices, reused numbers
//! ```

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::FileType;

use crate::fs::attributes::{Attributes, Key, Time, Version};
use crate::fs::ends::Ends;
use crate::fs::io_mode::IoMode;
use crate::fs::passthrough::Backing;
use crate::fs::told::Told;
use crate::lanes::LaneOf;

/// The kernel's number of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Node(pub u64);

/// SOURCE itself. FUSE fixes the number.
pub const ROOT: Node = Node(1);

/// The first number that is not the source's: above any inode number a disk file system uses.
const FOREIGN: u64 = 1 << 63;

/// Folders between a node and SOURCE: a path has at most 4096 bytes, so 2048 names.
pub const DEPTH_MAX: usize = 2048;

/// Place of a node when it was found, and its descriptor.
#[derive(Clone, Debug)]
pub struct Place {
    /// Which file it must be.
    pub key: Key,
    /// Time of birth of that, and its kind: a later file may have the same key.
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
    /// Whether the node is the root of a file system mounted on the name.
    pub mounted: bool,
}

/// A node.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) place: Place,
    pub(super) told: Told,
    pub(super) lookups: u64,
    pub(super) opens: u32,
    pub(super) io: IoMode<Backing>,
    pub(super) seen: Option<Version>,
    /// Where the kernel takes it to end, once it was opened.
    pub(super) ends: Option<Arc<Ends>>,
    /// The kernel is being given its bytes.
    pub(super) giving: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Table {
    pub(super) nodes: HashMap<u64, Known>,
    foreign: HashMap<(Key, Time), u64>,
    next_foreign: u64,
    folders: VecDeque<Node>,
    device: (u32, u32),
}

impl Place {
    pub(super) fn new(attributes: &Attributes, parent: Node, name: &OsStr, on: FileSystem) -> Self {
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

    /// Whether it may be the same file under another handle: it stands where the former one stood, and
    /// nothing has that open, which would keep its handle.
    fn may_be(&self, now: &Attributes, parent: Node, name: &OsStr) -> bool {
        let is_alike = self.key.is_inode_of(&now.key) && self.kind == now.kind;
        let is_there = self.parent == parent && self.name == name;
        is_alike && is_there && self.born == now.born && self.descriptor.is_none()
    }
}

impl Known {
    /// Found, and not sent to the kernel yet.
    fn new(place: Place) -> Self {
        Self {
            place,
            told: Told::default(),
            lookups: 0,
            opens: 0,
            io: IoMode::Cached,
            seen: None,
            ends: None,
            giving: false,
        }
    }

    /// A thread is told of these attributes, which it asked for at a given time.
    pub(super) fn tells(&mut self, told: &Attributes, thread: u32, asked: Instant, now: Instant) {
        self.told.add(told);
        if let Some(ends) = &self.ends {
            ends.tells(told.version.bytes, thread, asked, now);
        }
    }
}

impl Table {
    /// A table of the root only, on its device.
    pub(super) fn new(root: Place) -> Self {
        let device = root.key.device;
        let known = Known {
            lookups: 1,
            ..Known::new(root)
        };
        Self {
            nodes: HashMap::from([(ROOT.0, known)]),
            foreign: HashMap::new(),
            next_foreign: FOREIGN,
            folders: VecDeque::new(),
            device,
        }
    }

    /// Records a file found here for the kernel; its number.
    pub(super) fn found(
        &mut self,
        parent: Node,
        name: &OsStr,
        attributes: &Attributes,
        on: FileSystem,
    ) -> Node {
        let node = self.number_of(parent, name, attributes);
        let known = self.nodes.entry(node.0).or_insert_with(|| {
            let place = Place::new(attributes, parent, name, on);
            Known::new(place)
        });
        if !known.place.is(attributes) {
            // Another file got the number of one that is gone.
            known.place = Place::new(attributes, parent, name, on);
            known.told = Told::default();
            known.seen = None;
            known.ends = None;
        }
        let now = Instant::now();
        known.tells(attributes, 0, now, now);
        known.place.mounted = on.mounted;
        known.place.parent = parent;
        if known.place.name != name {
            known.place.name = name.to_owned();
        }
        known.lookups += 1;
        node
    }

    /// The node of a file that was found, if there is one.
    pub(super) fn find(&self, found: &Attributes) -> Option<&Known> {
        let foreign = self.foreign.get(&(found.key, found.born));
        let foreign = foreign.map(|number| Node(*number));
        let node = foreign.or_else(|| self.native(&found.key))?;
        let known = self.nodes.get(&node.0)?;
        known.place.is(found).then_some(known)
    }

    /// The number a file of this inode would have.
    pub(super) fn number_on_device(&self, inode: u64) -> Node {
        let device = self.device;
        let key = Key {
            device,
            inode,
            handle: 0,
        };
        self.native(&key).unwrap_or(Node(FOREIGN))
    }

    /// See [`Nodes::lane`](super::Nodes::lane).
    pub(super) fn lane(&self, node: Node) -> LaneOf {
        let mut at = node;
        let mut lane = None;
        for _ in 0..DEPTH_MAX {
            let Some(known) = self.nodes.get(&at.0) else {
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
        lane.unwrap_or(LaneOf::Device(self.device.0, self.device.1))
    }

    /// See [`Nodes::path`](super::Nodes::path).
    pub(super) fn path(&self, node: Node) -> PathBuf {
        let mut names = Vec::new();
        let mut at = node;
        // A folder moved below its own former child would make a circle; no path is that deep.
        while let Some(known) = self
            .nodes
            .get(&at.0)
            .filter(|_| at != ROOT && names.len() < 4096)
        {
            names.push(known.place.name.clone());
            at = known.place.parent;
        }
        names.iter().rev().collect()
    }

    /// Keeps the descriptor of a folder, and lets go of the one kept longest if there are more than `most`.
    pub(super) fn keep_folder(&mut self, node: Node, descriptor: &Arc<File>, most: usize) {
        let Some(known) = self.nodes.get_mut(&node.0) else {
            return;
        };
        if known.place.descriptor.is_some() {
            return;
        }
        known.place.descriptor = Some(descriptor.clone());
        self.folders.push_back(node);
        if self.folders.len() > most {
            self.let_a_folder_go();
        }
    }

    /// Lets go of the descriptors of all folders but the root. False if there were none.
    pub(super) fn let_folders_go(&mut self) -> bool {
        let any = !self.folders.is_empty();
        while !self.folders.is_empty() {
            self.let_a_folder_go();
        }
        any
    }

    /// Forgets a node that the kernel has forgotten and nothing has open.
    pub(super) fn end_if_unused(&mut self, node: Node) {
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

    /// The number of a file that was found: that of the source, unless another file has it.
    fn number_of(&mut self, parent: Node, name: &OsStr, found: &Attributes) -> Node {
        let identity = (found.key, found.born);
        if let Some(number) = self.foreign.get(&identity) {
            return Node(*number);
        }
        if let Some(node) = self.native(&found.key) {
            let known = self.nodes.get(&node.0);
            let is_same = |place: &Place| place.is(found) || place.may_be(found, parent, name);
            if known.is_none_or(|known| is_same(&known.place)) {
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
            .is_some_and(|root| root.place.key.is_inode_of(key));
        if is_root {
            return Some(ROOT);
        }
        let is_native = key.device == self.device && (ROOT.0 + 1..FOREIGN).contains(&key.inode);
        is_native.then_some(Node(key.inode))
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
