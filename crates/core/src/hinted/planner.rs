//! The planner: what happens outside comes in, fetches and evictions come out.
//!
//! Drivers call [`Planner::handle`] for everything that happened by a point in time, in any
//! number, then [`Planner::poll`] until [`Output::Idle`]. What needs no decision (serving a
//! resident block) is answered first; decisions are made when nothing else is left to say:
//!
//! ```text
//! handle(Fetched) handle(Fetched)   poll -> Serve   handle(Taken)   poll -> Fetch, Fetch .. Idle
//!        two disks end at once            the reader goes on       both disks planned together
//! ```
//!
//! So two disks that become free at one instant share out the missing blocks (kimbrel96 section
//! 2.7), and a reader that takes its block at once has left it before the next victim is chosen.
//! Decisions follow every input, which is the *first opportunity* rule.
//!
//! A failed prefetch is counted, never shown, and not tried again for the same reference unless
//! the reader comes for it. A failed fetch that the reader waits for is shown.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use super::board::{Board, Pair};
use super::ledger::Ledger;
use super::policy::{self, Policy};
use super::protocol::{BlockNo, Input, Output, Position};
use crate::spec::{Choice, ChoiceError};
use crate::units::{DeviceId, Nanos};

/// What a planner is built from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The method, from [`policy::LIST`].
    pub policy: Choice,
    /// Number of disks, from 1 to [`Setup::DISKS_MAX`].
    pub disks: u16,
    /// K: blocks the cache holds, at least 1.
    pub cache_blocks: u32,
    /// Block numbers stay below this; memory is 16 bytes for each up to the largest mentioned.
    pub blocks_max: u32,
    /// References beyond this many are refused; memory is 8 bytes for each known, and a quarter
    /// of a byte more on every disk.
    pub hints_max: u32,
}

impl Setup {
    /// Most disks: each costs a set over the reference order.
    pub const DISKS_MAX: u16 = 1024;

    /// A policy by name, `name` or `name(param=value,..)`, with no limit but that of the numbers.
    ///
    /// # Errors
    /// There is no such policy or parameter, or a value is out of its range.
    pub fn of(policy: &str, disks: u16, cache_blocks: u32) -> Result<Self, ChoiceError> {
        Ok(Self {
            policy: Choice::parse("hinted", policy::LIST, policy)?,
            disks,
            cache_blocks,
            blocks_max: u32::MAX,
            hints_max: u32::MAX - 1,
        })
    }
}

/// Why a setup was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// No disk, or too many.
    Disks(u16),
    /// A cache of no blocks.
    NoCache,
    /// More hints than places can be numbered.
    Hints(u32),
    /// The policy is not one of the family.
    Policy(&'static str),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disks(n) => write!(f, "disks={n}: must lie from 1 to {}", Setup::DISKS_MAX),
            Self::NoCache => write!(f, "cache_blocks=0: must be at least 1"),
            Self::Hints(n) => write!(f, "hints_max={n}: must be below {}", u32::MAX),
            Self::Policy(name) => write!(f, "{name} is not a hinted method"),
        }
    }
}

impl core::error::Error for SetupError {}

/// See the [module](self).
#[derive(Debug)]
pub struct Planner {
    board: Board,
    policy: Box<dyn Policy>,
    reader: Reader,
    /// Blocks on their way or resident that were prefetched and not taken yet.
    unread: Vec<bool>,
    ledger: Ledger,
    out: VecDeque<Output>,
    /// Most blocks prefetched and not read at once.
    allowance: u32,
    /// Something happened since the last decision.
    stale: bool,
}

/// Where the reader is.
#[derive(Clone, Copy, Debug)]
enum Reader {
    /// It works on what it took.
    Away,
    /// It stands at the cursor since then.
    Waiting(Nanos),
    /// It was served and has the block in hand.
    Holding,
}

