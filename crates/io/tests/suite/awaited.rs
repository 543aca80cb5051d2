//! Bytes that are awaited first and read later: the call comes once, whatever happens, the read
//! then finds them, and they are counted once.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;

use forerun_baselines::PRESETS;
use forerun_core::{Bytes, Nanos, preset};
use forerun_emulated::Emulation;
use forerun_io::arena::Target;
use forerun_io::source::{Key, Source};
use forerun_io::{Config, Driver, FaultPlan, Reader, generated};

const SEED: u64 = 17;

fn config(memory: u64) -> Config {
    let preset = preset::find("mount").unwrap();
    Config::new(preset.settings(Bytes(memory)).unwrap())
}

/// As the mount waits: bytes that are not there at the look are asked for once more, because a block may be given up
/// between the call and the look, as one that the read before shares and has taken.
fn wait_for(reader: &Reader, offset: u64, bytes: usize, preset: &str) {
    for turn in 0..100 {
        let (tell, told) = channel();
        reader.when_resident(offset, bytes, turn == 0, move |there| {
            tell.send(there).unwrap();
        });
        assert!(told.recv().unwrap(), "{preset}");
        if reader.is_resident(offset, bytes) {
            return;
        }
    }
    panic!(
        "{preset}: {bytes} bytes at {offset} were given up a hundred times before they were read"
    );
}

#[test]
fn what_was_awaited_is_there_and_counted_once_with_every_preset() {
    const BYTES: u64 = 3_000_000;
    for preset in PRESETS {
        let settings = preset.settings(Bytes(8 << 20)).unwrap();
        let driver = Driver::new(Config::new(settings)).unwrap();
        let reader = driver.open_generated(SEED, 1, BYTES).unwrap();
        let mut offset = 0;
        let mut buf = vec![0; 100_000];
        while offset < BYTES {
            wait_for(&reader, offset, buf.len(), preset.name);
            let count = reader.read_awaited_at(&mut buf, offset).unwrap();
            let content = generated::check(SEED, 1, offset, &buf[..count]);
            assert_eq!(content, Ok(()));
            assert_eq!(count as u64, (BYTES - offset).min(100_000));
            offset += count as u64;
        }
        drop(reader);
        let ledger = driver.finish().unwrap();
        ledger.check().unwrap();
        // Reads of 100 000 bytes share the blocks at their ends.
        let shared = (1..30).filter(|i| i * 100_000 % 4096 != 0).count() as u64;
        assert_eq!(
            ledger.reads,
            BYTES.div_ceil(4096) + shared,
            "{}",
            preset.name
        );
        assert_eq!(ledger.refused_inputs, 0, "{}", preset.name);
    }
}

/// Pieces of 128 KiB in an order without a pattern, announced 128 at a time; memory holds a quarter of them. A piece
/// that were given up between the wait and the copy would be fetched twice.
#[test]
fn an_announced_piece_that_was_awaited_stays_until_its_reader_goes_on() {
    const PIECE: u64 = 128 << 10;
    const PIECES: u64 = 512;
    const AHEAD: u64 = 128;
    let settings = preset::default()
        .settings(Bytes(PIECE * PIECES / 4))
        .unwrap();
    let driver = Driver::new(Config::new(settings)).unwrap();
    let reader = driver.open_generated(SEED, 1, PIECE * PIECES).unwrap();
    // 229 has no divisor in common with 512: each piece once.
    let offset = |turn: u64| turn * 229 % PIECES * PIECE;
    let mut buf = vec![0; PIECE as usize];
    for turn in 0..PIECES {
        if turn % AHEAD == 0 {
            let next = turn..turn + AHEAD;
            let hints = next.map(|turn| (&reader, offset(turn), PIECE));
            assert_eq!(driver.hint(hints).unwrap() as u64, AHEAD);
        }
        let (tell, told) = channel();
        reader.when_resident(offset(turn), buf.len(), true, move |there| {
            tell.send(there).unwrap();
        });
        assert!(told.recv().unwrap());
        let count = reader.read_awaited_at(&mut buf, offset(turn)).unwrap();
        assert_eq!(count as u64, PIECE);
    }
    drop(reader);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert_eq!(ledger.hints_read, PIECES);
    let fetched = ledger.prefetched + ledger.demanded;
    assert_eq!(fetched, PIECES * PIECE / 4096, "{ledger:?}");
}

