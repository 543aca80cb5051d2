//! Memory with a prefetch cache, in hard cases: less of it than a window for each reader, readers
//! that stop, owners that are gone, clocks that run backward, hints that are wrong.
//!
//! Every reclaim method with a prefetch cache, with every split method. Whatever happens each read
//! is answered once its device has answered, and in the end nothing is left ([`Rig::wind_down`]).

use super::*;
use crate::plain::{APART, SPLITS};

/// A reader of each file and one more; a window has 128 blocks.
const READERS: u32 = 8;
const FILE_BLOCKS: u32 = 500;
/// A third of a window for each.
const BLOCKS: u64 = 320;

/// Windows of half a mebibyte, and a reclaim method with a split that learns.
fn server(method: &str, memory: Bytes) -> crate::Settings {
    crate::Settings {
        reclaim: Choice::parse("reclaim", APART, method).unwrap(),
        split: Choice::parse("split", SPLITS, "wandering").unwrap(),
        ..crate::plain::settings(memory)
    }
}

/// Each method with a prefetch cache, with each split.
fn compositions() -> impl Iterator<Item = Rig> {
    let memory = Table::memory_for(BLOCKS as u32, 4096);
    let settings = server("furthest", memory);
    APART.iter().flat_map(move |method| {
        let settings = settings.clone();
        SPLITS.iter().map(move |split| {
            let settings = crate::Settings {
                reclaim: Choice::of(method),
                split: Choice::of(split),
                ..settings.clone()
            };
            std::println!("{} {}", settings.reclaim, settings.split);
            Rig::of(settings)
        })
    })
}

fn begin(rig: &mut Rig) {
    rig.input(Input::Device {
        device: DeviceId(0),
        profile: Profile::default(),
    });
    for file in (0..4).map(FileId) {
        rig.input(Input::File {
            file,
            placement: Placement::linear(DeviceId(0), Bytes(u64::from(file.0) << 30)),
            bytes: Bytes(u64::from(FILE_BLOCKS) * 4096),
        });
    }
    (0..READERS).for_each(|reader| open(rig, reader));
}

fn open(rig: &mut Rig, reader: u32) {
    rig.input(Input::Open {
        reader: ReaderId(reader),
        file: FileId(reader % 4),
    });
}

/// A read of one block, under its reader's number; it is not answered yet, if the block is missing.
fn ask(rig: &mut Rig, reader: u32, block: u32) {
    rig.input(Input::Read {
        read: ReadId(reader),
        reader: ReaderId(reader),
        access: Access {
            block: Block(block),
            head: 0,
            count: 1,
            previous: block.checked_sub(1).map(Block),
        },
        fresh: true,
        wants: Wants::Blocks,
    });
}

/// The device answers everything, and served blocks are taken: by these readers, no more and no
/// less.
fn answer(rig: &mut Rig, readers: &[u32]) {
    let mut served = Vec::new();
    loop {
        for read in std::mem::take(&mut rig.served) {
            served.push(read.0);
            rig.input(Input::Release { read });
        }
        if rig.outstanding.is_empty() && rig.served.is_empty() {
            break;
        }
        rig.complete(0, FetchOutcome::Done);
    }
    served.sort_unstable();
    assert_eq!(served, readers, "reads that are answered");
}

/// All these readers read a block.
fn round(rig: &mut Rig, readers: &[u32], block: impl Fn(u32) -> u32) {
    readers.iter().for_each(|r| ask(rig, *r, block(*r)));
    answer(rig, readers);
}

fn hint(rig: &mut Rig, reader: u32, first: u32, count: u32, more: bool) {
    rig.input(Input::Hint {
        reader: ReaderId(reader),
        first: Block(first),
        count,
        more,
    });
}

#[test]
fn with_less_memory_than_a_window_each_all_readers_come_to_their_end() {
    for mut rig in compositions() {
        begin(&mut rig);
        for at in 0..FILE_BLOCKS {
            // Two of each file, one at half the speed of the other.
            let slow = if at % 2 == 0 { READERS } else { READERS / 2 };
            let readers: Vec<u32> = (0..slow).collect();
            round(&mut rig, &readers, |r| if r < 4 { at } else { at / 2 });
        }
        assert!(rig.engine.ledger().thrashed > 0, "memory was short");
        rig.wind_down();
    }
}

#[test]
fn a_reader_that_stops_and_never_closes_holds_up_no_other() {
    for mut rig in compositions() {
        begin(&mut rig);
        let (stopped, others) = (4, [0, 1, 2, 3]);
        (0..80).for_each(|at| round(&mut rig, &[stopped], |_| at));
        (0..FILE_BLOCKS).for_each(|at| round(&mut rig, &others, |_| at));
        rig.wind_down();
    }
}

