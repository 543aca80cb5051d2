//! The board: the blocks cached, in flight and missing, each with its next use.
//!
//! One per [planner](super::planner), which alone changes it; [policies](super::policy) read it.
//! Each block is absent, in flight or resident, and has one *next use*, the first place at or
//! after the cursor that names it. The sets follow from that:
//!
//! ```text
//! missing[disk]   next uses of absent blocks, one set a disk       first: the fetch
//! resident        next uses of resident blocks                     last: the victim ...
//! unneeded        resident blocks with no next use                 ... unless there is one here
//! ```
//!
//! A resident block that a reader has in hand, *kept*, is in none of them.
//!
//! A reference moves one block from its old next use to the following one: O(log n), see
//! [`positions`](super::positions). Links from each place to the following one of the same block
//! make that a look-up, and let hints arrive at any time.
//!
//! The rules of Kimbrel et al. 1996, section 2.2 are its methods. It decides nothing. Its changes
//! stand in `board/change.rs`.

mod change;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::positions::Positions;
use crate::units::DeviceId;

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

/// A fetch and the eviction that makes room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The block to fetch; absent, and known to be used.
    pub fetch: BlockNo,
    /// The victim; `None` takes an empty frame.
    pub evict: Option<BlockNo>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Board {
    capacity: u32,
    cursor: u32,
    /// The place asked for last, or behind it once it is over.
    here: u32,
    /// The reference order: the block at each place ..
    order: Vec<u32>,
    /// .. and the following place that names the same block.
    following: Vec<u32>,
    blocks: Vec<Entry>,
    missing: Vec<Positions>,
    /// Fetches under way, by disk.
    in_flight: Vec<u32>,
    /// Resident blocks that may go: the next use and the block.
    resident: BTreeSet<(u32, u32)>,
    /// Frames that hold a block or wait for one.
    occupied: u32,
    /// Where readers wait: next uses of absent blocks.
    awaited: BTreeSet<u32>,
    /// Blocks that are unread.
    unread: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    next: u32,
    /// The last place that names it: where the link to a further hint begins.
    last: u32,
    disk: u16,
    state: State,
    /// A fetch for the coming use failed; it is not tried again before the reader asks.
    given_up: bool,
    /// A reader has it in hand.
    kept: bool,
    /// It was prefetched, and not read since.
    unread: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unknown,
    Absent,
    InFlight,
    Resident,
}

const NEVER: u32 = Position::NEVER.0;

const UNKNOWN: Entry = Entry {
    next: NEVER,
    last: NEVER,
    disk: 0,
    state: State::Unknown,
    given_up: false,
    kept: false,
    unread: false,
};

impl Board {
    /// Most disks: each costs a set over the reference order.
    pub const DISKS_MAX: u16 = 1024;

    /// With nothing hinted and nothing cached.
    #[must_use]
    pub fn new(disks: u16, capacity: u32) -> Self {
        Self {
            capacity,
            cursor: 0,
            here: 0,
            order: Vec::new(),
            following: Vec::new(),
            blocks: Vec::new(),
            missing: (0..disks).map(|_| Positions::default()).collect(),
            in_flight: (0..disks).map(|_| 0).collect(),
            resident: BTreeSet::new(),
            occupied: 0,
            awaited: BTreeSet::new(),
            unread: 0,
        }
    }

    /// The soonest missing block, if it is at most `horizon` references ahead.
    #[must_use]
    pub fn missing_within(&self, horizon: u32) -> Option<Position> {
        let end = Position(self.here().0.saturating_add(horizon));
        self.soonest_missing().filter(|position| *position <= end)
    }

    /// The disks, in order.
    pub fn disks(&self) -> impl DoubleEndedIterator<Item = DeviceId> + use<> {
        (0..self.missing.len() as u16).map(DeviceId)
    }

    /// How many disks there are.
    #[must_use]
    pub fn disk_count(&self) -> u32 {
        self.missing.len() as u32
    }

    /// K: how many blocks the cache holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The first reference that is not done with.
    #[must_use]
    pub fn cursor(&self) -> Position {
        Position(self.cursor)
    }

    /// Where readers are: at the cursor, or at the place asked for last, or behind it once that is
    /// over. A reference between the cursor and here may still be read, or was announced wrongly;
    /// distances count from here.
    #[must_use]
    pub fn here(&self) -> Position {
        Position(self.cursor.max(self.here))
    }

    /// The place after the last known reference.
    #[must_use]
    pub fn end(&self) -> Position {
        Position(self.order.len() as u32)
    }

