//! Conformance: the rules that every method of a family keeps.
//!
//! For authors of a method. One function a family takes a method as it is built, drives it with
//! seeded inputs such as an engine sends, and returns the first [`Rule`] that it breaks:
//!
//! ```text
//! make() -> method <- facts, accesses, queues, boards of a seed     answer -> checked against rules
//! ```
//!
//! The rules are those of the traits' documentation. The tests at the end run every entry of every
//! list, each parameter at its default, smallest and largest value, and show that a method which
//! lies is found. Methods that break a rule on purpose stand in another crate, and so does the list of
//! these rules and reasons.
//!
//! Part of the tests: compiled for them, and with the feature `conformance` for methods elsewhere.

mod depth;
mod detect;
mod dispatch;
mod hinted;
mod layout;
mod measure;
mod next_file;
mod reclaim;
mod shape;
pub mod stage;
#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::spec::Spec;

pub use depth::depth;
pub use detect::detect;
pub use dispatch::dispatch;
pub use hinted::hinted;
pub use layout::layout;
pub use measure::measure;
pub use next_file::next_file;
pub use reclaim::reclaim;
pub use shape::shape;

/// A rule of a family's interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// Any family: equal questions get equal answers, and a question changes nothing.
    Deterministic,
    /// Depth: no limit is zero.
    DepthZero,
    /// Depth: a limit covers the blocks asked for, unless it is one constant for all.
    DepthCoversAsked,
    /// Depth: a new stream's limit is bounded by the device or a constant, an old one's by what it
    /// has consumed.
    DepthBounded,
    /// Detect: the part behind the mark is not longer than its window.
    AsyncInWindow,
    /// Detect: no window is longer than the limit.
    WindowInLimit,
    /// Detect: a window does not begin before the block wanted, and reaches past it.
    WindowReaches,
    /// Detect: nothing is left out between the block wanted and the window.
    WindowAdjoins,
    /// Detect: only blocks fetched ahead, and not cut off, are inside a window.
    InsideIsHonest,
    /// Dispatch: the index is one of those that wait.
    IndexExists,
    /// Dispatch: a run's slice is a depth at least.
    SliceCoversDepth,
    /// Dispatch: the more runs wait, the shorter their slices; a slice ends.
    SliceBounded,
    /// Dispatch: whatever waits is chosen after a bounded amount of work.
    NoStarvation,
    /// Layout: a byte lies on a member that there is, in a run of at least one byte.
    PieceExists,
    /// Layout: two bytes never lie at one place.
    PiecesApart,
    /// Layout: the bytes of a run lie one behind the other.
    RunIsWhole,
    /// Layout: strips of a stripe and their copies need no more members than there are.
    MembersSuffice,
    /// Layout: the strips of a stripe lie on members of their own, and all members take part.
    StripesSpread,
    /// Layout: pieces begin and end at multiples of its unit, which is not zero.
    UnitDivides,
    /// Measure: more bytes are not expected to take less time.
    LongerTakesLonger,
    /// Measure: some request may always be sent.
    LimitPositive,
    /// Next file: a predicted file is an entry of a known folder.
    FileExists,
    /// Next file: no file comes after itself.
    FileIsNext,
    /// Next file: random order is not followed, or rarely.
    RarelyByChance,
    /// Next file: nothing is known of a folder that was forgotten.
    Forgets,
    /// Next file: tables without room do not grow.
    TablesBounded,
    /// Reclaim: a victim is resident, and the method's.
    VictimResident,
    /// Reclaim: a victim is not pinned.
    VictimUnpinned,
    /// Reclaim: a stream that loses its last block is known, and began before it.
    StreamKnown,
    /// Reclaim: the length is that of the blocks it has.
    LengthHonest,
    /// Reclaim: there is a victim as long as some block is not pinned.
    NothingLost,
    /// Shape: a window holds a block at least, and no more than there is room for.
    EndInside,
    /// Shape: a window ends as it was decided, with a strip behind the demand, or with a stripe.
    EndsWithStrip,
    /// Hinted: a fetched block is absent and will be used.
    FetchMakesSense,
    /// Hinted: a victim is resident and not in use; there is none while a frame is empty.
    VictimMakesSense,
    /// Hinted: the block that the reader waits for is fetched once its disk is idle and a frame can
    /// be had.
    AwaitedIsFetched,
    /// Hinted: no victim is used before the block fetched.
    NoHarm,
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

/// The values of a method's parameters to try: defaults, all smallest, all largest, and each alone
/// at either end.
#[must_use]
pub fn corners(spec: &Spec) -> Vec<Vec<u64>> {
    let all = |value: fn(&crate::spec::Param) -> u64| spec.params.iter().map(value).collect();
    let defaults: Vec<u64> = all(|param| param.default);
    let mut corners = vec![
        defaults.clone(),
        all(|param| param.min),
        all(|param| param.max),
    ];
    for (at, param) in spec.params.iter().enumerate() {
        for end in [param.min, param.max] {
            let mut values = defaults.clone();
            values[at] = end;
            corners.push(values);
        }
    }
    corners.sort_unstable();
    corners.dedup();
    corners
}

/// Rules to check, and how to say that one is broken.
#[derive(Clone, Copy)]
struct Rules<'a> {
    seed: u64,
    but: &'a [Rule],
}

impl Rules<'_> {
    /// The rule holds, or is not checked.
    fn check(&self, rule: Rule, holds: bool, how: impl FnOnce() -> String) -> Result<(), Broken> {
        if holds || self.but.contains(&rule) {
            return Ok(());
        }
        let (seed, how) = (self.seed, how());
        Err(Broken { rule, seed, how })
    }
}

/// Splitmix64 (Steele, Lea and Flood, OOPSLA 2014). The engine draws no numbers; its tests do.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// A number below 2^`bits`, small ones as likely as large ones.
    fn magnitude(&mut self, bits: u32) -> u64 {
        let drawn = self.below(u64::from(bits) + 1);
        self.below(1 << drawn)
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
