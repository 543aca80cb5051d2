//! Folders: a listing in three orders, and the files of it that this pass has opened.
//!
//! Kept by [`files_ahead`](crate::files_ahead), looked at by the methods of
//! [`next_file`](crate::next_file). A program opens the files of a folder in the order in which it
//! was listed (tar), by name (a shell's `*`) or by inode number (programs that sort for the disk):
//!
//! ```text
//! entry    0   1   2   3      listing   rank of entry 2: 2
//! name     b   d   a   c      name                       0
//! inode   12  10  11  13      inode                      1
//! ```
//!
//! The two permutations are made at the first open, because most folders are listed and no more.
//! A *pass* is one walk over a folder. It ends when all files were opened, when one is opened again
//! after the folder was listed anew, or when several in a row are.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::bits::Bits;
use crate::next_file::{Entry, Place};
use crate::units::FolderId;

/// Memory charged for a folder beside its entries: its node in two maps and a method's state of it.
pub const FOLDER_BYTES: u64 = 512;
/// Memory charged for an entry: itself (24), two permutations both ways (16) and its bits.
const ENTRY_BYTES: u64 = 41;
/// Files opened again in a row that begin a new pass. A second program that follows a first one is
/// not to end its pass; a second pass of the same program, over a part of the folder, loses as many
/// predictions.
const AGAIN_MAX: u32 = 8;

/// An order of a folder's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As listed.
    Listing,
    /// By name.
    Name,
    /// By inode number.
    Inode,
}

/// How an open relates to the pass over its folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// The first open of a pass.
    Begins,
    /// A file that this pass had not opened.
    New,
    /// A file that it had.
    Again,
}

/// An order, both ways.
#[derive(Debug)]
struct Ranks {
    entries: Box<[u32]>,
    ranks: Box<[u32]>,
}

