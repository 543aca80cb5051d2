//! Placements of made-up geometries, and how their bytes are spread.

use forerun_core::layout::LayoutMap;
use proptest::prelude::*;

use super::*;
use crate::geometry::{BlockDevice, CopyChoice, FileExtent, GeometrySource};

const K: u64 = 1024;

fn geometry(level: Level, strip: u64, members: usize, extents: &[(u64, u64, u64)]) -> Geometry {
    let member = |minor: u32| DiskMember {
        device: BlockDevice {
            path: format!("/dev/loop{minor}").into(),
            number: (7, minor),
        },
        part: 0,
        begin: Bytes(u64::from(minor) << 30),
    };
    let extent = |&(offset, at, bytes): &(u64, u64, u64)| FileExtent {
        offset: Bytes(offset),
        array: 0,
        at: Bytes(at),
        bytes: Bytes(bytes),
        flags: 0,
    };
    let end = extents
        .last()
        .map_or(0, |(offset, _, bytes)| offset + bytes);
    Geometry {
        source: GeometrySource::Btrfs,
        bytes: Bytes(end),
        arrays: [DiskArray {
            level,
            strip: Bytes(strip),
            members: (0..members as u32).map(member).collect(),
        }]
        .into(),
        extents: extents.iter().map(extent).collect(),
        unknown_from: None,
        copy_choice: CopyChoice::Kernel,
        omitted: Default::default(),
        beginning: Default::default(),
    }
}

fn number(member: &DiskMember) -> DeviceId {
    DeviceId(member.device.number.1 as u16)
}

fn every_level() -> impl Strategy<Value = (Level, usize)> {
    prop_oneof![
        Just((Level::Linear, 1)),
        Just((Level::Dup, 2)),
        (2_usize..6).prop_map(|n| (Level::Raid1, n)),
        (1_usize..6).prop_map(|n| (Level::Raid0, n)),
        (1_usize..4).prop_map(|n| (Level::Raid10 { copies: 2 }, n * 2)),
        (2_usize..6).prop_map(|n| (Level::Raid5(Rotation::Left), n)),
        (2_usize..6).prop_map(|n| (Level::Raid5(Rotation::Right), n)),
        (3_usize..6).prop_map(|n| (Level::Raid6(Rotation::Left), n)),
        (3_usize..6).prop_map(|n| (Level::Raid6(Rotation::Right), n)),
    ]
}

#[test]
fn a_file_that_begins_with_a_hole_has_a_place_for_its_first_byte() {
    let extents = [(4 * K, 640 * K, 60 * K), (128 * K, 128 * K, 128 * K)];
    let found = geometry(Level::Raid0, 64 * K, 4, &extents);
    let placement = found.placement(4096, number).unwrap();
    let extents: Vec<_> = placement
        .extents
        .iter()
        .map(|e| (e.offset.0 / K, e.at.0 / K))
        .collect();
    assert_eq!(extents, [(0, 0), (4, 640), (128, 128)]);
    assert!(LayoutMap::new(&placement, 4096).is_some());
    // A hole that the addresses have as well needs no extent of its own.
    let extents = [(0, 640 * K, 4 * K), (128 * K, 768 * K, 128 * K)];
    let found = geometry(Level::Raid0, 64 * K, 4, &extents);
    assert_eq!(found.placement(4096, number).unwrap().extents.len(), 1);
}

#[test]
fn a_block_that_a_strip_would_cut_and_a_file_without_a_place_are_refused() {
    let found = geometry(Level::Raid0, 64 * K, 4, &[(0, 0, 64 * K)]);
    let refused = found.placement(128 << 10, number).unwrap_err();
    assert!(refused.to_string().contains("65536") && refused.to_string().contains("131072"));
    let mut nowhere = geometry(Level::Linear, 0, 1, &[]);
    assert_eq!(
        nowhere.placement(4096, number).unwrap_err().to_string(),
        "no part of it has a place on a device"
    );
    nowhere.omitted.delayed.extents = 1;
    let said = nowhere.placement(4096, number).unwrap_err().to_string();
    assert!(said.ends_with("not written yet"));
}

#[test]
fn strips_are_cut_where_extents_begin_and_end_inside_of_them_but_not_by_the_end_of_the_file() {
    let cut = |extents: &[_]| geometry(Level::Raid0, 64 * K, 4, extents).strips_cut();
    assert_eq!(cut(&[(0, 0, 64 * K), (64 * K, 640 * K, 20 * K)]), 0);
    assert_eq!(cut(&[(0, 4 * K, 60 * K), (60 * K, 640 * K, 20 * K)]), 1);
    assert_eq!(cut(&[(0, 0, 60 * K), (60 * K, 644 * K, 20 * K)]), 2);
    assert_eq!(
        cut(&[(0, 4 * K, 8 * K), (8 * K, 640 * K, 64 * K)]),
        1,
        "one strip, both sides"
    );
    assert_eq!(cut(&[(0, 4 * K, 100 * K), (100 * K, 640 * K, 64 * K)]), 2);
    let linear = geometry(Level::Linear, 0, 1, &[(0, 4 * K, 8 * K)]);
    assert_eq!(linear.strips_cut(), 0);
}

proptest! {
    #[test]
    fn shares_of_members_are_those_of_the_blocks_one_by_one(
        (level, members) in every_level(),
        runs in proptest::collection::vec((0_u64..200, 1_u64..300), 1..5),
    ) {
        let mut end = 0;
        let extents: Vec<_> = runs.iter().map(|&(at, blocks)| {
            let extent = (end, at * 4 * K, blocks * 4 * K);
            end += blocks * 4 * K;
            extent
        }).collect();
        let strip = match level {
            Level::Linear | Level::Dup | Level::Raid1 => 0,
            _ => 8 * K,
        };
        let found = geometry(level, strip, members, &extents);
        let map = LayoutMap::new(&found.placement(4096, number).unwrap(), 4096).unwrap();
        let mut counted = vec![0; members];
        for offset in (0..end).step_by(4096) {
            for copy in 0..map.copies(offset) {
                counted[usize::from(map.copy(offset, copy).device.0)] += 4 * K;
            }
        }
        for (member, bytes) in found.members().iter().zip(counted) {
            prop_assert_eq!(member.bytes, bytes, "{:?}", member.member);
        }
    }

    #[test]
    fn every_geometry_is_a_placement_that_the_engine_takes_with_blocks_of_any_size(
        (level, members) in every_level(),
        runs in proptest::collection::vec((0_u64..9, 0_u64..1 << 40, 1_u64..70), 1..40),
        block in (12_u32..17).prop_map(|bits| 1_u32 << bits),
    ) {
        let mut end = 0;
        let extents: Vec<_> = runs.iter().map(|&(hole, at, blocks)| {
            let offset = end + hole * 4 * K;
            end = offset + blocks * 4 * K;
            (offset, at / 4096 * 4096, blocks * 4 * K)
        }).collect();
        let found = geometry(level, 64 * K, members, &extents);
        let placement = found.placement(block, number).unwrap();
        prop_assert!(LayoutMap::new(&placement, block).is_some(), "{:?}", placement);
    }
}
