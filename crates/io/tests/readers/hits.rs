//! The hit path under eviction: many threads, few frames, every byte checked.
//!
//! The race it looks for: a reader copies out of a frame while the frame is given to another
//! block. Most reads go to a few blocks, so that many are hits, the rest keeps frames changing.

use forerun_baselines::PRESETS;
use forerun_core::Bytes;
use forerun_io::{BackendChoice, Config, Driver, Reader, generated};

const SEED: u64 = 17;
const BLOCK: u64 = 4096;
const BLOCKS: u64 = 400;
const READS: u64 = 1_500;

fn read_many(reader: &Reader, index: u64, mut state: u64) {
    let mut buf = vec![0; 3 * BLOCK as usize];
    for _ in 0..READS {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99_991);
        let draw = state >> 33;
        let block = if draw % 10 < 8 {
            draw / 10 % 30
        } else {
            draw / 10 % BLOCKS
        };
        let length = if draw.is_multiple_of(3) {
            buf.len()
        } else {
            BLOCK as usize
        };
        let offset = block * BLOCK + draw % 2 * 100;
        let n = reader.read_at(&mut buf[..length], offset).unwrap();
        assert_eq!(n as u64, (BLOCKS * BLOCK - offset).min(length as u64));
        assert_eq!(generated::check(SEED, index, offset, &buf[..n]), Ok(()));
    }
}

#[test]
fn hits_stay_right_while_frames_change_hands() {
    for (name, threads) in [("memory", 2), ("memory", 8), ("pread", 4), ("uring", 3)] {
        for preset in PRESETS {
            let mut config = Config::new(preset.settings(Bytes(320 << 10)).unwrap());
            config.backend = BackendChoice::named(name).unwrap();
            let driver = Driver::new(config).unwrap();
            let shared = driver.open_generated(SEED, 0, BLOCKS * BLOCK).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (driver, shared) = (&driver, &shared);
                    scope.spawn(move || {
                        if thread % 2 == 0 {
                            read_many(shared, 0, thread);
                        } else {
                            let own = driver.open_generated(SEED, 1, BLOCKS * BLOCK).unwrap();
                            read_many(&own, 1, thread);
                        }
                    });
                }
            });
            drop(shared);
            let ledger = driver.finish().unwrap();
            ledger.check().unwrap();
            assert!(
                ledger.hits > ledger.reads / 10,
                "{} hits of {}",
                ledger.hits,
                ledger.reads
            );
            assert!(ledger.memory_peak <= Bytes(320 << 10));
        }
    }
}

/// Large blocks, so that a copy takes long enough to be overtaken, and little more of them than
/// frames, so that the block given up is often one that another thread reads.
#[test]
fn a_frame_is_not_filled_while_somebody_copies_out_of_it() {
    const LARGE: u64 = 128 << 10;
    for name in ["memory", "uring"] {
        let mut settings = forerun_baselines::preset("none")
            .unwrap()
            .settings(Bytes(16 << 20))
            .unwrap();
        settings.block_bytes = LARGE as u32;
        settings.memory = Bytes(65 * LARGE + (64 << 10));
        let mut config = Config::new(settings);
        config.backend = BackendChoice::named(name).unwrap();
        let driver = Driver::new(config).unwrap();
        let reader = driver.open_generated(SEED, 0, 90 * LARGE).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                let reader = &reader;
                scope.spawn(move || {
                    let (mut buf, mut state) = (vec![0; LARGE as usize], thread);
                    for _ in 0..1_500 {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(99_991);
                        let offset = (state >> 33) % 90 * LARGE;
                        assert_eq!(reader.read_at(&mut buf, offset).unwrap(), buf.len());
                        assert_eq!(generated::check(SEED, 0, offset, &buf), Ok(()));
                    }
                });
            }
        });
        drop(reader);
        let ledger = driver.finish().unwrap();
        ledger.check().unwrap();
        assert!(
            ledger.hits > ledger.reads / 3,
            "{} hits of {}",
            ledger.hits,
            ledger.reads
        );
    }
}

#[test]
fn more_threads_than_hazard_slots_take_turns_at_the_engine() {
    let driver = {
        let mut config = Config::new(PRESETS[0].settings(Bytes(1 << 20)).unwrap());
        config.backend = BackendChoice::named("memory").unwrap();
        Driver::new(config).unwrap()
    };
    let reader = driver.open_generated(SEED, 0, 20 * BLOCK).unwrap();
    let gate = std::sync::Barrier::new(300);
    std::thread::scope(|scope| {
        for thread in 0..300_u64 {
            let (reader, gate) = (&reader, &gate);
            scope.spawn(move || {
                let mut buf = [0; 5000];
                let offset = thread % 15 * BLOCK;
                for _ in 0..3 {
                    gate.wait();
                    assert_eq!(reader.read_at(&mut buf, offset).unwrap(), buf.len());
                    assert_eq!(generated::check(SEED, 0, offset, &buf), Ok(()));
                }
            });
        }
    });
}
