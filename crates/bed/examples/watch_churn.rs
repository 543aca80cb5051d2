//! `forerun watch` beside programs that open, lock, unlink and unmount, killed again and again:
//! `cargo run --release -p forerun-bed --example watch_churn -- FORERUN [KILLS [SEED]]`.
//!
//! On a file system of its own (root, loop devices). Each round starts a watch, lets threads read files cold in order, so
//! that limits are set all the time, and kills it by SIGKILL at a drawn moment. It exits with 1 where
//!
//! - the read-ahead of the file system was not right within 100 ms of a kill, and stayed so,
//! - an exclusive lock of a file that its only user has closed was refused for longer than 100 ms,
//! - an unmount after all files were closed was refused for longer than 100 ms,
//! - a read gave another byte than was written.

#![allow(clippy::print_stdout, reason = "a program that prints figures")]

mod watching;

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, FlockOperation, fadvise, flock};
use watching::{Disk, Failed, tool};

const WITHIN: Duration = Duration::from_millis(100);
const READERS: usize = 3;
const BYTES: usize = 8 << 20;

/// Counters of a run.
#[derive(Default)]
struct Seen {
    opens: AtomicU64,
    locks: AtomicU64,
    unlinks: AtomicU64,
    /// Longest times in us: until the read-ahead was right, and until a lock was given.
    right_us: AtomicU64,
    lock_us: AtomicU64,
}

/// Tries until it succeeds; how long that took, or the last failure.
fn within<T>(mut call: impl FnMut() -> Result<T, Failed>) -> Result<Duration, Failed> {
    let begun = Instant::now();
    loop {
        match call() {
            Ok(_) => return Ok(begun.elapsed()),
            Err(failed) if begun.elapsed() > WITHIN => return Err(failed),
            Err(_) => thread::yield_now(),
        }
    }
}

fn longest(of: &AtomicU64, time: Duration) {
    let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    of.fetch_max(time, Ordering::Relaxed);
}

/// Reads a file cold, closes, locks and unlinks it, until it is to stop.
fn churn(folder: &Path, reader: usize, seen: &Seen, stop: &AtomicBool) -> Result<(), Failed> {
    let path = folder.join(format!("file{reader}"));
    while !stop.load(Ordering::Relaxed) {
        fs::write(&path, vec![reader as u8; BYTES])?;
        let written = File::open(&path)?;
        written.sync_all()?;
        fadvise(&written, 0, None, Advice::DontNeed)?;
        drop(written);
        let mut file = File::open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut buffer = vec![0; 64 << 10];
        while let count @ 1.. = file.read(&mut buffer)? {
            if buffer[..count]
                .iter()
                .any(|byte| usize::from(*byte) != reader)
            {
                return Err(format!("{}: another byte", path.display()).into());
            }
        }
        drop(file);
        let again = File::open(&path)?;
        let lock = || Ok(flock(&again, FlockOperation::NonBlockingLockExclusive)?);
        longest(&seen.lock_us, within(lock)?);
        drop(again);
        fs::remove_file(&path)?;
        seen.opens.fetch_add(3, Ordering::Relaxed);
        seen.locks.fetch_add(2, Ordering::Relaxed);
        seen.unlinks.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// A watch that is killed after so long, beside the readers; then the file system is unmounted.
fn round(disk: &Disk, forerun: &Path, lives: Duration, seen: &Seen) -> Result<(), Failed> {
    let mut watch = disk.watch(forerun, &["--depth", "fixed(depth_bytes=4194304)"])?;
    let (stop, point, limit) = (AtomicBool::new(false), disk.point(), disk.limit()?);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let (point, stop) = (&point, &stop);
                scope.spawn(move || churn(point, reader, seen, stop))
            })
            .collect();
        thread::sleep(lives);
        watch.kill()?;
        let killed = Instant::now();
        let (mut last_wrong, mut value) = (Duration::ZERO, String::new());
        // A value that is right may still be put wrong, so it is looked at for all of the time.
        while killed.elapsed() < WITHIN * 2 {
            value = fs::read_to_string(&limit)?;
            if value.trim() != "128" {
                last_wrong = killed.elapsed();
            }
        }
        stop.store(true, Ordering::Relaxed);
        watch.wait()?;
        longest(&seen.right_us, last_wrong);
        for reader in readers {
            reader.join().map_err(|_| "a reader panicked")??;
        }
        match last_wrong < WITHIN && value.trim() == "128" {
            true => Ok(()),
            false => Err(Failed::from(format!(
                "read-ahead {} after {last_wrong:?}",
                value.trim()
            ))),
        }
    })?;
    let point = point.to_str().unwrap_or_default();
    within(|| tool(&["umount", point]))?;
    disk.mount()
}

fn main() -> Result<(), Failed> {
    let mut words = std::env::args();
    let forerun = words.nth(1).ok_or("which forerun?")?;
    let kills: u64 = words.next().map_or(Ok(1000), |word| word.parse())?;
    let seed: u64 = words.next().map_or(Ok(1), |word| word.parse())?;
    println!("seed {seed}");
    let disk = Disk::new(96 << 20)?;
    let (mut state, seen) = (seed, Seen::default());
    for _ in 0..kills {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let lives = Duration::from_micros(20_000 + (state >> 33) % 180_000);
        round(&disk, Path::new(&forerun), lives, &seen)?;
    }
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{kills} kills: read-ahead right {:.1} ms after one at most; {} opens, {} locks (given within {:.1} ms), {} unlinks, \
         {kills} unmounts",
        of(&seen.right_us) as f64 / 1e3,
        of(&seen.opens),
        of(&seen.locks),
        of(&seen.lock_us) as f64 / 1e3,
        of(&seen.unlinks),
    );
    Ok(())
}
