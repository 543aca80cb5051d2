//! The planner under any calls at all, and its contract at single points.
//!
//! A model keeps the frames as a driver would, from the fetches alone.

use forerun_baselines::METHODS;
use forerun_core::hinted::{BlockNo, Board, Hint, Planner, Position, Started};
use forerun_core::spec::Choice;
use forerun_core::{DeviceId, Nanos};
use proptest::prelude::*;

/// A call of the planner.
#[derive(Clone, Copy, Debug)]
enum Call {
    Hint(Hint),
    Fetched(BlockNo, Nanos),
    Found(BlockNo),
    Failed(BlockNo),
    Asked(BlockNo, Nanos),
    Passed(BlockNo, bool),
    Kept(BlockNo, bool),
    Forgotten(BlockNo),
}

impl Call {
    fn make(self, planner: &mut Planner) -> Option<()> {
        match self {
            Self::Hint(hint) => planner.hint(hint),
            Self::Fetched(block, service) => planner.fetched(block, service),
            Self::Found(block) => planner.found(block),
            Self::Failed(block) => planner.failed(block),
            Self::Asked(block, compute) => planner.asked(block, compute),
            Self::Passed(block, read) => planner.passed(block, read),
            Self::Kept(block, kept) => planner.kept(block, kept),
            Self::Forgotten(block) => planner.forgotten(block),
        }
    }
}

fn block() -> impl Strategy<Value = BlockNo> {
    prop_oneof![9 => 0u32..12, 1 => Just(40)].prop_map(BlockNo)
}

/// Disk 9 does not exist, and a block may change its disk.
fn hint() -> impl Strategy<Value = Hint> {
    (block(), 0u32..20).prop_map(|(block, odd)| Hint {
        block,
        disk: DeviceId(if odd == 0 { 9 } else { (block.0 % 3) as u16 }),
    })
}

fn call() -> impl Strategy<Value = Call> {
    let time = prop_oneof![Just(0), 0u64..10_000_000, Just(u64::MAX)].prop_map(Nanos);
    prop_oneof![
        20 => hint().prop_map(Call::Hint),
        8 => (block(), time.clone()).prop_map(|(block, service)| Call::Fetched(block, service)),
        2 => block().prop_map(Call::Failed),
        8 => (block(), time).prop_map(|(block, compute)| Call::Asked(block, compute)),
        8 => (block(), any::<bool>()).prop_map(|(block, read)| Call::Passed(block, read)),
        2 => (block(), 0u32..3).prop_map(|(block, k)| Call::Kept(block, k == 0)),
        1 => block().prop_map(Call::Found),
        1 => block().prop_map(Call::Forgotten),
    ]
}

/// A planner over three disks.
fn planner(policy: &str, cache_blocks: u32) -> Planner {
    let policy = Choice::parse("hinted", METHODS.hinted, policy).unwrap();
    Planner::new(policy.build(), Board::new(3, cache_blocks))
}

/// Frames in use, from the outside.
#[derive(Default)]
struct Frames {
    resident: std::collections::BTreeSet<BlockNo>,
    kept: std::collections::BTreeSet<BlockNo>,
    coming: std::collections::BTreeSet<BlockNo>,
}

impl Frames {
    fn see(&mut self, fetch: Started, capacity: usize) -> Result<(), TestCaseError> {
        let Started { block, evict, .. } = fetch;
        if let Some(victim) = evict {
            prop_assert!(self.resident.remove(&victim), "{victim:?} was not there");
            prop_assert!(!self.kept.contains(&victim), "{victim:?} is in hand");
        }
        prop_assert!(!self.resident.contains(&block), "{block:?} is there");
        prop_assert!(self.coming.insert(block), "{block:?} is on its way");
        prop_assert!(self.resident.len() + self.coming.len() <= capacity);
        Ok(())
    }

    /// A call that made sense.
    fn follow(&mut self, call: Call) {
        match call {
            Call::Fetched(block, _) | Call::Found(block) => {
                self.coming.remove(&block);
                self.resident.insert(block);
            }
            Call::Failed(block) => {
                self.coming.remove(&block);
            }
            Call::Kept(block, kept) => {
                self.kept.remove(&block);
                self.kept.extend(kept.then_some(block));
            }
            Call::Forgotten(block) => {
                self.kept.remove(&block);
                self.resident.remove(&block);
            }
            Call::Hint(_) | Call::Asked(..) | Call::Passed(..) => {}
        }
    }
}

proptest! {
    #[test]
    fn no_call_breaks_it(
        calls in prop::collection::vec((call(), any::<bool>(), 0u32..16), 1..400),
        cache_blocks in 1u32..8,
        allowance in prop_oneof![Just(u32::MAX), 0u32..6],
    ) {
        for method in METHODS.hinted {
            let mut planner = planner(method.spec.name, cache_blocks);
            planner.allow(allowance);
            let mut frames = Frames::default();
            for (call, drain, luck) in &calls {
                if *luck == 0 {
                    planner.compact();
                    for block in (0..=40).map(BlockNo) {
                        let was_known = frames.resident.contains(&block);
                        prop_assert!(!planner.retire(block) || !was_known, "{block:?} is there");
                    }
                }
                if call.make(&mut planner).is_some() {
                    frames.follow(*call);
                }
                // Fetches are carried out before the next call; decisions may wait.
                while let Some(fetch) = drain.then(|| planner.poll()).flatten() {
                    frames.see(fetch, cache_blocks as usize)?;
                }
            }
        }
    }
}

