//! Memory for answers to reads, used again.
//!
//! A read takes one before it waits and gives it back when the kernel has the bytes, so there are
//! as many as there are reads at once. What is given back last is taken first: it is still in the
//! processor's cache.

use std::sync::Mutex;

use crate::mount::lock;

/// Buffers kept for later: as many as requesting threads. More are in use only while many readers
/// wait, and their memory goes back to the system afterwards.
const KEPT_MAX: usize = 16;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Buffers {
    kept: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// A buffer of this length, with anything in it.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = lock(&self.kept).pop().unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }

    /// Takes a buffer back.
    pub fn give_back(&self, buffer: Vec<u8>) {
        let mut kept = lock(&self.kept);
        if kept.len() < KEPT_MAX {
            kept.push(buffer);
        }
    }
}
