//! `synth`: 50 passes over 2000 sequential blocks, the one trace of Kimbrel et al. 1996 not lost.
//!
//! Compute times between reads are exponential with mean 1 ms ("according to a Poisson
//! distribution", section 3.1), from a seed. Blocks are striped over the disks one by one. With the
//! paper's cache of 1280 blocks, demand fetching must make 37,280 fetches and fixed horizon 38,000
//! on disks of any kind: neither depends on time.
//!
//! Exponential variates come from von Neumann's comparison method, exact and without logarithms,
//! so that a seed gives the same trace on every machine: the length of the first descending run
//! of uniform numbers is odd with probability exp(-x), x being the first of them; the number of
//! runs refused before is the whole part.

use forerun_core::Nanos;
use forerun_core::hinted::BlockNo;

use super::{BLOCK_BYTES, Place, Reads, Reference};
use crate::random::Random;

/// Blocks in the loop.
pub const BLOCKS: u32 = 2000;
/// Passes over it.
pub const PASSES: u32 = 50;
/// The cache of the paper's runs, 10 MB of blocks.
pub const CACHE_BLOCKS: u32 = 1280;
/// Mean compute time between two reads.
pub const MEAN_COMPUTE: Nanos = Nanos(1_000_000);

/// The trace on an array of a given number of disks.
#[must_use]
pub fn synth(disks: u16, seed: u64) -> Reads {
    let mut random = Random::new(seed);
    let reference = |number: u32| Reference {
        block: BlockNo(number % BLOCKS),
        compute: exponential(&mut random, MEAN_COMPUTE),
    };
    let place = |number: u32| Place::striped(u64::from(number), disks, BLOCK_BYTES);
    Reads {
        references: (0..PASSES * BLOCKS).map(reference).collect(),
        places: (0..BLOCKS).map(place).collect(),
    }
}

/// A duration drawn from the exponential distribution of this mean.
#[must_use]
pub fn exponential(random: &mut Random, mean: Nanos) -> Nanos {
    let mut whole: u64 = 0;
    loop {
        let first = random.number();
        let (mut last, mut run) = (first, 1u32);
        loop {
            let next = random.number();
            if next > last {
                break;
            }
            (last, run) = (next, run + 1);
        }
        if run % 2 == 1 {
            let part = (u128::from(first) * u128::from(mean.0)) >> 64;
            return Nanos(whole.saturating_mul(mean.0).saturating_add(part as u64));
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_times_are_exponential() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..100_000)
            .map(|_| exponential(&mut random, MEAN_COMPUTE).0)
            .collect();
        let mean = drawn.iter().sum::<u64>() / drawn.len() as u64;
        assert!((990_000..1_010_000).contains(&mean), "{mean}");
        // Beyond k means lie exp(-k) of them.
        for (means, expected) in [(1, 36_788), (2, 13_534), (3, 4_979)] {
            let beyond = drawn
                .iter()
                .filter(|d| **d > means * MEAN_COMPUTE.0)
                .count();
            assert!(beyond.abs_diff(expected) < 500, "{means}: {beyond}");
        }
    }

    #[test]
    fn it_has_the_size_of_table_3() {
        let reads = synth(3, 1);
        assert_eq!(
            (reads.references.len(), reads.places.len()),
            (100_000, 2000)
        );
        assert_eq!(reads.disks(), 3);
        let compute: u64 = reads.references.iter().map(|r| r.compute.0).sum();
        assert!((99_000_000_000..101_000_000_000).contains(&compute));
    }
}
