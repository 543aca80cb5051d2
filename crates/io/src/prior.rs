//! Priors: costs of a device before anything was measured, from the system's account of it.
//!
//! Asked when the first file of a device is opened, if the user gave no profile and none is emulated. The
//! system knows whether a device turns, how long its queue is and how many members it has; the costs
//! are those of data sheets. Where it does not know, or is known to be wrong (a virtual disk says that
//! it turns whatever is below it), there is no prior, and the engine keeps its default.
//!
//! ```text
//! file --f_type--> memory, network            partition --> its disk
//!      --number--> /sys/dev/block/8:1 ------> dm of one --> the device below
//!                  loop --backing_file, by the table of mounts--> its device
//! ```
//!
//! No file is looked at beyond those of `/sys` and `/proc`, which never wait.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use forerun_core::{Nanos, Profile};

use crate::sync::Mutex;

/// Where the costs of a device come from that its requests have not been measured yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PriorSource {
    /// A profile was given, or the device is emulated.
    Told,
    /// The system says of which kind the device is.
    System,
    /// Nothing is known: the engine's default.
    Assumed,
}

/// The kind of storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    Memory,
    Network,
    Turning,
    Flash,
    Card,
}

/// The system's account of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Facts {
    medium: Medium,
    /// Requests it takes at once.
    queue: u32,
    /// Devices it is striped over.
    members: u32,
}

/// The queue of SATA: a longer one is of SAS, NVMe or a controller with several disks.
const SATA_QUEUE: u32 = 32;

/// Most requests at once of flash: an NVMe drive of 2020 has its full rate of random reads there, and
/// longer queues only add to the latency.
const FLASH_QUEUE: u32 = 128;

/// Switching cost, bytes a second, and servers if they are known.
type Costs = (Nanos, u64, Option<u32>);

impl Facts {
    fn costs(&self) -> Costs {
        let one_drive = self.members > 1 || self.queue <= SATA_QUEUE;
        let (micros, megabytes, servers) = match self.medium {
            // A system call and a copy.
            Medium::Memory => (10, 5_000, None),
            // A round trip and a server's page cache, over 10 Gbit/s with others. Its servers are
            // bounded by the driver: see `EngineState::device`.
            Medium::Network => (1_000, 500, None),
            // 3.5" drives of 7200/min: seek 8 ms, half a revolution 4.2, 120 to 250 MB/s from the
            // inner to the outer tracks. A long queue may be that of a controller: its disks are not
            // known, and one would be too few.
            Medium::Turning => (12_000, 180, one_drive.then_some(1)),
            // 60 to 110 us for 4 KiB; 550 MB/s at the end of SATA, 3 GB/s and more by NVMe.
            Medium::Flash if self.queue <= SATA_QUEUE => (100, 500, Some(self.queue)),
            Medium::Flash => (90, 3_000, Some(self.queue.min(FLASH_QUEUE))),
            // SD and eMMC: 90 MB/s, 1,500 to 2,000 random reads a second, one at a time.
            Medium::Card => (500, 90, Some(1)),
        };
        let servers = servers.map(|servers| servers * self.members);
        let rate = megabytes * 1_000_000 * u64::from(self.members);
        (Nanos(micros * 1_000), rate, servers)
    }

    fn profile(&self) -> Option<Profile> {
        let (switching, rate, servers) = self.costs();
        let profile = Profile::constant(switching, rate).ok()?;
        match servers {
            Some(servers) => profile.with_servers(servers).ok(),
            None => Some(profile),
        }
    }
}

/// More members than this are no stripe: a wrong optimal size.
const MEMBERS_MAX: u32 = 64;

/// Loop devices over files on loop devices end somewhere.
const LEVELS_MAX: u32 = 8;

/// `f_type` of file systems by their medium, by `linux/magic.h`. That of others is their device's.
const BY_FILE_SYSTEM: &[(u32, Medium)] = &[
    (0x0102_1994, Medium::Memory),  // tmpfs
    (0x8584_58f6, Medium::Memory),  // ramfs
    (0x6969, Medium::Network),      // NFS
    (0xff53_4d42, Medium::Network), // CIFS
    (0xfe53_4d42, Medium::Network), // SMB2
    (0x00c3_6400, Medium::Network), // Ceph
    (0x0102_1997, Medium::Network), // 9P
    (0x5346_414f, Medium::Network), // AFS
    (0x0bd0_0bd0, Medium::Network), // Lustre
];