#[test]
fn a_copy_that_finds_only_the_front_of_its_bytes_counts_nothing() {
    const FRONT: usize = 65_536;
    let preset = forerun_baselines::preset("none").unwrap();
    let settings = preset.settings(Bytes(8 << 20)).unwrap();
    let driver = Driver::new(Config::new(settings)).unwrap();
    let reader = driver.open_generated(SEED, 1, 10 << 20).unwrap();
    let (tell, told) = channel();
    reader.when_resident(0, FRONT, true, move |there| tell.send(there).unwrap());
    assert!(told.recv().unwrap());
    let mut buf = vec![0; 2 * FRONT];
    for _ in 0..3 {
        assert_eq!(reader.read_resident_at(&mut buf, 0, true), None);
    }
    assert_eq!(
        reader.read_resident_at(&mut buf[..FRONT], 0, true),
        Some(FRONT)
    );
    drop(reader);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert_eq!(ledger.reads, 2 * FRONT as u64 / 4096);
}

/// More blocks than the engine takes at once, which nothing fetches ahead.
#[test]
fn a_call_says_that_bytes_are_there_once_all_of_them_are() {
    let none = forerun_baselines::preset("none").unwrap();
    for (block_bytes, bytes) in [(4096, 40_u64 << 20), (512, 5 << 20)] {
        let mut settings = none.settings(Bytes(64 << 20)).unwrap();
        settings.block_bytes = block_bytes;
        let driver = Driver::new(Config::new(settings)).unwrap();
        let reader = driver.open_generated(SEED, 1, 2 * bytes).unwrap();
        for (round, idle) in [(1, false), (2, false), (2, true)] {
            let (tell, told) = channel();
            let call = move |there| tell.send(there).unwrap();
            match idle {
                true => reader.when_resident_idle(700, bytes as usize, call),
                false => reader.when_resident(700, bytes as usize, round == 1, call),
            }
            assert!(told.recv().unwrap());
            assert!(reader.is_resident(700, bytes as usize), "{block_bytes}");
        }
        let mut read = vec![0; bytes as usize];
        assert_eq!(
            reader.read_resident_at(&mut read, 700, false),
            Some(read.len())
        );
        assert_eq!(generated::check(SEED, 1, 700, &read), Ok(()));
        drop(reader);
        let ledger = driver.finish().unwrap();
        ledger.check().unwrap();
        let block_bytes = u64::from(block_bytes);
        let blocks = (700 + bytes).div_ceil(block_bytes) - 700 / block_bytes;
        assert_eq!(
            (ledger.prefetched + ledger.demanded, ledger.refused_inputs),
            (blocks, 0)
        );
    }
}

/// Has the front of its bytes and no other.
#[derive(Debug)]
struct Front(u64);

impl Source for Front {
    fn key(&self) -> Key {
        let (name, version) = ("front".into(), "1".into());
        Key::Object { name, version }
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(1 << 30)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        if offset >= self.0 {
            return Err(io::Error::from_raw_os_error(libc::ENODATA));
        }
        let end = target.bytes();
        target.fill(skip, end, |_, memory| memory.fill(7));
        Ok(end)
    }
}

#[test]
fn a_call_has_the_error_of_any_of_its_bytes() {
    let driver = Driver::new(config(64 << 20)).unwrap();
    let reader = driver.open_source(Arc::new(Front(20 << 20))).unwrap();
    for (bytes, error) in [(17 << 20, None), (24 << 20, Some(libc::ENODATA))] {
        let (tell, told) = channel();
        reader.when_resident_or_failed(0, bytes, true, move |there| tell.send(there).unwrap());
        let told = told.recv().unwrap().err();
        assert_eq!(told.and_then(|told| told.raw_os_error()), error, "{bytes}");
    }
}

