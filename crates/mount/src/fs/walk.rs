//! Folders that programs walk, and the files of them that are open ahead of the walk.
//!
//! Part of the file systems of [folders](super) and of [objects](crate::objects). Programs such as tar list a folder
//! and open its files one after the other. Listings and opens are passed on to the driver, whose engine predicts the next
//! opens; the predicted files are opened here, and handed to the programs that open them. Each open
//! compares its file with the name and the attributes as always, and takes the one open ahead only
//! if it is the same file in the same version.
//!
//! ```text
//! listed --> Folder       open ahead: file, reader <-- driver: entry 17 comes next
//! entered(entry 16) -->                |
//! open(entry 17) <---------------------/   or no program comes: closed
//! ```
//!
//! Bounds: a number of names of listed folders, the least recently walked forgotten first, and of a folder with more its first
//! ones, half as many, so that another has room. A forgotten folder is listed again once a 16th of its names was opened. Files
//! are opened ahead only by request of the engine, and are closed when their folder was not walked
//! for [`IDLE`], so that no deleted file keeps its space and no source stays busy.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use forerun_core::next_file::{Entry, HEAD_LEAST};
use forerun_core::{Engine, FolderId, ReaderId};
use forerun_io::{Driver, Folder, Reader};

use super::nodes::Node;
use crate::lock;

/// Bytes of a name: itself, its place in two orders, and the allocator's part.
pub const NAME_BYTES: u64 = 96;

/// Names kept over all folders, most: as many as the engine takes of one folder.
pub const NAMES_MAX: usize = Engine::FOLDER_MAX;

/// How long files stay open ahead in a folder after its walk: longer than a program pauses between
/// two files it opens.
const IDLE: Duration = Duration::from_secs(10);

/// Files opened in an unlisted folder before it is listed for them: a program that has its names
/// from elsewhere, in an order that may be one of the folder's.
const UNLISTED: u32 = 4;

/// Of a folder that was forgotten for others, this part of its names: so at most 16 names are listed for each open.
const RELISTED_PART: usize = 16;

/// Unlisted folders, most.
const UNLISTED_MAX: usize = 64;

/// A regular file of a listed folder.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) name: OsString,
    /// Orders the files of a batch.
    pub(crate) inode: u64,
    /// Zero if unknown.
    pub(crate) bytes: u64,
}

#[derive(Debug)]
struct Walked {
    folder: Arc<Folder>,
    names: Arc<[OsString]>,
    /// Their entries, by name.
    by_name: Box<[u32]>,
    walked: Instant,
}

impl Walked {
    fn entry(&self, name: &OsStr) -> Option<u32> {
        let name_of = |entry: &u32| self.names[*entry as usize].as_os_str();
        let found = self
            .by_name
            .binary_search_by(|entry| name_of(entry).cmp(name));
        found.ok().map(|place| self.by_name[place])
    }
}

/// A file that is open ahead.
#[derive(Debug)]
pub(crate) struct Ahead<F> {
    /// By which its open knows it again.
    pub(crate) file: F,
    pub(crate) reader: Reader,
    folder: FolderId,
}

#[derive(Debug)]
struct State<K, F> {
    folders: HashMap<Node, Walked>,
    nodes: HashMap<FolderId, Node>,
    /// With the opens in each until it is listed for them.
    unlisted: HashMap<Node, u32>,
    files: HashMap<K, Ahead<F>>,
    readers: HashMap<ReaderId, K>,
}

impl<K, F> Default for State<K, F> {
    fn default() -> Self {
        Self {
            folders: HashMap::new(),
            nodes: HashMap::new(),
            unlisted: HashMap::new(),
            files: HashMap::new(),
            readers: HashMap::new(),
        }
    }
}

/// Walks of a tree whose files have keys `K` and are open ahead as `F`. See the [module](self).
#[derive(Debug)]
pub(crate) struct Walk<K, F> {
    state: Mutex<State<K, F>>,
    names_max: usize,
}

