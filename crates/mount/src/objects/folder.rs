//! An open folder: its listing, as far as the kernel has read it.
//!
//! The kernel asks for names from a position on, a few at a time and mostly in order. One listing is kept
//! open between its questions, with the one name that did not fit into the last answer; a question from
//! another position begins a listing anew.
//!
//! ```text
//! position   0   1    2..           `.` and `..`, then names as the store lists them
//! from 0:    .   ..   a  b          full at c: kept
//! from 4:                  c  d     goes on
//! ```
//!
//! A fault behind a name that was given is kept, too: the kernel would take the answer for an error, and lose the names.

use std::io;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use forerun_io::source::tree::{Entry, RecalledNames};

use super::NAME_BYTES_MAX;
use crate::fs::walk::Gathered;
use crate::lock;

/// Positions before the first name of the store.
const DOTS: [&str; 2] = [".", ".."];

struct State {
    names: RecalledNames,
    /// Position of the next name.
    at: u64,
    /// It, or the fault in its place, if it was taken from the listing.
    kept: Option<io::Result<(String, Entry, Instant)>>,
}

/// See the [module](self).
pub(super) struct Folder {
    /// Whether a line was written about a name that no file can have.
    is_told: Arc<AtomicBool>,
    state: Mutex<Option<State>>,
    /// Objects for a [walk](crate::fs::walk).
    pub(super) gathered: Mutex<Gathered>,
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Folder")
    }
}

impl Folder {
    /// A folder that gathers so many objects at most. One line is written about names that no file can have.
    pub(super) fn new(gathers: usize, is_told: Arc<AtomicBool>) -> Self {
        Self {
            is_told,
            state: Mutex::default(),
            gathered: Gathered::new(gathers).into(),
        }
    }

    /// Gives names from a position on, each with its time and the position behind it, until one is not taken; whether
    /// there are no more. After a fault the listing begins anew.
    pub(super) fn read(
        &self,
        from: u64,
        list: impl FnOnce() -> io::Result<RecalledNames>,
        take: &mut dyn FnMut(&str, &Entry, Instant, u64) -> bool,
    ) -> io::Result<bool> {
        let mut is_any_taken = false;
        for (dot, at) in DOTS.into_iter().zip(0..) {
            if from <= at {
                if !take(dot, &Entry::Folder, Instant::now(), at + 1) {
                    return Ok(false);
                }
                is_any_taken = true;
            }
        }
        let from = from.max(DOTS.len() as u64);
        let mut state = lock(&self.state);
        let listing = match state.take() {
            Some(listing) if listing.at == from => listing,
            _ => State {
                names: list().unwrap_or_else(|error| Box::new(iter::once(Err(error)))),
                at: DOTS.len() as u64,
                kept: None,
            },
        };
        let listing = state.insert(listing);
        loop {
            let (name, entry, as_of) = match listing.next(&self.is_told) {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(true),
                Err(error) if is_any_taken => {
                    listing.kept = Some(Err(error));
                    return Ok(false);
                }
                Err(error) => {
                    *state = None;
                    return Err(error);
                }
            };
            if listing.at < from {
                listing.at += 1;
            } else if take(&name, &entry, as_of, listing.at + 1) {
                listing.at += 1;
                is_any_taken = true;
            } else {
                listing.kept = Some(Ok((name, entry, as_of)));
                return Ok(false);
            }
        }
    }
}

impl State {
    /// The next name that programs can use.
    fn next(&mut self, is_told: &AtomicBool) -> io::Result<Option<(String, Entry, Instant)>> {
        if let Some(kept) = self.kept.take() {
            return kept.map(Some);
        }
        for next in self.names.by_ref() {
            let (name, entry, as_of) = next?;
            let dots = DOTS.contains(&name.as_str());
            if !name.is_empty()
                && !dots
                && name.len() <= NAME_BYTES_MAX
                && !name.contains(['/', '\0'])
            {
                return Ok(Some((name, entry, as_of)));
            }
            if !is_told.swap(true, Ordering::Relaxed) {
                let bytes = name.len();
                tracing::warn!(
                    "the name {name:?} of {bytes} bytes is none of a file (1 to {NAME_BYTES_MAX}): such objects are left out"
                );
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Reads a folder of these names, so many at a time; and how often it was listed.
    fn read_all(names: &[&str], at_once: usize, from: &[u64]) -> (Vec<String>, u32) {
        let (folder, lists) = (Folder::new(0, Arc::default()), Cell::new(0));
        let list = || {
            lists.set(lists.get() + 1);
            let now = Instant::now();
            let names: Vec<_> = names
                .iter()
                .map(|name| Ok(((*name).to_owned(), Entry::Folder, now)))
                .collect();
            Ok(Box::new(names.into_iter()) as RecalledNames)
        };
        let (mut read, mut next) = (Vec::new(), 0);
        for from in from.iter().copied().map(Some).chain([None; 20]) {
            let (mut count, from) = (0, from.unwrap_or(next));
            let mut take = |name: &str, _: &Entry, _, behind| {
                if count == at_once {
                    return false;
                }
                count += 1;
                read.push(name.to_owned());
                next = behind;
                true
            };
            folder.read(from, list, &mut take).unwrap();
        }
        (read, lists.get())
    }

    #[test]
    fn every_name_comes_once_however_many_fit() {
        for at_once in 1..8 {
            let (read, lists) = read_all(&["a", "b", "c", "d"], at_once, &[]);
            assert_eq!(read, [".", "..", "a", "b", "c", "d"], "{at_once} at once");
            assert_eq!(lists, 1);
        }
    }

    #[test]
    fn another_position_begins_anew_and_gives_the_same_names() {
        let (read, lists) = read_all(&["a", "b", "c"], 2, &[0, 4, 3]);
        assert_eq!(read, [".", "..", "c", "b", "c"]);
        assert_eq!(lists, 3);
    }

    #[test]
    fn names_that_programs_cannot_use_are_left_out() {
        let long = "n".repeat(256);
        let (read, _) = read_all(&["", ".", "..", "a/b", "a\0", &long, "ok"], 100, &[]);
        assert_eq!(read, [".", "..", "ok"]);
    }

    /// A fault in the middle of an answer, behind the dots, and at once.
    #[test]
    fn a_fault_comes_behind_the_names_before_it_and_is_no_end() {
        for names in [3, 0] {
            let folder = Folder::new(0, Arc::default());
            let list = || {
                let now = Instant::now();
                let names = (0..names).map(move |name| Ok((name.to_string(), Entry::Folder, now)));
                let fault = iter::once_with(|| Err(io::ErrorKind::Other.into()));
                Ok(Box::new(names.chain(fault)) as RecalledNames)
            };
            let mut from = 0;
            let mut take = |_: &str, _: &Entry, _, next| {
                from = next;
                true
            };
            assert!(!folder.read(0, list, &mut take).unwrap());
            assert_eq!(from, 2 + names);
            for _ in 0..2 {
                let mut none = |name: &str, _: &Entry, _, _| panic!("{name}");
                assert!(folder.read(from, list, &mut none).is_err());
            }
        }
    }
}
