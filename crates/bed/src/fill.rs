//! Writes the files of a bed: `0000`, `0001`, .. of generated content, one after the other.
//!
//! Called by `up` while the disks do not delay. Written in order and once, so that the file system
//! lays each out in as few extents as it can; synced at the end, so that nothing is written later.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::bed::Files;
use crate::content::{self, BLOCK_BYTES};
use crate::failure::{At, Failure};

/// Bytes of one write: large enough to cost little, small enough to stay in the processor's cache.
const WRITE_BYTES: usize = 256 * BLOCK_BYTES;

/// The name of a file.
#[must_use]
pub fn file_name(number: u64) -> String {
    format!("{number:04}")
}

/// Fills a folder.
///
/// # Errors
/// The file system's; it is full.
pub fn run(folder: &Path, files: &Files) -> Result<(), Failure> {
    for number in 0..files.count {
        let path = folder.join(file_name(number));
        write(&path, files, number).at(&path)?;
    }
    Ok(())
}

fn write(path: &Path, files: &Files, number: u64) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut bytes = vec![0; WRITE_BYTES];
    let (mut index, mut left) = (0, files.file_bytes);
    while left > 0 {
        for block in bytes.chunks_mut(BLOCK_BYTES) {
            content::expand(content::tag(files.seed, number, index), block);
            index += 1;
        }
        let piece = left.min(WRITE_BYTES as u64);
        file.write_all(&bytes[..usize::try_from(piece).unwrap_or(WRITE_BYTES)])?;
        left -= piece;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_its_blocks_up_to_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files {
            count: 2,
            file_bytes: 1_500_000,
            seed: 3,
        };
        run(folder.path(), &files).unwrap();
        let bytes = std::fs::read(folder.path().join("0001")).unwrap();
        assert_eq!(bytes.len(), 1_500_000);
        for (index, block) in (0..).zip(bytes.chunks(BLOCK_BYTES)) {
            assert!(content::follows(content::tag(3, 1, index), 0, block));
        }
    }
}
