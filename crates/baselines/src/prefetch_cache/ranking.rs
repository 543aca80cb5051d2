//! Ranking: which streams have blocks in the prefetch cache, and which of them gives up its last.
//!
//! The engine tells where a reader's streams are. A stream gets one more position here:
//!
//! ```text
//!   start           position            tail      end
//!     |== consumed ====|-- arrived -------|---------|
//! ```
//!
//! All its blocks in the prefetch cache lie before `tail`; not each block there is one of them,
//! because other readers take blocks too. While there are some the stream is ranked. So each block
//! of a stream can be found as some stream's last one.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use forerun_core::reclaim::{StreamAhead, StreamId, Streams, Victim};
use forerun_core::table::Frame;
use forerun_core::{Block, Extent, FileId, Nanos, ReaderId};

use super::announced::{Announced, RUN_BYTES};
use super::{PrefetchStream, Rank};

/// Memory charged for a rank: 16 bytes in a node of at least 5 of 11, with the nodes above it.
const RANK_BYTES: u64 = 48;

#[derive(Debug)]
pub(super) struct Ranking {
    rank: Box<dyn Rank>,
    ranked: BTreeSet<(u64, StreamId)>,
    owners: BTreeMap<ReaderId, Owner>,
    /// Runs of announced blocks, of all owners.
    runs: u32,
    /// Owners whose list of hints has not ended.
    open: Vec<ReaderId>,
}

/// A reader with an open file.
#[derive(Debug, Default)]
struct Owner {
    /// Its file, once it has had a stream.
    file: FileId,
    /// In the order in which they were found.
    streams: Vec<Stream>,
    /// Processor time, as far as it was told.
    cpu: Nanos,
    announced: Announced,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    ahead: StreamAhead,
    /// Behind its last block in the prefetch cache.
    tail: u32,
    /// Its rank, while it has blocks there.
    rank: Option<u64>,
    /// The owner's processor time when it was accessed last.
    used_cpu: Nanos,
}

impl Stream {
    /// Blocks from the next one its reader comes to, up to its last one in the prefetch cache.
    fn arrived(&self) -> u32 {
        let position = u32::try_from(self.ahead.position).unwrap_or(u32::MAX);
        self.tail.saturating_sub(position)
    }

    /// These blocks, as far as they lie before `end`.
    fn extent(&self, file: FileId, end: u64) -> Extent {
        let first = self.tail - self.arrived();
        let end = u32::try_from(end).unwrap_or(u32::MAX).min(self.tail);
        Extent {
            file,
            first: Block(first),
            count: end.saturating_sub(first),
        }
    }
}

