//! A journal written by real threads replays: a fresh engine decides the same, line for line.
//!
//! This holds the whole middle of the driver to its contract: inputs enter one at a time, in the
//! order of the journal, and nothing of the engine is touched beside them. And what one thread
//! does twice gives the same journal twice.

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::journal::{self, Entry};
use forerun_core::{Bytes, Engine, Nanos, Output, preset};
use forerun_io::{BackendChoice, Clock, Config, Driver, FaultPlan, Reader};

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
                assert_eq!(engine.poll(), Output::Idle, "before line {count}");
                engine.handle(now, input);
            }
            Entry::Output(output) => assert_eq!(engine.poll(), output, "line {count}"),
        }
    }
    assert_eq!(engine.poll(), Output::Idle);
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
