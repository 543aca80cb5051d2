//! The files in the kernel's cache: the count of their look-ups, which of them are open, and the
//! attributes sent for each.
//!
//! Used by the [file system](super), which makes all system calls. A *node* is an inode of the
//! mount in the kernel; its number and place are in the [table], which this keeps behind a lock. A
//! node ends when the kernel has forgotten it as often as it was looked up, and nothing has it
//! open.
//!
//! ```text
//! named:  found .. told, compare .. forget          opened:  opened .. given, saw .. closed
//!                                 table: numbers, places, descriptors of folders
//! ```
//!
//! No descriptor is kept for a file that is not open: it would keep the space of a deleted file.
//! A file is found again by its folder and name and must still have its key, else the answer is
//! `ESTALE` and the kernel looks its name up again. Descriptors of the last [`FOLDERS_MAX`]
//! folders used are kept, because everything goes through them; they are let go of first where
//! descriptors are short.

mod table;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use forerun_io::footprint;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use self::table::Table;
pub use self::table::{DEPTH_MAX, FileSystem, Node, Place, ROOT};
use super::attributes::{Attributes, Version};
use super::ends::Ends;
use super::io_mode::IoMode;
use super::passthrough::Backing;
use super::told::{Told, Verdict};
use crate::lanes::LaneOf;
use crate::lock;

/// Folders whose descriptor is kept. A thousand cover the paths in use at any time.
const FOLDERS_MAX: usize = 1024;

/// How long the descriptor of a folder is kept: its file system is busy as long, and cannot be unmounted.
const FOLDERS_KEPT: Duration = Duration::from_secs(10);

/// Of the descriptors the process may have, the part that folders take at most: an eighth, because
/// the rest is for open files.
const FOLDERS_PART: u64 = 8;

/// A file that is open, for the check for changes.
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

/// The state that an open found when it entered the mode of its file.
#[derive(Clone, Debug)]
pub struct Entered {
    /// The version before, whose bytes the kernel may have.
    pub before: Option<Version>,
    /// Its opener may give the kernel the bytes now.
    pub first: bool,
    /// How the kernel reads the file.
    pub io: IoMode<Backing>,
    /// Where the kernel takes it to end.
    pub ends: Arc<Ends>,
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

/// See the [module](self).
#[derive(Debug)]
pub struct Nodes {
    table: Mutex<Table>,
    /// The bytes of a file were given to the kernel.
    given: Condvar,
    folders_max: usize,
}

impl Nodes {
    /// A table of the root only.
    #[must_use]
    pub fn new(root: Arc<File>, attributes: &Attributes, on: FileSystem) -> Self {
        let place = Place {
            descriptor: Some(root),
            ..Place::new(attributes, ROOT, OsStr::new(""), on)
        };
        let table = Table::new(place);
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

    /// Records a file found here for the kernel; its number.
    pub fn found(
        &self,
        parent: Node,
        name: &OsStr,
        attributes: &Attributes,
        on: FileSystem,
    ) -> Node {
        lock(&self.table).found(parent, name, attributes, on)
    }

    /// The kernel forgot this many lookups.
    pub fn forget(&self, node: Node, lookups: u64) {
        let mut table = lock(&self.table);
        if let Some(known) = table.nodes.get_mut(&node.0) {
            known.lookups = known.lookups.saturating_sub(lookups);
        }
        table.end_if_unused(node);
    }

    /// Location of a node.
    ///
    /// # Errors
    /// `ESTALE` if it is none of ours.
    pub fn place(&self, node: Node) -> Result<Place, Errno> {
        let table = lock(&self.table);
        let known = table.nodes.get(&node.0).ok_or(Errno::STALE)?;
        Ok(known.place.clone())
    }

    /// Records attributes of a node sent to a thread that asked at a given time.
    pub fn told(&self, node: Node, attributes: &Attributes, thread: u32, asked: Instant) {
        if let Some(known) = lock(&self.table).nodes.get_mut(&node.0) {
            known.tells(attributes, thread, asked, Instant::now());
        }
    }

    /// The kernel may not have taken in the attributes of a node that it was sent last.
    pub fn doubt(&self, node: Node) {
        if let Some(known) = lock(&self.table).nodes.get_mut(&node.0) {
            known.told.doubt();
        }
    }

    /// Where the kernel takes a file to end, if that was ever opened.
    #[must_use]
    pub fn ends(&self, node: Node) -> Option<Arc<Ends>> {
        lock(&self.table).nodes.get(&node.0)?.ends.clone()
    }

    /// Records an access list of a node sent to the kernel.
    pub fn told_access_list(&self, node: Node, digest: u64) {
        if let Some(known) = lock(&self.table).nodes.get_mut(&node.0) {
            known.told.add_access_list(digest);
        }
    }

    /// A file had no extended attributes when it was asked, at a time when the kernel had been told this of it.
    pub fn found_bare(&self, node: Node, told: Told, asked: Instant) {
        let mut table = lock(&self.table);
        let known = table.nodes.get_mut(&node.0);
        if let Some(known) = known.filter(|known| known.told == told) {
            known.bare = Some(asked);
        }
    }

    /// Whether a file had no extended attributes so long ago, and the kernel was told of no change since.
    pub fn is_bare(&self, node: Node, believed: Duration) -> bool {
        let table = lock(&self.table);
        let asked = table.nodes.get(&node.0).and_then(|known| known.bare);
        asked.is_some_and(|asked| asked.elapsed() < believed)
    }

    /// The device a node is on, and the attributes that the kernel was given.
    ///
    /// # Errors
    /// `ESTALE` if it is none of ours.
    pub fn device_and_told(&self, node: Node) -> Result<((u32, u32), Told), Errno> {
        let table = lock(&self.table);
        let known = table.nodes.get(&node.0).ok_or(Errno::STALE)?;
        Ok((known.place.key.device, known.told))
    }

    /// Compares the attributes of a node with those the kernel was told: see [`Told::compare`](super::told::Told::compare). The
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
        let verdict = known.told.compare(now, digest);
        if verdict != Verdict::Same {
            known.bare = None;
        }
        Ok(verdict)
    }

