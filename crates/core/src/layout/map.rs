//! The map of one file: its extents on arrays, and their members, at work.
//!
//! Asked by the engine for every block it fetches, so it holds no more than it needs: for a file in
//! one run no extent at all, else one search among them.
//!
//! ```text
//! extents  0 -> array 0 at 640K    64K -> array 0 at 128K        raid0 of 2, strips of 64K
//! byte 70K: extent 2, address 134K, strip 2: member 0, 70K behind where the array begins there
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Array, Layout, MappedExtent, Placement};
use crate::units::{Block, Bytes, DeviceId, saturate};

/// Most extents of one file, 96 KiB: a file in 4,096 runs has as many switches, and no order of
/// fetches helps any more. Blocks behind them count as one run with the last.
pub const EXTENTS_MAX: usize = 4096;

/// See the [module](self).
#[derive(Debug)]
pub struct LayoutMap {
    arrays: Box<[Members]>,
    extents: Box<[MappedExtent]>,
    /// Each once, in the order in which the arrays name them.
    devices: Box<[DeviceId]>,
    block_bytes: u64,
}

/// An array.
#[derive(Debug)]
struct Members {
    layout: Box<dyn Layout>,
    /// The device, and where the array begins on it.
    members: Box<[(DeviceId, Bytes)]>,
}

/// Where a byte of a file lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceOnDevice {
    /// On which device.
    pub device: DeviceId,
    /// Where on the device, in bytes from its beginning.
    pub position: Bytes,
    /// How many bytes of the file, this one included, lie there in one run.
    pub run: Bytes,
}

/// The strip in which a block lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strip {
    /// Its number in the array.
    pub number: u64,
    /// Blocks of the file from that block on which lie in it in one run; at least 1.
    pub left: u32,
    /// The same of its stripe; at least `left`.
    pub left_of_stripe: u32,
    /// Blocks of a stripe.
    pub stripe: u32,
}

impl LayoutMap {
    /// A file that lies like this, in blocks of this size. `None` if a block would be cut, if a
    /// layout does not take so many members, or if extents are out of order, too many, or on no
    /// array.
    #[must_use]
    pub fn new(placement: &Placement, block_bytes: u32) -> Option<Self> {
        let mut devices: Vec<DeviceId> = Vec::new();
        for (device, _) in placement.arrays.iter().flat_map(|array| &array.members) {
            if !devices.contains(device) {
                devices.push(*device);
            }
        }
        let arrays = placement.arrays.iter();
        let arrays: Option<Box<[Members]>> = arrays
            .map(|array| Members::new(array, block_bytes))
            .collect();
        let arrays = arrays.filter(|arrays| !arrays.is_empty())?;
        let block = u64::from(block_bytes.max(1));
        let extents = &placement.extents;
        let is_right = |e: &MappedExtent| {
            let is_whole = e.offset.0.is_multiple_of(block) && e.at.0.is_multiple_of(block);
            is_whole && usize::from(e.array) < arrays.len()
        };
        let is_ordered = extents.first().is_none_or(|first| first.offset.0 == 0)
            && extents.windows(2).all(|two| two[0].offset < two[1].offset);
        let is_complete = is_ordered && extents.len() <= EXTENTS_MAX;
        (is_complete && extents.iter().all(is_right)).then(|| Self {
            arrays,
            extents: extents.clone().into_boxed_slice(),
            devices: devices.into_boxed_slice(),
            block_bytes: block,
        })
    }

    /// How many copies there are of the byte at `offset` of the file.
    #[must_use]
    pub fn copies(&self, offset: u64) -> usize {
        let (array, ..) = self.address(offset);
        array.layout.copies()
    }

    /// Where one of the copies lies; there must be so many.
    #[must_use]
    pub fn copy(&self, offset: u64, copy: usize) -> PlaceOnDevice {
        let (array, address, left) = self.address(offset);
        let piece = array.layout.piece(address, array.members.len());
        let member = piece.member.saturating_add(copy);
        debug_assert!(
            member < array.members.len() && piece.bytes > 0,
            "a layout names a run on a member it was given, not {piece:?}"
        );
        let (device, begin) = array.members[member.min(array.members.len() - 1)];
        PlaceOnDevice {
            device,
            position: Bytes(begin.0.saturating_add(piece.offset)),
            run: Bytes(piece.bytes.min(left)),
        }
    }

