//! A set of small numbers whose members are read in words.
//!
//! The [board](super::board) keeps the next uses of missing blocks in such sets. A policy that
//! weighs every missing block of two caches reads 64 places at a time and passes over those words
//! that cannot matter:
//!
//! ```text
//! places 3, 5, 64, 200    word 0: bits 3 and 5    word 1: bit 0    word 3: bit 8
//! ```
//!
//! Words without members are not kept, so the set takes as much as its members.

use alloc::collections::BTreeMap;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Positions {
    words: BTreeMap<u32, u64>,
}

const WORD_BITS: u32 = 64;

impl Positions {
    /// Adds a number; nothing changes if it is there.
    pub(super) fn insert(&mut self, number: u32) {
        *self.words.entry(number / WORD_BITS).or_default() |= 1 << (number % WORD_BITS);
    }

    /// Takes a number out; nothing changes if it is not there.
    pub(super) fn remove(&mut self, number: u32) {
        let index = number / WORD_BITS;
        if let Some(word) = self.words.get_mut(&index) {
            *word &= !(1 << (number % WORD_BITS));
            if *word == 0 {
                self.words.remove(&index);
            }
        }
    }

    /// The smallest member.
    #[must_use]
    pub(super) fn first(&self) -> Option<u32> {
        let (index, word) = self.words.first_key_value()?;
        Some(index * WORD_BITS + word.trailing_zeros())
    }

    /// The members before `end`, 64 numbers at a time and in order: the first of the numbers, and a
    /// bit for each of them that is in.
    pub(super) fn words(&self, end: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let words = self.words.range(..end.div_ceil(WORD_BITS));
        let words = words.map(move |(index, word)| {
            let base = index * WORD_BITS;
            let beyond = (base + (WORD_BITS - 1)).saturating_sub(end - 1);
            (base, word & (u64::MAX >> beyond))
        });
        words.filter(|(_, word)| *word != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

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
                let bits = |(base, word): (u32, u64)| {
                    (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| base + bit)
                };
                for end in [number, number + 130] {
                    let listed: Vec<u32> = set.words(end).flat_map(bits).collect();
                    prop_assert_eq!(listed, model.range(..end).copied().collect::<Vec<_>>());
                }
            }
        }
    }
}
