//! Chunk items as the tree has them, and where their addresses lie, against a map written down anew.

use std::collections::BTreeMap;

use forerun_core::DeviceId;
use forerun_core::layout::LayoutMap;
use proptest::prelude::*;

use super::*;
use crate::geometry::fiemap::{Extents, RawExtent};
use crate::geometry::{BlockDevice, GeometrySource, discovery};

const STRIP: u64 = 64 << 10;

/// An answer with as many of the chunks from a place on as fit, and as the kernel writes it.
fn answer(chunks: &[Chunk], page: &mut Page) {
    let (begin, transaction) = (word(page, 24), word(page, 40));
    let mut at = KEY_BYTES;
    let mut count = 0_u32;
    // All leaves are of transaction 7.
    for chunk in chunks
        .iter()
        .filter(|c| c.begin >= begin && transaction <= 7)
    {
        let bytes = CHUNK_BYTES + chunk.stripes.len() * STRIPE_BYTES;
        if at + HEAD_BYTES + bytes > page.len() {
            break;
        }
        let mut item = vec![0; HEAD_BYTES + bytes];
        let mut put = |at: usize, value: &[u8]| item[at..at + value.len()].copy_from_slice(value);
        put(8, &CHUNKS.to_ne_bytes());
        put(16, &chunk.begin.to_ne_bytes());
        put(24, &CHUNK_ITEM.to_ne_bytes());
        put(28, &(bytes as u32).to_ne_bytes());
        put(32, &chunk.bytes.to_le_bytes());
        put(48, &chunk.strip.to_le_bytes());
        put(56, &chunk.kind.to_le_bytes());
        put(76, &(chunk.stripes.len() as u16).to_le_bytes());
        put(78, &chunk.sub_stripes.to_le_bytes());
        for (index, (device, place)) in chunk.stripes.iter().enumerate() {
            let at = 80 + index * STRIPE_BYTES;
            put(at, &device.to_le_bytes());
            put(at + 8, &place.to_le_bytes());
        }
        page[at..at + item.len()].copy_from_slice(&item);
        at += item.len();
        count += 1;
    }
    page[ITEMS_AT..ITEMS_AT + 4].copy_from_slice(&count.to_ne_bytes());
}

/// The devices 1 to 6, each a disk.
fn disks() -> HashMap<u64, Known> {
    let disk = |id: u64| {
        let device = BlockDevice {
            path: format!("/dev/loop{id}").into(),
            number: (7, id as u32),
        };
        let member = DiskMember {
            device: device.clone(),
            part: 0,
            begin: Bytes(0),
        };
        let below = Space::disk(device);
        (id, Known { member, below })
    };
    (1..=6).map(disk).collect()
}

/// Chunks one behind the other with holes between, each device used from the front.
fn any_chunks() -> impl Strategy<Value = Vec<Chunk>> {
    let kinds = prop_oneof![
        Just((0, 1, 1, 1)),
        Just((DUP, 2, 1, 2)),
        Just((RAID0, 1, 1, 6)),
        Just((RAID1, 1, 2, 2)),
        Just((RAID1C3, 1, 3, 3)),
        Just((RAID10, 2, 2, 6)),
        Just((RAID5, 1, 2, 6)),
        Just((RAID6, 1, 3, 6)),
    ];
    let one = (
        kinds,
        0_usize..8,
        1_u64..5,
        0_u64..3,
        any::<prop::sample::Index>(),
    );
    proptest::collection::vec(one, 1..12).prop_map(|drawn| {
        let (mut begin, mut free) = (1 << 20, BTreeMap::new());
        let mut chunks = Vec::new();
        for ((kind, sub_stripes, least, most), more, rows, gap, first) in drawn {
            let mut count = least + more % (most - least + 1);
            if kind == RAID10 {
                count = count / 2 * 2;
            }
            let data = match kind {
                RAID0 => count,
                RAID10 => count / 2,
                RAID5 => count - 1,
                RAID6 => count - 2,
                _ => 1,
            };
            let first = first.index(6);
            let stripe = |index: usize| {
                // Both copies of `dup` are on one device.
                let step = if kind == DUP { 0 } else { index };
                let device = ((first + step) % 6) as u64 + 1;
                let place: &mut u64 = free.entry(device).or_insert(1 << 20);
                *place += rows * STRIP;
                (device, *place - rows * STRIP)
            };
            chunks.push(Chunk {
                begin,
                bytes: rows * STRIP * data as u64,
                strip: STRIP,
                kind: kind | 1,
                sub_stripes,
                stripes: (0..count).map(stripe).collect(),
            });
            begin += rows * STRIP * data as u64 + gap * STRIP;
        }
        chunks
    })
}

/// The devices and places of an address, by the module's header.
fn place(chunk: &Chunk, address: u64) -> Vec<(u64, u64)> {
    let o = address - chunk.begin;
    let (n, k, rest) = (chunk.stripes.len() as u64, o / STRIP, o % STRIP);
    let on = |member: u64, row: u64| {
        let (device, begin) = chunk.stripes[member as usize];
        (device, begin + row * STRIP + rest)
    };
    match chunk.kind & !TYPES {
        RAID0 => vec![on(k % n, k / n)],
        RAID10 => {
            let (group, row) = (k % (n / 2), k / (n / 2));
            vec![on(group * 2, row), on(group * 2 + 1, row)]
        }
        kind @ (RAID5 | RAID6) => {
            let d = if kind == RAID5 { n - 1 } else { n - 2 };
            vec![on((k % d + k / d) % n, k / d)]
        }
        RAID1 | RAID1C3 => (0..n).map(|member| on(member, k)).collect(),
        _ => vec![on(0, k)],
    }
}

