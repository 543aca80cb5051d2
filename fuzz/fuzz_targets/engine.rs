//! The engine under any stream of inputs.
//!
//! Names are drawn from few, so that inputs meet: reads of open files, completions of fetches in
//! flight, and all the ones that make no sense. Must hold after every input: no panic, the ledger
//! balances, the memory stays within the budget, outputs come to an end.

#![no_main]

use arbitrary::Arbitrary;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, ErrorCode, FetchOutcome, FileId, Input, Nanos, Output, Placement, Profile,
    ReadId, ReaderId, RequestId, preset,
};
use libfuzzer_sys::fuzz_target;

/// A run: which preset with how much memory, and what happens.
#[derive(Debug, Arbitrary)]
struct Run {
    preset: u8,
    memory: u8,
    events: Vec<Event>,
}

/// An input in a few bytes.
#[derive(Debug, Arbitrary)]
enum Event {
    Device { device: u8, switching: u32, rate: u32 },
    File { file: u8, device: u8, location: u32, bytes: u32 },
    Open { reader: u8, file: u8 },
    Read { read: u8, reader: u8, previous: Option<u16>, head: u8, first: u16, count: u16, fresh: bool },
    Await { read: u8, reader: u8, previous: Option<u16>, first: u16, count: u16, fresh: bool },
    Release { read: u8 },
    Touch { reader: u8, first: u16, count: u16 },
    Hits { reader: u8, blocks: u16 },
    Hint { reader: u8, first: u16, count: u8, more: bool },
    Done { request: u8 },
    Short { request: u8, blocks: u8 },
    Failed { request: u8, error: i32 },
    Cancelled { request: u8 },
    Invalidate { file: u8, bytes: u32 },
    Limit { memory: u32 },
    Close { reader: u8 },
    Forget { file: u8 },
    /// Numbers as large as they get.
    Far { read: u32, reader: u32, head: u32, first: u32, count: u32 },
}

impl Event {
    fn input(self) -> Input {
        let few = |n: u8| u32::from(n % 4);
        let device = |n: u8| DeviceId(u16::from(n % 2));
        let completed = |request: u8, outcome| Input::Completed {
            request: RequestId(u32::from(request % 64)),
            outcome,
        };
        match self {
            Self::Device { device: n, switching, rate } => Input::Device {
                device: device(n),
                profile: Profile::constant(Nanos(switching.into()), rate.into())
                    .unwrap_or_default(),
            },
            Self::File { file, device: n, location, bytes } => Input::File {
                file: FileId(few(file)),
                placement: Placement::linear(device(n), Bytes(location.into())),
                bytes: Bytes(bytes.into()),
            },
            Self::Open { reader, file } => {
                Input::Open { reader: ReaderId(few(reader)), file: FileId(few(file)) }
            }
            Self::Read { read, reader, previous, head, first, count, fresh } => Input::Read {
                read: ReadId(few(read)),
                reader: ReaderId(few(reader)),
                previous: previous.map(|block| Block(block.into())),
                head: head.into(),
                first: Block(first.into()),
                count: count.into(),
                fresh,
            },
            Self::Await { read, reader, previous, first, count, fresh } => Input::Await {
                read: ReadId(few(read)),
                reader: ReaderId(few(reader)),
                previous: previous.map(|block| Block(block.into())),
                first: Block(first.into()),
                count: count.into(),
                fresh,
            },
            Self::Release { read } => Input::Release { read: ReadId(few(read)) },
            Self::Touch { reader, first, count } => Input::Touch {
                reader: ReaderId(few(reader)),
                first: Block(first.into()),
                count: count.into(),
            },
            Self::Hits { reader, blocks } => {
                Input::Hits { reader: ReaderId(few(reader)), blocks: blocks.into() }
            }
            Self::Hint { reader, first, count, more } => Input::Hint {
                reader: ReaderId(few(reader)),
                first: Block(first.into()),
                count: count.into(),
                more,
            },
            Self::Done { request } => completed(request, FetchOutcome::Done),
            Self::Short { request, blocks } => {
                completed(request, FetchOutcome::Short { blocks: blocks.into() })
            }
            Self::Cancelled { request } => completed(request, FetchOutcome::Cancelled),
            Self::Failed { request, error } => {
                completed(request, FetchOutcome::Failed { error: ErrorCode(error) })
            }
            Self::Invalidate { file, bytes } => {
                Input::Invalidate { file: FileId(few(file)), bytes: Bytes(bytes.into()) }
            }
            Self::Limit { memory } => Input::Limit { memory: Bytes(u64::from(memory)) },
            Self::Close { reader } => Input::Close { reader: ReaderId(few(reader)) },
            Self::Forget { file } => Input::Forget { file: FileId(few(file)) },
            Self::Far { read, reader, head, first, count } => Input::Read {
                read: ReadId(read),
                reader: ReaderId(reader % 8),
                previous: None,
                head,
                first: Block(first),
                count,
                fresh: true,
            },
        }
    }
}

/// More outputs than blocks and requests there can be means that they never end.
const OUTPUTS_MAX: u32 = 100_000;

fuzz_target!(|run: Run| {
    let preset = &preset::LIST[usize::from(run.preset) % preset::LIST.len()];
    let memory = Bytes((300 << 10) + (u64::from(run.memory) << 13));
    let mut engine = Engine::new(preset.settings(memory).expect("enough memory")).expect("settings");
    for (now, event) in (0..).zip(run.events) {
        engine.handle(Nanos(now), event.input());
        let mut outputs = 0;
        while !matches!(engine.poll(), Output::Idle { .. }) {
            outputs += 1;
            assert!(outputs < OUTPUTS_MAX, "outputs without end");
        }
        let ledger = engine.ledger();
        ledger.check().expect("the ledger balances");
        assert!(ledger.memory_peak <= memory, "{} over {memory}", ledger.memory_peak);
    }
});
