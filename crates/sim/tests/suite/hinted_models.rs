//! Demand fetching against the plainest models of it, and hosts against each other.
//!
//! `demand-lru` and `demand-opt` must miss exactly where a cache kept as a list does, for any
//! string, cache and device; on a loop the misses have a closed form. Hints that arrive in pieces,
//! devices that fail and references to blocks that lie nowhere must end well under every method.

use forerun_baselines::METHODS;
use forerun_core::Nanos;
use forerun_core::hinted::{BlockNo, Board, Planner};
use forerun_sim::device::Device;
use forerun_sim::hinted::constant::Constant;
use forerun_sim::hinted::host::Notice;
use forerun_sim::hinted::host::{self, Host};
use forerun_sim::hinted::unit::{self, Instance};
use forerun_sim::hinted::{HostError, Place, Reads, Reference, Setup};
use forerun_sim::random::Random;
use forerun_sim::wrap::fault::{Fault, Faults};
use proptest::prelude::*;

fn reads(blocks: &[u32], disks: u16) -> Reads {
    let last = blocks.iter().max().copied().unwrap_or(0);
    let reference = |block: &u32| Reference {
        block: BlockNo(*block),
        compute: Nanos(1_000_000),
    };
    Reads {
        references: blocks.iter().map(reference).collect(),
        places: (0..=last)
            .map(|block| Place::striped(u64::from(block), disks, 8192))
            .collect(),
    }
}

fn fetches(policy: &str, blocks: &[u32], cache_blocks: u32, disks: u16) -> u64 {
    let setup = Setup::of(policy, disks, cache_blocks, &METHODS).unwrap();
    let instance = Instance {
        reads: reads(blocks, disks),
        warm: Vec::new(),
        fetch_units: 3,
    };
    unit::run(&setup, &instance).unwrap().ledger.fetches
}

/// The cache as a list, most recently used last.
fn lru_misses(blocks: &[u32], cache_blocks: usize) -> u64 {
    let mut cache = Vec::new();
    let mut misses = 0;
    for block in blocks {
        match cache.iter().position(|cached| cached == block) {
            Some(at) => {
                cache.remove(at);
            }
            None => misses += 1,
        }
        cache.push(*block);
        if cache.len() > cache_blocks {
            cache.remove(0);
        }
    }
    misses
}

/// The cache as a list; the victim is looked for by reading on.
fn opt_misses(blocks: &[u32], cache_blocks: usize) -> u64 {
    let mut cache: Vec<u32> = Vec::new();
    let mut misses = 0;
    for (now, block) in blocks.iter().enumerate() {
        if cache.contains(block) {
            continue;
        }
        misses += 1;
        if cache.len() == cache_blocks {
            let next = |cached: &u32| blocks[now..].iter().position(|b| b == cached);
            let furthest =
                (0..cache.len()).max_by_key(|at| next(&cache[*at]).unwrap_or(usize::MAX));
            cache.remove(furthest.unwrap());
        }
        cache.push(*block);
    }
    misses
}

fn strings() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        prop::collection::vec(0u32..12, 1..120),
        prop::collection::vec(0u32..60, 1..300),
        (1u32..40, 1usize..300).prop_map(|(loop_of, n)| (0..loop_of).cycle().take(n).collect()),
    ]
}

proptest! {
    #[test]
    fn demand_misses_where_a_plain_cache_does(
        blocks in strings(), cache_blocks in 1u32..40, disks in 1u16..4,
    ) {
        let k = cache_blocks as usize;
        prop_assert_eq!(fetches("demand-lru", &blocks, cache_blocks, disks), lru_misses(&blocks, k));
        prop_assert_eq!(fetches("demand-opt", &blocks, cache_blocks, disks), opt_misses(&blocks, k));
    }

    #[test]
    fn no_method_fetches_less_than_optimal_demand_fetching(
        blocks in strings(), cache_blocks in 1u32..40, disks in 1u16..4,
    ) {
        let least = opt_misses(&blocks, cache_blocks as usize);
        for method in METHODS.hinted {
            let fetched = fetches(method.spec.name, &blocks, cache_blocks, disks);
            prop_assert!(fetched >= least, "{}: {fetched} of {least}", method.spec.name);
        }
    }

    #[test]
    fn devices_that_fail_delay_but_never_stop_a_reader(
        blocks in strings(), cache_blocks in 1u32..40, disks in 1u16..4, seed: u64,
        notice in prop::sample::select(&[Notice::AtReads, Notice::AtOnce][..]),
    ) {
        let reads = reads(&blocks, disks);
        for method in METHODS.hinted {
            let setup = Setup::of(method.spec.name, disks, cache_blocks, &METHODS).unwrap();
            let devices = (0..disks).map(|disk| failing(seed ^ u64::from(disk)));
            let host = Host { notice, ..Host::default() };
            let report = host::run(&setup, &host, &reads, devices.collect()).unwrap();
            prop_assert!(report.adds_up(), "{}: {report:?}", method.spec.name);
            prop_assert_eq!(report.ledger.reads, blocks.len() as u64);
            prop_assert_eq!(report.refused, 0);
        }
    }

    #[test]
    fn hints_may_come_in_pieces(
        blocks in strings(), piece in 1usize..50, cache_blocks in 1u32..40, disks in 1u16..4,
    ) {
        let reads = reads(&blocks, disks);
        for method in METHODS.hinted {
            let policy = method.of(&[]);
            let mut planner = Planner::new(policy, Board::new(disks, cache_blocks));
            for hints in reads.hints().chunks(piece) {
                for hint in hints {
                    prop_assert!(planner.hint(*hint).is_some());
                }
                read_to_the_end(&mut planner, method.spec.name)?;
            }
            prop_assert_eq!(planner.board().cursor().0 as usize, blocks.len());
        }
    }
}

