//! Geometry: which devices a file lies on, strip by strip, asked of the system.
//!
//! A request that crosses a strip of an array occupies two disks, and a window shorter than a stripe
//! leaves disks idle; neither can be seen in the offsets of a file. Linux tells the map in two steps:
//! `FIEMAP` gives each extent of the file an address, and the owner of the addresses says which array
//! has them. Three kinds of owner are asked, of which one may lie on the other:
//!
//! ```text
//! btrfs    addresses of its chunks          BTRFS_IOC_TREE_SEARCH (root)      btrfs.rs
//! others   addresses of a block device:
//!            md                             /sys/block/mdN/md                 md.rs
//!            dm linear, striped             DM_TABLE_STATUS (root)            dm.rs
//!            a partition, a disk            /sys/dev/block, queue sizes       block.rs
//!
//! file 0..192K --FIEMAP--> 13979615232 --chunk 13958643712--> raid0 of 4, address 20 MiB
//!      strip 320 of that: member 0, 5 MiB behind where the chunk begins on /dev/loop0
//! ```
//!
//! The map decides the shape and the order of requests; bytes are always read through the file system.
//! So a map that is out of date costs time and never content. [`Discovery`] asks and remembers;
//! [`Geometry::placement`] gives the result to the engine. Nothing here writes, not even by flushing
//! delayed extents, and nothing waits for a server.

mod block;
mod btrfs;
mod discovery;
mod dm;
mod fiemap;
mod ioctl;
mod md;
mod place;
mod refusal;
mod space;
mod tables;

use std::fmt;
use std::path::PathBuf;

use forerun_core::Bytes;

pub use discovery::Discovery;
pub use fiemap::{Omissions, Omitted};
pub use place::MemberBytes;
pub use refusal::Refusal;

/// Extents are rounded to whole pages of this size: no smaller run is read.
pub const UNIT_BYTES: u64 = 4096;

/// How a file lies on the devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// How it was found.
    pub source: GeometrySource,
    /// Size of the file.
    pub bytes: Bytes,
    /// The arrays that hold a part of the file, by their number in [`FileExtent::array`].
    pub arrays: Vec<DiskArray>,
    /// The extents that have a place, in the order of the file. At most
    /// [`EXTENTS_MAX`](forerun_core::layout::map::EXTENTS_MAX).
    pub extents: Vec<FileExtent>,
    /// Where the file was not looked at any more because it has too many extents; from there on it
    /// counts as one run with the last extent.
    pub unknown_from: Option<Bytes>,
    /// Which copy a read takes, where there are several.
    pub copy_choice: CopyChoice,
    /// Parts of the file without a place.
    pub omitted: Omissions,
    /// The first extents as the file system told them, for [`Discovery::is_still`].
    pub(crate) beginning: fiemap::Fingerprint,
}

/// The origin of the geometry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GeometrySource {
    /// The chunk tree of btrfs.
    Btrfs,
    /// sysfs, for md.
    Md,
    /// The table of the device mapper.
    DeviceMapper,
    /// `minimum_io_size` and `optimal_io_size` of a disk: a controller's strip and stripe.
    QueueSizes,
    /// A disk that says nothing of an array.
    Disk,
}

/// How the kernel chooses the copy that a read takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CopyChoice {
    /// By rules of its own, such as the nearest head.
    Kernel,
    /// By the number of the thread that reads (`gettid`) modulo the number of copies: the policy `pid` of
    /// btrfs, its default. One thread always reads the same copy.
    ThreadNumber,
}

/// An array: an address space of its own, spread over members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskArray {
    /// How.
    pub level: Level,
    /// Bytes that lie in one run on a member; 0 where there are no strips.
    pub strip: Bytes,
    /// Its members, in the order of the strips of the first row; parity comes last there.
    pub members: Vec<DiskMember>,
}

/// How the addresses of an array are spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Level {
    /// One member has all.
    Linear,
    /// Strips by turns.
    Raid0,
    /// Each member has all: a read is served by any of them.
    Raid1,
    /// All is there twice on one device; the first copy is read.
    Dup,
    /// Strips by turns on groups of so many members with equal content.
    Raid10 {
        /// Members of a group.
        copies: u8,
    },
    /// Strips by turns, with one parity a row.
    Raid5(Rotation),
    /// Strips by turns, with two parities a row.
    Raid6(Rotation),
}

/// Which way the places of a row move in the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rotation {
    /// One member to the left, as md does (left-symmetric).
    Left,
    /// One to the right, as btrfs does.
    Right,
}

/// A device's part of an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DiskMember {
    /// The device: of a partition, its disk.
    pub device: BlockDevice,
    /// Which of the disks behind one controller it is; 0 where the device is one disk.
    pub part: u16,
    /// Where the array begins there.
    pub begin: Bytes,
}

/// A block device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BlockDevice {
    /// `/dev/sda`.
    pub path: PathBuf,
    /// Its major and minor number.
    pub number: (u32, u32),
}

/// A run of a file that lies in one run of an array; in whole units of [`UNIT_BYTES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileExtent {
    /// Where in the file it begins.
    pub offset: Bytes,
    /// On which of the arrays.
    pub array: u16,
    /// At which address of that.
    pub at: Bytes,
    /// How long it is.
    pub bytes: Bytes,
    /// The flags that FIEMAP gave it, by `linux/fiemap.h`.
    pub flags: u32,
}

impl Level {
    /// `raid10`, as the engine's layouts are called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Dup => "dup",
            Self::Raid10 { .. } => "raid10",
            Self::Raid5(_) => "raid5",
            Self::Raid6(_) => "raid6",
        }
    }
}

impl Geometry {
    /// Whether a part of the file lies in strips on several devices.
    #[must_use]
    pub fn is_striped(&self) -> bool {
        let several = |array: &DiskArray| array.strip.0 > 0 && array.members.len() > 1;
        self.arrays.iter().any(several)
    }
}

impl fmt::Display for GeometrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Btrfs => "the chunk tree of btrfs",
            Self::Md => "the files of md in sysfs",
            Self::DeviceMapper => "the table of the device mapper",
            Self::QueueSizes => "the minimum and optimal request size of the disk",
            Self::Disk => "sysfs, where the disk is not known to be an array",
        })
    }
}
