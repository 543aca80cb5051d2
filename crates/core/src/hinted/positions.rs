//! A set of small numbers that finds its first, its last and its next member in a few steps.
//!
//! The [board](super::board) keeps the next uses of resident and of missing blocks in such sets:
//! one bit a place in the reference order, and above each 64 words a word that says which of them
//! hold anything:
//!
//! ```text
//! level 2   [ 1 ]                                   64^3 places
//! level 1   [ 1 0 1 .. ] ..                         a bit for each word below that is not zero
//! level 0   [ 0 1 1 0 .. ][ 0 .. ][ 1 .. ] ..       a bit for each place
//! ```
//!
//! Insert, remove, first, last and next touch one word a level, upwards and down again: O(log n)
//! to the base 64, four levels for 16 million references. An eighth of a byte a reference,
//! whatever is in it; a balanced tree costs some ten times the time and grows with its members.

use alloc::vec::Vec;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Positions {
    /// From the places up. The last level, if there is any, is one word.
    levels: Vec<Vec<u64>>,
}

const WORD_BITS: u32 = 64;

impl Positions {
    /// Adds a number; nothing changes if it is there.
    pub fn insert(&mut self, number: u32) {
        self.reach(number);
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[(at / WORD_BITS) as usize];
            let was_empty = *word == 0;
            *word |= 1 << (at % WORD_BITS);
            if !was_empty {
                return;
            }
            at /= WORD_BITS;
        }
    }

    /// Takes a number out; nothing changes if it is not there.
    pub fn remove(&mut self, number: u32) {
        let mut at = number;
        for level in &mut self.levels {
            let Some(word) = level.get_mut((at / WORD_BITS) as usize) else {
                return;
            };
            *word &= !(1 << (at % WORD_BITS));
            if *word != 0 {
                return;
            }
            at /= WORD_BITS;
        }
    }

    /// Whether a number is in it.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        let word = |level: &Vec<u64>| level.get((number / WORD_BITS) as usize).copied();
        let found = self.levels.first().and_then(word).unwrap_or(0);
        found >> (number % WORD_BITS) & 1 == 1
    }

    /// The smallest number in it.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.descend(self.levels.len(), 0, u64::trailing_zeros)
    }

    /// The largest number in it.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.descend(self.levels.len(), 0, |word| {
            WORD_BITS - 1 - word.leading_zeros()
        })
    }

    /// The smallest number in it that is not below `number`.
    #[must_use]
    pub fn first_from(&self, number: u32) -> Option<u32> {
        let mut at = number;
        for (height, level) in self.levels.iter().enumerate() {
            let index = at / WORD_BITS;
            let word = *level.get(index as usize)? & (u64::MAX << (at % WORD_BITS));
            if word != 0 {
                let member = index * WORD_BITS + word.trailing_zeros();
                return self.descend(height, member, u64::trailing_zeros);
            }
            at = index + 1;
        }
        None
    }

    /// The words that hold the numbers from `from` to before `end`, each with the number its
    /// lowest bit stands for; bits outside are cleared, words without any are left out.
    pub fn words(&self, from: u32, end: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let places = self.levels.first().map_or(&[][..], Vec::as_slice);
        let begin = ((from / WORD_BITS) as usize).min(places.len());
        let stop = (end.div_ceil(WORD_BITS) as usize).clamp(begin, places.len());
        let words = places[begin..stop].iter().zip(begin as u32..);
        words
            .map(move |(word, index)| {
                let base = index * WORD_BITS;
                let low = u64::MAX << from.saturating_sub(base).min(WORD_BITS - 1);
                let beyond = (base + (WORD_BITS - 1)).saturating_sub(end.saturating_sub(1));
                let high = u64::MAX >> beyond.min(WORD_BITS - 1);
                (base, word & low & high)
            })
            .filter(|(_, word)| *word != 0)
    }

    /// Down from word `index` of the level below `height`, always to the bit that `choose` names.
    /// No word on the way is zero, but the topmost may be.
    fn descend(&self, height: usize, index: u32, choose: fn(u64) -> u32) -> Option<u32> {
        let mut at = index;
        for level in self.levels[..height].iter().rev() {
            let word = level[at as usize];
            if word == 0 {
                return None;
            }
            at = at * WORD_BITS + choose(word);
        }
        (!self.levels.is_empty()).then_some(at)
    }

    /// Makes room for a number.
    fn reach(&mut self, number: u32) {
        let mut words = (number / WORD_BITS) as usize + 1;
        if self
            .levels
            .first()
            .is_some_and(|level| level.len() >= words)
        {
            return;
        }
        let mut height = 0;
        loop {
            if height == self.levels.len() {
                let summary = self
                    .levels
                    .last()
                    .map_or_else(Vec::new, |below| summary(below));
                self.levels.push(summary);
            }
            let level = &mut self.levels[height];
            let needed = words.max(level.len());
            level.resize(needed, 0);
            height += 1;
            if needed == 1 {
                return;
            }
            words = needed.div_ceil(WORD_BITS as usize);
        }
    }
}

/// The level above one: a bit for each of its words that is not zero.
fn summary(below: &[u64]) -> Vec<u64> {
    let groups = below.chunks(WORD_BITS as usize);
    let bit = |(i, word): (usize, &u64)| u64::from(*word != 0) << i;
    groups
        .map(|group| group.iter().enumerate().map(bit).sum())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_answers_as_a_sorted_set_does(
            steps in prop::collection::vec((0u32..3, prop_oneof![0u32..200, 0u32..300_000]), 1..300),
        ) {
            let (mut set, mut model) = (Positions::default(), BTreeSet::new());
            for (step, number) in steps {
                if step == 0 {
                    set.remove(number);
                    model.remove(&number);
                } else {
                    set.insert(number);
                    model.insert(number);
                }
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert_eq!(set.last(), model.last().copied());
                prop_assert_eq!(set.first_from(number), model.range(number..).next().copied());
                prop_assert_eq!(set.contains(number), model.contains(&number));
                let end = number + 130;
                let listed: u32 = set.words(number, end).map(|(_, word)| word.count_ones()).sum();
                prop_assert_eq!(listed as usize, model.range(number..end).count());
            }
        }
    }
}
