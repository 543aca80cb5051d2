//! Tables as the kernel returns them, made up by its header: no mapped device is needed.

use proptest::prelude::*;

use super::*;
use crate::geometry::block::tests::Tree;

/// An answer with these targets: first sector, sectors, type, parameters.
pub(in crate::geometry) fn table(targets: &[(u64, u64, &str, &str)]) -> Vec<u8> {
    let mut buffer = vec![0; HEAD_BYTES];
    for (begin, sectors, kind, parameters) in targets {
        let at = buffer.len();
        buffer.resize(at + SPEC_BYTES, 0);
        buffer[at..at + 8].copy_from_slice(&begin.to_ne_bytes());
        buffer[at + 8..at + 16].copy_from_slice(&sectors.to_ne_bytes());
        buffer[at + 24..at + 24 + kind.len()].copy_from_slice(kind.as_bytes());
        buffer.extend(parameters.bytes());
        buffer.push(0);
        buffer.resize(buffer.len().next_multiple_of(8), 0);
        let next = (buffer.len() - HEAD_BYTES) as u32;
        buffer[at + 20..at + 24].copy_from_slice(&next.to_ne_bytes());
    }
    buffer[16..20].copy_from_slice(&(HEAD_BYTES as u32).to_ne_bytes());
    buffer[20..24].copy_from_slice(&(targets.len() as u32).to_ne_bytes());
    buffer
}

#[test]
fn a_device_is_asked_for_as_the_kernel_packs_its_number() {
    let mut buffer = [0; HEAD_BYTES];
    question((253, 0x1_02), &mut buffer);
    // `new_encode_dev`: twenty bits of minor around twelve of major.
    assert_eq!(word(&buffer, 40), 0x10_fd02);
    assert_eq!((half(&buffer, 0), half(&buffer, 28)), (4, STATUS_TABLE));
}

fn disks() -> Tree {
    let tree = Tree::new();
    tree.device("dm-0", "253:0", &[("dm/uuid", "LVM-x")]);
    for (disk, number) in [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32")] {
        tree.device(disk, number, &[]);
    }
    tree.partition("sdc/sdc1", "8:33", 2048);
    tree
}

#[test]
fn linear_targets_are_followed_and_striped_ones_name_their_members() {
    let tree = disks();
    let system = System {
        table: |_| {
            Ok(table(&[
                (0, 8192, "linear", "8:0 2048"),
                (8192, 1 << 20, "striped", "2 128 8:16 0 8:33 384"),
                (8192 + (1 << 20), 64, "linear", "8:0 10240"),
            ]))
        },
        ..tree.system()
    };
    let below = system.below((253, 0)).unwrap();
    assert_eq!(below.source, GeometrySource::DeviceMapper);
    let space = &below.space;
    let first = space.find(4096).unwrap();
    assert_eq!((first.array, first.at), (Some(0), 2048 * SECTOR));
    let last = space.find((8192 + (1 << 20)) * SECTOR).unwrap();
    assert_eq!((last.array, last.at), (Some(0), 10240 * SECTOR), "one disk");
    let striped = space.find(8192 * SECTOR).unwrap();
    let array = &space.arrays[striped.array.unwrap()];
    assert_eq!((array.level, array.strip), (Level::Raid0, Bytes(64 << 10)));
    let members: Vec<_> = array
        .members
        .iter()
        .map(|m| (m.device.number, m.begin.0))
        .collect();
    assert_eq!(members, [((8, 16), 0), ((8, 32), (384 + 2048) * SECTOR)]);
    assert_eq!(striped.at, 0);
}

#[test]
fn a_linear_target_on_md_is_that_array_from_a_place_on() {
    let tree = disks();
    crate::geometry::md::tests::array(&tree, "raid0", 0, 65536, &["sda", "sdb"]);
    let system = System {
        table: |_| Ok(table(&[(0, 8192, "linear", "9:0 2048")])),
        ..tree.system()
    };
    let below = system.below((253, 0)).unwrap();
    assert_eq!(below.source, GeometrySource::Md);
    let segment = below.space.find(4096).unwrap();
    assert_eq!(segment.at, 2048 * SECTOR);
    assert_eq!(below.space.arrays[0].level, Level::Raid0);
}

#[test]
fn other_targets_encrypted_devices_and_missing_rights_are_named() {
    let said = |table: fn((u32, u32)) -> io::Result<Vec<u8>>, uuid: &str| {
        let tree = disks();
        tree.write("block/dm-0/dm/uuid", uuid);
        let system = System {
            table,
            ..tree.system()
        };
        system.below((253, 0)).unwrap_err().to_string()
    };
    let mirror = |_| Ok(table(&[(0, 8, "mirror", "core 1 1024 2 8:0 0 8:16 0")]));
    assert!(said(mirror, "LVM-x").contains("dm-0 has a target that is not known: mirror"));
    let never = |_| panic!("the key is in that table");
    assert!(said(never, "CRYPT-LUKS2-x").contains("crypt"));
    let no = |_| Err(io::Error::from_raw_os_error(libc::EACCES));
    assert!(said(no, "LVM-x").contains("takes root"));
    for wrong in ["", "8:0", "8 0", "x:0 0", "8:0 -1"] {
        assert_eq!(place(&wrong.split_whitespace().collect::<Vec<_>>()), None);
    }
    let cut = |_| {
        let mut table = table(&[(0, 8, "linear", "8:0 0")]);
        table[28] = 1;
        table[29] = 1;
        Ok(table)
    };
    assert!(said(cut, "LVM-x").contains("cut"));
}

proptest! {
    #[test]
    fn any_bytes_are_a_table_or_none(
        mut buffer in proptest::collection::vec(any::<u8>(), 0..600),
        count in 0_u8..4,
    ) {
        if buffer.len() > 32 {
            buffer[16..24].copy_from_slice(&[40, 0, 0, 0, count, 0, 0, 0]);
            buffer[28..32].fill(0);
        }
        let _ = parse(&buffer);
    }
}