    /// Keeps the descriptor of a folder, and lets go of the one kept longest if there are many.
    pub fn keep_folder(&self, node: Node, descriptor: &Arc<File>) {
        lock(&self.table).keep_folder(node, descriptor, self.folders_max);
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
        let known = table.find(found);
        known.is_some_and(|known| known.opens > 0 && known.io.backing().is_some())
    }

    /// A file was opened, by this descriptor and in this version, to be read in this mode. Its
    /// opener, if that wants to, may give the kernel the bytes now: it has none, and the file is
    /// open nowhere else. Others wait until that was [done](Nodes::given), or bytes given late
    /// would come after those of a later version.
    ///
    /// # Errors
    /// It is open in the other mode, and this open was not counted; it is none of ours.
    pub fn opened(
        &self,
        node: Node,
        thread: u32,
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
        let size = known.told.largest();
        let new = || Arc::new(Ends::new(size, thread, Instant::now()));
        Ok(Entered {
            before: known.seen.replace(version),
            first: known.giving,
            io,
            ends: known.ends.get_or_insert_with(new).clone(),
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
        known.seen.is_some_and(|seen| version.is_same_as(&seen))
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
        // Ends the kernel's backing id, and closes the file at its server.
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
        lock(&self.table).lane(node)
    }

    /// Lets go of the descriptors of all folders but the root. False if there were none.
    pub fn let_folders_go(&self) -> bool {
        lock(&self.table).let_folders_go()
    }

    /// Closes folders that were opened a while ago, and gives memory of forgotten nodes back. Called now
    /// and then.
    pub fn tidy(&self) {
        let Some(since) = Instant::now().checked_sub(FOLDERS_KEPT) else {
            return;
        };
        let mut table = lock(&self.table);
        let idle = table.idle_folders(since);
        let gives_back = table.is_to_be_given_back();
        drop(table);
        drop(idle);
        if gives_back {
            footprint::give_back();
        }
    }

    /// See [`Mounted::least_needed`](crate::mounted::Mounted::least_needed).
    pub(crate) fn least_needed(&self, count: usize, folders: bool) -> Vec<Node> {
        lock(&self.table).least_needed(count, folders)
    }

    /// The folder of a node, and its name there.
    pub(crate) fn name_of(&self, node: Node) -> Option<(Node, OsString)> {
        let table = lock(&self.table);
        let place = &table.nodes.get(&node.0)?.place;
        Some((place.parent, place.name.clone()))
    }

    /// The number a file would have, without telling the kernel of it.
    #[must_use]
    pub fn number_on_device(&self, inode: u64) -> Node {
        lock(&self.table).number_on_device(inode)
    }

    /// Tells the file of a node from others that have or had its number.
    #[must_use]
    pub fn serial(&self, node: Node) -> u64 {
        let table = lock(&self.table);
        table.nodes.get(&node.0).map_or(0, |known| known.serial)
    }

    /// The path of a node below SOURCE, as it was when it was last looked up.
    #[must_use]
    pub fn path(&self, node: Node) -> PathBuf {
        lock(&self.table).path(node)
    }

    /// Number of files in the kernel's cache.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.table).nodes.len()
    }
}
