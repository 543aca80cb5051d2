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

use std::collections::{HashMap, HashSet, VecDeque};
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
use crate::fuse::forget::least;
use crate::lanes::LaneOf;

/// The kernel's number of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Node(pub u64);

/// SOURCE itself. FUSE fixes the number.
pub const ROOT: Node = Node(1);

/// The first number that is not the source's: above any inode number a disk file system uses.
const FOREIGN: u64 = 1 << 63;

/// So many nodes have a few MiB, which is worth a call.
const GIVEN_BACK_FROM: usize = 8192;

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
    /// When it was seen to have no extended attributes, since the last change that was told.
    pub(super) bare: Option<Instant>,
    /// Of no other file, unlike its number.
    pub(super) serial: u64,
    pub(super) lookups: u64,
    pub(super) opens: u32,
    /// Seconds since the begin of the mount when it was looked up last.
    found: u32,
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
    /// Files that got a number so far.
    numbered: u64,
    folders: VecDeque<(Node, Instant)>,
    /// The most nodes there were since memory was given back.
    most: usize,
    begun: Instant,
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
            bare: None,
            serial: 0,
            lookups: 0,
            opens: 0,
            found: 0,
            io: IoMode::Cached,
            seen: None,
            ends: None,
            giving: false,
        }
    }

    /// A thread is told of these attributes, which it asked for at a given time.
    pub(super) fn tells(&mut self, told: &Attributes, thread: u32, asked: Instant, now: Instant) {
        let before = self.told;
        self.told.add(told);
        if self.told != before {
            self.bare = None;
        }
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
            numbered: 0,
            folders: VecDeque::new(),
            most: 0,
            begun: Instant::now(),
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
        let is_other = !known.place.is(attributes);
        if is_other || known.serial == 0 {
            self.numbered += 1;
            known.serial = self.numbered;
        }
        if is_other {
            // Another file got the number of one that is gone.
            known.place = Place::new(attributes, parent, name, on);
            known.told = Told::default();
            known.bare = None;
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
        let since = now.saturating_duration_since(self.begun).as_secs();
        known.found = u32::try_from(since).unwrap_or(u32::MAX);
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
        self.folders.push_back((node, Instant::now()));
        if self.folders.len() > most {
            drop(self.let_a_folder_go());
        }
    }

    /// Lets go of the descriptors of all folders but the root. False if there were none.
    pub(super) fn let_folders_go(&mut self) -> bool {
        let any = !self.folders.is_empty();
        while !self.folders.is_empty() {
            drop(self.let_a_folder_go());
        }
        any
    }

    /// The descriptors of folders that are kept since this time or longer.
    pub(super) fn idle_folders(&mut self, since: Instant) -> Vec<Arc<File>> {
        let mut idle = Vec::new();
        while self.folders.front().is_some_and(|(_, at)| *at <= since) {
            idle.extend(self.let_a_folder_go());
        }
        idle
    }

    /// So many nodes that are not open and have none below them, the least lately found first and those whose bytes
    /// the kernel may have last.
    pub(super) fn least_needed(&self, count: usize, folders: bool) -> Vec<Node> {
        let above: HashSet<u64> = self.nodes.values().map(|k| k.place.parent.0).collect();
        let is_idle = |(number, known): &(&u64, &Known)| {
            let is_kind = folders || known.place.kind != FileType::Directory;
            known.opens == 0 && is_kind && !above.contains(number)
        };
        let idle = self.nodes.iter().filter(is_idle);
        let keyed =
            idle.map(|(number, known)| ((known.seen.is_some(), known.found), Node(*number)));
        least(keyed.collect(), count)
    }

    /// Whether memory of most nodes is free, so that it is worth while to give it back; once.
    pub(super) fn is_to_be_given_back(&mut self) -> bool {
        self.most = self.most.max(self.nodes.len());
        if self.most < GIVEN_BACK_FROM || self.nodes.len() > self.most / 2 {
            return false;
        }
        self.most = self.nodes.len();
        let room = self.nodes.len() * 2;
        self.nodes.shrink_to(room);
        self.foreign.shrink_to(self.foreign.len() * 2);
        true
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

    fn let_a_folder_go(&mut self) -> Option<Arc<File>> {
        let (node, _) = self.folders.pop_front()?;
        let known = self.nodes.get_mut(&node.0)?;
        match known.opens {
            0 => known.place.descriptor.take(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ON: FileSystem = FileSystem {
        served: true,
        mounted: false,
    };

    /// Of a server without times of birth.
    fn attributes(inode: u64, handle: u64) -> Attributes {
        let file = File::open("/proc/self/status").unwrap();
        let device = (0, 77);
        Attributes {
            key: Key {
                device,
                inode,
                handle,
            },
            born: (0, 0),
            kind: FileType::RegularFile,
            ..Attributes::of(&file, "").unwrap()
        }
    }

    fn table() -> Table {
        let root = Attributes {
            kind: FileType::Directory,
            ..attributes(1, 5)
        };
        Table::new(Place::new(&root, ROOT, OsStr::new(""), ON))
    }

    fn found(table: &mut Table, name: &str, attributes: &Attributes) -> Node {
        table.found(ROOT, OsStr::new(name), attributes, ON)
    }

    #[test]
    fn files_that_a_server_gives_one_number_are_two() {
        let mut table = table();
        let (a, b) = (attributes(9, 100), attributes(9, 200));
        assert_eq!(found(&mut table, "a", &a), Node(9));
        let other = found(&mut table, "b", &b);
        assert_ne!(other, Node(9));
        assert_eq!(found(&mut table, "a", &a), Node(9));
        assert_eq!(found(&mut table, "b", &b), other);
        // One with the number of the root is not the root.
        assert_ne!(found(&mut table, "c", &attributes(1, 300)), ROOT);
        assert_ne!(a.key.in_engine(a.born), b.key.in_engine(b.born));
        // One server before several volumes, with times of birth.
        assert_ne!(a.key.in_engine((1, 0)), a.key.in_engine((2, 0)));
    }

    #[test]
    fn a_number_that_is_given_again_has_another_serial_number() {
        let mut table = table();
        let serial = |table: &mut Table, name: &str, handle| {
            let node = found(table, name, &attributes(9, handle));
            assert_eq!(node, Node(9));
            table.nodes[&9].serial
        };
        let first = serial(&mut table, "a", 100);
        assert_eq!(serial(&mut table, "link", 100), first);
        table.nodes.get_mut(&9).unwrap().lookups = 0;
        table.end_if_unused(Node(9));
        // Without times of birth and handles nothing else tells them apart.
        assert_ne!(serial(&mut table, "b", 100), first);
    }

    #[test]
    fn a_hard_link_is_one_file_and_one_with_a_new_handle_stays_where_it_was() {
        let mut table = table();
        let a = attributes(9, 100);
        assert_eq!(found(&mut table, "a", &a), Node(9));
        assert_eq!(found(&mut table, "link", &a), Node(9));
        let again = attributes(9, 101);
        assert_eq!(found(&mut table, "link", &again), Node(9));
        let known = table.nodes.get_mut(&9).unwrap();
        assert_eq!(known.place.key.handle, 101);
        // An open file keeps its handle.
        known.place.descriptor = Some(Arc::new(File::open("/proc/self/status").unwrap()));
        assert_ne!(found(&mut table, "link", &attributes(9, 102)), Node(9));
    }

    #[test]
    fn names_beyond_the_limit_are_those_found_longest_ago_and_never_opened() {
        let mut table = table();
        for inode in 2..12 {
            found(&mut table, &inode.to_string(), &attributes(inode, 1));
            table.nodes.get_mut(&inode).unwrap().found = inode as u32;
        }
        table.nodes.get_mut(&2).unwrap().opens = 1;
        table.nodes.get_mut(&4).unwrap().seen = Some(attributes(4, 1).version);
        let mut nodes = table.least_needed(3, true);
        nodes.sort();
        assert_eq!(nodes, [3, 5, 6].map(Node));
        assert_eq!(table.least_needed(0, true), []);
        assert_eq!(table.least_needed(99, true).len(), 9, "not the open one");
    }

    #[test]
    fn folders_are_forgotten_after_the_names_below_them() {
        let mut table = table();
        let folder = Attributes {
            kind: FileType::Directory,
            ..attributes(2, 1)
        };
        let folder = found(&mut table, "folder", &folder);
        let file = table.found(folder, OsStr::new("file"), &attributes(3, 1), ON);
        assert_eq!(table.least_needed(9, true), [file]);
        table.nodes.remove(&file.0);
        assert_eq!(table.least_needed(9, true), [folder]);
        assert_eq!(table.least_needed(9, false), []);
    }

    #[test]
    fn memory_of_many_forgotten_names_is_given_back_once() {
        let mut table = table();
        let files = GIVEN_BACK_FROM as u64 * 2;
        for inode in 2..files {
            found(&mut table, "a", &attributes(inode, 1));
        }
        assert!(!table.is_to_be_given_back());
        for inode in 2..files {
            table.nodes.get_mut(&inode).unwrap().lookups = 0;
            table.end_if_unused(Node(inode));
        }
        assert!(table.is_to_be_given_back());
        assert!(table.nodes.capacity() < 1000);
        assert!(!table.is_to_be_given_back());
    }

    #[test]
    fn folders_are_closed_a_while_after_they_were_opened() {
        let mut table = table();
        let folder = Arc::new(File::open("/proc/self").unwrap());
        let node = found(&mut table, "folder", &attributes(9, 1));
        table.keep_folder(node, &folder, 10);
        let now = Instant::now();
        assert!(table.idle_folders(now - Duration::from_secs(5)).is_empty());
        assert_eq!(table.idle_folders(now).len(), 1);
        assert!(table.nodes[&node.0].place.descriptor.is_none());
        assert!(table.idle_folders(now).is_empty());
    }
}
