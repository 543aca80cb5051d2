//! Writes the files of a bed: generated content, one file after the other.
//!
//! Called by `up` while the disks do not delay. Written in order and once, so that the file system
//! lays each out in as few extents as it can. Names and sizes follow from the seed, so that a
//! program knows every file without listing anything:
//!
//! ```text
//! folders = 0     0000, 0001, ..                       each synced: nothing is written later
//! folders = 40    d000/f<16 hex digits>, ..            synced by unmounting: a sync for each of
//!                 20,000 small files takes minutes
//! ```
//!
//! The names in folders are drawn, so neither their order nor that of a listing (ext4 lists by a
//! hash of the name) is the order in which the files lie on the disk.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::bed::{Bed, Files, Mix};
use crate::cold::{self, Mode};
use crate::content::{self, BLOCK_BYTES};
use crate::failure::{At, Failure};
use crate::mix;
use crate::plan::BedPaths;

/// Bytes of one write: large enough to cost little, small enough to stay in the processor's cache.
const WRITE_BYTES: usize = 256 * BLOCK_BYTES;

/// The block that names are drawn from: no file has it.
const NAMES: u64 = u64::MAX;
/// The block that sizes are drawn from.
const SIZES: u64 = u64::MAX - 1;

/// The path of a file below the root of the bed.
#[must_use]
pub fn path(files: &Files, number: u64) -> PathBuf {
    if files.folders == 0 {
        return format!("{number:04}").into();
    }
    let name = content::tag(files.seed, number, NAMES);
    format!("{}/f{name:016x}", folder(files, number)).into()
}

/// Files are spread evenly, and one folder is full before the next begins.
fn folder(files: &Files, number: u64) -> String {
    let each = files.count.div_ceil(files.folders.max(1)).max(1);
    format!("d{:03}", number / each)
}

/// The size of a file.
#[must_use]
pub fn size(files: &Files, number: u64) -> u64 {
    if files.mix == Mix::MediaClips {
        return mix::clip_bytes(files.seed, number);
    }
    let more = files.file_bytes_max.unwrap_or(0);
    match more.checked_sub(files.file_bytes) {
        None | Some(0) => files.file_bytes,
        Some(more) => files.file_bytes + content::tag(files.seed, number, SIZES) % (more + 1),
    }
}

/// Fills a folder.
///
/// # Errors
/// The file system's; it is full.
pub fn run(root: &Path, files: &Files) -> Result<(), Failure> {
    let mut made = None;
    for number in 0..files.count {
        if files.folders > 0 {
            let name = folder(files, number);
            if made.as_ref() != Some(&name) {
                let path = root.join(&name);
                fs::create_dir(&path).at(&path)?;
                made = Some(name);
            }
        }
        let path = root.join(path(files, number));
        write(&path, files, number).at(&path)?;
    }
    Ok(())
}

fn write(path: &Path, files: &Files, number: u64) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    let (mut index, mut left) = (0, size(files, number));
    let piece_max = left.min(WRITE_BYTES as u64);
    let mut bytes = vec![0; usize::try_from(piece_max).unwrap_or(WRITE_BYTES)];
    while left > 0 {
        for block in bytes.chunks_mut(BLOCK_BYTES) {
            content::expand(content::tag(files.seed, number, index), block);
            index += 1;
        }
        let piece = left.min(piece_max);
        file.write_all(&bytes[..usize::try_from(piece).unwrap_or(bytes.len())])?;
        left -= piece;
    }
    // A version that was just modified may be read twice.
    file.set_modified(std::time::UNIX_EPOCH)?;
    match files.folders {
        0 => file.sync_all(),
        _ => Ok(()),
    }
}

/// Copies a folder, with all folders in it, onto the file system of a bed that is up, and gives its
/// bytes. Links and other special files are left out.
///
/// # Errors
/// It does not fit, or the bed is in use.
pub fn copy(bed: &Bed, place: &BedPaths, from: &Path, to: &Path) -> Result<u64, Failure> {
    cold::delay(place, false)?;
    cold::unmount(place)?;
    cold::mount(bed, place, Mode::ToFill)?;
    let copied = copy_folder(from, to);
    cold::unmount(place)?;
    cold::mount(bed, place, Mode::ToMeasure)?;
    // A btrfs has a read-ahead of its own, which begins anew with each mount.
    cold::set(bed, place, &bed.queue)?;
    cold::delay(place, true)?;
    copied
}

fn copy_folder(from: &Path, to: &Path) -> Result<u64, Failure> {
    fs::create_dir_all(to).at(to)?;
    let mut bytes = 0;
    for entry in fs::read_dir(from).at(from)? {
        let entry = entry.at(from)?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type().at(from)?;
        if kind.is_dir() {
            bytes += copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            bytes += fs::copy(entry.path(), &target).at(&target)?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_file_is_its_blocks_up_to_its_size() {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), &Files::flat(2, 1_500_000, 3)).unwrap();
        let bytes = std::fs::read(folder.path().join("0001")).unwrap();
        assert_eq!(bytes.len(), 1_500_000);
        for (index, block) in (0..).zip(bytes.chunks(BLOCK_BYTES)) {
            assert!(content::follows(content::tag(3, 1, index), 0, block));
        }
    }

    #[test]
    fn files_in_folders_have_drawn_names_and_sizes_in_any_order() {
        let root = tempfile::tempdir().unwrap();
        let files = Files {
            folders: 3,
            file_bytes_max: Some(9_000),
            ..Files::flat(20, 100, 4)
        };
        run(root.path(), &files).unwrap();
        let paths: Vec<PathBuf> = (0..20).map(|number| path(&files, number)).collect();
        let sorted: BTreeSet<_> = paths.iter().collect();
        assert_eq!(sorted.len(), 20);
        assert!(!paths.is_sorted());
        let folders: BTreeSet<_> = paths.iter().map(|path| path.parent()).collect();
        assert_eq!(folders.len(), 3);
        let sizes = (0..20).map(|number| size(&files, number));
        for (number, (path, size)) in (0..).zip(paths.iter().zip(sizes.clone())) {
            let bytes = fs::read(root.path().join(path)).unwrap();
            assert!((100..=9_000).contains(&size));
            assert_eq!(bytes.len() as u64, size);
            assert!(content::follows(
                content::tag(4, number, 0),
                0,
                &bytes[..100]
            ));
        }
        assert!(sizes.collect::<BTreeSet<_>>().len() > 10);
    }
}
