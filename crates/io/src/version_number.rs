//! The number of a file's version and the size in it, for readers without a lock.
//!
//! Problem: a reader looks at both one after the other, and a new version may begin in between. A hit must not
//! take the new size for the old blocks: behind their old end is no byte of the file.
//!
//! Mechanism: a sequence lock (`seqcount_t` of Linux), with the blocks between the two steps of its writer:
//!
//! ```text
//! reader                               writer (the holder of the engine's lock)
//!   number even?           (Acquire)     number + 1: odd
//!   size                   (Acquire)     size                       (Release)
//!   copy blocks                          drop the old blocks
//!   number the same?       (Acquire)     number + 1: even
//! ```
//!
//! A reader that saw the new size sees the odd number, or a later one, when it compares.
//!
//! Compiled a second time by `tests/interleavings`, which tries this in every order.

use crate::sync::{AtomicU64, Ordering};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct VersionNumber {
    /// Twice the number of changes so far; odd while one is being made, from before the first
    /// block of the old version goes until after the last one went.
    count: AtomicU64,
    bytes: AtomicU64,
}

impl VersionNumber {
    /// The first version of a file.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            count: AtomicU64::new(0),
            bytes: AtomicU64::new(bytes),
        }
    }

    /// The number of this version: all bytes of one read belong to one number, which is even.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// The number of this version with its size; none while a change is made.
    pub(crate) fn at_rest(&self) -> Option<(u64, u64)> {
        let (count, bytes) = (self.count(), self.bytes());
        (count.is_multiple_of(2) && self.count() == count).then_some((count, bytes))
    }

    /// A new version begins; blocks of the old one are still there.
    pub(crate) fn begin(&self, bytes: u64) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.bytes.store(bytes, Ordering::Release);
    }

    /// The blocks of the old version are gone.
    pub(crate) fn begun(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}
