//! The planner under any input at all, and what its contract promises at single points.
//!
//! A model keeps the frames as a driver would, from the outputs alone.

use super::*;
use crate::hinted::{Hint, Position};
use crate::units::DeviceId;
use proptest::prelude::*;
use std::vec::Vec;
use std::{format, vec};

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

fn input() -> impl Strategy<Value = Input> {
    let time = prop_oneof![Just(0), 0u64..10_000_000, Just(u64::MAX)].prop_map(Nanos);
    prop_oneof![
        2 => prop::collection::vec(hint(), 0..20).prop_map(Input::Hints),
        1 => hint().prop_map(Input::Cached),
        6 => time.clone().prop_map(|compute| Input::Wanted { compute }),
        6 => Just(Input::Taken),
        8 => (block(), time.clone()).prop_map(|(block, service)| Input::Fetched { block, service }),
        2 => block().prop_map(|block| Input::Failed { block }),
        4 => (block(), time).prop_map(|(block, compute)| Input::Asked { block, compute }),
        4 => (block(), any::<bool>()).prop_map(|(block, read)| Input::Passed { block, read }),
        2 => (block(), 0u32..3).prop_map(|(block, k)| Input::Kept { block, kept: k == 0 }),
        1 => block().prop_map(|block| Input::Found { block }),
        1 => block().prop_map(|block| Input::Forgotten { block }),
    ]
}

fn setup(policy: &str, cache_blocks: u32) -> Setup {
    Setup {
        blocks_max: 40,
        hints_max: 200,
        ..Setup::of(policy, 3, cache_blocks).unwrap()
    }
}

/// Frames in use, from the outside.
#[derive(Default)]
struct Frames {
    resident: std::collections::BTreeSet<BlockNo>,
    kept: std::collections::BTreeSet<BlockNo>,
    coming: std::collections::BTreeSet<BlockNo>,
}

