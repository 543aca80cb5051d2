//! Where files lie, as the engine is told: places that were found, and places that are made up.
//!
//! Part of the engine's state, behind its lock. A file of which no place is known lies on its device behind those
//! before it; emulated devices and generated files lie so, too. Devices that make an array have the files in
//! strips, whether they are emulated or an array of the user's:
//!
//! ```text
//! disks 4                    file i on disk i mod 4, from 0, 1 MiB behind the file before ..
//! disks 4, raid0 of 64 KiB   all files on all four, one behind the other in the array
//! ```

use std::collections::HashMap;

use forerun_core::layout::{Array, Layout, LayoutMap, MappedExtent};
use forerun_core::spec::Choice;
use forerun_core::{Bytes, DeviceId, Placement};

use crate::error::Error;

/// Space left between files whose places are made up, so that the first byte of one
/// never seems to continue the last of another.
const GAP_BYTES: u64 = 1 << 20;

/// An array of the user's: its layout, and how many devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Striping {
    /// The layout, with its strip.
    pub layout: Choice<Box<dyn Layout>>,
    /// How many devices it has.
    pub disks: u16,
}

impl Striping {
    /// The array over these devices, from their beginnings on.
    fn over(&self, devices: impl Iterator<Item = DeviceId>) -> Placement {
        Placement::on(Array {
            layout: self.layout.clone(),
            members: devices.map(|device| (device, Bytes(0))).collect(),
        })
    }

    pub(crate) fn check(&self, block_bytes: u32) -> Result<(), Error> {
        let placement = self.over((0..self.disks).map(DeviceId));
        let refused = || Error::Striping {
            layout: self.layout.to_string(),
            disks: self.disks,
            block_bytes,
        };
        let layout = LayoutMap::new(&placement, block_bytes);
        layout.map(|_| ()).ok_or_else(refused)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Placing {
    /// How many devices are imagined.
    disks: u16,
    striping: Option<Striping>,
    /// Where the next file begins, for each device.
    free_from: HashMap<DeviceId, u64>,
}

impl Placing {
    pub(crate) fn new(disks: u16, striping: Option<Striping>) -> Self {
        let disks = striping.as_ref().map_or(disks, |array| array.disks);
        Self {
            disks: disks.max(1),
            striping,
            free_from: HashMap::new(),
        }
    }

    /// How many devices a file lies on that lies on imagined ones, from its number and the first of them on.
    pub(crate) fn imagined(&self, file: u32) -> std::ops::Range<u64> {
        match &self.striping {
            Some(_) => 0..u64::from(self.disks),
            None => {
                let disk = u64::from(file % u32::from(self.disks));
                disk..disk + 1
            }
        }
    }

    /// Whether all files lie on the user's array.
    pub(crate) fn is_array(&self) -> bool {
        self.striping.is_some()
    }

    /// Where a file lies on these devices, which begins at `location` if that is known.
    pub(crate) fn place(
        &mut self,
        devices: &[DeviceId],
        location: Option<Bytes>,
        bytes: u64,
        block_bytes: u64,
    ) -> Placement {
        let first = devices.first().copied().unwrap_or(DeviceId(0));
        let location = location.unwrap_or_else(|| self.imagine(first, bytes));
        let Some(striping) = &self.striping else {
            return Placement::linear(first, location);
        };
        let begin = MappedExtent {
            offset: Bytes(0),
            array: 0,
            at: Bytes(location.0 / block_bytes * block_bytes),
        };
        Placement {
            extents: [begin].into(),
            ..striping.over(devices.iter().copied())
        }
    }

    /// A place for a file of which none is known.
    fn imagine(&mut self, device: DeviceId, bytes: u64) -> Bytes {
        let free_from = self.free_from.entry(device).or_default();
        let location = Bytes(*free_from);
        let end = location.0.saturating_add(bytes).saturating_add(GAP_BYTES);
        *free_from = end.checked_next_multiple_of(GAP_BYTES).unwrap_or(0);
        location
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_place_follow_each_other_and_on_an_array_in_strips() {
        let mut placing = Placing::new(2, None);
        assert_eq!(placing.imagined(3), 1..2);
        let mut at = |file| placing.place(&[DeviceId(file)], None, 10, 4096);
        assert_eq!(at(0), Placement::linear(DeviceId(0), Bytes(0)));
        assert_eq!(at(0), Placement::linear(DeviceId(0), Bytes(2 << 20)));
        assert_eq!(at(1), Placement::linear(DeviceId(1), Bytes(0)));
        let layout = Choice::parse("layout", forerun_core::layout::LIST, "raid0").unwrap();
        let mut array = Placing::new(1, Some(Striping { layout, disks: 3 }));
        assert_eq!(array.imagined(3), 0..3);
        let devices = [0, 1, 2].map(DeviceId);
        let known = array.place(&devices, Some(Bytes(5000)), 10, 4096);
        assert_eq!(known.extents[0].at, Bytes(4096), "whole blocks");
        assert_eq!(known.arrays[0].members.len(), 3);
    }
}
