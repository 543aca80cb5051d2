//! Bytes that came with the answer that told an object's version.
//!
//! Problem: a program that reads a footer without having listed the object would pay two round trips, one for
//! size and version and one for the range. Mechanism: the range is asked for at once, widened to whole blocks; its
//! bytes are held until the engine has taken them.
//!
//! ```text
//! get 900..1000 of an unknown object    GET bytes 0..4096    size 1000, ETag "a1", bytes 0..1000 held
//! the engine fetches block 0            held: no request
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use forerun_io::arena::Target;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Option<Part>>);

#[derive(Debug)]
struct Part {
    offset: u64,
    bytes: Bytes,
}

impl Held {
    pub(crate) fn new(offset: u64, bytes: Bytes) -> Self {
        Self(Mutex::new(Some(Part { offset, bytes })))
    }

    fn part(&self) -> MutexGuard<'_, Option<Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the bytes.
    pub(crate) fn clear(&self) {
        *self.part() = None;
    }

    /// Fills the front of `from..to` of a target that begins at an offset of the object; how far it came.
    pub(crate) fn fill(&self, target: &mut Target, offset: u64, from: usize, to: usize) -> usize {
        let part = self.part();
        let Some(part) = &*part else { return from };
        let skip = (offset + from as u64).checked_sub(part.offset);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        let bytes = skip.and_then(|skip| part.bytes.get(skip..));
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
            return from;
        };
        let end = to.min(from.saturating_add(bytes.len()));
        target.fill(from, end, |at, memory| {
            memory.copy_from_slice(&bytes[at - from..][..memory.len()]);
        });
        end
    }
}
