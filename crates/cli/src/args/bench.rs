//! Flags of `forerun bench`: the presets, the clock, and the readers with their files.
//!
//! Part of `args`, apart because it is long. The storage below the engine (`Storage`) and its
//! methods (`Composition`) are flags of several commands and stay there.

use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};
use forerun_baselines::METHODS;
use forerun_core::{Bytes, Nanos, preset};

use super::files::{Storage, parse_read_bytes, without_walks};
use super::{Composition, Format, Hinted, methods_help, parse_count, parse_number, parse_whole};
use crate::bench::pattern::{self, Pattern};
use crate::bench::plan::Contender;
use crate::quantity::{parse_duration, parse_size};

/// `forerun bench`.
#[derive(Debug, Group)]
#[command(mut_args(without_walks))]
pub struct Bench {
    /// Files or objects to read, or one directory to make files in, where they stay for the next bench;
    /// without, content comes from the seed. An address that ends in / stands for the objects directly
    /// below it: they are read, and none is made
    #[arg(value_name = "DIR|FILE")]
    pub paths: Vec<PathBuf>,

    /// Presets to compare, with commas between; `kernel` is plain buffered reads, cold
    #[arg(long, value_name = "A,B,..", value_delimiter = ',', default_value = preset::DEFAULT)]
    pub preset: Vec<Contender>,

    /// Runs of each preset, in turns; the median run is printed
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = |text: &str| parse_count(text, RUNS_MAX))]
    pub runs: u32,

    /// Real time, or the simulator's virtual time on the emulated device
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = Clock::Real)]
    pub clock: Clock,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,

    /// Number of emulated devices; files lie on them in turn
    #[arg(long, value_name = "N", default_value = "1", requires = "emulate")]
    #[arg(value_parser = |text: &str| parse_count(text, DISKS_MAX.into()).map(|n| n as u16))]
    pub disks: u16,

    /// The method that follows hints in place of the preset's, as name or name(param=value,..), or
    /// none
    #[arg(long, value_name = "METHOD", long_help = methods_help("hinted", METHODS.hinted), requires = "hints")]
    #[arg(value_parser = |text: &str| METHODS.hinted(text).map(Hinted))]
    pub hinted: Option<Hinted>,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub workload: Workload,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub composition: Composition,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub storage: Storage,
}

/// Flags of readers, which a whole workload has of its own.
const OF_READERS: [&str; 7] = [
    "readers",
    "shared",
    "file_bytes",
    "read_bytes",
    "pattern",
    "hints",
    "think",
];

/// The readers of a bench, and their files.
#[derive(Debug, Group)]
#[command(next_help_heading = "Workload")]
pub struct Workload {
    /// Number of readers, each with an open file of its own [default: one a FILE, with --hints one
    /// a disk]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = |text: &str| parse_count(text, READERS_MAX))]
    pub readers: Option<u32>,

    /// All readers read the same file instead of one each
    #[arg(long)]
    pub shared: bool,

    /// Size of each file, where it is not given by a FILE
    #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = parse_size)]
    pub file_bytes: Bytes,

    /// Bytes of each read
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = parse_read_bytes)]
    pub read_bytes: Bytes,

    /// Order in which a reader reads its file, as name or name(param=value,..); `shuffled` is one
    /// process that reads all files [default: sequential, with --hints shuffled]
    #[arg(long, value_name = "NAME", long_help = pattern::help())]
    pub pattern: Option<Pattern>,

    /// Run a whole workload of the simulator, with its files and processes, as name or
    /// name(param=value,..) (see `forerun list workloads`)
    #[arg(long, value_name = "NAME", conflicts_with_all = OF_READERS)]
    pub workload: Option<String>,

    /// Announce all reads, in their order, before the first
    #[arg(long)]
    pub hints: bool,

    /// Percentage of hints that name another place of the same file
    #[arg(long, value_name = "N", default_value = "0", requires = "hints")]
    #[arg(value_parser = |text: &str| parse_whole::<u8>(text, 0..=100))]
    pub wrong_percent: u8,

    /// Percentage of reads without a hint
    #[arg(long, value_name = "N", default_value = "0", requires = "hints")]
    #[arg(value_parser = |text: &str| parse_whole::<u8>(text, 0..=100))]
    pub missing_percent: u8,

    /// Time a reader computes between two reads
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = parse_duration)]
    pub think: Nanos,

    /// Seed of the generated content and the random patterns
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_number::<u64>)]
    pub seed: u64,
}

/// The clock of a bench.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[allow(missing_docs)]
pub enum Clock {
    Real,
    Virtual,
}

/// Most emulated devices: each is a thread, and the most that a hinted method plans for.
const DISKS_MAX: u16 = 1024;

/// Most readers of a bench: each is a thread, and this many still start within a second.
const READERS_MAX: u32 = 16_384;

/// Most runs of a bench: the median of more would be the same.
const RUNS_MAX: u32 = 1_000;
