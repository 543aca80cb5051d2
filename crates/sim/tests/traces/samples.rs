//! Miniature simulation beside exact counts: how far a sample is off, and whether its error says so.

use forerun_sim::count::counting::Counter;
use forerun_sim::count::references::{Counted, References, WHOLE};
use forerun_sim::random::Random;
use forerun_sim::trace::Record;

/// Skewed references to 200,000 objects, with scans of others between them.
fn references(seed: u64, sample_per_million: u32) -> References {
    let mut references = References::new(Counted {
        block_bytes: 4096,
        with_writes: false,
        by_sizes: false,
        sample_per_million,
        memory_bytes: 1 << 30,
    });
    let mut random = Random::new(seed);
    let mut scan = 1 << 40;
    for at in 0..800_000u64 {
        let is_scan = at / 1000 % 20 == 0;
        scan += u64::from(is_scan);
        // The product of two draws is skewed: half of the references go to a seventh of the objects.
        let object = random.below(450) * random.below(450);
        references
            .add(&Record::block(if is_scan { scan } else { object }))
            .unwrap();
    }
    references
}

fn counted(policy: &str, references: &References, capacities: &[u64]) -> Vec<(f64, f64)> {
    let counter: Counter = policy.parse().unwrap();
    let results = counter.count(references, capacities, 0);
    results
        .iter()
        .map(|result| (result.miss_ratio.value, result.miss_ratio.error))
        .collect()
}

#[test]
fn the_error_of_a_sample_holds_the_exact_ratio() {
    let capacities = [2000, 5000, 10_000, 20_000, 40_000];
    let (mut held, mut points, mut worst) = (0, 0, 0f64);
    for seed in 0..=0u64 {
        let (all, sample) = (references(seed, WHOLE), references(seed, WHOLE / 10));
        assert!(sample.kept() < all.kept() / 5 && sample.all() == all.all());
        for policy in [
            "lru", "fifo", "sieve", "2q", "arc", "s3-fifo", "lirs", "opt",
        ] {
            let exact = counted(policy, &all, &capacities);
            let estimates = counted(policy, &sample, &capacities);
            for ((ratio, none), (estimate, error)) in exact.iter().zip(&estimates) {
                assert_eq!(*none, 0.0, "{policy}");
                assert!(*error > 0.0, "{policy}");
                held += usize::from((ratio - estimate).abs() <= *error);
                worst = worst.max((ratio - estimate).abs());
                points += 1;
            }
        }
    }
    assert!(
        held * 100 >= points * 90,
        "{held} of {points}, worst {worst}"
    );
    assert!(worst < 0.03, "{worst}");
}

#[test]
fn a_curve_of_lru_in_one_pass_is_its_counts_one_by_one() {
    let all = references(5, WHOLE);
    let capacities = [1, 100, 3000, 50_000, 1_000_000];
    let curve = counted("lru", &all, &capacities);
    let single: Vec<(f64, f64)> = capacities
        .iter()
        .flat_map(|one| counted("lru", &all, &[*one]))
        .collect();
    assert_eq!(curve, single);
}