impl<K: Clone + Eq + Hash, F> Walk<K, F> {
    /// Keeps a given number of names, within [`NAMES_MAX`].
    pub(crate) fn new(names_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            names_max: names_max.min(NAMES_MAX),
        }
    }

    /// Number of names kept.
    pub(crate) fn names_max(&self) -> usize {
        self.names_max
    }

    /// A folder was listed from its first name to its last.
    pub(crate) fn listed(&self, driver: &Driver, node: Node, files: Vec<Listed>) {
        let entries = entries(&files);
        let known = lock(&self.state).same(node, &files);
        if let Some(folder) = known {
            return folder.listed(entries);
        }
        let forgotten = lock(&self.state).make_room(node, files.len(), self.names_max);
        drop(forgotten);
        if files.len() < 2 {
            return;
        }
        let Some(folder) = driver.folder(entries) else {
            return;
        };
        let id = folder.id();
        let walked = Walked {
            folder: Arc::new(folder),
            by_name: by_name(&files),
            names: files.into_iter().map(|file| file.name).collect(),
            walked: Instant::now(),
        };
        let mut state = lock(&self.state);
        state.unlisted.remove(&node);
        state.nodes.insert(id, node);
        // Another thread listed it at the same time.
        let other = state.folders.insert(node, walked);
        if let Some(other) = &other {
            state.nodes.remove(&other.folder.id());
        }
        drop(state);
        drop(other);
    }

    /// A program opened a file. True if its folder is unlisted and to be listed.
    pub(crate) fn entered(&self, parent: Node, name: &OsStr, reader: &Reader, opener: u64) -> bool {
        let mut state = lock(&self.state);
        let Some(walked) = state.folders.get_mut(&parent) else {
            return state.entered_unlisted(parent);
        };
        walked.walked = Instant::now();
        let Some(entry) = walked.entry(name) else {
            return false;
        };
        let folder = walked.folder.clone();
        drop(state);
        folder.entered(entry, reader, opener);
        false
    }

    /// Where an entry is to be found, and the folder to answer to.
    pub(crate) fn place(&self, id: FolderId, entry: u32) -> Option<(Node, OsString, Arc<Folder>)> {
        let state = lock(&self.state);
        let node = *state.nodes.get(&id)?;
        let walked = state.folders.get(&node)?;
        let name = walked.names.get(entry as usize)?.clone();
        Some((node, name, walked.folder.clone()))
    }

    /// A file is open ahead from now on; given back if it was already, or too many are.
    pub(crate) fn opened(
        &self,
        folder: FolderId,
        key: K,
        file: F,
        reader: Reader,
        most: usize,
    ) -> Result<(), Reader> {
        let mut state = lock(&self.state);
        if state.files.len() >= most || state.files.contains_key(&key) {
            return Err(reader);
        }
        state.readers.insert(reader.id(), key.clone());
        let ahead = Ahead {
            file,
            reader,
            folder,
        };
        state.files.insert(key, ahead);
        Ok(())
    }

    /// The file that is open ahead under this key: it is the caller's from now on.
    pub(crate) fn take(&self, key: &K) -> Option<Ahead<F>> {
        let mut state = lock(&self.state);
        let ahead = state.files.remove(key)?;
        state.readers.remove(&ahead.reader.id());
        Some(ahead)
    }

    /// The same, by its reader.
    pub(crate) fn take_reader(&self, reader: ReaderId) -> Option<Ahead<F>> {
        let mut state = lock(&self.state);
        let key = state.readers.remove(&reader)?;
        state.files.remove(&key)
    }

    /// Files of folders that are not walked any more: the caller's, to be closed.
    pub(crate) fn take_idle(&self) -> Vec<Ahead<F>> {
        let mut state = lock(&self.state);
        let State {
            folders,
            nodes,
            files,
            ..
        } = &*state;
        let is_idle = |ahead: &Ahead<F>| {
            let walked = nodes.get(&ahead.folder).and_then(|node| folders.get(node));
            walked.is_none_or(|walked| walked.walked.elapsed() > IDLE)
        };
        let idle = files.iter().filter(|(_, ahead)| is_idle(ahead));
        let keys: Vec<K> = idle.map(|(key, _)| key.clone()).collect();
        state.take_all(keys)
    }

    /// All of them.
    pub(crate) fn take_all(&self) -> Vec<Ahead<F>> {
        let mut state = lock(&self.state);
        let keys = state.files.keys().cloned().collect();
        state.take_all(keys)
    }
}

