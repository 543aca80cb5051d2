//! Forestall: begin to fetch just early enough that no reader stalls.
//!
//! Let a fetch take as long as F' references, and the i-th missing block of a disk lie d(i)
//! references ahead. The disk needs i F' for the first i of them; if i F' > d(i) for some i, the
//! reader is bound to stall unless the disk starts now. So a free disk gets a batch, as under
//! aggressive, when one of its missing blocks within 2K references says so, and else is left
//! alone, as under fixed horizon, whose victims are chosen late.
//!
//! ```text
//! cursor  r r r r r r r m m m m m          d(1) = 7, d(5) = 11: 5 F' = 15 > 11 for F' = 3: starts
//! ```
//!
//! F is measured, for each disk, as the mean of its last 100 access times over the mean of the
//! last 100 compute times. Accesses under 5 ms are sequential and regular: F' = F. Slower ones
//! vary and are reordered, which costs 4 F. Against reordering there is also fixed horizon's own
//! rule. Before a disk has been used once there is no F, and only that rule acts.
//!
//! As published a batch needs a free disk, one with nothing in flight (`free_disk` = 1). Where
//! every other read misses, the horizon rule alone keeps a disk from ever being free, so by default
//! only the disk's last batch keeps the next one away.
//!
//! The paper says neither whether a batch is cut short once i F' > d(i) no longer holds (here it
//! is not, as the batch is there for the disk's sake) nor what F is before the first access.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{BATCH, Board, HORIZON, Pair, Policy};
use crate::hinted::batch::Batches;
use crate::hinted::recent::Recent;
use crate::hinted::{BlockNo, Position};
use crate::spec::{Knows, Method, Param, Spec};
use crate::units::{DeviceId, Nanos};

pub(super) const METHOD: Method<Box<dyn Policy>> = Method {
    spec: Spec {
        name: "forestall",
        summary: "start a disk when its missing blocks would otherwise come too late",
        source: "kimbrel96 section 5",
        unfit: "compute times that change faster than a hundred references show",
        knows: Knows::Hinted,
        params: &[
            HORIZON,
            BATCH,
            Param {
                name: "fixed_f_refs",
                summary: "F' as a constant instead of measured; 0 measures it (measuring was \
                          never more than 1.2 % worse than the best constant, kimbrel96 section 5)",
                default: 0,
                min: 0,
                max: 1 << 20,
            },
            Param {
                name: "slow_factor",
                summary: "by how much F is overestimated where accesses take 5 ms and more (the best \
                          of those the paper tried)",
                default: 4,
                min: 1,
                max: 1000,
            },
            Param {
                name: "free_disk",
                summary: "1: a batch only for a disk with nothing in flight, as published; 0: what \
                          the horizon rule fetches does not keep a batch away (see the design \
                          note on hinted methods)",
                default: 0,
                min: 0,
                max: 1,
            },
        ],
    },
    build: |values| {
        Box::new(Forestall {
            horizon: values.get("horizon_refs") as u32,
            batches: Batches::of(values.get("batch_blocks") as u32),
            fixed_f: values.get("fixed_f_refs"),
            slow_factor: u128::from(values.get("slow_factor")),
            needs_free_disk: values.get("free_disk") == 1,
            computes: Recent::default(),
            accesses: Vec::new(),
            at_work: Vec::new(),
        })
    },
};

/// From this mean access time on F is overestimated: between the 3-4 ms of sequential traces and the
/// rest (Kimbrel et al. 1996, section 5).
const SLOW_ACCESS: Nanos = Nanos(5_000_000);

#[derive(Debug)]
struct Forestall {
    horizon: u32,
    batches: Batches,
    fixed_f: u64,
    slow_factor: u128,
    needs_free_disk: bool,
    computes: Recent,
    /// By disk.
    accesses: Vec<Recent>,
    /// By disk, fetches of its last batch under way.
    at_work: Vec<Vec<BlockNo>>,
}

/// F' as a fraction. With nothing to divide by, any access at all takes for ever.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    over: u128,
    under: u128,
}

impl Forestall {
    /// F' of a disk; `None` while nothing was measured.
    fn overestimate(&self, disk: DeviceId) -> Option<Ratio> {
        if self.fixed_f > 0 {
            let over = u128::from(self.fixed_f);
            return Some(Ratio { over, under: 1 });
        }
        let accesses = self.accesses.get(usize::from(disk.0))?;
        let is_slow = accesses.sum() >= u128::from(SLOW_ACCESS.0) * accesses.count();
        let factor = if is_slow { self.slow_factor } else { 1 };
        (accesses.count() > 0).then(|| Ratio {
            over: accesses
                .sum()
                .saturating_mul(self.computes.count().max(1))
                .saturating_mul(factor),
            under: self.computes.sum().saturating_mul(accesses.count()),
        })
    }
}

