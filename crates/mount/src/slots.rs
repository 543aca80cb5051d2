//! Numbers for open files and folders: a number for each, and the entry of a number.
//!
//! Used by the [file systems](super::mounted) for FUSE's file handles. The smallest free number is given, so
//! numbers stay small; a look-up takes a shared lock and clones a pointer, so that a file can be
//! closed while it is read.

use std::sync::{Arc, PoisonError, RwLock};

use rustix::io::Errno;

/// See the [module](self).
#[derive(Debug)]
pub struct Slots<T> {
    slots: RwLock<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    things: Vec<Option<Arc<T>>>,
    free: std::collections::BTreeSet<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slots: RwLock::new(Inner {
                things: Vec::new(),
                free: std::collections::BTreeSet::new(),
            }),
        }
    }
}

impl<T> Slots<T> {
    /// Gives an entry a number.
    pub fn add(&self, thing: T) -> u64 {
        let mut inner = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let thing = Some(Arc::new(thing));
        let number = match inner.free.pop_first() {
            Some(number) => {
                inner.things[number] = thing;
                number
            }
            None => {
                inner.things.push(thing);
                inner.things.len() - 1
            }
        };
        number as u64
    }

    /// The entry with this number.
    ///
    /// # Errors
    /// `EBADF` if there is none.
    pub fn get(&self, number: u64) -> Result<Arc<T>, Errno> {
        let inner = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let thing = usize::try_from(number)
            .ok()
            .and_then(|n| inner.things.get(n)?.clone());
        thing.ok_or(Errno::BADF)
    }

    /// Takes the entry with this number out; the number is free again.
    pub fn remove(&self, number: u64) -> Option<Arc<T>> {
        let mut inner = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let number = usize::try_from(number).ok()?;
        let thing = inner.things.get_mut(number)?.take()?;
        inner.free.insert(number);
        Some(thing)
    }

    /// All entries, by number.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<T>> {
        let inner = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        inner.things.iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_free_number_is_given_again() {
        let slots = Slots::default();
        assert_eq!([slots.add('a'), slots.add('b'), slots.add('c')], [0, 1, 2]);
        assert_eq!(slots.remove(0).as_deref(), Some(&'a'));
        assert_eq!(slots.remove(0), None);
        assert_eq!(slots.get(0), Err(Errno::BADF));
        assert_eq!(slots.add('d'), 0);
        assert_eq!(slots.all().iter().map(|c| **c).collect::<String>(), "dbc");
        assert_eq!(slots.get(u64::MAX), Err(Errno::BADF));
    }
}
