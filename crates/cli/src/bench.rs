//! The bench: one workload, several candidates, in turns, on one device.
//!
//! ```text
//! args -> plan ------> content (files made or generated)
//!           |
//!           +-> engine   a preset in real time, through forerun-io  \
//!           +-> kernel   plain buffered reads, cold                  } -> Measured -> report
//!           +-> modelled a preset in virtual time, in forerun-sim   /
//! ```
//!
//! The readers' steps come from `forerun-sim`'s workloads in all three, so a run in real time and
//! one in virtual time are the same run. `readers` holds the threads of the two that need any, `server`
//! those of a whole workload.
//!
//! It measures whole runs as an application sees them. It does not profile, and does not judge:
//! limits stand in the tests that call it.

pub mod conditions;
pub mod content;
pub mod engine;
pub mod kernel;
pub mod modelled;
pub mod pattern;
pub mod plan;
pub mod readers;
pub mod report;
pub mod server;

use forerun_core::{Ledger, Nanos};
pub use forerun_io::DeviceUse as Emulated;
pub use forerun_sim::times::Times as Responses;

use crate::estimate::DeviceEstimate;

/// One run of one candidate.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// From the start of all readers to the end of the last.
    pub elapsed: Nanos,
    /// Elapsed time of each reader.
    pub readers: Vec<Nanos>,
    /// Bytes the readers got.
    pub bytes: u64,
    /// Responses of reads, hits included: from the time at which a read was due, else from its begin.
    pub responses: Responses,
    /// Reads arrived faster than they ended, and responses grew to the end.
    pub is_saturated: bool,
    /// Requests and bytes of the device.
    pub device: Option<DeviceUse>,
    /// The requests of the emulated device, and how late they were.
    pub emulated: Option<Emulated>,
    /// The engine's counters; the kernel shows none.
    pub ledger: Option<Ledger>,
    /// The costs of the devices as the engine took them to be in the end; the kernel shows none.
    pub estimate: Option<Vec<DeviceEstimate>>,
    /// Block size the ledger counts in.
    pub block_bytes: u32,
    /// How the files were cached before.
    pub source_cache: SourceCache,
}

/// How the files of a run were cached by the system. It is said with each result, because a page
/// cache filled by `readahead(2)`, which nothing here uses, is read at half the speed of one filled
/// by buffered reads: its pages are small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceCache {
    /// Not at all, or it did not matter: direct reads.
    Direct,
    /// As it was: buffered reads, because direct ones are refused.
    Buffered,
    /// Dropped before the run, which filled it by buffered reads.
    Dropped,
    /// There are no files.
    None,
}

impl SourceCache {
    /// In words; none without a remark.
    #[must_use]
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Direct => Some("read directly, past the page cache"),
            Self::Buffered => Some("read through the page cache, with its contents"),
            Self::Dropped => Some("dropped from the page cache before each run"),
            Self::None => None,
        }
    }
}

/// Requests and bytes of a device during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceUse {
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}
