//! The system calls of the discovery, each with a buffer of bytes that others read.
//!
//! All the unsafe code of [`geometry`](super). A call gets a buffer of its exact size, filled in by its
//! reader module, and is one of a closed list, so that no caller can pair a number with a smaller buffer.
//! A wrong argument is refused by the kernel (`EINVAL`), and its answer is bytes like any others.
//!
//! No test under Miri is possible: it has no such calls. The readers of the buffers are tested with
//! recorded and with random bytes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Extents that one `FIEMAP` returns at most: 14 KiB of buffer, and as long a stay in the kernel.
pub(super) const FIEMAP_EXTENTS: usize = 256;
/// `struct fiemap`, and `struct fiemap_extent` behind it.
pub(super) const FIEMAP_HEAD: usize = 32;
pub(super) const FIEMAP_EXTENT: usize = 56;
const FIEMAP_BYTES: usize = FIEMAP_HEAD + FIEMAP_EXTENTS * FIEMAP_EXTENT;

/// By `linux/fs.h`, `linux/btrfs.h` and `linux/dm-ioctl.h`: direction, size of the structure, group and
/// number.
const FS_IOC_FIEMAP: u64 = 0xc020_660b;
const BTRFS_IOC_TREE_SEARCH: u64 = 0xd000_9411;
const BTRFS_IOC_DEV_INFO: u64 = 0xd000_941e;
const BTRFS_IOC_FS_INFO: u64 = 0x8400_941f;
const DM_TABLE_STATUS: u64 = 0xc138_fd0c;

/// The buffer of `FIEMAP`.
pub(super) type FiemapBuffer = [u8; FIEMAP_BYTES];
/// The buffer of most calls of btrfs.
pub(super) type Page = [u8; 4096];
/// The buffer of `FS_INFO`.
pub(super) type FsInfo = [u8; 1024];
/// A table of 64 KiB has a thousand targets; `DM_BUFFER_FULL_FLAG` says that it was more.
pub(super) type TableBuffer = [u8; 1 << 16];

/// `struct dm_ioctl`: where its `data_size` is.
const DM_DATA_SIZE: usize = 12;

fn call<const N: usize>(
    file: BorrowedFd<'_>,
    request: u64,
    buffer: &mut [u8; N],
) -> io::Result<()> {
    // SAFETY: the descriptor is open for the call. Each caller below pairs the request with a buffer that is
    // at least as long as the structure the request is made for, plus, for the two of variable length, as
    // many bytes as the caller has written into its count, so the kernel writes inside of it. The kernel
    // copies to user memory byte by byte: no alignment is owed.
    let failed = unsafe { libc::ioctl(file.as_raw_fd(), request as _, buffer.as_mut_ptr()) } != 0;
    match failed {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}

/// The extents of a file from an offset on.
pub(super) fn fiemap(
    file: BorrowedFd<'_>,
    start: u64,
    extents: u32,
    buffer: &mut FiemapBuffer,
) -> io::Result<()> {
    buffer.fill(0);
    buffer[0..8].copy_from_slice(&start.to_ne_bytes());
    buffer[8..16].copy_from_slice(&(u64::MAX - start).to_ne_bytes());
    // No flag: `FIEMAP_FLAG_SYNC` would write delayed extents, and this only reads.
    let extents = extents.min(FIEMAP_EXTENTS as u32);
    buffer[24..28].copy_from_slice(&extents.to_ne_bytes());
    call(file, FS_IOC_FIEMAP, buffer)
}

/// Items of a tree of btrfs.
pub(super) fn tree_search(file: BorrowedFd<'_>, page: &mut Page) -> io::Result<()> {
    call(file, BTRFS_IOC_TREE_SEARCH, page)
}

/// A device of a btrfs.
pub(super) fn dev_info(file: BorrowedFd<'_>, page: &mut Page) -> io::Result<()> {
    call(file, BTRFS_IOC_DEV_INFO, page)
}

/// Which btrfs it is.
pub(super) fn fs_info(file: BorrowedFd<'_>, buffer: &mut FsInfo) -> io::Result<()> {
    call(file, BTRFS_IOC_FS_INFO, buffer)
}

/// The table of a mapped device, whose number is written in the buffer.
pub(super) fn table_status(state: BorrowedFd<'_>, buffer: &mut TableBuffer) -> io::Result<()> {
    let bytes = (buffer.len() as u32).to_ne_bytes();
    buffer[DM_DATA_SIZE..DM_DATA_SIZE + 4].copy_from_slice(&bytes);
    call(state, DM_TABLE_STATUS, buffer)
}

/// The answer of `fstat` for a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub(super) is_regular: bool,
    pub(super) is_block_device: bool,
    /// The device it is on, or of a block device which it is.
    pub(super) device: (u32, u32),
    /// Of a regular file.
    pub(super) bytes: u64,
}

pub(super) fn attributes(file: BorrowedFd<'_>) -> io::Result<Attributes> {
    // SAFETY: an all-zero `stat` is a valid value of a plain C structure.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the structure is ours for the call.
    if unsafe { libc::fstat(file.as_raw_fd(), &raw mut found) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let kind = found.st_mode & libc::S_IFMT;
    let is_block_device = kind == libc::S_IFBLK;
    let device = match is_block_device {
        true => found.st_rdev,
        false => found.st_dev,
    };
    Ok(Attributes {
        is_regular: kind == libc::S_IFREG,
        is_block_device,
        device: (libc::major(device), libc::minor(device)),
        bytes: u64::try_from(found.st_size).unwrap_or(0),
    })
}
