//! The file system of an object store, apart from FUSE: folders and objects of a [`Tree`], by number.
//!
//! Problem: an object is replaced as a whole, at any time, and asking for its version costs a round trip.
//! The kernel keeps pages and attributes by inode; those of two versions in one inode would be read as one
//! file.
//!
//! Mechanism: a *node*, the kernel's inode, is a path in one version. Another version found under a name is
//! another node, with pages of its own: its attributes never change, its pages never get old, and a program
//! that has the old one open reads old bytes or gets `ESTALE`, never both versions.
//!
//! ```text
//! lookup a     -> HEAD: version x           node 5, its bytes and its time
//! open 5       -> looked up just now: no request; else HEAD: x again, or ESTALE and the kernel looks up
//! read fails   -> nothing that was told of 5 is believed: the next look-up or open asks the store
//! a replaced   -> lookup a: version y       node 6; readers of 5 go on with 5
//! ```
//!
//! Reads go the way of those of [directories](super::fs): [`reads`](super::fuse::reads). Objects belong to
//! the mounting user and can be read by all that the mount lets in; there are no other rights.

mod adapter;
mod ahead;
mod folder;
mod nodes;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use forerun_io::footprint;
use forerun_io::source::tree::{Age, Entry, Stat, Tree};
use forerun_io::{Driver, Error as DriverError, Reader};
use fuser::BackgroundSession;
use rustix::io::Errno;

use self::ahead::Name;
use self::folder::Folder;
use self::nodes::{Known, Nodes};
use super::engine::EngineOfMount;
use super::fs::beneath;
use super::fs::nodes::Node;
use super::fs::passthrough::{Mode, Passthrough};
use super::fs::walk::{Listed, Walk};
use super::fuse::forget::NODES_MAX;
use super::lanes::LaneOf;
use super::mounted::Refused;
use super::mounted::{Mounted, Serving};
use super::open_file::OpenFile;
use super::slots::Slots;
use super::trust::Trust;
use super::watch::Watch;
use crate::lock;

/// The longest name that programs expect: `NAME_MAX`.
const NAME_BYTES_MAX: usize = 255;

/// How old the answer to a look-up may be at the open it was made for: a store is not asked twice for one
/// `open(2)`, however short the user has names believed.
const JUST_NOW: Duration = Duration::from_secs(1);

/// Names that the kernel may know however small the memory is: 1.5 MB.
const KNOWN_LEAST: usize = 4 << 10;

/// An answer of now.
const NOW: Age = Age {
    present: Duration::ZERO,
    absent: Duration::ZERO,
};

/// The answer to a look-up.
pub(super) struct Looked {
    /// The kernel is told of it; none if there is no such name.
    pub(super) found: Option<(Node, Entry)>,
    /// The age of the answer: it is believed for so much less.
    pub(super) age: Duration,
}

impl Looked {
    /// No such name, as of now.
    const NOTHING: Self = Self {
        found: None,
        age: Duration::ZERO,
    };
}

/// See the [module](self).
#[derive(Debug)]
pub struct ObjectFs {
    tree: Arc<dyn Tree>,
    engine: EngineOfMount,
    nodes: Nodes,
    walk: Walk<Name, Stat>,
    files: Slots<OpenFile>,
    folders: Slots<Folder>,
    /// Whether a line was written about a name that no file can have.
    is_told: Arc<AtomicBool>,
    /// Whether listings said another size of a version than the store says when asked for it.
    is_misled: AtomicBool,
    /// None: the kernel cannot read a store by itself.
    passthrough: Passthrough,
    /// How old an answer of the store may be at an open.
    fresh: Duration,
    /// And at a look-up.
    believed: Age,
    begun: SystemTime,
}

impl ObjectFs {
    /// The file system of a tree, which keeps a given number of names of folders that are walked.
    #[must_use]
    pub fn new(tree: Arc<dyn Tree>, driver: Driver, trust: Trust, names_max: usize) -> Self {
        Self {
            tree,
            engine: EngineOfMount::new(driver),
            nodes: Nodes::default(),
            walk: Walk::new(names_max),
            files: Slots::default(),
            folders: Slots::default(),
            is_told: Arc::default(),
            is_misled: AtomicBool::new(false),
            passthrough: Passthrough::new(Mode::Never),
            fresh: trust.attributes.max(JUST_NOW),
            believed: Age {
                present: trust.attributes.min(trust.entries),
                absent: trust.negative,
            },
            begun: SystemTime::now(),
        }
    }

