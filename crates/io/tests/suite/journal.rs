//! A journal written by real threads replays: a fresh engine decides the same, line for line.
//!
//! This holds the whole middle of the driver to its contract: inputs enter one at a time, in the
//! order of the journal, and nothing of the engine is touched beside them. And what one thread
//! does twice gives the same journal twice.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};
use std::time::Duration;

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::journal::{self, Entry};
use forerun_core::{Bytes, Engine, Nanos, preset};
use forerun_io::{BackendChoice, Clock, Config, Driver, Error, FaultPlan, Reader};

use crate::page::Page;

fn read_some(reader: &Reader, bytes: u64, mut state: u64) {
    let mut buf = vec![0; 70_000];
    let mut offset = 0;
    for _ in 0..150 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99_991);
        let draw = state >> 33;
        if draw.is_multiple_of(5) {
            offset = draw % bytes;
        }
        let length = 1 + (draw / 7) as usize % buf.len();
        // Errors are injected here; their effects are in the journal.
        offset += reader.read_at(&mut buf[..length], offset).unwrap_or(1) as u64;
    }
}

/// A run on `threads` threads, and its journal.
fn record(preset: &preset::Preset, backend: &str, threads: u64, clock: Clock) -> String {
    const BYTES: u64 = 3_000_000;
    let page = Page::default();
    let mut config = Config::new(preset.settings(Bytes(1 << 20)).unwrap());
    config.backend = BackendChoice::named(backend).unwrap();
    config.lab.fault = Some(FaultPlan {
        error_permille: 30,
        short_permille: 100,
        delay_permille: if threads > 1 { 50 } else { 0 },
        delay_max: Nanos(200_000),
        ..FaultPlan::default()
    });
    config.journal = Some(Box::new(page.clone()));
    config.lab.clock = clock;
    let driver = Driver::new(config).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let driver = &driver;
            scope.spawn(move || {
                let reader = driver.open_generated(1, thread % 2, BYTES).unwrap();
                read_some(&reader, BYTES, thread);
            });
        }
    });
    driver.finish().unwrap().check().unwrap();
    page.text()
}

/// Replays a journal; the number of its lines.
fn replay(text: &str) -> usize {
    let mut lines = text.lines();
    let head = (lines.next().unwrap(), lines.next().unwrap());
    let mut engine = Engine::new(journal::parse_head(head.0, head.1, &METHODS).unwrap()).unwrap();
    let mut count = 0;
    for line in lines {
        count += 1;
        match line.parse().unwrap() {
            Entry::Input(now, input) => {
                assert_eq!(engine.poll(), None, "before line {count}");
                engine.handle(now, input);
            }
            Entry::Output(output) => assert_eq!(engine.poll(), Some(output), "line {count}"),
        }
    }
    assert_eq!(engine.poll(), None);
    assert_eq!(engine.ledger().refused_inputs, 0);
    count
}

#[test]
fn what_many_threads_did_replays_line_for_line() {
    for preset in PRESETS {
        for (backend, threads) in [("memory", 1), ("memory", 4), ("pread", 4), ("uring", 3)] {
            let text = record(preset, backend, threads, Clock::Monotonic);
            assert!(replay(&text) > 200, "{} on {backend}", preset.name);
        }
    }
}

#[test]
fn one_thread_and_a_logical_clock_write_the_same_journal_twice() {
    for preset in PRESETS {
        let record = || record(preset, "memory", 1, Clock::Logical);
        assert_eq!(record(), record(), "{}", preset.name);
    }
}

/// Tells of each call whether it is a flush, and writes nothing before it is let.
struct Stuck(Sender<bool>, Receiver<()>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(false);
        let _ = self.1.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.send(true);
        Ok(())
    }
}

#[test]
fn a_writer_that_does_not_write_holds_up_one_thread_and_ends_the_journal() {
    /// A wait that takes longer has failed.
    const BOUND: Duration = Duration::from_secs(600);
    let (asked, was_asked) = channel();
    let (open, gate) = channel::<()>();
    let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
    let config = Config::new(settings).journal(Stuck(asked, gate));
    let driver = std::sync::Arc::new(Driver::new(config).unwrap());
    let read_until_it_ends = || {
        let (tell, told) = channel();
        let driver = driver.clone();
        std::thread::spawn(move || {
            let reader = driver.open_generated(1, 0, 1 << 30).unwrap();
            while driver.journal_error().is_none() {
                read_some(&reader, 1 << 30, 1);
            }
            // The test may have failed meanwhile.
            let _ = tell.send(());
        });
        told
    };
    let stuck = read_until_it_ends();
    was_asked.recv_timeout(BOUND).unwrap();
    let ended = read_until_it_ends().recv_timeout(BOUND);
    let is_stuck = stuck.try_recv().is_err();
    drop(open);
    while stuck.recv().is_ok() {}
    assert_eq!((ended, is_stuck), (Ok(()), true));
    let number = |error: &io::Error| error.raw_os_error();
    let error = driver.journal_error();
    assert_eq!(error.as_ref().and_then(number), Some(libc::ETIMEDOUT));
    match driver.finish() {
        Err(Error::Journal(error)) => assert_eq!(number(&error), Some(libc::ETIMEDOUT)),
        other => panic!("{other:?}"),
    }
    assert!(was_asked.try_iter().any(|is_flush| is_flush));
    // The error is reported once.
    driver.finish().unwrap();
}

/// Says which threads write.
struct Writers(Sender<ThreadId>);

impl Write for Writers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(thread::current().id());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_thread_of_the_driver_writes_the_journal_while_it_asks_for_the_rest_of_bytes_that_are_awaited()
{
    const BYTES: u64 = 1 << 30;
    let (tell, writers) = channel();
    let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
    let driver = Driver::new(Config::new(settings).journal(Writers(tell))).unwrap();
    let reader = driver.open_generated(1, 0, BYTES).unwrap();
    let (come, came) = channel();
    let call = move |there| come.send(there).unwrap();
    reader.when_resident(0, BYTES as usize, true, call);
    assert_eq!(came.recv(), Ok(true));
    driver.finish().unwrap();
    drop((reader, driver));
    let here = thread::current().id();
    assert!(writers.iter().all(|writer| writer == here));
}