#[test]
fn owners_that_go_with_reads_in_flight_and_clocks_that_run_backward_leave_nothing_behind() {
    for mut rig in compositions() {
        begin(&mut rig);
        for at in 0..200 {
            for reader in 0..READERS {
                let time =
                    u64::from(reader) * 7_000_000 + u64::from(at % 5 * (200 - at)) * 1_000_000;
                rig.input(Input::CpuTime {
                    reader: ReaderId(reader),
                    time: Nanos(time),
                });
                ask(&mut rig, reader, at);
            }
            let gone = at % READERS;
            if at % 3 == 0 {
                rig.served.retain(|read| read.0 != gone);
                let reader = ReaderId(gone);
                rig.input(Input::Close { reader });
                rig.input(Input::CpuTime {
                    reader,
                    time: Nanos(at.into()),
                });
                open(&mut rig, gone);
            }
            let is_there = |reader: &u32| at % 3 != 0 || *reader != gone;
            answer(&mut rig, &(0..READERS).filter(is_there).collect::<Vec<_>>());
        }
        rig.wind_down();
    }
}

/// Reader 3 reads 8 blocks, then reader 0; then others need the memory. How many blocks go that had
/// been fetched ahead, of reader 3 and of reader 0.
fn lost_ahead(announce: impl Fn(&mut Rig)) -> [usize; 2] {
    let memory = Table::memory_for(BLOCKS as u32, 4096);
    let mut rig = Rig::of(server("furthest", memory));
    begin(&mut rig);
    for reader in [3, 0] {
        (0..8).for_each(|at| round(&mut rig, &[reader], |_| at));
        if reader == 3 {
            announce(&mut rig);
        }
    }
    let resident = |rig: &Rig| {
        [3, 0].map(|file| {
            let table = rig.engine.table();
            let blocks = (8..FILE_BLOCKS).map(Block);
            let found = blocks.filter(|block| table.find(FileId(file), *block).is_some());
            found.count()
        })
    };
    let before = resident(&rig);
    assert!(before.iter().all(|ahead| *ahead > 0));
    let mut at = 0;
    while rig.engine.ledger().evicted_unused == 0 {
        round(&mut rig, &[1, 2], |_| at);
        at += 1;
    }
    let after = resident(&rig);
    rig.wind_down();
    [before[0] - after[0], before[1] - after[1]]
}

#[test]
fn blocks_that_were_not_announced_go_before_those_of_a_stream_that_is_older() {
    let [older, lost] = lost_ahead(|rig| {
        assert_eq!(rig.engine.takes_hint(1), Some(true));
        hint(rig, 0, 0, 4, true);
        hint(rig, 0, 4, 4, true);
        hint(rig, 0, 0, 0, false);
    });
    assert!(older == 0 && lost > 0, "{older} and {lost} blocks");
    let [older, lost] = lost_ahead(|_| ());
    assert!(older > 0 && lost == 0, "without hints: {older} and {lost}");
    let [older, lost] = lost_ahead(|rig| hint(rig, 0, 0, 4, false));
    let refuted = "it reads block 4, and did not announce it";
    assert!(older > 0 && lost == 0, "{refuted}: {older} and {lost}");
}

#[test]
fn hints_go_to_the_policy_if_there_is_one_and_else_to_a_method_that_asks_for_them() {
    let take = |settings| Engine::new(settings).unwrap().takes_hint(1);
    let memory = Bytes(1 << 20);
    assert_eq!(take(server("coldest-cpu", memory)), None);
    assert_eq!(take(server("furthest", memory)), Some(true));
    let forerun = preset::default().settings(memory).unwrap();
    assert_eq!(take(forerun), Some(true));
}

/// A part of the memory for hints; a list that does not fit is not judged by.
#[test]
fn hints_beyond_their_room_are_refused_and_a_list_that_did_not_fit_judges_no_block() {
    let mut rig = Rig::of(server("furthest", Bytes(1 << 20)));
    begin(&mut rig);
    let mut taken = 0;
    while rig.engine.takes_hint(1) == Some(true) {
        let (reader, place) = (taken % READERS, taken / READERS);
        hint(&mut rig, reader, place * 2 % FILE_BLOCKS, 1, true);
        taken += 1;
        if place * 2 >= FILE_BLOCKS {
            break;
        }
    }
    let most = rig.engine.hints_max();
    assert!(taken >= most, "{taken} hints where {most} runs fit");
    let before = rig.engine.ledger().refused_inputs;
    hint(&mut rig, 0, 499, 1, true);
    assert_eq!(rig.engine.ledger().refused_inputs, before + 1);
    hint(&mut rig, 0, 0, 0, false);
    let mut readers = rig.engine.readers.values();
    assert!(readers.all(|r| !r.streams.announced.never_has(Block(1))));
    assert_eq!(
        rig.engine.takes_hint(1),
        Some(true),
        "their room is free again"
    );
    rig.wind_down();
}
