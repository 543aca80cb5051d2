//! The planner's counters, which add up.
//!
//! Kept by the [planner](super::planner); drivers read them. At every moment
//!
//! ```text
//! reads      = hits + late_hits + misses
//! fetches    = demand + prefetched
//! prefetched = used + evicted_unused + resident_unused + in_flight + failed
//! ```

use crate::units::Nanos;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// References the reader asked for.
    pub reads: u64,
    /// Resident when asked for.
    pub hits: u64,
    /// In flight when asked for.
    pub late_hits: u64,
    /// Neither.
    pub misses: u64,
    /// Fetches started.
    pub fetches: u64,
    /// Of these, the ones the reader waited for when they started.
    pub demand: u64,
    /// The others.
    pub prefetched: u64,
    /// Prefetched and then taken.
    pub used: u64,
    /// Prefetched and given up before anybody took it.
    pub evicted_unused: u64,
    /// Prefetched, resident, not taken yet.
    pub resident_unused: u64,
    /// Prefetched, not arrived yet.
    pub in_flight: u64,
    /// Prefetched and failed.
    pub failed: u64,
    /// Time the reader waited, from asking to being served.
    pub waited: Nanos,
    /// Inputs that made no sense.
    pub refused_inputs: u64,
    /// Pairs a policy named that could not be started; zero unless it has a defect.
    pub refused_pairs: u64,
}

impl Ledger {
    /// Whether everything adds up.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let ends = [
            self.used,
            self.evicted_unused,
            self.resident_unused,
            self.in_flight,
            self.failed,
        ];
        self.reads == self.hits + self.late_hits + self.misses
            && self.fetches == self.demand + self.prefetched
            && self.prefetched == ends.iter().sum::<u64>()
    }
}
