//! The plan of reverse aggressive: which blocks to fetch for which use, and which to give up.
//!
//! Made by [its policy](crate::hinted::reverse_aggressive) from the references still to come. Read
//! backwards, each fetch is an eviction and each eviction a fetch:
//!
//! ```text
//! forward   | use X at q |  .. evict X, fetch B  .. | use B at p |     B's disk is busy
//! backward  | use B at p |  .. evict B, fetch X  .. | use X at q |     .. with this one
//! ```
//!
//! So backwards a disk is kept busy by *evicting* its blocks. As many disks as possible evict in
//! parallel, hence forward as many as possible fetch in parallel (Kimbrel et al. 1996, section
//! 2.5).
//!
//! ```text
//! pass    the references backwards, against a model clock    plan    arrivals and departures
//! cache   blocks cached, missing on the backward pass                 matched; a queue a disk
//! swaps   arrivals and departures, forward again
//! ```
//!
//! Memory, beyond the board's: 4 bytes a reference and 12 a block on the way back, then
//! 24 bytes a fetch that is planned and 4 a block until it is. Which arrival belongs to which
//! departure is read off the order of references.

mod cache;
mod pairing;
mod pass;
mod swaps;

pub(crate) use pairing::{Plan, Planned};

/// How the pass reckons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    /// Time of a fetch in hundredths of a reference.
    pub(crate) fetch_time: u64,
    /// Most evictions a free disk gets at once.
    pub(crate) batch: u32,
}

#[cfg(test)]
mod tests {
    use super::pass::pass;
    use super::*;
    use alloc::vec::Vec;
    use forerun_core::DeviceId;
    use forerun_core::hinted::{BlockNo, Board, Hint};
    use proptest::prelude::*;

    fn board(blocks: &[(u32, u16)], warm: &[(u32, u16)], frames: u32) -> Board {
        let mut board = Board::new(3, frames, 100, 1000);
        let hint = |(block, disk): &(u32, u16)| Hint {
            block: BlockNo(*block),
            disk: DeviceId(*disk),
        };
        for pair in warm {
            board.cached(hint(pair));
        }
        for pair in blocks {
            board.hint(hint(pair));
        }
        board
    }

    #[test]
    fn a_cache_large_enough_is_filled_in_order() {
        let board = board(&[(0, 0), (1, 1), (0, 0), (2, 0)], &[], 3);
        let model = Model {
            fetch_time: 200,
            batch: 1,
        };
        let mut swaps = pass(&board, model);
        let arrivals: Vec<_> = core::iter::from_fn(|| swaps.arrive()).collect();
        assert_eq!(arrivals, [0, 1, 3]);
        let departures: Vec<_> = core::iter::from_fn(|| swaps.depart(&board)).collect();
        assert!(departures.iter().all(|departure| departure.block.is_none()));
    }

    /// A and C lie on one disk, B on the other, in a cache of two. Read backwards, A B C B A, both
    /// disks are free when A has passed and C is missing: A is needed again at the end and B at
    /// once, so A makes room. Forward A is therefore fetched for its last use, and B stays.
    #[test]
    fn of_several_free_disks_the_one_whose_block_is_needed_latest_gives_it_up() {
        let (a, b, c) = ((0, 0), (1, 1), (2, 0));
        let board = board(&[a, b, c, b, a], &[], 2);
        let model = Model {
            fetch_time: 100,
            batch: 1,
        };
        let mut swaps = pass(&board, model);
        let arrivals: Vec<_> = core::iter::from_fn(|| swaps.arrive()).collect();
        assert_eq!(arrivals, [0, 1, 2, 4]);
    }

    proptest! {
        /// Matched in their orders, each eviction is released before the use it makes room for;
        /// and for each use there is a reason why its block is there.
        #[test]
        fn every_arrival_finds_a_departure_in_time(
            order in prop::collection::vec(0u32..12, 1..80), frames in 1u32..8,
            warm in 0u32..8, fetch_time in 1u64..900, batch in 1u32..6,
        ) {
            let on_disk = |block: u32| (block, (block % 3) as u16);
            let order: Vec<_> = order.into_iter().map(on_disk).collect();
            let warm: Vec<_> = (0..warm.min(frames)).map(on_disk).collect();
            let board = board(&order, &warm, frames);
            let mut swaps = pass(&board, Model { fetch_time, batch });
            let arrivals: Vec<_> = core::iter::from_fn(|| swaps.arrive()).collect();
            for needed in &arrivals {
                let departure = swaps.depart(&board);
                prop_assert!(departure.is_some_and(|departure| departure.released <= *needed));
            }
            for (block, _) in (0..12).map(on_disk).filter(|pair| order.contains(pair)) {
                let first = order.iter().position(|(b, _)| *b == block);
                let fetched = arrivals.iter().any(|needed| Some(*needed as usize) == first);
                let was_there = warm.iter().any(|(b, _)| *b == block);
                prop_assert!(fetched || was_there, "block {block}");
            }
        }
    }
}
