//! A folder that is known: its listing in three orders, and the files that were read.

use std::path::PathBuf;
use std::sync::Arc;

use forerun_core::Nanos;
use forerun_core::next_file::Entry;

use crate::filler::{Folder, Listed, Listing};
use crate::limit::kernel_page;
use crate::windows::PAGE_BYTES;

/// A file that was missed before its folder was listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missed {
    pub(super) inode: u64,
    pub(super) opener: u64,
    pub(super) pages: u64,
}

#[derive(Debug)]
pub(super) struct Known {
    pub(super) at: Folder,
    /// Its path on the file system, if it is known.
    pub(super) inner: Option<PathBuf>,
    pub(super) domain: usize,
    pub(super) number: u32,
    pub(super) missed: Vec<Missed>,
    /// Whether the filler lists it.
    pub(super) is_asked: bool,
    pub(super) asked: Nanos,
    pub(super) used: Nanos,
    pub(super) listing: Option<Listing>,
    /// Entries by name and by inode, and the rank of each.
    pub(super) orders: [Vec<u32>; 2],
    pub(super) ranks: [Vec<u32>; 2],
    /// Files that this pass has read.
    pub(super) entered: Vec<bool>,
}

/// Orders of a folder, each forward and backward: that of its listing first.
const ORDERS: [(Option<usize>, bool); 6] = [
    (None, false),
    (Some(0), false),
    (Some(1), false),
    (None, true),
    (Some(0), true),
    (Some(1), true),
];

impl Known {
    /// The files of one page of the kernel that are ahead, in a row behind a file that was read, in the order in which they are read: up to
    /// this entry, or to an end of the folder.
    pub(super) fn unmarked(&self, to: Option<u32>, is_ahead: impl Fn(u32) -> bool) -> Vec<u32> {
        let Some(listing) = &self.listing else {
            return Vec::new();
        };
        let page = u64::from(kernel_page()) * PAGE_BYTES;
        let is_unmarked = |entry: u32| listing.1[entry as usize].bytes <= page && is_ahead(entry);
        let count = listing.1.len() as u32;
        for (order, is_backward) in ORDERS {
            let at = |rank: u32| match order {
                None => rank,
                Some(order) => self.orders[order][rank as usize],
            };
            let rank = |entry: u32| match order {
                None => entry,
                Some(order) => self.ranks[order][entry as usize],
            };
            // Ranks before the end, the last one first.
            let before: Box<dyn Iterator<Item = u32>> = match (to.map(rank), is_backward) {
                (end, false) => Box::new((0..end.unwrap_or(count)).rev()),
                (None, true) => Box::new(0..count),
                (Some(end), true) => Box::new(end + 1..count),
            };
            let mut row = Vec::new();
            for entry in before.map(at) {
                if is_unmarked(entry) {
                    row.push(entry);
                    continue;
                }
                if self.entered[entry as usize] && !row.is_empty() {
                    row.reverse();
                    return row;
                }
                break;
            }
        }
        Vec::new()
    }

    /// Its files as the engine sees them.
    pub(super) fn list(&mut self, listing: Listing) -> Arc<[Entry]> {
        let files = &listing.1;
        let sorted = |less: &dyn Fn(&Listed, &Listed) -> std::cmp::Ordering| {
            let mut order: Vec<u32> = (0..files.len() as u32).collect();
            order.sort_by(|one, other| less(&files[*one as usize], &files[*other as usize]));
            order
        };
        let orders = [
            sorted(&|one, other| one.name.cmp(&other.name)),
            sorted(&|one, other| one.inode.cmp(&other.inode)),
        ];
        self.ranks = orders.each_ref().map(|order| {
            let mut ranks = vec![0; order.len()];
            for (rank, entry) in (0..).zip(order) {
                ranks[*entry as usize] = rank;
            }
            ranks
        });
        self.orders = orders;
        self.entered = vec![false; files.len()];
        let entry = |(file, name_rank): (&Listed, &u32)| Entry {
            name_rank: *name_rank,
            inode: file.inode,
            bytes: file.bytes,
        };
        let entries = files.iter().zip(&self.ranks[0]).map(entry).collect();
        self.listing = Some(listing);
        entries
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    /// Files of these sizes, listed in the order of their names.
    fn listed(sizes: &[u64]) -> Known {
        let at = Folder {
            path: "/x".into(),
            device: (0, 0),
            inode: 1,
        };
        let mut known = Known {
            at: at.clone(),
            inner: None,
            domain: 0,
            number: 0,
            missed: Vec::new(),
            is_asked: false,
            asked: Nanos(0),
            used: Nanos(0),
            listing: None,
            orders: Default::default(),
            ranks: Default::default(),
            entered: Vec::new(),
        };
        let file = |(at, bytes): (usize, &u64)| Listed {
            name: CString::new(format!("{at:03}")).unwrap(),
            inode: 100 + at as u64,
            bytes: *bytes,
        };
        let files = sizes.iter().enumerate().map(file).collect();
        known.list(Arc::new((at, files)));
        known
    }

    #[test]
    fn files_of_a_page_were_read_where_their_reader_went_past_them() {
        let mut known = listed(&[9000, 10, 20, 9000, 30, 40]);
        let ahead = |entry: u32| entry != 0;
        assert_eq!(
            known.unmarked(Some(3), ahead),
            [0; 0],
            "nothing was read before"
        );
        known.entered[0] = true;
        assert_eq!(known.unmarked(Some(3), ahead), [1, 2]);
        assert_eq!(
            known.unmarked(Some(3), |entry| entry == 1),
            [0; 0],
            "2 would have been missed"
        );
        assert_eq!(known.unmarked(Some(1), ahead), [0; 0]);
        // At the end of the folder, and backward.
        assert_eq!(
            known.unmarked(None, ahead),
            [0; 0],
            "3 has a mark, which was not met"
        );
        known.entered[3] = true;
        assert_eq!(known.unmarked(None, ahead), [4, 5]);
        known.entered[0] = false;
        assert_eq!(known.unmarked(Some(0), ahead), [2, 1]);
    }
}
