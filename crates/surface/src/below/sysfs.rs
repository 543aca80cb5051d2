//! Sysfs: the bdi of a file system, the queues that its reads pass, and the disks at the bottom of it.
//!
//! Between a file system and its disks there may be layers, each with its devices in `slaves/`. Every disk at the bottom is a
//! leaf; how they lie together decides what they are for a stream:
//!
//! ```text
//! ext4 on /dev/sda1      bdi 8:0       queue sda     one leaf, sda
//! xfs on md0, level 5    bdi 9:0       queue md0     leaves sda, sdb, sdc   striped: a stream is on all of them
//! ext4 on LVM on md0     bdi 253:0     queue dm-0    leaves sda, sdb, sdc   as md0, where all of it is one md
//! ext4 on md1, level 1   bdi 9:1       queue md1     leaves sda, sdb        apart: a stream is on one of them
//! btrfs, data RAID0      bdi btrfs-1   its devices   leaves sda, sdb        striped
//! ```
//!
//! The limit of readahead is the bdi's. The file of the same name below `/sys/block` freezes the queue of its device on
//! several kernels (6.11 to 6.18). A loop device is a leaf. The device mapper does not show whether a volume is striped;
//! several disks of one are taken to be.

use std::fs;
use std::path::{Path, PathBuf};

use super::Number;
use super::mounts::Mount;

/// Layers that lie on each other: LVM on encryption on md on multipath on partitions has six.
const LAYERS_MAX: u32 = 32;

/// A disk.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Leaf {
    /// Its name: `sda`.
    pub name: String,
    /// Its number.
    pub number: Number,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether it says that it turns; none if it does not tell.
    pub is_rotational: Option<bool>,
}

/// The disks below a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Below {
    /// Type of the file system; none of a block device.
    pub kind: Option<String>,
    /// The name of its bdi.
    pub bdi: String,
    /// The file with its limit of readahead.
    pub limit: PathBuf,
    /// The devices that it sends its reads to.
    pub queues: Vec<Number>,
    /// The one block device that all reads of the file system pass, by its name below `/dev`.
    pub top: Option<String>,
    /// The disks, each once, in the order of their names.
    pub leaves: Vec<Leaf>,
    /// A stream lies on one of them, not on all.
    pub is_apart: bool,
}

/// The tree of the kernel's devices.
#[derive(Clone, Debug)]
pub struct Sys(PathBuf);

impl Default for Sys {
    fn default() -> Self {
        Self::at("/sys")
    }
}

impl Sys {
    /// A tree in a folder.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    /// File system and disks below a mount.
    ///
    /// # Errors
    /// Nothing, or a layout that cannot be followed; in words.
    pub fn of(&self, mount: &Mount) -> Result<Below, String> {
        let kind = mount.kind.as_str();
        let below = match kind {
            "btrfs" => self.of_btrfs(mount.source_device()),
            _ => self.of_block(mount.device).unwrap_or_else(|| {
                let (major, minor) = mount.device;
                Err(format!(
                    "there is no block device {major}:{minor} below it, whose read-ahead could be set"
                ))
            }),
        };
        let below = below.map_err(|why| format!("{kind}: {why}"))?;
        Ok(Below {
            kind: Some(kind.to_owned()),
            ..below
        })
    }

    /// What lies below a block device, whose bdi is that of its disk; none if there is no such device.
    #[must_use]
    pub fn of_block(&self, (major, minor): Number) -> Option<Result<Below, String>> {
        let folder = fs::canonicalize(self.0.join(format!("dev/block/{major}:{minor}"))).ok()?;
        Some(self.of_disk(&whole(&folder)))
    }

    fn of_disk(&self, disk: &Path) -> Result<Below, String> {
        let number = number_of(disk)?;
        let mut found = Found::default();
        found.collect(disk, LAYERS_MAX)?;
        self.below(
            format!("{}:{}", number.0, number.1),
            vec![number],
            Some(name_of(disk)),
            found,
        )
    }