    /// One more than the largest block number mentioned so far.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// The block that is referenced at a place.
    #[must_use]
    pub fn block_at(&self, position: Position) -> Option<BlockNo> {
        self.order.get(position.0 as usize).copied().map(BlockNo)
    }

    /// Where a block lies; `None` for one never mentioned.
    #[must_use]
    pub fn disk_of(&self, block: BlockNo) -> Option<DeviceId> {
        let entry = self.entry(block);
        (entry.state != State::Unknown).then_some(DeviceId(entry.disk))
    }

    /// When a block is used next; [`Position::NEVER`] if no use is known.
    #[must_use]
    pub fn next_use(&self, block: BlockNo) -> Position {
        Position(self.entry(block).next)
    }

    /// When the block that is used at a place is used again.
    #[must_use]
    pub fn use_after(&self, position: Position) -> Position {
        let following = self.following.get(position.0 as usize);
        Position(following.copied().unwrap_or(NEVER))
    }

    /// Whether a block is in the cache.
    #[must_use]
    pub fn is_resident(&self, block: BlockNo) -> bool {
        self.entry(block).state == State::Resident
    }

    /// Whether a block is in the cache and no reader has it in hand.
    #[must_use]
    pub fn may_go(&self, block: BlockNo) -> bool {
        let entry = self.entry(block);
        entry.state == State::Resident && !entry.kept
    }

    /// Whether a block is on its way.
    #[must_use]
    pub fn is_in_flight(&self, block: BlockNo) -> bool {
        self.entry(block).state == State::InFlight
    }

    /// How many fetches are under way on a disk.
    #[must_use]
    pub fn in_flight(&self, disk: DeviceId) -> u32 {
        self.in_flight
            .get(usize::from(disk.0))
            .copied()
            .unwrap_or(0)
    }

    /// Frames with nothing in them and nothing on its way to them.
    #[must_use]
    pub fn empty_frames(&self) -> u32 {
        self.capacity - self.occupied
    }

    /// Blocks prefetched and not read, in flight or resident. One that a reader waited for when its
    /// fetch started is not among them.
    #[must_use]
    pub fn unread(&self) -> u32 {
        self.unread
    }

    /// The soonest place at which a reader waits for a block that is missing.
    #[must_use]
    pub fn awaited(&self) -> Option<Position> {
        self.awaited.first().copied().map(Position)
    }

    /// Whether a reader waits for this block, which is missing.
    #[must_use]
    pub fn is_awaited(&self, block: BlockNo) -> bool {
        self.awaited.contains(&self.entry(block).next)
    }

    /// *Optimal fetching* on one disk: the next use of the missing block referenced soonest.
    #[must_use]
    pub fn first_missing(&self, disk: DeviceId) -> Option<Position> {
        self.missing.get(usize::from(disk.0))?.first().map(Position)
    }

    /// *Optimal fetching* over all disks.
    #[must_use]
    pub fn soonest_missing(&self) -> Option<Position> {
        self.disks().filter_map(|d| self.first_missing(d)).min()
    }

    /// The next uses of a disk's missing blocks before `end`, as [`Positions::words`].
    pub fn missing_words(
        &self,
        disk: DeviceId,
        end: Position,
    ) -> impl Iterator<Item = (u32, u64)> + '_ {
        let set = self.missing.get(usize::from(disk.0));
        set.into_iter().flat_map(move |set| set.words(end.0))
    }

    /// *Optimal replacement*: the resident block whose next use is furthest, with that use.
    #[must_use]
    pub fn furthest(&self) -> Option<(BlockNo, Position)> {
        let (next, block) = *self.resident.last()?;
        Some((BlockNo(block), Position(next)))
    }

    /// *Do no harm*: room for a block next used at `position`. An empty frame (`Some(None)`), or
    /// that of the block used furthest, if that is used later still; else `None`.
    #[must_use]
    pub fn harmless_room(&self, position: Position) -> Option<Option<BlockNo>> {
        if self.occupied < self.capacity {
            return Some(None);
        }
        let (block, next) = self.furthest()?;
        (next > position).then_some(Some(block))
    }

    /// The fetch of the block missing at a place, if there is harmless room for it.
    #[must_use]
    pub fn harmless_pair(&self, position: Position) -> Option<Pair> {
        Some(Pair {
            fetch: self.block_at(position)?,
            evict: self.harmless_room(position)?,
        })
    }

    fn entry(&self, block: BlockNo) -> Entry {
        self.blocks
            .get(block.0 as usize)
            .copied()
            .unwrap_or(UNKNOWN)
    }
}
