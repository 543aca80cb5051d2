//! Demand fetching with least recently used replacement: the method of most caches without hints.
//!
//! Fetches the block that the reader waits for and gives up the block taken longest ago. It ignores
//! the hints but for the block at the cursor, and so is the baseline that hints are worth something
//! against.
//!
//! ```text
//! oldest <-> .. <-> .. <-> newest      resident blocks by the last time they were taken
//!   victim               taken, arrived
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use forerun_core::hinted::BlockNo;
use forerun_core::hinted::policy::Policy;
use forerun_core::hinted::{Board, Pair};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Policy>> = Method {
    spec: Spec {
        name: "demand-lru",
        summary: "fetch on a miss, give up the block used longest ago",
        source: "folklore",
        unfit: "loops longer than the cache",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(DemandLru::default()),
};

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct DemandLru {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
}

impl Default for DemandLru {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            oldest: NONE,
            newest: NONE,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u32,
    newer: u32,
    linked: bool,
}

const UNLINKED: Link = Link {
    older: NONE,
    newer: NONE,
    linked: false,
};

impl DemandLru {
    fn unlink(&mut self, block: u32) {
        let Some(link) = self.links.get_mut(block as usize).filter(|l| l.linked) else {
            return;
        };
        let Link { older, newer, .. } = core::mem::replace(link, UNLINKED);
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = newer,
            None => self.oldest = newer,
        }
        match self.links.get_mut(newer as usize) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
    }

    fn make_newest(&mut self, block: u32) {
        self.unlink(block);
        let at = block as usize;
        if at >= self.links.len() {
            self.links.resize(at + 1, UNLINKED);
        }
        self.links[at] = Link {
            older: self.newest,
            newer: NONE,
            linked: true,
        };
        match self.links.get_mut(self.newest as usize) {
            Some(link) => link.newer = block,
            None => self.oldest = block,
        }
        self.newest = block;
    }
}

impl DemandLru {
    /// The block taken longest ago that no reader has in hand.
    fn victim(&self, board: &Board) -> Option<BlockNo> {
        let mut at = self.oldest;
        while !board.may_go(BlockNo(at)) {
            at = self.links.get(at as usize)?.newer;
        }
        Some(BlockNo(at))
    }
}

impl Policy for DemandLru {
    fn taken(&mut self, _board: &Board, block: BlockNo) {
        self.make_newest(block.0);
    }

    fn arrived(&mut self, _board: &Board, block: BlockNo) {
        self.make_newest(block.0);
    }

    fn evicted(&mut self, block: BlockNo) {
        self.unlink(block.0);
    }

    fn next(&mut self, board: &Board) -> Option<Pair> {
        let fetch = board.block_at(board.awaited()?)?;
        let evict = match board.empty_frames() {
            0 => Some(self.victim(board)?),
            _ => None,
        };
        Some(Pair { fetch, evict })
    }
}
