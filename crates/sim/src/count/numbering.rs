//! Dense numbers for block numbers, in the order of first use.
//!
//! Used by the counting caches and the writer of `oracle-general`, whose arrays are by number. An
//! open hash table with linear probing over the mixer of splitmix64: the same on every machine,
//! never walked in its own order, and several times faster than a tree. A slot is four bytes and
//! at most three quarters are used, so an entry costs 14 to 19 bytes with its number.

use crate::random::mix;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    ids: Vec<u64>,
    /// A number plus one, or 0 for a free slot; a power of two of them.
    slots: Vec<u32>,
}

impl Numbering {
    /// The least number of slots.
    const SLOTS_MIN: usize = 64;

    /// How many different ones there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there were none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// What was numbered, by number.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The number of `id`, a new one if it has none; `None` if 2^32 - 2 are used up.
    pub fn number(&mut self, id: u64) -> Option<u32> {
        if (self.ids.len() + 1).saturating_mul(4) > self.slots.len().saturating_mul(3) {
            self.grow();
        }
        let slot = self.slot(id);
        match self.slots[slot] {
            0 => {
                let number = u32::try_from(self.ids.len()).ok()?;
                self.slots[slot] = number.checked_add(1).filter(|next| *next < u32::MAX)?;
                self.ids.push(id);
                Some(number)
            }
            used => Some(used - 1),
        }
    }

    /// Where `id` is, or else a free slot. There is one, because a quarter of them is.
    fn slot(&self, id: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = mix(id) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return slot,
                used if self.ids[used as usize - 1] == id => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(Self::SLOTS_MIN);
        self.slots = vec![0; slots];
        for (next, id) in (1..).zip(&self.ids) {
            let mut slot = mix(*id) as usize & (slots - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_are_those_of_a_tree() {
        let (mut random, mut numbering) = (Random::new(3), Numbering::default());
        let mut tree = BTreeMap::new();
        for _ in 0..20_000 {
            let id = random.magnitude(14);
            let next = tree.len() as u32;
            let wanted = *tree.entry(id).or_insert(next);
            assert_eq!(numbering.number(id), Some(wanted));
        }
        assert_eq!(numbering.len(), tree.len());
        assert!(
            tree.iter()
                .all(|(id, number)| numbering.ids()[*number as usize] == *id)
        );
    }
}
