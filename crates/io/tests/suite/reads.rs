//! Reads through the driver equal the source: every preset, every backend, several threads.
//!
//! Property tests: random reads, unaligned and across the end, on generated content and on real
//! files, with far less memory than the files take.

use std::io::Write;
use std::sync::Arc;

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::spec::Choice;
use forerun_core::{Bytes, preset};
use forerun_io::{BackendChoice, Config, Driver, Reader, backend, generated};
use proptest::prelude::*;

const SEED: u64 = 11;

fn driver(preset: &preset::Preset, backend: &str, memory: u64) -> Driver {
    let mut config = Config::new(preset.settings(Bytes(memory)).unwrap());
    config.backend = BackendChoice::named(backend).unwrap();
    Driver::new(config).unwrap()
}

/// Reads and compares; generated content makes every byte known.
fn read_and_check(reader: &Reader, index: u64, bytes: u64, offset: u64, length: usize) {
    let mut buf = vec![0xee; length];
    let n = reader.read_at(&mut buf, offset).unwrap();
    assert_eq!(
        n as u64,
        bytes.saturating_sub(offset).min(length as u64),
        "length at {offset}"
    );
    assert_eq!(generated::check(SEED, index, offset, &buf[..n]), Ok(()));
    assert!(
        buf[n..].iter().all(|b| *b == 0xee),
        "bytes behind the end of the file were touched"
    );
}

fn temporary(index: u64, bytes: u64) -> tempfile::NamedTempFile {
    let mut content = vec![0; bytes as usize];
    generated::fill(SEED, index, 0, &mut content);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&content).unwrap();
    file
}

#[test]
fn every_preset_on_every_backend_reads_a_file_from_beginning_to_end() {
    const BYTES: u64 = 3 * 1024 * 1024 + 1234;
    let file = temporary(5, BYTES);
    for preset in PRESETS {
        for entry in backend::LIST {
            let driver = driver(preset, entry.name, 1 << 20);
            let reader = driver.open(file.path()).unwrap();
            assert_eq!(reader.size(), BYTES);
            let mut offset = 0;
            while offset < BYTES {
                read_and_check(&reader, 5, BYTES, offset, 65_000);
                offset += 65_000;
            }
            drop(reader);
            let ledger = driver.finish().unwrap();
            ledger.check().unwrap();
            assert!(ledger.memory_peak.0 <= 1 << 20);
            assert_eq!(
                ledger.refused_inputs, 0,
                "{} on {}",
                preset.name, entry.name
            );
        }
    }
}

#[test]
fn long_reads_beyond_the_memory_and_past_the_end_give_what_there_is() {
    const BYTES: u64 = 9 * 1024 * 1024 + 1;
    for entry in backend::LIST {
        let driver = driver(&PRESETS[0], entry.name, 1 << 20);
        let reader = driver.open_generated(SEED, 1, BYTES).unwrap();
        read_and_check(&reader, 1, BYTES, 0, 10 << 20);
        read_and_check(&reader, 1, BYTES, BYTES - 1, 4096);
        read_and_check(&reader, 1, BYTES, BYTES, 4096);
        read_and_check(&reader, 1, BYTES, u64::MAX, 4096);
        read_and_check(&reader, 1, BYTES, 5, 0);
        let empty = driver.open_generated(SEED, 2, 0).unwrap();
        read_and_check(&empty, 2, 0, 0, 100);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn random_reads_from_many_threads_equal_the_source(
        threads in 1..5usize,
        bytes in 1..2_000_000u64,
        reads in prop::collection::vec((0.0..1.1f64, 1..200_000usize), 1..40),
    ) {
        for preset in PRESETS {
            let driver = Arc::new(driver(preset, "auto", 512 << 10));
            let shared = driver.open_generated(SEED, 0, bytes).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (driver, shared, reads) = (&driver, &shared, &reads);
                    scope.spawn(move || {
                        let own = driver.open_generated(SEED, thread as u64, bytes).unwrap();
                        for (at, length) in reads.iter().cycle().skip(thread).take(reads.len()) {
                            let offset = (*at * bytes as f64) as u64;
                            read_and_check(&own, thread as u64, bytes, offset, *length);
                            read_and_check(shared, 0, bytes, offset, *length);
                        }
                    });
                }
            });
            drop(shared);
            let ledger = Arc::into_inner(driver).unwrap().finish().unwrap();
            prop_assert_eq!(ledger.check(), Ok(()));
            prop_assert!(ledger.memory_peak.0 <= 512 << 10);
            prop_assert_eq!(ledger.refused_inputs, 0);
        }
    }
}

#[test]
fn a_file_that_is_read_once_takes_a_tenth_of_the_memory() {
    for (name, most) in [("once", 26), ("mount", 26), ("forerun", 256)] {
        let preset = forerun_baselines::preset(name).unwrap();
        let mut settings = preset.settings(Bytes(256 << 20)).unwrap();
        // Windows of its own would be a quarter of the file.
        settings.depth =
            Choice::parse("depth", METHODS.depth, "fixed(depth_bytes=1048576)").unwrap();
        let driver = Driver::new(Config::new(settings)).unwrap();
        let reader = driver.open_generated(1, 1, 512 << 20).unwrap();
        let mut buf = vec![0; 100_000];
        let mut offset = 0;
        while offset < reader.size() {
            let count = reader.read_at(&mut buf, offset).unwrap();
            generated::check(1, 1, offset, &buf[..count]).unwrap();
            offset += count as u64;
        }
        drop(reader);
        let ledger = driver.finish().unwrap();
        ledger.check().unwrap();
        let peak = ledger.memory_peak;
        assert!(peak <= Bytes(most << 20), "{name}: {peak}");
        let is_reused = most == 256 || peak > Bytes(16 << 20);
        assert!(is_reused, "{name}: blocks read just now stay, {peak}");
    }
}
