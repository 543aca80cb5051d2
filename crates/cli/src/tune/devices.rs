//! The bdi and the leaf devices of a file system, by their layout below `/sys`.
//!
//! The read-ahead that a file gets when it is opened is that of its file system's bdi; a scheduler is a
//! property of each disk below. Between the two there may be layers, each with its devices in `slaves/`:
//!
//! ```text
//! ext4 on /dev/sda1   /sys/dev/block/8:1 is a partition of sda     bdi 8:0     leaf sda
//! ext4 on LVM on md   dm-0 -> slaves md0 -> slaves sda1, sdb       bdi 253:0   leaves sda, sdb
//! btrfs on two disks  /sys/fs/btrfs/UUID/devices, UUID/bdi         bdi btrfs-1 leaves loop0, loop1
//! ```
//!
//! A loop device is a leaf: its file is read by the loop driver, which has settings of its own. Tests make such trees in
//! a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use forerun_surface::undo::knob::{self, Knob};

use super::place::{Number, Place};

/// Layers that lie on each other: LVM on encryption on md on multipath on partitions has six.
const LAYERS_MAX: u32 = 32;

/// How long a device may take to answer what readers that stopped have asked for.
const IDLE_MAX: Duration = Duration::from_secs(20);

/// How often it is looked at.
const PERIOD: Duration = Duration::from_millis(5);

/// A disk, or a device that the kernel takes for one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Its name: `sda`.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The present scheduler; none where it has none.
    pub scheduler: Option<String>,
    /// Schedulers there are.
    pub schedulers: Vec<String>,
    /// Whether it rotates, as the kernel has it.
    pub is_rotational: Option<bool>,
    /// The file of a loop device.
    pub file: Option<String>,
}

/// Everything below a file system that can be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Devices {
    /// Name of the bdi: `8:0`, or `btrfs-1`.
    pub bdi: String,
    /// The file of its read-ahead.
    pub read_ahead: Knob,
    /// The present read-ahead.
    pub read_ahead_kib: u64,
    /// The one block device that all reads of the file system pass, by its name below `/dev`.
    pub top: Option<String>,
    /// The disks, each once, in the order of their names.
    pub leaves: Vec<Leaf>,
}

/// The tree of the kernel's devices.
#[derive(Clone, Debug)]
pub struct Sys {
    root: PathBuf,
}

impl Default for Sys {
    fn default() -> Self {
        Self::at("/sys")
    }
}

impl Sys {
    /// A tree in a folder.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The devices of a file system.
    ///
    /// # Errors
    /// There are none, or their layout is another one; in words.
    pub fn of(&self, place: &Place) -> Result<Devices, String> {
        if place.file_system.as_deref() == Some("btrfs") {
            return self.of_btrfs(place);
        }
        let Some(device) = self.block(place.device) else {
            let (major, minor) = place.device;
            let name = place.file_system.as_deref().unwrap_or("it");
            return Err(format!(
                "{name}: there is no block device {major}:{minor} below it, whose read-ahead could be set"
            ));
        };
        let disk = whole(device);
        let number = read(&disk.join("dev"))?;
        let mut leaves = Vec::new();
        collect(&disk, &mut leaves, LAYERS_MAX)?;
        self.devices(number, Some(name_of(&disk)), leaves)
    }

    /// btrfs has a bdi of its own, and any number of devices.
    fn of_btrfs(&self, place: &Place) -> Result<Devices, String> {
        let all = self.root.join("fs/btrfs");
        let with_devices = |folder: &PathBuf| folder.join("devices").is_dir();
        let mut folders: Vec<PathBuf> = entries(&all).into_iter().filter(with_devices).collect();
        if folders.len() > 1 {
            folders.retain(|folder| {
                place
                    .source
                    .is_some_and(|source| has_device(folder, source))
            });
        }
        let [folder] = &folders[..] else {
            return Err(format!(
                "btrfs: its devices are not found below {}",
                all.display()
            ));
        };
        let mut leaves = Vec::new();
        for device in entries(&folder.join("devices")) {
            collect(&whole(real(&device)?), &mut leaves, LAYERS_MAX)?;
        }
        // Two devices may be one disk's partitions, and striped over each other nevertheless.
        let top = match &entries(&folder.join("devices"))[..] {
            [only] => Some(name_of(&real(only)?)),
            _ => None,
        };
        self.devices(name_of(&real(&folder.join("bdi"))?), top, leaves)
    }

