//! The engine under senseless inputs: it never panics, its ledger always adds up, no
//! block is fetched twice at once, and nothing leaks.

mod bounds;
mod hung;
mod idle;
mod parts;
mod served;
mod slow;

use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::Engine;
use crate::detect::Access;
use crate::next_file::Entry;
use crate::protocol::{Fetch, FetchOutcome, Input, Output, Served, Wants};
use crate::spec::Choice;
use crate::table::Table;
use crate::units::{
    Block, Bytes, DeviceId, ErrorCode, Extent, FileId, FolderId, Nanos, ReadId, ReaderId, RequestId,
};
use crate::{Placement, Profile, hinted, next_file, preset, reclaim, shape};

/// So many blocks behind those that were read before.
fn sequential(first: u32, count: u32) -> Access {
    Access {
        block: Block(first),
        head: 0,
        count,
        previous: first.checked_sub(1).map(Block),
    }
}

/// A driver that does every output, and keeps book of the engine's requests.
struct Rig {
    engine: Engine,
    outstanding: Vec<Fetch>,
    /// Fetches to be given up.
    cancelled: Vec<RequestId>,
    /// Of the files' present contents: blocks orphaned by an invalidation are not in it.
    in_flight: BTreeSet<(FileId, Block)>,
    served: Vec<ReadId>,
    /// Files to open ahead.
    asked: Vec<(FolderId, u32)>,
    now: u64,
}

impl Rig {
    fn new(preset: usize, memory: u64) -> Self {
        let presets = preset::LIST.len();
        let mut settings = preset::LIST[preset % presets]
            .settings(Bytes(memory))
            .unwrap();
        // Every preset with every hinted policy, and with its own.
        let policies = hinted::policy::LIST;
        if let Some(method) = policies.get(preset / presets % (policies.len() + 1)) {
            settings.hinted = Some(Choice::of(method));
        }
        // And with every reclaim method.
        let turns = presets * (policies.len() + 1);
        let methods = reclaim::LIST;
        if let Some(method) = methods.get(preset / turns % (methods.len() + 1)) {
            settings.reclaim = Choice::of(method);
        }
        settings.shape = Choice::of(&shape::LIST[preset % shape::LIST.len()]);
        let files = preset / 3 % (next_file::LIST.len() + 1);
        if let Some(method) = next_file::LIST.get(files) {
            settings.next_file = Some(Choice::of(method));
        }
        Self::of(settings)
    }

    fn of(settings: crate::Settings) -> Self {
        let engine = Engine::new(settings).unwrap();
        Self {
            engine,
            outstanding: Vec::new(),
            cancelled: Vec::new(),
            in_flight: BTreeSet::new(),
            served: Vec::new(),
            asked: Vec::new(),
            now: 0,
        }
    }

