//! The theorems of Kimbrel et al. 1996 and invariants of all methods, over seeded instances of the
//! unit model, each against the exhaustive optimum (K18).
//!
//! - aggressive on one disk: at most min(1 + F/K, 2) times the optimum (Cao et al. 1995);
//! - aggressive on d disks: at most d (1 + F/K) times (Theorem 1);
//! - reverse aggressive: at most 1 + F d/K times (Theorem 2);
//! - every method: never below the optimum;
//! - every method but reverse aggressive, whose point it is: does no harm;
//! - every method: the sums of elapsed time over all instances are those below. The bounds are so
//!   wide that fixed horizon keeps both theorems; the means over the optimum tell methods apart.
//! - every run: adds up, and can be replayed to the same schedule.
//!
//! Half of the instances start with a full cache, as the theory has it, the others with less.

#![expect(
    clippy::print_stdout,
    reason = "the seed and the sums are shown for a test that fails"
)]

use forerun_baselines::METHODS;
use forerun_core::hinted::BlockNo;
use forerun_lab::theory::{Drawn, draw};
use forerun_sim::hinted::Setup;
use forerun_sim::hinted::optimum::optimum;
use forerun_sim::hinted::unit::{self, UnitReport};

const SEED: u64 = 18;
const INSTANCES: u64 = 10_000;

struct Case {
    number: u64,
    drawn: Drawn,
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
        let setup = Setup::of(policy, self.drawn.disks, self.drawn.cache_blocks, &METHODS).unwrap();
        let report = unit::run(&setup, &self.drawn.instance)
            .unwrap_or_else(|error| panic!("instance {} {policy}: {error}", self.number));
        let about = format!("instance {} {policy}: {report:?}", self.number);
        let references = self.drawn.instance.reads.references.len() as u64;
        assert!(report.ledger.adds_up(), "{about}");
        assert_eq!(report.ledger.reads, references, "{about}");
        assert_eq!(
            report.elapsed_units,
            references + report.stall_units,
            "{about}"
        );
        assert_eq!(report.refused, 0, "{about}");
        report
    }

    /// When a block is used next, from a cursor on.
    fn next_use(&self, cursor: u32, block: BlockNo) -> usize {
        let ahead = self.drawn.instance.reads.references[cursor as usize..].iter();
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
    let f = case.drawn.instance.fetch_units;
    let (k, d) = (
        u64::from(case.drawn.cache_blocks),
        u64::from(case.drawn.disks),
    );
    let best = optimum(&case.drawn.instance, case.drawn.cache_blocks).expect("small enough");
    for (i, (name, policy)) in methods(f).into_iter().enumerate() {
        let report = case.run(&policy);
        let elapsed = report.elapsed_units;
        let about = format!(
            "instance {} {name}: {elapsed}, optimum {best}, F {f} K {k} d {d}",
            case.number
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

/// Checks all instances; answers each method's time and the optimum's, both summed up.
fn check_all(disks_max: u16) -> [(u64, u64); 6] {
    let mut sums = [(0, 0); 6];
    for number in 0..INSTANCES {
        let drawn = draw(SEED, number, disks_max);
        check(&Case { number, drawn }, &mut sums);
    }
    println!("seed {SEED}");
    for ((name, _), (elapsed, best)) in methods(1).into_iter().zip(sums) {
        println!("{name:20} {elapsed} against {best}");
    }
    sums
}

/// Each method's mean over the optimum, in units of one in ten thousand.
fn means(sums: [(u64, u64); 6]) -> [u64; 6] {
    sums.map(|(elapsed, best)| (elapsed * 10_000).div_ceil(best))
}

/// In the order of [`methods`]. A change here is a change of a method: say which and why.
#[test]
fn the_bounds_hold_on_one_disk() {
    let means = means(check_all(1));
    assert_eq!(means, [11_922, 11_164, 10_159, 10_080, 10_097, 10_150]);
}

#[test]
fn the_bounds_hold_on_up_to_three_disks() {
    let means = means(check_all(3));
    assert_eq!(means, [12_287, 11_506, 10_096, 10_070, 10_059, 10_088]);
}
