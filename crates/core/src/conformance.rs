//! Conformance: what every method of a family must do, whatever it decides.
//!
//! For whoever writes a method. A function of a family takes a method as it is built, drives it
//! with seeded inputs such as an engine sends, and returns the first [`Rule`] that it breaks.
//!
//! Part of the tests: compiled for them, and with the feature `conformance` for methods elsewhere.

mod reclaim;

use alloc::string::String;
use core::fmt;

pub use reclaim::reclaim;

/// A rule of a family's interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// Any family: equal questions get equal answers, and a question changes nothing.
    Deterministic,
    /// Reclaim: a victim is resident, and the method's.
    VictimResident,
    /// Reclaim: a victim is not pinned.
    VictimUnpinned,
    /// Reclaim: a stream that loses its last block is one with blocks in the prefetch cache.
    StreamKnown,
    /// Reclaim: the length is that of the queues.
    LengthHonest,
    /// Reclaim: there is a victim as long as some block is not pinned.
    NothingLost,
}

/// A rule was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Which.
    pub rule: Rule,
    /// The seed that shows it.
    pub seed: u64,
    /// The question and the answer, in words.
    pub how: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {:?}: {}", self.seed, self.rule, self.how)
    }
}

impl core::error::Error for Broken {}

/// Splitmix64 (Steele, Lea and Flood, OOPSLA 2014). The engine draws no numbers; its tests do.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }
}
