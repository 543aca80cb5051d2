//! Bounds of the numbers in inputs, and of memory beside that of blocks.

use super::*;
use crate::stream::STREAMS_MAX;

/// A reader of a file of a gibibyte.
fn rig() -> Rig {
    let settings = crate::plain::settings(Bytes(16 << 20));
    let mut rig = Rig::of(settings);
    let (file, reader) = (FileId(0), ReaderId(0));
    rig.input(Input::File {
        file,
        placement: Placement::linear(DeviceId(0), Bytes(0)),
        bytes: Bytes(1 << 30),
    });
    rig.input(Input::Open { reader, file });
    rig
}

#[test]
fn more_hits_than_a_file_has_blocks_are_refused() {
    let mut rig = rig();
    let most = u64::from(u32::MAX);
    for blocks in [most, most + 1, u64::MAX, u64::MAX, 1] {
        let reader = ReaderId(0);
        rig.input(Input::Hits { reader, blocks });
    }
    let ledger = rig.engine.ledger();
    assert_eq!((ledger.hits, ledger.refused_inputs), (most + 1, 3));
}

#[test]
fn a_read_that_waits_for_blocks_of_no_stream_is_counted() {
    let mut rig = rig();
    for (read, block) in [(0, 70_000), (1, 9_000)] {
        rig.input(Input::Read {
            read: ReadId(read),
            reader: ReaderId(0),
            access: Access::new(Block(block), 1),
            fresh: true,
            wants: Wants::Presence,
        });
    }
    let of_streams = |rig: &Rig| {
        let streams = rig.engine.streams();
        streams.iter().map(|stream| stream.waiting).sum::<u32>()
    };
    assert_eq!((of_streams(&rig), rig.engine.reads_waiting()), (0, 2));
    while !rig.outstanding.is_empty() {
        rig.complete(0, FetchOutcome::Done);
    }
    assert_eq!(rig.engine.reads_waiting(), 0);
}

#[test]
fn the_streams_of_a_reader_are_charged_and_returned() {
    let mut rig = rig();
    let before = rig.engine.memory.charged();
    for (number, block) in (0..STREAMS_MAX as u32)
        .flat_map(|stream| (0..4).map(move |block| stream * 4000 + block))
        .enumerate()
    {
        rig.input(Input::Read {
            read: ReadId(number as u32),
            reader: ReaderId(0),
            access: Access::new(Block(block), 1).with_previous(block.checked_sub(1).map(Block)),
            fresh: true,
            wants: Wants::Presence,
        });
        while !rig.outstanding.is_empty() {
            rig.complete(0, FetchOutcome::Done);
        }
    }
    let bytes = rig
        .engine
        .readers
        .reader(ReaderId(0))
        .unwrap()
        .streams()
        .bytes() as u64;
    assert!(bytes >= 40 * (STREAMS_MAX as u64 - 4), "{bytes} bytes");
    assert_eq!(rig.engine.memory.charged() - before, bytes);
    rig.input(Input::Close {
        reader: ReaderId(0),
    });
    rig.input(Input::Forget { file: FileId(0) });
    assert_eq!(
        rig.engine.memory.charged(),
        Rig::of(crate::plain::settings(Bytes(16 << 20)))
            .engine
            .memory
            .charged()
    );
}
