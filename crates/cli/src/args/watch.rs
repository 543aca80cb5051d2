//! Flags of `forerun watch`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};
use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, depth};
use forerun_watch::Seeing;
use forerun_watch::exclude::Exclude;

use super::methods_help;
use crate::mount::address;
use crate::quantity::parse_size;

/// When the scheduler is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Scheduler {
    /// Never
    Keep,
    /// For a crowd of readers, as long as it serves them better than windows
    Auto,
}

/// `forerun watch`.
#[derive(Debug, Group)]
#[command(
    after_long_help = "It needs root (or CAP_PERFMON, SYS_PTRACE, DAC_OVERRIDE, FOWNER), tracefs and Linux 5.14. It ends with \
    Ctrl-C or SIGTERM and\nprints what it did. `forerun top` shows it, `forerun ctl PATH pause` and `resume` (or SIGUSR1, SIGUSR2) hold it.\n\n\
    Examples:\n  \
    forerun watch /data                                      the file system of /data\n  \
    forerun watch --dry-run /data                            what would be set\n  \
    forerun watch --exclude program=rsync --exclude uid=33 /dev/sdb1"
)]
pub struct Watch {
    /// A mount point, a folder (the files below it), or a block device
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// Decide and count, and set nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Reads to leave alone: path=/FOLDER, uid=NUMBER, program=NAME or cgroup=/GROUP; may be repeated
    #[arg(long, value_name = "RULE")]
    pub exclude: Vec<Exclude>,

    /// Scheduler of disks that turn: as it is, or bfq for readers whose windows do not fit memory
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Scheduler::Keep)]
    pub scheduler: Scheduler,

    /// Return once it works, and go on in the background
    #[arg(long)]
    pub background: bool,

    /// Serve the counters to Prometheus at this port of loopback, as in 9898, or at this address
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = address::parse)]
    pub metrics: Option<SocketAddr>,

    /// Path of the control socket; `forerun top` and `forerun ctl` then need it as an argument
    /// [default: in /run/forerun]
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,

    /// Most memory of the page cache to reckon with, of what the system and control groups leave
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub memory: Bytes,

    /// Depth method, as name or name(param=value,..) [default: turn]
    #[arg(long, value_name = "METHOD", help_heading = "Research", long_help = methods_help("depth", METHODS.depth))]
    #[arg(value_parser = |text: &str| Choice::parse("depth", METHODS.depth, text))]
    pub depth: Option<Choice<Box<dyn depth::Depth>>>,

    /// Events that tell of reads: readahead (Linux 6.18), or block [default: readahead where the kernel has it]
    #[arg(long, value_name = "EVENTS", help_heading = "Research")]
    pub seeing: Option<Seeing>,

    /// Record every decision to this file, for `forerun replay`
    #[arg(long, value_name = "FILE", help_heading = "Research")]
    pub journal: Option<PathBuf>,

    /// End with standard input
    #[arg(long, hide = true)]
    pub until_input_ends: bool,

    /// Tell the starting program, on standard output, when it works
    #[arg(long, hide = true)]
    pub report_ready: bool,

    /// The paths are records of another process: carry them out when standard input ends
    #[arg(long, hide = true)]
    pub guardian: bool,
}
