//! The prefetch cache: blocks fetched ahead and not accessed, apart from the blocks that were (Li
//! and Shen 2005, section 3).
//!
//! The methods differ in one thing, the order in which unread blocks go. The rest stands here once.
//!
//! ```text
//!             of a stream: in no queue      of none any more: abandoned, oldest first
//!                       |       ^                |           |
//!  arrive --------------+       +--- adopted ----+           +--> the first victims
//!                       +-- reader closed, skipped it, or has too many streams
//!  first access: to the ordinary cache, a two-list LRU
//! ```
//!
//! A frame is needed: abandoned blocks go first; then, while the prefetch cache is above its
//! [part] of the memory, its first block in the order; else one of the ordinary
//! cache; if that has none, the prefetch cache again. Example: 400 blocks, a part of 100. Of 110
//! unread blocks 10 go; then blocks that were read go. The paper's [rules](Rules) differ.
//!
//! An unread block stands in the queue of abandoned ones if it is flagged `ACTIVE`, is in the ordinary cache with
//! `REFERENCED` alone, and is a stream's otherwise; both flags mean that a stream has it again. A queue
//! gives up at the front only, so that and an access show when the block comes there. Design note 0009.

mod announced;
mod arrivals;
mod history;
mod part;
mod ranking;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use forerun_core::reclaim::lru::TwoList;
use forerun_core::reclaim::{Cache, Event, Queue, Reclaim, StreamId, Victim};
use forerun_core::spec::{Param, Values};
use forerun_core::table::{Frame, flag};
use forerun_core::{Block, Extent, FileId, Nanos, ReaderId};

use self::arrivals::Arrivals;
use self::history::History;
use self::part::Part;
use self::ranking::Ranking;

/// A run of blocks in the prefetch cache, ahead of its reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefetchStream {
    /// Its reader, and where it began.
    pub id: StreamId,
    /// Blocks from the next one its reader comes to up to its last one in the prefetch cache. At
    /// most so many are there: some may be in flight, others may have been accessed by another
    /// reader.
    pub blocks: u32,
    /// When its reader accessed it last.
    pub used: Nanos,
    /// Processor time that its owner is known to have used since then.
    pub cpu: Nanos,
}

/// Ranks the streams of a prefetch cache: the highest one loses its last block.
pub trait Rank: core::fmt::Debug + Send {
    /// Where a stream stands; asked whenever one of its values has changed. Time goes on without
    /// asking, so a rank must not depend on it.
    fn rank(&self, stream: &PrefetchStream) -> u64;
    /// Whether ranks depend on [`PrefetchStream::cpu`]. Streams of an owner whose time is told are
    /// ranked anew.
    fn uses_cpu_time(&self) -> bool {
        false
    }
    /// Whether blocks that their owner never reads, by the hints it gave, are of no stream, so that
    /// they go first.
    fn uses_hints(&self) -> bool {
        false
    }
}

/// Where our prefetch cache and that of Li and Shen 2005, sections 3.1 to 3.3, differ. The defaults are ours; theirs
/// is `reclaims=1,ended_first=0,history_percent=40,step_percent=2`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Blocks beyond the part move to the end of the ordinary cache that goes last, not read. Else they are given up:
    /// the paper does not say to which end they move, and that is the other one.
    reclaims: bool,
    /// Abandoned blocks go first, also while the prefetch cache is below its part.
    is_ended_first: bool,
    /// Entries of the eviction history, for a hundred frames.
    history_percent: u32,
    /// The part of the memory, as it begins.
    part: Part,
}