    /// Finds a name in a folder, and gives it to `then`, on any thread. The kernel is told of it, and must
    /// [`forget`](Self::forget) it. An error of the store is given in its place. An answer that is believed is given
    /// again.
    pub(super) fn look_up(
        self: &Arc<Self>,
        parent: Node,
        name: &str,
        then: impl FnOnce(Result<Looked, Errno>) + Send + 'static,
    ) {
        let recalled = self.nodes.recall(parent, name, self.age(false).present);
        if let Some((node, known)) = recalled {
            return then(Ok(Looked {
                found: Some((node, known.entry)),
                age: known.as_of.elapsed(),
            }));
        }
        let path = match name.len() > NAME_BYTES_MAX {
            true => Err(Errno::NAMETOOLONG),
            false => self.nodes.path_of(parent, name),
        };
        let path = match path {
            Ok(path) => path,
            Err(error) => return then(Err(error)),
        };
        let (fs, name) = (self.clone(), name.to_owned());
        let is_doubted = self.nodes.is_doubted(parent, &name);
        self.recall_then(path, self.age(is_doubted), move |_, found| {
            then(found.map(|(entry, as_of)| match entry {
                Some(entry) => {
                    let looked = fs.listed(parent, &name, &entry, as_of);
                    if let (Some((node, _)), true) = (&looked.found, is_doubted) {
                        fs.nodes.believe(*node);
                    }
                    looked
                }
                None => Looked {
                    found: None,
                    age: as_of.elapsed(),
                },
            }));
        });
    }

    /// How old an answer about a name may be. Where listings mislead no answer is: names are looked up in their pages.
    fn age(&self, is_doubted: bool) -> Age {
        match is_doubted || self.is_misled.load(Ordering::Relaxed) {
            true => NOW,
            false => self.believed,
        }
    }

