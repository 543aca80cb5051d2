//! Reclaim: which block to give up when a frame is needed.
//!
//! Last stage of the pipeline. The engine tells a method of every block that became resident and
//! of every reported access, and asks it for victims. A method does not take frames back itself:
//! the engine removes the victim from the table, counts it and reuses its frame. Two kinds:
//!
//! ```text
//! one order    fetched ahead or read: every block stands in a queue of the method
//! split        prefetch cache: streams by rank ---- last block of a stream ----> victim
//!                  | first access                                                  ^
//!                  v                                                               |
//!              ordinary cache: the method's queues ---- a block at the front ------+
//! ```
//!
//! Queues are threaded through the table's links and give up blocks at the front only (design
//! note 0002). A block ahead of its reader stands in no queue: its stream and its position find it
//! (design note 0009).

pub mod exclusive;
pub mod lru;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use core::num::NonZeroU64;

use crate::memory::{Arrivals, Held};
use crate::spec::Method;
use crate::table::{Frame, Links, NO_LINK, Table, flag};
use crate::units::{Block, FileId, Nanos, ReaderId};

/// The reclaim methods. One entry a method.
pub static LIST: &[Method<Box<dyn Reclaim>>] = &[lru::METHOD, exclusive::METHOD];

/// A stream: its reader, and the block where the run began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId {
    /// Its reader.
    pub owner: ReaderId,
    /// Where it began.
    pub start: Block,
}

/// A run of blocks in the prefetch cache, ahead of its reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefetchStream {
    /// Its reader, and where it began.
    pub id: StreamId,
    /// The next block its reader comes to.
    pub position: Block,
    /// Blocks from there to its last one in the prefetch cache. At most so many are there: some
    /// may be in flight, others may have been accessed by another reader.
    pub blocks: u32,
    /// When its reader accessed it last.
    pub used: Nanos,
    /// Processor time that its owner is known to have used since then.
    pub cpu: Nanos,
}

/// A part of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Partition {
    /// Blocks in it; those in flight belong to none.
    pub blocks: u32,
    /// How many there should be.
    pub target: u32,
}

/// The cache, as a reclaim method sees it.
#[derive(Debug)]
pub struct Cache<'a> {
    pub(crate) table: &'a Table,
    pub(crate) links: &'a mut Links,
    pub(crate) ranked: &'a BTreeSet<(NonZeroU64, StreamId)>,
    pub(crate) arrivals: &'a mut Arrivals,
    pub(crate) held: &'a Held,
    /// Blocks fetched ahead and not accessed, if the method splits the memory; else empty.
    pub prefetched: Partition,
    /// All other blocks: those in the method's queues.
    pub ordinary: Partition,
    /// The time of the input that needs the frame.
    pub now: Nanos,
}

impl Cache<'_> {
    /// The stream of the highest rank among those with blocks in the prefetch cache.
    #[must_use]
    pub fn highest(&self) -> Option<StreamId> {
        self.ranked.last().map(|(_, id)| *id)
    }

    /// Takes the block of the prefetch cache that arrived first, where it is kept in the order of
    /// [arrival](PrefetchOrder::Arrival).
    pub fn take_oldest(&mut self) -> Option<Frame> {
        self.arrivals.take(self.table, self.held)
    }

    /// Appends a frame to a queue. It must be one that the method was given with
    /// [`inserted`](Reclaim::inserted) and that stands in none of its queues.
    pub fn push(&mut self, queue: &mut Queue, frame: Frame) {
        queue.push(self.links, frame);
    }

    /// Takes the frame at the front of a queue.
    pub fn pop(&mut self, queue: &mut Queue) -> Option<Frame> {
        queue.pop(self.links)
    }

    /// Removes the frames for which `gone` holds, given each frame with its flags, and keeps the
    /// order of the others.
    pub fn sweep(&mut self, queue: &mut Queue, mut gone: impl FnMut(Frame, u8) -> bool) {
        let table = self.table;
        queue.sweep(self.links, |frame| gone(frame, table.flags(frame)));
    }

    /// The [flags](flag) of a frame.
    #[must_use]
    pub fn flags(&self, frame: Frame) -> u8 {
        self.table.flags(frame)
    }

    /// The block in a frame of the method's queues: for methods that remember blocks given up.
    #[must_use]
    pub fn block(&self, frame: Frame) -> (FileId, Block) {
        self.table.holds(frame)
    }

    /// Sets flags of a frame. Those outside [`METHOD_FLAGS`] belong to the engine and stay.
    pub fn set(&self, frame: Frame, flags: u8) {
        self.table.set(frame, flags & METHOD_FLAGS);
    }

    /// Clears flags of a frame. Those outside [`METHOD_FLAGS`] belong to the engine and stay.
    pub fn clear(&self, frame: Frame, flags: u8) {
        self.table.clear(frame, flags & METHOD_FLAGS);
    }
}

