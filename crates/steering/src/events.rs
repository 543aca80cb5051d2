//! Events of a kernel's readahead and its disks.

use forerun_core::Nanos;

/// Why the kernel's readahead was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The page is missing.
    Miss,
    /// The page carries the mark of the window before.
    Mark,
}

/// The kernel's readahead was asked for a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// When.
    pub time: Nanos,
    /// Why.
    pub cause: Cause,
    /// The process that reads, and its thread.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The file system, as the kernel numbers it: major in the upper 12 bits of 32.
    pub device: u32,
    /// The file.
    pub inode: u64,
    /// The page.
    pub index: u64,
    /// Pages of the window before this decision, and those of them behind its mark.
    pub size: u32,
    /// Pages behind its mark.
    pub async_size: u32,
    /// The open file's limit of a window, in pages.
    pub limit: u32,
    /// Pages that the read asks for.
    pub asked: u64,
}

impl Ahead {
    /// Its file.
    #[must_use]
    pub fn file(&self) -> FileKey {
        FileKey {
            device: self.device,
            inode: self.inode,
        }
    }
}

/// A request went to a disk, or came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When.
    pub time: Nanos,
    /// Whether it came back.
    pub is_complete: bool,
    /// The disk.
    pub device: u32,
    /// Its first sector, of 512 bytes.
    pub sector: u64,
    /// Its sectors.
    pub sectors: u64,
}

/// The file of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileKey {
    /// Number of the file system.
    pub device: u32,
    /// Inode.
    pub inode: u64,
}