    /// An object is there, of which something else was told before.
    fn contradicts(&self, path: &str, told: &Stat, now: &Stat) {
        let is_same = told.version.is_some() && told.version == now.version;
        if is_same && told.bytes != now.bytes && !self.is_misled.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "{}: {path} has {} bytes in a listing and {} when asked for: listings are not believed from now on",
                self.tree.address(),
                told.bytes,
                now.bytes
            );
        }
    }

    /// Finds a path, and gives it with its entry and the time of the answer to `then`.
    fn recall_then(
        self: &Arc<Self>,
        path: String,
        age: Age,
        then: impl FnOnce(String, Result<(Option<Entry>, Instant), Errno>) + Send + 'static,
    ) {
        let (fs, asked) = (self.clone(), path.clone());
        let then = Box::new(move |found: io::Result<(Option<Entry>, Instant)>| {
            let found = found.map_err(|error| fs.errno(&path, &error));
            then(path, found);
        });
        self.tree.recall_then(&asked, age, then);
    }

    /// Gives memory of forgotten nodes back. Called now and then.
    pub fn tidy(&self) {
        if self.nodes.is_to_be_given_back() {
            footprint::give_back();
        }
    }

    /// A name that an answer of this time gave: as [`look_up`](Self::look_up), without a request.
    fn listed(&self, parent: Node, name: &str, entry: &Entry, as_of: Instant) -> Looked {
        let (node, known) = self.nodes.found(parent, name, entry, as_of);
        Looked {
            found: Some((node, known.entry)),
            age: known.as_of.elapsed(),
        }
    }

    /// The kernel forgot a node this many times.
    pub fn forget(&self, node: Node, lookups: u64) {
        self.nodes.forget(node, lookups);
    }

    /// The entry of a node: for ever the same.
    ///
    /// # Errors
    /// `ESTALE` if there is none.
    pub fn entry(&self, node: Node) -> Result<Entry, Errno> {
        self.nodes.known(node).map(|known| known.entry)
    }

    /// Opens an object for a thread of some program, and gives the number of the open file to `then`, on any thread;
    /// or `ESTALE` if another version is there, or none, or an error of the store.
    pub fn open(
        self: &Arc<Self>,
        node: Node,
        thread: u32,
        then: impl FnOnce(Result<u64, Errno>) + Send + 'static,
    ) {
        let known = self.nodes.known(node).and_then(|known| {
            let path = self.nodes.path_of(known.parent, &known.name)?;
            Ok((path, known))
        });
        let (path, known) = match known {
            Ok(known) => known,
            Err(error) => return then(Err(error)),
        };
        let Entry::Object(stat) = known.entry.clone() else {
            return then(Err(Errno::ISDIR));
        };
        let is_doubted = known.is_doubted() || self.is_misled.load(Ordering::Relaxed);
        if stat.version.is_some() && known.as_of.elapsed() < self.fresh && !is_doubted {
            return then(self.opened((node, &known), thread, &path, &stat));
        }
        let fs = self.clone();
        self.recall_then(path, self.age(is_doubted), move |path, found| {
            then(found.and_then(|found| match found {
                (Some(Entry::Object(now)), as_of) if nodes::is_same(&stat, &now) => {
                    fs.nodes.saw(node, &now, as_of);
                    if is_doubted {
                        fs.nodes.believe(node);
                    }
                    fs.opened((node, &known), thread, &path, &now)
                }
                (found, _) => {
                    if let Some(Entry::Object(now)) = found {
                        fs.contradicts(&path, &stat, &now);
                    }
                    Err(Errno::STALE)
                }
            }));
        });
    }

    fn opened(
        &self,
        (node, known): (Node, &Known),
        thread: u32,
        path: &str,
        stat: &Stat,
    ) -> Result<u64, Errno> {
        let reader = match self.taken_ahead(known, stat) {
            Some(reader) => reader,
            None => self.reader(path, stat)?,
        };
        self.entered(known, &reader, thread);
        let file = OpenFile::new(node, thread, stat.bytes, Some(reader), lane(node));
        let file = match self.nodes.doubts(node) {
            Some(doubts) => file.doubted_by(doubts),
            None => file,
        };
        Ok(self.files.add(file))
    }

    fn reader(&self, path: &str, stat: &Stat) -> Result<Reader, Errno> {
        let driver = self.engine.driver().ok_or(Errno::SHUTDOWN)?;
        let source = self
            .tree
            .open(path, stat)
            .map_err(|e| self.errno(path, &e))?;
        driver.open_source(source).map_err(|error| match error {
            DriverError::Open { source, .. } => self.errno(path, &source),
            DriverError::TooManyFiles { .. } => Errno::NFILE,
            DriverError::TooLarge { .. } => Errno::FBIG,
            _ => Errno::IO,
        })
    }

    /// The number of an error; one without a number is told to the user of the mount. `ENOENT` is `EIO`: a tree says without
    /// an error that a name is missing or a folder empty, and programs take `ENOENT` for a missing name or the end of a
    /// folder.
    fn errno(&self, path: &str, error: &io::Error) -> Errno {
        let number = beneath::errno(error);
        if error.raw_os_error().is_none() || number == Errno::NOENT {
            tracing::warn!("{}: {path}: {error}", self.tree.address());
        }
        match number {
            Errno::NOENT => Errno::IO,
            other => other,
        }
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
        drop(self.files.remove(handle));
    }

    /// Opens a folder, for listing.
    ///
    /// # Errors
    /// `ENOTDIR`, `ESTALE`.
    pub fn open_folder(&self, node: Node) -> Result<u64, Errno> {
        match self.entry(node)? {
            Entry::Folder => Ok(self
                .folders
                .add(Folder::new(self.gathers(), self.is_told.clone()))),
            Entry::Object(_) => Err(Errno::NOTDIR),
        }
    }

    /// Gives the names of an open folder from a position on, each with its time and the position behind it, until one is
    /// not taken.
    ///
    /// # Errors
    /// Those of the store. None if a name was taken: the next call has it.
    pub fn read_folder(
        &self,
        node: Node,
        handle: u64,
        from: u64,
        take: &mut dyn FnMut(&str, &Entry, Instant, u64) -> bool,
    ) -> Result<(), Errno> {
        let path = self.nodes.path(node)?;
        let folder = self.folders.get(handle)?;
        let mut take = |name: &str, entry: &Entry, as_of: Instant, next: u64| {
            let taken = take(name, entry, as_of, next);
            if taken {
                let file = || walked(name, entry, next);
                lock(&folder.gathered).add(next - 1, next, file);
            }
            taken
        };
        let read = folder.read(from, || self.tree.list_recalled(&path), &mut take);
        let is_end = read.map_err(|error| self.errno(&path, &error))?;
        if is_end
            && let Some(files) = lock(&folder.gathered).take()
            && let Some(driver) = self.engine.driver()
        {
            self.walk.listed(&driver, node, files);
        }
        Ok(())
    }

    /// Closes an open folder.
    pub fn release_folder(&self, handle: u64) {
        drop(self.folders.remove(handle));
    }

    /// The time of the mount, which folders have: a store has none for them.
    #[must_use]
    pub fn begun(&self) -> SystemTime {
        self.begun
    }
}

