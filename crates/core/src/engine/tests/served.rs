//! Requests of a server that may never answer hold a part of the memory at most; short ones are as many as it
//! is given.

use std::format;

use super::{Rig, sequential};
use crate::protocol::{Fetch, FetchOutcome, Input, Wants};
use crate::units::{Block, Bytes, DeviceId, Extent, FileId, Nanos, ReadId, ReaderId};
use crate::{Placement, Profile, preset};

const BLOCK: u64 = 4096;
const MOST: u32 = 64;

fn rig_of(memory: u64) -> Rig {
    let forerun = preset::find("forerun").unwrap();
    Rig::of(forerun.settings(Bytes(memory)).unwrap())
}

/// So many readers of files of a store of so many servers, each of so many blocks.
fn rig(servers: u32, memory: u64, readers: u32, blocks: u32) -> Rig {
    reading(rig_of(memory), servers, readers, blocks)
}

fn reading(mut rig: Rig, servers: u32, readers: u32, blocks: u32) -> Rig {
    let store = Profile::constant(Nanos(30_000_000), 80_000_000).unwrap();
    let store = store.with_servers(servers).unwrap().with_most(MOST);
    rig.input(Input::Device {
        device: DeviceId(0),
        profile: store,
    });
    for number in 0..readers {
        let (file, reader) = (FileId(number), ReaderId(number));
        rig.input(Input::File {
            file,
            placement: Placement::linear(DeviceId(0), Bytes(u64::from(number) << 30)),
            bytes: Bytes(u64::from(blocks) * BLOCK),
        });
        rig.input(Input::Open { reader, file });
        let access = sequential(0, blocks.min(64));
        rig.input(Input::Read {
            read: ReadId(number),
            reader,
            access,
            wants: Wants::Presence,
            fresh: true,
        });
    }
    rig
}

fn bytes_in_flight(rig: &Rig) -> u64 {
    rig.outstanding
        .iter()
        .map(|fetch| u64::from(fetch.extent.count) * BLOCK)
        .sum()
}

#[test]
fn short_requests_are_as_many_as_a_server_is_given_however_little_memory_there_is() {
    // Servers, memory, readers, blocks of each; and how many go out.
    for (servers, memory, readers, blocks, expected) in [
        (16, 16 << 20, 100, 1, 64),
        (16, 16 << 20, 100, 16, 64),
        (16, 3 << 20, 100, 1, 64),
        (2, 16 << 20, 100, 1, 8),
        (2, 256 << 20, 20, 512, 8),
    ] {
        let mut rig = rig(servers, memory, readers, blocks);
        let case = format!("{memory} bytes, {readers} of {blocks} blocks");
        let count = rig.outstanding.len();
        assert_eq!(count, expected, "{case}");
        for _ in 0..readers {
            let is_within = bytes_in_flight(&rig) <= memory - memory / 8;
            assert!(is_within || rig.outstanding.len() == 2, "{case}");
            rig.complete(0, FetchOutcome::Done);
        }
        rig.settle();
    }
}

/// Two programs that read a disk each.
fn disk_at_work(memory: u64) -> Rig {
    let mut rig = rig_of(memory);
    let disk = DeviceId(1);
    rig.input(Input::Device {
        device: disk,
        profile: Profile::constant(Nanos(8_000_000), 80_000_000).unwrap(),
    });
    for number in 1000..1002 {
        let (file, reader) = (FileId(number), ReaderId(number));
        rig.input(Input::File {
            file,
            placement: Placement::linear(disk, Bytes(u64::from(number) << 30)),
            bytes: Bytes(BLOCK),
        });
        rig.input(Input::Open { reader, file });
        rig.input(Input::Read {
            read: ReadId(number),
            reader,
            access: sequential(0, 1),
            wants: Wants::Presence,
            fresh: true,
        });
    }
    rig
}

/// The most bytes of the store in flight, until a hundred requests of it are answered.
fn most_in_flight(mut rig: Rig) -> u64 {
    let mut most = 0;
    for _ in 0..100 {
        let of_store = |fetch: &Fetch| fetch.device == DeviceId(0);
        let bytes = rig.outstanding.iter().filter(|fetch| of_store(fetch));
        most = most.max(
            bytes
                .map(|fetch| u64::from(fetch.extent.count) * BLOCK)
                .sum(),
        );
        rig.now += 1_000_000;
        match rig.outstanding.iter().position(of_store) {
            Some(at) => rig.complete(at, FetchOutcome::Done),
            None => break,
        }
    }
    most
}

