//! The division of `--memory`, which bounds the whole daemon, not the engine alone.
//!
//! Computed once, when a mount starts. Each need of the daemon beside the engine has an enforced
//! bound and is subtracted first; the engine gets the rest:
//!
//! ```text
//! --memory = engine | reply buffers    | workers | tables | source      | the process
//!            blocks,  fuse::room,       fuse::    fs        connections   stacks, request
//!            index    last way          reads               to a store    buffers, allocator
//! ```
//!
//! Two parts are not in it. The program's own code, 6 to 17 MiB (`RssFile`; the most with stores), is in the page
//! cache: shared, and the system's to drop. And tables grow with the kernel's cache of names: see [`TABLES_MOST`].

use forerun_core::table::Table;
use forerun_core::{Bytes, Settings};

use super::fs::walk::{NAME_BYTES, NAMES_MAX};
use super::fuse::REQUEST_BYTES_MAX;
use super::fuse::reads::WORKERS;
use super::readahead;
use crate::failure::Failure;
use crate::quantity::size;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The process before any read: 16 threads that take requests with two pages each of a buffer and
/// 12 KiB of stack, the other threads, pages the loader relocates, the allocator's pools. Measured
/// 2.2 MiB; the rest is for requests on their way, journal and reports.
const PROCESS: u64 = 4 * MIB;

/// A thread that answers: its measured stack and allocator pool.
const WORKER: u64 = 24 * KIB;

/// Room for answers while they are copied and sent: eight of the usual 256 KiB, more than
/// processors that copy at a time, and two of the longest.
const READY: u64 = 2 * MIB;

/// A buffer for a read that takes block by block: one of the longest. There is one such read at a
/// time for each device; those of a second device at the same time are not in here.
const WAITING: u64 = REQUEST_BYTES_MAX as u64;

/// Tables, most: at 450 bytes a name the kernel knows and 710 an open file (measured with 50 000
/// and 5000), 18 000 names or 11 000 open files. A mount of more takes more; the kernel's own record
/// of a file is three times as large, and it decides when both go.
const TABLES_MOST: u64 = 8 * MIB;

/// From a store in less, streams may have windows shorter than the kernel's 256 KiB: 256 of them have 126 KiB each in
/// 64 MiB. A read that takes two requests holds the bytes of the first while it waits for the second, and others push
/// them out. So 256 readers of 4 MB got 200 to 340 of 400 MB/s and fetched 1.07 to 1.2 times as much; with 128 KiB 344 to 380.
const SPLIT_READS: u64 = 128 * MIB;

/// The engine's minimum: some windows, so that reading ahead means something.
const ENGINE_LEAST: u64 = MIB;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// For the daemon, as the user said.
    pub whole: Bytes,
    /// For the engine.
    pub engine: Bytes,
    /// For answers to reads, in bytes.
    pub room: usize,
    /// Names of folders that are walked: 43 000 of 256 MiB, 65 000 at most.
    pub names: usize,
    /// Of the kernel, unless the user says another one.
    pub readahead: Bytes,
}

/// The part of so much memory that is not the engine's.
fn beside(memory: u64) -> u64 {
    let tables = (memory / 32).min(TABLES_MOST);
    PROCESS + WORKERS as u64 * WORKER + READY + WAITING + tables + names(memory)
}

/// For names of folders that are walked.
fn names(memory: u64) -> u64 {
    (memory / 64).min(NAMES_MAX as u64 * NAME_BYTES)
}

impl Budget {
    /// Divides the memory, of which the source takes so much for itself.
    ///
    /// # Errors
    /// Too little to work with; the message names the least.
    pub fn of(whole: Bytes, source: Bytes) -> Result<Self, Failure> {
        let engine = whole.0.saturating_sub(beside(whole.0) + source.0);
        if engine < ENGINE_LEAST {
            return Err(Failure::Usage(format!(
                "--memory {}: must be at least {} for a mount, which it bounds as a whole",
                size(whole),
                size(Self::least(source)),
            )));
        }
        Ok(Self {
            whole,
            engine: Bytes(engine),
            room: READY as usize,
            names: usize::try_from(names(whole.0) / NAME_BYTES).unwrap_or(NAMES_MAX),
            readahead: match source.0 > 0 && whole.0 < SPLIT_READS {
                true => readahead::SMALL,
                false => readahead::DEFAULT,
            },
        })
    }

    /// The memory of a mount of files whose engine has so much, in whole MiB.
    #[must_use]
    pub fn whole_of(engine: Bytes) -> Bytes {
        let first = engine.0.div_ceil(MIB).max(1);
        let is_enough = |mib: &u64| {
            let whole = Self::of(Bytes(mib.saturating_mul(MIB)), Bytes(0));
            whole.is_ok_and(|whole| whole.engine >= engine)
        };
        let enough = (first..=first.saturating_mul(2).saturating_add(64)).find(is_enough);
        Bytes(enough.unwrap_or(first).saturating_mul(MIB))
    }

