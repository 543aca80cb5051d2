//! Flags of `forerun try`.

use std::path::PathBuf;

use clap::Args as Group;
use forerun_core::Bytes;

use super::{ListFormat, parse_count};
use crate::quantity::parse_size;

/// Most readers of a trial: each is a thread, and more say nothing new.
const READERS_MAX: u32 = 1024;

/// Longest trial: an answer that a minute gives is not worth a longer wait.
const SECONDS_MAX: u32 = 600;

/// `forerun try`.
#[derive(Debug, Group)]
#[command(
    after_long_help = "Nothing is written and nothing stays mounted. The files are read cold: \
    their pages are dropped\nfrom the page cache before each run, which slows other programs that use \
    them for a moment.\nObjects of a store are read by plain ranges, by the fastest of rclone, s3fs-fuse and Python's \
    s3fs that is\ninstalled (of S3 alone), and by forerun; nobody's cache is asked.\n\n\
    Examples:\n  \
    forerun try /data\n  \
    forerun try --readers 64 /data     as many programs as read at once\n  \
    forerun try --tuned /data          as root: would a tuned kernel do?\n  \
    forerun try big.db\n  \
    forerun try s3://bucket/prefix     also gs:// and az://"
)]
pub struct Try {
    /// Your own files: a directory, one large file, or the objects below an address
    #[arg(value_name = "DIR|FILE|ADDRESS")]
    pub path: PathBuf,

    /// How many read at once in the second part
    #[arg(long, value_name = "N", default_value = "16")]
    #[arg(value_parser = |text: &str| parse_count(text, READERS_MAX))]
    pub readers: u32,

    /// How long the runs may take in all; each takes at least 0.6 s, a new mount included
    #[arg(long, value_name = "N", default_value = "50")]
    #[arg(value_parser = |text: &str| parse_count(text, SECONDS_MAX))]
    pub seconds: u32,

    /// Memory of forerun
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    pub memory: Bytes,

    /// Compare with the kernel at its best constant setting as well, which is measured first and put
    /// back at the end, and with the kernel under `forerun watch`; needs root
    #[arg(long)]
    pub tuned: bool,

    /// Sign no request to a store, whatever credentials there are
    #[arg(long)]
    pub anonymous: bool,

    /// The answer in words, or the rates as rows for `forerun report`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}