/// The flags that a reclaim method may set and clear: its own two, and the request for a report of
/// the next access.
pub const METHOD_FLAGS: u8 = flag::REFERENCED | flag::ACTIVE | flag::ARMED;

/// In which order blocks of the prefetch cache can be given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrefetchOrder {
    /// From the end of a stream, by [`Reclaim::rank`]; abandoned ones before.
    Ranked,
    /// In the order of their arrival, whatever has become of their streams.
    Arrival,
}

/// A block or stream to give up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// A block of the method's queues, which it has left, or the oldest of the prefetch cache.
    Frame(Frame),
    /// The last block of this stream in the prefetch cache. If the stream has none that could go,
    /// it is ranked no more, and the method is asked again.
    Last(StreamId),
}

/// Chooses victims.
///
/// # Examples
/// First in, first out over all blocks, in one queue. Pinned blocks go to its end.
///
/// ```
/// use forerun_core::reclaim::{Cache, Queue, Reclaim, Victim};
/// use forerun_core::spec::{Choice, Knows, Method, Spec};
/// use forerun_core::table::{Frame, flag};
/// use forerun_core::{Bytes, Engine, preset};
///
/// #[derive(Debug, Default)]
/// struct Oldest(Queue);
///
/// impl Reclaim for Oldest {
///     fn inserted(&mut self, cache: &mut Cache<'_>, frame: Frame) {
///         cache.push(&mut self.0, frame);
///     }
///     fn touched(&mut self, _: &mut Cache<'_>, _: Frame) {}
///     fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
///         for _ in 0..self.0.len() {
///             let frame = cache.pop(&mut self.0)?;
///             if cache.flags(frame) & flag::PINNED == 0 {
///                 return Some(Victim::Frame(frame));
///             }
///             cache.push(&mut self.0, frame);
///         }
///         None
///     }
///     fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
///         cache.sweep(&mut self.0, |frame, _| gone(frame));
///     }
///     fn len(&self) -> u32 {
///         self.0.len()
///     }
/// }
///
/// static OLDEST: Method<Box<dyn Reclaim>> = Method {
///     spec: Spec {
///         name: "oldest",
///         summary: "the block that arrived first goes first",
///         source: "example",
///         unfit: "blocks read again",
///         knows: Knows::Online,
///         params: &[],
///     },
///     build: |_| Box::new(Oldest::default()),
/// };
///
/// let mut settings = preset::default().settings(Bytes(1 << 20))?;
/// settings.reclaim = Choice::of(&OLDEST);
/// assert!(Engine::new(settings).is_ok());
/// # Ok::<(), forerun_core::settings::SettingsError>(())
/// ```
pub trait Reclaim: core::fmt::Debug + Send {
    /// The order of the prefetch cache. With one the memory is split ([`crate::split`] says where):
    /// the method has the ordinary cache in its queues, and hears of a block fetched ahead with its
    /// first access. `None`: one order for all blocks.
    fn prefetch_order(&self) -> Option<PrefetchOrder> {
        None
    }
    /// Where a stream stands among those of the prefetch cache; asked whenever one of its values
    /// has changed. Time goes on without asking, so a rank must not depend on it.
    fn rank(&self, _stream: &PrefetchStream) -> u64 {
        0
    }
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
    /// A resident block is the method's from now on. Its flags tell its state so far.
    fn inserted(&mut self, cache: &mut Cache<'_>, frame: Frame);
    /// An access to a resident block was reported. The flag `ARMED` asks for a report of the next
    /// one; without it there may be none. Where the memory is split it may come before `inserted`.
    fn touched(&mut self, cache: &mut Cache<'_>, frame: Frame);
    /// An unread block is not unread any more; [`Reclaim::touched`] may follow. Until then its flags
    /// `REFERENCED` and `ACTIVE` are the method's to use. Not called where the memory is split.
    fn first_access(&mut self, _cache: &mut Cache<'_>, _frame: Frame) {}
    /// The reader for whom an unread block was fetched has closed the file. Where the memory is
    /// split such blocks go first, without the method.
    fn abandoned(&mut self, _cache: &mut Cache<'_>, _frame: Frame) {}
    /// Whether a victim should go before one of so many frames is used that never was: its memory
    /// is in the processor's caches, that of the other has to be cleared first.
    fn has_spare(&self, _frames: u32) -> bool {
        false
    }
    /// Gives up one block, which must not be pinned. `None` if every block is pinned or there is
    /// none.
    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim>;
    /// Blocks for which `gone` holds leave the queues (their file changed).
    fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool);
    /// How many blocks stand in its queues, pinned ones included.
    fn len(&self) -> u32;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A first-in first-out queue of frames, threaded through the links.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            head: NO_LINK,
            tail: NO_LINK,
            len: 0,
        }
    }
}

impl Queue {
    /// Number of frames in it.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push(&mut self, links: &mut Links, frame: Frame) {
        links.set(frame, NO_LINK);
        if self.len == 0 {
            self.head = frame.0;
        } else {
            links.set(Frame(self.tail), frame.0);
        }
        self.tail = frame.0;
        self.len += 1;
    }

