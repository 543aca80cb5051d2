//! Arrays of md in a made-up sysfs, against the arithmetic of the driver itself.

use forerun_core::DeviceId;
use forerun_core::layout::LayoutMap;

use super::*;
use crate::geometry::block::tests::Tree;
use crate::geometry::fiemap::Extents;
use crate::geometry::{GeometrySource, discovery};

/// `md0` of these disks, with data from sector 2048 on.
pub(in crate::geometry) fn array(
    tree: &Tree,
    level: &str,
    layout: u32,
    strip: u64,
    disks: &[&str],
) {
    let count = disks.len().to_string();
    let (layout, strip) = (layout.to_string(), strip.to_string());
    let files = [
        ("md/level", level),
        ("md/layout", &layout),
        ("md/chunk_size", &strip),
        ("md/raid_disks", &count),
        ("md/reshape_position", "none"),
    ];
    tree.device("md0", "9:0", &files);
    for (slot, disk) in disks.iter().enumerate() {
        member(tree, disk, slot, 8192);
    }
}

fn member(tree: &Tree, disk: &str, slot: usize, kib: u64) {
    let folder = format!("block/md0/md/dev-{disk}");
    for (file, text) in [
        ("slot", slot.to_string()),
        ("offset", "2048".to_owned()),
        ("size", kib.to_string()),
        ("state", "in_sync".to_owned()),
    ] {
        tree.write(&format!("{folder}/{file}"), &text);
    }
    tree.link(&format!("{folder}/block"), &format!("block/{disk}"));
}

const DISKS: [&str; 6] = ["sda", "sdb", "sdc", "sdd", "sde", "sdf"];

fn tree(disks: usize) -> Tree {
    let tree = Tree::new();
    for (index, disk) in DISKS[..disks].iter().enumerate() {
        tree.device(disk, &format!("8:{}", index * 16), &[]);
    }
    tree
}

const STRIP: u64 = 64 << 10;

/// Where the engine believes the copies of a strip: slots by the disks' numbers, and the place behind
/// sector 2048.
fn places(space: &Space, strip: u64) -> Vec<(u64, u64)> {
    let bytes = (strip + 1) * STRIP;
    let extents = Extents::whole(bytes);
    let found = discovery::map(&extents, bytes, space, GeometrySource::Md).unwrap();
    let number = |m: &DiskMember| DeviceId((m.device.number.1 / 16) as u16);
    let placement = found.placement(4096, number).unwrap();
    let map = LayoutMap::new(&placement, 4096).unwrap();
    let copies = 0..map.copies(strip * STRIP);
    let places = copies.map(|copy| {
        let place = map.copy(strip * STRIP, copy);
        (u64::from(place.device.0), place.position.0 - 2048 * SECTOR)
    });
    places.collect()
}

fn space_of(tree: &Tree) -> Result<Space, Refusal> {
    Ok(tree.system().below((9, 0))?.space)
}

/// `raid5_compute_sector` of the driver: the row and the slot of a data strip.
fn compute_sector(level: &str, algorithm: u32, disks: u64, strip: u64) -> (u64, u64) {
    let data = disks - if level == "raid6" { 2 } else { 1 };
    let (row, dd) = (strip / data, strip % data);
    let slot = match (level, algorithm) {
        ("raid5", 2) => (data - row % disks + 1 + dd) % disks,
        ("raid5", 3) => (row % disks + 1 + dd) % disks,
        ("raid6", 2) => (disks - 1 - row % disks + 2 + dd) % disks,
        ("raid6", 3) => (row % disks + 2 + dd) % disks,
        ("raid6", 10) => (disks - 1 - row % disks + 1 + dd) % disks,
        ("raid5", 4) => dd + 1,
        ("raid6", 4) => dd + 2,
        (_, 5) | ("raid4", _) => dd,
        other => panic!("{other:?}"),
    };
    (row, slot)
}

#[test]
fn strips_with_parity_lie_where_the_driver_computes_them() {
    for (level, algorithm) in [
        ("raid4", 0),
        ("raid5", 2),
        ("raid5", 3),
        ("raid5", 4),
        ("raid5", 5),
        ("raid6", 2),
        ("raid6", 3),
        ("raid6", 4),
        ("raid6", 5),
        ("raid6", 10),
    ] {
        for disks in [4, 5, 6] {
            let tree = tree(disks);
            array(&tree, level, algorithm, STRIP, &DISKS[..disks]);
            let space = space_of(&tree).unwrap();
            for strip in 0..40 {
                let (row, slot) = compute_sector(level, algorithm, disks as u64, strip);
                let found = places(&space, strip);
                assert_eq!(
                    found,
                    [(slot, row * STRIP)],
                    "{level} {algorithm} of {disks}, strip {strip}"
                );
            }
        }
    }
}