impl Ranking {
    pub(super) fn new(rank: Box<dyn Rank>) -> Self {
        Self {
            rank,
            ranked: BTreeSet::new(),
            owners: BTreeMap::new(),
            runs: 0,
            open: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.ranked.len() as u64 * RANK_BYTES + u64::from(self.runs) * RUN_BYTES
    }

    pub(super) fn uses_cpu_time(&self) -> bool {
        self.rank.uses_cpu_time()
    }

    /// Streams of a reader have changed. The blocks that left them, where a reader skipped them or
    /// a stream gave way.
    pub(super) fn follow(
        &mut self,
        owner: ReaderId,
        file: FileId,
        streams: &Streams,
    ) -> Vec<Extent> {
        let state = self.owners.entry(owner).or_default();
        state.file = file;
        let mut left = Vec::new();
        let mut now = streams.forward().peekable();
        let ranked = &mut self.ranked;
        // Streams keep their order, and new ones come last.
        state.streams.retain_mut(|stream| {
            let start = stream.ahead.start;
            let end = match now.next_if(|ahead| ahead.start == start) {
                Some(ahead) => {
                    left.push(stream.extent(file, ahead.position));
                    stream.ahead = ahead;
                    return true;
                }
                None => u64::MAX,
            };
            left.push(stream.extent(file, end));
            if let Some(rank) = stream.rank {
                ranked.remove(&(rank, StreamId { owner, start }));
            }
            false
        });
        let used_cpu = state.cpu;
        state.streams.extend(now.map(|ahead| Stream {
            ahead,
            tail: ahead.start.0,
            rank: None,
            used_cpu,
        }));
        self.rank_all(owner);
        left.retain(|extent| extent.count > 0);
        left
    }

    /// A reader came to these blocks of a stream. True if that refutes its hints.
    pub(super) fn read(&mut self, owner: ReaderId, extent: Extent, stream: Option<Block>) -> bool {
        if let Some(state) = self.owners.get_mut(&owner)
            && let Some(start) = stream
            && let Some(stream) = state.streams.iter_mut().find(|s| s.ahead.start == start)
        {
            stream.used_cpu = state.cpu;
            self.rank_all(owner);
        }
        let Extent { first, count, .. } = extent;
        let refutes = |set: &mut Announced| set.is_refuted_by(first, count);
        self.change_hints(owner, refutes) == Some(true)
    }

    /// A block fetched ahead is in the prefetch cache. Whether it lies ahead of the reader of a stream, which
    /// may come to it.
    pub(super) fn arrive(&mut self, owner: ReaderId, file: FileId, block: Block) -> bool {
        let Some(state) = self.owners.get_mut(&owner) else {
            return false;
        };
        if state.file != file || state.announced.never_has(block) {
            return false;
        }
        let at = u64::from(block.0);
        let is_ahead =
            |s: &&mut Stream| s.ahead.position <= at && at <= s.ahead.end.max(u64::from(s.tail));
        let cpu = state.cpu;
        let Some(stream) = state.streams.iter_mut().rev().find(is_ahead) else {
            return false;
        };
        stream.tail = stream.tail.max(block.0.saturating_add(1));
        place(&*self.rank, &mut self.ranked, owner, cpu, stream);
        true
    }

    /// Takes the last block of the highest stream for which `can_go` finds a frame. Streams without
    /// one are ranked no more.
    pub(super) fn take(
        &mut self,
        can_go: impl Fn(FileId, Block) -> Option<Frame>,
    ) -> Option<Victim> {
        while let Some((rank, id)) = self.ranked.pop_last() {
            let state = self.owners.get_mut(&id.owner)?;
            let (file, cpu) = (state.file, state.cpu);
            let mut streams = state.streams.iter_mut();
            let stream = streams.find(|s| s.ahead.start == id.start)?;
            debug_assert_eq!(stream.rank, Some(rank), "{id:?}");
            stream.rank = None;
            let blocks = stream.extent(file, u64::MAX);
            let mut blocks = (blocks.first.0..stream.tail).rev().map(Block);
            let last = blocks.find_map(|block| Some((block, can_go(file, block)?)));
            stream.tail = last.map_or(id.start, |(block, _)| block).0;
            place(&*self.rank, &mut self.ranked, id.owner, cpu, stream);
            if let Some((_, frame)) = last {
                return Some(Victim::LastOf(id, frame));
            }
        }
        None
    }

    /// An owner has used so much processor time; never less than before.
    pub(super) fn owner_has_used(&mut self, owner: ReaderId, time: Nanos) {
        if self.rank.uses_cpu_time() {
            let state = self.owners.entry(owner).or_default();
            state.cpu = state.cpu.max(time);
            self.rank_all(owner);
        }
    }

    fn rank_all(&mut self, owner: ReaderId) {
        if let Some(state) = self.owners.get_mut(&owner) {
            for stream in &mut state.streams {
                place(&*self.rank, &mut self.ranked, owner, state.cpu, stream);
            }
        }
    }

    /// The runs of blocks ahead of a reader, fetched or on the way.
    pub(super) fn ahead(&self, owner: ReaderId) -> Vec<Extent> {
        let Some(state) = self.owners.get(&owner) else {
            return Vec::new();
        };
        let file = state.file;
        let ahead = state.streams.iter().filter_map(|stream| {
            let StreamAhead { position, end, .. } = stream.ahead;
            let first = Block(u32::try_from(position).ok()?);
            let count = u32::try_from(end.checked_sub(position)?).ok()?;
            Some(Extent { file, first, count })
        });
        ahead.filter(|extent| extent.count > 0).collect()
    }

    /// The reader is closed, and all its streams are gone.
    pub(super) fn close(&mut self, owner: ReaderId) {
        self.forget_hints(owner);
        self.owners.remove(&owner);
    }
}

/// Hints of owners, which say of blocks that they are never read.
impl Ranking {
    pub(super) fn takes_hint(&self, most: u32) -> Option<bool> {
        self.rank.uses_hints().then_some(self.runs < most)
    }

