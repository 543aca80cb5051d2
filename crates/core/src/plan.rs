//! The plan: one announced order of reads, and its agreement with the reads that come.
//!
//! Hints arrive as runs of blocks. They are cut into *pieces*, at most one request long, which the
//! [planner](crate::hinted) sees as blocks. A read is matched with a reference of the order
//! (`plan/reads.rs`); fetches and victims are the planner's. The parts do not know each other:
//!
//! ```text
//! hint, compact              pieces     blocks of a piece's number
//! take, hold, read, go_on    frontier   cursor window: references a read may take
//!                            trust      prefetch credit: how far ahead hints are followed
//!                            hands      pieces in use by readers
//! started, ended             progress   requests of a piece, and their results
//! ```
//!
//! Kept by the engine (`engine/hint.rs`). Hints and reads go to the planner at once; its fetches
//! are taken by [`Plan::poll`], in rounds: one at the end of each instant ([`Plan::is_undecided`]),
//! and one whenever a reader asks for a missing block. No frame is moved here.

mod frontier;
mod hands;
mod pieces;
mod progress;
mod reads;
mod trust;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::hinted::policy::Policy;
use crate::hinted::{BlockNo, Board, Hint, Planner, Position, Started};
use crate::spec::Choice;
use crate::units::{Block, DeviceId, Extent, FileId, Nanos};
use frontier::Frontier;
use hands::Hands;
use pieces::Pieces;
use progress::Progress;
use trust::Trust;

/// Memory charged for a reference: 8 bytes in the order and a quarter of one on each disk; its
/// piece here and on the board, 40 and 16, its place in the map, 24, and a list's links, 12.
/// Vectors grow by doubling.
pub(crate) const HINT_BYTES: i64 = 192;
/// Fewest pieces a plan works with: two being read, two on their way.
const PIECES_MIN: u32 = 4;
/// The window is a quarter of the pieces that fit, so that those in readers' hands leave room for
/// those to come, and at most this: some dozens of workers, each a piece or two from where it
/// should be.
const WINDOW_MAX: u32 = 64;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Plan {
    planner: Planner,
    pub(crate) pieces: Pieces,
    pub(crate) hands: Hands,
    frontier: Frontier,
    trust: Trust,
    /// Memory charged for it.
    pub(crate) charged: i64,
    /// Disks of the planner.
    devices: Vec<DeviceId>,
    /// Most blocks of a piece.
    pub(crate) unit: u32,
    /// Most references.
    hints_max: u32,
    /// When a reader last was served.
    served: Nanos,
    /// Hints follow at once; nothing is decided before they are here.
    is_unfinished: bool,
}

/// A fetch of the planner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub(crate) piece: BlockNo,
    pub(crate) extent: Extent,
    /// Its victim.
    pub(crate) evict: Option<Extent>,
}

impl Plan {
    /// Most references of one plan. At 64 KiB each this is 64 GiB, a long time ahead of any reader;
    /// the memory sets a lower limit before.
    pub(crate) const HINTS_MAX: u32 = 1 << 20;

    /// The most blocks of a piece, where that many are wanted and there are so many frames.
    pub(crate) fn unit_for(frames: u32, wanted: u32) -> u32 {
        wanted.min(frames / PIECES_MIN).max(1)
    }

    /// A plan that may hold so many frames, in pieces of at most `unit` blocks.
    pub(crate) fn new(
        policy: &Choice<Box<dyn Policy>>,
        frames: u32,
        unit: u32,
        hints_max: u32,
    ) -> Self {
        let capacity = (frames / unit).max(1);
        let window = (capacity / PIECES_MIN).clamp(1, WINDOW_MAX);
        let mut plan = Self {
            planner: Planner::new(policy.build(), Board::new(1, capacity)),
            pieces: Pieces::default(),
            hands: Hands::default(),
            frontier: Frontier::new(window),
            trust: Trust::new(capacity),
            charged: 0,
            devices: Vec::new(),
            unit,
            hints_max,
            served: Nanos(0),
            is_unfinished: false,
        };
        plan.allow();
        plan
    }

    /// References it holds, also those read since.
    pub(crate) fn told(&self) -> u32 {
        self.board().end().0
    }

    /// How many more references it can take, at once or once it was [made smaller](Plan::compact).
    /// That is done when half of them are over, so that its cost spreads over as many
    /// hints.
    pub(crate) fn room(&self) -> u32 {
        let over = self.board().cursor().0;
        let is_worth_it = over >= self.told() / 2;
        self.free() + if is_worth_it { over } else { 0 }
    }

    /// How many more references it can take at once.
    pub(crate) fn free(&self) -> u32 {
        self.hints_max.saturating_sub(self.told())
    }

    /// References or pieces, whichever are more: the measure of its bookkeeping.
    pub(crate) fn entries(&self) -> u32 {
        self.told().max(self.pieces.numbers())
    }

    /// Whether every reference is over.
    pub(crate) fn is_over(&self) -> bool {
        self.board().cursor() == self.board().end()
    }

    /// Whether there is nothing any more that it knows.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Blocks it may hold.
    pub(crate) fn blocks(&self) -> u32 {
        self.board().capacity().saturating_mul(self.unit)
    }