#[test]
fn near_copies_lie_beside_each_other_and_of_far_ones_the_first_is_read() {
    let near = tree(4);
    array(&near, "raid10", 0x102, STRIP, &DISKS[..4]);
    let space = space_of(&near).unwrap();
    assert_eq!(places(&space, 3), [(2, STRIP), (3, STRIP)]);
    let far = tree(3);
    array(&far, "raid10", 0x201, STRIP, &DISKS[..3]);
    let space = space_of(&far).unwrap();
    assert_eq!(places(&space, 4), [(1, STRIP)]);
}

#[test]
fn disks_of_raid_0_that_differ_make_zones() {
    for (layout, second_zone) in [(1, [2, 1]), (2, [1, 2])] {
        let tree = tree(3);
        array(&tree, "raid0", layout, STRIP, &[]);
        tree.write("block/md0/md/raid_disks", "3");
        // One strip, two, and three with a rest that is not used.
        for (slot, kib) in [64, 128, 200].into_iter().enumerate() {
            member(&tree, DISKS[slot], slot, kib);
        }
        let space = space_of(&tree).unwrap();
        let found: Vec<_> = (0..6).map(|strip| places(&space, strip)[0]).collect();
        let [third, fourth] = second_zone.map(|slot| (slot, STRIP));
        let wanted = [(0, 0), (1, 0), (2, 0), third, fourth, (2, 2 * STRIP)];
        assert_eq!(found, wanted, "layout {layout}");
    }
    let tree = tree(2);
    array(&tree, "raid0", 0, STRIP, &DISKS[..2]);
    member(&tree, "sda", 0, 4096);
    assert!(
        matches!(space_of(&tree), Err(Refusal::Level { .. })),
        "it does not say"
    );
}

#[test]
fn members_of_linear_follow_each_other_and_mirrors_have_all() {
    let linear = tree(2);
    array(&linear, "linear", 0, 0, &DISKS[..2]);
    let space = space_of(&linear).unwrap();
    let second = space.find((8192 << 10) + 4096).unwrap();
    assert_eq!((second.array, second.at), (Some(1), 2048 * SECTOR));
    let mirror = tree(3);
    array(&mirror, "raid1", 0, 0, &DISKS[..3]);
    mirror.write("block/md0/md/dev-sdb/state", "faulty");
    let space = space_of(&mirror).unwrap();
    assert_eq!(
        space.arrays[0].members.len(),
        2,
        "without the one that failed"
    );
    assert_eq!(places(&space, 9), [(0, 9 * STRIP), (2, 9 * STRIP)]);
    mirror.write("block/md0/md/dev-sda/state", "faulty");
    let space = space_of(&mirror).unwrap();
    assert_eq!(space.arrays[0].level, Level::Linear, "the last one alone");
}

#[test]
fn partitions_of_a_member_are_its_disk() {
    let tree = tree(2);
    tree.partition("sda/sda2", "8:2", 100);
    array(&tree, "raid0", 0, STRIP, &[]);
    tree.write("block/md0/md/raid_disks", "2");
    member(&tree, "sdb", 0, 8192);
    member(&tree, "sda2", 1, 8192);
    tree.link("block/md0/md/dev-sda2/block", "block/sda/sda2");
    let space = space_of(&tree).unwrap();
    assert_eq!(places(&space, 1), [(0, 100 * SECTOR)]);
}

#[test]
fn an_array_that_is_reshaped_degraded_or_unknown_is_refused_by_name() {
    let said = |level: &str, layout: u32, file: &str, text: &str| {
        let tree = tree(4);
        array(&tree, level, layout, STRIP, &DISKS[..4]);
        tree.write(&format!("block/md0/md/{file}"), text);
        space_of(&tree).unwrap_err().to_string()
    };
    let reshaped = said("raid5", 2, "reshape_position", "4096");
    assert_eq!(reshaped, "md0 is being reshaped");
    let missing = "md0 runs without one of its members";
    assert_eq!(said("raid5", 2, "dev-sdc/state", "faulty"), missing);
    assert_eq!(said("raid5", 2, "dev-sdc/slot", "none"), missing);
    assert_eq!(said("raid10", 0x102, "dev-sdc/state", "spare"), missing);
    assert_eq!(said("raid0", 0, "raid_disks", "5"), missing);
    for (level, layout) in [
        ("raid5", 0),
        ("raid6", 1),
        ("raid10", 0x1_0201),
        ("raid10", 0x103),
    ] {
        let said = said(level, layout, "reshape_position", "none");
        let wanted =
            format!("md0 has a level or layout that is not known: {level}, layout {layout}");
        assert_eq!(said, wanted);
    }
    assert!(said("raid0", 0, "raid_disks", "many").contains("\"many\" is no number"));
    assert!(said("raid5", 2, "chunk_size", "0").contains("not known"));
}
