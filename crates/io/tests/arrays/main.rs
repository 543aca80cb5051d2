//! Real arrays: every mapped block of files on btrfs over loop devices lies where the geometry says.
//!
//! Makes file systems of each profile on four sparse images, writes files whose blocks all differ (in one
//! run, in pieces, with holes, compressed, inside the inode, allocated and not written), and compares each
//! block with the bytes on the members. It needs root, loop devices and `mkfs.btrfs`, and says that it was
//! skipped where one of them is missing.
//!
//! Nothing stays behind, however the process ends: a file system is mounted in a mount namespace of the test's
//! own thread, a loop device is set to go with its last user once it is mounted, and its image has no name
//! any more. A kill in the tenth of a second in which the file system is made leaves four loop devices.

mod bed;
mod files;
#[path = "../../../skipped.rs"]
mod skipped;

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use forerun_core::layout::LayoutMap;
use forerun_core::{Bytes, DeviceId};
use forerun_io::geometry::{CopyChoice, Discovery, DiskMember, Geometry, GeometrySource, Refusal};

use bed::ArrayBed;
use files::{BLOCK, Files};
use skipped::skipped;

/// Numbers of devices, given as they are met, and the devices to read.
#[derive(Default)]
struct Devices {
    numbers: HashMap<PathBuf, DeviceId>,
    open: Vec<File>,
    /// The file and offset at each place that was compared.
    seen: HashMap<(DeviceId, u64), (PathBuf, u64)>,
}

impl Devices {
    fn number(&mut self, member: &DiskMember) -> DeviceId {
        let path = &member.device.path;
        *self.numbers.entry(path.clone()).or_insert_with(|| {
            self.open.push(File::open(path).unwrap());
            DeviceId((self.open.len() - 1) as u16)
        })
    }
}

/// Compares each mapped block of a file with each of its copies on the members. Returns how many
/// blocks were; no two may lie at one place.
fn compare(path: &Path, geometry: &Geometry, devices: &mut Devices) -> u64 {
    let file = File::open(path).unwrap();
    let placement = geometry.placement(BLOCK as u32, |m| devices.number(m));
    let placement = placement.unwrap();
    let map = LayoutMap::new(&placement, BLOCK as u32).expect("a placement that the engine takes");
    let mut blocks = 0;
    for extent in &geometry.extents {
        for offset in (extent.offset.0..extent.offset.0 + extent.bytes.0).step_by(BLOCK) {
            let mut wanted = vec![0; BLOCK];
            let length = file.read_at(&mut wanted, offset).unwrap();
            let copies = map.copies(offset);
            for copy in 0..copies {
                let place = map.copy(offset, copy);
                assert!(place.run >= Bytes(BLOCK as u64));
                let mut found = vec![0; BLOCK];
                let device = &devices.open[usize::from(place.device.0)];
                device.read_exact_at(&mut found, place.position.0).unwrap();
                assert!(
                    found[..length] == wanted[..length],
                    "{}: byte {offset}, copy {copy} of {copies}: not at {place:?}",
                    path.display()
                );
                let before = devices
                    .seen
                    .insert((place.device, place.position.0), (path.to_owned(), offset));
                assert_eq!(before, None, "two blocks at {place:?}");
            }
            blocks += 1;
        }
    }
    blocks
}

/// Finds and compares all files; returns their geometries.
fn compare_all(
    bed: &ArrayBed,
    files: &Files,
    discovery: &Discovery,
) -> HashMap<&'static str, Geometry> {
    bed.settle();
    let mut devices = Devices::default();
    let mut found = HashMap::new();
    for name in Files::NAMES {
        let path = files.path(name);
        let file = File::open(&path).unwrap();
        let geometry = discovery.of(file.as_fd());
        let geometry = geometry.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(geometry.source, GeometrySource::Btrfs);
        assert!(discovery.is_still(&geometry, file.as_fd()).unwrap());
        let mapped: u64 = geometry.extents.iter().map(|e| e.bytes.0).sum();
        if geometry.extents.is_empty() {
            let refused = geometry.placement(BLOCK as u32, |_| DeviceId(0));
            assert!(matches!(refused, Err(Refusal::Nowhere { .. })), "{name}");
        } else {
            let blocks = compare(&path, &geometry, &mut devices);
            assert_eq!(blocks * BLOCK as u64, mapped);
        }
        found.insert(name, geometry);
    }
    check_omissions(&found);
    found
}

/// Of each file that part is mapped that has a place of its own, and the rest is counted.
fn check_omissions(found: &HashMap<&'static str, Geometry>) {
    let mapped = |name: &str| -> u64 { found[name].extents.iter().map(|e| e.bytes.0).sum() };
    let whole = |name: &str| found[name].bytes.0.next_multiple_of(BLOCK as u64);
    assert_eq!(
        mapped("whole"),
        whole("whole"),
        "the last block counts as one"
    );
    assert_eq!(mapped("pieces"), whole("pieces"));
    assert!(
        found["pieces"].extents.len() >= Files::PIECES / 2,
        "it is fragmented"
    );
    let holes = found["holes"].omitted.holes;
    assert!(holes.extents >= 3 && mapped("holes") + holes.bytes == found["holes"].bytes.0);
    assert_eq!(mapped("compressed"), 0);
    assert_eq!(
        found["compressed"].omitted.encoded.bytes,
        found["compressed"].bytes.0
    );
    assert_eq!(mapped("inline"), 0);
    assert_eq!(found["inline"].omitted.inline.extents, 1);
    assert_eq!(
        found["unwritten"].omitted.unwritten.bytes,
        found["unwritten"].bytes.0
    );
}

