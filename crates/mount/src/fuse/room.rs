//! Buffer pool for answers to reads, of a fixed size.
//!
//! Used by [`reads`](super::reads), behind its lock. An answer leaves in one piece, so a read needs
//! a buffer of its whole length from when its bytes are copied until the kernel has them. No read
//! holds one while it waits for a device.
//!
//! Buffers are mappings of their own, of a power of two bytes. The buffer given back last is taken
//! first: it is still in the processor's cache. A few are kept, the rest goes back to the system at
//! once; used and kept ones together never exceed the pool's size.
//!
//! It does not wait: a read that gets no buffer asks again later.

use std::io;

use forerun_io::footprint::Pages;

/// Buffers kept for later: as many as threads that take requests.
const KEPT_MAX: usize = 16;

/// The smallest buffer: a page.
const SMALLEST: usize = 4096;

/// See the [module](self).
#[derive(Debug)]
pub struct Room {
    bytes: usize,
    /// In use, and kept.
    used: usize,
    kept: Vec<Pages>,
}

impl Room {
    /// A pool of a given size, all free.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            used: 0,
            kept: Vec::new(),
        }
    }

    /// A buffer of at least this length with anything in it; none if there is no room now.
    ///
    /// # Errors
    /// The system has no memory left.
    pub fn take(&mut self, bytes: usize) -> io::Result<Option<Pages>> {
        if !self.has(bytes) {
            return Ok(None);
        }
        let bytes = size_of_buffer(bytes);
        let used = self.used + bytes;
        let buffer = match self.kept.iter().rposition(|pages| pages.len() == bytes) {
            Some(index) => self.kept.remove(index),
            None => {
                while self.kept_bytes() + used > self.bytes && !self.kept.is_empty() {
                    self.kept.remove(0);
                }
                Pages::new(bytes)?
            }
        };
        self.used = used;
        Ok(Some(buffer))
    }

    /// Whether the pool has a given number of bytes free now.
    #[must_use]
    pub fn has(&self, bytes: usize) -> bool {
        self.used + size_of_buffer(bytes) <= self.bytes
    }

    /// Takes a buffer back.
    pub fn give_back(&mut self, buffer: Pages) {
        self.used -= buffer.len();
        if self.kept.len() < KEPT_MAX {
            self.kept.push(buffer);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.kept.iter().map(|pages| pages.len()).sum()
    }
}

/// Powers of two, so that a buffer given back fits most of the next reads.
fn size_of_buffer(bytes: usize) -> usize {
    bytes.next_power_of_two().max(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: usize = 2 << 20;

    proptest! {
        #[test]
        fn what_is_used_and_kept_never_exceeds_the_room(
            steps in proptest::collection::vec((1_usize..=1 << 20, any::<bool>()), 1..200)
        ) {
            let mut room = Room::new(BYTES);
            let mut held: Vec<Pages> = Vec::new();
            for (bytes, gives_back) in steps {
                if gives_back && !held.is_empty() {
                    room.give_back(held.swap_remove(bytes % held.len()));
                } else if let Some(buffer) = room.take(bytes).unwrap() {
                    prop_assert!(buffer.len() >= bytes);
                    held.push(buffer);
                }
                let used: usize = held.iter().map(|buffer| buffer.len()).sum();
                prop_assert!(used + room.kept_bytes() <= BYTES);
            }
        }
    }
}
