//! The theorems of kimbrel96 and what else must always hold, over seeded instances of the unit
//! model, each against the exhaustive optimum (K18).
//!
//! - aggressive on one disk: at most min(1 + F/K, 2) times the optimum (Cao et al. 1995);
//! - aggressive on d disks: at most d (1 + F/K) times (Theorem 1);
//! - reverse aggressive: at most 1 + F d/K times (Theorem 2);
//! - nobody: below the optimum;
//! - nobody but reverse aggressive, whose point it is: does harm;
//! - every run: adds up, and can be replayed to the same schedule.
//!
//! Half of the instances start with a full cache, as the theory has it, the others with less.

use forerun_core::hinted::{BlockNo, Setup};
use forerun_core::{Bytes, DeviceId, Nanos};
use forerun_sim::hinted::optimum::optimum;
use forerun_sim::hinted::unit::{self, Instance, UnitReport};
use forerun_sim::hinted::{Place, Reads, Reference};
use forerun_sim::random::Random;

const SEED: u64 = 18;
const INSTANCES: u64 = 10_000;

struct Case {
    seed: u64,
    instance: Instance,
    disks: u16,
    cache_blocks: u32,
}

/// An instance of at most 8 blocks, `disks_max` disks and 14 references.
fn draw(seed: u64, disks_max: u16) -> Case {
    let mut random = Random::part(SEED, seed);
    let disks = random.between(1, u64::from(disks_max)) as u16;
    let blocks = random.between(2, 8) as u32;
    let cache_blocks = random.between(1, u64::from(blocks - 1).min(5)) as u32;
    let references = random.between(3, 14);
    let block = |random: &mut Random| BlockNo(random.below(u64::from(blocks)) as u32);
    let reference = |random: &mut Random| Reference {
        block: block(random),
        compute: Nanos(1),
    };
    let place = |random: &mut Random| Place {
        disk: DeviceId(random.below(u64::from(disks)) as u16),
        at: Bytes(0),
    };
    let reads = Reads {
        references: (0..references).map(|_| reference(&mut random)).collect(),
        places: (0..blocks).map(|_| place(&mut random)).collect(),
    };
    let warm = match random.below(4) {
        0 => 0,
        1 => random.between(0, u64::from(cache_blocks)) as u32,
        _ => cache_blocks,
    };
    let first = random.below(u64::from(blocks)) as u32;
    Case {
        seed,
        instance: Instance {
            reads,
            warm: (0..warm).map(|i| BlockNo((first + i) % blocks)).collect(),
            fetch_units: random.between(1, 4),
        },
        disks,
        cache_blocks,
    }
}

/// The methods with one fetch at a time and F as it is.
fn methods(f: u64) -> [(&'static str, String); 6] {
    [
        ("demand-lru", "demand-lru".into()),
        ("demand-opt", "demand-opt".into()),
        ("fixed-horizon", format!("fixed-horizon(horizon_refs={f})")),
        ("aggressive", "aggressive(batch_blocks=1)".into()),
        (
            "reverse-aggressive",
            format!(
                "reverse-aggressive(fetch_percent={},batch_blocks=1,reverse_batch_blocks=1)",
                f * 100
            ),
        ),
        (
            "forestall",
            format!("forestall(horizon_refs={f},batch_blocks=1)"),
        ),
    ]
}

impl Case {
    fn run(&self, policy: &str) -> UnitReport {
        let setup = Setup::of(policy, self.disks, self.cache_blocks).unwrap();
        let report = unit::run(&setup, &self.instance)
            .unwrap_or_else(|error| panic!("seed {} {policy}: {error}", self.seed));
        let about = format!("seed {} {policy}: {report:?}", self.seed);
        let references = self.instance.reads.references.len() as u64;
        assert!(report.ledger.adds_up(), "{about}");
        assert_eq!(report.ledger.reads, references, "{about}");
        assert_eq!(
            report.elapsed_units,
            references + report.stall_units,
            "{about}"
        );
        assert_eq!(report.ledger.waited.0, report.stall_units, "{about}");
        assert_eq!(report.ledger.refused_inputs, 0, "{about}");
        assert_eq!(report.ledger.refused_pairs, 0, "{about}");
        report
    }

    /// When a block is used next, from a cursor on.
    fn next_use(&self, cursor: u32, block: BlockNo) -> usize {
        let ahead = self.instance.reads.references[cursor as usize..].iter();
        let found = ahead.clone().position(|r| r.block == block);
        found.unwrap_or(usize::MAX)
    }

    fn does_harm(&self, report: &UnitReport) -> bool {
        report.fetches.iter().any(|fetch| {
            fetch.evict.is_some_and(|evict| {
                self.next_use(fetch.cursor, evict) < self.next_use(fetch.cursor, fetch.block)
            })
        })
    }
}

/// Whether `elapsed <= best * over / under`.
fn within(elapsed: u64, best: u64, over: u64, under: u64) -> bool {
    elapsed * under <= best * over
}

fn check(case: &Case, sums: &mut [(u64, u64); 6]) {
    let f = case.instance.fetch_units;
    let (k, d) = (u64::from(case.cache_blocks), u64::from(case.disks));
    let best = optimum(&case.instance, case.cache_blocks).expect("small enough");
    for (i, (name, policy)) in methods(f).into_iter().enumerate() {
        let report = case.run(&policy);
        let elapsed = report.elapsed_units;
        let about = format!(
            "seed {} {name}: {elapsed}, optimum {best}, F {f} K {k} d {d}",
            case.seed
        );
        assert!(elapsed >= best, "{about}");
        assert!(
            name == "reverse-aggressive" || !case.does_harm(&report),
            "{about}"
        );
        match name {
            "aggressive" => {
                assert!(within(elapsed, best, d * (k + f), k), "{about}");
                assert!(d > 1 || elapsed <= 2 * best, "{about}");
            }
            "reverse-aggressive" => assert!(within(elapsed, best, k + f * d, k), "{about}"),
            _ => {}
        }
        sums[i].0 += elapsed;
        sums[i].1 += best;
    }
}

/// Checks all instances; answers each method's time over the optimum's, both summed up.
fn check_all(disks_max: u16) -> String {
    let mut sums = [(0, 0); 6];
    for seed in 0..INSTANCES {
        check(&draw(seed, disks_max), &mut sums);
    }
    let rows = methods(1).into_iter().zip(sums);
    rows.map(|((name, _), (elapsed, best))| format!("{name:20} {elapsed} against {best}\n"))
        .collect()
}

#[test]
fn the_bounds_hold_on_one_disk() {
    println!("seed {SEED}\n{}", check_all(1));
}

#[test]
fn the_bounds_hold_on_up_to_three_disks() {
    println!("seed {SEED}\n{}", check_all(3));
}
