//! Fixed horizon: fetch as late as is safe, so as to choose victims as late as possible.
//!
//! Whenever a missing block is at most H references ahead, fetch it in place of the block used
//! furthest in the future. H is the disk's time for a block over a reader's least, so
//! a fetch to an idle disk arrives in time; beyond H nothing is fetched, and disks may idle while
//! missing blocks pile up further on. There is no batch: up to H fetches may be queued.
//!
//! ```text
//! cursor |<------- H ------->|
//!   r  r  r  m  r  m  r  r  r   r  m  m  m     fetched: the first two m
//! ```
//!
//! Section 2.3 lets only blocks used more than H ahead be given up, which holds by itself while
//! H < K; section 2.7 drops the condition. Here the victim must be used after the block fetched
//! (do no harm): the same while H < K, and a rule that still fetches when it is not, as the
//! paper's figure 7 with H of 2048 blocks and K of 512 needs.

use alloc::boxed::Box;

use forerun_core::hinted::policy::{HORIZON, Policy};
use forerun_core::hinted::{Board, Pair};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Policy>> = Method {
    spec: Spec {
        name: "fixed-horizon",
        summary: "fetch every missing block within the horizon",
        source: "kimbrel96 sections 2.3 and 2.7, after TIP2",
        unfit: "too few disks for the load: they idle while missing blocks lie beyond the horizon",
        knows: Knows::Hinted,
        params: &[HORIZON],
    },
    build: |values| {
        Box::new(FixedHorizon {
            horizon: values.get("horizon_refs") as u32,
        })
    },
};

#[derive(Debug)]
struct FixedHorizon {
    horizon: u32,
}

impl Policy for FixedHorizon {
    fn next(&mut self, board: &Board) -> Option<Pair> {
        board.harmless_pair(board.missing_within(self.horizon)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::DeviceId;
    use forerun_core::hinted::{BlockNo, Hint};

    #[test]
    fn a_block_is_fetched_as_far_ahead_as_the_horizon_and_no_farther() {
        let hint = |block| Hint {
            block: BlockNo(block),
            disk: DeviceId(0),
        };
        for (horizon, place, is_fetched) in
            [(62, 62, true), (62, 63, false), (4, 4, true), (4, 5, false)]
        {
            let mut board = Board::new(1, 10);
            board.cached(hint(0));
            for _ in 0..place {
                board.hint(hint(0));
            }
            board.hint(hint(1));
            let fetched = METHOD.of(&[horizon]).next(&board);
            assert_eq!(fetched.is_some(), is_fetched, "{horizon}, {place}");
        }
    }
}
