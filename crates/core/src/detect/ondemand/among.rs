//! Streams among others: reads of one open file that take turns, of which no two touch.
//!
//! Which blocks were read tells such a stream from random reads, but a rule that asks for two reads before
//! the window has paid three switches when it opens one, and its ramp pays one more for each doubling. Here the
//! second read of a stream opens a window if it begins where one of the last reads that missed has ended.
//!
//! With S a switch in blocks and L the limit (S while the stream is new), the first window is 6/7 L with its mark
//! at 4/5 of it; later windows are L with the mark in the middle. A stream that ends right behind a mark has cost
//!
//! ```text
//! read 2      2 S +  6/7 S         of  S             2.86
//! window 2    3 S + 13/7 S         of  S + 24/35 S   2.88
//! window 3    4 S + 20/7 S         of  S + 19/14 S   2.91
//! window k    (k + 1) S + (k - 1/7) S   of   S + (k - 23/14) S, falling to 2 (less as L grows)
//! ```
//!
//! **Chance.** Of random reads 12 in N begin where one of the last 12 ended, N being the file in reads. A first window
//! is a bet of its length, won when the block behind the read is read. Bets are paid from a 64th of the blocks of
//! random reads, which so fetch 1.6 % more; up to 8 windows in advance as long as fewer than 64 random
//! reads have come since the last bet was won or the file was opened.

use alloc::vec::Vec;

use crate::detect::Ahead;
use crate::units::Block;

/// Most bets that are watched: as many as streams may begin side by side.
const OPEN_MAX: usize = 32;

/// Windows that are paid in advance, and the random reads after which they are not: eight streams that begin
/// together have each a read, or some more among others, before the first of them wins.
const ADVANCE: i64 = 8;
const ALONE_MAX: u32 = 64;

/// A block of a random read earns so much of a block, one part in so many.
const EARNED: i64 = 64;

/// A first window, until its stream has gone on.
#[derive(Clone, Copy, Debug)]
struct Bet {
    /// The block behind the read that opened it.
    next: Block,
    blocks: u32,
}

/// First windows that were opened by the second read of a stream.
#[derive(Debug, Default)]
pub(super) struct Bets {
    /// The oldest one first.
    open: Vec<Bet>,
    /// Blocks earned less those bet, in parts of [`EARNED`].
    balance: i64,
    /// Random reads since the last bet was won.
    alone: u32,
    /// Whether there was a bet: the open file is read by several streams.
    pub(super) is_used: bool,
}

/// Length of the first window, and how much of it lies behind its mark.
pub(super) fn first(asked: u32, limit: u32) -> (u32, u32) {
    let size = (limit - limit / 7).max(asked);
    (size, (size / 5).max(1))
}

/// Whether a stream has the memory that a switch is worth. Where many share less, the whole of a share at once takes from
/// streams that are read on what another may not read.
pub(super) fn has_memory(ahead: &dyn Ahead) -> bool {
    ahead.limit() >= ahead.switch(u32::MAX) / 2
}

impl Bets {
    /// Takes note of those that were won, and forgets those whose blocks are gone. How many were won.
    pub(super) fn settle(&mut self, ahead: &dyn Ahead) -> u32 {
        let (balance, alone) = (&mut self.balance, &mut self.alone);
        let mut won = 0;
        self.open.retain(|bet| {
            let is_held = ahead.cached(bet.next);
            let is_won = is_held && !ahead.unread(bet.next);
            if is_won {
                *balance += i64::from(bet.blocks) * EARNED;
                *alone = 0;
                won += 1;
            }
            is_held && !is_won
        });
        won
    }

    /// Whether a window of so many blocks may be opened on one read.
    pub(super) fn covers(&self, blocks: u32, limit: u32) -> bool {
        let advance = match self.alone <= ALONE_MAX {
            true => ADVANCE * i64::from(limit) * EARNED,
            false => 0,
        };
        self.balance + advance >= i64::from(blocks) * EARNED
    }

    /// One is opened, or a window that costs nothing; `next` is the first of its blocks that no read asks for.
    pub(super) fn open(&mut self, next: Block, blocks: u32) {
        if self.open.len() == OPEN_MAX {
            self.open.remove(0);
        }
        self.open.push(Bet { next, blocks });
        self.is_used |= blocks > 0;
        self.balance -= i64::from(blocks) * EARNED;
    }

    /// A read of so many blocks that belongs to nothing, where windows have at most `limit`.
    pub(super) fn read_alone(&mut self, blocks: u32, limit: u32) {
        let most = ADVANCE * i64::from(limit) * EARNED;
        self.balance = (self.balance + i64::from(blocks)).min(most.max(self.balance));
        self.alone = self.alone.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks up to 100 were read, and blocks up to 200 are there.
    struct Cache;

    impl Ahead for Cache {
        fn limit(&self) -> u32 {
            156
        }
        fn cached(&self, block: Block) -> bool {
            block.0 < 200
        }
        fn unread(&self, block: Block) -> bool {
            (100..200).contains(&block.0)
        }
    }

    #[test]
    fn bets_that_are_not_won_add_up_to_eight_windows() {
        let mut bets = Bets::default();
        let (size, _) = first(1, 156);
        for block in 100..109 {
            assert!(bets.covers(size, 156), "{block}");
            bets.open(Block(block), size);
        }
        assert!(!bets.covers(size, 156));
        // None of them is won, and a bet whose block is gone is neither.
        bets.open(Block(300), 1);
        bets.settle(&Cache);
        assert!(!bets.covers(size, 156) && bets.open.len() == 9);
    }

    /// Before the first reads have shown that they are random, and after.
    #[test]
    fn random_reads_earn_a_64th_and_have_no_advance() {
        let mut bets = Bets::default();
        let (size, _) = first(1, 156);
        let mut opened = 0;
        for read in 0..100_000 {
            if bets.covers(size, 156) && read > 64 {
                bets.open(Block(100), size);
                bets.open.clear();
                opened += u64::from(size);
            }
            bets.read_alone(1, 156);
        }
        let part = opened as f64 / 100_000.0;
        assert!((0.014..0.017).contains(&part), "{part}");
        for _ in 0..1_000_000 {
            bets.read_alone(1, 156);
        }
        assert_eq!(bets.balance, 8 * 156 * 64);
    }

    #[test]
    fn a_stream_that_goes_on_wins_its_bet_and_the_advance() {
        let mut bets = Bets::default();
        for _ in 0..40 {
            bets.open(Block(99), 134);
            bets.settle(&Cache);
        }
        assert_eq!((bets.balance, bets.open.len()), (0, 0));
        for _ in 0..=ALONE_MAX {
            bets.read_alone(1, 156);
        }
        assert!(!bets.covers(134, 156));
        bets.open(Block(99), 134);
        bets.settle(&Cache);
        assert!(bets.covers(134, 156));
    }

    #[test]
    fn the_first_window_holds_what_was_asked_for() {
        assert_eq!(first(1, 156), (134, 26));
        assert_eq!(first(150, 156), (150, 30));
        assert_eq!(first(1, 1), (1, 1));
    }
}
