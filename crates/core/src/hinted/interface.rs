//! Interface of the planner: its inputs and outputs.
//!
//! Drivers hand in [`PlannerInput`]s and carry out [`PlannerOutput`]s; both are closed enums, so a
//! run can be recorded, compared and replayed. Inputs that make no sense are counted and change
//! nothing.
//!
//! There is no input for "a disk became free": a disk is free when everything the planner asked
//! of it has ended, which the planner counts itself and cannot be told wrongly.

use alloc::vec::Vec;

use crate::units::{DeviceId, Nanos};

/// A block, as the driver numbers those it hints at, densely from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BlockNo(pub u32);

/// A place in the order of references, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u32);

impl Position {
    /// After every place there is: when a block that is not asked for again is used next.
    pub const NEVER: Position = Position(u32::MAX);
}

/// A reference that will come, or a block that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The block.
    pub block: BlockNo,
    /// The disk it lies on; the same each time.
    pub disk: DeviceId,
}

/// Something that happened outside.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PlannerInput {
    /// These references follow those known so far.
    Hints(Vec<Hint>),
    /// The driver holds this block already, in one of the planner's frames.
    Cached(Hint),
    /// A reader asks for a block: for its next use, wherever that is in the order. If it is missing
    /// the reader waits for it until its fetch starts, or this use is passed.
    Asked {
        /// The block; it has a next use.
        block: BlockNo,
        /// How long was computed since a block was last asked for.
        compute: Nanos,
    },
    /// The next use of a block is over, or under way as a read that needs no fetch of ours.
    Passed {
        /// The block; it has a next use.
        block: BlockNo,
        /// Whether it was read; else it was passed over.
        read: bool,
    },
    /// Whether a reader has a block in hand: it is not given up meanwhile.
    Kept {
        /// The block.
        block: BlockNo,
        /// From now on, or no longer.
        kept: bool,
    },
    /// The block of a fetch is there already: no disk had to work.
    Found {
        /// The block.
        block: BlockNo,
    },
    /// A block is gone for good: nothing uses it any more, and if it was resident, it is not now.
    /// A fetch of it under way still ends.
    Forgotten {
        /// The block.
        block: BlockNo,
    },
    /// A fetch ended well.
    Fetched {
        /// The block that arrived.
        block: BlockNo,
        /// How long the disk worked on it, waiting in its queue not counted.
        service: Nanos,
    },
    /// A fetch ended with nothing usable.
    Failed {
        /// The block that did not arrive.
        block: BlockNo,
    },
}

/// Something the driver must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlannerOutput {
    /// Give up `evict` now and start to fetch `block` into its frame, or into an empty one.
    Fetch {
        /// The block to fetch.
        block: BlockNo,
        /// Where it lies.
        disk: DeviceId,
        /// The victim, which gives its frame.
        evict: Option<BlockNo>,
        /// Whether the reader waits for it.
        demand: bool,
    },
    /// Nothing more to do until something happens.
    Idle,
}
