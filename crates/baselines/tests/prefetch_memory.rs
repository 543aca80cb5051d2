//! Memory with a prefetch cache, in hard cases: less of it than a window for each reader, readers
//! that stop, owners that are gone, clocks that run backward, hints that are wrong.
//!
//! Every reclaim method with a prefetch cache, with parts that stay and parts that move. Whatever happens each read
//! is answered once its device has answered, and in the end nothing is left ([`Rig::wind_down`]).

#![allow(
    clippy::print_stdout,
    reason = "a failing composition is found by its line"
)]

use forerun_baselines::METHODS;
use forerun_core::detect::Access;
use forerun_core::protocol::Wants;
use forerun_core::settings::Settings;
use forerun_core::spec::Choice;
use forerun_core::table::Table;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, Fetch, FetchOutcome, FileId, Input, Nanos, Output, Placement,
    Profile, ReadId, ReaderId, Served, preset,
};

/// A reader of each file and one more; a window has 128 blocks.
const READERS: u32 = 8;
const FILES: u32 = 4;
const FILE_BLOCKS: u32 = 500;
/// A third of a window for each.
const BLOCKS: u32 = 320;

/// Windows of half a mebibyte on devices whose costs are told, without a plan.
fn settings(reclaim: &str, memory: Bytes) -> Settings {
    let preset = forerun_baselines::preset("linux-2.6.24").unwrap();
    let mut settings = preset.settings(memory).unwrap();
    settings.depth = Choice::parse("depth", METHODS.depth, "fixed(depth_bytes=524288)").unwrap();
    settings.reclaim = Choice::parse("reclaim", METHODS.reclaim, reclaim).unwrap();
    settings.hinted = None;
    settings
}

/// A driver that does every output.
struct Rig {
    engine: Engine,
    outstanding: Vec<Fetch>,
    served: Vec<ReadId>,
    now: u64,
}

impl Rig {
    fn of(settings: Settings) -> Self {
        let mut rig = Self {
            engine: Engine::new(settings).unwrap(),
            outstanding: Vec::new(),
            served: Vec::new(),
            now: 0,
        };
        rig.input(Input::Device {
            device: DeviceId(0),
            profile: Profile::default(),
        });
        for file in (0..FILES).map(FileId) {
            rig.input(Input::File {
                file,
                placement: Placement::linear(DeviceId(0), Bytes(u64::from(file.0) << 30)),
                bytes: Bytes(u64::from(FILE_BLOCKS) * 4096),
            });
        }
        (0..READERS).for_each(|reader| rig.open(reader));
        rig
    }

    /// Each method with a prefetch cache, with each part.
    fn all() -> impl Iterator<Item = Self> {
        let memory = Table::memory_for(BLOCKS, 4096);
        let methods = forerun_baselines::reclaim::LIST.iter();
        methods.flat_map(move |method| {
            // So short an epoch that the part moves all the time.
            [
                "part_percent=25",
                "part_percent=60",
                "step_percent=2,epoch_ms=1",
            ]
            .into_iter()
            .map(move |part| {
                let reclaim = format!("{}({part})", method.spec.name);
                println!("{reclaim}");
                Self::of(settings(&reclaim, memory))
            })
        })
    }