impl Rules {
    /// The parameters of every method with a prefetch cache.
    pub const PARAMS: &'static [Param] = &[
        Param {
            name: "reclaims",
            summary: "1: blocks beyond the part move, unread, to the end of the ordinary cache that goes last \
                      (Li and Shen 2005); 0: they are given up",
            default: 0,
            min: 0,
            max: 1,
        },
        Param {
            name: "ended_first",
            summary: "1: blocks without a reader go first; 0: only while the part is exceeded (Li and Shen 2005)",
            default: 1,
            min: 0,
            max: 1,
        },
        Param {
            name: "history_percent",
            summary: "entries of the eviction history for 100 frames; 8 keep all bookkeeping at 0.4 %, 40 are Li and \
                      Shen 2005",
            default: 8,
            min: 0,
            max: 100,
        },
        part::PERCENT,
        part::STEP,
        part::MARGIN,
        part::EPOCH,
    ];

    /// By their parameters.
    #[must_use]
    pub fn of(values: &Values<'_>) -> Self {
        Self {
            reclaims: values.get("reclaims") == 1,
            is_ended_first: values.get("ended_first") == 1,
            history_percent: values.get("history_percent") as u32,
            part: Part::of(values),
        }
    }
}

/// The method that takes the last block of the stream of the highest rank.
#[must_use]
pub fn ranked(rank: impl Rank + 'static, rules: Rules) -> Box<dyn Reclaim> {
    let ranking = Ranking::new(Box::new(rank));
    Box::new(PrefetchCache::of(Order::Ranked(ranking), rules))
}

/// The method that takes the block that arrived first, whatever has become of its stream.
#[must_use]
pub fn by_arrival(rules: Rules) -> Box<dyn Reclaim> {
    let arrivals = Arrivals::default();
    Box::new(PrefetchCache::of(Order::Arrival(arrivals), rules))
}

/// An unread block with one of these is no stream's.
const IN_A_QUEUE: u8 = flag::ACTIVE | flag::REFERENCED;

/// In which order unread blocks are given up.
#[derive(Debug)]
enum Order {
    /// From the end of a stream, by its rank; abandoned ones before.
    Ranked(Ranking),
    /// In the order of their arrival.
    Arrival(Arrivals),
}

#[derive(Debug)]
struct PrefetchCache {
    order: Order,
    rules: Rules,
    part: Part,
    ordinary: TwoList,
    /// Kept if the part follows misses.
    history: Option<History>,
    /// Blocks of streams; of all readers, where the order is that of arrival.
    of_streams: u32,
    abandoned: Queue,
}

/// Whether the block of a frame of the method is unread, and a stream's.
fn is_of_stream(cache: &Cache<'_>, frame: Frame) -> bool {
    const STATE: u8 = flag::UNREAD | flag::FILLING | flag::VACANT | IN_A_QUEUE;
    cache.flags(frame) & STATE == flag::UNREAD && !cache.is_held(frame)
}

/// Whether an unread block with these flags is in the ordinary cache.
fn is_reclaimed(flags: u8) -> bool {
    flags & (flag::UNREAD | IN_A_QUEUE) == flag::UNREAD | flag::REFERENCED
}

/// The frame of a resident block of the prefetch cache.
fn unread(cache: &Cache<'_>, file: FileId, block: Block) -> Option<Frame> {
    const STATE: u8 = flag::UNREAD | flag::FILLING;
    let found = cache.find(file, block)?;
    (found.flags & STATE == flag::UNREAD && !is_reclaimed(found.flags)).then_some(found.frame)
}

impl PrefetchCache {
    fn of(order: Order, rules: Rules) -> Self {
        Self {
            order,
            part: rules.part,
            rules,
            ordinary: TwoList::default(),
            history: None,
            of_streams: 0,
            abandoned: Queue::default(),
        }
    }

    /// A block of a stream leaves the prefetch cache. With the last one its order of arrival is
    /// over.
    fn leave(&mut self) {
        self.of_streams -= 1;
        if let Order::Arrival(arrivals) = &mut self.order
            && self.of_streams == 0
        {
            *arrivals = Arrivals::default();
        }
    }

    /// An unread block is no stream's any more.
    fn abandon(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        if cache.is_held(frame) || is_reclaimed(cache.flags(frame)) {
            return;
        }
        if is_of_stream(cache, frame) {
            self.of_streams -= 1;
            cache.set(frame, flag::ACTIVE);
            cache.push(&mut self.abandoned, frame);
        }
        cache.clear(frame, flag::REFERENCED);
    }

