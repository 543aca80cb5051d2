//! Where on its device a file begins, asked of its file system (`FS_IOC_FIEMAP`).
//!
//! Distances between requests mean something only if files lie where the engine believes. One call
//! at the first open of a file gives its first extent; the rest is taken to follow it, as it mostly
//! does. It takes about a microsecond, so small files, of which there are many, keep the places that
//! the catalog makes up, and so do files whose extents have no place: not written
//! yet, compressed, inside the inode. File systems behind a server are not asked: they may not answer.
//! A mount asks for small files that it opens ahead, to have them fetched in the order of the disk.

use std::os::fd::{AsRawFd, BorrowedFd};

use forerun_core::Bytes;

/// Files below are read in one request, or in few: opening a file takes 10 us, and ten thousand
/// small ones should not take 10 % longer.
pub(crate) const BYTES_MIN: u64 = 1 << 20;

/// `FS_IOC_FIEMAP`, by `linux/fs.h`: `_IOWR('f', 11, struct fiemap)`.
const FIEMAP: libc::c_ulong = 0xc020_660b;

/// Extents without a place, by `linux/fiemap.h`: unknown, not allocated yet, encoded, not aligned,
/// inside metadata, in a tail.
const NOWHERE: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400;

/// `struct fiemap` with room for one `struct fiemap_extent`.
#[repr(C)]
#[derive(Default)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extent: Extent,
}

#[repr(C)]
#[derive(Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// Where the first byte of a file of a local file system lies on its device, if it says so.
#[must_use]
pub fn of(file: BorrowedFd<'_>) -> Option<Bytes> {
    let mut map = Map {
        length: u64::MAX,
        count: 1,
        ..Map::default()
    };
    // SAFETY: the descriptor is open, and the structure is ours for the call and has room for as many
    // extents as it says.
    let refused = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut map) } != 0;
    (!refused && map.mapped > 0).then(|| place(&map.extent))?
}

/// Where a file begins whose first extent is this one.
fn place(first: &Extent) -> Option<Bytes> {
    let is_somewhere = first.flags & NOWHERE == 0;
    // Behind a hole the extent's place is not the file's.
    is_somewhere.then(|| Bytes(first.physical.saturating_sub(first.logical)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn an_extent_without_a_place_has_none_and_a_hole_before_one_counts() {
        let extent = |logical, physical, flags| Extent {
            logical,
            physical,
            flags,
            ..Extent::default()
        };
        assert_eq!(place(&extent(0, 7 << 20, 0x1)), Some(Bytes(7 << 20)));
        assert_eq!(
            place(&extent(1 << 20, 7 << 20, 0x800)),
            Some(Bytes(6 << 20))
        );
        for flag in [0x2, 0x4, 0x8, 0x100, 0x200, 0x400] {
            assert_eq!(place(&extent(0, 7 << 20, flag)), None, "{flag:#x}");
        }
    }

    #[test]
    fn two_files_lie_at_two_places_and_an_empty_one_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let file = |bytes: usize| {
            let mut file = tempfile::tempfile_in(folder.path()).unwrap();
            file.write_all(&vec![7; bytes]).unwrap();
            file.sync_all().unwrap();
            file
        };
        let (one, other) = (file(2 << 20), file(2 << 20));
        let (Some(first), Some(second)) = (of(one.as_fd()), of(other.as_fd())) else {
            return crate::skipped::skipped("this file system gives no positions (FIEMAP)");
        };
        assert!(first.0.abs_diff(second.0) >= 1 << 20, "{first} {second}");
        assert_eq!(of(file(0).as_fd()), None);
        assert_eq!(of(std::fs::File::open("/dev/null").unwrap().as_fd()), None);
    }
}