impl Ranks {
    fn by_key(entries: &[Entry], key: impl Fn(&Entry) -> u64) -> Self {
        let mut order: Vec<u32> = (0..entries.len() as u32).collect();
        order.sort_by_key(|entry| (key(&entries[*entry as usize]), *entry));
        let mut ranks = alloc::vec![0; order.len()].into_boxed_slice();
        for (rank, entry) in (0..).zip(&order) {
            ranks[*entry as usize] = rank;
        }
        let entries = order.into_boxed_slice();
        Self { entries, ranks }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Folder {
    entries: Arc<[Entry]>,
    /// By name and by inode, once a file was opened.
    orders: Option<[Ranks; 2]>,
    /// Opened in this pass.
    opened: Bits,
    /// Could not be opened ahead in this pass.
    refused: Bits,
    /// How many were opened.
    count: usize,
    /// Files opened again since the last new one, and the last file opened.
    again: u32,
    last: Option<u32>,
    /// When it was last listed or opened, for replacement.
    used: u64,
}

impl Folder {
    fn new(entries: Arc<[Entry]>, used: u64) -> Self {
        Self {
            opened: Bits::below(entries.len() as u32),
            refused: Bits::below(entries.len() as u32),
            entries,
            orders: None,
            count: 0,
            again: 0,
            last: None,
            used,
        }
    }

    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// One of them.
    #[must_use]
    pub fn entry(&self, entry: u32) -> Option<&Entry> {
        self.entries.get(entry as usize)
    }

    fn ranks(&self, order: Order) -> Option<&Ranks> {
        let [name, inode] = self.orders.as_ref()?;
        match order {
            Order::Listing => None,
            Order::Name => Some(name),
            Order::Inode => Some(inode),
        }
    }

    /// The rank of an entry in an order.
    #[must_use]
    pub fn rank(&self, order: Order, entry: u32) -> u32 {
        let ranks = self.ranks(order).map(|ranks| &ranks.ranks);
        let rank = ranks.and_then(|ranks| ranks.get(entry as usize));
        rank.copied().unwrap_or(entry)
    }

    /// The entry of a rank in an order.
    #[must_use]
    pub fn at(&self, order: Order, rank: u32) -> Option<u32> {
        let entry = match self.ranks(order) {
            Some(ranks) => *ranks.entries.get(rank as usize)?,
            None => rank,
        };
        ((entry as usize) < self.entries.len()).then_some(entry)
    }

    /// Whether this pass is not to open an entry ahead: it was opened, or refused.
    pub(crate) fn is_over(&self, entry: u32) -> bool {
        self.opened.has(entry) || self.refused.has(entry)
    }

    /// This pass is not to open an entry ahead any more.
    pub(crate) fn refuse(&mut self, entry: u32) {
        self.refused.set(entry);
    }

    fn begin_pass(&mut self) {
        self.opened.clear_all();
        self.refused.clear_all();
        (self.count, self.again, self.last) = (0, 0, None);
    }

    fn open(&mut self, entry: u32) -> Pass {
        if self.orders.is_none() {
            let name = Ranks::by_key(&self.entries, |entry| u64::from(entry.name_rank));
            let inode = Ranks::by_key(&self.entries, |entry| entry.inode);
            self.orders = Some([name, inode]);
        }
        if self.opened.has(entry) {
            if self.last == Some(entry) && self.count < self.entries.len() {
                return Pass::Again;
            }
            self.again = self.again.saturating_add(1);
            if self.count < self.entries.len() && self.again < AGAIN_MAX {
                self.last = Some(entry);
                return Pass::Again;
            }
            self.begin_pass();
        }
        let is_first = self.count == 0;
        self.opened.set(entry);
        self.count += 1;
        (self.again, self.last) = (0, Some(entry));
        if is_first { Pass::Begins } else { Pass::New }
    }

    fn bytes(&self) -> u64 {
        FOLDER_BYTES + ENTRY_BYTES * self.entries.len() as u64
    }
}

/// The folders that are known.
#[derive(Debug, Default)]
pub struct Folders {
    all: BTreeMap<FolderId, Folder>,
    clock: u64,
}

impl Folders {
    /// A folder was listed. True if its entries are others than before.
    pub fn list(&mut self, id: FolderId, entries: Arc<[Entry]>) -> bool {
        self.clock += 1;
        if let Some(known) = self.all.get_mut(&id)
            && known.entries == entries
        {
            known.again = AGAIN_MAX;
            known.last = None;
            known.used = self.clock;
            return false;
        }
        self.forget(id);
        self.all.insert(id, Folder::new(entries, self.clock));
        true
    }

    /// A file was opened; `None` if it is not known.
    pub fn open(&mut self, place: Place) -> Option<Pass> {
        self.clock += 1;
        let folder = self.all.get_mut(&place.folder)?;
        folder.entry(place.entry)?;
        folder.used = self.clock;
        Some(folder.open(place.entry))
    }

    /// A folder, if it is known.
    #[must_use]
    pub fn get(&self, id: FolderId) -> Option<&Folder> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: FolderId) -> Option<&mut Folder> {
        self.all.get_mut(&id)
    }

    /// An entry, if it is known.
    #[must_use]
    pub fn entry(&self, place: Place) -> Option<&Entry> {
        self.get(place.folder)?.entry(place.entry)
    }

    /// A folder is not known any more.
    pub fn forget(&mut self, id: FolderId) {
        self.all.remove(&id);
    }

    /// The one that was not listed or opened for longest.
    pub(crate) fn oldest(&self) -> Option<FolderId> {
        let oldest = self.all.iter().min_by_key(|(_, folder)| folder.used);
        oldest.map(|(id, _)| *id)
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Memory charged for them.
    pub(crate) fn bytes(&self) -> u64 {
        self.all.values().map(Folder::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(ranks: &[(u32, u64)]) -> Folders {
        let entry = |&(name_rank, inode)| Entry {
            name_rank,
            inode,
            bytes: 0,
        };
        let mut folders = Folders::default();
        folders.list(FolderId(0), ranks.iter().map(entry).collect());
        folders
    }

    fn open(folders: &mut Folders, entry: u32) -> Option<Pass> {
        let folder = FolderId(0);
        folders.open(Place { folder, entry })
    }

    #[test]
    fn each_order_is_a_permutation_whatever_the_ranks_are() {
        let mut folders = folder(&[(1, 12), (3, 10), (0, 11), (3, 10)]);
        open(&mut folders, 0);
        let folder = folders.get(FolderId(0)).unwrap();
        let order = |order| [0, 1, 2, 3].map(|rank| folder.at(order, rank).unwrap());
        assert_eq!(order(Order::Listing), [0, 1, 2, 3]);
        assert_eq!(order(Order::Name), [2, 0, 1, 3]);
        assert_eq!(order(Order::Inode), [1, 3, 2, 0]);
        for kind in [Order::Listing, Order::Name, Order::Inode] {
            let ranks = order(kind).map(|entry| folder.rank(kind, entry));
            assert_eq!(ranks, [0, 1, 2, 3], "{kind:?}");
            assert_eq!(folder.at(kind, 4), None);
        }
    }

    #[test]
    fn a_pass_ends_with_the_last_file_or_with_files_opened_again() {
        let mut folders = folder(&[(0, 0); 20]);
        assert_eq!(open(&mut folders, 20), None);
        assert_eq!(open(&mut folders, 5), Some(Pass::Begins));
        assert_eq!(open(&mut folders, 6), Some(Pass::New));
        for _ in 0..20 {
            assert_eq!(open(&mut folders, 6), Some(Pass::Again), "the same file");
        }
        for entry in 0..20 {
            open(&mut folders, entry);
        }
        assert_eq!(open(&mut folders, 0), Some(Pass::Begins), "all were opened");
        assert_eq!(open(&mut folders, 1), Some(Pass::New));
        let again = (0..AGAIN_MAX).map(|at| open(&mut folders, at % 2).unwrap());
        let again: Vec<Pass> = again.collect();
        assert_eq!(again.last(), Some(&Pass::Begins));
        assert!(again[..again.len() - 1].iter().all(|p| *p == Pass::Again));
    }
}