    fn input(&mut self, input: Input) {
        self.now += 1_000_000;
        self.engine.handle(Nanos(self.now), input);
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Fetch(fetch) => self.outstanding.push(fetch),
                Output::Serve {
                    read,
                    served: Served::Blocks { .. },
                } => self.served.push(read),
                _ => {}
            }
        }
        let ledger = self.engine.ledger();
        ledger.check().unwrap();
        assert!(ledger.memory_peak <= self.engine.settings().memory);
    }

    fn open(&mut self, reader: u32) {
        self.input(Input::Open {
            reader: ReaderId(reader),
            file: FileId(reader % FILES),
        });
    }

    /// A read of one block, under its reader's number; it is not answered yet, if the block is
    /// missing.
    fn ask(&mut self, reader: u32, block: u32) {
        let previous = block.checked_sub(1).map(Block);
        self.input(Input::Read {
            read: ReadId(reader),
            reader: ReaderId(reader),
            access: Access::new(Block(block), 1).with_previous(previous),
            fresh: true,
            wants: Wants::Blocks,
        });
    }

    /// The device answers everything, and served blocks are taken: the readers that were served.
    fn answer(&mut self) -> Vec<u32> {
        let mut served = Vec::new();
        loop {
            for read in std::mem::take(&mut self.served) {
                served.push(read.0);
                self.input(Input::Release { read });
            }
            if !self.outstanding.is_empty() {
                let request = self.outstanding.swap_remove(0).request;
                let outcome = FetchOutcome::Done;
                self.input(Input::Completed { request, outcome });
            } else if self.served.is_empty() {
                served.sort_unstable();
                return served;
            }
        }
    }

    /// All these readers read a block.
    fn round(&mut self, readers: &[u32], block: impl Fn(u32) -> u32) {
        readers.iter().for_each(|r| self.ask(*r, block(*r)));
        assert_eq!(self.answer(), readers, "reads that are answered");
    }

    fn hint(&mut self, reader: u32, first: u32, count: u32, more: bool) {
        self.input(Input::Hint {
            reader: ReaderId(reader),
            first: Block(first),
            count,
            more,
        });
    }

    fn close(&mut self, reader: u32) {
        let reader = ReaderId(reader);
        self.input(Input::Close { reader });
    }

    /// Everything ends, and nothing is left.
    fn wind_down(mut self) {
        self.answer();
        (0..READERS).for_each(|reader| self.close(reader));
        for file in (0..FILES).map(FileId) {
            self.input(Input::Forget { file });
        }
        let ledger = self.engine.ledger();
        assert_eq!((ledger.resident_unused, ledger.in_flight), (0, 0));
        for file in (0..FILES).map(FileId) {
            assert_eq!(self.resident(file, 0), 0, "{file}");
        }
        // A file as large as the memory is read whole: every frame is free again.
        let file = FileId(FILES);
        self.input(Input::File {
            file,
            placement: Placement::linear(DeviceId(0), Bytes(0)),
            bytes: Bytes(u64::from(FILE_BLOCKS) * 4096),
        });
        let reader = ReaderId(READERS);
        self.input(Input::Open { reader, file });
        for block in 0..FILE_BLOCKS {
            self.round(&[READERS], |_| block);
        }
        // Bookkeeping of the engine and of the method.
        let resident = self.resident(file, 0);
        assert!(resident as u32 >= BLOCKS.min(self.engine.table().frames()) - 8);
    }

    /// The blocks of a file that are there, from one on.
    fn resident(&self, file: FileId, from: u32) -> usize {
        let table = self.engine.table();
        let blocks = (from..FILE_BLOCKS).map(Block);
        blocks.filter(|b| table.find(file, *b).is_some()).count()
    }
}

#[test]
fn with_less_memory_than_a_window_each_all_readers_come_to_their_end() {
    for mut rig in Rig::all() {
        for at in 0..FILE_BLOCKS {
            // Two of each file, one at half the speed of the other.
            let slow = if at % 2 == 0 { READERS } else { READERS / 2 };
            let readers: Vec<u32> = (0..slow).collect();
            rig.round(&readers, |r| if r < 4 { at } else { at / 2 });
        }
        assert!(rig.engine.ledger().thrashed > 0, "memory was short");
        rig.wind_down();
    }
}

#[test]
fn a_reader_that_stops_and_never_closes_holds_up_no_other() {
    for mut rig in Rig::all() {
        let (stopped, others) = (4, [0, 1, 2, 3]);
        (0..80).for_each(|at| rig.round(&[stopped], |_| at));
        (0..FILE_BLOCKS).for_each(|at| rig.round(&others, |_| at));
        rig.wind_down();
    }
}