    fn devices(
        &self,
        bdi: String,
        top: Option<String>,
        mut leaves: Vec<Leaf>,
    ) -> Result<Devices, String> {
        let folder = self.root.join("class/bdi").join(&bdi);
        let read_ahead = Knob::new(folder.join(knob::READ_AHEAD));
        let present = read_ahead
            .read()
            .map_err(|e| format!("{}: {e}", read_ahead.path().display()))?;
        let read_ahead_kib = present
            .parse()
            .map_err(|_| format!("{}: {present:?} is no number", read_ahead.path().display()))?;
        leaves.sort_by(|a, b| a.name.cmp(&b.name));
        leaves.dedup_by(|a, b| a.name == b.name);
        Ok(Devices {
            bdi,
            read_ahead,
            read_ahead_kib,
            top,
            leaves,
        })
    }

    /// The folder of a block device.
    fn block(&self, (major, minor): Number) -> Option<PathBuf> {
        self.root
            .join(format!("dev/block/{major}:{minor}"))
            .canonicalize()
            .ok()
    }
}

impl Devices {
    /// The schedulers that all leaves have.
    #[must_use]
    pub fn schedulers(&self) -> Vec<String> {
        let mut common = self
            .leaves
            .first()
            .map_or_else(Vec::new, |leaf| leaf.schedulers.clone());
        common.retain(|name| {
            self.leaves
                .iter()
                .all(|leaf| leaf.schedulers.contains(name))
        });
        common
    }

    /// The scheduler of all leaves, if it is the same.
    #[must_use]
    pub fn scheduler(&self) -> Option<String> {
        let first = self.leaves.first()?.scheduler.clone();
        let is_same = self.leaves.iter().all(|leaf| leaf.scheduler == first);
        first.filter(|_| is_same)
    }

    /// Waits until the leaves have answered all reads, or for as long as a trial can wait.
    pub fn wait_until_idle(&self, is_stopped: &dyn Fn() -> bool) {
        let begun = Instant::now();
        let is_busy = |leaf: &Leaf| leaf.in_flight().is_some_and(|reads| reads > 0);
        while self.leaves.iter().any(is_busy) && begun.elapsed() < IDLE_MAX && !is_stopped() {
            sleep(PERIOD);
        }
    }

    /// Whether a leaf rotates.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.leaves
            .iter()
            .any(|leaf| leaf.is_rotational == Some(true))
    }
}

impl Leaf {
    /// The file of its scheduler.
    #[must_use]
    pub fn scheduler_knob(&self) -> Knob {
        Knob::new(self.folder.join("queue").join(knob::SCHEDULER))
    }

    /// Reads that it has not answered yet; none if the kernel does not tell.
    #[must_use]
    pub fn in_flight(&self) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join("inflight")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    }

    fn of(folder: &Path) -> Self {
        let knob = Knob::new(folder.join("queue").join(knob::SCHEDULER));
        let rotational = fs::read_to_string(folder.join("queue/rotational")).ok();
        let file = fs::read_to_string(folder.join("loop/backing_file")).ok();
        let schedulers = knob.choices();
        Self {
            name: name_of(folder),
            folder: folder.to_owned(),
            // A device without a choice (`none` alone, or no file) has nothing to set.
            scheduler: knob.read().ok().filter(|_| schedulers.len() > 1),
            schedulers: if schedulers.len() > 1 {
                schedulers
            } else {
                Vec::new()
            },
            is_rotational: rotational.map(|text| text.trim() == "1"),
            file: file.map(|text| text.trim().to_owned()),
        }
    }
}

/// Appends the leaves below a device.
fn collect(disk: &Path, leaves: &mut Vec<Leaf>, layers: u32) -> Result<(), String> {
    if layers == 0 {
        return Err(format!(
            "{}: its devices lie on each other without an end",
            name_of(disk)
        ));
    }
    let slaves = entries(&disk.join("slaves"));
    if slaves.is_empty() {
        leaves.push(Leaf::of(disk));
    }
    for slave in slaves {
        collect(&whole(real(&slave)?), leaves, layers - 1)?;
    }
    Ok(())
}

/// The disk of a partition; any other device itself.
fn whole(device: PathBuf) -> PathBuf {
    match device.join("partition").exists() {
        true => device.parent().map(Path::to_owned).unwrap_or(device),
        false => device,
    }
}

