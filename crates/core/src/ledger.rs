//! The ledger: counters kept by the engine that add up.
//!
//! Filled by the engine's stages, read by drivers at the end of a run. Blocks unless the name
//! says otherwise. These identities hold at every moment, and [`Ledger::check`] says so:
//!
//! ```text
//! reads      = hits + late_hits + misses
//! prefetched = used + evicted_unused + resident_unused + in_flight + failed + cancelled
//! hints      = hints_read + hints_missed + hints_dropped + hints_open
//! files_ahead = files_ahead_used + files_ahead_wasted + files_ahead_open
//! ```
//!
//! A further one, elapsed = compute + driver + stall, belongs to a reader's own clock and is
//! checked where that clock is: in the simulated world.

use alloc::string::String;

use crate::units::{Bytes, Nanos};

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Blocks asked for.
    pub reads: u64,
    /// Resident when asked for.
    pub hits: u64,
    /// In flight when asked for.
    pub late_hits: u64,
    /// Neither.
    pub misses: u64,
    /// Fetched before anyone asked.
    pub prefetched: u64,
    /// Prefetched, then accessed.
    pub used: u64,
    /// Prefetched, then given up or dropped without an access.
    pub evicted_unused: u64,
    /// Prefetched, resident, not accessed yet.
    pub resident_unused: u64,
    /// Prefetched, still on the way (asked for in the meantime or not).
    pub in_flight: u64,
    /// Prefetched, but the fetch failed.
    pub failed: u64,
    /// Prefetched, but called off before they arrived: their file was closed or changed, or a plan
    /// dropped them.
    pub cancelled: u64,
    /// Blocks fetched because a reader asked for them.
    pub demanded: u64,
    /// Blocks fetched because they lie in the gaps of a stride, where leaving them out would have
    /// cost the device more. No read of them is expected, so they are neither prefetched nor
    /// wasted.
    pub gaps: u64,
    /// Blocks of the demanded, or of the gaps, whose fetch failed.
    pub demand_failed: u64,
    /// Blocks given up or dropped, used ones included.
    pub evicted: u64,
    /// A miss inside a window: a block was given up before its reader came.
    pub thrashed: u64,
    /// Times a prefetch was cut or refused for want of memory.
    pub refused_prefetches: u64,
    /// Times a demand read waited for memory.
    pub memory_waits: u64,
    /// Fetches handed to the driver.
    pub requests: u64,
    /// Windows decided.
    pub windows: u64,
    /// References hinted, a piece of at most one request each.
    pub hints: u64,
    /// Of these, the ones that were read, about where they stood in the order.
    pub hints_read: u64,
    /// Passed over: later ones were read, these were not.
    pub hints_missed: u64,
    /// Dropped, because their file changed or was closed, or the plan ended.
    pub hints_dropped: u64,
    /// Not read yet.
    pub hints_open: u64,
    /// Files opened ahead of the program that was expected to open them.
    pub files_ahead: u64,
    /// Of these, the ones of which a program read blocks that were fetched; or that it opened, if none were.
    pub files_ahead_used: u64,
    /// The ones that were closed without that, or came too late.
    pub files_ahead_wasted: u64,
    /// The ones that wait for their program, or for its first read.
    pub files_ahead_open: u64,
    /// Blocks fetched of files opened ahead that were unread when those were closed.
    pub files_ahead_unread: u64,
    /// Inputs that made no sense and changed nothing.
    pub refused_inputs: u64,
    /// Time readers waited for blocks, added up over readers.
    pub stall: Nanos,
    /// Bytes of the blocks in all fetches handed to the driver, the last one of a file whole.
    pub request_bytes: Bytes,
    /// Most memory held at once, bookkeeping included.
    pub memory_peak: Bytes,
}

impl Ledger {
    /// Blocks fetched ahead and not read so far.
    #[must_use]
    pub fn wasted(&self) -> u64 {
        self.evicted_unused + self.resident_unused
    }

    /// Whether all identities hold.
    ///
    /// # Errors
    /// The first one that does not, and its two sides.
    pub fn check(&self) -> Result<(), String> {
        let identities = [
            (
                "reads = hits + late_hits + misses",
                self.reads,
                self.hits + self.late_hits + self.misses,
            ),
            (
                "prefetched = used + evicted_unused + resident_unused + in_flight + failed + cancelled",
                self.prefetched,
                self.used
                    + self.evicted_unused
                    + self.resident_unused
                    + self.in_flight
                    + self.failed
                    + self.cancelled,
            ),
            (
                "hints = hints_read + hints_missed + hints_dropped + hints_open",
                self.hints,
                self.hints_read + self.hints_missed + self.hints_dropped + self.hints_open,
            ),
            (
                "files_ahead = files_ahead_used + files_ahead_wasted + files_ahead_open",
                self.files_ahead,
                self.files_ahead_used + self.files_ahead_wasted + self.files_ahead_open,
            ),
        ];
        let broken = identities
            .into_iter()
            .find(|(_, left, right)| left != right);
        broken.map_or(Ok(()), |(identity, left, right)| {
            Err(alloc::format!("{identity}: {left} is not {right}"))
        })
    }
}