    /// A reader will read these blocks; none if that ends a list. The owners whose blocks are to
    /// be judged anew.
    pub(super) fn hint(
        &mut self,
        owner: ReaderId,
        extent: Extent,
        more: bool,
        has_room: bool,
    ) -> Vec<ReaderId> {
        if extent.count > 0 {
            if !self.open.contains(&owner) {
                self.open.push(owner);
            }
            if has_room {
                self.owners.entry(owner).or_default();
                self.change_hints(owner, |set| set.add(extent.first, extent.count));
            }
        }
        if more {
            return Vec::new();
        }
        let open = core::mem::take(&mut self.open);
        for owner in &open {
            self.change_hints(*owner, |set| set.end(has_room));
        }
        open
    }

    /// An owner's file has another content, or is closed.
    pub(super) fn forget_hints(&mut self, owner: ReaderId) {
        self.change_hints(owner, Announced::clear);
    }

    fn change_hints<R>(
        &mut self,
        owner: ReaderId,
        change: impl FnOnce(&mut Announced) -> R,
    ) -> Option<R> {
        let set = &mut self.owners.get_mut(&owner)?.announced;
        let before = set.len();
        let changed = change(set);
        self.runs = self.runs + set.len() - before;
        Some(changed)
    }
}

#[cfg(test)]
impl Ranking {
    /// Whether a ranked stream of a file has this block ahead of its reader.
    pub(super) fn has(&self, file: FileId, block: Block) -> bool {
        let has_it = |(id, owner): (&ReaderId, &Owner)| {
            owner.streams.iter().any(|stream| {
                let start = stream.ahead.start;
                let place = |rank| (rank, StreamId { owner: *id, start });
                let is_ranked = stream
                    .rank
                    .is_some_and(|rank| self.ranked.contains(&place(rank)));
                is_ranked && stream.extent(file, u64::MAX).contains(block) && owner.file == file
            })
        };
        self.owners.iter().any(has_it)
    }
}

/// Ranks a stream by its present state, or ranks it no more.
fn place(
    rank: &dyn Rank,
    ranked: &mut BTreeSet<(u64, StreamId)>,
    owner: ReaderId,
    cpu: Nanos,
    stream: &mut Stream,
) {
    let start = stream.ahead.start;
    let id = StreamId { owner, start };
    let blocks = stream.arrived();
    let facts = PrefetchStream {
        id,
        blocks,
        used: stream.ahead.used,
        cpu: cpu.since(stream.used_cpu),
    };
    let rank = (blocks > 0).then(|| rank.rank(&facts));
    let before = core::mem::replace(&mut stream.rank, rank);
    if rank == before {
        return;
    }
    if let Some(rank) = before {
        let was_ranked = ranked.remove(&(rank, id));
        debug_assert!(was_ranked, "{id:?} was not ranked {rank}");
    }
    if let Some(rank) = rank {
        let is_new = ranked.insert((rank, id));
        debug_assert!(is_new, "{id:?} is ranked twice");
    }
}
