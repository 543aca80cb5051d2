//! Sysfs: the bdi of a file system, the queues that its reads pass, and the disks at the bottom of it.
//!
//! Between a file system and its disks there may be layers, each with its devices in `slaves/`. Every disk at the bottom is a
//! leaf, whose costs are measured by themselves; how they lie together decides what that means for a stream:
//!
//! ```text
//! ext4 on /dev/sda1      bdi 8:0       queue sda     one leaf, sda
//! xfs on md0, level 5    bdi 9:0       queue md0     leaves sda, sdb, sdc   striped: a stream is on all of them
//! ext4 on LVM on md0     bdi 253:0     queue dm-0    leaves sda, sdb, sdc   as md0, where all of it is one md
//! ext4 on md1, level 1   bdi 9:1       queue md1     leaves sda, sdb        apart: a stream is on one of them
//! btrfs, data RAID0      bdi btrfs-1   its devices   leaves sda, sdb        striped
//! ```
//!
//! The device mapper does not show in sysfs whether a volume is striped; several disks of one are taken to be.

use std::fs;
use std::path::{Path, PathBuf};

/// Layers that lie on each other: LVM on encryption on md on multipath on partitions has six.
const LAYERS_MAX: u32 = 32;

/// Major and minor number.
pub type Number = (u32, u32);

/// How the leaves of a file system lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// A long window lies on all of them.
    Striped,
    /// A stream lies on one of them, other streams on others.
    Apart,
}

/// A disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Leaf {
    /// Its number.
    pub number: Number,
    /// Whether it says that it turns.
    pub is_rotational: bool,
}

/// What lies below a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Below {
    /// The name of its bdi.
    pub bdi: String,
    /// The devices that it sends its reads to.
    pub queues: Vec<Number>,
    /// The disks, each once.
    pub leaves: Vec<Leaf>,
    /// How they lie together.
    pub spread: Spread,
}

/// The tree of the kernel's devices.
#[derive(Clone, Debug)]
pub struct Sys(PathBuf);

impl Default for Sys {
    fn default() -> Self {
        Self("/sys".into())
    }
}

impl Sys {
    /// What lies below a block device; none if there is no such device. A partition has the bdi of its disk.
    #[must_use]
    pub fn of_block(&self, (major, minor): Number) -> Option<Below> {
        let folder = fs::canonicalize(self.0.join(format!("dev/block/{major}:{minor}"))).ok()?;
        let folder = whole(&folder);
        let mut found = Found::default();
        found.collect(&folder, LAYERS_MAX);
        Some(Below {
            bdi: name_of_link(&folder.join("bdi"))?,
            queues: number_of(&folder).into_iter().collect(),
            spread: found.spread(),
            leaves: found.leaves(),
        })
    }

    /// The same of a btrfs, which has a bdi of its own, by the name of one of its devices.
    #[must_use]
    pub fn of_btrfs(&self, device: &str) -> Option<Below> {
        let all = entries(&self.0.join("fs/btrfs"));
        let mut all = all.into_iter();
        let folder = all.find(|folder| folder.join("devices").join(device).exists())?;
        let (mut found, mut queues) = (Found::default(), Vec::new());
        for device in entries(&folder.join("devices")) {
            let Ok(device) = fs::canonicalize(device) else {
                continue;
            };
            let disk = whole(&device);
            queues.extend(number_of(&disk));
            found.collect(&disk, LAYERS_MAX);
        }
        queues.sort_unstable();
        queues.dedup();
        let profiles = ["raid0", "raid10", "raid5", "raid6"];
        let data = folder.join("allocation/data");
        let is_striped = profiles.iter().any(|profile| data.join(profile).exists());
        Some(Below {
            bdi: name_of_link(&folder.join("bdi"))?,
            queues,
            spread: match is_striped {
                true => Spread::Striped,
                false => Spread::Apart,
            },
            leaves: found.leaves(),
        })
    }

    /// The file with the limit of a bdi.
    #[must_use]
    pub fn limit(&self, bdi: &str) -> PathBuf {
        self.0.join("class/bdi").join(bdi).join("read_ahead_kb")
    }
}

