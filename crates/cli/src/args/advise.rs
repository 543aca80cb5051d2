//! Flags of `forerun advise`.

use std::path::PathBuf;

use clap::Args as Group;
use forerun_core::Bytes;

use super::{ListFormat, Reading, parse_count};
use crate::quantity::parse_size;

/// `forerun advise`.
#[derive(Debug, Group)]
pub struct Advise {
    /// The trace, a regular file; `forerun mount --record` writes one
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,

    /// The device the files are on, as name or name(param=value,..) (see `forerun list devices`)
    #[arg(long, value_name = "NAME", default_value = "hdd")]
    pub device: String,

    /// Model of the device, from a file that describes it
    #[arg(long, value_name = "TOML", conflicts_with = "device")]
    pub device_file: Option<PathBuf>,

    /// Most memory of a mount that may be advised
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    pub memory: Bytes,

    /// Count writes as reads instead of leaving them out
    #[arg(long)]
    pub writes: bool,

    /// Runs at the same time [default: one for each processor]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = |text: &str| parse_count(text, 1024))]
    pub threads: Option<u32>,

    /// Lines for people, or the rows of all runs and the advice for `forerun report`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    pub format: ListFormat,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub reading: Reading,
}