/// The same by the name that the table of mounts has, for files that must not be asked.
const BY_NAME: &[(&str, Medium)] = &[
    ("tmpfs", Medium::Memory),
    ("ramfs", Medium::Memory),
    ("nfs", Medium::Network),
    ("nfs4", Medium::Network),
    ("cifs", Medium::Network),
    ("smb3", Medium::Network),
    ("ceph", Medium::Network),
    ("9p", Medium::Network),
];

/// Block devices by the beginning of their name. Virtual ones say that they turn whatever they are.
const BY_DEVICE: &[(&str, Option<Medium>)] = &[
    ("vd", None),
    ("xvd", None),
    ("nbd", Some(Medium::Network)),
    ("rbd", Some(Medium::Network)),
    ("mmcblk", Some(Medium::Card)),
    ("ram", Some(Medium::Memory)),
    ("zram", Some(Medium::Memory)),
];

/// Models of virtual disks behind a real interface.
const VIRTUAL: &[&str] = &[
    "QEMU",
    "VBOX",
    "VMware",
    "Virtual",
    "PersistentDisk",
    "Elastic",
];

/// The system's own files.
#[derive(Debug)]
struct System {
    sys: PathBuf,
    mounts: PathBuf,
}

fn alone(medium: Medium) -> Facts {
    Facts {
        medium,
        queue: u32::MAX,
        members: 1,
    }
}

/// A short file's text without the line's end.
fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn number(path: &Path) -> Option<u32> {
    text(path)?.parse().ok()
}

impl System {
    fn facts(&self, file_system: Option<u32>, device: (u32, u32)) -> Option<Facts> {
        let known = BY_FILE_SYSTEM
            .iter()
            .find(|(magic, _)| file_system == Some(*magic));
        match known {
            Some((_, medium)) => Some(alone(*medium)),
            None => self.of_device(device, 0),
        }
    }

    fn of_device(&self, (major, minor): (u32, u32), level: u32) -> Option<Facts> {
        let link = self.sys.join(format!("dev/block/{major}:{minor}"));
        let folder = link.canonicalize().ok()?;
        match folder.join("partition").exists() {
            true => self.of_disk(folder.parent()?, level),
            false => self.of_disk(&folder, level),
        }
    }

    fn of_disk(&self, disk: &Path, level: u32) -> Option<Facts> {
        if level == LEVELS_MAX {
            return None;
        }
        let name = disk.file_name()?.to_str()?;
        if let Some(file) = text(&disk.join("loop/backing_file")) {
            return self.of_path(Path::new(&file), level + 1);
        }
        // LVM, encryption, RAID: all members are taken to be as the first.
        let members = fs::read_dir(disk.join("slaves")).into_iter().flatten();
        let members: Vec<_> = members.flatten().map(|entry| entry.path()).collect();
        if let Some(first) = members.first() {
            let first = first.canonicalize().ok()?;
            let first = match first.join("partition").exists() {
                true => first.parent()?,
                false => &first,
            };
            let facts = self.of_disk(first, level + 1)?;
            let members = u32::try_from(members.len()).ok()? * facts.members;
            let members = members.min(MEMBERS_MAX);
            return Some(Facts { members, ..facts });
        }
        let known = BY_DEVICE.iter().find(|(begin, _)| name.starts_with(begin));
        if let Some((_, medium)) = known {
            return medium.map(alone);
        }
        let model = text(&disk.join("device/model")).unwrap_or_default();
        if VIRTUAL.iter().any(|name| model.contains(name)) {
            return None;
        }
        let medium = match number(&disk.join("queue/rotational"))? {
            0 => Medium::Flash,
            _ => Medium::Turning,
        };
        let queue = number(&disk.join("device/queue_depth"));
        let queue = queue.or_else(|| number(&disk.join("queue/nr_requests")));
        let queue = queue.unwrap_or(u32::MAX).max(1);
        // A controller that says so gives its stripe as the optimal size, and a strip as the least.
        let sizes =
            ["minimum", "optimal"].map(|of| number(&disk.join(format!("queue/{of}_io_size"))));
        let members = match sizes {
            [Some(strip @ 1..), Some(stripe)] if medium == Medium::Turning => stripe / strip,
            _ => 1,
        };
        let members = if members > MEMBERS_MAX {
            1
        } else {
            members.max(1)
        };
        Some(Facts {
            medium,
            queue,
            members,
        })
    }