fn hint_all(planner: &mut Planner, blocks: &[u32]) {
    for block in blocks {
        let (block, disk) = (BlockNo(*block), DeviceId(0));
        planner.hint(Hint { block, disk }).unwrap();
    }
}

fn fetched(planner: &mut Planner, block: u32) {
    planner.fetched(BlockNo(block), Nanos(1)).unwrap();
}

fn asked(planner: &mut Planner, block: u32) {
    planner.asked(BlockNo(block), Nanos(1)).unwrap();
}

fn read(planner: &mut Planner, block: u32) {
    planner.passed(BlockNo(block), true).unwrap();
}

/// A round: the fetch, its victim, and whether a reader waits.
fn round(planner: &mut Planner) -> Vec<(u32, Option<u32>, bool)> {
    let plain = |fetch: Started| {
        let victim = fetch.evict.map(|victim| victim.0);
        (fetch.block.0, victim, fetch.demand)
    };
    core::iter::from_fn(|| planner.poll()).map(plain).collect()
}

#[test]
fn a_failed_fetch_is_tried_again_only_when_a_reader_asks() {
    let mut planner = planner("aggressive", 2);
    hint_all(&mut planner, &[5]);
    assert_eq!(round(&mut planner), [(5, None, false)]);
    planner.failed(BlockNo(5)).unwrap();
    assert_eq!(round(&mut planner), []);
    asked(&mut planner, 5);
    assert_eq!(round(&mut planner), [(5, None, true)]);
    planner.failed(BlockNo(5)).unwrap();
    assert_eq!(round(&mut planner), []);
}

#[test]
fn a_reader_that_takes_at_once_has_left_its_block_before_the_next_victim_is_chosen() {
    let mut planner = planner("aggressive", 1);
    hint_all(&mut planner, &[0, 1]);
    asked(&mut planner, 0);
    assert_eq!(round(&mut planner), [(0, None, true)]);
    fetched(&mut planner, 0);
    read(&mut planner, 0);
    assert_eq!(round(&mut planner), [(1, Some(0), false)]);
}

/// A batch is under way on the disk; reads of two of its blocks that are not in it wait.
#[test]
fn readers_wait_until_a_fetch_starts_for_them_or_their_use_is_passed() {
    let mut planner = planner("aggressive(batch_blocks=1)", 6);
    hint_all(&mut planner, &[0, 1, 2, 3]);
    assert_eq!(round(&mut planner), [(0, None, false)]);
    for block in [1, 2, 3] {
        asked(&mut planner, block);
    }
    assert_eq!(round(&mut planner), []);
    read(&mut planner, 2);
    assert_eq!(planner.board().awaited(), Some(Position(1)));
    fetched(&mut planner, 0);
    assert_eq!(round(&mut planner), [(1, None, true)]);
    assert_eq!(planner.board().awaited(), Some(Position(3)));
}

#[test]
fn distances_count_from_the_place_asked_for_and_from_behind_it_once_it_is_over() {
    let mut planner = planner("demand-opt", 2);
    hint_all(&mut planner, &[0, 1, 2]);
    asked(&mut planner, 1);
    assert_eq!(planner.board().here(), Position(1));
    read(&mut planner, 1);
    assert_eq!(planner.board().here(), Position(2));
    assert_eq!(planner.board().cursor(), Position(0));
}

#[test]
fn a_block_asked_for_out_of_turn_is_used_then_and_its_place_is_passed_over() {
    let mut planner = planner("demand-opt", 2);
    hint_all(&mut planner, &[0, 1, 2]);
    asked(&mut planner, 2);
    assert_eq!(round(&mut planner), [(2, None, true)]);
    fetched(&mut planner, 2);
    for block in [2, 0] {
        read(&mut planner, block);
    }
    assert_eq!(planner.board().cursor(), Position(1));
    let block = BlockNo(1);
    planner.passed(block, false).unwrap();
    assert_eq!(planner.board().cursor(), planner.board().end());
    assert_eq!(round(&mut planner), []);
}

#[test]
fn what_is_over_makes_room_for_other_references_and_numbers() {
    let mut planner = planner("aggressive", 2);
    let mut next = 0;
    for turn in 0..1000 {
        // Ten hundred references where two hundred fit, over blocks that come and go.
        if turn % 100 == 0 {
            planner.compact();
            let retired = (0..40).filter(|block| planner.retire(BlockNo(*block)));
            assert!(turn == 0 || retired.count() >= 37, "all but those resident");
            hint_all(
                &mut planner,
                &[7; 50].map(|step| next_block(&mut next, step)),
            );
            hint_all(
                &mut planner,
                &[9; 50].map(|step| next_block(&mut next, step)),
            );
        }
        let block = planner.board().block_at(planner.board().cursor()).unwrap();
        asked(&mut planner, block.0);
        while !planner.board().is_resident(block) {
            for (fetch, ..) in round(&mut planner) {
                fetched(&mut planner, fetch);
            }
        }
        read(&mut planner, block.0);
    }
}

fn next_block(last: &mut u32, step: u32) -> u32 {
    *last = (*last + step) % 40;
    *last
}

#[test]
fn no_more_is_prefetched_than_is_allowed_but_for_what_a_reader_waits_for() {
    let mut planner = planner("aggressive", 6);
    planner.allow(2);
    hint_all(&mut planner, &[0, 1, 2, 3]);
    assert_eq!(round(&mut planner), [(0, None, false), (1, None, false)]);
    fetched(&mut planner, 0);
    fetched(&mut planner, 1);
    assert_eq!(round(&mut planner), []);
    asked(&mut planner, 2);
    assert_eq!(round(&mut planner), [(2, None, true)]);
}
