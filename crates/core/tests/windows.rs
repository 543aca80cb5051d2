//! The first windows of on-demand readahead, exactly (claim W1: Wu 2010, Table 2).

#![allow(
    clippy::print_stdout,
    reason = "the windows are shown, as the claim asks"
)]

use forerun_core::detect::Access;
use forerun_core::protocol::Wants;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, FetchOutcome, FileId, Input, Nanos, Output, Placement, ReadId,
    ReaderId, RequestId, Served,
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
        loop {
            match engine.poll() {
                Output::Fetch(fetch) => fetches.push(fetch),
                Output::Idle => return fetches,
                Output::Serve { served, .. } => assert_eq!(served, Served::Blocks { count: 1 }),
                Output::Evict(extent) => panic!("nothing needs to go, yet {extent}"),
                ahead => panic!("no folder is listed, yet {ahead:?}"),
            }
        }
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
    windows
}

#[test]
fn a_copy_with_4_kib_reads_opens_the_windows_of_table_2() {
    let windows = windows_of_a_copy(256);
    println!("start, size, async_size: {:?}", &windows[..4]);
    assert_eq!(windows[..3], [(0, 4, 3), (4, 8, 8), (12, 16, 16)]);
    assert_eq!(windows[3], (28, 32, 32), "the limit of 128 KiB");
}
