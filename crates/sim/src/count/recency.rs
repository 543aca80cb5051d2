//! Blocks by the time of their last use: the order in which LRU gives them up.
//!
//! A doubly linked list in one array by block number, eight bytes a block:
//!
//! ```text
//! oldest <-> .. <-> .. <-> newest      a block that is not resident is in no list
//!   given up             used last
//! ```
//!
//! Used by the host that streams; it has numbers only, which must be
//! dense, because the array reaches to the largest.

use std::hint::black_box;

/// No block.
const NONE: u32 = u32::MAX;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Recency {
    /// Per block: the neighbour used after it and the one used before it. The newest block's
    /// newer neighbour is itself, and a block that is not resident has no newer one.
    links: Vec<Link>,
    newest: u32,
    oldest: u32,
    resident: usize,
    capacity: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

const ABSENT: Link = Link {
    newer: NONE,
    older: NONE,
};

impl Recency {
    /// No resident blocks, and memory for a given number of them.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            links: Vec::new(),
            newest: NONE,
            oldest: NONE,
            resident: 0,
            capacity,
        }
    }

    /// The same, with memory for so many different blocks; more may come.
    #[must_use]
    pub fn with_blocks(capacity: usize, blocks: usize) -> Self {
        Self {
            links: Vec::with_capacity(blocks),
            ..Self::new(capacity)
        }
    }

    /// Most uses of a batch.
    pub const BATCH: usize = 32;

    /// Brings what the uses of a batch of blocks, at most [`Self::BATCH`], will read into the processor's caches: their reads
    /// overlap, where those of one use after the other wait for each other.
    pub fn look_ahead(&self, batch: &[u32]) {
        let mut neighbours = [ABSENT; Self::BATCH];
        for (link, block) in neighbours.iter_mut().zip(batch) {
            *link = self.links.get(*block as usize).copied().unwrap_or(ABSENT);
        }
        let of = |block: u32| self.links.get(block as usize).map_or(0, |link| link.newer);
        let all = neighbours
            .iter()
            .map(|link| of(link.newer) ^ of(link.older));
        black_box(all.fold(0, |all, one| all ^ one));
    }

    /// Uses a block, and gives up the one used longest ago if that needs its place; whether it
    /// was resident.
    pub fn touch(&mut self, block: u32) -> bool {
        if block as usize >= self.links.len() {
            self.links.resize(block as usize + 1, ABSENT);
        }
        if block == self.newest {
            return true;
        }
        let is_resident = self.links[block as usize].newer != NONE;
        if is_resident {
            self.unlink(block);
        } else if self.capacity == 0 {
            return false;
        } else if self.resident == self.capacity {
            self.unlink(self.oldest);
        } else {
            self.resident += 1;
        }
        self.link(block);
        is_resident
    }

    /// Gives up the block used last: its fetch failed.
    pub fn forget_newest(&mut self) {
        if self.newest != NONE {
            self.unlink(self.newest);
            self.resident -= 1;
        }
    }

    /// Takes a block out of the list.
    fn unlink(&mut self, block: u32) {
        let Link { newer, older } = std::mem::replace(&mut self.links[block as usize], ABSENT);
        if newer == block {
            self.newest = older;
            if let Some(link) = self.links.get_mut(older as usize) {
                link.newer = older;
            }
        } else {
            self.links[newer as usize].older = older;
            if let Some(link) = self.links.get_mut(older as usize) {
                link.newer = newer;
            }
        }
        if block == self.oldest {
            self.oldest = if newer == block { NONE } else { newer };
        }
    }

    /// Makes a block the newest one.
    fn link(&mut self, block: u32) {
        self.links[block as usize] = Link {
            newer: block,
            older: self.newest,
        };
        match self.newest {
            NONE => self.oldest = block,
            before => self.links[before as usize].newer = block,
        }
        self.newest = block;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn it_is_a_list_with_the_newest_at_its_end() {
        let mut random = Random::new(5);
        for capacity in 0..6 {
            let (mut recency, mut list) = (Recency::new(capacity), Vec::new());
            for _ in 0..2000 {
                if random.chance(100) {
                    recency.forget_newest();
                    list.pop();
                    continue;
                }
                let block = random.below(9) as u32;
                let at = list.iter().position(|known| *known == block);
                assert_eq!(recency.touch(block), at.is_some());
                if let Some(at) = at {
                    list.remove(at);
                } else if list.len() == capacity {
                    list = list.into_iter().skip(1).collect();
                }
                if capacity > 0 {
                    list.push(block);
                }
            }
        }
    }
}
