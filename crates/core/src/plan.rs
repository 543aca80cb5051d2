//! The plan: the order of reads that was announced, and how the reads that come agree with it.
//!
//! Kept by the engine, which gives it hints, tells it what readers ask for and what fetches came
//! to, and carries out its [`Fetch`]es. It cuts hinted runs into *pieces*, at most one request
//! long, numbers them for the [planner](crate::hinted), and judges which place of the order a read
//! takes:
//!
//! ```text
//!   over     |   window   |   window   |  too far: a stray
//!   ---------+------------+------------+-------------------- order of references
//!            ^ cursor     ^ frontier: behind the furthest place taken
//! ```
//!
//! Control law of disorder: readers may be a window ahead of the frontier, and what nobody took
//! more than a window behind it is given up. A read of something hinted for much later is a stray
//! and takes no place; after [`STRAYS_MAX`] strays in a row the order goes on at the earliest of
//! them. A piece taken stays in memory until its reader takes another, or a window of others was
//! taken since.
//!
//! Control law of trust: so many pieces are fetched ahead as hints have proved right, as TCP opens
//! its window: a few at first, two more for each one read, one less for each one passed over. So
//! wrong hints cost a few requests, and right ones are followed wholly after some rounds.
//!
//! It moves no frames and knows no readers.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::hinted::{BlockNo, Hint, Input, Output, Planner, Position, Setup};
use crate::spec::Choice;
use crate::units::{Block, DeviceId, Extent, FileId, Nanos, ReaderId, RequestId};

/// What a reference is charged: 8 bytes in the order and a quarter of one on each disk; its piece
/// here and on the board, 40 and 16, its place in the map, 24, and a list's links, 12. Vectors
/// grow by doubling.
pub(crate) const HINT_BYTES: i64 = 192;
/// Fewest pieces a plan works with: two being read, two on their way.
const PIECES_MIN: u32 = 4;
/// The window is a quarter of the pieces that fit, so that those in readers' hands leave room for
/// those to come, and at most this: some dozens of workers, each a
/// piece or two from where it should be.
const WINDOW_MAX: u32 = 64;
/// So many strays in a row mean that the reader is elsewhere; fewer may be looks at an index.
const STRAYS_MAX: u32 = 8;
/// Pieces fetched ahead for each disk before any hint has proved right: enough to keep a disk busy
/// through one reaction of its reader.
const TRUST_FIRST: u32 = 8;
/// What a hint that proved right adds: itself and one more, which doubles with every round.
const TRUST_STEP: u32 = 2;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Plan {
    planner: Planner,
    pieces: Vec<Piece>,
    /// Numbers of pieces that are nowhere any more.
    retired: Vec<BlockNo>,
    /// The pieces that each reader took last.
    held: BTreeMap<ReaderId, Vec<BlockNo>>,
    /// What it was charged.
    pub(crate) charged: i64,
    /// Requests for pieces, and when the driver got each.
    requests: BTreeMap<RequestId, (BlockNo, Nanos)>,
    /// Where each piece begins.
    begins: BTreeMap<(FileId, Block), BlockNo>,
    /// Disks of the planner.
    devices: Vec<DeviceId>,
    /// Most blocks of a piece.
    unit: u32,
    capacity: u32,
    window: u32,
    hints_max: u32,
    frontier: u32,
    strays: u32,
    /// The earliest place of the strays in a row.
    stray: u32,
    trust: u32,
    /// When a reader last got what it had asked for.
    served: Nanos,
    /// Pieces that readers have in hand, one for each reader, oldest first.
    kept: VecDeque<BlockNo>,
    /// Hints follow at once; nothing is decided before they are here.
    is_unfinished: bool,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    extent: Extent,
    /// Its file is closed or another by now.
    is_gone: bool,
    /// Its number is free.
    is_retired: bool,
    /// Part of what was to be fetched did not arrive.
    is_broken: bool,
    /// Requests under way, and how long disks worked on those that ended.
    requests: u32,
    service: Nanos,
}

