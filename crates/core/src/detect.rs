//! Detect: is this read part of a run, and which window should be fetched next?
//!
//! Called by the engine in two cases only (Wu 2010, section 4.1): a block wanted is missing, or the block wanted carries
//! the lookahead mark; it is asked once the device has a slot, perhaps at once. A plain hit never gets here, except for
//! methods that ask to see every read. One detector belongs to one open file. It answers with windows:
//!
//! ```text
//!  start                    mark at start + size - async_size
//!    |------------------------#===================|
//!    |                        |<--- async_size -->|
//!    |<------------------ size ------------------>|
//! ```
//!
//! The reader that reaches the mark triggers the next window while `async_size` blocks are still
//! ahead of it. A reader that goes backward comes to a window from its end; the mark is as far from
//! the start then. How large a window may get is not decided here: [`Ahead::limit`] comes from the
//! depth stage. Nor is memory: the engine may cut a window, and returns the part it issued.

pub mod ondemand;

pub use crate::direction::Direction;
pub use crate::window::{Stride, Window};

use alloc::boxed::Box;

use crate::spec::Method;
use crate::units::{Block, Extent, FileId};

/// The detect methods. One entry a method.
pub static LIST: &[Method<Box<dyn Detect>>] = &[ondemand::METHOD];

/// Why the detector is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The block is neither resident nor in flight.
    Miss,
    /// The block, resident or in flight, carried the lookahead mark.
    Mark,
}

/// The access that made the engine ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Access {
    /// The block wanted now.
    pub block: Block,
    /// Blocks of the same read before it: taken as plain hits, or answered already.
    pub head: u32,
    /// Blocks still wanted from there on, `block` included.
    pub count: u32,
    /// The block this open file touched last before the application's read began. Not one of that
    /// read's own: a random read whose first half is cached must not look sequential.
    pub previous: Option<Block>,
}

impl Access {
    /// A read of `count` blocks from `block` on, none of which was answered, by an open file that touched nothing.
    #[must_use]
    pub fn new(block: Block, count: u32) -> Self {
        Self {
            block,
            head: 0,
            count,
            previous: None,
        }
    }

    /// The same, with so many blocks of the read before it.
    #[must_use]
    pub fn with_head(self, head: u32) -> Self {
        Self { head, ..self }
    }

    /// The same, by an open file that touched this block last.
    #[must_use]
    pub fn with_previous(self, previous: Option<Block>) -> Self {
        Self { previous, ..self }
    }

    /// The blocks still wanted, of the file that is read.
    pub(crate) fn extent(&self, file: FileId) -> Extent {
        Extent::new(file, self.block, self.count)
    }

    /// The same read, seen from a later block of it.
    #[must_use]
    pub(crate) fn at(&self, block: Block) -> Self {
        let passed = block.0.saturating_sub(self.block.0);
        Self {
            block,
            head: self.head.saturating_add(passed),
            count: self.count.saturating_sub(passed),
            ..*self
        }
    }

    /// The same read, seen from its first block.
    #[must_use]
    pub(crate) fn begin(&self) -> Self {
        Self {
            block: Block(self.block.0.saturating_sub(self.head)),
            head: 0,
            count: self.count.saturating_add(self.head),
            ..*self
        }
    }

    /// Whether the access continues the one before on this open file, or begins the file.
    #[must_use]
    pub fn is_sequential(&self) -> bool {
        match self.previous {
            None => self.block == Block(0),
            Some(previous) => {
                self.block == previous || Some(self.block.0) == previous.0.checked_add(1)
            }
        }
    }
}

/// The view of a detector beside its own state.
///
/// # Examples
/// A stand-in for tests of a detector: nothing is cached.
///
/// ```
/// use forerun_core::Block;
/// use forerun_core::detect::Ahead;
///
/// struct Empty;
///
/// impl Ahead for Empty {
///     fn limit(&self) -> u32 {
///         32
///     }
///     fn cached(&self, _: Block) -> bool {
///         false
///     }
///     fn unread(&self, _: Block) -> bool {
///         false
///     }
/// }
///
/// assert_eq!(Empty.room(), u32::MAX);
/// ```
pub trait Ahead {
    /// The longest window the depth stage and the memory allow, in blocks; at least 1.
    fn limit(&self) -> u32;
    /// Whether a block is resident or in flight.
    fn cached(&self, block: Block) -> bool;
    /// Whether a block was fetched ahead and not read yet.
    fn unread(&self, block: Block) -> bool;
    /// Blocks that the device could transfer instead of going so many blocks away: a gap that is
    /// shorter is cheaper to read than to leave out.
    fn switch(&self, _distance: u32) -> u32 {
        0
    }
    /// Requests on which the device works at once.
    fn servers(&self) -> u32 {
        1
    }
    /// Requests of one stream on which the device works at once.
    fn servers_a_stream(&self) -> u32 {
        1
    }
    /// Blocks ahead that the memory can take now. A window that is read from its end must not be
    /// longer: it would lose the part that its reader comes to first.
    fn room(&self) -> u32 {
        u32::MAX
    }
    /// Whether the host's queue of requests for the device is congested: some kernels refuse windows then.
    fn is_congested(&self) -> bool {
        false
    }
}

