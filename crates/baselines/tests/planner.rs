//! The planner under any input at all, and its contract at single points.
//!
//! A model keeps the frames as a driver would, from the outputs alone.

use forerun_baselines::METHODS;
use forerun_core::hinted::{
    BlockNo, Hint, Planner, PlannerInput, PlannerOutput, Position, Setup, SetupError,
};
use forerun_core::{DeviceId, Nanos};
use proptest::prelude::*;

fn block() -> impl Strategy<Value = BlockNo> {
    prop_oneof![9 => 0u32..12, 1 => prop::sample::select(&[40, u32::MAX][..])].prop_map(BlockNo)
}

/// Disk 9 does not exist, blocks from 40 on are refused, and a block may change its disk.
fn hint() -> impl Strategy<Value = Hint> {
    (block(), 0u32..20).prop_map(|(block, odd)| Hint {
        block,
        disk: DeviceId(if odd == 0 { 9 } else { (block.0 % 3) as u16 }),
    })
}

fn input() -> impl Strategy<Value = PlannerInput> {
    let time = prop_oneof![Just(0), 0u64..10_000_000, Just(u64::MAX)].prop_map(Nanos);
    prop_oneof![
        2 => prop::collection::vec(hint(), 0..20).prop_map(PlannerInput::Hints),
        1 => hint().prop_map(PlannerInput::Cached),
        8 => (block(), time.clone()).prop_map(|(block, service)| PlannerInput::Fetched { block, service }),
        2 => block().prop_map(|block| PlannerInput::Failed { block }),
        8 => (block(), time).prop_map(|(block, compute)| PlannerInput::Asked { block, compute }),
        8 => (block(), any::<bool>()).prop_map(|(block, read)| PlannerInput::Passed { block, read }),
        2 => (block(), 0u32..3).prop_map(|(block, k)| PlannerInput::Kept { block, kept: k == 0 }),
        1 => block().prop_map(|block| PlannerInput::Found { block }),
        1 => block().prop_map(|block| PlannerInput::Forgotten { block }),
    ]
}

fn setup(policy: &str, cache_blocks: u32) -> Setup {
    let mut setup = Setup::of(policy, 3, cache_blocks, &METHODS).unwrap();
    setup.blocks_max = 40;
    setup.hints_max = 200;
    setup
}

/// Frames in use, from the outside.
#[derive(Default)]
struct Frames {
    resident: std::collections::BTreeSet<BlockNo>,
    kept: std::collections::BTreeSet<BlockNo>,
    coming: std::collections::BTreeSet<BlockNo>,
}

