//! Names of a listing, each once.
//!
//! Problem: an object `a` and keys below `a/` are one name, which stands for the folder. Keys are in the order of
//! their bytes, so others (`a-1`, `a.txt`) come between the two, and the end of a page as well. Some servers give a
//! folder again with the next page, or a page twice.
//!
//! Mechanism: an object at the end of a page is held back while a folder of its name can follow. Those are the last
//! key and beginnings of it, so they are few. The hashes of the last thousand names, at least, are kept.
//!
//! ```text
//! page 1   a  a-1  a-2    gives a-1: behind a-2 can come a/ and a-2/
//! page 2   a-3  a/        gives a/, a-2; at the end a-3
//! ```

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Instant;

use forerun_io::source::tree::Entry;

/// A name, its entry, and the time of the page that told it.
pub(crate) type Listed = (String, Entry, Instant);

/// Names with one hash are taken for one: with so few of them, once in 10^15 names.
const RECENT: usize = 1000;

/// Objects held back: more of them than beginnings of a key come from a server without an order of keys.
const HELD_MAX: usize = 1024;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Names {
    hasher: RandomState,
    older: HashSet<u64>,
    newer: HashSet<u64>,
    held: Vec<Listed>,
}

impl Names {
    /// The entries of a page of this time: its folders and its objects, and those held back before.
    pub(crate) fn page(
        &mut self,
        folders: Vec<String>,
        objects: Vec<(String, Entry)>,
        is_last: bool,
        as_of: Instant,
    ) -> Vec<Listed> {
        let as_key = |name: &str| format!("{name}/");
        let ends = folders.iter().map(|name| as_key(name));
        let ends = ends.chain(objects.iter().map(|(name, _)| name.clone()));
        let end = ends.max().unwrap_or_default();
        let shown: HashSet<String> = folders.iter().cloned().collect();
        let mut page: Vec<_> = folders
            .into_iter()
            .map(|name| (name, Entry::Folder, as_of))
            .collect();
        let objects = objects
            .into_iter()
            .map(|(name, entry)| (name, entry, as_of));
        let mut held = HashSet::new();
        for (name, entry, as_of) in std::mem::take(&mut self.held).into_iter().chain(objects) {
            if shown.contains(&name) {
                continue;
            }
            if is_last || as_key(&name) <= end || held.len() == HELD_MAX {
                page.push((name, entry, as_of));
            } else if held.insert(name.clone()) {
                self.held.push((name, entry, as_of));
            }
        }
        page
    }

    /// The objects held back, to list a page again from.
    pub(crate) fn held(&mut self) -> &mut Vec<Listed> {
        &mut self.held
    }

    /// Whether a name comes for the first time. MUST be asked for each name that is given.
    pub(crate) fn is_new(&mut self, name: &str) -> bool {
        let hash = self.hasher.hash_one(name);
        if self.older.contains(&hash) {
            return false;
        }
        if self.newer.len() >= RECENT && !self.newer.contains(&hash) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_io::source::tree::Stat;
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::SystemTime;

    fn object() -> Entry {
        Entry::Object(Stat {
            bytes: 1,
            modified: SystemTime::UNIX_EPOCH,
            version: None,
        })
    }

    /// Lists keys in pages of a size, each page `times` times; folders as `name/`.
    fn list(keys: &BTreeSet<String>, size: usize, times: usize) -> Vec<String> {
        let entries: BTreeSet<String> = keys
            .iter()
            .map(|key| {
                key.find('/')
                    .map_or(key.clone(), |at| key[..=at].to_owned())
            })
            .collect();
        let entries: Vec<_> = entries.into_iter().collect();
        let pages: Vec<_> = entries.chunks(size).collect();
        let (mut names, mut given) = (Names::default(), Vec::new());
        for (number, page) in pages.iter().enumerate() {
            for time in 0..times {
                let (folders, objects): (Vec<_>, Vec<_>) =
                    page.iter().cloned().partition(|key| key.ends_with('/'));
                let folders = folders
                    .iter()
                    .map(|key| key.trim_end_matches('/').to_owned());
                let objects = objects.into_iter().map(|key| (key, object()));
                let is_last = number + 1 == pages.len() && time + 1 == times;
                let (folders, objects) = (folders.collect(), objects.collect());
                for (name, entry, _) in names.page(folders, objects, is_last, Instant::now()) {
                    if names.is_new(&name) {
                        given.push(match entry {
                            Entry::Folder => name + "/",
                            Entry::Object(_) => name,
                        });
                    }
                }
                assert!(names.held.len() <= 8, "{:?}", names.held);
            }
        }
        given.sort();
        given
    }

    #[test]
    fn a_name_stands_once_whatever_the_pages_are() {
        // All keys of up to three of these characters: `-` and `.` are before `/`, `0` and `a` behind.
        let parts = ["", "-", ".", "/", "0", "a"];
        let mut all = BTreeSet::new();
        for one in parts {
            for two in parts {
                for three in parts {
                    all.insert(format!("a{one}{two}{three}"));
                }
            }
        }
        let all: Vec<_> = all.into_iter().filter(|key| !key.contains("//")).collect();
        for step in 1..9 {
            let keys: BTreeSet<String> = all.iter().step_by(step).cloned().collect();
            let mut expected = BTreeMap::new();
            for key in &keys {
                let (name, is_folder) = match key.split_once('/') {
                    Some((folder, _)) => (folder, true),
                    None => (key.as_str(), false),
                };
                *expected.entry(name).or_insert(false) |= is_folder;
            }
            let expected = expected
                .into_iter()
                .map(|(name, is_folder)| match is_folder {
                    true => format!("{name}/"),
                    false => name.to_owned(),
                });
            let mut expected: Vec<_> = expected.collect();
            expected.sort();
            for size in 1..keys.len() {
                for times in 1..3 {
                    assert_eq!(
                        list(&keys, size, times),
                        expected,
                        "{size}, {step}, {times}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_store_without_an_order_has_each_name_once() {
        let mut names = Names::default();
        let mut given = HashSet::new();
        for page in 0..300 {
            let key = |number| format!("{:03}", (page * 37 + number * 101) % 997);
            let folders = if page == 200 {
                vec![key(0)]
            } else {
                Vec::new()
            };
            let objects = (1..4).map(|number| (key(number), object())).collect();
            for (name, ..) in names.page(folders, objects, page == 299, Instant::now()) {
                assert_eq!(names.is_new(&name), given.insert(name.clone()), "{name}");
            }
        }
        assert!(names.held.is_empty() && given.len() > 500);
    }
}
