//! The life of one reader of a soak: its file, its bytes, and its end.
//!
//! Drawn from the seed and the reader's number alone, so that the reader (a process) and the crowd
//! that kills it know the same without a word between them. Of a hundred readers:
//!
//! ```text
//! 55   read parts of up to 16 files in order, one after the other, and exit
//! 15   the same, with a stall of up to 4 s in each: memory fetched for them waits
//! 15   read a part, stall with the file open, are killed
//! 15   read until they are killed, in the middle of a read
//! ```
//!
//! One in ten reads at random. All check every byte, and drop from the kernel's page cache what
//! they have read: the files fit into it, and after half a minute the mount would have nothing to
//! do. Several readers have one file, at places and in sizes of their own, as no two programs read
//! alike. A life is tens of seconds when a thousand share a disk: a busy machine starts some tens
//! of processes a second.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

use crate::bed::Files;
use crate::content::{self, BLOCK_BYTES, Draws};
use crate::failure::{At, Failure};
use crate::fill;

/// Sizes of reads: a page, those of `cp` and `cat`, and more.
const READ_BYTES: [usize; 4] = [4 << 10, 64 << 10, 128 << 10, 512 << 10];

/// How a reader ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// By itself, after a stall in the middle.
    Exits { stall: Duration },
    /// Killed, with its file open and no read under way.
    KilledInStall { after: Duration },
    /// Killed in the middle of its reads.
    KilledReading { after: Duration },
}

/// A life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Life {
    /// Its first file, and how many one after the other.
    pub(super) file: u64,
    pub(super) rounds: u64,
    pub(super) at: u64,
    pub(super) read_bytes: usize,
    pub(super) reads: u64,
    pub(super) is_random: bool,
    pub(super) end: End,
}

impl Life {
    /// The life of a reader.
    pub(super) fn of(files: &Files, number: u64) -> Self {
        let mut draws = Draws::new(content::tag(files.seed, number, u64::MAX - 4));
        let millis =
            |draws: &mut Draws, min, max| Duration::from_millis(min + draws.below(max - min + 1));
        let end = match draws.below(100) {
            0..55 => End::Exits {
                stall: Duration::ZERO,
            },
            55..70 => End::Exits {
                stall: millis(&mut draws, 10, 4_000),
            },
            70..85 => End::KilledInStall {
                after: millis(&mut draws, 5_000, 60_000),
            },
            _ => End::KilledReading {
                after: millis(&mut draws, 50, 40_000),
            },
        };
        let file = draws.below(files.count);
        let read_bytes = READ_BYTES[draws.below(READ_BYTES.len() as u64) as usize];
        let blocks = fill::size(files, file).div_ceil(BLOCK_BYTES as u64);
        Self {
            file,
            rounds: 1 + draws.below(16),
            at: draws.below(blocks / 2 + 1) * BLOCK_BYTES as u64,
            read_bytes,
            // Up to 2 MiB: readers that come and go matter more than bytes.
            reads: 1 + draws.below((2 << 20) / read_bytes as u64),
            is_random: draws.below(10) == 0,
            end,
        }
    }

    /// Time at which it is killed; never, if it exits by itself.
    pub(super) fn killed_after(&self) -> Option<Duration> {
        match self.end {
            End::Exits { .. } => None,
            End::KilledInStall { after } | End::KilledReading { after } => Some(after),
        }
    }
}

/// Lives.
///
/// # Errors
/// An error of a read; a byte that differs from the one written.
pub(crate) fn live(folder: &Path, files: &Files, number: u64) -> Result<(), Failure> {
    let life = Life::of(files, number);
    let mut draws = Draws::new(number);
    let mut buffer = vec![0; life.read_bytes];
    for round in 0..life.rounds {
        let mut reading = Reading::open(folder, files, &life, (life.file + round) % files.count)?;
        let mut read =
            |count: u64| (0..count).try_for_each(|_| reading.next(&mut draws, &mut buffer));
        match life.end {
            End::Exits { stall } => {
                read(life.reads / 2)?;
                thread::sleep(stall);
                read(life.reads - life.reads / 2)?;
            }
            End::KilledInStall { .. } => {
                read(life.reads)?;
                loop {
                    thread::park();
                }
            }
            End::KilledReading { .. } => loop {
                read(1)?;
            },
        }
    }
    Ok(())
}

/// A file that a reader has open, and where it is.
struct Reading {
    path: PathBuf,
    file: File,
    number: u64,
    seed: u64,
    size: u64,
    is_random: bool,
    at: u64,
}

