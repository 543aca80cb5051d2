//! Extents of an address space and the arrays that have them, and those of this machine's files.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use super::*;
use crate::geometry::fiemap::RawExtent;
use crate::geometry::{DiskArray, DiskMember, Level};

const K: u64 = 1024;

fn raid0(strip: u64) -> DiskArray {
    let member = |minor: u32| DiskMember {
        device: BlockDevice {
            path: format!("/dev/loop{minor}").into(),
            number: (7, minor),
        },
        part: 0,
        begin: Bytes(0),
    };
    DiskArray {
        level: Level::Raid0,
        strip: Bytes(strip),
        members: [member(0), member(1)].into(),
    }
}

fn found(extents: &[(u64, u64, u64)], bytes: u64, space: &Space) -> Result<Geometry, Refusal> {
    let raw = |&(logical, physical, bytes): &(u64, u64, u64)| RawExtent {
        logical,
        physical,
        bytes,
        flags: 0,
    };
    let extents = Extents {
        kept: extents.iter().map(raw).collect(),
        ..Extents::default()
    };
    map(&extents, bytes, space, GeometrySource::Btrfs)
}

#[test]
fn an_extent_over_two_chunks_is_two_and_arrays_are_numbered_as_they_are_met() {
    let mut space = Space::default();
    space.push(100 * K, 100 * K, raid0(4 * K));
    space.push(200 * K, 100 * K, raid0(8 * K));
    space.push_missing(300 * K, 100 * K);
    let geometry = found(
        &[(0, 196 * K, 12 * K), (12 * K, 208 * K, 4 * K)],
        14 * K,
        &space,
    );
    let geometry = geometry.unwrap();
    let extents: Vec<_> = geometry
        .extents
        .iter()
        .map(|e| (e.offset.0 / K, e.array, e.at.0 / K, e.bytes.0 / K))
        .collect();
    assert_eq!(
        extents,
        [(0, 0, 96, 4), (4, 1, 0, 12)],
        "the rest is one run"
    );
    assert_eq!(geometry.arrays[1].strip, Bytes(8 * K));
    let refused = found(&[(0, 250 * K, 60 * K)], 60 * K, &space);
    assert!(matches!(refused, Err(Refusal::MemberMissing { .. })));
    let refused = found(&[(0, 90 * K, 20 * K)], 20 * K, &space);
    assert!(matches!(refused, Err(Refusal::NoSuchAddress(_))));
}

#[test]
fn extents_of_small_blocks_are_rounded_to_pages_and_no_page_is_in_two() {
    let space = Space::of(raid0(4 * K));
    // Blocks of 1 KiB on a partition that begins at sector 63.
    let at = 63 * 512;
    let extents = [
        (0, at, 5 * K),
        (5 * K, at + 400 * K, K),
        (6 * K, at + 900 * K, 7 * K),
    ];
    let geometry = found(&extents, 13 * K, &space).unwrap();
    let extents: Vec<_> = geometry
        .extents
        .iter()
        .map(|e| (e.offset.0, e.at.0 % 4096, e.bytes.0 / K))
        .collect();
    assert_eq!(extents, [(0, 0, 8), (8 * K, 0, 8)]);
}

#[test]
fn more_extents_than_are_kept_leave_the_rest_unknown() {
    let space = Space::of(raid0(4 * K));
    let count = EXTENTS_MAX as u64 + 5;
    let extents: Vec<_> = (0..count).map(|n| (n * 4 * K, n * 16 * K, 4 * K)).collect();
    let geometry = found(&extents, count * 4 * K, &space).unwrap();
    assert_eq!(geometry.extents.len(), EXTENTS_MAX);
    assert_eq!(
        geometry.unknown_from,
        Some(Bytes(EXTENTS_MAX as u64 * 4 * K))
    );
}

#[test]
fn a_file_of_this_machine_has_a_geometry_or_a_reason() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![7; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    let discovery = Discovery::default();
    match discovery.of(file.as_fd()) {
        Ok(geometry) => {
            assert_eq!(geometry.bytes, Bytes(1 << 20));
            assert!(discovery.is_still(&geometry, file.as_fd()).unwrap());
        }
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
    let pipe = File::open("/dev/null").unwrap();
    assert!(matches!(discovery.of(pipe.as_fd()), Err(Refusal::NotAFile)));
    let proc = File::open("/proc/self/status").unwrap();
    assert!(matches!(
        discovery.of(proc.as_fd()),
        Err(Refusal::FileSystem(0x9fa0))
    ));
}
