//! Pages of listings that are in memory.
//!
//! Problem: a program may stay in an open folder for as long as it likes, and each has a page of up to 1,000 names.
//!
//! Mechanism: the pages of all listings of a client have one bound. Beyond it the oldest page is dropped; its listing
//! asks for it again when its reader goes on.
//!
//! ```text
//! 500 folders are open, 330 KB of names each     the newest 12 are in memory
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::names::Listed;

/// All pages together, those of one listing always. Twelve of the longest file names.
const BYTES_MAX: usize = 4 << 20;

/// Of a name, beside its bytes: entry, version, allocations.
pub(crate) const NAME_BYTES: usize = 150;

/// The names of a page that its reader has not had.
#[derive(Default)]
struct Left {
    names: VecDeque<Listed>,
    is_dropped: bool,
}

/// A page of one listing.
#[derive(Clone, Default)]
pub(crate) struct Page(Arc<Mutex<Left>>);

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Pages(Mutex<VecDeque<(Weak<Mutex<Left>>, usize)>>);

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pages")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Page {
    /// The next name.
    pub(crate) fn next(&self) -> Option<Listed> {
        lock(&self.0).names.pop_front()
    }

    /// Whether it was dropped with names that its reader has not had; told once.
    pub(crate) fn was_dropped(&self) -> bool {
        mem::take(&mut lock(&self.0).is_dropped)
    }

    pub(crate) fn clear(&self) {
        *lock(&self.0) = Left::default();
    }
}

impl Pages {
    /// Keeps a page, and drops others beyond the bound.
    pub(crate) fn keep(&self, names: Vec<Listed>) -> Page {
        let bytes = names.iter().map(|(name, ..)| name.len() + NAME_BYTES).sum();
        let page = Page::default();
        lock(&page.0).names = names.into();
        let mut kept = lock(&self.0);
        kept.retain(|(page, _)| page.strong_count() > 0);
        kept.push_back((Arc::downgrade(&page.0), bytes));
        let mut all: usize = kept.iter().map(|(_, bytes)| bytes).sum();
        while all > BYTES_MAX && kept.len() > 1 {
            let Some((oldest, bytes)) = kept.pop_front() else {
                break;
            };
            all -= bytes;
            if let Some(oldest) = oldest.upgrade() {
                let mut left = lock(&oldest);
                left.is_dropped = !left.names.is_empty();
                left.names = VecDeque::new();
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_io::source::tree::Entry;
    use std::time::Instant;

    #[test]
    fn the_oldest_pages_beyond_the_bound_are_dropped() {
        let pages = Pages::default();
        let as_of = Instant::now();
        let names = || {
            (0..1000)
                .map(|n| (format!("{n:0200}"), Entry::Folder, as_of))
                .collect()
        };
        let kept: Vec<Page> = (0..500).map(|_| pages.keep(names())).collect();
        let dropped = kept.iter().filter(|page| page.was_dropped()).count();
        assert_eq!(dropped, 500 - BYTES_MAX / (1000 * (200 + NAME_BYTES)));
        assert!(kept[0].next().is_none() && !kept[0].was_dropped());
        assert_eq!(
            kept[499].next(),
            Some((format!("{:0200}", 0), Entry::Folder, as_of))
        );
        drop(kept);
        let _page = pages.keep(names());
        assert_eq!(lock(&pages.0).len(), 1);
    }
}