impl Planner {
    /// A fresh planner that knows no reference yet.
    ///
    /// # Errors
    /// A setup out of range.
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        if !(1..=Setup::DISKS_MAX).contains(&setup.disks) {
            return Err(SetupError::Disks(setup.disks));
        }
        if setup.cache_blocks == 0 {
            return Err(SetupError::NoCache);
        }
        if setup.hints_max == u32::MAX {
            return Err(SetupError::Hints(setup.hints_max));
        }
        let policy = setup.policy.build(policy::LIST);
        let policy = policy.ok_or(SetupError::Policy(setup.policy.spec.name))?;
        Ok(Self {
            board: Board::new(
                setup.disks,
                setup.cache_blocks,
                setup.blocks_max,
                setup.hints_max,
            ),
            policy,
            reader: Reader::Away,
            unread: Vec::new(),
            ledger: Ledger::default(),
            out: VecDeque::new(),
            allowance: u32::MAX,
            stale: false,
        })
    }

    /// What it knows.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The counters, as of now.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// From now on at most so many blocks are prefetched and not read at once; what a reader waits
    /// for is fetched all the same. No bound at first: it is for drivers that doubt their hints.
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

    /// Takes one input. `now` decides nothing; waiting is counted with it.
    pub fn handle(&mut self, now: Nanos, input: Input) {
        let accepted = match input {
            Input::Hints(hints) => self.learn(&hints),
            Input::Cached(hint) => self.board.cached(hint).map(|()| {
                self.policy.arrived(&self.board, hint.block);
            }),
            Input::Wanted { compute } => self.want(now, compute),
            Input::Taken => self.take(),
            Input::Asked { block, compute } => self.ask(block, compute),
            Input::Passed { block, read } => self.pass(block, read),
            Input::Kept { block, kept } => self.keep(block, kept),
            Input::Found { block } => self.find(block),
            Input::Forgotten { block } => self.forget(block),
            Input::Fetched { block, service } => self.arrive(now, block, service),
            Input::Failed { block } => self.fail(block),
        };
        if accepted.is_none() {
            self.ledger.refused_inputs += 1;
        }
    }

    /// What to do next; [`Output::Idle`] once there is nothing left. Between two calls more may
    /// be handed in.
    pub fn poll(&mut self) -> Output {
        if self.out.is_empty() && self.stale {
            self.stale = false;
            self.plan();
            if self.is_away() {
                self.board.wait_for_none();
            }
        }
        self.out.pop_front().unwrap_or(Output::Idle)
    }

    /// Takes hints up to the first that is refused.
    fn learn(&mut self, hints: &[super::Hint]) -> Option<()> {
        let refused = hints.iter().any(|hint| self.board.hint(*hint).is_none());
        self.unread.resize(self.board.blocks() as usize, false);
        self.policy.hinted();
        self.stale = true;
        (!refused).then_some(())
    }

    fn want(&mut self, now: Nanos, compute: Nanos) -> Option<()> {
        let block = self.board.block_at(self.board.cursor())?;
        let Reader::Away = self.reader else {
            return None;
        };
        self.policy.computed(compute);
        self.ledger.reads += 1;
        self.reader = Reader::Waiting(now);
        if self.board.is_resident(block) {
            self.ledger.hits += 1;
            self.serve(now, block);
            return Some(());
        }
        if self.board.is_in_flight(block) {
            self.ledger.late_hits += 1;
        } else {
            self.ledger.misses += 1;
        }
        self.board.wait_for(block);
        self.stale = true;
        Some(())
    }

    fn ask(&mut self, block: BlockNo, compute: Nanos) -> Option<()> {
        if !self.is_away() || self.board.next_use(block) == Position::NEVER {
            return None;
        }
        self.policy.computed(compute);
        self.board.come_to(block);
        self.ledger.reads += 1;
        if self.board.is_resident(block) {
            self.ledger.hits += 1;
        } else if self.board.is_in_flight(block) {
            self.ledger.late_hits += 1;
        } else {
            self.ledger.misses += 1;
            self.board.wait_for(block);
        }
        self.stale = true;
        Some(())
    }

    fn pass(&mut self, block: BlockNo, read: bool) -> Option<()> {
        self.is_away().then(|| self.board.pass(block))??;
        if read && self.board.is_resident(block) {
            self.taken(block);
        } else if read && self.forget_unread(block) {
            // It comes for a reader that is here already.
            self.ledger.in_flight -= 1;
            self.ledger.used += 1;
        }
        self.stale = true;
        Some(())
    }

    fn keep(&mut self, block: BlockNo, kept: bool) -> Option<()> {
        self.is_away().then(|| self.board.keep(block, kept))??;
        self.stale |= !kept;
        Some(())
    }

    fn forget(&mut self, block: BlockNo) -> Option<()> {
        if self.is_away().then(|| self.board.forget(block))?? {
            self.lose_unread(block);
            self.policy.evicted(block);
        }
        self.stale = true;
        Some(())
    }

    fn serve(&mut self, now: Nanos, block: BlockNo) {
        if let Reader::Waiting(since) = self.reader {
            let waited = self.ledger.waited.0.saturating_add(now.since(since).0);
            self.ledger.waited = Nanos(waited);
        }
        self.reader = Reader::Holding;
        self.board.hold();
        let position = self.board.cursor();
        self.out.push_back(Output::Serve { position, block });
    }

    fn take(&mut self) -> Option<()> {
        let block = self.board.advance()?;
        self.reader = Reader::Away;
        if self.board.is_resident(block) {
            self.taken(block);
        }
        self.stale = true;
        Some(())
    }

    /// A resident block was read.
    fn taken(&mut self, block: BlockNo) {
        if self.forget_unread(block) {
            self.ledger.resident_unused -= 1;
            self.ledger.used += 1;
        }
        self.policy.taken(&self.board, block);
    }

    fn arrive(&mut self, now: Nanos, block: BlockNo, service: Nanos) -> Option<()> {
        let disk = self.board.arrive(block)?;
        self.policy.fetched(disk, service);
        self.settle(now, block);
        Some(())
    }

    fn find(&mut self, block: BlockNo) -> Option<()> {
        self.board.arrive(block)?;
        self.settle(Nanos(0), block);
        Some(())
    }

    /// A block that was on its way is resident now.
    fn settle(&mut self, now: Nanos, block: BlockNo) {
        self.policy.arrived(&self.board, block);
        if self.is_unread(block) {
            self.ledger.in_flight -= 1;
            self.ledger.resident_unused += 1;
        }
        self.stale = true;
        if self.is_awaited(block) {
            self.serve(now, block);
        }
    }

    fn fail(&mut self, block: BlockNo) -> Option<()> {
        if !self.board.is_in_flight(block) {
            return None;
        }
        let prefetched = self.forget_unread(block);
        let awaited = self.is_awaited(block);
        self.board.fail(block, !(prefetched && awaited))?;
        if prefetched {
            self.ledger.in_flight -= 1;
            self.ledger.failed += 1;
        } else if awaited {
            self.board.wait_for_none();
            let position = self.board.cursor();
            self.out.push_back(Output::Lost { position, block });
        }
        self.stale = true;
        Some(())
    }

    /// Lets the policy start what it wants to start now. Each start puts one more frame to work,
    /// so this ends after K of them at the latest.
    fn plan(&mut self) {
        self.policy.begin(&self.board);
        while self.may_start()
            && let Some(pair) = self.policy.next(&self.board)
        {
            if self.is_full() && !self.is_asked_for(pair.fetch) {
                return;
            }
            if self.start(pair).is_none() {
                self.ledger.refused_pairs += 1;
                return;
            }
        }
    }

    /// Whether one more prefetch is allowed, or somebody waits.
    fn may_start(&self) -> bool {
        !self.is_full() || self.board.awaited().is_some()
    }

    /// Whether as much is prefetched and not read as is allowed.
    fn is_full(&self) -> bool {
        self.ledger.in_flight + self.ledger.resident_unused >= u64::from(self.allowance)
    }

    /// Whether somebody waits for this block, at the cursor or out of turn.
    fn is_asked_for(&self, block: BlockNo) -> bool {
        let asked = self.board.awaited().and_then(|at| self.board.block_at(at));
        self.is_awaited(block) || asked == Some(block)
    }

    fn start(&mut self, pair: Pair) -> Option<()> {
        let demand = self.is_asked_for(pair.fetch);
        let disk = self.board.start(pair)?;
        self.ledger.fetches += 1;
        if let Some(victim) = pair.evict {
            self.lose_unread(victim);
            self.policy.evicted(victim);
        }
        if demand {
            self.ledger.demand += 1;
        } else {
            self.ledger.prefetched += 1;
            self.ledger.in_flight += 1;
            if let Some(unread) = self.unread.get_mut(pair.fetch.0 as usize) {
                *unread = true;
            }
        }
        self.out.push_back(Output::Fetch {
            block: pair.fetch,
            disk,
            evict: pair.evict,
            demand,
        });
        Some(())
    }

    /// A resident block goes, perhaps unread.
    fn lose_unread(&mut self, block: BlockNo) {
        if self.forget_unread(block) {
            self.ledger.resident_unused -= 1;
            self.ledger.evicted_unused += 1;
        }
    }

    /// Whether the reader stands nowhere in the order: only then may one read out of turn.
    fn is_away(&self) -> bool {
        matches!(self.reader, Reader::Away)
    }

    /// Whether the reader waits for this block.
    fn is_awaited(&self, block: BlockNo) -> bool {
        matches!(self.reader, Reader::Waiting(_))
            && self.board.block_at(self.board.cursor()) == Some(block)
    }

    fn is_unread(&self, block: BlockNo) -> bool {
        self.unread.get(block.0 as usize).copied().unwrap_or(false)
    }

    fn forget_unread(&mut self, block: BlockNo) -> bool {
        let unread = self.unread.get_mut(block.0 as usize);
        unread.is_some_and(core::mem::take)
    }
}
