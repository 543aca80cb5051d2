//! The quantities of the engine, each its own type.
//!
//! Used everywhere; calls nothing. Time is nanoseconds, sizes and positions are bytes or blocks,
//! all integers: floats appear only in reports. Identifiers are dense small numbers chosen by the
//! driver (files, readers, reads, devices) or by the engine (requests).

use core::fmt;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl core::str::FromStr for $name {
            type Err = <$inner as core::str::FromStr>::Err;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

quantity!(
    /// A point in time or a duration, in nanoseconds. The origin is the driver's choice.
    Nanos(u64)
);
quantity!(
    /// A size or a byte position.
    Bytes(u64)
);
quantity!(
    /// The index of a block inside its file: byte offset divided by `block_bytes`.
    Block(u32)
);
quantity!(
    /// A version of a file, as the driver numbers them; below [`FileId::LIMIT`].
    FileId(u32)
);
quantity!(
    /// An open file: one position history, one owner of streams.
    ReaderId(u32)
);
quantity!(
    /// One demand read that entered the engine and was not answered and released yet.
    ReadId(u32)
);
quantity!(
    /// One fetch handed to the driver; reused once it completed.
    RequestId(u32)
);
quantity!(
    /// A device, or anything that serves requests with one switching cost and one rate.
    DeviceId(u16)
);
quantity!(
    /// A folder that was listed, as the driver numbers them; below [`FolderId::LIMIT`].
    FolderId(u32)
);
quantity!(
    /// The original error of a failed I/O, opaque to the engine (an `errno` value in practice).
    ErrorCode(i32)
);

impl FileId {
    /// File numbers stay below 2^24, because the resident table packs one with a 32-bit block
    /// index and eight flags into a single atomic word.
    pub const LIMIT: u32 = 1 << 24;
}

impl FolderId {
    /// Folder numbers stay below 2^24, as those of files: few are known at once, and a larger
    /// number is a driver's mistake.
    pub const LIMIT: u32 = 1 << 24;
}

impl Nanos {
    /// The time from `earlier` to `self`, zero if the order is reversed.
    #[must_use]
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A number, or the largest there is if it is larger.
pub(crate) fn saturate(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// A number times `by` over `of`, as if there were no largest number between; the largest there is if it is larger.
pub(crate) fn scaled(number: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(by) / u128::from(of);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A run of blocks of one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// The file.
    pub file: FileId,
    /// First block.
    pub first: Block,
    /// Number of blocks, at least 1 in everything the engine emits.
    pub count: u32,
}

impl Extent {
    pub(crate) fn new(file: FileId, first: Block, count: u32) -> Self {
        Self { file, first, count }
    }

    /// The block after the last one, as a 64-bit number so that it cannot overflow.
    #[must_use]
    pub fn end(&self) -> u64 {
        u64::from(self.first.0) + u64::from(self.count)
    }

    /// Whether `block` lies inside.
    #[must_use]
    pub fn contains(&self, block: Block) -> bool {
        block >= self.first && u64::from(block.0) < self.end()
    }

    /// The block numbers, in order. An extent that would pass the last block number stops there.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + use<> {
        let end = self.end().min(u64::from(u32::MAX) + 1);
        (u64::from(self.first.0)..end).map(|b| Block(b as u32))
    }
}
