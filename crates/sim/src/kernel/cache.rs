//! The page cache: which pages are there or on their way, which have a mark, and which go when others come.
//!
//! One list in the order in which pages came, read or not, as is the kernel's of pages that were read once. The oldest go.
//! Where all are on their way there is no room, and the kernel reads no further ahead:
//!
//! ```text
//! oldest  A0 A1 B0 B1 A2 A3 ..  newest        A2 comes where B0 is the oldest: B0 goes, and if B comes to it, it is missing
//! ```
//!
//! Pages that are read again are not kept for longer.

use std::collections::{BTreeMap, VecDeque};

/// A page: number of the file, number in it.
pub(super) type Page = (usize, u64);

#[derive(Clone, Copy, Debug)]
struct Held {
    /// The request that brings it, as long as that is on its way.
    request: Option<u64>,
    has_mark: bool,
    is_read: bool,
}

/// A page, as a reader finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// It is missing.
    Missing,
    /// This request brings it.
    Coming(u64),
    /// It is there.
    There,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Cache {
    pages: BTreeMap<Page, Held>,
    order: VecDeque<Page>,
    pages_max: usize,
    /// Pages that went unread.
    pub(super) unread: u64,
}

impl Cache {
    pub(super) fn new(pages_max: u64) -> Self {
        Self {
            pages: BTreeMap::new(),
            order: VecDeque::new(),
            pages_max: usize::try_from(pages_max).unwrap_or(usize::MAX),
            unread: 0,
        }
    }

    pub(super) fn holds(&self, page: Page) -> bool {
        self.pages.contains_key(&page)
    }

    pub(super) fn find(&self, page: Page) -> Found {
        match self.pages.get(&page) {
            None => Found::Missing,
            Some(held) => held.request.map_or(Found::There, Found::Coming),
        }
    }

    /// Whether a page has a mark, which it loses.
    pub(super) fn take_mark(&mut self, page: Page) -> bool {
        let held = self.pages.get_mut(&page);
        held.is_some_and(|held| std::mem::take(&mut held.has_mark))
    }

    /// A page was read.
    pub(super) fn read(&mut self, page: Page) {
        if let Some(held) = self.pages.get_mut(&page) {
            held.is_read = true;
        }
    }

    /// Whether there is room for one more page, for which the oldest may go.
    pub(super) fn makes_room(&mut self) -> bool {
        while self.pages.len() >= self.pages_max {
            let Some(page) = self.order.pop_front() else {
                return false;
            };
            let gone = self.pages.remove(&page);
            self.unread += u64::from(gone.is_some_and(|held| !held.is_read));
        }
        true
    }

    /// A page comes with this request.
    pub(super) fn add(&mut self, page: Page, request: u64, has_mark: bool) {
        let held = Held {
            request: Some(request),
            has_mark,
            is_read: false,
        };
        self.pages.insert(page, held);
    }

    /// A page is there.
    pub(super) fn came(&mut self, page: Page) {
        if let Some(held) = self.pages.get_mut(&page) {
            held.request = None;
            self.order.push_back(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_page_goes_read_or_not_but_none_on_its_way() {
        let mut cache = Cache::new(2);
        cache.add((0, 0), 7, false);
        cache.add((0, 1), 8, true);
        assert!(!cache.makes_room(), "both are on their way");
        cache.came((0, 1));
        let found = [(0, 0), (0, 1), (0, 2)].map(|page| cache.find(page));
        assert_eq!(found, [Found::Coming(7), Found::There, Found::Missing]);
        assert!(cache.take_mark((0, 1)) && !cache.take_mark((0, 1)));
        assert!(cache.makes_room());
        assert_eq!((cache.find((0, 1)), cache.unread), (Found::Missing, 1));
        cache.came((0, 0));
        cache.read((0, 0));
        cache.add((1, 0), 9, false);
        assert!(cache.makes_room() && !cache.holds((0, 0)) && cache.holds((1, 0)));
        assert_eq!(cache.unread, 1);
    }
}
