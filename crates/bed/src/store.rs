//! An image: the bytes of one emulated disk, kept in two sparse files in tmpfs.
//!
//! The [`export`](crate::export) reads and writes it. A block that follows from its tag
//! ([`content`]) is kept as the tag alone, any other as it is:
//!
//! ```text
//! diskN.tags   8 bytes a block: its tag, or 0
//! diskN.raw    4096 bytes a block: its bytes where the tag is 0, else a hole or stale
//! ```
//!
//! tmpfs, because the image must not compete for the page cache it is there to test: dropping
//! caches would drop an image on disk too, and the next read would be late. A block never written
//! reads as zeros. Takes no time beyond the copying; the cost of a read is not decided here.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::content::{self, BLOCK_BYTES, Block};

/// See the [module](self).
#[derive(Debug)]
pub struct Store {
    raw: File,
    tags: File,
    bytes: u64,
}

impl Store {
    /// Opens the image `name` of `bytes` bytes in a folder, making it empty if it is not there.
    ///
    /// # Errors
    /// The folder's.
    pub fn open(folder: &Path, name: &str, bytes: u64) -> io::Result<Self> {
        let open = |end: &str, length: u64| {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false);
            let file = options.open(folder.join(format!("{name}.{end}")))?;
            file.set_len(length)?;
            Ok::<_, io::Error>(file)
        };
        let blocks = bytes.div_ceil(BLOCK_BYTES as u64);
        Ok(Self {
            raw: open("raw", blocks * BLOCK_BYTES as u64)?,
            tags: open("tags", blocks * 8)?,
            bytes,
        })
    }

    /// The size of the disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads from `at`; at the end of the disk, up to the end.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.bytes.saturating_sub(at)).unwrap_or(usize::MAX);
        let length = length.min(left);
        if length == 0 {
            return Ok(Vec::new());
        }
        let (first, skip) = place(at);
        let blocks = (skip + length).div_ceil(BLOCK_BYTES);
        let mut bytes = self.read_blocks(first, blocks)?;
        bytes.truncate(skip + length);
        bytes.drain(..skip);
        Ok(bytes)
    }

    fn read_blocks(&self, first: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut tags = vec![0; count * 8];
        self.tags.read_exact_at(&mut tags, first * 8)?;
        let mut bytes = vec![0; count * BLOCK_BYTES];
        if tags.chunks(8).any(|tag| tag == [0; 8]) {
            self.raw
                .read_exact_at(&mut bytes, first * BLOCK_BYTES as u64)?;
        }
        for (tag, block) in tags.as_chunks().0.iter().zip(bytes.chunks_mut(BLOCK_BYTES)) {
            match u64::from_le_bytes(*tag) {
                0 => {}
                tag => content::expand(tag, block),
            }
        }
        Ok(bytes)
    }

    /// Writes at `at`. A block written in part is read, changed and written.
    ///
    /// # Errors
    /// Errors of the files; a write beyond the end of the disk.
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if at
            .checked_add(bytes.len() as u64)
            .is_none_or(|end| end > self.bytes)
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (mut index, mut skip) = place(at);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(BLOCK_BYTES - skip));
            match piece.first_chunk::<BLOCK_BYTES>() {
                Some(whole) => self.write_block(index, whole)?,
                None => self.patch_block(index, skip, piece)?,
            }
            (index, skip, rest) = (index + 1, 0, after);
        }
        Ok(())
    }

    fn patch_block(&self, index: u64, skip: usize, piece: &[u8]) -> io::Result<()> {
        let mut block = self.read_blocks(index, 1)?;
        block[skip..skip + piece.len()].copy_from_slice(piece);
        block
            .first_chunk()
            .map_or(Ok(()), |block| self.write_block(index, block))
    }

    fn write_block(&self, index: u64, block: &Block) -> io::Result<()> {
        let tag = content::recognize(block);
        if tag.is_none() {
            self.raw.write_all_at(block, index * BLOCK_BYTES as u64)?;
        }
        self.tags
            .write_all_at(&tag.unwrap_or(0).to_le_bytes(), index * 8)
    }
}

/// The block of a position, and how far into it the position lies.
fn place(at: u64) -> (u64, usize) {
    let size = BLOCK_BYTES as u64;
    (at / size, usize::try_from(at % size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_was_written_is_read_whatever_the_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "disk0", 100_000).unwrap();
        let mut model = vec![0_u8; 100_000];
        let mut block = [0; BLOCK_BYTES];
        let mut state = 1_u64;
        for round in 0..400 {
            state = content::tag(1, state, round);
            let at = usize::try_from(state % 99_000).unwrap();
            let length = usize::try_from(state >> 32).unwrap() % 9_000;
            let length = length.min(100_000 - at);
            let bytes = if round % 3 == 0 {
                content::expand(content::tag(1, 2, round), &mut block);
                let aligned = at / BLOCK_BYTES * BLOCK_BYTES;
                let length = BLOCK_BYTES.min(100_000 - aligned);
                store.write(aligned as u64, &block[..length]).unwrap();
                model[aligned..aligned + length].copy_from_slice(&block[..length]);
                continue;
            } else {
                vec![u8::try_from(round % 251).unwrap(); length]
            };
            store.write(at as u64, &bytes).unwrap();
            model[at..at + length].copy_from_slice(&bytes);
            let from = at.saturating_sub(777);
            let read = store.read(from as u64, 10_000).unwrap();
            assert_eq!(read, model[from..(from + 10_000).min(100_000)]);
        }
        assert_eq!(store.read(0, 1 << 20).unwrap(), model);
    }

    #[test]
    fn generated_blocks_take_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "disk0", 1 << 20).unwrap();
        let mut block = [0; BLOCK_BYTES];
        for index in 0..256 {
            content::expand(content::tag(1, 1, index), &mut block);
            store.write(index * BLOCK_BYTES as u64, &block).unwrap();
        }
        assert_eq!(store.raw.metadata().unwrap().blocks(), 0);
        assert_eq!(store.read(255 * 4096, 4096).unwrap(), block);
    }

    #[test]
    fn nothing_is_written_past_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "disk0", 10_000).unwrap();
        assert!(store.write(9_999, &[1, 2]).is_err());
        assert!(store.write(u64::MAX, &[1]).is_err());
        assert_eq!(store.read(9_999, 2).unwrap(), [0]);
        assert!(store.read(10_000, 1).unwrap().is_empty());
    }
}