/// An object of a listing, for a walk; listed in the order of their names, they are fetched in it.
fn walked(name: &str, entry: &Entry, at: u64) -> Option<Listed> {
    match entry {
        Entry::Folder => None,
        Entry::Object(stat) => Some(Listed {
            name: name.into(),
            inode: at,
            bytes: stat.bytes,
        }),
    }
}

/// The path of an object below the root, as the tree has it.
fn object_path(path: &Path) -> Result<String, Refused> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str().ok_or(Errno::NOENT)?),
            Component::CurDir => {}
            _ => return Err(Refused::Path),
        }
    }
    Ok(names.join("/"))
}

/// The lane of calls about a node: one for each, since the store answers them side by side.
fn lane(node: Node) -> LaneOf {
    LaneOf::MountPoint(node.0)
}

impl Mounted for ObjectFs {
    fn engine(&self) -> &EngineOfMount {
        &self.engine
    }

    fn open_files(&self) -> Vec<Arc<OpenFile>> {
        self.files.all()
    }

    fn path(&self, node: Node) -> PathBuf {
        self.nodes.path(node).unwrap_or_default().into()
    }

    fn known(&self) -> usize {
        self.nodes.count()
    }

    fn known_max(&self) -> usize {
        self.walk.names_max().clamp(KNOWN_LEAST, NODES_MAX)
    }

    fn least_needed(&self, count: usize, folders: bool) -> Vec<Node> {
        self.nodes.least_needed(count, folders)
    }

    fn place(&self, node: Node) -> Option<(Node, OsString)> {
        let known = self.nodes.known(node).ok()?;
        Some((known.parent, OsString::from(&*known.name)))
    }

    fn passthrough(&self) -> &Passthrough {
        &self.passthrough
    }

    fn open_announced(&self, paths: &[&Path]) -> Vec<Result<Reader, Refused>> {
        let ask = |path: &&Path| {
            let path = object_path(path)?;
            let (give, given) = channel();
            let then = move |found| drop(give.send(found));
            self.tree.find_then(&path, Box::new(then));
            Ok((path, given))
        };
        // Each is asked for before the first answer is awaited.
        let asked: Vec<Result<_, Refused>> = paths.iter().map(ask).collect();
        let opened = asked.into_iter().map(|asked| {
            let (path, given) = asked?;
            let panicked = |_| Err(io::Error::other("the request panicked"));
            let found = given.recv().unwrap_or_else(panicked);
            match found.map_err(|error| self.errno(&path, &error))? {
                Some(Entry::Object(stat)) => Ok(self.reader(&path, &stat)?),
                Some(Entry::Folder) => Err(Refused::Kind),
                None => Err(Errno::NOENT.into()),
            }
        });
        opened.collect()
    }

    fn serve(
        self: Arc<Self>,
        channel: OwnedFd,
        serving: Serving,
    ) -> io::Result<(BackgroundSession, Watch)> {
        adapter::serve(self, channel, serving)
    }
}
