//! Recorded and made-up answers of `FIEMAP`, and the parts kept of them.

use proptest::prelude::*;

use super::*;

const K: u64 = 1024;

fn extent(logical: u64, physical: u64, bytes: u64, flags: u32) -> RawExtent {
    RawExtent {
        logical,
        physical,
        bytes,
        flags,
    }
}

/// A buffer as the kernel fills it with those extents of a list that a call asks for.
fn answer(list: &[RawExtent], start: u64, count: usize, buffer: &mut FiemapBuffer) {
    let behind = list.iter().filter(|e| e.logical + e.bytes > start);
    let chosen: Vec<_> = behind.take(count).collect();
    buffer.fill(0);
    buffer[20..24].copy_from_slice(&(chosen.len() as u32).to_ne_bytes());
    for (index, e) in chosen.iter().enumerate() {
        let at = FIEMAP_HEAD + index * FIEMAP_EXTENT;
        let words = [e.logical, e.physical, e.bytes];
        for (field, word) in words.iter().enumerate() {
            let at = at + field * 8;
            buffer[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        buffer[at + 40..at + 44].copy_from_slice(&e.flags.to_ne_bytes());
    }
}

fn all_of(list: &[RawExtent], bytes: u64) -> Extents {
    let mut calls = 0;
    all(bytes, &mut |start, count, buffer| {
        calls += 1;
        assert!(calls < 200, "it ends");
        answer(list, start, count, buffer);
        Ok(())
    })
    .unwrap()
}

#[test]
fn extents_that_follow_each_other_are_one_and_those_without_a_place_are_counted() {
    let list = [
        extent(0, 70 << 20, 128 * K, 0),
        extent(128 * K, (70 << 20) + 128 * K, 128 * K, 0),
        extent(256 * K, 90 << 20, 128 * K, 0x8),
        extent(1024 * K, 93 << 20, 1024 * K, 0x800),
        extent(2048 * K, 0, 4 * K, 0x2 | 0x4),
        extent(2052 * K, 0, 4 * K, 0x200 | 0x100),
        extent(2056 * K, 95 << 20, 8 * K, LAST),
    ];
    let found = all_of(&list, 2060 * K);
    let kept = [
        extent(0, 70 << 20, 256 * K, 0),
        extent(2056 * K, 95 << 20, 4 * K, LAST),
    ];
    assert_eq!(found.kept, kept, "the last one ends with the file");
    let count = |extents, bytes| Omitted { extents, bytes };
    assert_eq!(found.omitted.encoded, count(1, 128 * K));
    assert_eq!(found.omitted.unwritten, count(1, 1024 * K));
    assert_eq!(found.omitted.delayed, count(1, 4 * K));
    assert_eq!(found.omitted.inline, count(1, 4 * K));
    assert_eq!(found.omitted.unknown, count(0, 0));
    assert_eq!(found.omitted.holes, count(1, 640 * K));
    assert_eq!(found.unknown_from, None);
    let empty = all_of(&[], 5 * K);
    assert_eq!(empty.omitted.holes, count(1, 5 * K), "a file of one hole");
}

#[test]
fn a_file_in_too_many_runs_is_looked_at_up_to_the_bound() {
    let list: Vec<_> = (0..6000)
        .map(|n| extent(n * 4 * K, (6000 - n) << 20, 4 * K, 0))
        .collect();
    let found = all_of(&list, 6000 * 4 * K);
    assert_eq!(found.kept.len(), EXTENTS_MAX);
    assert_eq!(found.unknown_from, Some(EXTENTS_MAX as u64 * 4 * K));
    // As many as allowed are all of them.
    let found = all_of(&list[..EXTENTS_MAX], EXTENTS_MAX as u64 * 4 * K);
    assert_eq!((found.kept.len(), found.unknown_from), (EXTENTS_MAX, None));
    // Compressed extents are not kept, and are looked at no longer for that.
    let encoded: Vec<_> = (0..20_000)
        .map(|n| extent(n * 128 * K, n << 20, 128 * K, 0x8))
        .collect();
    let found = all_of(&encoded, 20_000 * 128 * K);
    assert_eq!(found.unknown_from, Some((16 << 10) * 128 * K));
    assert_eq!(found.omitted.encoded.extents, 16 << 10);
}

#[test]
fn a_file_that_grew_is_still_the_same_and_one_that_moved_is_not() {
    let before = [
        extent(0, 1 << 20, 8 * K, 0),
        extent(8 * K, 5 << 20, 4 * K, 1),
    ];
    let beginning = all_of(&before, 12 * K).beginning;
    let is_still = |list: &[RawExtent]| {
        let ask = &mut |start, count, buffer: &mut FiemapBuffer| {
            answer(list, start, count, buffer);
            Ok(())
        };
        beginning.is_still(ask).unwrap()
    };
    assert!(is_still(&before));
    let mut grown = before.to_vec();
    grown[1].bytes = 64 * K;
    grown.push(extent(72 * K, 9 << 20, 4 * K, 1));
    assert!(is_still(&grown));
    let mut moved = before;
    moved[1].physical += 4 * K;
    assert!(!is_still(&moved));
    assert!(!is_still(&before[..1]), "cut");
    let nothing = all_of(&[], 12 * K).beginning;
    let mut ask = |start, count, buffer: &mut FiemapBuffer| {
        answer(&before, start, count, buffer);
        Ok(())
    };
    assert!(!nothing.is_still(&mut ask).unwrap(), "it was written");
}

proptest! {
    #[test]
    fn any_bytes_are_read_and_what_is_kept_is_in_order_and_inside_of_the_file(
        answers in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..900), 1..6),
        small in any::<bool>(),
        bytes in prop_oneof![0..1_u64 << 22, any::<u64>()],
    ) {
        let mut call = 0;
        let found = all(bytes, &mut |_, _, buffer| {
            buffer.fill(0);
            let answer = &answers[call % answers.len()];
            buffer[..answer.len()].copy_from_slice(answer);
            if small {
                // Such that it begins in the file more often.
                for index in 0..16 {
                    for field in [0, 16] {
                        let at = FIEMAP_HEAD + index * FIEMAP_EXTENT + field;
                        buffer[at + 3..at + 8].fill(0);
                    }
                }
            }
            call += 1;
            Ok(())
        })
        .unwrap();
        let mut end = 0;
        for e in &found.kept {
            prop_assert!(e.logical >= end && e.bytes > 0);
            end = e.logical + e.bytes;
            prop_assert!(end <= bytes);
        }
        let o = &found.omitted;
        let omitted = [o.delayed, o.encoded, o.inline, o.unwritten, o.unknown, o.holes];
        let kept: u64 = found.kept.iter().map(|e| e.bytes).sum();
        let all = kept + omitted.iter().map(|o| o.bytes).sum::<u64>();
        prop_assert_eq!(all, found.unknown_from.unwrap_or(bytes), "each byte once");
    }
}
