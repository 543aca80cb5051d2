//! The plan of reverse aggressive: which blocks to fetch for which use, and which to give up.
//!
//! Made by [its policy](crate::hinted::reverse_aggressive) from the references still to come. Read
//! backwards, each fetch is an eviction and each eviction a fetch:
//!
//! ```text
//! forward   | use X at q |  .. evict X, fetch B  .. | use B at p |     B's disk is busy
//! backward  | use B at p |  .. evict B, fetch X  .. | use X at q |     .. with this one
//! ```
//!
//! So backwards a disk is kept busy by *evicting* its blocks. As many disks as possible evict in
//! parallel, hence forward as many as possible fetch in parallel (Kimbrel et al. 1996, section
//! 2.5).
//!
//! ```text
//! pass    the references backwards, against a model clock    plan    arrivals and departures
//! cache   blocks cached, missing on the backward pass                 matched; a queue a disk
//! swaps   arrivals and departures, forward again
//! ```
//!
//! Memory, beyond the board's: 4 bytes a reference and 12 a block on the way back, then
//! 24 bytes a fetch that is planned and 4 a block until it is. Which arrival belongs to which
//! departure is read off the order of references.

mod cache;
mod pairing;
mod pass;
#[cfg(test)]
mod reference;
mod swaps;
#[cfg(test)]
mod tests;

pub(crate) use pairing::{Plan, Planned};

/// How the pass reckons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    /// Time of a fetch in hundredths of a reference.
    pub(crate) fetch_time: u64,
    /// Most evictions a free disk gets at once.
    pub(crate) batch: u32,
}