    /// btrfs has a bdi of its own, and any number of devices, one of which is told.
    fn of_btrfs(&self, device: Option<Number>) -> Result<Below, String> {
        let all = self.0.join("fs/btrfs");
        let with_devices = |folder: &PathBuf| folder.join("devices").is_dir();
        let mut folders: Vec<PathBuf> = entries(&all).into_iter().filter(with_devices).collect();
        if folders.len() > 1 {
            folders.retain(|folder| device.is_some_and(|device| has_device(folder, device)));
        }
        let [folder] = &folders[..] else {
            return Err(format!("its devices are not found below {}", all.display()));
        };
        let (mut found, mut queues) = (Found::default(), Vec::new());
        let devices = entries(&folder.join("devices"));
        for device in &devices {
            let disk = whole(&real(device)?);
            queues.push(number_of(&disk)?);
            found.collect(&disk, LAYERS_MAX)?;
        }
        queues.sort_unstable();
        queues.dedup();
        let data = folder.join("allocation/data");
        let profiles = ["raid0", "raid10", "raid5", "raid6"];
        found.is_apart = !profiles.iter().any(|profile| data.join(profile).exists());
        // Two devices may be one disk's partitions, and striped over each other nevertheless.
        let top = match &devices[..] {
            [only] => Some(name_of(&real(only)?)),
            _ => None,
        };
        self.below(name_of(&real(&folder.join("bdi"))?), queues, top, found)
    }

    fn below(
        &self,
        bdi: String,
        queues: Vec<Number>,
        top: Option<String>,
        found: Found,
    ) -> Result<Below, String> {
        let Found {
            mut leaves,
            is_apart,
        } = found;
        leaves.sort();
        leaves.dedup_by(|one, other| one.name == other.name);
        let limit = self.0.join("class/bdi").join(&bdi).join("read_ahead_kb");
        if !limit.exists() {
            let limit = limit.display();
            return Err(format!("its limit of readahead, {limit}, is not there"));
        }
        Ok(Below {
            kind: None,
            bdi,
            limit,
            queues,
            top,
            leaves,
            is_apart,
        })
    }
}

/// Leaves as they are found, and whether a layer above several of them keeps streams on one.
#[derive(Default)]
struct Found {
    leaves: Vec<Leaf>,
    is_apart: bool,
}

impl Found {
    fn collect(&mut self, folder: &Path, layers: u32) -> Result<(), String> {
        if layers == 0 {
            let name = name_of(folder);
            return Err(format!(
                "{name}: its devices lie on each other without an end"
            ));
        }
        let below = entries(&folder.join("slaves"));
        if below.is_empty() {
            self.leaves.push(leaf(folder)?);
        }
        self.is_apart |= below.len() > 1 && keeps_apart(folder);
        for path in below {
            self.collect(&whole(&real(&path)?), layers - 1)?;
        }
        Ok(())
    }
}

/// Whether a layer keeps a stream on one of its devices: mirrors, one disk behind the other, several ways to one disk.
fn keeps_apart(folder: &Path) -> bool {
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let level = text("md/level");
    matches!(level.trim(), "raid1" | "linear" | "multipath" | "faulty")
        || text("dm/uuid").starts_with("mpath-")
}

fn leaf(folder: &Path) -> Result<Leaf, String> {
    let turns = fs::read_to_string(folder.join("queue/rotational")).ok();
    Ok(Leaf {
        name: name_of(folder),
        number: number_of(folder)?,
        folder: folder.to_owned(),
        is_rotational: turns.map(|text| text.trim() == "1"),
    })
}

/// `8:1`.
pub(super) fn numbers(text: &str) -> Option<Number> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn number_of(folder: &Path) -> Result<Number, String> {
    let path = folder.join("dev");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    numbers(&text).ok_or_else(|| format!("{}: {text:?} is no device number", path.display()))
}

