//! Plans and decisions, at single points and against the [rules alone](super::reference).

use super::pass::pass;
use super::reference::{self, Reference};
use super::*;
use crate::hinted::reverse_aggressive;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use forerun_core::hinted::policy::Policy;
use forerun_core::hinted::{BlockNo, Board, Hint, Pair, Planner};
use forerun_core::spec::{Choice, Method};
use forerun_core::{DeviceId, Nanos};
use proptest::prelude::*;

fn board(blocks: &[(u32, u16)], warm: &[(u32, u16)], frames: u32) -> Board {
    let mut board = Board::new(3, frames);
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

/// Both policies, asked for the same decisions.
#[derive(Debug)]
struct Checked {
    policy: Box<dyn Policy>,
    reference: Reference,
    is_hinted: bool,
}

impl Policy for Checked {
    fn hinted(&mut self) {
        self.policy.hinted();
        self.is_hinted = true;
    }

    fn begin(&mut self, board: &Board) {
        self.policy.begin(board);
        let is_hinted = core::mem::take(&mut self.is_hinted);
        self.reference.begin(board, is_hinted);
    }

    fn next(&mut self, board: &Board) -> Option<Pair> {
        let pair = self.policy.next(board);
        assert_eq!(pair, self.reference.next(board), "at {:?}", board.here());
        pair
    }
}

static CHECKED: &[Method<Box<dyn Policy>>] = &[Method {
    spec: reverse_aggressive::METHOD.spec,
    build: |values| {
        Box::new(Checked {
            policy: (reverse_aggressive::METHOD.build)(values),
            reference: Reference {
                model: Model {
                    fetch_time: values.get("fetch_percent"),
                    batch: values.get("reverse_batch_blocks") as u32,
                },
                batch: values.get("batch_blocks") as u32,
                swaps: Vec::new(),
                room: Vec::new(),
            },
            is_hinted: false,
        })
    },
}];

/// A planner whose policy is checked, a reader and disks.
struct Run {
    planner: Planner,
    order: Vec<Hint>,
    /// References that are hinted, and that are over.
    hinted: usize,
    over: usize,
    coming: VecDeque<BlockNo>,
}

impl Run {
    fn decide(&mut self) {
        while let Some(fetch) = self.planner.poll() {
            self.coming.push_back(fetch.block);
        }
    }

    fn hint(&mut self, count: usize) {
        let end = self.order.len().min(self.hinted + count);
        for hint in &self.order[self.hinted..end] {
            self.planner.hint(*hint);
        }
        self.hinted = end;
    }

    /// A reader asks for a reference that is so far away.
    fn ask(&mut self, ahead: usize) {
        if let Some(hint) = self.order[..self.hinted].get(self.over + ahead) {
            self.planner.asked(hint.block, Nanos(1));
        }
    }

    /// The reader reads on if its block is there, and waits otherwise.
    fn read(&mut self) {
        self.ask(0);
        let next = self.order[..self.hinted].get(self.over);
        if next.is_some_and(|hint| self.planner.board().is_resident(hint.block)) {
            self.pass(true);
        }
    }

    fn pass(&mut self, read: bool) {
        if self.over < self.hinted {
            let block = self.order[self.over].block;
            self.over += 1;
            self.planner.passed(block, read);
        }
    }

    fn end_fetch(&mut self, which: usize, is_failed: bool) {
        let Some(at) = which.checked_rem(self.coming.len()) else {
            return;
        };
        let block = self.coming.remove(at).unwrap();
        match is_failed {
            true => self.planner.failed(block),
            false => self.planner.fetched(block, Nanos(1)),
        };
    }

    /// A step of a script: its event, and a number for choices.
    fn step(&mut self, kind: u8, choice: usize) {
        match kind {
            0..=7 => self.read(),
            8..=15 => self.end_fetch(choice, false),
            16 => self.end_fetch(choice, true),
            17 => self.pass(false),
            18 => {
                let hint = self.order[choice % self.order.len()];
                self.planner.kept(hint.block, choice.is_multiple_of(2));
            }
            19 => self.ask(choice % 8),
            _ => self.hint(choice % 8),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn plans_are_those_of_the_rules_alone(
        order in prop::collection::vec(0u32..14, 1..60), disks in 1u32..4, frames in 1u32..8,
        warm in 0u32..8, fetch_time in 1u64..900, batch in 1u32..6,
    ) {
        let on_disk = |block: u32| (block, (block % disks) as u16);
        let order: Vec<_> = order.into_iter().map(on_disk).collect();
        // Of the blocks cached before some are never used.
        let warm: Vec<_> = (0..warm.min(frames)).map(|block| on_disk(3 * block)).collect();
        let board = board(&order, &warm, frames);
        let model = Model { fetch_time, batch };
        let expected = reference::plan(&board, model);
        let plan = Plan::of(&board, model);
        for (number, swap) in expected.iter().enumerate() {
            let planned = plan.pair(number as u32).unwrap();
            let evict = planned.victim().map(|block| block.0);
            let real = (planned.fetch.0, planned.needed, planned.released, evict);
            prop_assert_eq!(real, (swap.fetch, swap.needed, swap.released, swap.evict));
        }
        prop_assert!(plan.pair(expected.len() as u32).is_none());
    }

    /// Hints that come late, failed fetches, references asked for early or passed over, and blocks in hand included.
    #[test]
    fn decisions_are_those_of_the_rules_alone(
        order in prop::collection::vec(0u32..12, 20..80), disks in 1u32..4, frames in 1u32..8,
        first in 1usize..60, fetch_percent in 1u64..900, batch in 0u32..5, reverse_batch in 0u32..5,
        script in prop::collection::vec((0u8..21, 0usize..64, any::<bool>()), 40..300),
    ) {
        let on_disk = |block: u32| Hint { block: BlockNo(block), disk: DeviceId((block % disks) as u16) };
        let policy = std::format!(
            "reverse-aggressive(fetch_percent={fetch_percent},batch_blocks={batch},reverse_batch_blocks={reverse_batch})"
        );
        let policy = Choice::parse("hinted", CHECKED, &policy).unwrap().build();
        let mut run = Run {
            planner: Planner::new(policy, Board::new(disks as u16, frames)),
            order: order.into_iter().map(on_disk).collect(),
            hinted: 0,
            over: 0,
            coming: VecDeque::new(),
        };
        run.hint(first);
        for (kind, choice, decides) in script {
            run.step(kind, choice);
            if decides {
                run.decide();
            }
        }
    }
}
