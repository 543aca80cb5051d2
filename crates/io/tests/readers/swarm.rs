//! The swarm: everything at once, from a seed.
//!
//! Each seed draws a preset, memory, files, faults and readers, and reads on several threads.
//! Every byte must equal the source, an error that reaches a reader must be the injected one, the
//! ledger must add up and memory stay below its bound. A seed that fails is printed first; run it
//! alone with `FORERUN_SWARM_FIRST`. `FORERUN_SWARM_SEEDS` sets how many run, 1,000 by default.

use std::path::Path;

use forerun_baselines::PRESETS;
use forerun_core::{Bytes, Nanos};
use forerun_io::{BackendChoice, Clock, Config, Driver, FaultPlan, Reader, generated};

/// The error injected: one that nothing else here produces.
const INJECTED: i32 = libc::EBADMSG;

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

fn number(name: &str, default: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the swarm's own switches")]
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap())
}

fn draw_fault(random: &mut Random, seed: u64) -> Option<FaultPlan> {
    let mut rate = |percent, most| {
        if random.chance(percent) {
            random.below(most) as u32
        } else {
            0
        }
    };
    let plan = FaultPlan {
        seed,
        error_permille: rate(50, 200),
        error: INJECTED,
        short_permille: rate(50, 500),
        delay_permille: rate(30, 100),
        delay_max: Nanos(300_000),
    };
    random.chance(80).then_some(plan)
}

fn draw_config(random: &mut Random, seed: u64) -> Config {
    let preset = random.pick(PRESETS);
    let block_bytes = random.pick(&[512, 4096, 4096, 16384]);
    let frames = 64 + random.below(400);
    let memory = Bytes(frames * u64::from(block_bytes) * 102 / 100 + (16 << 10));
    let mut settings = preset.settings(Bytes(16 << 20)).unwrap();
    settings.memory = memory;
    settings.block_bytes = block_bytes;
    settings.request_max = Bytes(u64::from(block_bytes) << random.below(8));
    settings.in_flight_max = 1 + random.below(16) as u32;
    let mut config = Config::new(settings);
    let backends = ["memory", "memory", "memory", "pread", "uring"];
    config.backend = BackendChoice::named(random.pick(&backends)).unwrap();
    config.lab.fault = draw_fault(random, seed);
    config.lab.clock = random.pick(&[Clock::Logical, Clock::Monotonic]);
    config
}

/// Waits until the driver says that these bytes are there, or cannot be.
fn await_bytes(reader: &Reader, offset: u64, bytes: usize) {
    let (tell, told) = std::sync::mpsc::channel();
    reader.when_resident(offset, bytes, true, move |there| tell.send(there).unwrap());
    told.recv().unwrap();
}

/// Reads one file in a drawn pattern.
fn read(reader: &Reader, random: &mut Random, seed: u64, index: u64, bytes: u64, faulty: bool) {
    let sequential = random.chance(60);
    let longest = 1 + random.below(60_000);
    let awaits = random.chance(30);
    let mut offset = 0;
    for _ in 0..40 {
        if !sequential {
            offset = random.below(bytes + bytes / 8 + 1);
        }
        let mut buf = vec![0; 1 + random.below(longest) as usize];
        let read = if awaits {
            await_bytes(reader, offset, buf.len());
            reader.read_awaited_at(&mut buf, offset)
        } else {
            reader.read_at(&mut buf, offset)
        };
        match read {
            Ok(n) => {
                let most = bytes.saturating_sub(offset).min(buf.len() as u64) as usize;
                assert!(
                    n == most || (faulty && (1..most).contains(&n)),
                    "{n} of {most} bytes"
                );
                assert_eq!(generated::check(seed, index, offset, &buf[..n]), Ok(()));
                offset += n as u64;
            }
            Err(e) => {
                assert!(faulty, "{e}");
                assert_eq!(e.raw_os_error(), Some(INJECTED), "{e}");
                offset += buf.len() as u64;
            }
        }
    }
}

/// Opens a file of a seed: made as it is read, or written before.
fn open(driver: &Driver, written: Option<&Path>, seed: u64, index: u64, bytes: u64) -> Reader {
    match written {
        Some(dir) => driver.open(&dir.join(index.to_string())),
        None => driver.open_generated(seed, index, bytes),
    }
    .unwrap()
}

/// Writes the files of a seed.
fn write_files(seed: u64, files: &[u64]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (index, bytes) in files.iter().enumerate() {
        let mut content = vec![0; *bytes as usize];
        generated::fill(seed, index as u64, 0, &mut content);
        std::fs::write(dir.path().join(index.to_string()), content).unwrap();
    }
    dir
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let config = draw_config(&mut random, seed);
    let memory = config.settings.memory;
    let faulty = config.lab.fault.is_some_and(|f| f.error_permille > 0);
    let driver = Driver::new(config).unwrap();
    let threads = 1 + random.below(4);
    let files: Vec<u64> = (0..1 + random.below(3))
        .map(|_| random.below(600_000))
        .collect();
    let written = random.chance(30).then(|| write_files(seed, &files));
    let written = written.as_ref().map(|dir| dir.path());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (driver, files) = (&driver, &files);
            scope.spawn(move || {
                let mut random = Random(seed ^ (thread + 1) << 32);
                for _ in 0..2 {
                    let index = random.below(files.len() as u64);
                    let bytes = files[index as usize];
                    let reader = open(driver, written, seed, index, bytes);
                    read(&reader, &mut random, seed, index, bytes, faulty);
                }
            });
        }
    });
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(
        ledger.memory_peak <= memory,
        "{} of {memory} bytes",
        ledger.memory_peak
    );
    assert_eq!((ledger.refused_inputs, ledger.in_flight), (0, 0));
}

#[test]
fn every_seed_reads_what_is_there() {
    let first = number("FORERUN_SWARM_FIRST", 0);
    for seed in first..first + number("FORERUN_SWARM_SEEDS", 1_000) {
        println!("seed {seed}");
        run(seed);
    }
}