impl Frames {
    fn see(&mut self, output: PlannerOutput, capacity: usize) -> Result<(), TestCaseError> {
        match output {
            PlannerOutput::Fetch { block, evict, .. } => {
                if let Some(victim) = evict {
                    prop_assert!(self.resident.remove(&victim), "{victim:?} was not there");
                    prop_assert!(!self.kept.contains(&victim), "{victim:?} is in hand");
                }
                prop_assert!(!self.resident.contains(&block), "{block:?} is there");
                prop_assert!(self.coming.insert(block), "{block:?} is on its way");
                prop_assert!(self.resident.len() + self.coming.len() <= capacity);
            }
            PlannerOutput::Idle => {}
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_input_breaks_it(
        inputs in prop::collection::vec((input(), any::<bool>(), 0u32..16), 1..200),
        cache_blocks in 1u32..8,
        allowance in prop_oneof![Just(u32::MAX), 0u32..6],
    ) {
        for method in METHODS.hinted {
            let mut planner = Planner::new(&setup(method.spec.name, cache_blocks)).unwrap();
            planner.allow(allowance);
            let mut frames = Frames::default();
            for (input, drain, luck) in &inputs {
                if *luck == 0 {
                    planner.compact();
                    for block in (0..40).map(BlockNo) {
                        let was_known = frames.resident.contains(&block);
                        prop_assert!(!planner.retire(block) || !was_known, "{block:?} is there");
                    }
                }
                let refused = planner.refused();
                planner.handle(input.clone());
                if planner.refused() == refused {
                    match input {
                        PlannerInput::Cached(hint) => {
                            frames.resident.insert(hint.block);
                        }
                        PlannerInput::Fetched { block, .. } => {
                            frames.coming.remove(block);
                            frames.resident.insert(*block);
                        }
                        PlannerInput::Found { block } => {
                            frames.coming.remove(block);
                            frames.resident.insert(*block);
                        }
                        PlannerInput::Kept { block, kept } => {
                            frames.kept.remove(block);
                            frames.kept.extend(kept.then_some(*block));
                        }
                        PlannerInput::Forgotten { block } => {
                            frames.kept.remove(block);
                            frames.resident.remove(block);
                        }
                        PlannerInput::Failed { block } => {
                            frames.coming.remove(block);
                        }
                        _ => {}
                    }
                }
                // Outputs are carried out before the next input; decisions may wait.
                if *drain {
                    loop {
                        match planner.poll() {
                            PlannerOutput::Idle => break,
                            output => frames.see(output, cache_blocks as usize)?,
                        }
                    }
                }
            }
        }
    }
}

fn hints(blocks: &[u32]) -> PlannerInput {
    let hint = |block: &u32| Hint {
        block: BlockNo(*block),
        disk: DeviceId(0),
    };
    PlannerInput::Hints(blocks.iter().map(hint).collect())
}

fn fetched(block: u32) -> PlannerInput {
    PlannerInput::Fetched {
        block: BlockNo(block),
        service: Nanos(1),
    }
}

fn asked(block: u32) -> PlannerInput {
    PlannerInput::Asked {
        block: BlockNo(block),
        compute: Nanos(1),
    }
}

fn read(block: u32) -> PlannerInput {
    PlannerInput::Passed {
        block: BlockNo(block),
        read: true,
    }
}

/// A round: the fetch, its victim, and whether a reader waits.
fn round(planner: &mut Planner) -> Vec<(u32, Option<u32>, bool)> {
    let fetches = core::iter::from_fn(|| match planner.poll() {
        PlannerOutput::Idle => None,
        PlannerOutput::Fetch {
            block,
            evict,
            demand,
            ..
        } => Some((block.0, evict.map(|victim| victim.0), demand)),
    });
    fetches.collect()
}

#[test]
fn a_failed_fetch_is_tried_again_only_when_a_reader_asks() {
    let mut planner = Planner::new(&setup("aggressive", 2)).unwrap();
    let failed = PlannerInput::Failed { block: BlockNo(5) };
    planner.handle(hints(&[5]));
    assert_eq!(round(&mut planner), [(5, None, false)]);
    planner.handle(failed.clone());
    assert_eq!(round(&mut planner), []);
    planner.handle(asked(5));
    assert_eq!(round(&mut planner), [(5, None, true)]);
    planner.handle(failed);
    assert_eq!(round(&mut planner), []);
    assert_eq!(planner.refused(), 0);
}

#[test]
fn a_reader_that_takes_at_once_has_left_its_block_before_the_next_victim_is_chosen() {
    let mut planner = Planner::new(&setup("aggressive", 1)).unwrap();
    planner.handle(hints(&[0, 1]));
    planner.handle(asked(0));
    assert_eq!(round(&mut planner), [(0, None, true)]);
    planner.handle(fetched(0));
    planner.handle(read(0));
    assert_eq!(round(&mut planner), [(1, Some(0), false)]);
}

/// A batch is under way on the disk; reads of two of its blocks that are not in it wait.
#[test]
fn readers_wait_until_a_fetch_starts_for_them_or_their_use_is_passed() {
    let mut planner = Planner::new(&setup("aggressive(batch_blocks=1)", 6)).unwrap();
    planner.handle(hints(&[0, 1, 2, 3]));
    assert_eq!(round(&mut planner), [(0, None, false)]);
    for block in [1, 2, 3] {
        planner.handle(asked(block));
    }
    assert_eq!(round(&mut planner), []);
    planner.handle(read(2));
    assert_eq!(planner.board().awaited(), Some(Position(1)));
    planner.handle(fetched(0));
    assert_eq!(round(&mut planner), [(1, None, true)]);
    assert_eq!(planner.board().awaited(), Some(Position(3)));
}

#[test]
fn distances_count_from_the_place_asked_for_and_from_behind_it_once_it_is_over() {
    let mut planner = Planner::new(&setup("demand-opt", 2)).unwrap();
    planner.handle(hints(&[0, 1, 2]));
    planner.handle(asked(1));
    assert_eq!(planner.board().here(), Position(1));
    planner.handle(read(1));
    assert_eq!(planner.board().here(), Position(2));
    assert_eq!(planner.board().cursor(), Position(0));
}

#[test]
fn a_block_asked_for_out_of_turn_is_used_then_and_its_place_is_passed_over() {
    let mut planner = Planner::new(&setup("demand-opt", 2)).unwrap();
    planner.handle(hints(&[0, 1, 2]));
    planner.handle(asked(2));
    assert_eq!(round(&mut planner), [(2, None, true)]);
    planner.handle(fetched(2));
    for block in [2, 0] {
        planner.handle(read(block));
    }
    assert_eq!(planner.board().cursor(), Position(1));
    let block = BlockNo(1);
    planner.handle(PlannerInput::Passed { block, read: false });
    assert_eq!(planner.board().cursor(), planner.board().end());
    assert_eq!(round(&mut planner), []);
}

#[test]
fn what_is_over_makes_room_for_other_references_and_numbers() {
    let mut planner = Planner::new(&setup("aggressive", 2)).unwrap();
    let mut next = 0;
    for turn in 0..1000 {
        // Ten hundred references where two hundred fit, over blocks that come and go.
        if turn % 100 == 0 {
            planner.compact();
            let retired = (0..40).filter(|block| planner.retire(BlockNo(*block)));
            assert!(turn == 0 || retired.count() >= 37, "all but those resident");
            planner.handle(hints(&[7; 50].map(|step| next_block(&mut next, step))));
            planner.handle(hints(&[9; 50].map(|step| next_block(&mut next, step))));
        }
        let block = planner.board().block_at(planner.board().cursor()).unwrap();
        planner.handle(asked(block.0));
        while !planner.board().is_resident(block) {
            for (fetch, ..) in round(&mut planner) {
                planner.handle(fetched(fetch));
            }
        }
        planner.handle(read(block.0));
    }
    assert_eq!(planner.refused(), 0);
}

fn next_block(last: &mut u32, step: u32) -> u32 {
    *last = (*last + step) % 40;
    *last
}

#[test]
fn no_more_is_prefetched_than_is_allowed_but_for_what_a_reader_waits_for() {
    let mut planner = Planner::new(&setup("aggressive", 6)).unwrap();
    planner.allow(2);
    planner.handle(hints(&[0, 1, 2, 3]));
    assert_eq!(round(&mut planner), [(0, None, false), (1, None, false)]);
    planner.handle(fetched(0));
    planner.handle(fetched(1));
    assert_eq!(round(&mut planner), []);
    planner.handle(asked(2));
    assert_eq!(round(&mut planner), [(2, None, true)]);
}

#[test]
fn setups_out_of_range_are_refused() {
    let good = setup("forestall", 4);
    let refused = |change: fn(&mut Setup)| {
        let mut setup = good.clone();
        change(&mut setup);
        Planner::new(&setup).map(|_| ())
    };
    assert_eq!(refused(|s| s.disks = 0), Err(SetupError::Disks(0)));
    assert_eq!(refused(|s| s.disks = 1025), Err(SetupError::Disks(1025)));
    assert_eq!(refused(|s| s.cache_blocks = 0), Err(SetupError::NoCache));
    assert_eq!(
        refused(|s| s.hints_max = u32::MAX),
        Err(SetupError::Hints(u32::MAX))
    );
    assert_eq!(
        format!("{}", SetupError::Disks(0)),
        "disks=0: must lie from 1 to 1024"
    );
}
