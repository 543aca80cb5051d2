//! Flags of `forerun trace`, and how a trace is named anywhere on the command line.
//!
//! Part of `args`. The formats come from the simulator's list, so a new one is accepted and shown
//! with no edit here.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as Group, Subcommand};
use forerun_core::Bytes;
use forerun_sim::trace::sample::{self, Sample};
use forerun_sim::trace::{Format, format};

use super::{ListFormat, Reading, TraceCount};
use crate::quantity::parse_size;

/// `forerun trace`.
#[derive(Debug, Group)]
pub struct Trace {
    /// The command.
    #[command(subcommand)]
    pub what: TraceCommand,
}

/// Commands of `forerun trace`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Count the requests and blocks of a trace
    #[command(after_long_help = "Examples:\n  forerun trace info requests.csv.zst")]
    Info(TraceInfo),
    /// Count the misses of caches of several policies and sizes
    #[command(
        after_long_help = "Examples:\n  forerun trace count requests.csv --policy lru,arc,s3-fifo,opt --cache 1%,5%,10%\n  \
        forerun trace count requests.csv --policy lru --curve 50 --format csv"
    )]
    Count(TraceCount),
    /// Write a trace in another format
    #[command(
        after_long_help = "Examples:\n  forerun trace convert requests.csv --to plain -o requests.txt"
    )]
    Convert(TraceConvert),
    /// Write a small made trace, to try other commands with
    #[command(after_long_help = "Examples:\n  forerun trace sample web -o web.spc")]
    Sample(TraceSample),
}

/// `forerun trace sample`.
#[derive(Debug, Group)]
pub struct TraceSample {
    /// Its name: web (8 KiB reads of three devices, half of them hot), video (24 films, 1.5 MB/s each)
    /// or figure1 (six blocks on two disks, of Kimbrel et al. 1996)
    #[arg(value_name = "web|video|figure1")]
    #[arg(value_parser = PossibleValuesParser::new(sample::LIST.map(|one| one.name))
        .map(|name| sample::LIST.into_iter().find(|one| one.name == name).unwrap_or(sample::LIST[0])))]
    pub sample: Sample,

    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `forerun trace info`.
#[derive(Debug, Group)]
pub struct TraceInfo {
    /// The trace, or - for standard input; gzip, zstd and xz are read as they are
    #[arg(value_name = "TRACE")]
    pub file: PathBuf,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub reading: Reading,

    /// Size of the blocks to count
    #[arg(long, value_name = "SIZE", default_value = "8KiB", value_parser = parse_block_bytes)]
    pub block_bytes: u32,

    /// Most memory for the different blocks and devices of the trace
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub trace_memory: Bytes,

    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}

/// `forerun trace convert`.
#[derive(Debug, Group)]
pub struct TraceConvert {
    /// The trace, or - for standard input; gzip, zstd and xz are read as they are
    #[arg(value_name = "TRACE")]
    pub file: PathBuf,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub reading: Reading,

    /// Format to write (see `forerun list formats`)
    #[arg(long, value_name = "FORMAT", value_parser = |name: &str| format::parse(name))]
    pub to: &'static Format,

    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Size of a block, for conversions between blocks and byte ranges
    #[arg(long, value_name = "SIZE", default_value = "8KiB", value_parser = parse_block_bytes)]
    pub block_bytes: u32,
}

/// A cache of smaller blocks is larger than its contents; of larger ones, no trace has any.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// A size of blocks.
pub(super) fn parse_block_bytes(text: &str) -> Result<u32, String> {
    let Bytes(bytes) = parse_size(text).map_err(|e| e.to_string())?;
    let accepted = (1..=BLOCK_BYTES_MAX).contains(&bytes);
    u32::try_from(bytes)
        .ok()
        .filter(|_| accepted)
        .ok_or_else(|| format!("must lie from 1 to {BLOCK_BYTES_MAX} bytes"))
}