impl Frames {
    fn see(&mut self, output: Output, capacity: usize) -> Result<(), TestCaseError> {
        match output {
            Output::Fetch { block, evict, .. } => {
                if let Some(victim) = evict {
                    prop_assert!(self.resident.remove(&victim), "{victim:?} was not there");
                    prop_assert!(!self.kept.contains(&victim), "{victim:?} is in hand");
                }
                prop_assert!(!self.resident.contains(&block), "{block:?} is there");
                prop_assert!(self.coming.insert(block), "{block:?} is on its way");
                prop_assert!(self.resident.len() + self.coming.len() <= capacity);
            }
            Output::Serve { block, .. } => prop_assert!(self.resident.contains(&block)),
            Output::Lost { block, .. } => prop_assert!(!self.resident.contains(&block)),
            Output::Idle => {}
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
        for method in policy::LIST {
            let mut planner = Planner::new(&setup(method.spec.name, cache_blocks)).unwrap();
            planner.allow(allowance);
            let mut frames = Frames::default();
            for (now, (input, drain, luck)) in (0..).zip(&inputs) {
                if *luck == 0 {
                    planner.compact();
                    for block in (0..40).map(BlockNo) {
                        let was_known = frames.resident.contains(&block);
                        prop_assert!(!planner.retire(block) || !was_known, "{block:?} is there");
                    }
                }
                let refused = planner.ledger().refused_inputs;
                planner.handle(Nanos(now), input.clone());
                if planner.ledger().refused_inputs == refused {
                    match input {
                        Input::Cached(hint) => {
                            frames.resident.insert(hint.block);
                        }
                        Input::Fetched { block, .. } => {
                            frames.coming.remove(block);
                            frames.resident.insert(*block);
                        }
                        Input::Found { block } => {
                            frames.coming.remove(block);
                            frames.resident.insert(*block);
                        }
                        Input::Kept { block, kept } => {
                            frames.kept.remove(block);
                            frames.kept.extend(kept.then_some(*block));
                        }
                        Input::Forgotten { block } => {
                            frames.kept.remove(block);
                            frames.resident.remove(block);
                        }
                        Input::Failed { block } => {
                            frames.coming.remove(block);
                        }
                        _ => {}
                    }
                }
                let ledger = *planner.ledger();
                prop_assert!(ledger.adds_up(), "{}: {ledger:?}", method.spec.name);
                // What was put out is carried out before the next input; decisions may wait.
                while *drain || !planner.out.is_empty() {
                    match planner.poll() {
                        Output::Idle => break,
                        output => frames.see(output, cache_blocks as usize)?,
                    }
                }
            }
            prop_assert_eq!(planner.ledger().refused_pairs, 0, "{}", method.spec.name);
        }
    }
}

fn hints(blocks: &[u32]) -> Input {
    let hint = |block: &u32| Hint {
        block: BlockNo(*block),
        disk: DeviceId(0),
    };
    Input::Hints(blocks.iter().map(hint).collect())
}

fn fetched(block: u32) -> Input {
    Input::Fetched {
        block: BlockNo(block),
        service: Nanos(1),
    }
}

const WANTED: Input = Input::Wanted { compute: Nanos(1) };

#[test]
fn a_failed_prefetch_is_tried_again_for_the_reader_and_only_then_shown() {
    let mut planner = Planner::new(&setup("aggressive", 2)).unwrap();
    let failed = Input::Failed { block: BlockNo(5) };
    let fetch = |demand| Output::Fetch {
        block: BlockNo(5),
        disk: DeviceId(0),
        evict: None,
        demand,
    };
    planner.handle(Nanos(0), hints(&[5]));
    assert_eq!(planner.poll(), fetch(false));
    planner.handle(Nanos(1), failed.clone());
    assert_eq!(planner.poll(), Output::Idle);
    planner.handle(Nanos(2), WANTED);
    assert_eq!(planner.poll(), fetch(true));
    planner.handle(Nanos(3), failed);
    let lost = Output::Lost {
        position: Position(0),
        block: BlockNo(5),
    };
    assert_eq!((planner.poll(), planner.poll()), (lost, Output::Idle));
    planner.handle(Nanos(4), Input::Taken);
    assert_eq!(planner.poll(), Output::Idle);
    assert_eq!(
        (planner.ledger().failed, planner.ledger().refused_inputs),
        (1, 0)
    );
}

#[test]
fn a_reader_that_takes_at_once_has_left_its_block_before_the_next_victim_is_chosen() {
    let mut planner = Planner::new(&setup("aggressive", 1)).unwrap();
    planner.handle(Nanos(0), hints(&[0, 1]));
    planner.handle(Nanos(0), WANTED);
    let Output::Fetch {
        block: BlockNo(0), ..
    } = planner.poll()
    else {
        panic!("the first block is fetched")
    };
    planner.handle(Nanos(7), fetched(0));
    let Output::Serve { .. } = planner.poll() else {
        panic!("the reader is served before anything is decided")
    };
    planner.handle(Nanos(7), Input::Taken);
    let evicts_it = Output::Fetch {
        block: BlockNo(1),
        disk: DeviceId(0),
        evict: Some(BlockNo(0)),
        demand: false,
    };
    assert_eq!(planner.poll(), evicts_it);
    assert_eq!(planner.ledger().waited, Nanos(7));
}

#[test]
fn a_block_asked_for_out_of_turn_is_used_then_and_its_place_is_passed_over() {
    let mut planner = Planner::new(&setup("demand-opt", 2)).unwrap();
    let block = BlockNo(2);
    planner.handle(Nanos(0), hints(&[0, 1, 2]));
    let compute = Nanos(1);
    planner.handle(Nanos(1), Input::Asked { block, compute });
    assert_eq!(
        planner.poll(),
        Output::Fetch {
            block,
            disk: DeviceId(0),
            evict: None,
            demand: true
        }
    );
    planner.handle(Nanos(2), fetched(2));
    for block in [2, 0].map(BlockNo) {
        planner.handle(Nanos(3), Input::Passed { block, read: true });
    }
    assert_eq!(planner.board().cursor(), Position(1));
    let block = BlockNo(1);
    planner.handle(Nanos(3), Input::Passed { block, read: false });
    assert_eq!(planner.board().cursor(), planner.board().end());
    assert_eq!(planner.poll(), Output::Idle);
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
            planner.handle(
                Nanos(turn),
                hints(&[7; 50].map(|step| next_block(&mut next, step))),
            );
            planner.handle(
                Nanos(turn),
                hints(&[9; 50].map(|step| next_block(&mut next, step))),
            );
        }
        planner.handle(Nanos(turn), WANTED);
        loop {
            match planner.poll() {
                Output::Idle => break,
                Output::Fetch { block, .. } => planner.handle(Nanos(turn), fetched(block.0)),
                Output::Serve { .. } => planner.handle(Nanos(turn), Input::Taken),
                Output::Lost { .. } => panic!("nothing fails"),
            }
        }
    }
    let ledger = planner.ledger();
    assert_eq!((ledger.reads, ledger.refused_inputs), (1000, 0));
}

fn next_block(last: &mut u32, step: u32) -> u32 {
    *last = (*last + step) % 40;
    *last
}

#[test]
fn no_more_is_prefetched_than_is_allowed_but_for_what_a_reader_waits_for() {
    let mut planner = Planner::new(&setup("aggressive", 6)).unwrap();
    planner.allow(2);
    planner.handle(Nanos(0), hints(&[0, 1, 2, 3]));
    let fetches = |planner: &mut Planner| {
        let polled = core::iter::from_fn(|| match planner.poll() {
            Output::Fetch { block, .. } => Some(block.0),
            _ => None,
        });
        polled.collect::<Vec<_>>()
    };
    assert_eq!(fetches(&mut planner), [0, 1]);
    planner.handle(Nanos(1), fetched(0));
    planner.handle(Nanos(1), fetched(1));
    assert_eq!(fetches(&mut planner), []);
    let compute = Nanos(1);
    let block = BlockNo(2);
    planner.handle(Nanos(2), Input::Asked { block, compute });
    assert_eq!(fetches(&mut planner), [2]);
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
