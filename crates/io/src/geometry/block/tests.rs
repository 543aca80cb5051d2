//! Stacks of block devices in a made-up sysfs.

use super::*;

/// A tree like `/sys`: a device is a folder under `block`, a partition one inside of its disk.
pub(in crate::geometry) struct Tree(tempfile::TempDir);

impl Tree {
    pub(in crate::geometry) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(in crate::geometry) fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    pub(in crate::geometry) fn link(&self, from: &str, to: &str) {
        let from = self.0.path().join(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        // A link that was made before is made anew.
        let _ = fs::remove_file(&from);
        std::os::unix::fs::symlink(self.0.path().join(to), from).unwrap();
    }

    /// A device in a folder of `block`: `sda`, or `sda/sda1`.
    pub(in crate::geometry) fn device(&self, folder: &str, number: &str, files: &[(&str, &str)]) {
        let folder = format!("block/{folder}");
        self.write(&format!("{folder}/dev"), number);
        for (file, text) in files {
            self.write(&format!("{folder}/{file}"), text);
        }
        self.link(&format!("dev/block/{number}"), &folder);
    }

    /// A partition from a sector on.
    pub(in crate::geometry) fn partition(&self, folder: &str, number: &str, start: u64) {
        let start = start.to_string();
        let files = [("partition", "1"), ("start", &start), ("size", "1000000")];
        self.device(folder, number, &files);
    }

    pub(in crate::geometry) fn system(&self) -> System {
        System {
            sys: self.0.path().into(),
            table: |_| Err(io::Error::from_raw_os_error(libc::EACCES)),
        }
    }
}

#[test]
fn a_partition_is_its_disk_from_a_place_on() {
    let tree = Tree::new();
    tree.device("sda", "8:0", &[]);
    tree.partition("sda/sda1", "8:1", 2048);
    let below = tree.system().below((8, 1)).unwrap();
    assert_eq!(below.source, GeometrySource::Disk);
    let segment = below.space.find(5000).unwrap();
    assert_eq!((segment.at, segment.end), (1 << 20, 512_000_000));
    let array = &below.space.arrays[segment.array.unwrap()];
    assert_eq!(array.members[0].device.path, Path::new("/dev/sda"));
    assert_eq!(array.members[0].device.number, (8, 0));
    assert!(below.space.find(512_000_000).is_none(), "behind its end");
    assert!(matches!(
        tree.system().below((8, 2)),
        Err(Refusal::Sysfs { .. })
    ));
}

#[test]
fn sizes_of_a_queue_make_an_array_only_where_the_disk_turns_and_they_fit_together() {
    let members = |rotational: &str, strip: &str, stripe: &str| {
        let tree = Tree::new();
        let files = [
            ("queue/rotational", rotational),
            ("queue/minimum_io_size", strip),
            ("queue/optimal_io_size", stripe),
        ];
        tree.device("sda", "8:0", &files);
        let below = tree.system().below((8, 0)).unwrap();
        let array = &below.space.arrays[0];
        let is_hint = below.source == GeometrySource::QueueSizes;
        assert_eq!(is_hint, array.level == Level::Raid0);
        (array.strip.0, array.members.len())
    };
    assert_eq!(members("1", "65536", "262144"), (65536, 4));
    assert_eq!(members("0", "65536", "262144"), (0, 1), "flash");
    assert_eq!(members("1", "4096", "262144"), (0, 1), "pages");
    assert_eq!(members("1", "65536", "0"), (0, 1));
    assert_eq!(members("1", "65536", "33553920"), (0, 1), "USB");
    assert_eq!(members("1", "65536", "65536"), (0, 1));
    assert_eq!(members("1", "65536", "8388608"), (0, 1), "128 disks");
}

#[test]
fn devices_on_each_other_without_end_are_refused() {
    let tree = Tree::new();
    // A linear target on the device itself.
    tree.device("dm-0", "253:0", &[("dm/uuid", "LVM-x")]);
    let system = System {
        table: |_| {
            Ok(crate::geometry::dm::tests::table(&[(
                0, 8, "linear", "253:0 0",
            )]))
        },
        ..tree.system()
    };
    assert!(matches!(
        system.below((253, 0)),
        Err(Refusal::TooDeep(LEVELS_MAX))
    ));
}
