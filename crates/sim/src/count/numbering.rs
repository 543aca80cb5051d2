//! Dense numbers for block numbers, in the order of first use.
//!
//! Used by the counting caches, by simulations of traces and by the writer of `oracle-general`,
//! whose arrays are by number. An open hash table with linear probing over the mixer of
//! splitmix64: the same on every machine, never walked in its own order, and several times faster
//! than a tree. A slot is four bytes and at most three quarters are used, so an entry costs 14 to
//! 19 bytes with its number; two more for several *spaces*, such as devices that number their
//! blocks each for itself.
//!
//! A lookup is two cache misses, one after the other. [`Numbering::look_ahead`] makes those of a batch of lookups overlap: it
//! reads the slots of all, then the ids of all, and none of these reads waits for another.

use std::hint::black_box;

use crate::random::mix;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    ids: Vec<u64>,
    /// By number, which space it is of; nothing while all are of space 0.
    spaces: Vec<u16>,
    /// A number plus one, or 0 for a free slot; a power of two of them.
    slots: Vec<u32>,
}

impl Numbering {
    /// The least number of slots.
    const SLOTS_MIN: usize = 64;

    /// Number of different ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there were none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The numbered blocks, by number.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Frees the lookup table, once all numbers are given out: nothing is [found](Self::find) any
    /// more, and a further numbering costs the table again.
    pub fn forget_lookup(&mut self) {
        self.slots = Vec::new();
    }

    /// Which space a number is of.
    #[must_use]
    pub fn space(&self, number: u32) -> u16 {
        self.spaces.get(number as usize).copied().unwrap_or(0)
    }

    /// The number of `id`, a new one if it has none; `None` if 2^32 - 2 are used up.
    pub fn number(&mut self, id: u64) -> Option<u32> {
        self.number_in(0, id)
    }

    /// The same for the `id` of this space.
    pub fn number_in(&mut self, space: u16, id: u64) -> Option<u32> {
        if (self.ids.len() + 1).saturating_mul(4) > self.slots.len().saturating_mul(3) {
            self.grow();
        }
        let slot = self.slot(space, id);
        match self.slots[slot] {
            0 => {
                let number = u32::try_from(self.ids.len()).ok()?;
                self.slots[slot] = number.checked_add(1).filter(|next| *next < u32::MAX)?;
                if space > 0 || !self.spaces.is_empty() {
                    self.spaces.resize(self.ids.len(), 0);
                    self.spaces.push(space);
                }
                self.ids.push(id);
                Some(number)
            }
            used => Some(used - 1),
        }
    }

    /// Most lookups of a batch: its reads are as many as a processor has under way at once.
    pub const BATCH: usize = 32;

    /// Brings what the lookups of a batch, at most [`Self::BATCH`], will read into the processor's caches.
    pub fn look_ahead(&self, batch: impl Iterator<Item = (u16, u64)>) {
        if self.slots.is_empty() {
            return;
        }
        let (mask, mut used) = (self.slots.len() - 1, [0; Self::BATCH]);
        for (used, (space, id)) in used.iter_mut().zip(batch) {
            *used = self.slots[hash(space, id) & mask];
        }
        let ids = used.into_iter();
        let ids = ids.filter_map(|used| self.ids.get((used as usize).wrapping_sub(1)));
        black_box(ids.fold(0, |all, id| all ^ id));
    }

    /// The number of the `id` of this space, if it has one.
    #[must_use]
    pub fn find(&self, space: u16, id: u64) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.slot(space, id)].checked_sub(1)
    }

    /// Where the `id` is, or else a free slot. There is one, because a quarter of them is.
    fn slot(&self, space: u16, id: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash(space, id) & mask;
        loop {
            match self.slots[slot] {
                0 => return slot,
                used if self.ids[used as usize - 1] == id && self.space(used - 1) == space => {
                    return slot;
                }
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        // From the numbers given out, as the table may have been given back.
        let slots = (self.ids.len() * 2).next_power_of_two();
        let slots = slots.max(Self::SLOTS_MIN);
        // The old table goes first: the new one is made from the ids alone.
        self.slots = Vec::new();
        self.slots = vec![0; slots];
        for (next, id) in (1..).zip(&self.ids) {
            let mut slot = hash(self.space(next - 1), *id) & (slots - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = next;
        }
    }
}

/// Ids of several spaces that follow each other must not all meet in one place: the factor is
/// splitmix64's own step, odd and without a pattern.
fn hash(space: u16, id: u64) -> usize {
    mix(id.wrapping_add(u64::from(space).wrapping_mul(0x9e37_79b9_7f4a_7c15))) as usize
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
        for at in 0..20_000 {
            // The first are all of space 0, as in a trace of one device.
            let space = if at < 500 { 0 } else { random.below(3) as u16 };
            let id = random.magnitude(14);
            let next = tree.len() as u32;
            let known = tree.get(&(space, id)).copied();
            assert_eq!(numbering.find(space, id), known);
            let wanted = *tree.entry((space, id)).or_insert(next);
            assert_eq!(numbering.number_in(space, id), Some(wanted));
        }
        assert_eq!(numbering.len(), tree.len());
        assert!(tree.iter().all(|(&(space, id), &number)| {
            numbering.ids()[number as usize] == id && numbering.space(number) == space
        }));
    }
}
