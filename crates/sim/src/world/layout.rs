//! Where files lie: which devices, which positions.
//!
//! File i lies on device i modulo their number, or all files are striped over all devices. On a
//! device files follow each other, each at a block boundary and with one block between, so that no
//! read runs from one file into the next (packed ones with none); striped ones each at a row of strips, with one row
//! between. Files are contiguous.

use forerun_core::layout::LayoutMap;
use forerun_core::units::Extent;
use forerun_core::{Bytes, DeviceId, FileId, Placement};

use super::WorldError;

/// A file of the world.
#[derive(Debug)]
pub(super) struct File {
    pub(super) placement: Placement,
    layout: LayoutMap,
    pub(super) bytes: Bytes,
    pub(super) blocks: u64,
    /// The reader that asked for something of it last; pays for what is fetched of it.
    pub(super) last_reader: Option<usize>,
}

/// Where an extent lies, if one device holds it in one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) device: DeviceId,
    pub(super) at: Bytes,
    /// How many bytes of it there are: the last block of a file may be partial.
    pub(super) bytes: Bytes,
}

impl File {
    /// Where an extent lies. None if that is not one run of one device.
    pub(super) fn run_of(&self, extent: &Extent, block_bytes: u64) -> Option<Run> {
        let start = u64::from(extent.first.0) * block_bytes;
        let end = (extent.end() * block_bytes).min(self.bytes.0);
        let bytes = Bytes(end.saturating_sub(start));
        let place = self.layout.place(start);
        (bytes <= place.run).then_some(Run {
            device: place.device,
            at: place.position,
            bytes,
        })
    }
}

/// Where each file begins on a single device.
pub(crate) fn begins(sizes: &[Bytes], block_bytes: u64, is_packed: bool) -> Vec<u64> {
    let mut next = 0u64;
    let begins = sizes.iter().map(|bytes| {
        let begin = next;
        let gap = u64::from(!is_packed);
        let blocks = bytes.0.div_ceil(block_bytes).saturating_add(gap);
        next = next.saturating_add(blocks.saturating_mul(block_bytes));
        begin
    });
    begins.collect()
}

/// Lays the files out over so many devices, one by one or all in strips.
pub(super) fn place(
    sizes: &[Bytes],
    devices: usize,
    strip: Option<Bytes>,
    block_bytes: u64,
    is_packed: bool,
) -> Result<Vec<File>, WorldError> {
    if sizes.len() > FileId::LIMIT as usize {
        return Err(WorldError::Count(sizes.len()));
    }
    let mut next = vec![0u64; devices];
    let mut files = Vec::with_capacity(sizes.len());
    for (at, &bytes) in sizes.iter().enumerate() {
        let blocks = bytes.0.div_ceil(block_bytes);
        if blocks > u64::from(u32::MAX) {
            return Err(WorldError::FileSize(at));
        }
        let (device, unit, wide) = match strip {
            Some(strip) => (0, strip.0.max(1), devices as u64),
            None => (at % devices, block_bytes, 1),
        };
        let location = Bytes(next[device]);
        let rows = bytes
            .0
            .div_ceil(unit.saturating_mul(wide))
            .saturating_add(u64::from(!is_packed || strip.is_some()));
        next[device] = location.0.saturating_add(rows.saturating_mul(unit));
        let placement = match strip {
            Some(strip) => Placement::raid0(strip, numbers(devices), location).ok(),
            None => Some(Placement::linear(DeviceId(device as u16), location)),
        };
        let placed = placement.and_then(|placement| {
            let layout = LayoutMap::new(&placement, block_bytes as u32)?;
            Some((placement, layout))
        });
        let Some((placement, layout)) = placed else {
            return Err(WorldError::Strip(strip.unwrap_or_default()));
        };
        files.push(File {
            placement,
            layout,
            bytes,
            blocks,
            last_reader: None,
        });
    }
    Ok(files)
}

fn numbers(devices: usize) -> impl Iterator<Item = DeviceId> {
    // No more than 2^16 are allowed.
    (0..devices).map(|device| DeviceId(device as u16))
}
