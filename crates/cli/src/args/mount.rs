//! Flags of `forerun mount`, `forerun top` and `forerun ctl`.
//!
//! Part of `args`, apart because it is long. What stands behind `-o` in an fstab is turned into
//! these flags before they are parsed; see `mount::options`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as Group, Subcommand};
use forerun_core::{Bytes, preset};

use super::{Composition, Storage};
use crate::mount::metrics::address;
use crate::mount::options::Flag;
use crate::quantity::parse_size;

/// `forerun mount`.
#[derive(Debug, Group)]
#[command(
    after_help = "-o takes what an fstab has: these flags without dashes, as in\n\
    -o memory=1GiB,allow-other, and dev, suid, noexec, noatime, nonempty. A mount is read-only.\n\
    It ends with `fusermount3 -u MOUNTPOINT`, `umount MOUNTPOINT` or SIGTERM."
)]
pub struct Mount {
    /// Named composition of methods (see `forerun list presets`)
    #[arg(long, value_name = "NAME", default_value = "mount")]
    #[arg(value_parser = |name: &str| preset::find(name))]
    pub preset: &'static preset::Preset,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub composition: Composition,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub storage: Storage,

    /// Stay in the foreground instead of returning once the mount works
    #[arg(long, short)]
    pub foreground: bool,

    /// Let other users in, each with their own rights
    #[arg(long, visible_alias = "allow_other")]
    pub allow_other: bool,

    /// How far the kernel reads ahead of programs on the mount; needs root
    #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = parse_size)]
    pub kernel_readahead: Bytes,

    /// Serve the counters to Prometheus at this port of loopback, as in 9898, or at this address
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = address::parse)]
    pub metrics: Option<SocketAddr>,

    /// Make a socket here for `forerun top` and `forerun ctl`
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,

    /// Mount over a directory that is not empty
    #[arg(long)]
    pub nonempty: bool,

    /// Mount options, as in an fstab
    #[arg(short = 'o', value_name = "OPTIONS", value_delimiter = ',')]
    pub options: Vec<String>,

    /// A flag of the kernel's, from -o
    #[arg(long, hide = true)]
    pub flag: Vec<Flag>,

    /// Tell whoever started this, on standard output, when the mount works
    #[arg(long, hide = true)]
    pub report_ready: bool,

    /// The directory to read
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,

    /// An empty directory where programs find it
    #[arg(value_name = "MOUNTPOINT")]
    pub mountpoint: PathBuf,
}

/// `forerun top`.
#[derive(Debug, Group)]
pub struct Top {
    /// Print one screen as text and end
    #[arg(long)]
    pub once: bool,

    /// The socket of the mount's --control
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,
}

/// `forerun ctl`.
#[derive(Debug, Group)]
pub struct Ctl {
    /// The socket of the mount's --control
    #[arg(value_name = "SOCKET")]
    pub socket: PathBuf,

    /// What to do
    #[command(subcommand)]
    pub order: Order,
}

/// What a running mount can be told.
#[derive(Clone, Debug, Subcommand)]
pub enum Order {
    /// Print the counters and the open files, as JSON
    Stats,
    /// Print what the mount was started with and which limits hold, as JSON
    Limits,
    /// Change a limit while the mount runs
    #[command(group(clap::ArgGroup::new("limit").required(true)))]
    Set {
        /// How far the kernel reads ahead of programs on the mount
        #[arg(long, value_name = "SIZE", value_parser = parse_size, group = "limit")]
        kernel_readahead: Option<Bytes>,

        /// Memory the engine uses, up to what the mount was started with
        #[arg(long, value_name = "SIZE", value_parser = parse_size, group = "limit")]
        memory: Option<Bytes>,
    },
}
