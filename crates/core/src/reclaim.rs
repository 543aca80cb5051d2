//! Reclaim: which block to give up when a frame is needed.
//!
//! Last stage of the pipeline. The engine tells a method of every block that became resident and
//! of every reported access, and asks it for victims. A method does not take frames back itself:
//! the engine removes the victim from the table, counts it and reuses its frame.
//!
//! ```text
//! inserted, touched --> the method's order of all blocks --> victim
//! ```
//!
//! A method may look further: an [`Event`] tells of first accesses, misses, streams, windows,
//! hints and processor time, so that a crate outside can keep blocks fetched ahead apart and take
//! the last block of a stream ([`Victim::LastOf`]). The methods here have no use for them.
//!
//! Queues are threaded through the table's links and give up blocks at the front only (design
//! note 0002). A block ahead of its reader may stand in no queue: its stream and its position find
//! it (design note 0009).

pub mod exclusive;
pub mod lru;

use alloc::boxed::Box;

use crate::bits::Bits;
use crate::spec::Method;
pub use crate::stream::Streams;
use crate::table::{Found, Frame, Links, NO_LINK, Table, flag};
use crate::units::{Block, Extent, FileId, Nanos, ReaderId};

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

/// A run of blocks fetched ahead, forward, and its reader's place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StreamAhead {
    /// Where it began: a reader has one stream that began there.
    pub start: Block,
    /// The next block its reader comes to.
    pub position: u64,
    /// The first block that no window has covered.
    pub end: u64,
    /// When a window or an access used it last.
    pub used: Nanos,
}

/// A fact beside the accesses: for methods that keep blocks fetched ahead apart, or that decide by
/// their readers.
///
/// A reader's events come between its first one and [`Closed`](Self::Closed), after which another
/// may have its number.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A resident block is the method's from now on. Its flags tell its state so far.
    Inserted {
        /// Its frame.
        frame: Frame,
        /// The reader for whom it was fetched, if it was just then.
        owner: Option<ReaderId>,
    },
    /// An access to a resident block was reported. The flag `ARMED` asks for a report of the next
    /// one; without it there may be none.
    Touched(Frame),
    /// The reader for whom an unread block was fetched closes the file.
    Abandoned(Frame),
    /// The first access to a block fetched ahead, which is flagged `UNREAD` no more. A report by
    /// [`Touched`](Self::Touched) may follow.
    Used(Frame),
    /// A reader misses these blocks, as far as they are not resident.
    Missed(Extent),
    /// Streams of a reader began, moved, were cut or gave way.
    Moved {
        /// The reader.
        owner: ReaderId,
        /// Its file.
        file: FileId,
        /// All that it has from now on.
        streams: &'a Streams,
    },
    /// A reader came to these blocks; those that are resident are read.
    Read {
        /// The reader.
        owner: ReaderId,
        /// The blocks.
        extent: Extent,
        /// The start of their stream, if it is known and goes forward.
        stream: Option<Block>,
    },
    /// A window opens, and its missing blocks will be fetched.
    Window {
        /// Its reader.
        owner: ReaderId,
        /// Its blocks.
        extent: Extent,
    },
    /// The program behind a reader has used so much processor time; it may run backward.
    CpuTime {
        /// The reader.
        owner: ReaderId,
        /// Since it began.
        time: Nanos,
    },
    /// A hint, if the method [takes](Reclaim::takes_hint) any: these blocks will be read, or none
    /// where it only ends a list.
    Hint {
        /// The reader.
        owner: ReaderId,
        /// The blocks.
        extent: Extent,
        /// Whether the list goes on.
        more: bool,
        /// Whether there is room for it. Else it is not to be kept.
        has_room: bool,
    },
    /// A reader's file has another content.
    Changed(ReaderId),
    /// A reader is closed. It has no streams any more.
    Closed(ReaderId),
}

/// The cache, as a reclaim method sees it.
#[derive(Debug)]
pub struct Cache<'a> {
    pub(crate) table: &'a Table,
    pub(crate) links: &'a mut Links,
    pub(crate) held: &'a Bits,
    /// Frames for blocks: all but those that pay for bookkeeping.
    pub frames: u32,
    /// The time of the input that needs the frame.
    pub now: Nanos,
}