#[test]
fn a_thousand_reads_wait_at_once_in_memory_that_holds_a_few() {
    let driver = Driver::new(config(1 << 20)).unwrap();
    let readers: Vec<_> = (0..50)
        .map(|index| driver.open_generated(SEED, index, 10 << 20).unwrap())
        .collect();
    let (tell, told) = channel();
    for number in 0..1000_u64 {
        let tell = tell.clone();
        let reader = &readers[number as usize % readers.len()];
        let offset = number / 50 * 262_144;
        reader.when_resident(offset, 262_144, true, move |there| {
            tell.send(there).unwrap()
        });
    }
    drop(tell);
    let answers: Vec<bool> = told.iter().collect();
    assert!(answers.len() == 1000 && answers.iter().all(|there| *there));
    assert!(driver.streams().iter().all(|stream| stream.waiting == 0));
    drop(readers);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(ledger.memory_peak <= Bytes(1 << 20));
}

#[test]
fn who_waits_for_what_cannot_be_read_is_told_so() {
    let mut config = config(8 << 20);
    config.lab.fault = Some(FaultPlan {
        error_permille: 1000,
        ..FaultPlan::default()
    });
    let driver = Driver::new(config).unwrap();
    let reader = driver.open_generated(SEED, 1, 1 << 20).unwrap();
    let (tell, told) = channel();
    reader.when_resident(0, 4096, true, move |there| tell.send(there).unwrap());
    assert!(!told.recv().unwrap());
    assert!(reader.read_awaited_at(&mut [0; 4096], 0).is_err());
}

#[test]
fn nobody_waits_past_the_end_of_the_file_or_of_the_run() {
    let driver = Driver::new(config(8 << 20)).unwrap();
    let reader = driver.open_generated(SEED, 1, 10_000).unwrap();
    for offset in [10_000, 1 << 60, u64::MAX] {
        let (tell, told) = channel();
        reader.when_resident(offset, 4096, true, move |there| tell.send(there).unwrap());
        assert_eq!(told.try_recv(), Ok(true));
        assert!(reader.is_resident(offset, 4096));
    }
    driver.finish().unwrap();
    let (tell, told) = channel();
    reader.when_resident(0, 4096, true, move |there| tell.send(there).unwrap());
    assert_eq!(told.try_recv(), Ok(false));
}

/// The device stands still as long as the test looks: its thread is kept in the call that it makes
/// for a read of before.
#[test]
fn waiting_reads_streams_and_queues_are_seen() {
    let mut config = config(8 << 20);
    config.lab.emulate = Some(Box::new(
        Emulation::new(Nanos(1_000_000), 1_000_000_000, 1).unwrap(),
    ));
    let driver = Driver::new(config).unwrap();
    let [before, reader] = [0, 1].map(|index| driver.open_generated(SEED, index, 10 << 20));
    let (before, reader) = (before.unwrap(), reader.unwrap());
    let ((hold, held), (go_on, gone_on)) = (channel(), channel::<()>());
    before.when_resident(0, 4096, true, move |there| {
        hold.send(there).unwrap();
        // An error is as good: the test has ended early.
        let _ = gone_on.recv();
    });
    assert_eq!(held.recv(), Ok(true));
    let (tell, told) = channel();
    reader.when_resident(0, 65_536, true, move |there| tell.send(there).unwrap());
    let streams = driver.streams();
    let stream = streams.iter().find(|stream| stream.reader == reader.id());
    let stream = stream.unwrap_or_else(|| panic!("{streams:?}"));
    assert_eq!(stream.waiting, 1);
    assert!(stream.window.size >= 16 && stream.ahead >= 16);
    let [(None, queue)] = &driver.queues()[..] else {
        panic!("{:?}", driver.queues());
    };
    assert!(queue.in_flight > 0);
    drop(go_on);
    assert_eq!(told.recv(), Ok(true));
}