    /// Of the file below a loop device, by the longest mount point that it is in.
    fn of_path(&self, path: &Path, level: u32) -> Option<Facts> {
        let mounts = fs::read_to_string(&self.mounts).ok()?;
        let mount = mounts.lines().filter_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let place: Vec<_> = place.split(' ').collect();
            let (device, point) = (*place.get(2)?, *place.get(4)?);
            let is_below = path.starts_with(point);
            is_below.then_some((point.len(), device, kind.split(' ').next()?))
        });
        // The last of those at one point covers the others.
        let (_, device, kind) = mount.max_by_key(|(length, ..)| *length)?;
        if let Some((_, medium)) = BY_NAME.iter().find(|(name, _)| *name == kind) {
            return Some(alone(*medium));
        }
        let (major, minor) = device.split_once(':')?;
        self.of_device((major.parse().ok()?, minor.parse().ok()?), level)
    }
}

/// The priors of the devices that were met, kept beside the engine's lock.
#[derive(Debug)]
pub(crate) struct Priors {
    system: System,
    known: Mutex<HashMap<u64, Option<Profile>>>,
}

impl Default for Priors {
    fn default() -> Self {
        let system = System {
            sys: "/sys".into(),
            mounts: "/proc/self/mountinfo".into(),
        };
        Self {
            system,
            known: Mutex::default(),
        }
    }
}

impl Priors {
    /// The prior of a device by its number and a file system on it, if there is one.
    pub(crate) fn of(
        &self,
        device: u64,
        file_system: impl FnOnce() -> Option<u32>,
    ) -> Option<Profile> {
        if let Some(known) = self.known.lock().get(&device) {
            return known.clone();
        }
        let number = (libc::major(device), libc::minor(device));
        let facts = self.system.facts(file_system(), number);
        tracing::debug!("device {}:{}: {facts:?}", number.0, number.1);
        let prior = facts.and_then(|facts| facts.profile());
        self.known.lock().entry(device).or_insert(prior).clone()
    }

