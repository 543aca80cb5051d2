//! `read`: the program both candidates run. N readers, each reading a file of its own in order.
//!
//! Called by `main`, and by `table` as a program of its own, inside a memory group. It uses nothing
//! but open, fadvise and read, so that all reading ahead is below it: the kernel's, or
//! `forerun mount`'s. Files are opened before the clock starts, so only reading is timed.
//!
//! Each reader stops after its bytes, at the end of its file, or when the time is over, whichever
//! comes first. With a time, a reader that was favoured shows as a larger share; with bytes, as an
//! earlier end. Content is checked if the seed is given.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use crate::content::{self, BLOCK_BYTES};
use crate::failure::{At, Failure};
use crate::joined::joined;

/// More threads than this measure the threads.
pub const READERS_MAX: usize = 1_024;

/// The files to read, and the manner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Number of readers, each with a file of its own.
    pub readers: usize,
    /// Size of one read.
    pub read_bytes: usize,
    /// Bytes of each reader; none: its whole file.
    pub bytes_per_reader: Option<u64>,
    /// Time at which all stop.
    pub time_max: Option<Duration>,
    /// The seed of the bed's files, to check arriving bytes.
    pub seed: Option<u64>,
}

/// The bytes and the time of one reader.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Share {
    /// Bytes that arrived.
    pub bytes: u64,
    /// From the common start to its last byte.
    pub seconds: f64,
    /// One over the other, in 10^6 bytes.
    pub mb_per_second: f64,
}

/// The readings of all readers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Readings {
    /// Number of readers.
    pub readers: usize,
    /// Size of one read.
    pub read_bytes: usize,
    /// Bytes that arrived.
    pub bytes: u64,
    /// From the common start to the last byte of the last reader.
    pub seconds: f64,
    /// One over the other, in 10^6 bytes.
    pub mb_per_second: f64,
    /// The rate of the slowest reader over that of the mean reader.
    pub slowest_per_mean: f64,
    /// Each reader.
    pub shares: Vec<Share>,
}

/// Reads the first files of a folder, one for each reader.
///
/// # Errors
/// Too few files; an error of one; bytes that differ from those written.
pub fn run(folder: &Path, reading: &Reading) -> Result<Readings, Failure> {
    run_on(folder, reading, |_| thread::Builder::new())
}

/// The same, on threads that are built like this.
fn run_on(
    folder: &Path,
    reading: &Reading,
    thread: impl Fn(u64) -> thread::Builder,
) -> Result<Readings, Failure> {
    let paths = files(folder, reading.readers)?;
    let opened: Vec<File> = paths
        .iter()
        .map(|path| open_cold(path))
        .collect::<Result<_, _>>()?;
    // Held until all are there; they read if all could be started.
    let gate = RwLock::new(false);
    let mut closed = gate.write().unwrap_or_else(PoisonError::into_inner);
    let shares = thread::scope(|scope| {
        let readers = (0_u64..).zip(opened).zip(&paths);
        let started = readers.map(|((number, file), path)| {
            let gate = &gate;
            let read = move || {
                let is_open = *gate.read().unwrap_or_else(PoisonError::into_inner);
                match is_open {
                    true => one(number, file, reading).at(path),
                    false => Ok(share(0, Duration::ZERO)),
                }
            };
            let started = thread(number).spawn_scoped(scope, read);
            started.map_err(|e| Failure::Run(format!("reader {number} cannot be started: {e}")))
        });
        let started: Result<Vec<_>, Failure> = started.collect();
        *closed = started.is_ok();
        drop(closed);
        let ended = started?.into_iter().map(|reader| joined(reader.join()));
        ended.collect::<Result<Vec<Share>, Failure>>()
    })?;
    Ok(summary(reading, shares))
}

/// The first files of the folder by name.
fn files(folder: &Path, count: usize) -> Result<Vec<PathBuf>, Failure> {
    let unusable = |e| Failure::Usage(format!("{}: {e}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unusable)? {
        let entry = entry.at(folder)?;
        if entry.file_type().at(folder)?.is_file() {
            paths.push(entry.path());
        }
    }
    if paths.len() < count {
        let found = paths.len();
        let text = format!(
            "{}: {count} readers want a file each: {found} here",
            folder.display()
        );
        return Err(Failure::Usage(text));
    }
    paths.sort();
    paths.truncate(count);
    Ok(paths)
}

/// Opens a file and asks the kernel to drop its pages.
fn open_cold(path: &Path) -> Result<File, Failure> {
    let file = File::open(path).at(path)?;
    fadvise(&file, 0, None, Advice::DontNeed).at(path)?;
    Ok(file)
}

fn one(number: u64, mut file: File, reading: &Reading) -> Result<Share, String> {
    let mut buffer = vec![0; reading.read_bytes];
    let bytes_max = reading.bytes_per_reader.unwrap_or(u64::MAX);
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    let began = Instant::now();
    let mut bytes = 0;
    while bytes < bytes_max && reading.time_max.is_none_or(|max| began.elapsed() < max) {
        let left = usize::try_from(bytes_max - bytes).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let arrived = file
            .read(&mut buffer[..wanted])
            .map_err(|e| format!("at {bytes}: {e}"))?;
        if arrived == 0 && bytes < length {
            return Err(format!("it ends at {bytes} of {length} bytes"));
        }
        if arrived == 0 {
            break;
        }
        if let Some(seed) = reading.seed {
            check(seed, number, bytes, &buffer[..arrived])?;
        }
        bytes += arrived as u64;
    }
    Ok(share(bytes, began.elapsed()))
}

fn share(bytes: u64, elapsed: Duration) -> Share {
    let seconds = elapsed.as_secs_f64();
    Share {
        bytes,
        seconds,
        mb_per_second: rate(bytes, seconds),
    }
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 / 1e6 / seconds
    } else {
        0.0
    }
}

