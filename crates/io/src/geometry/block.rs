//! Block devices in sysfs: partitions, disks, and the module for the layer below.
//!
//! Asked by [`Discovery`](super::Discovery) for the device that a file system is on, and by the modules
//! of md, dm and btrfs for their members. A partition is its disk from a place on; a device of md or dm is
//! an address space of that module; anything else is a disk. A hardware controller that makes several disks
//! one may give its strip as the least size of a request and its stripe as the best:
//!
//! ```text
//! /sys/block/sda/queue   rotational 1   minimum_io_size 65536   optimal_io_size 262144   -> 4 of 64 KiB
//! ```
//!
//! Flash gives sizes of pages and erase blocks there, and USB bridges the largest request, so that is
//! taken for an array only where the disk turns and both sizes fit together.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use forerun_core::Bytes;

use super::space::Space;
use super::{BlockDevice, DiskArray, DiskMember, GeometrySource, Level, Refusal, dm, md};

/// Units of `start`, `offset` and of tables, whatever the device's own sectors are.
pub(super) const SECTOR: u64 = 512;

/// Devices on each other: LVM on md on partitions is four.
const LEVELS_MAX: u32 = 8;

/// Strips of controllers are powers of two from here on; a smaller least size is a page.
const HINT_STRIP_MIN: u64 = 16 << 10;

/// Disks behind one controller.
const HINT_DISKS_MAX: u64 = 64;

/// The system's answers; a tree of files and a function, so that tests can give theirs.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) sys: PathBuf,
    /// The table of the mapped device of these numbers.
    pub(super) table: fn((u32, u32)) -> io::Result<Vec<u8>>,
}

impl Default for System {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            table: dm::ask,
        }
    }
}

/// A block device with all below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Below {
    pub(super) source: GeometrySource,
    pub(super) space: Space,
}

impl System {
    /// The text of a file of sysfs, without the line's end.
    pub(super) fn text(&self, path: &Path) -> Result<String, Refusal> {
        let text = fs::read_to_string(path).map_err(|error| Refusal::Sysfs {
            path: path.into(),
            why: error.to_string(),
        })?;
        Ok(text.trim().to_owned())
    }

    /// The number in it. md writes `4 (3)` while it goes from 3 to 4.
    pub(super) fn number(&self, path: &Path) -> Result<u64, Refusal> {
        let text = self.text(path)?;
        text.parse().map_err(|_| Refusal::Sysfs {
            path: path.into(),
            why: format!("{text:?} is no number"),
        })
    }

    fn folder(&self, (major, minor): (u32, u32)) -> Result<PathBuf, Refusal> {
        let link = self.sys.join(format!("dev/block/{major}:{minor}"));
        link.canonicalize().map_err(|error| Refusal::Sysfs {
            path: link,
            why: error.to_string(),
        })
    }

    /// The device whose folder this is.
    pub(super) fn device(&self, folder: &Path) -> Result<BlockDevice, Refusal> {
        let path = folder.join("dev");
        let text = self.text(&path)?;
        let number = text.split_once(':').and_then(|(major, minor)| {
            let parts = (major.parse().ok()?, minor.parse().ok()?);
            Some(parts)
        });
        let number = number.ok_or_else(|| Refusal::Sysfs {
            path,
            why: format!("{text:?} is no device number"),
        })?;
        // Names with a slash, as c0d0 of cciss has, have a ! for it.
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Ok(BlockDevice {
            path: Path::new("/dev").join(name.replace('!', "/")),
            number,
        })
    }

    /// The device of this number with all below it.
    pub(super) fn below(&self, number: (u32, u32)) -> Result<Below, Refusal> {
        self.below_at(number, 0)
    }

    pub(super) fn below_at(&self, number: (u32, u32), level: u32) -> Result<Below, Refusal> {
        if level == LEVELS_MAX {
            return Err(Refusal::TooDeep(LEVELS_MAX));
        }
        let folder = self.folder(number)?;
        if folder.join("partition").exists() {
            let start = self.number(&folder.join("start"))?.saturating_mul(SECTOR);
            let disk = folder.parent().unwrap_or(&folder);
            let disk = self.below_at(self.device(disk)?.number, level + 1)?;
            let mut space = Space::default();
            let bytes = self.number(&folder.join("size"))?.saturating_mul(SECTOR);
            space.embed(0, bytes, &disk.space, start);
            return Ok(Below { space, ..disk });
        }
        if folder.join("md").is_dir() {
            let space = md::space(self, &folder, level + 1)?;
            return Ok(Below {
                source: GeometrySource::Md,
                space,
            });
        }
        if folder.join("dm").is_dir() {
            return dm::below(self, &folder, number, level + 1);
        }
        let device = self.device(&folder)?;
        Ok(match self.controller(&folder, &device) {
            Some(array) => Below {
                source: GeometrySource::QueueSizes,
                space: Space::of(array),
            },
            None => Below {
                source: GeometrySource::Disk,
                space: Space::disk(device),
            },
        })
    }

    /// A device as the member of an array: of a partition its disk. A layer below an array in an array
    /// is not followed.
    pub(super) fn member(&self, folder: &Path, begin: u64) -> Result<DiskMember, Refusal> {
        let member = |device, begin| DiskMember {
            device,
            part: 0,
            begin: Bytes(begin),
        };
        if !folder.join("partition").exists() {
            return Ok(member(self.device(folder)?, begin));
        }
        let start = self.number(&folder.join("start"))?.saturating_mul(SECTOR);
        let disk = self.device(folder.parent().unwrap_or(folder))?;
        Ok(member(disk, begin.saturating_add(start)))
    }

    /// As [`System::member`], by the device's number.
    pub(super) fn member_of(&self, number: (u32, u32), begin: u64) -> Result<DiskMember, Refusal> {
        self.member(&self.folder(number)?, begin)
    }

    /// How long a device is.
    pub(super) fn bytes(&self, number: (u32, u32)) -> Result<u64, Refusal> {
        let sectors = self.number(&self.folder(number)?.join("size"))?;
        Ok(sectors.saturating_mul(SECTOR))
    }

    /// The number of the device at a path.
    pub(super) fn number_of(&self, path: &str) -> Result<(u32, u32), Refusal> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        if let Ok(found) = fs::metadata(path)
            && found.file_type().is_block_device()
        {
            let number = found.rdev();
            return Ok((libc::major(number), libc::minor(number)));
        }
        // In a container the node may be missing, and the kernel still has its name.
        let name = path.rsplit('/').next().unwrap_or(path);
        let folder = self.sys.join("class/block").join(name);
        Ok(self.device(&folder)?.number)
    }

    /// The strips of a controller.
    fn controller(&self, disk: &Path, device: &BlockDevice) -> Option<DiskArray> {
        let of = |name: &str| self.number(&disk.join("queue").join(name)).ok();
        let (strip, stripe) = (of("minimum_io_size")?, of("optimal_io_size")?);
        let is_strip = strip >= HINT_STRIP_MIN && strip.is_power_of_two();
        let is_array = is_strip && stripe % strip == 0 && of("rotational")? == 1;
        let disks = is_array.then(|| stripe / strip)?;
        if !(2..=HINT_DISKS_MAX).contains(&disks) {
            return None;
        }
        let member = |part| DiskMember {
            device: device.clone(),
            part,
            begin: Bytes(0),
        };
        Some(DiskArray {
            level: Level::Raid0,
            strip: Bytes(strip),
            members: (0..disks as u16).map(member).collect(),
        })
    }
}

#[cfg(test)]
pub(super) mod tests;
