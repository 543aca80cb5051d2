//! Why the geometry of a file is not known, in words that a user can act on.
//!
//! Returned by [`Discovery`](super::Discovery). None of them stops a read: the file counts as lying in one
//! run on one device then. Messages name the call or the file that was refused, and the right it takes.

use std::io;
use std::path::PathBuf;

/// See the [module](self).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Its attributes cannot be read.
    #[error("fstat was refused: {0}")]
    Attributes(io::Error),
    /// Neither a regular file nor a block device.
    #[error("it is neither a regular file nor a block device")]
    NotAFile,
    /// A file system whose addresses may be of several devices, of none, or of a server.
    #[error("its file system (type {0:#x}) is not known to give addresses of its device")]
    FileSystem(u32),
    /// The file system gives no extents.
    #[error("its file system refused FIEMAP: {0}")]
    Fiemap(io::Error),
    /// The chunk tree is for root.
    #[error("BTRFS_IOC_TREE_SEARCH was refused: {error}{hint}", error = .0, hint = needs_root(.0))]
    TreeSearch(io::Error),
    /// btrfs does not say which file system or device it is.
    #[error("btrfs refused {call}: {error}")]
    Btrfs {
        /// The call.
        call: &'static str,
        /// The original error.
        error: io::Error,
    },
    /// Another tree says where the data of a striped chunk is.
    #[error("btrfs has a RAID stripe tree, which is not read")]
    StripeTree,
    /// A profile of btrfs of a later kernel.
    #[error("btrfs has a chunk of a profile that is not known: {0:#x}")]
    Profile(u64),
    /// The table of a mapped device is for root.
    #[error("the table of the mapped device {name} was refused (DM_TABLE_STATUS): {error}{hint}", hint = needs_root(error))]
    Table {
        /// `dm-0`.
        name: String,
        /// The original error.
        error: io::Error,
    },
    /// A mapped device that is none of linear and striped.
    #[error("the mapped device {name} has a target that is not known: {target}")]
    Target {
        /// `dm-0`.
        name: String,
        /// `crypt`.
        target: String,
    },
    /// A file of sysfs cannot be read or says something unexpected.
    #[error("{}: {why}", path.display())]
    Sysfs {
        /// Which file.
        path: PathBuf,
        /// The original error, or the text.
        why: String,
    },
    /// A level of md that has no strips, or none that are known.
    #[error("{name} has a level or layout that is not known: {level}, layout {layout}")]
    Level {
        /// `md0`.
        name: String,
        /// `raid5`.
        level: String,
        /// By its number.
        layout: u32,
    },
    /// The map changes while it is read.
    #[error("{name} is being reshaped")]
    Reshape {
        /// `md0`.
        name: String,
    },
    /// An array runs without one of its members.
    #[error("{array} runs without one of its members")]
    MemberMissing {
        /// `md0`, or the chunk of btrfs.
        array: String,
    },
    /// Devices on devices on devices.
    #[error("more than {0} block devices lie on each other")]
    TooDeep(u32),
    /// An extent's address is none of its array's.
    #[error("an extent lies at address {0}, which belongs to no chunk or device")]
    NoSuchAddress(u64),
    /// No extent has a place.
    #[error("no part of it has a place on a device{hint}", hint = if *delayed { ": it is not written yet" } else { "" })]
    Nowhere {
        /// The file system has not chosen places yet.
        delayed: bool,
    },
    /// A block would be cut.
    #[error("its strip of {strip} bytes is no multiple of the block of {block} bytes")]
    Strip {
        /// Bytes of a strip.
        strip: u64,
        /// Bytes of a block.
        block: u32,
    },
}

/// The hint behind an error that root does not get.
fn needs_root(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "; it takes root (CAP_SYS_ADMIN)",
        _ => "",
    }
}
