//! Files that are kept open because reads of them were announced.
//!
//! Problem: the engine drops the announced reads of a file that no reader has open. A program that announces reads of
//! many files lets go of each at once, or never opens it itself; the reads come later.
//!
//! Mechanism: a reader of each announced file is kept until its reads are over. The engine has one order of
//! references, and a reader is at most 64 away from its place in it. With `ended` references read, missed or
//! dropped, every place before `ended - window` is over. Example: the last reference of a file is the 500th of all; it
//! is let go when 565 have ended, or all. Announced reads of which none came for 15 minutes do not come: a job that is
//! queued behind another one or computes between two epochs has begun by then.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use forerun_core::Ledger;

use crate::source::file::descriptor_limit;

/// Distance of readers from their place in the order: the engine's most (`docs/design/0007-live-hints.md`).
const WINDOW: u64 = 64;

/// See the [module](self).
const IDLE_MAX: Duration = Duration::from_secs(15 * 60);

/// Of the descriptors that the process may have, one in so many is for announced files at most: the others are for
/// those that programs have open.
const DESCRIPTORS_PART: u64 = 4;

/// Most files that are kept, of so many that are wanted.
#[must_use]
pub fn most(wanted: u64) -> usize {
    let most = wanted.min(descriptor_limit() / DESCRIPTORS_PART);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Readers of announced files by their keys. See the [module](self).
#[derive(Debug)]
pub struct Kept<K, V> {
    /// With the number of references that had been announced with the last one of the file.
    files: HashMap<K, (V, u64)>,
    /// How many references had ended when one more had, and when that was.
    moved: Option<(u64, Instant)>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self {
            files: HashMap::new(),
            moved: None,
        }
    }
}

impl<K: Hash + Eq, V> Kept<K, V> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The one of a key.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.files.get(key).map(|(value, _)| value)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.files.get_mut(key).map(|(value, _)| value)
    }

    /// Keeps one, after so many references were announced; the one that was kept in its place.
    pub fn keep(&mut self, key: K, value: V, announced: u64) -> Option<V> {
        // A new announcement is not idle.
        self.moved = None;
        let before = self.files.insert(key, (value, announced));
        before.map(|(value, _)| value)
    }

    /// Keeps one no longer.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.files.remove(key).map(|(value, _)| value)
    }

    /// Those whose announced reads are over by now, and all when none of the reads came for long.
    #[must_use]
    pub fn over(&mut self, ledger: &Ledger, now: Instant) -> Vec<V> {
        let ended = ledger.hints_read + ledger.hints_missed + ledger.hints_dropped;
        let since = match self.moved {
            Some((before, since)) if before == ended => since,
            _ => now,
        };
        self.moved = Some((ended, since));
        let all = ended == ledger.hints || now.duration_since(since) >= IDLE_MAX;
        let is_over = |last: u64| all || ended > last + WINDOW;
        let over = self.files.extract_if(|_, (_, last)| is_over(*last));
        over.map(|(_, (value, _))| value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Kept<&'static str, u64> {
        let mut kept = Kept::default();
        for (key, last) in [("a", 500), ("b", 501)] {
            assert_eq!(kept.keep(key, last, last), None);
        }
        kept
    }

    /// The counters of an order of so many references, of which so many have ended.
    fn order(hints: u64, ended: u64) -> Ledger {
        Ledger {
            hints,
            hints_read: ended - ended / 3,
            hints_missed: ended / 3 - ended / 9,
            hints_dropped: ended / 9,
            ..Ledger::default()
        }
    }

    #[test]
    fn a_file_is_over_a_window_after_its_last_reference() {
        let (mut kept, now) = (kept(), Instant::now());
        for (ended, over) in [
            (0, vec![]),
            (564, vec![]),
            (565, vec![500]),
            (566, vec![501]),
        ] {
            assert_eq!(kept.over(&order(2000, ended), now), over, "after {ended}");
        }
        assert!(kept.is_empty());
    }

    #[test]
    fn a_file_that_is_announced_again_is_kept_for_its_later_references() {
        let (mut kept, now) = (kept(), Instant::now());
        assert_eq!(kept.keep("a", 900, 900), Some(500));
        assert_eq!(kept.over(&order(2000, 566), now), [501]);
        assert_eq!((kept.get("a"), kept.len()), (Some(&900), 1));
        assert_eq!(kept.over(&order(2000, 965), now), [900]);
    }

    #[test]
    fn all_are_over_with_the_order_or_when_none_of_it_is_read_for_long() {
        let now = Instant::now();
        assert_eq!(kept().over(&order(501, 501), now).len(), 2);
        let (mut idle, second) = (kept(), Duration::from_secs(1));
        for (ended, after) in [
            (3, Duration::ZERO),
            (3, IDLE_MAX - second),
            // One more was read.
            (4, IDLE_MAX),
            (4, 2 * IDLE_MAX - second),
        ] {
            assert!(idle.over(&order(501, ended), now + after).is_empty());
        }
        assert_eq!(idle.over(&order(501, 4), now + 2 * IDLE_MAX).len(), 2);
        // A new announcement is not idle.
        idle.keep("c", 501, 501);
        assert!(idle.over(&order(501, 4), now + 4 * IDLE_MAX).is_empty());
    }
}
