//! Memory for answers to reads: so much and no more.
//!
//! Used by [`reads`](super::reads), behind its lock. An answer leaves in one piece, so a read needs
//! a buffer of its whole length until the kernel has the bytes. There are two parts, so that those
//! who wait for a device never keep those from going on whose bytes are there already:
//!
//! ```text
//! | waiting: taken before the device is asked | ready: taken to copy what is in memory |
//! ```
//!
//! Buffers are mappings of their own, of a power of two bytes. What is given back last is taken
//! first: it is still in the processor's cache. A few are kept, the rest goes back to the system at
//! once; used and kept ones together never exceed the room.
//!
//! It does not wait: a read that finds no room asks again later.

use std::io;

use forerun_io::footprint::Pages;

/// Buffers kept for later: as many as threads that take requests.
const KEPT_MAX: usize = 16;

/// The smallest buffer: a page.
const SMALLEST: usize = 4096;

/// What a buffer is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The device must be waited for.
    Waiting,
    /// All bytes are in memory.
    Ready,
}

/// How much room there is, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// For reads that wait.
    pub waiting: usize,
    /// For the others, beside that.
    pub ready: usize,
}

impl Sizes {
    /// Both parts.
    #[must_use]
    pub fn total(self) -> usize {
        self.waiting + self.ready
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Room {
    sizes: Sizes,
    /// In use, of those for reads that wait, and kept.
    used: usize,
    waiting: usize,
    kept: Vec<Pages>,
}

impl Room {
    /// Room that nobody uses yet.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            used: 0,
            waiting: 0,
            kept: Vec::new(),
        }
    }

    /// A buffer of at least this length with anything in it; none if there is no room now.
    ///
    /// # Errors
    /// The system has no memory left.
    pub fn take(&mut self, bytes: usize, purpose: Purpose) -> io::Result<Option<Pages>> {
        if !self.has(bytes, purpose) {
            return Ok(None);
        }
        let bytes = size_of_buffer(bytes);
        let used = self.used + bytes;
        let buffer = match self.kept.iter().rposition(|pages| pages.len() == bytes) {
            Some(index) => self.kept.remove(index),
            None => {
                while self.kept_bytes() + used > self.sizes.total() && !self.kept.is_empty() {
                    self.kept.remove(0);
                }
                Pages::new(bytes)?
            }
        };
        self.used = used;
        if purpose == Purpose::Waiting {
            self.waiting += bytes;
        }
        Ok(Some(buffer))
    }

    /// Whether there is room for so many bytes now.
    #[must_use]
    pub fn has(&self, bytes: usize, purpose: Purpose) -> bool {
        let bytes = size_of_buffer(bytes);
        let fits = self.used + bytes <= self.sizes.total();
        fits && (purpose == Purpose::Ready || self.waiting + bytes <= self.sizes.waiting)
    }

    /// Takes a buffer back that was taken for this.
    pub fn give_back(&mut self, buffer: Pages, purpose: Purpose) {
        self.used -= buffer.len();
        if purpose == Purpose::Waiting {
            self.waiting -= buffer.len();
        }
        if self.kept.len() < KEPT_MAX {
            self.kept.push(buffer);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.kept.iter().map(|pages| pages.len()).sum()
    }
}

/// Powers of two, so that a buffer given back fits most of those who come next.
fn size_of_buffer(bytes: usize) -> usize {
    bytes.next_power_of_two().max(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: Sizes = Sizes {
        waiting: 1 << 20,
        ready: 1 << 20,
    };

    #[test]
    fn readers_that_wait_leave_room_for_those_whose_bytes_are_there() {
        let mut room = Room::new(SIZES);
        let held: Vec<_> = (0..4)
            .map(|_| room.take(200_000, Purpose::Waiting).unwrap().unwrap())
            .collect();
        assert!(room.take(1, Purpose::Waiting).unwrap().is_none());
        let ready = room.take(1 << 20, Purpose::Ready).unwrap().unwrap();
        assert!(room.take(1, Purpose::Ready).unwrap().is_none());
        room.give_back(ready, Purpose::Ready);
        for buffer in held {
            room.give_back(buffer, Purpose::Waiting);
        }
        assert!(room.take(1 << 20, Purpose::Waiting).unwrap().is_some());
    }

    proptest! {
        #[test]
        fn what_is_used_and_kept_never_exceeds_the_room(
            steps in proptest::collection::vec((1_usize..=1 << 20, any::<bool>(), any::<bool>()), 1..200)
        ) {
            let mut room = Room::new(SIZES);
            let mut held: Vec<(Pages, Purpose)> = Vec::new();
            for (bytes, waits, gives_back) in steps {
                let purpose = if waits { Purpose::Waiting } else { Purpose::Ready };
                if gives_back && !held.is_empty() {
                    let (buffer, purpose) = held.swap_remove(bytes % held.len());
                    room.give_back(buffer, purpose);
                } else if let Some(buffer) = room.take(bytes, purpose).unwrap() {
                    prop_assert!(buffer.len() >= bytes);
                    held.push((buffer, purpose));
                }
                let used: usize = held.iter().map(|(buffer, _)| buffer.len()).sum();
                prop_assert!(used + room.kept_bytes() <= SIZES.total());
            }
        }
    }
}
