//! Idle reads: behind all others, without a window, and no part of a stream.

use std::vec::Vec;

use super::{Rig, sequential};
use crate::detect::Access;
use crate::protocol::{FetchOutcome, Input, Wants};
use crate::units::{Block, Bytes, DeviceId, FileId, Nanos, ReadId, ReaderId};
use crate::{Placement, Profile, Settings, plain, preset};

const BLOCKS: u64 = 4096;
const MEMORY: Bytes = Bytes(64 << 20);

/// A disk with files of 16 MiB, each with the reader of its number.
fn rig(files: u32) -> Rig {
    rig_of(preset::default().settings(MEMORY).unwrap(), files)
}

fn rig_of(settings: Settings, files: u32) -> Rig {
    let mut rig = Rig::of(settings);
    let profile = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
    let device = DeviceId(0);
    let profile = profile.with_servers(1).unwrap();
    rig.input(Input::Device { device, profile });
    for number in 0..files {
        let (file, reader) = (FileId(number), ReaderId(number));
        rig.input(Input::File {
            file,
            placement: Placement::linear(device, Bytes(u64::from(number) << 30)),
            bytes: Bytes(BLOCKS * 4096),
        });
        rig.input(Input::Open { reader, file });
    }
    rig
}

/// A read by the reader of this number, which is the read's as well.
fn read(rig: &mut Rig, number: u32, first: u32, count: u32, wants: Wants) {
    rig.input(Input::Read {
        read: ReadId(number),
        reader: ReaderId(number),
        access: sequential(first, count),
        wants,
        fresh: true,
    });
}

/// Completes everything, the oldest fetch first: the file and first block of each that goes out meanwhile.
fn order(rig: &mut Rig) -> Vec<(u32, u32)> {
    let mut order: Vec<(u32, u32)> = Vec::new();
    while !rig.outstanding.is_empty() {
        // Takes the last one in its place.
        let left = rig.outstanding.len() - 1;
        rig.outstanding.rotate_left(1);
        rig.complete(left, FetchOutcome::Done);
        let new = rig.outstanding[left..].iter();
        order.extend(new.map(|f| (f.extent.file.0, f.extent.first.0)));
    }
    order
}

#[test]
fn an_idle_read_waits_for_all_others_and_is_fetched_alone() {
    let mut rig = rig(6);
    for number in 1..4 {
        read(&mut rig, number, 1000, 1, Wants::Presence);
    }
    assert_eq!(rig.outstanding.len(), 2, "the third is queued");
    read(&mut rig, 0, 0, 16, Wants::Idle);
    for number in 4..6 {
        read(&mut rig, number, 1000, 1, Wants::Presence);
    }
    let order = order(&mut rig);
    assert_eq!(order[..3], [3, 4, 5].map(|file| (file, 1000)));
    assert!(
        order[3..]
            .iter()
            .all(|(file, block)| *file == 0 && *block < 16)
    );
    let ledger = rig.engine.ledger();
    assert_eq!(ledger.demanded, 5 + 16);
    let behind = rig.engine.table().find(FileId(0), Block(16));
    assert!(behind.is_none(), "no window");
}

#[test]
fn where_nothing_is_held_back_an_idle_read_opens_no_window_either() {
    let mut settings = preset::default().settings(MEMORY).unwrap();
    settings.dispatch = plain::settings(MEMORY).dispatch;
    let mut rig = rig_of(settings, 1);
    read(&mut rig, 0, 0, 16, Wants::Idle);
    while !rig.outstanding.is_empty() {
        rig.complete(0, FetchOutcome::Done);
    }
    let ledger = rig.engine.ledger();
    assert_eq!((ledger.demanded, ledger.windows), (16, 0));
}

#[test]
fn another_read_of_the_same_blocks_does_not_wait_behind_others() {
    let mut rig = rig(4);
    read(&mut rig, 0, 0, 1024, Wants::Idle);
    for number in 1..3 {
        read(&mut rig, number, 1000, 1, Wants::Presence);
    }
    // The last block is in a request of the idle read that was not sent.
    assert!(
        rig.outstanding
            .iter()
            .all(|f| !f.extent.contains(Block(1023)))
    );
    let file = FileId(0);
    rig.input(Input::Open {
        reader: ReaderId(9),
        file,
    });
    rig.input(Input::Read {
        read: ReadId(9),
        reader: ReaderId(9),
        access: Access {
            block: Block(1023),
            head: 0,
            count: 1,
            previous: None,
        },
        wants: Wants::Presence,
        fresh: true,
    });
    let order = order(&mut rig);
    assert_eq!(order[3], (0, 512), "the idle read goes on last: {order:?}");
}

#[test]
fn a_stream_keeps_its_marks_and_its_unread_blocks() {
    let mut rig = rig(1);
    read(&mut rig, 0, 0, 16, Wants::Presence);
    while !rig.outstanding.is_empty() {
        rig.complete(0, FetchOutcome::Done);
    }
    let before = rig.engine.ledger();
    assert!(before.resident_unused > 0, "a window is there");
    rig.input(Input::Open {
        reader: ReaderId(1),
        file: FileId(0),
    });
    let resident = 16 + u32::try_from(before.resident_unused).unwrap();
    rig.input(Input::Read {
        read: ReadId(1),
        reader: ReaderId(1),
        access: sequential(0, resident),
        wants: Wants::Idle,
        fresh: true,
    });
    let after = rig.engine.ledger();
    assert_eq!((after.windows, after.used), (before.windows, before.used));
    assert_eq!(after.resident_unused, before.resident_unused);
    read(&mut rig, 0, 16, resident - 16, Wants::Presence);
    assert!(
        rig.engine.ledger().windows > before.windows,
        "its mark counts"
    );
}
