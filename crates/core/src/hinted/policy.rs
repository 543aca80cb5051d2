//! The hinted methods: blocks to fetch ahead, their times and their victims.
//!
//! Called by the [planner](super::planner) only. After everything that happens it opens a round:
//! [`Policy::begin`] once, then [`Policy::next`] until it answers `None`; each answer is started
//! before the next question, so the [`Board`] a method sees is always current.
//!
//! Every method must fetch the block that the reader waits for ([`Board::awaited`]) once that
//! block's disk and a frame are free, or its reader would wait for ever.
//!
//! Adding one: a file in `policy/`, a `mod` line and an entry here.

pub mod forestall;

use alloc::boxed::Box;

use super::board::{BlockNo, Board, Pair};
use crate::spec::{Method, Param};
use crate::units::{DeviceId, Nanos};

/// The hinted methods. One entry a method.
pub static LIST: &[Method<Box<dyn Policy>>] = &[forestall::METHOD];

/// A hinted method.
///
/// # Examples
/// Fetch the block behind the reader's position, and no more.
///
/// ```
/// use forerun_core::hinted::policy::Policy;
/// use forerun_core::hinted::{Board, Pair, Position};
///
/// #[derive(Debug)]
/// struct OneAhead;
///
/// impl Policy for OneAhead {
///     fn next(&mut self, board: &Board) -> Option<Pair> {
///         let end = Position(board.here().0.saturating_add(1));
///         let missing = board.soonest_missing().filter(|place| *place <= end)?;
///         board.harmless_pair(missing)
///     }
/// }
/// ```
pub trait Policy: core::fmt::Debug + Send {
    /// References were added to the order.
    fn hinted(&mut self) {}
    /// The reader computed for so long since it took the block before.
    fn computed(&mut self, _compute: Nanos) {}
    /// The reader took a resident block.
    fn taken(&mut self, _board: &Board, _block: BlockNo) {}
    /// A disk worked for so long on a fetch.
    fn fetched(&mut self, _disk: DeviceId, _service: Nanos) {}
    /// A block became resident.
    fn arrived(&mut self, _board: &Board, _block: BlockNo) {}
    /// A block was given up, as this method wished.
    fn evicted(&mut self, _block: BlockNo) {}
    /// A round of decisions begins.
    fn begin(&mut self, _board: &Board) {}
    /// The next fetch to start now; `None` ends the round.
    fn next(&mut self, board: &Board) -> Option<Pair>;
}

/// The prefetch horizon, a parameter of two methods.
pub const HORIZON: Param = Param {
    name: "horizon_refs",
    summary: "fetch every missing block so many references ahead; 62 is 15 ms, more than a disk \
              usually takes, over the 243 us of reading a block from the cache (Kimbrel et al. 1996, section 2.6)",
    default: 62,
    min: 0,
    max: 1 << 20,
};

/// The batch size, a parameter of three methods.
pub const BATCH: Param = Param {
    name: "batch_blocks",
    summary: "most fetches a free disk gets at once; 0 takes it from Kimbrel et al. 1996, table 6 by the \
              number of disks",
    default: 0,
    min: 0,
    max: 1 << 16,
};