proptest! {
    #[test]
    fn a_block_lies_on_its_member_and_the_member_has_that_block(
        chunks in any_chunks(),
        runs in proptest::collection::vec((any::<prop::sample::Index>(), 0_u64..64, 1_u64..80), 1..9),
    ) {
        let mut read = |page: &mut Page| { answer(&chunks, page); Ok(()) };
        prop_assert_eq!(&super::chunks(&mut read).unwrap(), &chunks);
        let space = space(&chunks, &disks()).unwrap();
        // A file of runs that may cross chunks but not leave them, one behind the other.
        let mut extents = Extents::default();
        let mut used: BTreeMap<u64, u64> = BTreeMap::new();
        let mut end = 0;
        for (chunk, skip, blocks) in runs {
            let chunk = &chunks[chunk.index(chunks.len())];
            let physical = chunk.begin + skip * 4096 % chunk.bytes;
            let bytes = (0..blocks)
                .take_while(|b| space.find(physical + b * 4096).is_some())
                .take_while(|b| used.insert(physical + b * 4096, end + b * 4096).is_none())
                .count() as u64 * 4096;
            if bytes > 0 {
                extents.kept.push(RawExtent { logical: end, physical, bytes, flags: 0 });
                end += bytes;
            }
        }
        let found = discovery::map(&extents, end, &space, GeometrySource::Btrfs).unwrap();
        let number = |m: &DiskMember| DeviceId(m.device.number.1 as u16);
        let map = LayoutMap::new(&found.placement(4096, number).unwrap(), 4096).unwrap();
        let mut back = BTreeMap::new();
        for raw in &extents.kept {
            for block in (0..raw.bytes).step_by(4096) {
                let (offset, address) = (raw.logical + block, raw.physical + block);
                let chunk = chunks.iter().rfind(|c| c.begin <= address).unwrap();
                let wanted = place(chunk, address);
                let there: Vec<_> = (0..map.copies(offset))
                    .map(|copy| map.copy(offset, copy))
                    .map(|place| (u64::from(place.device.0), place.position.0))
                    .collect();
                prop_assert_eq!(&there, &wanted);
                for place in there {
                    let before = back.insert(place, offset);
                    prop_assert_eq!(before, None, "the member has one block there");
                }
            }
        }
        let spread: u64 = found.members().iter().map(|m| m.bytes).sum();
        prop_assert_eq!(spread, back.len() as u64 * 4096);
    }

    #[test]
    fn any_bytes_are_chunks_or_none(
        bytes in proptest::collection::vec(any::<u8>(), 400),
        count in 0_u8..5,
        length in 0_u8..200,
    ) {
        let mut asked = 0;
        let _ = chunks(&mut |page| {
            asked += 1;
            assert!(asked < 1000, "it ends");
            page[KEY_BYTES..KEY_BYTES + 400].copy_from_slice(&bytes);
            page[ITEMS_AT] = count;
            page[ITEMS_AT + 1..ITEMS_AT + 4].fill(0);
            page[KEY_BYTES + 24..KEY_BYTES + 32].copy_from_slice(&[228, 0, 0, 0, length, 0, 0, 0]);
            Ok(())
        });
    }
}

fn chunk(kind: u64, stripes: &[(u64, u64)]) -> Chunk {
    Chunk {
        begin: 0,
        bytes: 1 << 30,
        strip: STRIP,
        kind: kind | 1,
        sub_stripes: 2,
        stripes: stripes.to_vec(),
    }
}

#[test]
fn more_chunks_than_fit_a_page_are_asked_for_again_and_young_leaves_are_seen() {
    let chunks: Vec<_> = (0..300)
        .map(|n| Chunk {
            begin: n << 30,
            ..chunk(
                RAID0,
                &[(1, n << 28), (2, n << 28), (3, n << 28), (4, n << 28)],
            )
        })
        .collect();
    let mut pages = 0;
    let mut read = |page: &mut Page| {
        pages += 1;
        answer(&chunks, page);
        Ok(())
    };
    assert_eq!(super::chunks(&mut read).unwrap(), chunks);
    assert!(is_younger(7, &mut read).unwrap());
    assert!(!is_younger(8, &mut read).unwrap());
    assert!(pages > 10);
}

#[test]
fn a_missing_device_takes_the_chunks_that_cannot_do_without_it() {
    let mut there = disks();
    there.remove(&2);
    let striped = chunk(RAID0, &[(1, 0), (2, 0)]);
    let space_of = |chunk: Chunk| space(&[chunk], &there).unwrap();
    assert_eq!(space_of(striped).find(0).unwrap().array, None);
    let mirrored = space_of(chunk(RAID1, &[(1, 0), (2, 0)]));
    assert_eq!(mirrored.arrays[0].level, Level::Linear);
    let three = space_of(chunk(RAID1C3, &[(1, 0), (2, 0), (3, 0)]));
    assert_eq!(three.arrays[0].members.len(), 2);
    let refused = space(&[chunk(1 << 11, &[(1, 0)])], &there).unwrap_err();
    assert!(matches!(refused, Refusal::Profile(2048)));
}

#[test]
fn a_file_system_is_known_by_its_identifier() {
    let mut buffer = ask_identity();
    buffer[16..32].copy_from_slice(&core::array::from_fn::<u8, 16, _>(|n| n as u8 * 17));
    buffer[56] = 9;
    let found = identity(&buffer);
    assert_eq!(found.generation, 9);
    assert_eq!(uuid(&found.id), "00112233-4455-6677-8899-aabbccddeeff");
}
