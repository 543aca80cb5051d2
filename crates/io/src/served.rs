//! Which file systems are served: their calls end when a server answers, perhaps never.
//!
//! A call of a local file system waits for a disk at most, and `fstat` for nothing at all. One of FUSE
//! or of a network file system waits for another program. Files there are read by threads of their device
//! alone ([`backend::pread`](crate::backend::pread)) and have a bounded share of the memory, so that a
//! server that is silent holds up its own files and no others.
//!
//! A file system that is not in the list counts as served: that is slower, never wrong.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `f_type` of local file systems, by `linux/magic.h`.
const LOCAL: &[u32] = &[
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // btrfs
    0xca45_1a4e, // bcachefs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0x0102_1994, // tmpfs, devtmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // EROFS
    0x9660,      // ISO 9660
    0x1501_3346, // UDF
    0x4d44,      // FAT
    0x2011_bab0, // exFAT
    0x7366_746e, // NTFS
    0x3153_464a, // JFS
    0x3434,      // NILFS
    0x9fa0,      // proc
    0x6265_6572, // sysfs
];

/// Whether the file system of an open file is served. Asks it, so this may wait for its server.
#[must_use]
pub fn is_served(file: BorrowedFd<'_>) -> bool {
    // One of unknown type is none of these.
    !LOCAL.contains(&file_system(file))
}

/// `f_type` of file systems whose files are made as they are read, and have a page by their size, by `linux/magic.h`.
const MADE: &[u32] = &[
    0x6265_6572, // sysfs
    0x6265_6570, // configfs
];

/// Whether files of this file system are made as they are read.
pub(crate) fn is_made_as_it_is_read(file: BorrowedFd<'_>) -> bool {
    MADE.contains(&file_system(file))
}

/// Whether a server of FUSE can have another channel beside this one, which is connected
/// (`FUSE_DEV_IOC_CLONE`): the kernel may lack it, and a container refuse it.
#[must_use]
pub fn can_clone_channel(channel: &impl AsRawFd) -> bool {
    /// `_IOR(229, 0, uint32_t)` of `linux/fuse.h`.
    const CLONE: libc::Ioctl = 0x8004_e500_u32 as libc::Ioctl;
    let Ok(another) = File::options().read(true).write(true).open("/dev/fuse") else {
        return false;
    };
    let number = channel.as_raw_fd().cast_unsigned();
    // SAFETY: both descriptors are open, and the number is read from memory that is ours for the call.
    unsafe { libc::ioctl(another.as_raw_fd(), CLONE, &raw const number) == 0 }
}

/// `f_type` of an open file's file system; 0 if it does not say.
pub(crate) fn file_system(file: BorrowedFd<'_>) -> u32 {
    // SAFETY: an all-zero `statfs` is a valid value of a plain C structure.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the structure is ours for the call.
    let failed = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut found) } != 0;
    // The field is signed on some architectures; a magic number has 32 bits.
    if failed { 0 } else { found.f_type as u32 }
}

/// A digest of the handle of an open file (`name_to_handle_at(2)`): where a server gives several files one
/// inode number, it tells them apart. 0 if the file system has no handles. No server is asked.
///
/// A server may give a file another handle once neither a program nor the kernel has it.
#[must_use]
pub fn handle(file: BorrowedFd<'_>) -> u64 {
    /// `struct file_handle`, with room for the longest (`MAX_HANDLE_SZ`).
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        handle: [u8; 128],
    }
    let mut found = Handle {
        bytes: 128,
        kind: 0,
        handle: [0; 128],
    };
    let mut mount: libc::c_int = 0;
    // SAFETY: the descriptor is open, the name is empty and ends with a zero, and both structures are
    // ours for the call, the first with the room that it says.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file.as_raw_fd(),
            c"".as_ptr(),
            &raw mut found,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    } != 0;
    let handle = found.handle.get(..found.bytes as usize);
    let Some(handle) = handle.filter(|_| !failed) else {
        return 0;
    };
    let mut hasher = DefaultHasher::new();
    (found.kind, handle).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_descriptor_that_is_no_channel_is_not_cloned() {
        assert!(!can_clone_channel(&File::open("/dev/null").unwrap()));
    }

    #[test]
    fn a_handle_is_the_same_for_a_file_and_another_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = folder.path().join(name);
            let file = File::options();
            let file = file.clone().append(true).create(true).open(path).unwrap();
            handle(file.as_fd())
        };
        let (one, other) = (open("one"), open("other"));
        assert_eq!(open("one"), one);
        assert!(one != other || one == 0, "{one}");
        let none = File::open("/proc/self/status").unwrap();
        assert_eq!(handle(none.as_fd()), 0);
    }

    #[test]
    fn a_file_of_this_kernel_is_not_served() {
        let file = File::open("/proc/self/status").unwrap();
        assert!(!is_served(file.as_fd()));
    }
}
