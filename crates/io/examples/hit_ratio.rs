//! How fast plain hits are, as ratios in one run: against `pread(2)` on a warm page cache, and two
//! threads against one.
//!
//! 4 KiB random reads of a resident 64 MiB file. The two sides take turns, five times, and the
//! median ratio is printed, because the machines are noisy and a ratio within one run is not.
//! `cargo run --release --example hit_ratio`.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use forerun_core::{Bytes, preset};
use forerun_io::{Config, Driver, Reader, generated};

const FILE_BYTES: u64 = 64 << 20;
const BLOCK: usize = 4096;
const READS: u32 = 200_000;
const TURNS: usize = 5;

/// A different block each time, from a linear congruential generator.
fn offsets(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % (FILE_BYTES / BLOCK as u64) * BLOCK as u64
    })
}

fn hits(reader: &Reader, seed: u64) -> Duration {
    let mut buf = [0; BLOCK];
    let start = Instant::now();
    for offset in offsets(seed).take(READS as usize) {
        let n = reader.read_at(&mut buf, offset).unwrap_or(0);
        assert_eq!(black_box(n), BLOCK);
    }
    start.elapsed()
}

fn preads(file: &File, seed: u64) -> Duration {
    let mut buf = [0; BLOCK];
    let start = Instant::now();
    for offset in offsets(seed).take(READS as usize) {
        let n = file.read_at(&mut buf, offset).unwrap_or(0);
        assert_eq!(black_box(n), BLOCK);
    }
    start.elapsed()
}

/// The time two threads take for twice the reads.
fn hits_of_two(a: &Reader, b: &Reader) -> Duration {
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| hits(a, 3));
        scope.spawn(|| hits(b, 5));
    });
    start.elapsed()
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

fn nanos_each(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(READS)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("forerun-hit-ratio-{}", std::process::id()));
    let mut content = vec![0; FILE_BYTES as usize];
    generated::fill(1, 1, 0, &mut content);
    File::create(&path)?.write_all(&content)?;

    let driver = Driver::new(Config::new(preset::default().settings(Bytes(96 << 20))?))?;
    let (reader, other) = (driver.open(&path)?, driver.open(&path)?);
    let file = File::open(&path)?;
    std::fs::remove_file(&path)?;
    let mut read = vec![0; FILE_BYTES as usize];
    for warm in [&reader, &other, &reader] {
        assert_eq!(warm.read_at(&mut read, 0)?, read.len());
    }
    file.read_exact_at(&mut read, 0)?;

    let mut out = std::io::stdout().lock();
    let (mut against_pread, mut of_two) = (Vec::new(), Vec::new());
    for turn in 0..TURNS as u64 {
        let (hit, pread) = (hits(&reader, turn), preads(&file, turn));
        let two = hits_of_two(&reader, &other);
        against_pread.push(pread.as_secs_f64() / hit.as_secs_f64());
        of_two.push(2.0 * hit.as_secs_f64() / two.as_secs_f64());
        writeln!(
            out,
            "hit {:.0} ns, pread {:.0} ns, two threads {:.0} ns each",
            nanos_each(hit),
            nanos_each(pread),
            nanos_each(two)
        )?;
    }
    writeln!(out, "hits against pread: {:.2}", median(against_pread))?;
    writeln!(out, "two threads against one: {:.2}", median(of_two))?;
    Ok(())
}