#[test]
fn every_block_lies_on_the_member_and_at_the_place_that_the_geometry_names() {
    // Profile, the level it is, members of a chunk, members that a byte of a large file is on.
    for (profile, level, members, copies) in [
        ("raid0", "raid0", 4, 1),
        ("raid10", "raid10", 4, 2),
        ("raid5", "raid5", 4, 1),
        ("raid6", "raid6", 4, 1),
        ("raid1", "raid1", 2, 2),
        ("raid1c3", "raid1", 3, 3),
        ("single", "linear", 1, 1),
        ("dup", "dup", 2, 1),
    ] {
        let bed = match ArrayBed::make(profile) {
            Ok(bed) => bed,
            Err(reason) => return skipped(reason),
        };
        let files = Files::write(bed.root());
        let found = compare_all(&bed, &files, &Discovery::default());
        let whole = &found["whole"];
        for array in &whole.arrays {
            assert_eq!((array.level.name(), array.members.len()), (level, members));
        }
        let spread = whole.members();
        let sum: u64 = spread.iter().map(|m| m.bytes).sum();
        assert_eq!(
            sum,
            whole.extents.iter().map(|e| e.bytes.0).sum::<u64>() * copies
        );
        let striped = matches!(profile, "raid0" | "raid10" | "raid5" | "raid6");
        assert_eq!(whole.is_striped(), striped);
        if striped {
            assert_eq!(spread.len(), 4, "{profile}: all members have a share");
            let even = sum / 4;
            let is_even =
                |m: &forerun_io::geometry::MemberBytes| m.bytes.abs_diff(even) <= even / 8;
            assert!(spread.iter().all(is_even), "{profile}: {spread:?}");
        }
    }
}

#[test]
fn a_balance_that_moves_an_open_file_is_noticed_and_the_new_level_found() {
    let bed = match ArrayBed::make("raid0") {
        Ok(bed) => bed,
        Err(reason) => return skipped(reason),
    };
    let files = Files::write(bed.root());
    let discovery = Discovery::default();
    let mut before = compare_all(&bed, &files, &discovery);
    for profile in ["raid10", "raid5", "raid0"] {
        bed.convert(profile);
        let open = File::open(files.path("whole")).unwrap();
        let is_still = discovery.is_still(&before["whole"], open.as_fd());
        assert!(!is_still.unwrap(), "it was moved to {profile}");
        before = compare_all(&bed, &files, &discovery);
        let arrays = &before["whole"].arrays;
        assert!(arrays.iter().all(|array| array.level.name() == profile));
    }
}

#[test]
fn a_device_that_was_replaced_is_not_read_any_more() {
    let mut bed = match ArrayBed::make("raid0") {
        Ok(bed) => bed,
        Err(reason) => return skipped(reason),
    };
    let files = Files::write(bed.root());
    compare_all(&bed, &files, &Discovery::default());
    let [old, new] = bed.replace();
    // No chunk has changed, so a discovery that knows them finds the device within a minute.
    let found = compare_all(&bed, &files, &Discovery::default());
    let members = found["whole"].members();
    let has = |device: &Path| members.iter().any(|m| m.member.device.path == device);
    assert!(has(&new) && !has(&old), "{members:?}");
}

#[test]
fn of_two_copies_that_is_read_which_the_number_of_the_thread_says() {
    let bed = match ArrayBed::make("raid10") {
        Ok(bed) => bed,
        Err(reason) => return skipped(reason),
    };
    let files = Files::write(bed.root());
    bed.settle();
    let path = files.path("whole");
    let file = File::open(&path).unwrap();
    let geometry = Discovery::default().of(file.as_fd()).unwrap();
    if geometry.copy_choice != CopyChoice::ThreadNumber {
        return skipped("this btrfs chooses copies by another policy");
    }
    let [array] = &geometry.arrays[..] else {
        return skipped("the file lies in two chunks");
    };
    let read = |member: &DiskMember| bed::bytes_read(&member.device.path);
    for _ in 0..4 {
        let before: Vec<u64> = array.members.iter().map(read).collect();
        // A thread of its own is in the mount namespace of the one that made it.
        let reader = std::thread::scope(|s| s.spawn(|| files::read_direct(&path)).join().unwrap());
        let after = array.members.iter().map(read);
        let more: Vec<bool> = after
            .zip(before)
            .map(|(after, before)| after > before)
            .collect();
        let copy = reader % 2;
        let wanted: Vec<bool> = (0..4).map(|member| member % 2 == copy).collect();
        assert_eq!(more, wanted, "thread {reader}");
    }
}

#[test]
fn without_root_the_refusal_says_so_and_names_the_call() {
    let bed = match ArrayBed::make("raid0") {
        Ok(bed) => bed,
        Err(reason) => return skipped(reason),
    };
    let path = bed.root().join("file");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    let file = File::open(&path).unwrap();
    let refused = bed.as_nobody(|| Discovery::default().of(file.as_fd()));
    let Err(refused) = refused else {
        panic!("the chunk tree is for root");
    };
    let said = refused.to_string();
    assert!(
        said.contains("TREE_SEARCH") && said.contains("takes root"),
        "{said}"
    );
    assert!(Discovery::default().of(file.as_fd()).is_ok());
}
