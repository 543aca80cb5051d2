//! The extents of a file, as `FIEMAP` tells them.
//!
//! Asked 256 at a time. Extents that follow each other in the file and in the address space are one;
//! those without a place that could be read (delayed, inline, unwritten, compressed) are left out, and
//! counted with their bytes:
//!
//! ```text
//! file     0..128K  128K..256K  256K..384K  384K..1M    1M..2M
//! address   70M      70M+128K    encoded     hole        93M
//! kept     [0..256K at 70M]      1 encoded   640K holes  [1M..2M at 93M]
//! ```
//!
//! Bounded: after 4,096 runs, or 16,384 extents whether kept or not, the rest of the file is not looked at.

use std::io;

use forerun_core::layout::map::EXTENTS_MAX;

use super::ioctl::{FIEMAP_EXTENT, FIEMAP_EXTENTS, FIEMAP_HEAD, FiemapBuffer};
use super::tables::{half, word};

/// Extents that are looked at: the kernel takes about 0.3 us for each, so 5 ms at most. One run of
/// btrfs of a terabyte has 8,192.
const LOOKED_AT_MAX: usize = 16 << 10;

/// Extents of a file that [`Fingerprint`] covers: one call.
const FINGERPRINT_EXTENTS: usize = 64;

/// Flags, by `linux/fiemap.h`.
const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELAYED: u32 = 0x4;
const ENCODED: u32 = 0x8 | 0x80;
const INLINE: u32 = 0x200 | 0x400;
const NOT_ALIGNED: u32 = 0x100;
const UNWRITTEN: u32 = 0x800;

/// An extent in the address space of the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RawExtent {
    pub(super) logical: u64,
    pub(super) physical: u64,
    pub(super) bytes: u64,
    pub(super) flags: u32,
}

/// Extents of one kind that were left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Omitted {
    /// How many.
    pub extents: u64,
    /// Bytes of the file in them.
    pub bytes: u64,
}

/// Parts of a file without a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Omissions {
    /// Delayed allocation: the place is chosen when they are written.
    pub delayed: Omitted,
    /// Compressed or encrypted: their bytes have no place one by one.
    pub encoded: Omitted,
    /// Inside of metadata.
    pub inline: Omitted,
    /// Allocated and never written: they read as zeros without a request.
    pub unwritten: Omitted,
    /// The file system does not know.
    pub unknown: Omitted,
    /// Holes: they read as zeros without a request.
    pub holes: Omitted,
}

/// The first extents of a file, by their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fingerprint {
    extents: usize,
    hash: u64,
}

/// All that was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Extents {
    pub(super) kept: Vec<RawExtent>,
    pub(super) omitted: Omissions,
    pub(super) unknown_from: Option<u64>,
    pub(super) beginning: Fingerprint,
}

/// Asks for the extents from an offset on, at most so many.
pub(super) type Ask<'a> = dyn FnMut(u64, usize, &mut FiemapBuffer) -> io::Result<()> + 'a;

impl Omitted {
    fn add(&mut self, bytes: u64) {
        self.extents += 1;
        self.bytes += bytes;
    }
}

impl Omissions {
    /// Where an extent with these flags is counted; none if it has a place.
    fn of(&mut self, flags: u32) -> Option<&mut Omitted> {
        // A delayed extent is unknown as well, an inline one not aligned.
        [
            (DELAYED, &mut self.delayed),
            (INLINE, &mut self.inline),
            (ENCODED, &mut self.encoded),
            (UNWRITTEN, &mut self.unwritten),
            (UNKNOWN | NOT_ALIGNED, &mut self.unknown),
        ]
        .into_iter()
        .find_map(|(mask, omitted)| (flags & mask != 0).then_some(omitted))
    }
}

impl Fingerprint {
    fn of(extents: &[RawExtent]) -> Self {
        let first = &extents[..extents.len().min(FINGERPRINT_EXTENTS)];
        // FNV-1a over words: a difference anywhere moves it, and extents are not forged.
        let words = first.iter().flat_map(|e| [e.logical, e.physical]);
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        Self {
            extents: first.len(),
            hash: words.fold(0xcbf2_9ce4_8422_2325, mix),
        }
    }

