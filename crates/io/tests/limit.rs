//! Limits of memory while reads go on: pages come and go under them, and no byte is wrong.

#[path = "../../skipped.rs"]
mod skipped;

use std::fs::{self, File};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use forerun_core::{Bytes, preset};
use forerun_io::{BackendChoice, Config, Driver, generated};

use skipped::skipped;

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 48 * MIB;
const FILE_BYTES: u64 = 64 * MIB;
const READ_MAX: u64 = 300_000;
const SEED: u64 = 5;
/// A wait that takes longer has failed.
const BOUND: Duration = Duration::from_secs(600);
/// Between two looks at a count.
const PAUSE: Duration = Duration::from_millis(1);

/// A generator of numbers that is good enough for places in a file.
struct Places(u64);

impl Places {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kib.trim().parse::<u64>().unwrap() << 10
}

fn driver(backend: &str) -> Option<Driver> {
    let settings = preset::find("mount")
        .unwrap()
        .settings(Bytes(MEMORY))
        .unwrap();
    let config = {
        let mut config = Config::new(settings);
        config.backend = BackendChoice::named(backend).unwrap();
        config
    };
    Driver::new(config)
        .inspect_err(|error| skipped(format_args!("{backend}: {error}")))
        .ok()
}

#[test]
fn no_byte_is_wrong_while_limits_come_and_go_and_memory_follows_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut content = vec![0; FILE_BYTES as usize];
    generated::fill(SEED, 0, 0, &mut content);
    let mut file = File::create(&path).unwrap();
    file.write_all(&content).unwrap();
    // A young version would be dropped once it is old.
    file.set_modified(UNIX_EPOCH).unwrap();
    for backend in ["uring", "pread"] {
        let Some(driver) = driver(backend) else {
            continue;
        };
        let before = resident();
        let (ended, reads) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let reader = driver.open(&path).unwrap();
                let (content, ended, reads) = (&content, &ended, &reads);
                scope.spawn(move || {
                    let mut places = Places(SEED + thread);
                    let mut buffer = vec![0; READ_MAX as usize];
                    while !ended.load(Ordering::Relaxed) {
                        let at = places.below(FILE_BYTES - READ_MAX) as usize;
                        let length = places.below(READ_MAX) as usize;
                        let count = reader.read_at(&mut buffer[..length], at as u64).unwrap();
                        let right = buffer[..count] == content[at..at + length];
                        // Reads that do not come any more are not waited for.
                        ended.fetch_or(!right, Ordering::Relaxed);
                        assert!(right, "{backend}: {length} bytes at {at}");
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            // A limit comes after so many more reads, enough to fill the memory in between.
            let wait_for = |count: u64| {
                let begun = Instant::now();
                while reads.load(Ordering::Relaxed) < count && !ended.load(Ordering::Relaxed) {
                    let waits = begun.elapsed() < BOUND;
                    ended.fetch_or(!waits, Ordering::Relaxed);
                    assert!(waits, "{backend}: {count} reads take more than ten minutes");
                    std::thread::park_timeout(PAUSE);
                }
            };
            let mut places = Places(SEED);
            for round in 1..=12_u64 {
                wait_for(round * 300);
                let limit = match round % 4 {
                    0 => MEMORY,
                    _ => 2 * MIB + places.below(MEMORY - 2 * MIB),
                };
                driver.limit_memory(Bytes(limit)).unwrap();
            }
            driver.limit_memory(Bytes(8 * MIB)).unwrap();
            wait_for(15 * 300);
            ended.store(true, Ordering::Relaxed);
        });
        // Buffers and stacks of four readers, tables, pools of the allocator: a few MiB. Pages go by and by.
        let (grown, begun) = (|| resident().saturating_sub(before), Instant::now());
        while grown() >= 16 * MIB {
            let more = grown();
            assert!(
                begun.elapsed() < BOUND,
                "{backend}: {more} bytes more with 8 MiB"
            );
            std::thread::park_timeout(PAUSE);
        }
        driver.finish().unwrap().check().unwrap();
    }
}