impl<K: Eq + Hash, F> State<K, F> {
    fn take_all(&mut self, keys: Vec<K>) -> Vec<Ahead<F>> {
        let taken = keys.iter().filter_map(|key| self.files.remove(key));
        let taken: Vec<Ahead<F>> = taken.collect();
        for ahead in &taken {
            self.readers.remove(&ahead.reader.id());
        }
        taken
    }

    /// The folder, if it has these files.
    fn same(&mut self, node: Node, files: &[Listed]) -> Option<Arc<Folder>> {
        let walked = self.folders.get_mut(&node)?;
        let same = walked.names.iter().eq(files.iter().map(|file| &file.name));
        walked.walked = Instant::now();
        same.then(|| walked.folder.clone())
    }

    /// Forgets this folder, and the folders walked least recently until a given number of names
    /// fit. Dropped by the caller, without the lock.
    fn make_room(&mut self, node: Node, names: usize, names_max: usize) -> Vec<Walked> {
        let mut forgotten: Vec<Walked> = self.folders.remove(&node).into_iter().collect();
        let mut known: usize = self.folders.values().map(|walked| walked.names.len()).sum();
        while known + names > names_max {
            let oldest = self.folders.iter().min_by_key(|(_, walked)| walked.walked);
            let Some(walked) = oldest
                .map(|(node, _)| *node)
                .and_then(|n| self.folders.remove(&n))
            else {
                break;
            };
            known -= walked.names.len();
            forgotten.push(walked);
        }
        for walked in &forgotten {
            if let Some(node) = self.nodes.remove(&walked.folder.id()) {
                let part = u32::try_from(walked.names.len() / RELISTED_PART).unwrap_or(u32::MAX);
                *self.opens_left(node) = part.max(UNLISTED);
            }
        }
        forgotten
    }

    /// Counts an open in an unlisted folder; true once it is worth while.
    fn entered_unlisted(&mut self, parent: Node) -> bool {
        let left = self.opens_left(parent);
        let is_last = *left == 1;
        *left = left.saturating_sub(1);
        is_last
    }

    /// Opens in an unlisted folder until it is listed; none once it was asked for.
    fn opens_left(&mut self, node: Node) -> &mut u32 {
        if self.unlisted.len() >= UNLISTED_MAX && !self.unlisted.contains_key(&node) {
            self.unlisted.clear();
        }
        self.unlisted.entry(node).or_insert(UNLISTED)
    }
}

/// The first regular files of a listing, if it goes from the first name to the last.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// None if they are not wanted, or not any more.
    files: Option<Vec<Listed>>,
    /// Position of the listing.
    next: u64,
    most: usize,
    /// There are more.
    is_cut: bool,
}

impl Gathered {
    /// At most so many files.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            files: (most > 0).then(Vec::new),
            next: 0,
            most,
            is_cut: false,
        }
    }

    /// A name was given that stands at `at`, before `next`; `file` if it is a regular one's.
    pub(crate) fn add(&mut self, at: u64, next: u64, file: impl FnOnce() -> Option<Listed>) {
        let Some(files) = self.files.as_mut() else {
            return;
        };
        if at == 0 {
            files.clear();
            self.is_cut = false;
        } else if at != self.next {
            self.files = None;
            return;
        }
        self.next = next;
        let Some(file) = file().filter(|_| !self.is_cut) else {
            return;
        };
        if files.len() < self.most {
            files.push(file);
        } else {
            files.truncate(self.most / 2);
            self.is_cut = true;
        }
    }

    /// The last name was given: the files, if none before it was passed over, and once.
    pub(crate) fn take(&mut self) -> Option<Vec<Listed>> {
        self.files.take()
    }
}

