//! From a geometry to the engine's placement, and how the bytes of a file are spread over members.
//!
//! The engine has its own layouts; each level is one of them by its name. Levels without strips become
//! layouts without: a mirror is one group of copies with strips of a gigabyte, because a part of the
//! engine that aligns windows to strips has nothing to align there.
//!
//! ```text
//! extents   4K..64K at 640K, 128K..256K at 128K          blocks of 4 KiB
//! placement 0 at 0 (nothing is fetched there), 4K at 640K, 128K at 128K, to the end of the file
//! ```
//!
//! With blocks of more than 4 KiB an extent counts from the first block that begins in it, at a place
//! rounded down to a block.

use forerun_core::layout::map::EXTENTS_MAX;
use forerun_core::layout::{self, Array, Layout, MappedExtent, Placement};
use forerun_core::spec::Choice;
use forerun_core::{Bytes, DeviceId};

use super::{DiskArray, DiskMember, Geometry, Level, Refusal, Rotation};

/// The largest strip that a layout takes.
const NO_STRIP: u64 = 1 << 30;

/// Bytes of a file that can be read from a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberBytes {
    /// The member, where its first array begins.
    pub member: DiskMember,
    /// How many; bytes with copies count for each.
    pub bytes: u64,
}

impl DiskArray {
    /// The engine's layout of this array.
    fn choice(&self) -> Option<Choice<Box<dyn Layout>>> {
        let strip = self.strip.0;
        let rotation = |rotation| match rotation {
            Rotation::Left => 0,
            Rotation::Right => 1,
        };
        let text = match self.level {
            // The second copy of `dup` is read only where the first is broken.
            Level::Linear | Level::Dup => "linear".to_owned(),
            Level::Raid0 => format!("raid0(strip_bytes={strip})"),
            Level::Raid1 => {
                let copies = self.members.len();
                format!("raid10(strip_bytes={NO_STRIP},copies={copies})")
            }
            Level::Raid10 { copies } => format!("raid10(strip_bytes={strip},copies={copies})"),
            Level::Raid5(way) => {
                format!("raid5(strip_bytes={strip},rotation={})", rotation(way))
            }
            Level::Raid6(way) => {
                format!("raid6(strip_bytes={strip},rotation={})", rotation(way))
            }
        };
        Choice::parse("layout", layout::LIST, &text).ok()
    }

    /// Its members that are read.
    fn read_members(&self) -> &[DiskMember] {
        match self.level {
            Level::Linear | Level::Dup => &self.members[..self.members.len().min(1)],
            _ => &self.members,
        }
    }

    fn layout(&self) -> Option<Box<dyn Layout>> {
        self.choice().map(|choice| choice.build())
    }

    /// Adds up how much of a run of its addresses each member has.
    fn spread(&self, layout: &dyn Layout, at: u64, bytes: u64, members: &mut [u64]) {
        let count = self.read_members().len();
        let unit = layout.unit();
        let copies = layout.copies();
        // After as many rows as there are members all places are as before.
        let rows = unit.saturating_mul((layout.data_members(count) * count) as u64);
        let whole = if unit > 1 { bytes / rows } else { 0 };
        if whole > 0 {
            for member in &mut *members {
                *member += whole * (rows / count as u64) * copies as u64;
            }
        }
        let (mut at, mut left) = (at, bytes - whole * rows.max(1));
        while left > 0 {
            let piece = layout.piece(at, count);
            let length = piece.bytes.min(left);
            for member in members.iter_mut().skip(piece.member).take(copies) {
                *member += length;
            }
            at = at.saturating_add(length);
            left -= length;
        }
    }
}

impl Geometry {
    /// The placement for an engine with blocks of this size; `device` gives each member its number. Disks
    /// of one controller differ in [`DiskMember::part`] alone.
    ///
    /// # Errors
    /// No part of the file has a place, or a strip would cut a block.
    pub fn placement(
        &self,
        block_bytes: u32,
        mut device: impl FnMut(&DiskMember) -> DeviceId,
    ) -> Result<Placement, Refusal> {
        let delayed = self.omitted.delayed.extents > 0;
        let Some(first) = self.extents.first() else {
            return Err(Refusal::Nowhere { delayed });
        };
        let block = u64::from(block_bytes.max(1));
        let mut arrays = Vec::new();
        for array in &self.arrays {
            let strip = array.strip.0;
            let refused = || Refusal::Strip {
                strip,
                block: block_bytes,
            };
            if strip % block != 0 {
                return Err(refused());
            }
            let members = array.read_members().iter();
            arrays.push(Array {
                layout: array.choice().ok_or_else(refused)?,
                members: members.map(|m| (device(m), m.begin)).collect(),
            });
        }
        let mut extents: Vec<MappedExtent> = Vec::new();
        if first.offset.0 > 0 {
            // A hole, or bytes without a place.
            extents.push(MappedExtent {
                offset: Bytes(0),
                array: first.array,
                at: Bytes(0),
            });
        }
        for extent in &self.extents {
            let offset = extent.offset.0.next_multiple_of(block);
            if offset >= extent.offset.0 + extent.bytes.0 {
                continue;
            }
            let at = extent.at.0.saturating_add(offset - extent.offset.0);
            let mapped = MappedExtent {
                offset: Bytes(offset),
                array: extent.array,
                at: Bytes(at / block * block),
            };
            let continues = extents.last().is_some_and(|last| {
                let distance = mapped.offset.0 - last.offset.0;
                last.array == mapped.array && last.at.0.checked_add(distance) == Some(mapped.at.0)
            });
            if !continues && extents.len() < EXTENTS_MAX {
                extents.push(mapped);
            }
        }
        Ok(Placement { arrays, extents })
    }

    /// How many bytes of the file each member has, in the order in which arrays name them.
    #[must_use]
    pub fn members(&self) -> Vec<MemberBytes> {
        let mut all: Vec<MemberBytes> = Vec::new();
        for (number, array) in self.arrays.iter().enumerate() {
            let mut bytes = vec![0; array.read_members().len()];
            if let Some(layout) = array.layout() {
                for extent in &self.extents {
                    if usize::from(extent.array) == number {
                        array.spread(&*layout, extent.at.0, extent.bytes.0, &mut bytes);
                    }
                }
            }
            for (member, bytes) in array.read_members().iter().zip(bytes) {
                let known = all.iter_mut().find(|known| {
                    known.member.device == member.device && known.member.part == member.part
                });
                match known {
                    Some(known) => known.bytes += bytes,
                    None => all.push(MemberBytes {
                        member: member.clone(),
                        bytes,
                    }),
                }
            }
        }
        all
    }

    /// How many strips are read in part because an extent begins or ends inside of them. The end of the
    /// file cuts none.
    #[must_use]
    pub fn strips_cut(&self) -> u64 {
        let file_end = self.bytes.0;
        let cut = |extent: &super::FileExtent| {
            let strip = self.arrays[usize::from(extent.array)].strip.0;
            if strip == 0 {
                return 0;
            }
            let end = extent.at.0.saturating_add(extent.bytes.0);
            let is_last = extent.offset.0 + extent.bytes.0 >= file_end;
            let begins = !extent.at.0.is_multiple_of(strip);
            let ends = !is_last && !end.is_multiple_of(strip);
            let is_same = extent.at.0 / strip == end.saturating_sub(1) / strip;
            u64::from(begins) + u64::from(ends && !(begins && is_same))
        };
        self.extents.iter().map(cut).sum()
    }
}

#[cfg(test)]
mod tests;