fn failing(seed: u64) -> Box<dyn Device> {
    let device = Constant::new(Nanos(2_500_000));
    let faults = Faults {
        seed,
        failed_per_mille: 100,
        short_per_mille: 20,
        delayed_per_mille: 200,
        delay_max: Nanos(20_000_000),
    };
    Box::new(Fault::new(device, faults))
}

/// Reads every known reference; each fetch ends when the planner has nothing else to say.
fn read_to_the_end(planner: &mut Planner, name: &str) -> Result<(), TestCaseError> {
    let mut coming = std::collections::VecDeque::new();
    let (compute, service) = (Nanos(1), Nanos(3));
    while let Some(block) = planner.board().block_at(planner.board().cursor()) {
        planner.asked(block, compute).unwrap();
        round(planner, &mut coming);
        while !planner.board().is_resident(block) {
            let arrived = coming.pop_front();
            prop_assert!(arrived.is_some(), "{name} waits for nothing");
            let block = arrived.unwrap_or_default();
            planner.fetched(block, service).unwrap();
            round(planner, &mut coming);
        }
        planner.passed(block, true).unwrap();
        round(planner, &mut coming);
    }
    while let Some(block) = coming.pop_front() {
        planner.fetched(block, service).unwrap();
        round(planner, &mut coming);
    }
    Ok(())
}

fn round(planner: &mut Planner, coming: &mut std::collections::VecDeque<BlockNo>) {
    while let Some(fetch) = planner.poll() {
        coming.push_back(fetch.block);
    }
}

#[test]
fn misses_on_a_loop_have_a_closed_form() {
    // L blocks, K < L: LRU misses always. With optimal replacement a pass misses L - K times after
    // the first, and the missed blocks move back by one place a pass.
    for (loop_of, cache_blocks, passes) in [(10, 4, 4), (40, 39, 20), (100, 64, 8)] {
        let blocks: Vec<u32> = (0..loop_of)
            .cycle()
            .take((loop_of * passes) as usize)
            .collect();
        let all = u64::from(loop_of * passes);
        assert_eq!(fetches("demand-lru", &blocks, cache_blocks, 1), all);
        let missed = loop_of + (passes - 1) * (loop_of - cache_blocks);
        assert_eq!(
            fetches("demand-opt", &blocks, cache_blocks, 1),
            u64::from(missed)
        );
    }
}

#[test]
fn a_reference_to_a_block_that_lies_nowhere_is_an_error() {
    let mut reads = reads(&[0, 1, 2], 1);
    reads.places.pop();
    let setup = Setup::of("aggressive", 1, 2, &METHODS).unwrap();
    let devices: Vec<Box<dyn Device>> = vec![Box::new(Constant::new(Nanos(1)))];
    let ran = host::run(&setup, &Host::default(), &reads, devices);
    assert_eq!(ran, Err(HostError::Unplaced));
}

#[test]
fn too_few_disks_or_devices_are_an_error() {
    let reads = reads(&[0, 1, 2], 3);
    let setup = Setup::of("aggressive", 2, 2, &METHODS).unwrap();
    let ran = host::run(&setup, &Host::default(), &reads, Vec::new());
    assert_eq!(ran, Err(HostError::Disks(3)));
    let setup = Setup::of("aggressive", 3, 2, &METHODS).unwrap();
    let ran = host::run(&setup, &Host::default(), &reads, Vec::new());
    assert_eq!(ran, Err(HostError::Devices(0)));
}

#[test]
fn one_seed_gives_one_run() {
    let mut random = Random::new(3);
    let blocks: Vec<u32> = (0..400).map(|_| random.below(50) as u32).collect();
    for method in METHODS.hinted {
        let run = || {
            let setup = Setup::of(method.spec.name, 2, 20, &METHODS).unwrap();
            let devices = (0..2).map(failing).collect();
            host::run(&setup, &Host::default(), &reads(&blocks, 2), devices).unwrap()
        };
        assert_eq!(run(), run(), "{}", method.spec.name);
    }
}