    /// Whether the system said something of a device that was met.
    pub(crate) fn knows(&self, device: u64) -> bool {
        self.known.lock().get(&device).is_some_and(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXT4: u32 = 0xef53;

    /// A tree like `/sys`, with disks at 8:0, 8:16, .. whose first partitions are 8:1, 8:17, ..
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, from: &str, to: &str) {
            let from = self.0.path().join(from);
            fs::create_dir_all(from.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(self.0.path().join(to), from).unwrap();
        }

        fn disk(&self, name: &str, number: &str, files: &[(&str, &str)]) {
            for (file, text) in files {
                self.write(&format!("block/{name}/{file}"), text);
            }
            self.link(&format!("dev/block/{number}"), &format!("block/{name}"));
        }

        fn facts(&self, file_system: impl Into<Option<u32>>, device: (u32, u32)) -> Option<Facts> {
            let system = System {
                sys: self.0.path().into(),
                mounts: self.0.path().join("mountinfo"),
            };
            system.facts(file_system.into(), device)
        }

        fn costs(&self, device: (u32, u32)) -> Option<Costs> {
            self.facts(EXT4, device).map(|facts| facts.costs())
        }
    }

    const HDD: [(&str, &str); 2] = [("queue/rotational", "1\n"), ("device/queue_depth", "32\n")];

    #[test]
    fn each_kind_of_device_has_the_costs_of_its_data_sheet() {
        let tree = Tree::new();
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        tree.disk("sda", "8:0", &HDD);
        tree.disk(
            "sdb",
            "8:16",
            &[("queue/rotational", "0\n"), ("device/queue_depth", "32\n")],
        );
        tree.disk(
            "nvme0n1",
            "259:0",
            &[("queue/rotational", "0\n"), ("queue/nr_requests", "1023\n")],
        );
        tree.disk(
            "sdc",
            "8:32",
            &[("queue/rotational", "1\n"), ("device/queue_depth", "254\n")],
        );
        tree.disk("mmcblk0", "179:0", &[("queue/rotational", "0\n")]);
        tree.disk("nbd0", "43:0", &[("queue/rotational", "0\n")]);
        assert_eq!(tree.costs((8, 0)), Some((ms(12), 180_000_000, Some(1))));
        assert_eq!(
            tree.costs((8, 16)),
            Some((Nanos(100_000), 500_000_000, Some(32)))
        );
        assert_eq!(
            tree.costs((259, 0)),
            Some((Nanos(90_000), 3_000_000_000, Some(128)))
        );
        let behind_a_controller = tree.costs((8, 32));
        assert_eq!(behind_a_controller, Some((ms(12), 180_000_000, None)));
        assert_eq!(tree.costs((179, 0)).unwrap().2, Some(1));
        assert_eq!(tree.costs((43, 0)).unwrap().0, ms(1));
        assert_eq!(tree.costs((0, 44)), None, "no block device");
        assert_eq!(tree.facts(0x6969, (0, 44)).unwrap().medium, Medium::Network);
        assert_eq!(
            tree.facts(0x0102_1994, (0, 45)).unwrap().medium,
            Medium::Memory
        );
        // The device itself.
        let raw = tree.facts(None, (8, 0)).unwrap();
        assert_eq!(raw.medium, Medium::Turning);
    }

    #[test]
    fn a_virtual_disk_that_says_it_turns_is_not_believed() {
        let tree = Tree::new();
        tree.disk("vda", "254:0", &HDD);
        tree.disk("sda", "8:0", &HDD);
        tree.write("block/sda/device/model", "QEMU HARDDISK   \n");
        assert_eq!((tree.costs((254, 0)), tree.costs((8, 0))), (None, None));
    }

    #[test]
    fn partitions_volumes_and_arrays_are_what_lies_below_them() {
        let tree = Tree::new();
        for (name, number, partition) in [("sda", "8:0", "8:1"), ("sdb", "8:16", "8:17")] {
            tree.disk(name, number, &HDD);
            tree.disk(
                &format!("{name}/{name}1"),
                partition,
                &[("partition", "1\n")],
            );
        }
        tree.disk("dm-0", "253:0", &[("queue/rotational", "1\n")]);
        tree.link("block/dm-0/slaves/sda1", "block/sda/sda1");
        tree.disk("md0", "9:0", &[("queue/rotational", "1\n")]);
        tree.link("block/md0/slaves/sda1", "block/sda/sda1");
        tree.link("block/md0/slaves/sdb1", "block/sdb/sdb1");
        let one = tree.costs((8, 0));
        assert!(one.is_some() && tree.costs((8, 1)) == one && tree.costs((253, 0)) == one);
        let two = Some((one.unwrap().0, 360_000_000, Some(2)));
        assert_eq!(tree.costs((9, 0)), two);
        let sizes = [
            ("queue/minimum_io_size", "65536\n"),
            ("queue/optimal_io_size", "131072\n"),
        ];
        tree.disk(
            "sdc",
            "8:32",
            &[HDD[0], ("device/queue_depth", "256\n"), sizes[0], sizes[1]],
        );
        assert_eq!(
            tree.costs((8, 32)),
            two,
            "a controller that tells its stripe"
        );
    }

    #[test]
    fn a_loop_device_is_the_device_of_its_file_however_deep() {
        let tree = Tree::new();
        tree.disk("sda", "8:0", &HDD);
        tree.disk("loop0", "7:0", &[("loop/backing_file", "/images/a\n")]);
        tree.disk("loop1", "7:1", &[("loop/backing_file", "/far/b\n")]);
        tree.disk("loop2", "7:2", &[("loop/backing_file", "/ring/c\n")]);
        tree.write(
            "mountinfo",
            "20 1 254:0 / / rw - ext4 /dev/vda rw\n\
             21 20 8:0 / /images rw engine_host:1 - ext4 /dev/sda rw\n\
             22 20 0:50 / /far rw - nfs4 host:/x rw\n\
             23 20 7:2 / /ring rw - ext4 /dev/loop2 rw\n",
        );
        assert_eq!(tree.costs((7, 0)), tree.costs((8, 0)));
        assert_eq!(tree.facts(EXT4, (7, 1)).unwrap().medium, Medium::Network);
        assert_eq!(tree.costs((7, 2)), None, "it lies on itself");
    }

    #[test]
    fn nonsense_in_the_tree_is_no_prior_or_a_sound_one() {
        let tree = Tree::new();
        let sizes = [
            ("queue/minimum_io_size", "0"),
            ("queue/optimal_io_size", "4294967295"),
        ];
        tree.disk("sda", "8:0", &[("queue/rotational", "maybe")]);
        tree.disk(
            "sdb",
            "8:16",
            &[HDD[0], ("device/queue_depth", "0"), sizes[0], sizes[1]],
        );
        tree.disk(
            "sdc",
            "8:32",
            &[HDD[0], ("queue/minimum_io_size", "1"), sizes[1]],
        );
        assert_eq!(tree.costs((8, 0)), None);
        assert_eq!(tree.costs((8, 16)).unwrap().2, Some(1));
        assert_eq!(tree.costs((8, 32)).unwrap().1, 180_000_000);
        for device in [(8, 16), (8, 32)] {
            assert!(tree.facts(EXT4, device).unwrap().profile().is_some());
        }
    }
}