/// Whether a file system of btrfs has a device of this number.
fn has_device(folder: &Path, number: Number) -> bool {
    let devices = entries(&folder.join("devices"));
    devices.iter().any(|device| number_of(device) == Ok(number))
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

fn real(path: &Path) -> Result<PathBuf, String> {
    let real = path.canonicalize();
    real.map_err(|e| format!("{}: {e}", path.display()))
}

/// Devices whose names have a slash have an exclamation mark there.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.replace('!', "/")
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
            Sys::at(self.0.path())
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

    /// Names of leaves, and whether each turns.
    fn leaves(below: &Below) -> Vec<(&str, bool)> {
        let leaf = |leaf: &'_ Leaf| leaf.is_rotational == Some(true);
        let leaves = below.leaves.iter();
        leaves.map(|of| (of.name.as_str(), leaf(of))).collect()
    }

    fn of_block(tree: &Tree, number: Number) -> Below {
        tree.sys().of_block(number).unwrap().unwrap()
    }

    fn mount(kind: &str, device: Number) -> Mount {
        Mount {
            root: "/".into(),
            id: 1,
            below: 0,
            device,
            point: "/x".into(),
            kind: kind.into(),
            source: "none".into(),
            options: String::new(),
        }
    }

    #[test]
    fn a_partition_has_the_bdi_and_the_queue_of_its_disk() {
        let tree = Tree::new();
        tree.disk("sda", "8:0", "1");
        tree.partition("sda", "sda2", "8:2");
        let below = tree.sys().of(&mount("ext4", (8, 2))).unwrap();
        assert_eq!(
            (below.bdi.as_str(), &below.queues[..]),
            ("8:0", &[(8, 0)][..])
        );
        assert_eq!(leaves(&below), [("sda", true)]);
        assert_eq!((below.top.as_deref(), below.is_apart), (Some("sda"), false));
        assert_eq!(fs::read_to_string(below.limit).unwrap(), "128\n");
        assert_eq!(tree.sys().of_block((8, 9)), None);
        let why = tree.sys().of(&mount("ext4", (8, 9))).unwrap_err();
        assert!(why.contains("ext4: there is no block device 8:9"), "{why}");
    }

    #[test]
    fn disks_below_an_array_are_leaves_each_and_its_level_says_how_they_lie() {
        for (level, is_apart) in [
            ("raid0\n", false),
            ("raid5\n", false),
            ("raid10\n", false),
            ("raid1\n", true),
            ("linear\n", true),
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
                let below = of_block(&tree, number);
                assert_eq!(
                    (below.bdi.as_str(), below.queues.clone()),
                    (bdi, vec![number])
                );
                assert_eq!(leaves(&below), [("sda", true), ("sdb", false)]);
                assert_eq!(below.is_apart, is_apart, "{level}");
            }
        }
    }

    #[test]
    fn two_ways_to_a_disk_and_a_volume_over_two() {
        let tree = Tree::new();
        tree.disk("sda", "8:0", "1");
        tree.disk("sdb", "8:16", "1");
        for (name, number, uuid, is_apart) in [
            ("dm-1", (253, 1), "mpath-36\n", true),
            ("dm-2", (253, 2), "LVM-x\n", false),
        ] {
            let (major, minor) = number;
            tree.over(name, &format!("{major}:{minor}"), &["sda", "sdb"]);
            tree.put(&format!("devices/{name}/dm/uuid"), uuid);
            assert_eq!(of_block(&tree, number).is_apart, is_apart);
        }
    }

    #[test]
    fn a_btrfs_is_found_by_one_of_its_devices_and_has_a_bdi_of_its_own() {
        let tree = Tree::new();
        let btrfs = |uuid: &str, bdi: &str, devices: &[(&str, &str)]| {
            tree.bdi(bdi);
            for (name, number) in devices {
                tree.disk(name, number, "1");
                tree.link(
                    &format!("fs/btrfs/{uuid}/devices/{name}"),
                    &format!("devices/{name}"),
                );
            }
            tree.link(
                &format!("fs/btrfs/{uuid}/bdi"),
                &format!("devices/bdi/{bdi}"),
            );
        };
        btrfs("u1", "btrfs-1", &[("sda", "8:0"), ("sdb", "8:16")]);
        btrfs("u2", "btrfs-2", &[("sdc", "8:32")]);
        fs::create_dir_all(tree.0.path().join("fs/btrfs/features")).unwrap();
        tree.put("fs/btrfs/u1/allocation/data/single/total_bytes", "1");
        let of = |number| tree.sys().of_btrfs(Some(number));
        let below = of((8, 16)).unwrap();
        assert_eq!((below.bdi.as_str(), below.queues.len()), ("btrfs-1", 2));
        assert_eq!(leaves(&below), [("sda", true), ("sdb", true)]);
        assert_eq!((below.top.as_deref(), below.is_apart), (None, true));
        assert_eq!(of((8, 32)).unwrap().top.as_deref(), Some("sdc"));
        tree.put("fs/btrfs/u1/allocation/data/raid0/total_bytes", "1");
        assert!(!of((8, 0)).unwrap().is_apart);
        for device in [None, Some((8, 99))] {
            let why = tree.sys().of_btrfs(device).unwrap_err();
            assert!(why.contains("its devices are not found"), "{why}");
        }
    }

    #[test]
    fn layouts_that_cannot_be_followed_are_refused_in_words() {
        let tree = Tree::new();
        tree.over("dm-3", "253:3", &["dm-3"]);
        let refused = |number| tree.sys().of_block(number).unwrap().unwrap_err();
        let why = refused((253, 3));
        assert!(why.contains("dm-3: its devices lie on each other"), "{why}");
        tree.disk("sdz", "65:144", "0");
        fs::remove_file(tree.0.path().join("devices/bdi/65:144/read_ahead_kb")).unwrap();
        let why = refused((65, 144));
        assert!(why.contains("read_ahead_kb, is not there"), "{why}");
    }
}