/// Leaves as they are found, and whether a layer above several of them keeps streams on one.
#[derive(Default)]
struct Found {
    leaves: Vec<Leaf>,
    is_apart: bool,
}

impl Found {
    fn collect(&mut self, folder: &Path, layers: u32) {
        let below = entries(&folder.join("slaves")).into_iter();
        let below: Vec<PathBuf> = below
            .filter_map(|path| fs::canonicalize(path).ok())
            .collect();
        if below.is_empty() || layers == 0 {
            self.leaves.extend(leaf(folder));
            return;
        }
        self.is_apart |= below.len() > 1 && keeps_apart(folder);
        for folder in below {
            self.collect(&whole(&folder), layers - 1);
        }
    }

    fn spread(&self) -> Spread {
        match self.is_apart {
            true => Spread::Apart,
            false => Spread::Striped,
        }
    }

    fn leaves(mut self) -> Vec<Leaf> {
        self.leaves.sort_unstable();
        self.leaves.dedup();
        self.leaves
    }
}

/// Whether a layer keeps a stream on one of its devices: mirrors, one disk behind the other, several ways to one disk.
fn keeps_apart(folder: &Path) -> bool {
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let level = text("md/level");
    matches!(level.trim(), "raid1" | "linear" | "multipath" | "faulty")
        || text("dm/uuid").starts_with("mpath-")
}

fn leaf(folder: &Path) -> Option<Leaf> {
    let turns = fs::read_to_string(folder.join("queue/rotational"));
    Some(Leaf {
        number: number_of(folder)?,
        is_rotational: turns.is_ok_and(|text| text.trim() == "1"),
    })
}

/// `8:1`.
pub(crate) fn numbers(text: &str) -> Option<Number> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn number_of(folder: &Path) -> Option<Number> {
    numbers(&fs::read_to_string(folder.join("dev")).ok()?)
}

/// The entries of a folder in the order of their names; none if it is not there.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let there = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = there.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The disk of a partition, or the disk itself.
fn whole(folder: &Path) -> PathBuf {
    match folder.parent() {
        Some(disk) if folder.join("partition").exists() => disk.to_owned(),
        _ => folder.to_owned(),
    }
}