#[test]
fn owners_that_go_with_reads_in_flight_and_clocks_that_run_backward_leave_nothing_behind() {
    for mut rig in Rig::all() {
        for at in 0..200 {
            for reader in 0..READERS {
                let time =
                    u64::from(reader) * 7_000_000 + u64::from(at % 5 * (200 - at)) * 1_000_000;
                rig.input(Input::CpuTime {
                    reader: ReaderId(reader),
                    time: Nanos(time),
                });
                rig.ask(reader, at);
            }
            let gone = at % READERS;
            if at % 3 == 0 {
                rig.served.retain(|read| read.0 != gone);
                rig.close(gone);
                rig.input(Input::CpuTime {
                    reader: ReaderId(gone),
                    time: Nanos(at.into()),
                });
                rig.open(gone);
            }
            let is_there = |reader: &u32| at % 3 != 0 || *reader != gone;
            let readers = (0..READERS).filter(is_there).collect::<Vec<_>>();
            assert_eq!(rig.answer(), readers, "reads that are answered");
        }
        rig.wind_down();
    }
}

/// Reader 3 reads 8 blocks, then reader 0; then others need the memory. How many blocks go that had
/// been fetched ahead, of reader 3 and of reader 0.
fn lost_ahead(announce: impl Fn(&mut Rig)) -> [usize; 2] {
    let memory = Table::memory_for(BLOCKS, 4096);
    let mut rig = Rig::of(settings("furthest(step_percent=2)", memory));
    for reader in [3, 0] {
        (0..8).for_each(|at| rig.round(&[reader], |_| at));
        if reader == 3 {
            announce(&mut rig);
        }
    }
    let resident = |rig: &Rig| [3, 0].map(|file| rig.resident(FileId(file), 8));
    let before = resident(&rig);
    assert!(before.iter().all(|ahead| *ahead > 0));
    let mut at = 0;
    while rig.engine.ledger().evicted_unused == 0 {
        rig.round(&[1, 2], |_| at);
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
        rig.hint(0, 0, 4, true);
        rig.hint(0, 4, 4, true);
        rig.hint(0, 0, 0, false);
    });
    assert!(older == 0 && lost > 0, "{older} and {lost} blocks");
    let [older, lost] = lost_ahead(|_| ());
    assert!(older > 0 && lost == 0, "without hints: {older} and {lost}");
    let [older, lost] = lost_ahead(|rig| rig.hint(0, 0, 4, false));
    let refuted = "it reads block 4, and did not announce it";
    assert!(older > 0 && lost == 0, "{refuted}: {older} and {lost}");
}

#[test]
fn hints_go_to_the_policy_if_there_is_one_and_else_to_a_method_that_asks_for_them() {
    let take = |settings| Engine::new(settings).unwrap().takes_hint(1);
    let memory = Bytes(1 << 20);
    assert_eq!(take(settings("coldest-cpu", memory)), None);
    assert_eq!(take(settings("furthest", memory)), Some(true));
    let forerun = preset::default().settings(memory).unwrap();
    assert_eq!(take(forerun), Some(true));
}

/// A part of the memory for hints; a list that does not fit is not judged by.
#[test]
fn hints_beyond_their_room_are_refused_and_give_it_back() {
    let mut rig = Rig::of(settings("furthest", Bytes(1 << 20)));
    let mut taken = 0;
    while rig.engine.takes_hint(1) == Some(true) {
        let (reader, place) = (taken % READERS, taken / READERS);
        rig.hint(reader, place * 2 % FILE_BLOCKS, 1, true);
        taken += 1;
        if place * 2 >= FILE_BLOCKS {
            break;
        }
    }
    let most = rig.engine.hints_max();
    assert!(taken >= most, "{taken} hints where {most} runs fit");
    let before = rig.engine.ledger().refused_inputs;
    rig.hint(0, 499, 1, true);
    assert_eq!(rig.engine.ledger().refused_inputs, before + 1);
    rig.hint(0, 0, 0, false);
    let room = rig.engine.takes_hint(1);
    assert_eq!(room, Some(true), "their room is free again");
}
