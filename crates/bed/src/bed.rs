//! A bed as a TOML file: its disks, file system, files and queue settings.
//!
//! Read by `up` and `table`, and copied into the state directory so that the daemon and `status`
//! see the same. Units end the names, an unknown key is refused, and every error in the
//! file is found here, before anything is made. `crates/bed/beds` has ready ones.

use std::path::Path;

use forerun_sim::device;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{fill, mix};

/// More loop devices than a table of anything needs.
const DISKS_MAX: usize = 16;
/// Names of files that are in no folder have four digits.
const FLAT_FILES_MAX: u64 = 10_000;
/// Files in folders: more than fits the largest tree that is compared, by ten times.
const FILES_MAX: u64 = 200_000;
/// Names of folders have three digits.
const FOLDERS_MAX: u64 = 1_000;
/// ext4 has an inode for each 16 KiB.
const INODE_BYTES: u64 = 16 << 10;
/// `disks.device` of a disk that is not emulated.
pub const LOCAL: &str = "local";
/// The smallest image both file systems take; mkfs.btrfs needs as much on each of several disks.
const IMAGE_BYTES_MIN: u64 = 128 << 20;
/// A TOML is a page; this is an accident.
const TEXT_BYTES_MAX: u64 = 64 << 10;

/// A test bed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bed {
    /// The emulated disks, all alike.
    pub disks: Disks,
    /// The file system on them.
    pub file_system: FileSystem,
    /// Its files.
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
    /// A device of the simulator, `name` or `name(param=value,..)`; or `local`: the disk that the
    /// state directory is on, as it is.
    pub device: String,
    /// The kernel's `rotational` flag: bfq waits for a reader's next request only if it is set. The
    /// loop driver clears it unless the file behind it lies on a disk that has it.
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
    /// The same over pairs of disks with equal content.
    BtrfsRaid10,
    /// The same over all disks but one a row, which has its parity.
    BtrfsRaid5,
}

/// The files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// How many.
    pub count: u64,
    /// Folders they are in, one after the other; none: in the root.
    #[serde(default)]
    pub folders: u64,
    /// Size of each, or of the smallest.
    pub file_bytes: u64,
    /// Size of the largest: each is drawn between the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes_max: Option<u64>,
    /// How sizes are drawn.
    #[serde(default, skip_serializing_if = "Mix::is_even")]
    pub mix: Mix,
    /// Decides content, and the names and sizes that are drawn.
    pub seed: u64,
}

/// How the sizes of files lie between the smallest and the largest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Evenly.
    #[default]
    Even,
    /// As those of [media clips](crate::mix), whose range is fixed.
    MediaClips,
}

impl Mix {
    fn is_even(&self) -> bool {
        *self == Self::Even
    }
}

impl Disks {
    /// Whether they are files on a disk of this machine, without emulation.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.device == LOCAL
    }
}

impl Files {
    /// Files of one size in the root.
    #[must_use]
    pub fn flat(count: u64, file_bytes: u64, seed: u64) -> Self {
        Self {
            count,
            folders: 0,
            file_bytes,
            file_bytes_max: None,
            mix: Mix::Even,
            seed,
        }
    }

    /// Their sizes in words: `4000000`, or `3000 to 60000`.
    #[must_use]
    pub fn sizes(&self) -> String {
        match self.file_bytes_max {
            Some(max) => format!("{} to {max}", self.file_bytes),
            None => self.file_bytes.to_string(),
        }
    }
}

impl Bed {
    /// The same bed with another number of files.
    ///
    /// # Errors
    /// They do not fit.
    pub fn with_files(&self, count: u64) -> Result<Self, Failure> {
        let mut bed = self.clone();
        bed.files.count = count;
        check(&bed).map_err(Failure::Usage)?;
        Ok(bed)
    }
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
            Self::BtrfsRaid10 => "btrfs_raid10",
            Self::BtrfsRaid5 => "btrfs_raid5",
        }
    }

    /// The profiles of mkfs.btrfs for data and for metadata; none of ext4.
    #[must_use]
    pub fn btrfs_profiles(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Ext4 => None,
            Self::BtrfsRaid0 => Some(["raid0", "raid0"]),
            Self::BtrfsRaid10 => Some(["raid10", "raid10"]),
            // As its manual page advises: copies of metadata beside parity of data.
            Self::BtrfsRaid5 => Some(["raid5", "raid1"]),
        }
    }

    /// Number of disks it takes.
    fn disks(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Self::Ext4 => 1..=1,
            Self::BtrfsRaid0 => 2..=DISKS_MAX,
            // Fewer are a mirror without stripes.
            Self::BtrfsRaid10 => 4..=DISKS_MAX,
            // Two would be a mirror that computes.
            Self::BtrfsRaid5 => 3..=DISKS_MAX,
        }
    }

    /// Number of disks that the files can fill.
    fn data_disks(self, disks: usize) -> usize {
        match self {
            Self::Ext4 | Self::BtrfsRaid0 => disks,
            Self::BtrfsRaid10 => disks / 2,
            Self::BtrfsRaid5 => disks - 1,
        }
    }

    /// As mount(2) calls it.
    #[must_use]
    pub fn mount_type(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::BtrfsRaid0 | Self::BtrfsRaid10 | Self::BtrfsRaid5 => "btrfs",
        }
    }
}