/// Compares the bytes read with those written, block by block.
fn check(seed: u64, file: u64, at: u64, bytes: &[u8]) -> Result<(), String> {
    let size = BLOCK_BYTES as u64;
    let mut index = at / size;
    let mut skip = usize::try_from(at % size).unwrap_or(0);
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(BLOCK_BYTES - skip));
        if !content::follows(content::tag(seed, file, index), skip, piece) {
            return Err(format!("block {index} differs from the bytes written"));
        }
        (index, skip, rest) = (index + 1, 0, after);
    }
    Ok(())
}

fn summary(reading: &Reading, shares: Vec<Share>) -> Readings {
    let bytes = shares.iter().map(|s| s.bytes).sum();
    let seconds = shares.iter().map(|s| s.seconds).fold(0.0, f64::max);
    let rates = shares.iter().map(|s| s.mb_per_second);
    let mean = rates.clone().sum::<f64>() / shares.len().max(1) as f64;
    let slowest = rates.fold(f64::INFINITY, f64::min);
    Readings {
        readers: reading.readers,
        read_bytes: reading.read_bytes,
        bytes,
        seconds,
        mb_per_second: rate(bytes, seconds),
        slowest_per_mean: if mean > 0.0 { slowest / mean } else { 0.0 },
        shares,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::Files;
    use crate::fill;

    fn reading(readers: usize) -> Reading {
        Reading {
            readers,
            read_bytes: 10_000,
            bytes_per_reader: None,
            time_max: None,
            seed: Some(1),
        }
    }

    fn filled() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fill::run(folder.path(), &Files::flat(3, 100_001, 1)).unwrap();
        folder
    }

    #[test]
    fn every_reader_reads_its_own_file() {
        let folder = filled();
        let readings = run(folder.path(), &reading(3)).unwrap();
        assert_eq!(readings.bytes, 300_003);
        assert!(readings.slowest_per_mean > 0.0 && readings.slowest_per_mean <= 1.0);
        let limited = Reading {
            bytes_per_reader: Some(12_345),
            ..reading(2)
        };
        assert_eq!(run(folder.path(), &limited).unwrap().bytes, 24_690);
        let timed = Reading {
            time_max: Some(Duration::ZERO),
            ..reading(1)
        };
        assert_eq!(run(folder.path(), &timed).unwrap().bytes, 0);
    }

    #[test]
    fn a_wrong_byte_and_too_few_files_are_named() {
        let folder = filled();
        let said = run(folder.path(), &reading(4)).unwrap_err().to_string();
        assert!(
            said.contains("4 readers") && said.contains("3 here"),
            "{said}"
        );
        let path = folder.path().join("0001");
        let mut bytes = fs::read(&path).unwrap();
        bytes[50_000] ^= 1;
        fs::write(&path, bytes).unwrap();
        let said = run(folder.path(), &reading(2)).unwrap_err().to_string();
        assert!(said.contains("0001: block 12"), "{said}");
    }

    #[test]
    fn readers_that_wait_for_one_that_cannot_be_started_are_let_go() {
        let folder = filled();
        for refused in 0..3 {
            let thread = |number| match number == refused {
                // No address space has room for such a stack.
                true => thread::Builder::new().stack_size(1 << 60),
                false => thread::Builder::new(),
            };
            let said = run_on(folder.path(), &reading(3), thread).unwrap_err();
            let expected = format!("reader {refused} cannot be started: ");
            assert!(said.to_string().starts_with(&expected), "{said}");
        }
    }

    #[test]
    fn an_end_before_the_end_is_an_error() {
        // The kernel says 4,096 bytes of it, and it has some digits.
        let file = File::open("/sys/kernel/uevent_seqnum").unwrap();
        let unchecked = Reading {
            seed: None,
            ..reading(1)
        };
        let said = one(0, file, &unchecked).unwrap_err();
        assert!(said.ends_with("of 4096 bytes"), "{said}");
    }

    #[test]
    fn a_share_is_slow_compared_with_the_mean() {
        let second = Duration::from_secs(1);
        let shares = vec![share(1_000_000, second), share(3_000_000, second)];
        let readings = summary(&reading(2), shares);
        assert!((readings.mb_per_second - 4.0).abs() < 1e-9);
        assert!((readings.slowest_per_mean - 0.5).abs() < 1e-9);
    }
}