#[test]
fn requests_of_a_server_leave_an_eighth_and_a_third_while_another_device_has_work() {
    for memory in [4 << 20, 8 << 20, 16 << 20] {
        let most = |rig| most_in_flight(reading(rig, 16, 64, 1024));
        let alone = most(rig_of(memory));
        assert!(alone > memory / 2, "{alone} of {memory}");
        assert!(alone <= memory - memory / 8, "{alone} of {memory}");
        let shared = most(disk_at_work(memory));
        assert!(shared <= memory - memory / 3, "{shared} of {memory}");
    }
}

/// The longest request in blocks, until so many are answered: windows have 128.
fn longest(readers: u32, answers: u32) -> u32 {
    let mut rig = rig(2, 256 << 20, readers, 512);
    let mut longest = 0;
    for _ in 0..answers {
        let lengths = rig.outstanding.iter().map(|fetch| fetch.extent.count);
        longest = longest.max(lengths.max().unwrap_or(0));
        // Two servers take 36 ms each for half a MiB.
        rig.now += 17_000_000;
        rig.complete(0, FetchOutcome::Done);
    }
    longest
}

#[test]
fn a_window_is_one_request_where_others_wait_for_their_turn_and_two_where_none_does() {
    for (readers, expected) in [(100, 128), (20, 128), (8, 128), (1, 64)] {
        assert_eq!(longest(readers, 8), expected, "{readers} readers");
    }
}

/// Bytes fetched once a reader has read eight times 64 KiB from there on, of a file of 256 MiB.
fn fetched_from(first: u32) -> u64 {
    const COUNT: u32 = 16;
    let mut rig = rig(16, 512 << 20, 0, 0);
    let (file, reader) = (FileId(0), ReaderId(0));
    rig.input(Input::File {
        file,
        placement: Placement::linear(DeviceId(0), Bytes(0)),
        bytes: Bytes(256 << 20),
    });
    rig.input(Input::Open { reader, file });
    for number in 0..8 {
        let first = first + number * COUNT;
        rig.input(Input::Read {
            read: ReadId(number),
            reader,
            access: sequential(first, COUNT),
            wants: Wants::Presence,
            fresh: true,
        });
        while rig.engine.reads.get(ReadId(number)).is_some() {
            rig.now += 30_000_000;
            while !rig.outstanding.is_empty() {
                rig.complete(0, FetchOutcome::Done);
            }
        }
        let first = Block(first);
        rig.input(Input::Touch {
            reader,
            first,
            count: COUNT,
        });
    }
    rig.engine.ledger().request_bytes.0
}

#[test]
fn a_file_read_from_its_begin_has_longer_windows_than_a_run_within_one() {
    let (within, begin) = (fetched_from(1 << 15), fetched_from(0));
    assert!(begin >= 2 * within, "{begin} of {within}");
}

/// A reader that takes its bytes a moment after the engine says that they are there.
#[test]
fn awaited_blocks_stay_until_they_are_taken_though_their_mark_opens_a_window() {
    const COUNT: u32 = 64;
    for memory in [4 << 20, 9 << 20, 32 << 20] {
        let mut rig = rig(16, memory, 1, 1 << 16);
        for first in (0..1 << 15).step_by(COUNT as usize) {
            let (file, reader) = (FileId(0), ReaderId(0));
            let extent = Extent::new(file, Block(first), COUNT);
            if first > 0 {
                rig.input(Input::Read {
                    read: ReadId(first),
                    reader,
                    access: sequential(first, COUNT),
                    wants: Wants::Presence,
                    fresh: true,
                });
            }
            while rig.engine.reads.get(ReadId(first)).is_some() {
                rig.complete(0, FetchOutcome::Done);
            }
            let given_up = extent
                .blocks()
                .find(|block| rig.engine.table().find(file, *block).is_none());
            assert_eq!(given_up, None, "of {extent} in {memory} bytes");
            rig.input(Input::Touch {
                reader,
                first: extent.first,
                count: COUNT,
            });
        }
        assert_eq!(rig.engine.ledger().evicted_unused, 0);
    }
}