    /// Unread blocks that a stream of this owner has ahead of its reader are its again, if they
    /// were abandoned; `others` go first from now on.
    fn judge(&mut self, cache: &mut Cache<'_>, owner: ReaderId, extent: Extent, others: bool) {
        for block in extent.blocks() {
            let frame = unread(cache, extent.file, block);
            let (Some(frame), Order::Ranked(ranking)) = (frame, &mut self.order) else {
                continue;
            };
            let is_ahead = ranking.arrive(owner, extent.file, block);
            if is_ahead && cache.flags(frame) & flag::ACTIVE != 0 {
                cache.set(frame, flag::REFERENCED);
            } else if !is_ahead && others {
                self.abandon(cache, frame);
            }
        }
    }

    /// The first abandoned block that no stream has again and that can go.
    fn first_abandoned(&mut self, cache: &mut Cache<'_>) -> Option<Frame> {
        for _ in 0..self.abandoned.len() {
            let frame = cache.pop(&mut self.abandoned)?;
            let flags = cache.flags(frame);
            if flags & flag::UNREAD == 0 {
                self.insert_ordinary(cache, frame);
            } else if flags & flag::REFERENCED != 0 {
                cache.clear(frame, flag::ACTIVE | flag::REFERENCED);
                self.of_streams += 1;
            } else if flags & flag::PINNED != 0 {
                cache.push(&mut self.abandoned, frame);
            } else {
                return Some(frame);
            }
        }
        None
    }

    /// The first block of a stream in the order.
    fn first_of_streams(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        let victim = match &mut self.order {
            Order::Arrival(arrivals) => Victim::Frame(arrivals.take(cache)?),
            Order::Ranked(ranking) => ranking.take(|file, block| {
                let found = cache.find(file, block)?;
                let can_go = found.flags & flag::PINNED == 0 && is_of_stream(cache, found.frame);
                can_go.then_some(found.frame)
            })?,
        };
        self.leave();
        Some(victim)
    }

    /// The first block of the prefetch cache.
    fn first_unread(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        let abandoned = self.first_abandoned(cache).map(Victim::Frame);
        abandoned.or_else(|| self.first_of_streams(cache))
    }

    fn first(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        if self.rules.is_ended_first
            && !self.rules.reclaims
            && let Some(frame) = self.first_abandoned(cache)
        {
            return Some(Victim::Frame(frame));
        }
        let percent = self.part.percent(cache.now);
        let target = u64::from(cache.frames) * u64::from(percent) / 100;
        while u64::from(self.of_streams + self.abandoned.len()) > target {
            let Some(victim) = self.first_unread(cache) else {
                break;
            };
            if !self.rules.reclaims {
                return Some(victim);
            }
            self.reclaim(cache, victim.frame());
        }
        if self.rules.is_ended_first
            && let Some(frame) = self.first_abandoned(cache)
        {
            return Some(Victim::Frame(frame));
        }
        let ordinary = self.ordinary.victim(cache);
        ordinary.or_else(|| self.first_unread(cache))
    }

    /// An unread block moves to the ordinary cache.
    fn reclaim(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        cache.clear(frame, flag::ACTIVE);
        cache.set(frame, flag::REFERENCED);
        self.insert_ordinary(cache, frame);
    }

    /// A block is the ordinary cache's from now on.
    fn insert_ordinary(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        let owner = None;
        self.ordinary.hear(cache, Event::Inserted { frame, owner });
    }

    /// A block is resident from now on.
    fn insert(&mut self, cache: &mut Cache<'_>, frame: Frame, owner: Option<ReaderId>) {
        if cache.flags(frame) & flag::UNREAD == 0 {
            return self.insert_ordinary(cache, frame);
        }
        cache.clear(frame, IN_A_QUEUE);
        self.of_streams += 1;
        let (file, block) = cache.block(frame);
        let is_kept = match &mut self.order {
            Order::Arrival(arrivals) => {
                arrivals.push(cache, file, block);
                true
            }
            Order::Ranked(ranking) => owner.is_some_and(|owner| ranking.arrive(owner, file, block)),
        };
        if !is_kept {
            self.abandon(cache, frame);
        }
    }
}