fn name_of_link(path: &Path) -> Option<String> {
    let folder = fs::canonicalize(path).ok()?;
    folder.file_name()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A tree as the kernel makes it, in a folder.
    struct Tree(TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn sys(&self) -> Sys {
            Sys(self.0.path().to_owned())
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, from: &str, to: &str) {
            let from = self.0.path().join(from);
            fs::create_dir_all(from.parent().unwrap()).unwrap();
            symlink(self.0.path().join(to), from).unwrap();
        }

        /// A whole device with its bdi.
        fn disk(&self, name: &str, number: &str, turns: &str) {
            let folder = format!("devices/{name}");
            self.put(&format!("{folder}/dev"), number);
            self.put(&format!("{folder}/queue/rotational"), turns);
            self.link(&format!("dev/block/{number}"), &folder);
            self.bdi(number);
            self.link(&format!("{folder}/bdi"), &format!("devices/bdi/{number}"));
        }

        fn bdi(&self, name: &str) {
            self.put(&format!("devices/bdi/{name}/read_ahead_kb"), "128\n");
            self.link(&format!("class/bdi/{name}"), &format!("devices/bdi/{name}"));
        }

        fn partition(&self, disk: &str, name: &str, number: &str) {
            let folder = format!("devices/{disk}/{name}");
            self.put(&format!("{folder}/dev"), number);
            self.put(&format!("{folder}/partition"), "1");
            self.link(&format!("dev/block/{number}"), &folder);
        }

        /// A device over others, by their places below `devices`.
        fn over(&self, name: &str, number: &str, below: &[&str]) {
            self.disk(name, number, "0");
            for path in below {
                let own = path.rsplit('/').next().unwrap();
                self.link(
                    &format!("devices/{name}/slaves/{own}"),
                    &format!("devices/{path}"),
                );
            }
        }
    }

    fn leaf(minor: u32, is_rotational: bool) -> Leaf {
        Leaf {
            number: (8, minor),
            is_rotational,
        }
    }

    #[test]
    fn a_partition_has_the_bdi_and_the_queue_of_its_disk() {
        let tree = Tree::new();
        tree.disk("sda", "8:0", "1");
        tree.partition("sda", "sda2", "8:2");
        let expected = Below {
            bdi: "8:0".into(),
            queues: vec![(8, 0)],
            leaves: vec![leaf(0, true)],
            spread: Spread::Striped,
        };
        assert_eq!(tree.sys().of_block((8, 2)), Some(expected));
        let limit = tree.sys().limit("8:0");
        assert_eq!(fs::read_to_string(limit).unwrap(), "128\n");
        assert_eq!(tree.sys().of_block((8, 9)), None);
    }

    #[test]
    fn disks_below_an_array_are_leaves_each_and_its_level_says_how_they_lie() {
        for (level, spread) in [
            ("raid0\n", Spread::Striped),
            ("raid5\n", Spread::Striped),
            ("raid10\n", Spread::Striped),
            ("raid1\n", Spread::Apart),
            ("linear\n", Spread::Apart),
        ] {
            let tree = Tree::new();
            for (name, number, turns) in [("sdb", "8:16", "0"), ("sda", "8:0", "1")] {
                tree.disk(name, number, turns);
            }
            tree.partition("sda", "sda1", "8:1");
            tree.over("md0", "9:0", &["sdb", "sda/sda1"]);
            tree.put("devices/md0/md/level", level);
            // And a volume on it, which has the array for its only device.
            tree.over("dm-0", "253:0", &["md0"]);
            tree.put("devices/dm-0/dm/uuid", "LVM-abc\n");
            for (number, bdi) in [((9, 0), "9:0"), ((253, 0), "253:0")] {
                let expected = Below {
                    bdi: bdi.into(),
                    queues: vec![number],
                    leaves: vec![leaf(0, true), leaf(16, false)],
                    spread,
                };
                assert_eq!(tree.sys().of_block(number), Some(expected), "{level}");
            }
        }
    }

    #[test]
    fn two_ways_to_a_disk_and_a_volume_over_two() {
        let tree = Tree::new();
        tree.disk("sda", "8:0", "1");
        tree.disk("sdb", "8:16", "1");
        for (name, number, uuid, spread) in [
            ("dm-1", (253, 1), "mpath-36\n", Spread::Apart),
            ("dm-2", (253, 2), "LVM-x\n", Spread::Striped),
        ] {
            let (major, minor) = number;
            tree.over(name, &format!("{major}:{minor}"), &["sda", "sdb"]);
            tree.put(&format!("devices/{name}/dm/uuid"), uuid);
            assert_eq!(tree.sys().of_block(number).unwrap().spread, spread);
        }
    }

    #[test]
    fn a_btrfs_is_found_by_one_of_its_devices_and_has_a_bdi_of_its_own() {
        let tree = Tree::new();
        tree.bdi("btrfs-1");
        for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
            tree.disk(name, number, "1");
            tree.link(
                &format!("fs/btrfs/uuid/devices/{name}"),
                &format!("devices/{name}"),
            );
        }
        tree.link("fs/btrfs/uuid/bdi", "devices/bdi/btrfs-1");
        tree.put("fs/btrfs/uuid/allocation/data/single/total_bytes", "1");
        let below = tree.sys().of_btrfs("sdb").unwrap();
        assert_eq!((below.bdi.as_str(), below.queues.len()), ("btrfs-1", 2));
        assert_eq!(below.leaves, [leaf(0, true), leaf(16, true)]);
        assert_eq!(below.spread, Spread::Apart);
        tree.put("fs/btrfs/uuid/allocation/data/raid0/total_bytes", "1");
        assert_eq!(tree.sys().of_btrfs("sda").unwrap().spread, Spread::Striped);
        assert_eq!(tree.sys().of_btrfs("sdc"), None);
    }

    #[test]
    fn devices_that_lie_on_each_other_end_somewhere() {
        let tree = Tree::new();
        tree.over("dm-3", "253:3", &["dm-3"]);
        assert_eq!(tree.sys().of_block((253, 3)).unwrap().leaves.len(), 1);
    }
}
