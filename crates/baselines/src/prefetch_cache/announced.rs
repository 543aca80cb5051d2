//! Announced blocks of one owner: which blocks will its program read, and which will it never read?
//!
//! Filled from hints, for ranks that give up first blocks never read
//! ([`Rank::uses_hints`](super::Rank::uses_hints)); kept beside the owner's streams. A set of blocks without an order, as runs that are merged where they touch:
//!
//! ```text
//! hints  0..64, 64..128, 4000..4016     runs  [0..128] [4000..4016]     never read: 128, 129, ..
//! ```
//!
//! Nothing is judged before the list of hints has ended: the next hint may name the block. An owner
//! that reads a block it did not announce, or whose hints did not all fit, is not believed from
//! then on, until its file changes; its blocks are those of an owner that announced nothing.
//!
//! A block that was read stays in the set: it has left the prefetch cache, so its next use is no
//! question.

use alloc::collections::BTreeMap;

use forerun_core::Block;

/// Charge of a run: 8 bytes in a node of at least 5 of 11, with its links.
pub(super) const RUN_BYTES: u64 = 40;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nothing was announced.
    #[default]
    Silent,
    /// More hints follow.
    Open,
    /// All that the owner will read.
    Whole,
    /// Not all, as it turned out.
    Refuted,
}

#[derive(Debug, Default)]
pub(super) struct Announced {
    /// First block of a run, and behind its last.
    runs: BTreeMap<u32, u32>,
    state: State,
}

impl Announced {
    /// How many runs are kept.
    pub(super) fn len(&self) -> u32 {
        self.runs.len() as u32
    }

    /// These blocks will be read.
    pub(super) fn add(&mut self, first: Block, count: u32) {
        if self.state == State::Refuted {
            return;
        }
        self.state = State::Open;
        let (mut begin, mut end) = (first.0, first.0.saturating_add(count));
        while let Some((&other, &other_end)) = self.runs.range(..=end).next_back() {
            if other_end < begin {
                break;
            }
            (begin, end) = (begin.min(other), end.max(other_end));
            self.runs.remove(&other);
        }
        self.runs.insert(begin, end);
    }

    /// The list of hints has ended; whether there was room for all of them.
    pub(super) fn end(&mut self, is_all: bool) {
        match (self.state, is_all) {
            (State::Open, true) => self.state = State::Whole,
            (State::Open, false) => self.refute(),
            _ => {}
        }
    }

    /// The owner reads these blocks. True if that refutes its hints.
    pub(super) fn is_refuted_by(&mut self, first: Block, count: u32) -> bool {
        let is_believed = matches!(self.state, State::Open | State::Whole);
        let end = u64::from(first.0) + u64::from(count);
        let before = self.runs.range(..=first.0).next_back();
        if !is_believed || count == 0 || before.is_some_and(|(_, &known)| end <= known.into()) {
            return false;
        }
        self.refute();
        true
    }

    fn refute(&mut self) {
        self.state = State::Refuted;
        self.runs.clear();
    }

    /// Whether the owner is known never to read this block.
    pub(super) fn never_has(&self, block: Block) -> bool {
        let before = self.runs.range(..=block.0).next_back();
        self.state == State::Whole && before.is_none_or(|(_, &end)| end <= block.0)
    }

    /// The file has another content, or is closed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(runs: &[(u32, u32)]) -> Announced {
        let mut announced = Announced::default();
        for (first, count) in runs {
            announced.add(Block(*first), *count);
        }
        announced
    }

    #[test]
    fn nothing_is_judged_before_the_list_has_ended_and_then_all_that_is_not_in_it() {
        let mut announced = announced(&[(64, 64), (0, 64), (4000, 16), (100, 40)]);
        assert_eq!(announced.len(), 2);
        assert!(!announced.never_has(Block(500)));
        announced.end(true);
        for (block, never) in [(0, false), (139, false), (140, true), (3999, true)] {
            assert_eq!(announced.never_has(Block(block)), never, "{block}");
        }
        assert!(!announced.never_has(Block(4015)) && announced.never_has(Block(4016)));
    }

    #[test]
    fn an_owner_that_reads_what_it_did_not_announce_is_not_believed_any_more() {
        let mut owner = announced(&[(0, 64)]);
        owner.end(true);
        assert!(!owner.is_refuted_by(Block(10), 54));
        assert!(owner.is_refuted_by(Block(10), 55));
        assert!(!owner.is_refuted_by(Block(500), 1), "once");
        owner.add(Block(0), 64);
        owner.end(true);
        assert!(!owner.never_has(Block(100)) && owner.len() == 0);
        owner.clear();
        owner.add(Block(0), 64);
        owner.end(true);
        assert!(owner.never_has(Block(100)), "another content");
    }

    #[test]
    fn hints_that_did_not_all_fit_and_an_owner_without_hints_say_nothing() {
        let mut cut = announced(&[(0, 64)]);
        cut.end(false);
        assert!(!cut.never_has(Block(100)));
        let mut silent = Announced::default();
        silent.end(true);
        assert!(!silent.never_has(Block(100)) && !silent.is_refuted_by(Block(0), 1));
        let ends = announced(&[(u32::MAX - 1, 7), (u32::MAX, 1)]);
        assert_eq!(ends.len(), 1);
    }
}