    pub(crate) fn pop(&mut self, links: &mut Links) -> Option<Frame> {
        if self.len == 0 {
            return None;
        }
        let frame = Frame(self.head);
        self.head = links.get(frame);
        self.len -= 1;
        Some(frame)
    }

    /// Drops the frames for which `gone` holds and keeps the order of the others.
    pub(crate) fn sweep(&mut self, links: &mut Links, mut gone: impl FnMut(Frame) -> bool) {
        for _ in 0..self.len {
            let Some(frame) = self.pop(links) else {
                debug_assert!(false, "a queue is shorter than its length");
                return;
            };
            if !gone(frame) {
                self.push(links, frame);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod stage {
    //! A cache for tests of single methods.
    use super::*;

    /// The blocks 0, 1, 2.. of a file can be made resident in the frames of the same numbers.
    pub(crate) struct Stage {
        pub(crate) table: Table,
        links: Links,
        pub(crate) ranked: BTreeSet<(NonZeroU64, StreamId)>,
        arrivals: Arrivals,
        held: Held,
        pub(crate) prefetched: Partition,
    }

    impl Stage {
        pub(crate) fn new(frames: u32) -> Self {
            Self {
                table: Table::new(frames),
                links: Links::new(frames),
                ranked: BTreeSet::new(),
                arrivals: Arrivals::default(),
                held: Held::default(),
                prefetched: Partition::default(),
            }
        }

        pub(crate) fn cache(&mut self) -> Cache<'_> {
            Cache {
                table: &self.table,
                links: &mut self.links,
                ranked: &self.ranked,
                arrivals: &mut self.arrivals,
                held: &self.held,
                prefetched: self.prefetched,
                ordinary: Partition::default(),
                now: Nanos(0),
            }
        }

        /// The frames given up until there is none.
        pub(crate) fn victims(&mut self, method: &mut dyn Reclaim) -> std::vec::Vec<u32> {
            let victims = core::iter::from_fn(|| match method.victim(&mut self.cache())? {
                Victim::Frame(frame) => Some(frame.0),
                Victim::Last(id) => panic!("{id:?}"),
            });
            victims.collect()
        }
    }
}
