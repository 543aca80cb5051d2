//! dinero: a cache simulator that reads one file from front to back, again and again.
//!
//! Known (Kimbrel et al. 1996, section 3.1, Table 3): one file, read sequentially several times;
//! 8867 reads of 986 blocks; 103.5 s of computing; run with a cache of 512 blocks.
//!
//! Follows: 8867 is nine times 986 less 7, so there are nine passes, one of them a little short.
//!
//! Assumed: the last one is. Every block holds as many records to simulate as every other, so
//! compute times lie within a quarter of their mean; the paper does not say how they vary.

use forerun_core::Nanos;

use super::{Accesses, StandIn};
use crate::random::Random;

/// See the [module](self).
pub const DINERO: StandIn = StandIn {
    name: "dinero",
    summary: "nine passes over one file, computing all the while",
    reads: 8867,
    distinct: 986,
    compute: Nanos(103_500_000_000),
    accesses,
};

fn accesses(trace: &StandIn, random: &mut Random) -> Accesses {
    Accesses {
        files: vec![trace.distinct],
        reads: (0..trace.reads).map(|i| (0, i % trace.distinct)).collect(),
        weights: (0..trace.reads).map(|_| random.between(75, 125)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_nine_passes_over_one_file_the_last_one_cut_short() {
        let accesses = accesses(&DINERO, &mut Random::new(1));
        let begins = accesses.reads.iter().filter(|read| **read == (0, 0));
        assert_eq!(begins.count(), 9);
        assert_eq!(accesses.reads.last(), Some(&(0, 978)));
    }
}
