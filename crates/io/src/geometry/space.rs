//! A space of addresses cut into arrays: the chunks of btrfs, or a block device with all below it.
//!
//! Made by the modules that ask an owner of addresses, used to give the extents of a file their place.
//! One space is put into another where a device lies on a device:
//!
//! ```text
//! /dev/dm-0   0        4 MiB           12 MiB
//!             |  md0   |      sda       |      linear targets
//! embedded:   0..4 MiB  -> raid0 of sdb1, sdc1 at 64 MiB
//!             4..12 MiB -> linear on sda at 1 MiB
//! ```

use forerun_core::Bytes;

use super::{BlockDevice, DiskArray, DiskMember, Level};

/// A run of addresses that one array has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) begin: u64,
    /// The first address behind it.
    pub(super) end: u64,
    /// None, if the array misses a member that reads need.
    pub(super) array: Option<usize>,
    /// Address of `begin` in the array.
    pub(super) at: u64,
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Space {
    pub(super) arrays: Vec<DiskArray>,
    /// By address, none reaching into the next.
    pub(super) segments: Vec<Segment>,
}

impl Space {
    /// One array has all addresses.
    pub(super) fn of(array: DiskArray) -> Self {
        let mut space = Self::default();
        space.push(0, u64::MAX, array);
        space
    }

    /// A disk of which no more is known.
    pub(super) fn disk(device: BlockDevice) -> Self {
        let member = DiskMember {
            device,
            part: 0,
            begin: Bytes(0),
        };
        Self::of(DiskArray {
            level: Level::Linear,
            strip: Bytes(0),
            members: [member].into(),
        })
    }

    /// Appends an array at these addresses, from its own address 0 on.
    pub(super) fn push(&mut self, begin: u64, bytes: u64, array: DiskArray) {
        self.segments.push(Segment {
            begin,
            end: begin.saturating_add(bytes),
            array: Some(self.arrays.len()),
            at: 0,
        });
        self.arrays.push(array);
    }

    /// Appends addresses that cannot be read.
    pub(super) fn push_missing(&mut self, begin: u64, bytes: u64) {
        self.segments.push(Segment {
            begin,
            end: begin.saturating_add(bytes),
            array: None,
            at: 0,
        });
    }

    /// Appends a part of another space, which begins there at `inner_at`. Addresses that the other
    /// does not have stay without an array.
    pub(super) fn embed(&mut self, begin: u64, bytes: u64, inner: &Self, inner_at: u64) {
        let inner_end = inner_at.saturating_add(bytes);
        let first = inner.segments.partition_point(|s| s.end <= inner_at);
        for segment in &inner.segments[first..] {
            if segment.begin >= inner_end {
                break;
            }
            let from = segment.begin.max(inner_at);
            let until = segment.end.min(inner_end);
            let array = segment.array.map(|array| self.number(&inner.arrays[array]));
            self.segments.push(Segment {
                begin: begin.saturating_add(from - inner_at),
                end: begin.saturating_add(until - inner_at),
                array,
                at: segment.at.saturating_add(from - segment.begin),
            });
        }
    }

    /// The number of an array, which is added if it is new. Parts of a few devices are put together, so
    /// there are few to compare with.
    fn number(&mut self, array: &DiskArray) -> usize {
        let known = self.arrays.iter().position(|known| known == array);
        known.unwrap_or_else(|| {
            self.arrays.push(array.clone());
            self.arrays.len() - 1
        })
    }

    /// Puts the segments in order, for [`Space::find`].
    pub(super) fn sorted(mut self) -> Self {
        self.segments.sort_by_key(|segment| segment.begin);
        self
    }

    /// The segment of an address.
    pub(super) fn find(&self, address: u64) -> Option<&Segment> {
        let behind = self.segments.partition_point(|s| s.begin <= address);
        let segment = &self.segments[behind.checked_sub(1)?];
        (address < segment.end).then_some(segment)
    }
}