/// Reads a bed from the text of its file.
///
/// # Errors
/// The fault, with the value and the accepted ones.
pub fn parse(text: &str) -> Result<Bed, String> {
    let bed: Bed = toml::from_str(text).map_err(|e| e.to_string())?;
    check(&bed)?;
    Ok(bed)
}

/// Reads the bed in a file of the user.
///
/// # Errors
/// A file that cannot be read or holds no bed; names the file and the fault.
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
    between("files.folders", files.folders, 0, FOLDERS_MAX)?;
    let files_max = match files.folders {
        0 => FLAT_FILES_MAX,
        _ => FILES_MAX,
    };
    between("files.count", files.count, 1, files_max)?;
    between("files.file_bytes", files.file_bytes, 1, 1 << 50)?;
    if let Some(max) = files.file_bytes_max {
        between("files.file_bytes_max", max, files.file_bytes, 1 << 50)?;
    }
    let range = (files.file_bytes, files.file_bytes_max.unwrap_or(0));
    if files.mix == Mix::MediaClips && range != (mix::CLIP_BYTES_MIN, mix::CLIP_BYTES_MAX) {
        return Err(format!(
            "files.mix: media_clips are of file_bytes = {} to file_bytes_max = {}",
            mix::CLIP_BYTES_MIN,
            mix::CLIP_BYTES_MAX
        ));
    }
    between(
        "queue.read_ahead_bytes",
        bed.queue.read_ahead_bytes,
        0,
        1 << 30,
    )?;
    if !disks.is_local() {
        device::parse(&disks.device).map_err(|e| format!("disks.device: {e}"))?;
    }
    let kind = bed.file_system.kind;
    if !kind.disks().contains(&disks.count) {
        let (name, least) = (kind.name(), kind.disks().start().to_owned());
        return Err(match kind {
            Kind::Ext4 => format!("disks.count: {name} takes 1 disk"),
            _ => format!("disks.count: {name} takes at least {least} disks"),
        });
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
    fits(kind, disks, files)
}

fn between(name: &str, value: u64, min: u64, max: u64) -> Result<(), String> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} = {value}: must lie from {min} to {max}"))
}

/// A file system needs some room for itself: a sixteenth, and 64 MiB on each disk.
fn fits(kind: Kind, disks: &Disks, files: &Files) -> Result<(), String> {
    let sizes = (0..files.count).map(|number| fill::size(files, number).max(INODE_BYTES));
    let needed = sizes.map(u128::from).sum::<u128>() * 17 / 16;
    let filled = kind.data_disks(disks.count) as u128;
    let usable = filled * u128::from(disks.image_bytes - (64 << 20));
    if needed <= usable {
        return Ok(());
    }
    Err(format!(
        "{} files of {} bytes do not fit: disks.image_bytes must be at least {}",
        files.count,
        files.sizes(),
        needed.div_ceil(filled) + (64 << 20)
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
        assert_eq!(parse(&toml::to_string(&raid).unwrap()), Ok(raid.clone()));
        for (text, kind) in [
            (include_str!("../beds/raid10.toml"), Kind::BtrfsRaid10),
            (include_str!("../beds/raid5.toml"), Kind::BtrfsRaid5),
        ] {
            let parsed = parse(text).unwrap();
            assert_eq!(parsed.file_system.kind, kind);
            assert_eq!(parsed.files, raid.files, "compared with each other");
            assert_eq!(parse(&toml::to_string(&parsed).unwrap()), Ok(parsed));
            let few = parse(&text.replace("count = 4\n", "count = 2\n")).unwrap_err();
            assert!(
                few.contains(kind.name()) && few.contains("at least"),
                "{few}"
            );
            let small = parse(&text.replace("_000_000_000\ndevice", "00_000_000\ndevice"));
            assert!(small.unwrap_err().contains("do not fit"));
        }
        let local = parse(include_str!("../beds/small_local.toml")).unwrap();
        assert!(local.disks.is_local() && !disk.disks.is_local());
        assert_eq!((local.files.count, local.files.folders), (20_000, 40));
        assert_eq!(parse(&toml::to_string(&local).unwrap()).unwrap(), local);
        assert_eq!(local.with_files(10_000).unwrap().files.count, 10_000);
        assert!(local.with_files(200_000).is_err());
        let media = parse(include_str!("../beds/media.toml")).unwrap();
        assert_eq!(media.files.mix, Mix::MediaClips);
        assert_eq!(parse(&toml::to_string(&media).unwrap()), Ok(media));
        parse(include_str!("../beds/search.toml")).unwrap();
        let slow = parse(include_str!("../beds/small_disk.toml")).unwrap();
        assert_eq!(slow.files.sizes(), "3000 to 60000");
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
            (
                "seed = 1\n",
                "seed = 1\nfile_bytes_max = 9\n",
                "file_bytes_max = 9",
            ),
            (
                "seed = 1\n",
                "seed = 1\nfolders = 1_001\n",
                "folders = 1001",
            ),
            ("count = 64\n", "count = 10_001\n", "files.count = 10001"),
            (
                "seed = 1\n",
                "seed = 1\nmix = \"media_clips\"\n",
                "24000 to file_bytes_max = 1418000",
            ),
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
