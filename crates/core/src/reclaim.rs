//! Reclaim: which block to give up when a frame is needed.
//!
//! Last stage of the pipeline. The engine tells a method of every block that became resident and
//! of every reported access, and asks it for victims. A method keeps its order in [`Queue`]s
//! threaded through the table's links. It does not take frames back itself: the engine removes
//! the victim from the table, counts it and reuses its frame.

pub mod exclusive;
pub mod lru;

use alloc::boxed::Box;

use crate::spec::Method;
use crate::table::{Frame, Links, NO_LINK, Table};

/// The reclaim methods. One entry a method.
pub static LIST: &[Method<Box<dyn Reclaim>>] = &[lru::METHOD, exclusive::METHOD];

/// The blocks and their links, as a reclaim method sees them.
#[derive(Debug)]
pub struct Blocks<'a> {
    pub(crate) table: &'a Table,
    pub(crate) links: &'a mut Links,
}

/// Decides what to give up.
pub trait Reclaim: core::fmt::Debug + Send {
    /// A block became resident: fetched ahead (`UNREAD`) or on demand.
    fn inserted(&mut self, blocks: &mut Blocks<'_>, frame: Frame);
    /// An access to a resident block was reported.
    fn touched(&mut self, blocks: &mut Blocks<'_>, frame: Frame);
    /// The reader for whom an unread block was fetched has closed the file.
    fn abandoned(&mut self, _blocks: &mut Blocks<'_>, _frame: Frame) {}
    /// Gives up one block: it leaves the method's order and is not pinned. `None` if every block
    /// is pinned or there is none.
    fn victim(&mut self, blocks: &mut Blocks<'_>) -> Option<Frame>;
    /// Blocks for which `gone` holds leave the order (their file changed).
    fn sweep(&mut self, blocks: &mut Blocks<'_>, gone: &dyn Fn(Frame) -> bool);
    /// How many blocks it holds in order.
    fn len(&self) -> u32;
    /// Whether it holds none.
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
            let Some(frame) = self.pop(links) else { return };
            if !gone(frame) {
                self.push(links, frame);
            }
        }
    }
}