/// Whether a file system of btrfs has a device of this number.
fn has_device(folder: &Path, (major, minor): Number) -> bool {
    let number = format!("{major}:{minor}");
    let devices = entries(&folder.join("devices"));
    devices
        .iter()
        .any(|device| read(&device.join("dev")).is_ok_and(|found| found == number))
}

/// The entries of a folder in the order of their names; none if it is not there.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let there = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = there.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn real(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize()
        .map_err(|e| format!("{}: {e}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(text.trim().to_owned())
}

/// Devices whose names have a slash have an exclamation mark there.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.replace('!', "/")
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A tree with the kernel's layout.
    pub(in crate::tune) struct Tree {
        pub(in crate::tune) folder: TempDir,
    }

    impl Tree {
        pub(in crate::tune) fn new() -> Self {
            Self {
                folder: tempfile::tempdir().unwrap(),
            }
        }

        pub(in crate::tune) fn sys(&self) -> Sys {
            Sys::at(self.folder.path())
        }

        fn put(&self, path: &str, text: &str) -> PathBuf {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn link(&self, from: &str, to: &str) {
            let from = self.folder.path().join(from);
            fs::create_dir_all(from.parent().unwrap()).unwrap();
            symlink(self.folder.path().join(to), from).unwrap();
        }

        /// A disk, with its bdi.
        pub(in crate::tune) fn disk(&self, name: &str, number: &str, schedulers: &str) {
            self.device(name, name, number);
            self.put(&format!("devices/{name}/queue/scheduler"), schedulers);
            self.put(&format!("devices/{name}/queue/rotational"), "1\n");
            self.put(&format!("devices/{name}/inflight"), "       3        0\n");
            self.bdi(number);
        }

        fn bdi(&self, name: &str) {
            self.put(
                &format!("devices/virtual/bdi/{name}/read_ahead_kb"),
                "128\n",
            );
            self.link(
                &format!("class/bdi/{name}"),
                &format!("devices/virtual/bdi/{name}"),
            );
        }

        fn device(&self, name: &str, path: &str, number: &str) {
            self.put(&format!("devices/{path}/dev"), &format!("{number}\n"));
            self.link(&format!("dev/block/{number}"), &format!("devices/{path}"));
            self.link(&format!("class/block/{name}"), &format!("devices/{path}"));
        }

        fn partition(&self, disk: &str, name: &str, number: &str) {
            self.device(name, &format!("{disk}/{name}"), number);
            self.put(&format!("devices/{disk}/{name}/partition"), "1\n");
        }

        /// A device of dm or md over these.
        fn mapped(&self, name: &str, number: &str, slaves: &[&str]) {
            self.device(name, &format!("virtual/block/{name}"), number);
            self.put(
                &format!("devices/virtual/block/{name}/queue/scheduler"),
                "none\n",
            );
            self.bdi(number);
            for slave in slaves {
                let path = format!("devices/virtual/block/{name}/slaves/{slave}");
                self.link(&path, &format!("class/block/{slave}"));
            }
        }
    }

    pub(in crate::tune) fn place(kind: &str, device: Number, source: Option<Number>) -> Place {
        Place {
            file_system: Some(kind.to_owned()),
            device,
            source,
        }
    }

    const THREE: &str = "none [mq-deadline] bfq\n";

    fn names(devices: &Devices) -> Vec<&str> {
        devices
            .leaves
            .iter()
            .map(|leaf| leaf.name.as_str())
            .collect()
    }

    #[test]
    fn a_partition_has_the_bdi_and_the_scheduler_of_its_disk() {
        let tree = Tree::new();
        tree.disk("sda", "8:0", THREE);
        tree.partition("sda", "sda1", "8:1");
        let found = tree.sys().of(&place("ext4", (8, 1), None)).unwrap();
        assert_eq!((found.bdi.as_str(), found.read_ahead_kib), ("8:0", 128));
        assert!(
            found
                .read_ahead
                .path()
                .ends_with("class/bdi/8:0/read_ahead_kb")
        );
        assert_eq!(
            (names(&found), found.top.as_deref()),
            (vec!["sda"], Some("sda"))
        );
        assert_eq!(found.scheduler().as_deref(), Some("mq-deadline"));
        assert_eq!(found.schedulers(), ["none", "mq-deadline", "bfq"]);
        assert_eq!(
            (found.is_rotational(), found.leaves[0].in_flight()),
            (true, Some(3))
        );
    }

    #[test]
    fn lvm_on_md_on_partitions_has_the_bdi_of_the_volume_and_the_disks_as_leaves() {
        let tree = Tree::new();
        for (name, number, part) in [
            ("sda", "8:0", "8:1"),
            ("sdb", "8:16", "8:17"),
            ("sdc", "8:32", "8:33"),
        ] {
            tree.disk(name, number, THREE);
            tree.partition(name, &format!("{name}1"), part);
        }
        tree.mapped("md0", "9:0", &["sda1", "sdb1", "sdc"]);
        tree.mapped("dm-0", "253:0", &["md0", "sda"]);
        let found = tree.sys().of(&place("xfs", (253, 0), None)).unwrap();
        assert_eq!(
            (found.bdi.as_str(), found.top.as_deref()),
            ("253:0", Some("dm-0"))
        );
        assert_eq!(names(&found), ["sda", "sdb", "sdc"]);
    }

    #[test]
    fn a_scheduler_is_offered_where_all_leaves_have_it() {
        let tree = Tree::new();
        tree.disk("sda", "8:0", THREE);
        tree.disk("nvme0n1", "259:0", "[none] mq-deadline\n");
        tree.mapped("md0", "9:0", &["sda", "nvme0n1"]);
        let found = tree.sys().of(&place("ext4", (9, 0), None)).unwrap();
        assert_eq!(
            (found.schedulers(), found.scheduler()),
            (vec!["none".to_owned(), "mq-deadline".to_owned()], None)
        );
        // A device that has but one scheduler offers none.
        tree.disk("ram0", "1:0", "none\n");
        let found = tree.sys().of(&place("ext4", (1, 0), None)).unwrap();
        assert_eq!((found.schedulers(), found.scheduler()), (vec![], None));
    }

    #[test]
    fn a_btrfs_is_found_by_a_device_of_it_and_has_a_bdi_of_its_own() {
        let tree = Tree::new();
        for (uuid, name, number) in [
            ("u1", "loop0", "7:0"),
            ("u1", "loop1", "7:1"),
            ("u2", "loop2", "7:2"),
        ] {
            tree.disk(name, number, THREE);
            tree.put(&format!("devices/{name}/loop/backing_file"), "/images/0\n");
            tree.link(
                &format!("fs/btrfs/{uuid}/devices/{name}"),
                &format!("devices/{name}"),
            );
        }
        for (uuid, bdi) in [("u1", "btrfs-1"), ("u2", "btrfs-2")] {
            tree.bdi(bdi);
            tree.link(
                &format!("fs/btrfs/{uuid}/bdi"),
                &format!("devices/virtual/bdi/{bdi}"),
            );
        }
        fs::create_dir_all(tree.folder.path().join("fs/btrfs/features")).unwrap();
        let of = |source| tree.sys().of(&place("btrfs", (0, 50), source));
        let found = of(Some((7, 1))).unwrap();
        assert_eq!(
            (found.bdi.as_str(), found.top.as_deref()),
            ("btrfs-1", None)
        );
        assert_eq!(names(&found), ["loop0", "loop1"]);
        assert_eq!(found.leaves[0].file.as_deref(), Some("/images/0"));
        assert_eq!(of(Some((7, 2))).unwrap().top.as_deref(), Some("loop2"));
        for source in [None, Some((7, 9))] {
            assert!(
                of(source)
                    .unwrap_err()
                    .contains("btrfs: its devices are not found")
            );
        }
    }

    #[test]
    fn layouts_that_cannot_be_followed_are_refused_in_words() {
        let tree = Tree::new();
        let why = tree
            .sys()
            .of(&place("bcachefs", (0, 44), None))
            .unwrap_err();
        assert!(
            why.contains("bcachefs: there is no block device 0:44"),
            "{why}"
        );
        tree.mapped("dm-1", "253:1", &["dm-1"]);
        let why = tree.sys().of(&place("ext4", (253, 1), None)).unwrap_err();
        assert!(why.contains("dm-1: its devices lie on each other"), "{why}");
        tree.mapped("dm-2", "253:2", &[]);
        fs::remove_file(
            tree.folder
                .path()
                .join("devices/virtual/bdi/253:2/read_ahead_kb"),
        )
        .unwrap();
        let why = tree.sys().of(&place("ext4", (253, 2), None)).unwrap_err();
        assert!(why.contains("read_ahead_kb"), "{why}");
    }
}