impl Policy for Forestall {
    fn computed(&mut self, compute: Nanos) {
        self.computes.push(compute);
    }

    fn fetched(&mut self, disk: DeviceId, service: Nanos) {
        let at = usize::from(disk.0);
        if at >= self.accesses.len() {
            self.accesses.resize(at + 1, Recent::default());
        }
        self.accesses[at].push(service);
    }

    fn arrived(&mut self, board: &Board, block: BlockNo) {
        let disk = board.disk_of(block).unwrap_or_default();
        let batch = self.at_work.get_mut(usize::from(disk.0));
        if let Some(batch) = batch
            && let Some(at) = batch.iter().position(|own| *own == block)
        {
            batch.swap_remove(at);
        }
    }

    fn begin(&mut self, board: &Board) {
        self.at_work.resize(board.disk_count() as usize, Vec::new());
        for (batch, disk) in self.at_work.iter_mut().zip(board.disks()) {
            // A failed fetch never arrives.
            if board.in_flight(disk) == 0 {
                batch.clear();
            }
        }
        let mut batches = core::mem::replace(&mut self.batches, Batches::of(0));
        batches.open_where(board, |disk| {
            let ratio = self.overestimate(disk);
            let is_idle = match self.needs_free_disk {
                true => board.in_flight(disk) == 0,
                false => self.at_work[usize::from(disk.0)].is_empty(),
            };
            is_idle && ratio.is_some_and(|ratio| is_bound_to_stall(board, disk, ratio))
        });
        self.batches = batches;
    }

    fn next(&mut self, board: &Board) -> Option<Pair> {
        let near = board.missing_within(self.horizon);
        let pair = board.harmless_pair(near.or_else(|| self.batches.soonest(board))?)?;
        let disk = board.disk_of(pair.fetch)?;
        if self.batches.has_room(disk)
            && let Some(batch) = self.at_work.get_mut(usize::from(disk.0))
        {
            batch.push(pair.fetch);
        }
        self.batches.spend(disk);
        Some(pair)
    }
}

