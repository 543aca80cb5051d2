//! A bed as a TOML file: which disks, which file system, which files, which queue settings.
//!
//! Read by `up` and `table`, and copied into the state directory so that the daemon and `status`
//! see the same. Units end the names, a key that is not known is refused, and everything that can
//! be wrong is found here, before anything is made. `crates/bed/beds` has ready ones.

use std::path::Path;

use forerun_sim::device;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// More loop devices than a table of anything needs.
const DISKS_MAX: usize = 16;
/// Names have four digits.
const FILES_MAX: u64 = 10_000;
/// The smallest image both file systems take, and what mkfs.btrfs needs on each of several disks.
const IMAGE_BYTES_MIN: u64 = 128 << 20;
/// A TOML is a page; this is an accident.
const TEXT_BYTES_MAX: u64 = 64 << 10;

/// A test bed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bed {
    /// The emulated disks, all alike.
    pub disks: Disks,
    /// What is made on them.
    pub file_system: FileSystem,
    /// What is put into it.
    pub files: Files,
    /// How the kernel is set when the bed is up.
    pub queue: Queue,
}

/// The emulated disks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disks {
    /// How many.
    pub count: usize,
    /// Size of each.
    pub image_bytes: u64,
    /// A device of the simulator: `name` or `name(param=value,..)`.
    pub device: String,
    /// Whether the kernel is told that going elsewhere costs: bfq waits for a reader's next request
    /// only then. The loop driver says no unless the file behind it lies on a disk that does.
    pub is_rotational: bool,
}

/// The file system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Which.
    pub kind: Kind,
}

/// The file systems a bed may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// ext4 without a journal, on one disk.
    Ext4,
    /// btrfs striped by 64 KiB over all disks.
    BtrfsRaid0,
}

/// The files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// How many.
    pub count: u64,
    /// Size of each.
    pub file_bytes: u64,
    /// Decides the content.
    pub seed: u64,
}

/// Settings of the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// `read_ahead_kb` of the disk, or of the file system where that has its own.
    pub read_ahead_bytes: u64,
    /// The I/O scheduler of each disk.
    pub scheduler: String,
}

impl Kind {
    /// As in the TOML.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::BtrfsRaid0 => "btrfs_raid0",
        }
    }

    /// As mount(2) calls it.
    #[must_use]
    pub fn mount_type(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::BtrfsRaid0 => "btrfs",
        }
    }
}

/// Reads a bed from the text of its file.
///
/// # Errors
/// What is wrong, with the value and what would be accepted.
pub fn parse(text: &str) -> Result<Bed, String> {
    let bed: Bed = toml::from_str(text).map_err(|e| e.to_string())?;
    check(&bed)?;
    Ok(bed)
}

/// Reads the bed in a file of the user.
///
/// # Errors
/// A file that cannot be read or holds no bed; names the file and what is wrong.
pub fn load(path: &Path) -> Result<Bed, Failure> {
    let unusable = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let length = std::fs::metadata(path)
        .map_err(|e| unusable(e.to_string()))?
        .len();
    if length > TEXT_BYTES_MAX {
        return Err(unusable(format!("{length} bytes are too many for a bed")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| unusable(e.to_string()))?;
    parse(&text).map_err(unusable)
}

fn check(bed: &Bed) -> Result<(), String> {
    let Bed { disks, files, .. } = bed;
    between("disks.count", disks.count as u64, 1, DISKS_MAX as u64)?;
    between(
        "disks.image_bytes",
        disks.image_bytes,
        IMAGE_BYTES_MIN,
        1 << 50,
    )?;
    between("files.count", files.count, 1, FILES_MAX)?;
    between("files.file_bytes", files.file_bytes, 1, 1 << 50)?;
    between(
        "queue.read_ahead_bytes",
        bed.queue.read_ahead_bytes,
        0,
        1 << 30,
    )?;
    device::parse(&disks.device).map_err(|e| format!("disks.device: {e}"))?;
    match bed.file_system.kind {
        Kind::Ext4 if disks.count != 1 => return Err("disks.count: ext4 takes 1 disk".into()),
        Kind::BtrfsRaid0 if disks.count < 2 => {
            return Err("disks.count: btrfs_raid0 takes at least 2 disks".into());
        }
        _ => {}
    }
    if !bed.queue.read_ahead_bytes.is_multiple_of(1024) {
        return Err("queue.read_ahead_bytes: must be a multiple of 1024".into());
    }
    if !bed
        .queue
        .scheduler
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    {
        return Err(format!(
            "queue.scheduler: `{}` is no name",
            bed.queue.scheduler
        ));
    }
    fits(disks, files)
}

fn between(name: &str, value: u64, min: u64, max: u64) -> Result<(), String> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} = {value}: must lie from {min} to {max}"))
}

/// A file system needs some room for itself: a sixteenth, and 64 MiB on each disk.
fn fits(disks: &Disks, files: &Files) -> Result<(), String> {
    let needed = u128::from(files.count) * u128::from(files.file_bytes) * 17 / 16;
    let usable = disks.count as u128 * u128::from(disks.image_bytes - (64 << 20));
    if needed <= usable {
        return Ok(());
    }
    Err(format!(
        "{} files of {} bytes do not fit: disks.image_bytes must be at least {}",
        files.count,
        files.file_bytes,
        needed.div_ceil(disks.count as u128) + (64 << 20)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: &str = include_str!("../beds/disk.toml");

    #[test]
    fn the_ready_beds_are_beds() {
        let disk = parse(DISK).unwrap();
        assert_eq!((disk.disks.count, disk.files.count), (1, 64));
        let raid = parse(include_str!("../beds/raid0.toml")).unwrap();
        assert_eq!(raid.file_system.kind, Kind::BtrfsRaid0);
        assert_eq!(parse(&toml::to_string(&raid).unwrap()), Ok(raid));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (good, bad, named) in [
            ("count = 1\n", "count = 0\n", "disks.count = 0"),
            ("count = 1\n", "count = 2\n", "ext4 takes 1 disk"),
            ("\"ext4\"", "\"btrfs_raid0\"", "at least 2 disks"),
            ("\"ext4\"", "\"xfs\"", "btrfs_raid0"),
            ("image_bytes", "image_mb", "image_mb"),
            ("7_000_000_000", "7", "disks.image_bytes = 7"),
            ("7_000_000_000", "6_000_000_000", "must be at least 68"),
            ("switching(", "swiching(", "switching"),
            ("cost_ns", "cost_ms", "cost_ms"),
            ("131_072", "131_073", "multiple of 1024"),
            ("\"none\"", "\"../x\"", "no name"),
            ("seed = 1\n", "", "seed"),
            ("seed = 1\n", "seed = -1\n", "-1"),
            ("[queue]\n", "[queue]\ndepth = 3\n", "depth"),
        ] {
            assert!(DISK.contains(good), "{good}");
            let message = parse(&DISK.replacen(good, bad, 1)).unwrap_err();
            assert!(message.contains(named), "{bad}: {message}");
        }
        assert!(parse("").is_err());
    }
}
