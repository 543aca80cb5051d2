//! Deferred inputs: a queue beside the engine's lock, handed in before the next input.
//!
//! Readers put touches and releases in without the lock, and the lock's holder takes them out.
//! One thing cannot lie there: a release while a read waits for memory or an announced read is not
//! over before it, because perhaps no other input comes. So the lock holder says at the end whether
//! one is wanted, and looks once more:
//!
//! ```text
//! releasing                          leaving the lock
//!   queue the release                  wanted := whether the engine wants one
//!   is it wanted? take the lock        is something queued? hand it in, again
//! ```
//!
//! Whichever is second finds the other's change, since both pass the queue's own lock.
//!
//! Compiled a second time by `tests/interleavings`, which tries this in every order.

use std::mem;

use forerun_core::{Block, Input, ReadId, ReaderId};

use crate::sync::{AtomicBool, Mutex, Ordering};

/// Touches and releases queued before a reader takes the lock for them alone: bounds how long a
/// block's first touch goes unnoticed, and their memory, here and in the list they are taken to. A
/// sixty-fourth of an uncontended lock is a nanosecond or two, on a copy of hundreds.
const LATER_MAX: usize = 64;

/// An input that was queued without the engine's lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeferredInput {
    Touch {
        reader: ReaderId,
        first: Block,
        count: u32,
    },
    Release(ReadId),
}

impl From<DeferredInput> for Input {
    fn from(later: DeferredInput) -> Self {
        match later {
            DeferredInput::Touch {
                reader,
                first,
                count,
            } => Input::Touch {
                reader,
                first,
                count,
            },
            DeferredInput::Release(read) => Input::Release { read },
        }
    }
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct DeferredInputs {
    later: Mutex<Vec<DeferredInput>>,
    /// Whether releases are wanted at once, as of the last time the lock was left.
    wanted: AtomicBool,
}

impl DeferredInputs {
    /// Puts something in. If this answers true, the caller takes the lock and hands it in.
    #[must_use]
    pub(crate) fn queue(&self, later: DeferredInput) -> bool {
        let queued = {
            let mut queue = self.later.lock();
            queue.push(later);
            queue.len()
        };
        let awaited =
            matches!(later, DeferredInput::Release(_)) && self.wanted.load(Ordering::SeqCst);
        awaited || queued >= LATER_MAX
    }

    /// Takes everything out, in order, in exchange for an empty list.
    pub(crate) fn take(&self, list: &mut Vec<DeferredInput>) {
        mem::swap(&mut *self.later.lock(), list);
    }

    /// Tells releasing readers whether releases are wanted at once. If this answers true, the caller
    /// hands in the queue before it leaves the lock: an input may have come before it could be told.
    #[must_use]
    pub(crate) fn tell(&self, wanted: bool) -> bool {
        self.wanted.store(wanted, Ordering::SeqCst);
        wanted && !self.later.lock().is_empty()
    }
}