    /// Appends a reference to a piece, at most [`Plan::unit`] long; false if it repeats the last
    /// one, which is one visit. None, and nothing changes, if there is no room.
    pub(crate) fn hint(&mut self, extent: Extent, device: DeviceId) -> Option<bool> {
        if self.free() == 0 {
            return None;
        }
        let disk = self.disk(device)?;
        let block = self.pieces.number(extent);
        let last = self.told().checked_sub(1).map(Position);
        let repeats = last.and_then(|last| self.board().block_at(last)) == Some(block);
        if repeats {
            return Some(false);
        }
        made_sense(self.planner.hint(Hint { block, disk }));
        Some(true)
    }

    /// Whether more hints follow at once.
    pub(crate) fn set_unfinished(&mut self, more: bool) {
        self.is_unfinished = more;
    }

    /// Whether something happened that is to be decided about.
    pub(crate) fn is_undecided(&self) -> bool {
        self.planner.is_stale() && !self.is_unfinished
    }

    /// Whether any piece is asked for of which nothing was taken.
    pub(crate) fn is_read(&self) -> bool {
        self.hands.open().next().is_some()
    }

    /// The planner's number of a disk.
    fn disk(&mut self, device: DeviceId) -> Option<DeviceId> {
        let known = self.devices.iter().position(|d| *d == device);
        let disk = match known {
            Some(disk) => disk,
            None => self.add_disk(device)?,
        };
        u16::try_from(disk).ok().map(DeviceId)
    }

    /// The planner begins with one disk, which is that of the first hint.
    fn add_disk(&mut self, device: DeviceId) -> Option<usize> {
        if !self.devices.is_empty() {
            self.planner.add_disk()?;
            self.trust.add_disk();
            self.allow();
        }
        self.devices.push(device);
        Some(self.devices.len() - 1)
    }

    /// Forgets references that are over, to make room for more.
    pub(crate) fn compact(&mut self) {
        let passed = self.planner.compact();
        self.frontier.compact(passed);
        self.pieces.retire(|piece| self.planner.retire(piece));
        self.hands.retain(|piece| !self.pieces.is_retired(piece));
    }

    /// Whether a piece begins here that is to be read.
    pub(crate) fn begins_at(&self, file: FileId, block: Block) -> bool {
        let piece = self.pieces.at(file, block);
        piece.is_some_and(|piece| self.is_to_be_read(piece))
    }

    fn is_to_be_read(&self, piece: BlockNo) -> bool {
        self.board().next_use(piece) != Position::NEVER
    }

    /// The planner may fetch as far ahead as hints are trusted.
    fn allow(&mut self) {
        self.planner.allow(self.trust.pieces);
    }

    /// Whether a piece is there or on its way.
    pub(crate) fn has(&self, piece: BlockNo) -> bool {
        self.board().is_resident(piece) || self.board().is_in_flight(piece)
    }

    /// The next action, if there is one.
    pub(crate) fn poll(&mut self) -> Option<Fetch> {
        if self.is_unfinished {
            return None;
        }
        let Started { block, evict, .. } = self.planner.poll()?;
        Some(Fetch {
            piece: block,
            extent: self.pieces.extent(block)?,
            evict: evict.and_then(|victim| self.pieces.extent(victim)),
        })
    }

    /// A piece needs no fetch: all of it is there.
    pub(crate) fn found(&mut self, piece: BlockNo) {
        made_sense(self.planner.found(piece));
    }

    /// A piece goes to its disk in so many requests, perhaps not all of it; with none it failed.
    pub(crate) fn started(&mut self, piece: BlockNo, requests: u32, is_whole: bool) {
        if let Some(fetch) = self.pieces.fetch_of(piece) {
            *fetch = Progress::begin(requests, is_whole);
        }
        if requests == 0 {
            made_sense(self.planner.failed(piece));
        }
    }

    /// A request for a piece ended; a disk worked on it for so long. Once all have: where the
    /// piece lies, if it is of no use as a whole and the part that arrived is the engine's.
    pub(crate) fn ended(
        &mut self,
        piece: BlockNo,
        is_whole: bool,
        service: Nanos,
    ) -> Option<Extent> {
        let (service, is_whole) = self.pieces.fetch_of(piece)?.end_one(is_whole, service)?;
        let is_lost = !is_whole || self.pieces.is_gone(piece);
        made_sense(match is_lost {
            false => self.planner.fetched(piece, service),
            true => self.planner.failed(piece),
        });
        is_lost.then(|| self.pieces.extent(piece))?
    }

    /// Forgets a file: where its pieces lie that hold memory, and how many of its references were open.
    pub(crate) fn forget(&mut self, file: FileId) -> (Vec<Extent>, u64) {
        let (mut extents, mut open) = (Vec::new(), 0);
        for piece in self.pieces.forget(file) {
            // A place that a reader has asked for is no open reference any more.
            self.end_place(piece);
            open += self.uses_of(piece);
            if self.has(piece) {
                extents.extend(self.pieces.extent(piece));
            }
            self.hands.forget(piece);
            made_sense(self.planner.forgotten(piece));
        }
        (extents, open)
    }

    /// How many references to a piece are to come.
    fn uses_of(&self, piece: BlockNo) -> u64 {
        let first = self.board().next_use(piece);
        let known = |place: &Position| *place != Position::NEVER;
        let following = |place: &Position| Some(self.board().use_after(*place)).filter(known);
        core::iter::successors(Some(first).filter(known), following).count() as u64
    }

    fn board(&self) -> &Board {
        self.planner.board()
    }
}

/// Every call of the planner from here does.
fn made_sense(accepted: Option<()>) {
    debug_assert!(accepted.is_some(), "a call of ours made no sense");
}
