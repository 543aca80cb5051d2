//! Where files lie: which device, which position.
//!
//! File i lies on device i modulo their number; on a device files follow each other, each at a
//! block boundary and with one block between, so that no read runs from one file into the next.
//! Files are contiguous; extent maps will come with the layouts that need them.

use forerun_core::units::Extent;
use forerun_core::{Bytes, FileId};

use super::WorldError;

/// A file of the world.
#[derive(Debug)]
pub(super) struct File {
    pub(super) device: usize,
    pub(super) location: Bytes,
    pub(super) bytes: Bytes,
    pub(super) blocks: u64,
    /// The reader that asked for something of it last; pays for what is fetched of it.
    pub(super) last_reader: Option<usize>,
}

impl File {
    /// Where an extent lies on the device, and how many bytes of it there are: the last block of
    /// a file may be partial.
    pub(super) fn bytes_of(&self, extent: &Extent, block_bytes: u64) -> (Bytes, Bytes) {
        let start = u64::from(extent.first.0) * block_bytes;
        let end = (extent.end() * block_bytes).min(self.bytes.0);
        (
            Bytes(self.location.0.saturating_add(start)),
            Bytes(end.saturating_sub(start)),
        )
    }
}

/// Where each file begins on a single device.
pub(crate) fn begins(sizes: &[Bytes], block_bytes: u64) -> Vec<u64> {
    let files = place(sizes, 1, block_bytes).unwrap_or_default();
    files.iter().map(|file| file.location.0).collect()
}

/// Lays the files out: file i on device i modulo their number, one after the other, each at a
/// block boundary with one block between, so that no read runs from one file into the next.
pub(super) fn place(
    sizes: &[Bytes],
    devices: usize,
    block_bytes: u64,
) -> Result<Vec<File>, WorldError> {
    if sizes.len() > FileId::LIMIT as usize {
        return Err(WorldError::Count(sizes.len()));
    }
    let mut next = vec![0u64; devices];
    sizes
        .iter()
        .enumerate()
        .map(|(at, &bytes)| {
            let blocks = bytes.0.div_ceil(block_bytes);
            if blocks > u64::from(u32::MAX) {
                return Err(WorldError::FileSize(at));
            }
            let device = at % devices;
            let location = Bytes(next[device]);
            next[device] = location.0.saturating_add((blocks + 1) * block_bytes);
            Ok(File {
                device,
                location,
                bytes,
                blocks,
                last_reader: None,
            })
        })
        .collect()
}