impl Reading {
    fn open(folder: &Path, files: &Files, life: &Life, number: u64) -> Result<Self, Failure> {
        let path = folder.join(fill::path(files, number));
        Ok(Self {
            file: File::open(&path).at(&path)?,
            path,
            number,
            seed: files.seed,
            size: fill::size(files, number),
            is_random: life.is_random,
            at: life.at,
        })
    }

    fn next(&mut self, draws: &mut Draws, buffer: &mut [u8]) -> Result<(), Failure> {
        if self.is_random {
            let blocks = self.size / BLOCK_BYTES as u64 + 1;
            self.at = draws.below(blocks) * BLOCK_BYTES as u64;
        }
        let arrived = self.file.read_at(buffer, self.at).at(&self.path)?;
        let bytes = buffer.get(..arrived).unwrap_or_default();
        let left = self.size.saturating_sub(self.at).min(buffer.len() as u64);
        is_whole(arrived as u64, left, self.at).at(&self.path)?;
        check(self.seed, self.number, self.at, bytes).at(&self.path)?;
        if let Some(length) = NonZeroU64::new(arrived as u64) {
            fadvise(&self.file, self.at, Some(length), Advice::DontNeed).at(&self.path)?;
        }
        self.at += (arrived / BLOCK_BYTES * BLOCK_BYTES) as u64;
        if arrived < buffer.len() {
            self.at = 0;
        }
        Ok(())
    }
}

/// A read that brings fewer bytes than the file has there took an error for the end.
fn is_whole(arrived: u64, left: u64, at: u64) -> Result<(), String> {
    match arrived < left {
        true => Err(format!("{arrived} of {left} bytes came at {at}")),
        false => Ok(()),
    }
}

/// Compares bytes that begin at a block with those written.
fn check(seed: u64, file: u64, at: u64, bytes: &[u8]) -> Result<(), String> {
    for (index, block) in (at / BLOCK_BYTES as u64..).zip(bytes.chunks(BLOCK_BYTES)) {
        if !content::follows(content::tag(seed, file, index), 0, block) {
            return Err(format!("block {index} differs from the bytes written"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_ends_too_early_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::flat(1, 100_000, 5);
        fill::run(folder.path(), &files).unwrap();
        let life = Life::of(&files, 0);
        let mut reading = Reading::open(folder.path(), &files, &life, 0).unwrap();
        (reading.is_random, reading.at) = (false, 0);
        let file = File::options().write(true).open(&reading.path).unwrap();
        file.set_len(50_000).unwrap();
        let mut buffer = vec![0; 65_536];
        let said = reading.next(&mut Draws::new(1), &mut buffer);
        let said = said.unwrap_err().to_string();
        assert!(said.ends_with("50000 of 65536 bytes came at 0"), "{said}");
    }

    #[test]
    fn lives_are_of_the_seed_and_all_ends_come_up() {
        let files = Files::flat(10, 1 << 20, 5);
        let lives: Vec<Life> = (0..1_000).map(|number| Life::of(&files, number)).collect();
        assert_eq!(lives[7], Life::of(&files, 7));
        assert_ne!(lives[7], Life::of(&Files::flat(10, 1 << 20, 6), 7));
        let count = |is: fn(&Life) -> bool| lives.iter().filter(|life| is(life)).count();
        let killed = count(|life| life.killed_after().is_some());
        assert!((220..=380).contains(&killed), "{killed}");
        let random = count(|life| life.is_random);
        assert!((60..=140).contains(&random), "{random}");
        assert!(
            lives
                .iter()
                .all(|life| life.at <= 1 << 19 && life.reads > 0 && life.file < 10)
        );
    }

    #[test]
    fn a_reader_that_exits_has_checked_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::flat(2, 300_001, 5);
        fill::run(folder.path(), &files).unwrap();
        let exits = |number: &u64| {
            let none = Duration::ZERO;
            Life::of(&files, *number).end == End::Exits { stall: none }
        };
        let numbers: Vec<u64> = (0..60).filter(exits).collect();
        assert!(numbers.len() > 20);
        for number in &numbers {
            live(folder.path(), &files, *number).unwrap();
        }
        for name in ["0000", "0001"] {
            std::fs::write(folder.path().join(name), vec![1; 300_001]).unwrap();
        }
        let said = live(folder.path(), &files, numbers[0])
            .unwrap_err()
            .to_string();
        assert!(said.contains("differs from the bytes written"), "{said}");
    }
}
