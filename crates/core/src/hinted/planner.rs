//! The planner: events come in, fetches and evictions come out.
//!
//! Drivers call [`Planner::handle`] for everything that happened by a point in time, in any
//! number, then [`Planner::poll`] until [`PlannerOutput::Idle`]: that is a round of decisions.
//!
//! ```text
//! handle(Fetched) handle(Fetched) handle(Passed) handle(Asked)   poll -> Fetch, Fetch .. Idle
//!        two disks end at once, and the reader goes on           both disks planned together
//! ```
//!
//! So two disks that become free at one instant share out the missing blocks (Kimbrel et al. 1996,
//! section 2.7), and a reader that took its block has left it before the next victim is chosen. A
//! round after every instant is the *first opportunity* rule.
//!
//! ```text
//! setup     parameters                         readers   requests and pieces in use
//! unread    prefetched blocks not read yet     fetches   started ones and their results
//! ```

mod fetches;
mod readers;
mod setup;
mod unread;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::board::Board;
use super::interface::{BlockNo, Hint, PlannerInput, PlannerOutput};
use super::policy::Policy;
use crate::units::DeviceId;
pub use setup::{Setup, SetupError};
use unread::Unread;

/// See the [module](self).
#[derive(Debug)]
pub struct Planner {
    board: Board,
    policy: Box<dyn Policy>,
    unread: Unread,
    out: VecDeque<PlannerOutput>,
    /// Most blocks prefetched and not read at once.
    allowance: u32,
    /// Something happened since the last decision.
    stale: bool,
    /// Inputs that made no sense.
    refused: u64,
}

impl Planner {
    /// A fresh planner that knows no reference yet.
    ///
    /// # Errors
    /// A setup out of range.
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        setup.check()?;
        Ok(Self {
            board: Board::new(
                setup.disks,
                setup.cache_blocks,
                setup.blocks_max,
                setup.hints_max,
            ),
            policy: setup.policy.build(),
            unread: Unread::default(),
            refused: 0,
            out: VecDeque::new(),
            allowance: u32::MAX,
            stale: false,
        })
    }

    /// Its state of the cache.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Inputs that made no sense.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// From now on at most so many blocks are prefetched and not read at once; the block a reader
    /// waits for is fetched all the same. No bound at first: it is for drivers that doubt their
    /// hints.
    pub fn allow(&mut self, blocks: u32) {
        self.stale |= blocks > self.allowance;
        self.allowance = blocks;
    }

    /// One more disk: its number, or none if there are [`Setup::DISKS_MAX`].
    pub fn add_disk(&mut self) -> Option<DeviceId> {
        let has_room = self.board.disk_count() < u32::from(Setup::DISKS_MAX);
        has_room.then(|| self.board.add_disk())?
    }

    /// Forgets the references before the cursor, to make room for others: how many. All positions
    /// are smaller by that from now on. Takes time as the references left and all blocks do.
    pub fn compact(&mut self) -> u32 {
        self.policy.hinted();
        self.stale = true;
        self.board.compact()
    }

    /// Whether a block is nowhere and not used any more. It is unknown from now on, and its number
    /// can be given to another.
    pub fn retire(&mut self, block: BlockNo) -> bool {
        self.board.retire(block).is_some()
    }

    /// Whether something happened since the last round.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Takes one input.
    pub fn handle(&mut self, input: PlannerInput) {
        let accepted = match input {
            PlannerInput::Hints(hints) => self.learn(&hints),
            PlannerInput::Cached(hint) => self.board.cached(hint).map(|()| {
                self.policy.arrived(&self.board, hint.block);
            }),
            PlannerInput::Asked { block, compute } => self.ask(block, compute),
            PlannerInput::Passed { block, read } => self.pass(block, read),
            PlannerInput::Kept { block, kept } => self.keep(block, kept),
            PlannerInput::Found { block } => self.find(block),
            PlannerInput::Forgotten { block } => self.forget(block),
            PlannerInput::Fetched { block, service } => self.arrive(block, service),
            PlannerInput::Failed { block } => self.fail(block),
        };
        if accepted.is_none() {
            self.refused += 1;
        }
    }

    /// The next action; [`PlannerOutput::Idle`] once there is nothing left. Between two calls more
    /// may be handed in.
    pub fn poll(&mut self) -> PlannerOutput {
        if self.out.is_empty() && self.stale {
            self.stale = false;
            self.plan();
        }
        self.out.pop_front().unwrap_or(PlannerOutput::Idle)
    }

    /// Takes hints up to the first that is refused.
    fn learn(&mut self, hints: &[Hint]) -> Option<()> {
        let refused = hints.iter().any(|hint| self.board.hint(*hint).is_none());
        self.policy.hinted();
        self.stale = true;
        (!refused).then_some(())
    }
}