impl Cache<'_> {
    /// A block, if it is in the table: resident or in flight.
    #[must_use]
    pub fn find(&self, file: FileId, block: Block) -> Option<Found> {
        self.table.find(file, block)
    }

    /// Whether hints of reads keep a frame: it is no victim, and in no order.
    #[must_use]
    pub fn is_held(&self, frame: Frame) -> bool {
        self.held.has(frame.0)
    }

    /// Appends a frame to a queue. It must be one that the method was given with
    /// [`Inserted`](Event::Inserted) and that stands in none of its queues.
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

/// So many blocks are passed over for one victim at most, which takes some tens of microseconds: then the next
/// goes.
const SPARED_MAX: u32 = 4096;

/// The flags that a reclaim method may set and clear: its own two, and the request for a report of
/// the next access.
pub const METHOD_FLAGS: u8 = flag::REFERENCED | flag::ACTIVE | flag::ARMED;

/// A block to give up: resident, not pinned, and not the method's any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Victim {
    /// Any.
    Frame(Frame),
    /// The last block of this stream that is there: if the stream ends with it, it is shorter from
    /// then on.
    LastOf(StreamId, Frame),
}

impl Victim {
    /// The frame of the block.
    #[must_use]
    pub fn frame(self) -> Frame {
        let (Self::Frame(frame) | Self::LastOf(_, frame)) = self;
        frame
    }
}

/// Chooses victims.
///
/// # Examples
/// First in, first out over all blocks, in one queue. Pinned blocks go to its end.
///
/// ```
/// use forerun_core::reclaim::{Cache, Event, Queue, Reclaim, Victim};
/// use forerun_core::spec::{Choice, Knows, Method, Spec};
/// use forerun_core::table::{Frame, flag};
/// use forerun_core::{Bytes, Engine, preset};
///
/// #[derive(Debug, Default)]
/// struct Oldest(Queue);
///
/// impl Reclaim for Oldest {
///     fn hear(&mut self, cache: &mut Cache<'_>, event: Event<'_>) {
///         if let Event::Inserted { frame, .. } = event {
///             cache.push(&mut self.0, frame);
///         }
///     }
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
    /// The memory has so many frames. The first call, and the only one.
    fn begin(&mut self, _frames: u32) {}
    /// Whether it decides by [`Event::CpuTime`]: else no driver tells any.
    fn uses_cpu_time(&self) -> bool {
        false
    }
    /// Whether it keeps another hint where so many runs of blocks may be kept; `None` if it follows
    /// no hints.
    fn takes_hint(&self, _most: u32) -> Option<bool> {
        None
    }
    /// An event of blocks, streams or readers. Each method keeps the blocks that were
    /// [inserted](Event::Inserted); any other event may be ignored.
    fn hear(&mut self, cache: &mut Cache<'_>, event: Event<'_>);
    /// Whether a victim should go before one of so many frames is used that never was: its memory
    /// is in the processor's caches, that of the other has to be cleared first.
    fn has_spare(&self, _frames: u32) -> bool {
        false
    }
    /// Gives up one block, which must not be pinned. `None` if every block is pinned or there is
    /// none.
    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim>;
    /// The block of this frame is about to leave the table, and is no victim. Whether the frame
    /// stands in a queue: it is free after the next [`sweep`](Self::sweep) then, else at once.
    fn dropped(&mut self, _cache: &mut Cache<'_>, _frame: Frame) -> bool {
        true
    }
    /// Blocks for which `gone` holds leave the queues (their file changed).
    fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool);
    /// How many blocks are the method's, pinned ones included, and those that were dropped and are
    /// not swept.
    fn len(&self) -> u32;
    /// Bytes of its bookkeeping beside the queues, which are paid for out of the memory.
    fn bytes(&self) -> u64 {
        0
    }
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
pub(crate) use crate::conformance::stage;
