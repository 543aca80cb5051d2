//! The first windows of on-demand readahead, exactly (claim W1: Wu 2010, Table 2).

#![allow(
    clippy::print_stdout,
    reason = "the windows are shown, as the claim asks"
)]

use std::cell::Cell;

use forerun_core::detect::{Access, Ahead, Cause, Detect, Window};
use forerun_core::protocol::Wants;
use forerun_core::spec::{Choice, Knows, Method, Spec};
use forerun_core::{
    Block, Bytes, DeviceId, Engine, FetchOutcome, FileId, Input, Nanos, Output, Placement, Profile,
    ReadId, ReaderId, RequestId, Served,
};

/// Reads a file block by block through the engine alone: fetches complete at once.
fn windows_of_a_copy(blocks: u32) -> Vec<(u32, u32, u32)> {
    let settings = forerun_baselines::preset("linux-2.6.24")
        .unwrap()
        .settings(Bytes(16 << 20))
        .unwrap();
    let mut engine = Engine::new(settings).unwrap();
    let (file, reader, device) = (FileId(0), ReaderId(0), DeviceId(0));
    let bytes = Bytes(u64::from(blocks) * 4096);
    let drain = |engine: &mut Engine, input: Input| {
        let mut fetches = Vec::new();
        engine.handle(Nanos(0), input);
        while let Some(output) = engine.poll() {
            match output {
                Output::Fetch(fetch) => fetches.push(fetch),
                Output::Serve { served, .. } => assert_eq!(served, Served::Blocks { count: 1 }),
                ahead => panic!("no folder is listed, yet {ahead:?}"),
            }
        }
        fetches
    };
    drain(
        &mut engine,
        Input::File {
            file,
            placement: Placement::linear(device, Bytes(0)),
            bytes,
        },
    );
    drain(&mut engine, Input::Open { reader, file });
    let mut windows = Vec::new();
    for block in 0..blocks {
        let previous = block.checked_sub(1).map(Block);
        let (first, read) = (Block(block), ReadId(block));
        let mut fetches = drain(
            &mut engine,
            Input::Read {
                read,
                reader,
                access: Access::new(first, 1).with_previous(previous),
                fresh: true,
                wants: Wants::Blocks,
            },
        );
        for fetch in std::mem::take(&mut fetches) {
            let RequestId(_) = fetch.request;
            // The block whose reading triggered a window ahead carries the mark of the one
            // before: the distance from the mark to the window's end is async_size.
            if let Some((start, size, async_size)) = windows.last_mut()
                && fetch.extent.first.0 == *start + *size
            {
                *async_size = *start + *size - block;
            }
            windows.push((fetch.extent.first.0, fetch.extent.count, 0));
            let done = FetchOutcome::Done;
            drain(
                &mut engine,
                Input::Completed {
                    request: fetch.request,
                    outcome: done,
                },
            );
        }
        drain(&mut engine, Input::Release { read });
    }
    engine.ledger().check().unwrap();
    assert_eq!(engine.ledger().evicted, 0);
    windows
}

#[test]
fn a_copy_with_4_kib_reads_opens_the_windows_of_table_2() {
    let windows = windows_of_a_copy(256);
    println!("start, size, async_size: {:?}", &windows[..4]);
    assert_eq!(windows[..3], [(0, 4, 3), (4, 8, 8), (12, 16, 16)]);
    assert_eq!(windows[3], (28, 32, 32), "the limit of 128 KiB");
}

/// The longest window that it was allowed.
#[derive(Debug)]
struct Asks;

static ASKS: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "asks",
        summary: "no window: what it is allowed is noted",
        source: "none",
        unfit: "all reads",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Asks),
};

thread_local! {
    static ALLOWED: Cell<u32> = const { Cell::new(0) };
}

impl Detect for Asks {
    fn trigger(&mut self, _: Cause, _: &Access, ahead: &dyn Ahead) -> Option<Window> {
        ALLOWED.set(ahead.limit());
        None
    }
}

#[test]
fn no_window_is_longer_than_the_memory_however_slow_the_device() {
    let memory = Bytes(16 << 20);
    let (file, reader, device) = (FileId(0), ReaderId(0), DeviceId(0));
    let frames = 4096;
    // A second a switch: windows of 10 kB to a terabyte.
    for rate in [10_000, 100_000_000, 1_000_000_000_000] {
        // No stream has a share in these presets.
        for preset in ["cp", "ap", "pc-coldest+"] {
            let preset = forerun_baselines::preset(preset).unwrap();
            let mut settings = preset.settings(memory).unwrap();
            settings.detect = Choice::of(&ASKS);
            let mut engine = Engine::new(settings).unwrap();
            let profile = Profile::constant(Nanos(1_000_000_000), rate).unwrap();
            let (placement, bytes) = (Placement::linear(device, Bytes(0)), Bytes(16 << 40));
            for input in [
                Input::Device { device, profile },
                Input::File {
                    file,
                    placement,
                    bytes,
                },
                Input::Open { reader, file },
                Input::Read {
                    read: ReadId(0),
                    reader,
                    access: Access::new(Block(7), 1),
                    fresh: true,
                    wants: Wants::Blocks,
                },
            ] {
                engine.handle(Nanos(0), input);
                while engine.poll().is_some() {}
            }
            let allowed = ALLOWED.get();
            println!("{} {rate} B/s: {allowed}", preset.name);
            assert!(allowed <= frames, "{rate} B/s: {allowed} blocks");
        }
    }
}
