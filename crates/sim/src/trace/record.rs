//! One request of a trace, as every format is read into it.
//!
//! Formats fill in what they know and leave the rest `None`; nothing is made up, except that a
//! place is either a byte range of a device (block traces: seeks mean something) or a block's
//! number (cache traces: only identity means something). Readers of records ask for
//! [`Record::blocks`] and need not know which it was.
//!
//! A record is small and `Copy`, because the sorting window keeps a thousand of them and the
//! writer of `oracle-general` many millions.

use core::ops::RangeInclusive;

use forerun_core::Nanos;

/// Where a request begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// At this byte of the device.
    Byte(u64),
    /// At the block or object of this number, of which it is all.
    Block(u64),
}

/// The direction of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Op {
    /// A read; also in a format without directions.
    #[default]
    Read,
    /// It writes.
    Write,
}

impl Op {
    /// The one for a read, or the one for a write.
    #[must_use]
    pub fn either<T>(self, read: T, write: T) -> T {
        match self {
            Self::Read => read,
            Self::Write => write,
        }
    }
}

/// The behaviour of the drive's own cache, where it was measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Label {
    /// The cache had it.
    Hit,
    /// The cache had nothing of it.
    Miss,
    /// DiskSim's `Doub`: it began on the sectors that the request before had in progress.
    Double,
    /// DiskSim's `Trip`: as before, one request further back.
    Triple,
}

impl Label {
    /// The labels, with their names in DiskSim's validation traces.
    pub const NAMES: [(Self, &'static str); 4] = [
        (Self::Hit, "Hit"),
        (Self::Miss, "Miss"),
        (Self::Double, "Doub"),
        (Self::Triple, "Trip"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "Hit",
            Self::Miss => "Miss",
            Self::Double => "Doub",
            Self::Triple => "Trip",
        }
    }
}

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Start position.
    pub place: Place,
    /// Whether the block has a name, and its number says only when it was first named.
    pub is_named: bool,
    /// Its length; 0 in a format without lengths, which counts as one block.
    pub bytes: u32,
    /// The device, or the file where a format has files.
    pub device: u32,
    /// The process that made it, or its thread.
    pub process: Option<u32>,
    /// Its direction.
    pub op: Op,
    /// The behaviour of the drive's cache.
    pub label: Option<Label>,
    /// When it was issued, from the trace's origin of time.
    pub arrival: Option<Nanos>,
    /// Computing since the answer to the request before.
    pub compute: Option<Nanos>,
    /// How long it took when it was recorded.
    pub response: Option<Nanos>,
}

impl Record {
    /// A read of one block or object.
    #[must_use]
    pub fn block(number: u64) -> Self {
        Self {
            place: Place::Block(number),
            is_named: false,
            bytes: 0,
            device: 0,
            process: None,
            op: Op::Read,
            label: None,
            arrival: None,
            compute: None,
            response: None,
        }
    }

    /// A read of a range; `None` if the range does not end below 2^64.
    #[must_use]
    pub fn range(offset: u64, bytes: u32) -> Option<Self> {
        offset.checked_add(u64::from(bytes))?;
        Some(Self {
            place: Place::Byte(offset),
            bytes,
            ..Self::block(0)
        })
    }

    /// The blocks it touches, at this block size; its number alone where it has one.
    #[must_use]
    pub fn blocks(&self, block_bytes: u32) -> RangeInclusive<u64> {
        match self.place {
            Place::Block(number) => number..=number,
            Place::Byte(offset) => {
                let block = u64::from(block_bytes.max(1));
                let last = offset.saturating_add(u64::from(self.bytes.max(1)) - 1);
                offset / block..=last / block
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_touches_every_block_it_overlaps() {
        let range = |offset, bytes| Record::range(offset, bytes).unwrap().blocks(4096);
        assert_eq!(range(0, 4096), 0..=0);
        assert_eq!(range(4095, 2), 0..=1);
        assert_eq!(range(8192, 0), 2..=2);
        assert_eq!(range(u64::MAX - 1, 1), (u64::MAX >> 12)..=(u64::MAX >> 12));
        assert_eq!(Record::range(u64::MAX, 1), None);
        assert_eq!(Record::block(7).blocks(4096), 7..=7);
    }
}