    /// The strip in which a block lies; none where all lies in one run.
    #[must_use]
    pub fn strip(&self, block: Block) -> Option<Strip> {
        let (array, address, left) = self.address(u64::from(block.0) * self.block_bytes);
        let unit = array.layout.unit();
        if unit == 1 {
            return None;
        }
        let data = array.layout.data_members(array.members.len()).max(1);
        let stripe = unit.saturating_mul(data as u64);
        let blocks = |bytes: u64| saturate(bytes / self.block_bytes).max(1);
        Some(Strip {
            number: address / unit,
            left: blocks((unit - address % unit).min(left)),
            left_of_stripe: blocks((stripe - address % stripe).min(left)),
            stripe: blocks(stripe),
        })
    }

    /// The first block from this one on that lies on the first device of its array, by the numbers of the devices; none if
    /// there is none within two stripes, as on a concatenation.
    #[must_use]
    pub fn lead(&self, block: Block) -> Option<Block> {
        let mut offset = u64::from(block.0) * self.block_bytes;
        let (array, ..) = self.address(offset);
        let first = array.members.iter().map(|(device, _)| *device).min()?;
        for _ in 0..2 * array.members.len() {
            let mut copies = (0..self.copies(offset)).map(|copy| self.copy(offset, copy));
            if copies.any(|place| place.device == first) {
                return u32::try_from(offset / self.block_bytes).ok().map(Block);
            }
            offset = offset.saturating_add(self.copy(offset, 0).run.0);
        }
        None
    }

    /// The array of a byte, its address there, and how many bytes of the file follow in one run.
    fn address(&self, offset: u64) -> (&Members, u64, u64) {
        let behind = self.extents.partition_point(|e| e.offset.0 <= offset);
        let Some(extent) = behind.checked_sub(1).map(|at| self.extents[at]) else {
            return (&self.arrays[0], offset, u64::MAX);
        };
        let end = self.extents.get(behind).map_or(u64::MAX, |e| e.offset.0);
        let address = extent.at.0.saturating_add(offset - extent.offset.0);
        let array = &self.arrays[usize::from(extent.array)];
        (array, address, (end - offset).max(1))
    }

    /// Its devices, each once.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = DeviceId> + '_ {
        self.devices.iter().copied()
    }

    /// Over how many devices a long window is spread: copies count once.
    #[must_use]
    pub fn spread(&self) -> usize {
        let spread = |array: &Members| array.members.len() / array.layout.copies();
        self.arrays.iter().map(spread).max().unwrap_or(1).max(1)
    }

    /// How many extents it has.
    #[must_use]
    pub fn extents(&self) -> usize {
        self.extents.len()
    }
}

impl Members {
    fn new(array: &Array, block_bytes: u32) -> Option<Self> {
        let layout = array.layout.build();
        let unit = layout.unit();
        let is_whole = unit == 1 || unit.is_multiple_of(u64::from(block_bytes));
        let (count, copies) = (array.members.len(), layout.copies());
        let is_complete = count > 0 && layout.accepts(count) && (1..=count).contains(&copies);
        (is_whole && is_complete).then(|| Self {
            layout,
            members: array.members.clone().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_say_where_in_the_array_and_strips_who_has_it() {
        const K: u64 = 1024;
        let devices = [DeviceId(7), DeviceId(3)];
        let mut placement = Placement::raid0(Bytes(64 * K), devices, Bytes(4 * K)).unwrap();
        let extent = |offset, at| MappedExtent {
            offset: Bytes(offset * K),
            array: 0,
            at: Bytes(at * K),
        };
        placement.extents = [extent(0, 640), extent(64, 140)].into();
        let map = LayoutMap::new(&placement, 4096).unwrap();
        let place = map.copy(68 * K, 0);
        assert_eq!(place.device, DeviceId(7));
        assert_eq!(place.position, Bytes((4 + 64 + 144 - 128) * K));
        assert_eq!(place.run, Bytes(48 * K));
        let strip = map.strip(Block(15)).unwrap();
        assert_eq!((strip.number, strip.left), (10, 1));
        assert_eq!(strip.left_of_stripe, 1, "the extent ends");
        let strip = map.strip(Block(16)).unwrap();
        assert_eq!(strip.left_of_stripe, 29);
        let leads = [15, 16, 30, 45].map(|block| map.lead(Block(block)));
        assert_eq!(leads, [29, 29, 30, 61].map(|block| Some(Block(block))));
        for wrong in [extent(1, 0), extent(64, 0), extent(128, 1)] {
            let mut refused = placement.clone();
            refused.extents.push(wrong);
            let is_right = wrong.offset.0 % 4096 == 0 && wrong.offset.0 > 64 * K;
            let is_right = is_right && wrong.at.0 % 4096 == 0;
            assert_eq!(LayoutMap::new(&refused, 4096).is_some(), is_right);
        }
    }
}