/// What the planner wants fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub(crate) piece: BlockNo,
    pub(crate) extent: Extent,
    /// What to give up for it.
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

    /// A plan for a share of the frames, in pieces of at most `unit` blocks. None if the policy is
    /// not one of the family.
    pub(crate) fn new(policy: &Choice, frames: u32, unit: u32, hints_max: u32) -> Option<Self> {
        let capacity = (frames / unit).max(1);
        let hints_max = hints_max.min(Self::HINTS_MAX);
        let planner = Planner::new(&Setup {
            policy: policy.clone(),
            disks: 1,
            cache_blocks: capacity,
            blocks_max: u32::MAX,
            hints_max,
        });
        let mut plan = Self {
            planner: planner.ok()?,
            pieces: Vec::new(),
            retired: Vec::new(),
            held: BTreeMap::new(),
            charged: 0,
            requests: BTreeMap::new(),
            begins: BTreeMap::new(),
            devices: Vec::new(),
            unit,
            capacity,
            window: (capacity / PIECES_MIN).clamp(1, WINDOW_MAX),
            hints_max,
            frontier: 0,
            strays: 0,
            stray: u32::MAX,
            trust: 0,
            served: Nanos(0),
            kept: VecDeque::new(),
            is_unfinished: false,
        };
        plan.set_trust(TRUST_FIRST);
        Some(plan)
    }

    /// References it holds, also of what has been read since.
    pub(crate) fn told(&self) -> u32 {
        self.planner.board().end().0
    }

    /// How many more references it can take, at once or once it was [made smaller](Plan::compact).
    /// That is done when half of what it holds is over, so that its cost spreads over as many hints.
    pub(crate) fn room(&self) -> u32 {
        let over = self.planner.board().cursor().0;
        let is_worth_it = over >= self.told() / 2;
        self.free() + if is_worth_it { over } else { 0 }
    }

    /// How many more references it can take at once.
    pub(crate) fn free(&self) -> u32 {
        self.hints_max.saturating_sub(self.told())
    }

    /// References or pieces, whichever are more: what its bookkeeping is charged by.
    pub(crate) fn entries(&self) -> u32 {
        self.told().max(self.pieces.len() as u32)
    }

    /// Whether every reference is over.
    pub(crate) fn is_over(&self) -> bool {
        self.planner.board().cursor() == self.planner.board().end()
    }

    /// Whether there is nothing any more that it knows.
    pub(crate) fn is_empty(&self) -> bool {
        self.begins.is_empty()
    }

    /// Most blocks of a piece.
    pub(crate) fn unit(&self) -> u32 {
        self.unit
    }

    /// Blocks it may hold.
    pub(crate) fn blocks(&self) -> u32 {
        self.capacity.saturating_mul(self.unit)
    }

    /// Appends a reference to a piece, at most [`Plan::unit`] long; false if it repeats the last
    /// one, which is one visit. None, and nothing changes, if there is no room.
    pub(crate) fn hint(&mut self, extent: Extent, device: DeviceId) -> Option<bool> {
        if self.free() == 0 {
            return None;
        }
        let disk = self.disk(device)?;
        let piece = self.number(extent);
        let last = self.told().checked_sub(1).map(Position);
        if last.and_then(|last| self.planner.board().block_at(last)) == Some(piece) {
            return Some(false);
        }
        let block = piece;
        self.tell(Input::Hints([Hint { block, disk }].into()));
        Some(true)
    }

    /// Whether more hints follow at once.
    pub(crate) fn set_unfinished(&mut self, more: bool) {
        self.is_unfinished = more;
    }

    fn disk(&mut self, device: DeviceId) -> Option<DeviceId> {
        let known = self.devices.iter().position(|d| *d == device);
        let disk = match known {
            Some(disk) => disk,
            None => {
                if !self.devices.is_empty() {
                    self.planner.add_disk()?;
                    self.set_trust(self.trust.saturating_add(TRUST_FIRST));
                }
                self.devices.push(device);
                self.devices.len() - 1
            }
        };
        u16::try_from(disk).ok().map(DeviceId)
    }

    /// The piece that begins where this extent does. It grows if the extent is longer.
    fn number(&mut self, extent: Extent) -> BlockNo {
        let key = (extent.file, extent.first);
        if let Some(number) = self.begins.get(&key) {
            let known = &mut self.pieces[number.0 as usize].extent;
            known.count = known.count.max(extent.count);
            return *number;
        }
        let piece = Piece {
            extent,
            is_gone: false,
            is_retired: false,
            is_broken: false,
            requests: 0,
            service: Nanos(0),
        };
        let next = BlockNo(self.pieces.len() as u32);
        let number = self.retired.pop().unwrap_or(next);
        match self.pieces.get_mut(number.0 as usize) {
            Some(slot) => *slot = piece,
            None => self.pieces.push(piece),
        }
        self.begins.insert(key, number);
        number
    }

    /// Forgets what is over, to make room for more.
    pub(crate) fn compact(&mut self) {
        let passed = self.planner.compact();
        self.frontier = self.frontier.saturating_sub(passed);
        (self.strays, self.stray) = (0, u32::MAX);
        for number in (0..self.pieces.len() as u32).map(BlockNo) {
            let piece = &mut self.pieces[number.0 as usize];
            if piece.is_retired || piece.requests > 0 || !self.planner.retire(number) {
                continue;
            }
            piece.is_retired = true;
            self.retired.push(number);
            let key = (piece.extent.file, piece.extent.first);
            if self.begins.get(&key) == Some(&number) {
                self.begins.remove(&key);
            }
        }
        let is_known = |piece: &BlockNo| !self.pieces[piece.0 as usize].is_retired;
        self.held
            .values_mut()
            .for_each(|held| held.retain(is_known));
    }

    /// Whether a reader took a piece and has not gone on to another.
    pub(crate) fn is_held(&self, reader: ReaderId, piece: BlockNo) -> bool {
        let held = self.held.get(&reader);
        held.is_some_and(|held| held.contains(&piece))
    }

    /// A reader has gone on from what it held, but for these pieces: what it left.
    pub(crate) fn go_on(&mut self, reader: ReaderId, stays: &[BlockNo]) -> Vec<BlockNo> {
        let Some(held) = self.held.get_mut(&reader) else {
            return Vec::new();
        };
        let left = held
            .extract_if(.., |piece| !stays.contains(piece))
            .collect();
        if held.is_empty() {
            self.held.remove(&reader);
        }
        left
    }

    /// The piece that holds a block.
    pub(crate) fn covering(&self, file: FileId, block: Block) -> Option<(BlockNo, Extent)> {
        let before = self.begins.range((file, Block(0))..=(file, block));
        let (_, number) = before.last()?;
        let extent = self.pieces.get(number.0 as usize)?.extent;
        extent.contains(block).then_some((*number, extent))
    }

    /// The first piece of a file that begins behind a block.
    pub(crate) fn after(&self, file: FileId, block: Block) -> Option<Block> {
        let next = Block(block.0.checked_add(1)?);
        let mut behind = self.begins.range((file, next)..=(file, Block(u32::MAX)));
        behind.next().map(|((_, first), _)| *first)
    }

    /// Whether a piece begins here that is to be read.
    pub(crate) fn begins_at(&self, file: FileId, block: Block) -> bool {
        let number = self.begins.get(&(file, block));
        number.is_some_and(|n| self.planner.board().next_use(*n) != Position::NEVER)
    }

    /// A reader asks for a piece: whether a place of the order is meant by that, and in any case how
    /// many references were passed over that nobody read. What the planner does for it is to be
    /// carried out, then the place is [settled](Plan::settle).
    pub(crate) fn take(&mut self, now: Nanos, reader: ReaderId, piece: BlockNo) -> (bool, u64) {
        let mut missed = 0;
        let place = self.planner.board().next_use(piece);
        if place == Position::NEVER {
            return (false, 0);
        }
        if !self.is_near(place) {
            missed = self.stray(place);
            if !self.is_near(place) {
                return (false, missed);
            }
        }
        (self.strays, self.stray) = (0, u32::MAX);
        self.frontier = self.frontier.max(place.0.saturating_add(1));
        missed += self.give_up_before(self.frontier.saturating_sub(self.window));
        self.set_trust(self.trust.saturating_add(TRUST_STEP));
        let compute = now.since(self.served);
        self.served = now;
        self.held.entry(reader).or_default().push(piece);
        let (block, kept) = (piece, true);
        self.tell(Input::Kept { block, kept });
        self.tell(Input::Asked { block, compute });
        (true, missed)
    }

    /// The place that was taken is over, and the piece, if it is there or on its way, in hand.
    pub(crate) fn settle(&mut self, piece: BlockNo) {
        let (block, read) = (piece, true);
        self.tell(Input::Passed { block, read });
        if !self.has(piece) {
            self.let_go(piece);
            return;
        }
        self.kept.push_back(piece);
        if self.kept.len() > self.window as usize
            && let Some(oldest) = self.kept.pop_front()
        {
            self.let_go(oldest);
        }
    }

    /// A reader is done with a piece. Whether it is to be read again.
    pub(crate) fn leave(&mut self, piece: BlockNo) -> bool {
        if let Some(at) = self.kept.iter().position(|kept| *kept == piece) {
            self.kept.remove(at);
            self.let_go(piece);
        }
        self.planner.board().next_use(piece) != Position::NEVER
    }

    /// A piece may be given up, unless another reader has it, too.
    fn let_go(&mut self, block: BlockNo) {
        if !self.kept.contains(&block) {
            let kept = false;
            self.tell(Input::Kept { block, kept });
        }
    }

    fn is_near(&self, place: Position) -> bool {
        place.0 <= self.frontier.saturating_add(self.window) && place != Position::NEVER
    }

    /// A read far from the order. Enough of them move it; how many references that passes over.
    fn stray(&mut self, place: Position) -> u64 {
        self.strays += 1;
        self.stray = self.stray.min(place.0);
        if self.strays < STRAYS_MAX {
            return 0;
        }
        self.frontier = self.frontier.max(self.stray);
        (self.strays, self.stray) = (0, u32::MAX);
        self.give_up_before(self.frontier.saturating_sub(self.window))
    }

    /// What lies before a place is not waited for any more; how many of it nobody read.
    fn give_up_before(&mut self, place: u32) -> u64 {
        let mut missed = 0;
        while self.planner.board().cursor().0 < place
            && let Some(piece) = self.planner.board().block_at(self.planner.board().cursor())
        {
            missed += 1;
            let (block, read) = (piece, false);
            self.tell(Input::Passed { block, read });
        }
        let less = u32::try_from(missed).unwrap_or(u32::MAX);
        let least = TRUST_FIRST.saturating_mul(self.devices.len().max(1) as u32);
        self.set_trust(self.trust.saturating_sub(less).max(least));
        missed
    }

    /// Sets how many pieces may be fetched and not read.
    fn set_trust(&mut self, pieces: u32) {
        self.trust = pieces.min(self.capacity);
        self.planner.allow(self.trust);
    }

    /// Whether a piece is there or on its way.
    pub(crate) fn has(&self, piece: BlockNo) -> bool {
        let board = self.planner.board();
        board.is_resident(piece) || board.is_in_flight(piece)
    }

    /// A reader got what it had asked for: from here on it computes.
    pub(crate) fn served(&mut self, now: Nanos, reader: ReaderId) {
        if self.held.contains_key(&reader) {
            self.served = now;
        }
    }

    /// What to do next, if there is something.
    pub(crate) fn poll(&mut self) -> Option<Fetch> {
        if self.is_unfinished {
            return None;
        }
        loop {
            match self.planner.poll() {
                Output::Idle => return None,
                Output::Fetch { block, evict, .. } => {
                    let extent_of = |n: BlockNo| self.pieces.get(n.0 as usize).map(|p| p.extent);
                    return Some(Fetch {
                        piece: block,
                        extent: extent_of(block)?,
                        evict: evict.and_then(extent_of),
                    });
                }
                // Readers are served by the engine, which knows itself what is resident.
                Output::Serve { .. } | Output::Lost { .. } => {}
            }
        }
    }

    /// A piece needs no fetch: all of it is there.
    pub(crate) fn found(&mut self, piece: BlockNo) {
        self.tell(Input::Found { block: piece });
    }

    /// A piece goes to its disk in so many requests, perhaps not all of it; with none it failed.
    pub(crate) fn started(&mut self, piece: BlockNo, requests: u32, is_whole: bool) {
        if let Some(state) = self.pieces.get_mut(piece.0 as usize) {
            (state.requests, state.is_broken) = (requests, !is_whole);
            state.service = Nanos(0);
        }
        if requests == 0 {
            self.tell(Input::Failed { block: piece });
        }
    }

    /// A request is for a piece.
    pub(crate) fn owns(&mut self, id: RequestId, piece: BlockNo) {
        self.requests.insert(id, (piece, Nanos(0)));
    }

    /// Whether a request is for a piece.
    pub(crate) fn is_own(&self, id: RequestId) -> bool {
        self.requests.contains_key(&id)
    }

    /// The driver got a request.
    pub(crate) fn sent(&mut self, id: RequestId, now: Nanos) {
        if let Some((_, at)) = self.requests.get_mut(&id) {
            *at = now;
        }
    }

    /// Requests for pieces whose file is gone.
    pub(crate) fn requests_of_gone(&self) -> Vec<RequestId> {
        let is_gone = |piece: BlockNo| self.pieces[piece.0 as usize].is_gone;
        let own = self.requests.iter();
        own.filter(|(_, (piece, _))| is_gone(*piece))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The number of a request is free again: its piece, and when the driver got it.
    pub(crate) fn disown(&mut self, id: RequestId) -> Option<(BlockNo, Nanos)> {
        self.requests.remove(&id)
    }

    /// A request for a piece ended; a disk worked on it for so long. Once all have: where the
    /// piece lies, if it is of no use as a whole and what arrived of it is the engine's.
    pub(crate) fn ended(
        &mut self,
        piece: BlockNo,
        is_whole: bool,
        service: Nanos,
    ) -> Option<Extent> {
        let state = self.pieces.get_mut(piece.0 as usize)?;
        state.requests = state.requests.saturating_sub(1);
        state.is_broken |= !is_whole;
        state.service = Nanos(state.service.0.saturating_add(service.0));
        if state.requests > 0 {
            return None;
        }
        let (extent, service) = (state.extent, state.service);
        let is_lost = state.is_broken || state.is_gone;
        let block = piece;
        self.tell(match is_lost {
            false => Input::Fetched { block, service },
            true => Input::Failed { block },
        });
        is_lost.then_some(extent)
    }

    /// Where a piece lies.
    pub(crate) fn extent(&self, piece: BlockNo) -> Option<Extent> {
        self.pieces.get(piece.0 as usize).map(|p| p.extent)
    }

    /// Forgets a file: its pieces, and how many of its references were open.
    pub(crate) fn forget(&mut self, file: FileId) -> (Vec<Extent>, u64) {
        let of_file = (file, Block(0))..=(file, Block(u32::MAX));
        let found: Vec<_> = self.begins.range(of_file).map(|(k, n)| (*k, *n)).collect();
        let (mut extents, mut open) = (Vec::new(), 0);
        for (key, number) in found {
            self.begins.remove(&key);
            let board = self.planner.board();
            let mut place = board.next_use(number);
            while place != Position::NEVER {
                place = board.use_after(place);
                open += 1;
            }
            if let Some(piece) = self.pieces.get_mut(number.0 as usize) {
                piece.is_gone = true;
                extents.push(piece.extent);
            }
            self.kept.retain(|kept| *kept != number);
            self.tell(Input::Forgotten { block: number });
        }
        (extents, open)
    }

    /// Pairs that its policy named and inputs of its own that made no sense: none, or there is a
    /// defect.
    #[cfg(test)]
    pub(crate) fn defects(&self) -> u64 {
        let ledger = self.planner.ledger();
        assert!(ledger.adds_up(), "{ledger:?}");
        ledger.refused_pairs + ledger.refused_inputs
    }

    fn tell(&mut self, input: Input) {
        // Time decides nothing in the planner, and its account of waiting is not asked for.
        self.planner.handle(Nanos(0), input);
    }
}