    /// The least a mount can do with, in whole MiB.
    fn least(source: Bytes) -> Bytes {
        let enough = |mib: &u64| beside(mib * MIB) + source.0 + ENGINE_LEAST <= mib * MIB;
        Bytes((1..64).find(enough).unwrap_or(64) * MIB)
    }

    /// The daemon's needs beside the engine.
    #[must_use]
    pub fn beside(&self) -> Bytes {
        Bytes(self.whole.0 - self.engine.0)
    }

    /// The engine's memory while the daemon is to stay within so much.
    ///
    /// # Errors
    /// Less than is needed or more than there is, in words.
    pub fn engine_within(&self, whole: Bytes, settings: &Settings) -> Result<Bytes, String> {
        let frames = Table::memory_for(Table::FRAMES_MIN, settings.block_bytes).0;
        let least = self.beside().0 + frames.max(ENGINE_LEAST);
        // As it is typed; a mount that was started with hardly more has that.
        let least = least.next_multiple_of(MIB).min(self.whole.0);
        if !(least..=self.whole.0).contains(&whole.0) {
            return Err(format!(
                "--memory {}: must be at least {} and at most {}, with which the mount was started",
                size(whole),
                size(Bytes(least)),
                size(self.whole)
            ));
        }
        Ok(Bytes(whole.0 - self.beside().0))
    }
}

#[cfg(test)]
mod tests {
    use forerun_core::preset;

    use super::*;
    use crate::quantity::parse_size;

    #[test]
    fn the_parts_are_the_whole_and_most_of_it_is_the_engines() {
        for shift in 0..30 {
            let budget = Budget::of(Bytes(12_345_678 << shift), Bytes(0)).unwrap();
            assert_eq!(budget.engine.0 + budget.beside().0, budget.whole.0);
            let room = budget.room as u64;
            assert!(PROCESS + room <= budget.beside().0);
            assert!(shift < 2 || budget.engine.0 * 4 >= budget.whole.0 * 3);
        }
    }

    #[test]
    fn the_kernel_reads_a_store_in_little_memory_by_single_requests() {
        let readahead = |mib: u64, source| {
            let budget = Budget::of(Bytes(mib * MIB), Bytes(source * MIB));
            budget.unwrap().readahead.0 / KIB
        };
        for (mib, of_files, of_store) in [
            (16, 256, 128),
            (64, 256, 128),
            (127, 256, 128),
            (128, 256, 256),
        ] {
            assert_eq!(readahead(mib, 0), of_files, "{mib} MiB");
            assert_eq!(readahead(mib, 2), of_store, "{mib} MiB");
        }
    }

    #[test]
    fn an_engine_has_what_the_whole_was_reckoned_for_and_hardly_more() {
        for mib in [1, 2, 8, 16, 100, 256, 4096, 1 << 20] {
            let engine = Bytes(mib * MIB);
            let whole = Budget::whole_of(engine);
            assert!(
                Budget::of(whole, Bytes(0)).unwrap().engine >= engine,
                "{mib}"
            );
            let less = Budget::of(Bytes(whole.0 - MIB), Bytes(0));
            assert!(less.is_err() || less.unwrap().engine < engine, "{mib}");
        }
    }

    #[test]
    fn the_least_that_a_running_mount_may_have_is_in_whole_mib() {
        let sizes = (0..8).map(|shift| Bytes(40_345_678 << shift));
        let first = Budget::least(Bytes(0)).0;
        let small = (0..8).map(|mib| Bytes(first + mib * MIB));
        for whole in sizes.chain(small) {
            let budget = Budget::of(whole, Bytes(0)).unwrap();
            let settings = preset::default().settings(budget.engine).unwrap();
            let refused = budget.engine_within(Bytes(1), &settings).unwrap_err();
            let (_, least) = refused.split_once("at least ").unwrap();
            let least = parse_size(least.split(' ').next().unwrap()).unwrap().0;
            assert!(least.is_multiple_of(MIB), "{refused}");
            // A mount that is started with as much is not refused either.
            assert!(least >= first, "{whole:?}: {refused}");
            assert!(budget.engine_within(Bytes(least), &settings).is_ok());
            assert!(budget.engine_within(Bytes(least - 1), &settings).is_err());
            assert!(budget.engine_within(whole, &settings).is_ok());
        }
    }

    #[test]
    fn the_least_is_enough_and_less_is_refused() {
        for source in [0, 1, 2 * MIB, 5_000_000].map(Bytes) {
            let least = Budget::least(source);
            assert!(Budget::of(least, source).is_ok());
            let refused = Budget::of(Bytes(least.0 - MIB), source);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(&size(least).to_string()), "{refused}");
        }
    }
}