/// The entries in the order of their names.
fn by_name(files: &[Listed]) -> Box<[u32]> {
    let mut by_name: Box<[u32]> = (0..).take(files.len()).collect();
    by_name.sort_by_key(|entry| &files[*entry as usize].name);
    by_name
}

/// The files in the engine's form. The kernel asks for attributes of a folder's first names,
/// and of others when they are looked up: an unknown size is taken to be the largest of the others, if that is less than
/// the room that the engine keeps for one that is not known. Where it is larger, its end is not fetched ahead.
fn entries(files: &[Listed]) -> Arc<[Entry]> {
    let largest = files.iter().map(|file| file.bytes).max().unwrap_or(0);
    let largest = largest.min(HEAD_LEAST.0);
    let mut entries: Vec<Entry> = files
        .iter()
        .map(|file| Entry {
            name_rank: 0,
            inode: file.inode,
            bytes: if file.bytes > 0 { file.bytes } else { largest },
        })
        .collect();
    for (rank, entry) in (0..).zip(by_name(files)) {
        entries[entry as usize].name_rank = rank;
    }
    entries.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ranked_whatever_order_they_are_listed_in() {
        let file = |name: &str, inode| Listed {
            name: name.into(),
            inode,
            bytes: 1,
        };
        let entries = entries(&[file("b", 3), file("c", 1), file("a", 2)]);
        let ranks: Vec<u32> = entries.iter().map(|entry| entry.name_rank).collect();
        assert_eq!(ranks, [1, 2, 0]);
    }

    #[test]
    fn of_more_names_than_are_kept_the_first_half_are() {
        let mut gathered = Gathered::new(5);
        let listed = |at: u64| Listed {
            name: at.to_string().into(),
            inode: at,
            bytes: 1,
        };
        for (names, kept) in [(6, vec![0, 2, 3, 4, 5]), (7, vec![0, 2]), (90, vec![0, 2])] {
            for at in 0..names {
                gathered.add(at, at + 1, || (at != 1).then(|| listed(at)));
            }
            let files = gathered.files.as_ref().unwrap();
            let inodes: Vec<u64> = files.iter().map(|file| file.inode).collect();
            assert_eq!(inodes, kept, "{names}");
        }
        let mut passed_over = Gathered::new(3);
        passed_over.add(0, 1, || Some(listed(0)));
        passed_over.add(5, 6, || Some(listed(5)));
        assert!(passed_over.take().is_none());
    }

    #[test]
    fn a_size_that_is_not_known_is_the_largest_of_the_others() {
        let sizes = |sizes: &[u64]| -> Vec<u64> {
            let file = |bytes: &u64| Listed {
                name: bytes.to_string().into(),
                inode: 1,
                bytes: *bytes,
            };
            let files: Vec<Listed> = sizes.iter().map(file).collect();
            entries(&files).iter().map(|entry| entry.bytes).collect()
        };
        assert_eq!(sizes(&[10, 0, 30]), [10, 30, 30]);
        assert_eq!(sizes(&[0, 0]), [0, 0]);
    }

    #[test]
    fn a_folder_that_nobody_listed_is_listed_once() {
        let mut state = State::<u8, ()>::default();
        let asked: Vec<bool> = (0..9).map(|_| state.entered_unlisted(Node(5))).collect();
        assert_eq!(asked.iter().filter(|asked| **asked).count(), 1);
        assert!(asked[UNLISTED as usize - 1]);
        for node in 0..10_000 {
            state.entered_unlisted(Node(node));
        }
        // One that was forgotten to make room for others costs more opens.
        *state.opens_left(Node(20_000)) = 100;
        let asked = (0..200).filter(|_| state.entered_unlisted(Node(20_000)));
        assert_eq!(asked.collect::<Vec<_>>(), [99]);
        assert!(state.unlisted.len() <= UNLISTED_MAX);
    }
}