/// Whether i F' > d(i) for one of the disk's missing blocks within 2K of the cursor. Looks at 64
/// places at a time, and closer only where the last of them would be late at the first's place.
fn is_bound_to_stall(board: &Board, disk: DeviceId, f: Ratio) -> bool {
    let cursor = board.here().0;
    let end = Position(cursor.saturating_add(board.capacity().saturating_mul(2)));
    let late = |i: u32, position: u32| {
        let distance = u128::from(position.saturating_sub(cursor));
        f.over.saturating_mul(u128::from(i)) > f.under.saturating_mul(distance)
    };
    let mut before = 0;
    for (base, mut word) in board.missing_words(disk, end) {
        let here = word.count_ones();
        if late(before + here, base + word.trailing_zeros()) {
            for i in before + 1..=before + here {
                if late(i, base + word.trailing_zeros()) {
                    return true;
                }
                word &= word - 1;
            }
        }
        before += here;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hinted::policy::LIST;
    use crate::hinted::{BlockNo, Hint};
    use crate::spec::Choice;
    use proptest::prelude::*;

    const DISK: DeviceId = DeviceId(0);

    proptest! {
        /// Sixty-four places at a time, or one: the same answer.
        #[test]
        fn the_alarm_is_the_rule(
            gaps in prop::collection::vec(0u32..90, 1..60), passed in 0u32..70,
            capacity in 1u32..1500, over in 1u128..200, under in 0u128..20,
        ) {
            let mut board = Board::new(1, capacity);
            // Block 0 is cached and fills the gaps; the others are missing.
            let cached = Hint { block: BlockNo(0), disk: DISK };
            board.cached(cached);
            let mut places = std::vec::Vec::new();
            for (block, gap) in (1..).zip(&gaps) {
                for _ in 0..*gap {
                    board.hint(cached);
                }
                places.push(board.end().0);
                board.hint(Hint { block: BlockNo(block), disk: DISK });
            }
            for _ in 0..passed {
                board.block_at(board.cursor()).and_then(|block| board.pass(block));
            }
            let cursor = board.cursor().0;
            let near = places.iter().filter(|p| **p >= cursor && **p < cursor + 2 * capacity);
            let by_rule = (1u128..).zip(near).any(|(i, place)| {
                i * over > u128::from(place - cursor) * under
            });
            prop_assert_eq!(is_bound_to_stall(&board, DISK, Ratio { over, under }), by_rule);
        }
    }

    fn board(cached: u32, missing_at: u32, capacity: u32) -> Board {
        let mut board = Board::new(1, capacity);
        let hint = |block| Hint {
            block: BlockNo(block),
            disk: DISK,
        };
        for block in 0..cached {
            board.cached(hint(block));
        }
        for place in 0..missing_at {
            board.hint(hint(place % cached));
        }
        board.hint(hint(cached));
        board
    }

    /// However long a fetch takes: F is a million references.
    #[test]
    fn what_is_missing_beyond_2k_raises_no_alarm() {
        let f = Ratio {
            over: 1_000_000,
            under: 1,
        };
        let alarm = |place| is_bound_to_stall(&board(1, place, 10), DISK, f);
        assert!(alarm(19), "the last place within 2K");
        assert!(!alarm(20), "the first beyond");
        assert!(!alarm(29), "within 3K");
    }

    /// By its defaults, as a user gets it. 20 ms an access over 1 ms of computing is F = 20; a
    /// block 70 references ahead, beyond the horizon, is late with 4F = 80 and not with 2F or 3F.
    #[test]
    fn slow_accesses_count_four_times_and_quick_ones_once() {
        let is_fetched = |access: u64, place: u32| {
            let choice = Choice::parse("hinted", LIST, "forestall").unwrap();
            let mut policy = choice.build();
            policy.computed(Nanos(1_000_000));
            policy.fetched(DISK, Nanos(access));
            let board = board(1, place, 50);
            policy.begin(&board);
            policy.next(&board).is_some()
        };
        assert!(is_fetched(20_000_000, 79));
        assert!(!is_fetched(20_000_000, 80));
        // Below 5 ms F' is F, less than the horizon of 62.
        assert!(!is_fetched(4_999_999, 63));
        assert!(is_fetched(4_999_999, 62));
    }

    /// Blocks 1 and 2 are far ahead, and a fetch takes longer still. The default asks for no free disk, but for one
    /// without a batch.
    #[test]
    fn the_next_batch_of_a_disk_waits_for_the_one_before() {
        let text = "forestall(horizon_refs=1,batch_blocks=1,fixed_f_refs=1000)";
        let mut policy = Choice::parse("hinted", LIST, text).unwrap().build();
        let mut board = board(1, 10, 50);
        let last = Hint {
            block: BlockNo(2),
            disk: DISK,
        };
        board.hint(last);
        let mut fetched = |board: &Board| {
            policy.begin(board);
            policy.next(board).map(|pair| pair.fetch)
        };
        assert_eq!(fetched(&board), Some(BlockNo(1)));
        let pair = board.harmless_pair(Position(10)).unwrap();
        board.start(pair);
        assert_eq!(fetched(&board), None);
        board.arrive(BlockNo(1));
        assert_eq!(fetched(&board), Some(BlockNo(2)));
    }

    fn forestall(accesses: &[u64], computes: &[u64]) -> Option<u128> {
        let mut policy = Forestall {
            horizon: 62,
            batches: Batches::of(0),
            fixed_f: 0,
            slow_factor: 4,
            needs_free_disk: false,
            computes: Recent::default(),
            accesses: Vec::new(),
            at_work: Vec::new(),
        };
        for access in accesses {
            policy.fetched(DISK, Nanos(*access));
        }
        for compute in computes {
            policy.computed(Nanos(*compute));
        }
        policy.overestimate(DISK).map(|f| f.over / f.under)
    }

    #[test]
    fn f_is_measured_over_the_last_and_overestimated_where_accesses_are_slow() {
        assert_eq!(forestall(&[], &[1]), None);
        assert_eq!(forestall(&[4_000_000], &[1_000_000, 3_000_000]), Some(2));
        assert_eq!(forestall(&[4_999_999], &[1_000]), Some(4_999));
        assert_eq!(forestall(&[5_000_000], &[1_000]), Some(20_000));
        let mut ms = [6_000_000; 101];
        ms[0] = 99_000_000;
        assert_eq!(forestall(&ms, &[1_000_000]), Some(24));
    }
}
