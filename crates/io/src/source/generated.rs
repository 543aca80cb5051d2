//! Generated content as a source: nothing is stored, and a read takes no longer than a copy.

use std::io;

use super::{Key, Source};
use crate::arena::Target;
use crate::generated;

/// Content as [`generated::fill`] makes it.
#[derive(Clone, Copy, Debug)]
pub struct Generated {
    /// Its seed.
    pub seed: u64,
    /// The number of the file under this seed.
    pub index: u64,
    /// Its size.
    pub bytes: u64,
}

impl Source for Generated {
    fn key(&self) -> Key {
        let Self { seed, index, bytes } = *self;
        Key::Generated { seed, index, bytes }
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let end = target.bytes().min(left);
        target.fill(skip, end, |at, slice| {
            generated::fill(self.seed, self.index, offset + at as u64, slice);
        });
        Ok(end.max(skip))
    }
}