    fn input(&mut self, input: Input) {
        if let Input::Invalidate { file, .. } | Input::Forget { file } = input {
            let forgotten = matches!(input, Input::Forget { .. })
                && self.engine.readers.file(file).is_some_and(|f| f.is_open());
            if !forgotten {
                self.in_flight.retain(|(f, _)| *f != file);
            }
        }
        self.now += 1_000_000;
        self.engine.handle(Nanos(self.now), input);
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Fetch(fetch) => {
                    for block in fetch.extent.blocks() {
                        let new = self.in_flight.insert((fetch.extent.file, block));
                        assert!(new, "{} is fetched twice at once", fetch.extent);
                    }
                    self.outstanding.push(fetch);
                }
                Output::Serve {
                    read,
                    served: Served::Blocks { count },
                } => {
                    assert!(count > 0);
                    self.served.push(read);
                }
                Output::Cancel { request } => self.cancelled.push(request),
                Output::Serve { .. } => {}
                Output::OpenAhead { folder, entry } => self.asked.push((folder, entry)),
                // As a driver that never gets to it: all are closed in the end.
                Output::CloseAhead { .. } => {}
            }
        }
        self.engine.ledger().check().unwrap();
        self.engine.memory.check();
        assert!(self.engine.ledger().memory_peak <= self.engine.settings().memory);
    }

    fn complete(&mut self, which: usize, outcome: FetchOutcome) {
        if self.outstanding.is_empty() {
            return;
        }
        let fetch = self.outstanding.swap_remove(which % self.outstanding.len());
        let orphan = self
            .engine
            .queues
            .requests
            .get(fetch.request)
            .is_some_and(|request| !request.orphans.is_empty());
        if !orphan {
            for block in fetch.extent.blocks() {
                self.in_flight.remove(&(fetch.extent.file, block));
            }
        }
        self.input(Input::Completed {
            request: fetch.request,
            outcome,
        });
    }

    /// Until nothing is under way. A list of hints comes to its end, and a decision is made where
    /// the engine says that one is due, as every driver does it, and no other.
    fn settle(&mut self) {
        self.input(Input::Hint {
            reader: ReaderId(u32::MAX),
            first: Block(0),
            count: 0,
            more: false,
        });
        while self.engine.is_undecided() || !self.outstanding.is_empty() || !self.served.is_empty()
        {
            if self.engine.is_undecided() {
                self.input(Input::Decide);
            }
            self.complete(0, FetchOutcome::Done);
            for read in std::mem::take(&mut self.served) {
                self.input(Input::Release { read });
            }
        }
    }

    /// Everything ends: then every frame must be obtainable again and no block in the table.
    fn wind_down(mut self) {
        self.settle();
        assert!(self.engine.reads.is_empty(), "a read waits for ever");
        for (folder, entry) in std::mem::take(&mut self.asked) {
            let reader = None;
            self.input(Input::Ahead {
                folder,
                entry,
                reader,
            });
        }
        for folder in (0..3).map(FolderId) {
            let entries = Default::default();
            self.input(Input::Folder { folder, entries });
        }
        for reader in 0..8 {
            self.input(Input::Close {
                reader: ReaderId(reader),
            });
        }
        for file in 0..4 {
            self.input(Input::Forget { file: FileId(file) });
        }
        while !self.outstanding.is_empty() {
            self.complete(0, FetchOutcome::Done);
        }
        self.input(Input::Limit {
            memory: self.engine.settings().memory,
        });
        assert_eq!(
            self.engine.memory.obtainable(),
            self.engine.table().frames(),
            "every frame is free again"
        );
        let devices = self.engine.devices();
        assert!(devices.iter().all(|device| device.queued == 0));
        assert!(self.engine.producers.plan.is_none());
        assert_eq!(self.engine.readers.active(), 0);
        assert_eq!(
            self.engine.ledger().resident_unused + self.engine.ledger().in_flight,
            0
        );
        for file in 0..4 {
            for block in (Extent {
                file: FileId(file),
                first: Block(0),
                count: 600,
            })
            .blocks()
            {
                assert_eq!(self.engine.table().find(FileId(file), block), None);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Input(Input),
    Complete(usize, FetchOutcome),
    Release(usize),
    Opened(usize, Option<ReaderId>),
}

/// Folders so small that any opens are often in some order.
fn listing() -> impl Strategy<Value = Input> {
    (0..3u32, 1..7u32, any::<u32>()).prop_map(|(folder, count, by)| {
        let entry = |at: u32| Entry {
            name_rank: at.wrapping_mul(by) % count,
            inode: u64::from(at.wrapping_mul(by >> 8) % count),
            bytes: u64::from(at * 3000),
        };
        Input::Folder {
            folder: FolderId(folder),
            entries: (0..count).map(entry).collect(),
        }
    })
}

fn read() -> impl Strategy<Value = Input> {
    (
        0..16u32,
        0..8u32,
        prop::option::of(0..600u32),
        0..600u32,
        0..80u32,
        any::<bool>(),
    )
        .prop_map(
            |(read, reader, previous, first, count, fresh)| Input::Read {
                read: ReadId(read),
                reader: ReaderId(reader),
                access: Access {
                    block: Block(first),
                    head: count / 3,
                    count,
                    previous: previous.map(Block),
                },
                fresh,
                wants: Wants::Blocks,
            },
        )
}

fn sequential_read() -> impl Strategy<Value = Input> {
    (0..16u32, 0..8u32, 0..600u32, 1..40u32).prop_map(|(read, reader, first, count)| Input::Read {
        read: ReadId(read),
        reader: ReaderId(reader),
        access: sequential(first, count),
        fresh: true,
        wants: Wants::Blocks,
    })
}

fn hint() -> impl Strategy<Value = Input> {
    (0..8u32, 0..60u32, 0..40u32, any::<bool>()).prop_map(|(reader, place, count, more)| {
        Input::Hint {
            reader: ReaderId(reader),
            first: Block(place * 10),
            count,
            more,
        }
    })
}

fn awaiting() -> impl Strategy<Value = Input> {
    let place = (0..600u32, 1..100u32, any::<bool>(), any::<bool>());
    (0..16u32, 0..8u32, place).prop_map(|(read, reader, (first, count, fresh, is_idle))| {
        Input::Read {
            read: ReadId(read),
            reader: ReaderId(reader),
            access: sequential(first, count),
            fresh,
            wants: match is_idle {
                true => Wants::Idle,
                false => Wants::Presence,
            },
        }
    })
}

/// Of a device that takes everything at once, or one or two requests at a time.
fn profile() -> impl Strategy<Value = Profile> {
    (0..3u32).prop_map(|servers| {
        let profile = Profile::default();
        match servers {
            0 => profile,
            _ => profile.with_servers(servers).unwrap(),
        }
    })
}

fn outcome() -> impl Strategy<Value = FetchOutcome> {
    prop_oneof![
        6 => Just(FetchOutcome::Done),
        1 => (0..40u32).prop_map(|blocks| FetchOutcome::Short { blocks }),
        1 => Just(FetchOutcome::Failed { error: ErrorCode(5) }),
        1 => (0..40u32).prop_map(|blocks| FetchOutcome::Cancelled { blocks }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = (0..600 * 4096u64).prop_map(Bytes);
    let touch = (0..9u32, any::<u32>(), 0..2000u32);
    prop_oneof![
        20 => sequential_read().prop_map(Step::Input),
        10 => read().prop_map(Step::Input),
        10 => awaiting().prop_map(Step::Input),
        20 => (any::<usize>(), outcome()).prop_map(|(which, outcome)| Step::Complete(which, outcome)),
        20 => any::<usize>().prop_map(Step::Release),
        4 => (0..8u32, 0..4u32).prop_map(|(reader, file)| Step::Input(Input::Open {
            reader: ReaderId(reader),
            file: FileId(file),
        })),
        3 => (0..5u32, placement(), bytes.clone()).prop_map(|(file, placement, bytes)| Step::Input(
            Input::File { file: FileId(file), placement, bytes }
        )),
        1 => (0..4u32, bytes).prop_map(|(file, bytes)| Step::Input(Input::Invalidate {
            file: FileId(file),
            bytes
        })),
        10 => Just(Step::Input(Input::Decide)),
        2 => (0..9u32, any::<u64>()).prop_map(|(reader, time)| Step::Input(Input::CpuTime {
            reader: ReaderId(reader),
            time: Nanos(time),
        })),
        1 => (0..9u32).prop_map(|reader| Step::Input(Input::Close { reader: ReaderId(reader) })),
        1 => (0..4u32).prop_map(|file| Step::Input(Input::Forget { file: FileId(file) })),
        1 => any::<u32>().prop_map(|id| Step::Input(Input::Completed {
            request: RequestId(id),
            outcome: FetchOutcome::Done
        })),
        3 => listing().prop_map(Step::Input),
        20 => (0..3u32, 0..7u32, 0..8u32, 0..3u64).prop_map(|(folder, entry, reader, opener)| Step::Input(
            Input::Entered { folder: FolderId(folder), entry, reader: ReaderId(reader), opener }
        )),
        20 => (any::<usize>(), prop::option::of(0..8u32)).prop_map(|(which, r)| Step::Opened(which, r.map(ReaderId))),
        1 => (0..3u32).prop_map(|folder| Step::Input(Input::Folder {
            folder: FolderId(folder),
            entries: Default::default(),
        })),
        20 => hint().prop_map(Step::Input),
        3 => touch.prop_map(|(reader, first, count)| Step::Input(Input::Touch {
            reader: ReaderId(reader),
            first: Block(first % 700),
            count
        })),
        1 => any::<u64>().prop_map(|blocks| Step::Input(Input::Hits { reader: ReaderId(0), blocks: blocks % 1000 })),
        1 => (0..8u64 << 20).prop_map(|memory| Step::Input(Input::Limit { memory: Bytes(memory) })),
        1 => (0..3u16, any::<bool>()).prop_map(|(device, is_congested)| Step::Input(Input::Congested {
            device: DeviceId(device),
            is_congested,
        })),
        1 => (0..2u16, profile()).prop_map(|(device, profile)| Step::Input(Input::Device {
            device: DeviceId(device),
            profile
        })),
    ]
}

/// A file on one device, or in strips of one to eight blocks; now and then one that is refused.
fn placement() -> impl Strategy<Value = Placement> {
    let devices = prop::collection::vec((0..2u16).prop_map(DeviceId), 1..4);
    (devices, 0..12u32, 0..1u64 << 40).prop_map(|(devices, strip, at)| match strip {
        0..4 => Placement::linear(devices[0], Bytes(at)),
        11 => Placement::raid0(Bytes(6000), devices, Bytes(at)).unwrap(),
        _ => Placement::raid0(Bytes(4096 << (strip % 4)), devices, Bytes(at)).unwrap(),
    })
}

fn run(preset: usize, memory: u64, device: Profile, steps: Vec<Step>) {
    let mut rig = Rig::new(preset, memory);
    rig.input(Input::Device {
        device: DeviceId(0),
        profile: device,
    });
    for file in 0..3 {
        rig.input(Input::File {
            file: FileId(file),
            placement: match file {
                2 => Placement::raid0(Bytes(16384), [0, 1].map(DeviceId), Bytes(1 << 40)).unwrap(),
                _ => Placement::linear(DeviceId(0), Bytes(u64::from(file) << 30)),
            },
            bytes: Bytes(500 * 4096 + 17),
        });
        rig.input(Input::Open {
            reader: ReaderId(file),
            file: FileId(file),
        });
        rig.input(Input::Open {
            reader: ReaderId(file + 3),
            file: FileId(file),
        });
    }
    for step in steps {
        match step {
            // A completion of what was never dispatched is refused by the engine; one of what
            // was is the driver's to send, once.
            Step::Input(Input::Completed { request, .. })
                if rig.outstanding.iter().any(|f| f.request == request) => {}
            Step::Input(input) => rig.input(input),
            Step::Opened(which, reader) => {
                if !rig.asked.is_empty() {
                    let (folder, entry) = rig.asked[which % rig.asked.len()];
                    let before = rig.engine.ledger().refused_inputs;
                    rig.input(Input::Ahead {
                        folder,
                        entry,
                        reader,
                    });
                    if rig.engine.ledger().refused_inputs == before {
                        rig.asked.retain(|asked| *asked != (folder, entry));
                    }
                }
            }
            Step::Complete(which, outcome) => rig.complete(which, outcome),
            Step::Release(which) => {
                if !rig.served.is_empty() {
                    let at = which % rig.served.len();
                    let read = rig.served.swap_remove(at);
                    rig.input(Input::Release { read });
                }
            }
        }
    }
    rig.wind_down();
}

#[test]
fn a_lower_limit_takes_frames_at_once_and_a_higher_one_gives_them_back() {
    let memory = Bytes(8 << 20);
    let mut rig = Rig::new(0, memory.0);
    let all = rig.engine.memory.obtainable();
    rig.input(Input::Limit {
        memory: Bytes(memory.0 / 2),
    });
    assert_eq!(rig.engine.memory.obtainable(), all - 1024, "4 MiB of 4 KiB");
    rig.input(Input::Limit { memory: Bytes(1) });
    assert_eq!(rig.engine.ledger().refused_inputs, 1);
    rig.input(Input::Limit { memory });
    assert_eq!(rig.engine.memory.obtainable(), all);
}

#[test]
fn under_a_lower_limit_a_read_holds_an_eighth_of_the_frames_that_are_left() {
    let forerun = preset::LIST.iter().position(|p| p.name == "forerun");
    let mut rig = Rig::new(forerun.unwrap(), 64 << 20);
    let mut is_refused = |memory| {
        let before = rig.engine.ledger().refused_inputs;
        rig.input(Input::Limit { memory });
        rig.engine.ledger().refused_inputs > before
    };
    (1..).find(|mib| !is_refused(Bytes(mib << 16)));
    let (file, reader, read) = (FileId(0), ReaderId(0), ReadId(0));
    rig.input(Input::File {
        file,
        placement: Placement::linear(DeviceId(0), Bytes(0)),
        bytes: Bytes(64 * 4096),
    });
    rig.input(Input::Open { reader, file });
    rig.input(Input::Read {
        read,
        reader,
        access: sequential(0, 64),
        fresh: true,
        wants: Wants::Blocks,
    });
    while rig.served.is_empty() {
        rig.complete(0, FetchOutcome::Done);
    }
    let frames = rig.engine.memory.frames_usable() as usize;
    let held = rig.engine.reads.get(read).map(|read| read.pinned.len());
    assert!(
        held.is_some_and(|held| held <= frames / 8),
        "{held:?} of {frames}"
    );
    rig.wind_down();
}

/// Four readers come to a disk that works on one request at a time: what it has and the next one
/// hold frames, and the readers behind them none.
#[test]
fn who_waits_for_a_device_holds_no_memory() {
    let forerun = preset::LIST.iter().position(|p| p.name == "forerun");
    let mut rig = Rig::new(forerun.unwrap(), 8 << 20);
    let profile = Profile::default().with_servers(1).unwrap();
    rig.input(Input::Device {
        device: DeviceId(0),
        profile,
    });
    let mut held = Vec::new();
    for number in 0..4 {
        rig.input(Input::File {
            file: FileId(number),
            placement: Placement::linear(DeviceId(0), Bytes(u64::from(number) << 30)),
            bytes: Bytes(600 * 4096),
        });
        rig.input(Input::Open {
            reader: ReaderId(number),
            file: FileId(number),
        });
        rig.input(Input::Read {
            read: ReadId(number),
            reader: ReaderId(number),
            access: sequential(0, 16),
            fresh: true,
            wants: Wants::Blocks,
        });
        let ledger = rig.engine.ledger();
        held.push(ledger.demanded + ledger.prefetched);
    }
    assert!(held[0] > 0);
    assert_eq!(held[1..], [held[1]; 3], "blocks that have frames");
    rig.wind_down();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_inputs_leave_the_ledger_balanced_and_nothing_behind(
        preset in any::<usize>(),
        extra in prop_oneof![Just(0u64), 0..200_000u64, Just(4 << 20)],
        device in profile(),
        steps in prop::collection::vec(step(), 0..300),
    ) {
        run(preset, Table::memory_for(Table::FRAMES_MIN, 4096).0 + extra, device, steps);
    }
}
