//! forerun-core: the prefetching and caching engine as a pure state machine.
//!
//! A driver (virtual time: `forerun-sim`; real time: `forerun-io`) feeds [`Input`]s to an [`Engine`] and carries out
//! the [`Output`]s it gets back. The engine decides which blocks to fetch, when, how much, in which pieces, and which
//! blocks to give up. It never performs I/O, never looks at a clock, never starts a thread, never draws a random
//! number and never touches a data byte.
//!
//! A read that misses is queued as a few words; its window is decided when its device has a slot:
//!
//! ```text
//! Input::Read --> queue of its device --> dispatch: its turn --> detect, depth, admit, shape, layout
//!     | resident                                                                  | Output::Fetch
//!     v                                                                           v
//! Output::Serve <------ the read is tried again <------ complete <------ Input::Completed
//! ```
//!
//! A frame for a new block may cost an old one: *reclaim*. Where folders are listed, the files
//! opened next are opened and fetched ahead: [`next_file`]. Where reads are announced, a plan stands in for detect,
//! depth and reclaim: [`hinted`].
//!
//! Beside the pipeline stand the [`table`] (which blocks are resident: the one part that drivers may look at from
//! many threads), the [`ledger`] (counters that add up) and the [`journal`] (a run as text, replayable).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bits;
mod budget;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod depth;
pub mod detect;
mod direction;
pub mod dispatch;
pub mod engine;
mod files_ahead;
pub mod folder;
pub mod hinted;
pub mod journal;
pub mod kind;
pub mod layout;
pub mod ledger;
pub mod measure;
mod memory;
pub mod methods;
pub mod next_file;
#[cfg(test)]
mod plain;
mod plan;
pub mod preset;
pub mod profile;
pub mod protocol;
mod queues;
mod readers;
mod reads;
pub mod reclaim;
pub mod settings;
pub mod shape;
pub mod spec;
mod stream;
mod sync;
pub mod table;
pub mod units;
mod window;

/// A value that an invariant guarantees. Where it is not, a debug build stops at the defect with
/// this message, and any other build changes nothing.
pub(crate) fn known<T>(found: Option<T>, invariant: &str) -> Option<T> {
    debug_assert!(found.is_some(), "broken invariant: {invariant}");
    found
}

pub use engine::Engine;
pub use layout::Placement;
pub use ledger::Ledger;
pub use profile::Profile;
pub use protocol::{Fetch, FetchOutcome, Input, Output, Served};
pub use settings::Settings;
pub use units::{
    Block, Bytes, DeviceId, ErrorCode, Extent, FileId, FolderId, Nanos, ReadId, ReaderId, RequestId,
};
