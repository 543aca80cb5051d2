//! Flags of `forerun tune`.

use std::path::PathBuf;

use clap::Args as Group;
use forerun_core::Bytes;

use super::{ListFormat, parse_count};
use crate::quantity::parse_size;

/// Most readers of a trial: each is a thread, and as many windows are simulated.
const READERS_MAX: u32 = 256;

/// The longest measuring: an hour, 28 s for each run of three numbers of readers.
const SECONDS_MAX: u32 = 3600;

/// `forerun tune`.
#[derive(Debug, Group)]
#[command(
    after_long_help = "It reads the device for 5 seconds (flash) to half a minute (a disk) and changes nothing, unless \
    --apply or --measure\nsays so. Changing takes root. What --measure changes is put back at its end, also if it is \
    killed; what --apply\nchanges lasts until the system is started again, --undo, or somebody else sets it.\n\n\
    Examples:\n  \
    forerun tune /data                         the best setting, with its simulated gain\n  \
    forerun tune /data --measure 300           the same by trying all settings, as root\n  \
    forerun tune /data --readers 32 --apply    set it, as root\n  \
    forerun tune /data --undo                  as it was before --apply"
)]
pub struct Tune {
    /// A file or folder on the device, or a block device
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    /// Numbers of readers that the setting must be good for
    #[arg(
        long,
        value_name = "N,N,..",
        default_value = "1,10,64",
        value_delimiter = ','
    )]
    #[arg(value_parser = |text: &str| parse_count(text, READERS_MAX))]
    pub readers: Vec<u32>,

    /// Memory for the kernel's cache of these files [default: what the system and its
    /// cgroup leave]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<Bytes>,

    /// Costs of the device, as `forerun profile` writes them, in place of measuring them
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Try all settings on the device for so long in all; needs root, changes settings and puts them back
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = |text: &str| parse_count(text, SECONDS_MAX))]
    pub measure: Option<u32>,

    /// Set the advised setting; needs root
    #[arg(long)]
    pub apply: bool,

    /// Put back the values from before --apply; needs root
    #[arg(long, conflicts_with_all = ["apply", "measure", "profile", "memory"])]
    pub undo: bool,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}