    /// Whether the file still has them, however it grew behind.
    pub(super) fn is_still(&self, ask: &mut Ask<'_>) -> io::Result<bool> {
        let mut buffer = Box::new([0; size_of::<FiemapBuffer>()]);
        // An extent that was the first of none may have come.
        let wanted = self.extents.max(1);
        ask(0, wanted, &mut buffer)?;
        let (mut extents, _) = parse(&buffer[..]);
        extents.truncate(wanted);
        Ok(Self::of(&extents) == *self)
    }
}

/// The extents in a buffer, and whether the file has no more.
fn parse(buffer: &[u8]) -> (Vec<RawExtent>, bool) {
    let count = (half(buffer, 20) as usize).min(FIEMAP_EXTENTS);
    let extent = |index: usize| {
        let at = FIEMAP_HEAD + index * FIEMAP_EXTENT;
        RawExtent {
            logical: word(buffer, at),
            physical: word(buffer, at + 8),
            bytes: word(buffer, at + 16),
            flags: half(buffer, at + 40),
        }
    };
    let extents: Vec<_> = (0..count).map(extent).collect();
    let is_last = extents.last().is_none_or(|last| last.flags & LAST != 0);
    (extents, is_last)
}

/// All extents of a file of this size, within the bounds.
pub(super) fn all(bytes: u64, ask: &mut Ask<'_>) -> io::Result<Extents> {
    let mut found = Extents::default();
    let mut buffer = Box::new([0; size_of::<FiemapBuffer>()]);
    let (mut at, mut looked_at) = (0, 0);
    while at < bytes {
        ask(at, FIEMAP_EXTENTS, &mut buffer)?;
        let (extents, is_last) = parse(&buffer[..]);
        if looked_at == 0 {
            found.beginning = Fingerprint::of(&extents);
        }
        looked_at += extents.len();
        let begun = at;
        for extent in extents {
            if found.kept.len() > EXTENTS_MAX {
                break;
            }
            at = found.take(at, bytes, extent);
        }
        if found.kept.len() > EXTENTS_MAX {
            found.unknown_from = found.kept.pop().map(|extent| extent.logical);
            return Ok(found);
        }
        // A file system that repeats itself ends here too.
        if is_last || at <= begun {
            break;
        }
        if looked_at >= LOOKED_AT_MAX {
            found.unknown_from = (at < bytes).then_some(at);
            return Ok(found);
        }
    }
    if at < bytes {
        found.omitted.holes.add(bytes - at);
    }
    Ok(found)
}

impl Extents {
    /// Of a device: one, from its beginning on.
    pub(super) fn whole(bytes: u64) -> Self {
        let whole = RawExtent {
            logical: 0,
            physical: 0,
            bytes,
            flags: 0,
        };
        Self {
            kept: vec![whole],
            ..Self::default()
        }
    }

    /// Takes the next extent of the file, whose end so far is `at`; returns the new end.
    fn take(&mut self, at: u64, file_bytes: u64, extent: RawExtent) -> u64 {
        // The kernel's list is in order; the list of a file that changes meanwhile may not be, and is cut.
        let begin = extent.logical.max(at);
        let end = extent.logical.saturating_add(extent.bytes).min(file_bytes);
        if begin >= end {
            return at;
        }
        if begin > at {
            self.omitted.holes.add(begin - at);
        }
        if let Some(omitted) = self.omitted.of(extent.flags) {
            omitted.add(end - begin);
            return end;
        }
        let physical = extent.physical.saturating_add(begin - extent.logical);
        match self.kept.last_mut() {
            Some(last)
                if last.logical + last.bytes == begin
                    && last.physical.checked_add(last.bytes) == Some(physical) =>
            {
                last.bytes += end - begin;
                last.flags |= extent.flags;
            }
            _ => self.kept.push(RawExtent {
                logical: begin,
                physical,
                bytes: end - begin,
                flags: extent.flags,
            }),
        }
        end
    }
}

#[cfg(test)]
mod tests;