impl Reclaim for PrefetchCache {
    fn begin(&mut self, frames: u32) {
        let entries = u64::from(frames) * u64::from(self.rules.history_percent) / 100;
        let follows = self.part.follows_misses();
        self.history = follows.then(|| History::new(entries));
    }

    fn uses_cpu_time(&self) -> bool {
        matches!(&self.order, Order::Ranked(ranking) if ranking.uses_cpu_time())
    }

    fn takes_hint(&self, most: u32) -> Option<bool> {
        match &self.order {
            Order::Ranked(ranking) => ranking.takes_hint(most),
            Order::Arrival(_) => None,
        }
    }

    fn hear(&mut self, cache: &mut Cache<'_>, event: Event<'_>) {
        match event {
            Event::Inserted { frame, owner } => self.insert(cache, frame, owner),
            Event::Touched(_) => self.ordinary.hear(cache, event),
            Event::Abandoned(frame) => {
                if matches!(self.order, Order::Ranked(_)) {
                    self.abandon(cache, frame);
                }
            }
            // It stands in a queue.
            Event::Used(frame) if cache.flags(frame) & IN_A_QUEUE != 0 => {
                cache.clear(frame, IN_A_QUEUE);
            }
            Event::Used(frame) => {
                self.leave();
                self.insert_ordinary(cache, frame);
            }
            Event::Missed(extent) => {
                let Some(history) = &mut self.history else {
                    return;
                };
                for block in extent.blocks() {
                    let is_missing = cache.find(extent.file, block).is_none();
                    if is_missing && history.take(extent.file, block) {
                        self.part.missed();
                    }
                }
            }
            _ => self.hear_of_streams(cache, event),
        }
    }

    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        let victim = self.first(cache)?;
        if let Some(history) = &mut self.history {
            let frame = victim.frame();
            let (file, block) = cache.block(frame);
            history.add(file, block);
        }
        Some(victim)
    }

    fn dropped(&mut self, cache: &mut Cache<'_>, frame: Frame) -> bool {
        let is_of_stream = is_of_stream(cache, frame);
        if is_of_stream {
            self.leave();
        }
        !is_of_stream
    }

    fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
        cache.sweep(&mut self.abandoned, |frame, _| gone(frame));
        self.ordinary.sweep(cache, gone);
    }

    fn len(&self) -> u32 {
        self.of_streams + self.abandoned.len() + self.ordinary.len()
    }

    fn bytes(&self) -> u64 {
        let order = match &self.order {
            Order::Ranked(ranking) => ranking.bytes(),
            Order::Arrival(arrivals) => arrivals.bytes(),
        };
        order + self.history.as_ref().map_or(0, History::bytes)
    }
}

impl PrefetchCache {
    /// Events of readers, for an order of streams.
    fn hear_of_streams(&mut self, cache: &mut Cache<'_>, event: Event<'_>) {
        let Order::Ranked(ranking) = &mut self.order else {
            return;
        };
        match event {
            Event::Moved {
                owner,
                file,
                streams,
            } => {
                for left in ranking.follow(owner, file, streams) {
                    for block in left.blocks() {
                        if let Some(frame) = unread(cache, file, block) {
                            self.abandon(cache, frame);
                        }
                    }
                }
            }
            Event::Read {
                owner,
                extent,
                stream,
            } if ranking.read(owner, extent, stream) => self.settle(cache, owner),
            Event::Window { owner, extent } => self.judge(cache, owner, extent, false),
            Event::CpuTime { owner, time } => ranking.owner_has_used(owner, time),
            Event::Hint {
                owner,
                extent,
                more,
                has_room,
            } => {
                for owner in ranking.hint(owner, extent, more, has_room) {
                    self.settle(cache, owner);
                }
            }
            Event::Changed(owner) => ranking.forget_hints(owner),
            Event::Closed(owner) => ranking.close(owner),
            // Others say nothing of streams.
            _ => {}
        }
    }

    /// Blocks ahead of a reader are judged anew, by its hints.
    fn settle(&mut self, cache: &mut Cache<'_>, owner: ReaderId) {
        let Order::Ranked(ranking) = &self.order else {
            return;
        };
        for extent in ranking.ahead(owner) {
            self.judge(cache, owner, extent, true);
        }
    }
}