/// Finds runs of one open file. The rules are checked by the suite `conformance` over every entry
/// of [`LIST`], except those that a method breaks as its source does.
///
/// The engine guarantees that it asks at missing and at marked blocks in the order in which the
/// reader comes to them, that the mark stands where [`Window`] says, and that a window is fetched
/// before the next question, as far as the memory allows.
///
/// # Examples
/// A miss that continues the reader's last access fetches one block more than was asked for.
///
/// ```
/// use forerun_core::Block;
/// use forerun_core::detect::{Access, Ahead, Cause, Detect, Window};
///
/// #[derive(Debug)]
/// struct OneMore;
///
/// impl Detect for OneMore {
///     fn trigger(&mut self, cause: Cause, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
///         let asked = access.count.min(ahead.limit().saturating_sub(1));
///         // Without blocks behind a mark there is no mark, and each window begins with a miss.
///         let window = Window::forward(access.block, asked + 1, 0);
///         (cause == Cause::Miss && access.is_sequential()).then_some(window)
///     }
/// }
/// # struct Empty;
/// # impl Ahead for Empty {
/// #     fn limit(&self) -> u32 { 32 }
/// #     fn cached(&self, _: Block) -> bool { false }
/// #     fn unread(&self, _: Block) -> bool { false }
/// # }
///
/// let read = Access::new(Block(8), 2).with_previous(Some(Block(7)));
/// let window = OneMore.trigger(Cause::Miss, &read, &Empty);
/// assert_eq!(window.map(|w| (w.start, w.size)), Some((Block(8), 3)));
/// ```
pub trait Detect: core::fmt::Debug + Send {
    /// Whether every read must be shown to [`Detect::read`]: the hit path is then closed. It MUST
    /// always be the same.
    fn sees_every_read(&self) -> bool {
        false
    }

    /// Whether [`Detect::read`] is asked at each block when the reader comes to it, not only as a read begins; a
    /// block may be shown more than once in a row. Only where every read is seen, and always the same.
    fn sees_every_block(&self) -> bool {
        false
    }

    /// A read begins (only called if [`Detect::sees_every_read`]); again, after a window, for one
    /// more. The window is as [`Detect::trigger`] says.
    fn read(&mut self, _access: &Access, _ahead: &dyn Ahead) -> Option<Window> {
        None
    }

    /// A trigger fired. The window, if there is one,
    ///
    /// - MUST NOT fetch more than [`Ahead::limit`], nor may `async_size` be longer than `size`;
    /// - MUST NOT begin before the block wanted, and MUST reach past it; one that goes backward
    ///   MUST NOT end behind the blocks wanted, and MUST begin before them or at the one wanted;
    /// - MUST leave nothing out but the gaps of a [`Stride`]: between the blocks wanted and its
    ///   start (its end, backward) lie only blocks that are cached or were in a window before. It
    ///   need not hold the block wanted: the engine fetches that in any case.
    ///
    /// Equal histories MUST give equal windows. The content of the cache is asked, not remembered:
    /// any block may have been given up since.
    fn trigger(&mut self, cause: Cause, access: &Access, ahead: &dyn Ahead) -> Option<Window>;

    /// The memory allowed only the blocks before `end` of the last window. The next window MUST NOT
    /// begin behind `end`, because blocks cut off are not fetched.
    fn cut(&mut self, _end: Block) {}

    /// The last window was [shaped](crate::shape): it ends before `end`, which may be later than
    /// was decided. The next window MUST NOT begin behind `end`.
    fn shaped(&mut self, end: Block) {
        self.cut(end);
    }

    /// Whether a miss at this block means that a block fetched ahead was lost. It MUST NOT hold for
    /// a block that neither was in a window, or was cut off, nor was cached when the method looked.
    fn inside_window(&self, _block: Block) -> bool {
        false
    }
}

/// Size of a stream's first window for a request of `count` blocks: rounded up to a power of two,
/// times 4 up to a 32nd of the limit, times 2 up to a quarter, else the limit (Wu 2010, section
/// 4.3).
#[must_use]
pub fn initial_size(count: u32, limit: u32) -> u32 {
    let rounded = count.checked_next_power_of_two().unwrap_or(limit);
    if rounded <= limit / 32 {
        rounded * 4
    } else if rounded <= limit / 4 {
        rounded * 2
    } else {
        limit
    }
}

/// Size of the window after one of `size` blocks: times 4 below a 16th of the limit, else times 2.
#[must_use]
pub fn next_size(size: u32, limit: u32) -> u32 {
    let grown = if size < limit / 16 {
        size.saturating_mul(4)
    } else {
        size.saturating_mul(2)
    };
    grown.clamp(1, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_windows_follow_the_request() {
        assert_eq!(
            [1, 2, 8, 9, 100].map(|n| initial_size(n, 32)),
            [4, 4, 16, 32, 32]
        );
    }

    #[test]
    fn windows_grow_fourfold_while_tiny_then_double() {
        assert_eq!(
            [1, 2, 4, 16, 32].map(|n| next_size(n, 32)),
            [4, 4, 8, 32, 32]
        );
    }
}
