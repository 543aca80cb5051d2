//! Dense numbers of live objects: readers, files, reads.
//!
//! The driver numbers these for the engine. The lowest free number is given out first, so one
//! thread doing one thing at a time always uses the same numbers, and journals of two runs are
//! equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Values under dense numbers.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    slots: Vec<Option<T>>,
    free: BinaryHeap<Reverse<u32>>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: BinaryHeap::new(),
        }
    }
}

impl<T> Numbered<T> {
    /// The number the next value gets.
    pub(crate) fn next(&self) -> u32 {
        self.free
            .peek()
            .map_or(self.slots.len() as u32, |Reverse(number)| *number)
    }

    /// Keeps a value under the lowest free number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(Reverse(number)) => {
                self.slots[number as usize] = Some(value);
                number
            }
            None => {
                self.slots.push(Some(value));
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Gives a number back.
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(Reverse(number));
        Some(value)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// Every number in use and its value, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(number, value)| Some((number as u32, value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_next() {
        let mut numbered = Numbered::default();
        assert_eq!(
            (0..4).map(|i| numbered.insert(i)).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
        assert_eq!(
            (numbered.remove(2), numbered.remove(1), numbered.remove(1)),
            (Some(2), Some(1), None)
        );
        assert_eq!(numbered.next(), 1);
        assert_eq!(
            (numbered.insert(8), numbered.insert(9), numbered.insert(10)),
            (1, 2, 4)
        );
        assert_eq!(numbered.iter().count(), 5);
    }
}
