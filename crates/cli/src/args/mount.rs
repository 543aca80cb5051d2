//! Flags of `forerun mount`, `umount`, `top` and `ctl`.
//!
//! Part of `args`, apart because it is long. The options behind `-o` in an fstab are turned into
//! these flags before they are parsed; see `mount::options`. Arguments stand in the order in which
//! they are typed, then the flags of every day, then those for research.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Group, Subcommand};
use forerun_core::{Bytes, preset};

use super::Composition;
use super::files::{Storage, in_order};
use crate::mount::address;
use crate::mount::fs::passthrough::Mode;
use crate::mount::options::Flag;
use crate::mount::readahead;
use crate::mount::trust::Trust;
use crate::quantity::{parse_duration, parse_size};

/// `forerun mount`.
#[derive(Clone, Debug, Group)]
#[command(
    mut_args(in_order),
    after_help = "-o takes the options of an fstab: these flags without dashes, as in\n\
    -o memory=1GiB,allow-other, and dev, suid, noexec, noatime, nonempty. A mount is read-only.\n\
    It ends with `forerun umount MOUNTPOINT`, `umount MOUNTPOINT` or SIGTERM.",
    after_long_help = "-o takes the options of an fstab: these flags without dashes, as in\n\
    -o memory=1GiB,allow-other, and dev, suid, noexec, noatime, nonempty. A mount is read-only.\n\
    It ends with `forerun umount MOUNTPOINT`, `umount MOUNTPOINT` or SIGTERM.\n\n\
    Examples:\n  \
      forerun mount /data /fast                         then read below /fast\n  \
      forerun mount --allow-other --memory 1GiB --metrics 9898 /data /fast\n  \
      forerun mount s3://bucket/data /fast              objects as files\n\n\
    In /etc/fstab:\n  \
      /data  /fast  forerun  memory=1GiB,allow_other,_netdev  0 0"
)]
pub struct Mount {
    /// The directory to read, or the objects below s3://BUCKET/PREFIX (also gs:// and az://)
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,

    /// An empty directory where programs find it
    #[arg(value_name = "MOUNTPOINT")]
    pub mountpoint: PathBuf,

    /// Let other users in, each with their own rights
    #[arg(long, visible_alias = "allow_other")]
    pub allow_other: bool,

    /// Stay in the foreground instead of returning once the mount works
    #[arg(long, short)]
    pub foreground: bool,

    /// Mount over a directory that is not empty
    #[arg(long)]
    pub nonempty: bool,

    /// Mount options, as in an fstab
    #[arg(short = 'o', value_name = "OPTIONS", value_delimiter = ',')]
    pub options: Vec<String>,

    /// Serve the counters to Prometheus at this port of loopback, as in 9898, or at this address
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = address::parse)]
    pub metrics: Option<SocketAddr>,

    /// Path of the control socket; `forerun top` and `forerun ctl` then need it as an argument
    /// [default: in /run/forerun for root, else in $XDG_RUNTIME_DIR/forerun or /tmp/forerun-UID]
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,

    /// SOURCE does not change while it is mounted: the kernel caches names, attributes and bytes,
    /// and opens files by itself. A change is seen late or never
    #[arg(long)]
    pub unchanging: bool,

    /// Files the kernel reads from SOURCE by itself: always, never, or auto: files in SOURCE's page
    /// cache, or on disks that need no prefetching. Needs root and Linux 6.9
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub passthrough: Mode,

    /// Time that the kernel caches attributes [default: 1s, or a day if --unchanging]
    #[arg(long, value_name = "TIME", value_parser = believed)]
    pub attribute_timeout: Option<Duration>,

    /// Time that the kernel caches names [default: 1s, or a day]
    #[arg(long, value_name = "TIME", value_parser = believed)]
    pub entry_timeout: Option<Duration>,

    /// Time that the kernel caches missing names [default: 0s, or a day]
    #[arg(long, value_name = "TIME", value_parser = believed)]
    pub negative_timeout: Option<Duration>,

    /// Record each read that reaches the mount as a trace, for `forerun advise`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Most bytes of the record; later reads are counted and told [default: 256MiB]
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    #[arg(requires = "record", value_parser = record_max, hide_default_value = true)]
    pub record_max: Bytes,

    /// Readahead of the kernel on the mount; needs root [default: 256KiB; of a store in less than 128MiB of
    /// memory 128KiB]
    #[arg(long, value_name = "SIZE", value_parser = kernel_readahead)]
    pub kernel_readahead: Option<Bytes>,

    /// Named composition of methods (see `forerun list presets`)
    #[arg(long, value_name = "NAME", default_value = "mount")]
    #[arg(value_parser = |name: &str| forerun_baselines::preset(name))]
    pub preset: &'static preset::Preset,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub composition: Composition,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub storage: Storage,

    /// A flag of the kernel's, from -o
    #[arg(long, hide = true)]
    pub flag: Vec<Flag>,

    /// Check the arguments and mount nothing, from -f of mount(8)
    #[arg(long, hide = true)]
    pub check_arguments: bool,

    /// Tell the starting program, on standard output, when the mount works
    #[arg(long, hide = true)]
    pub report_ready: bool,

    /// End when standard input ends, as for another process that uses the mount
    #[arg(long, hide = true, requires = "foreground")]
    pub until_input_ends: bool,
}

impl Mount {
    /// Times that the kernel caches answers.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust::of(
            self.unchanging,
            self.attribute_timeout,
            self.entry_timeout,
            self.negative_timeout,
        )
    }
}

/// A time that the kernel caches answers.
fn believed(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    if matches!(text, "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    let time = Duration::from_nanos(time.0);
    if time > YEAR {
        return Err(format!("must lie from 0s to {}s", YEAR.as_secs()));
    }
    Ok(time)
}

fn kernel_readahead(text: &str) -> Result<Bytes, String> {
    readahead::check(parse_size(text).map_err(|error| error.to_string())?)
}

/// A record has at least some lines.
fn record_max(text: &str) -> Result<Bytes, String> {
    let size = parse_size(text).map_err(|error| error.to_string())?;
    match size.0 >= 64 << 10 {
        true => Ok(size),
        false => Err("must be at least 64KiB".to_owned()),
    }
}

/// `forerun umount`.
#[derive(Debug, Group)]
#[command(after_long_help = "Examples:\n  \
    forerun umount /fast\n  \
    forerun umount --lazy /fast     although programs have files open there")]
pub struct Umount {
    /// The mount point
    #[arg(value_name = "MOUNTPOINT")]
    pub mountpoint: PathBuf,

    /// Take it off its path at once; open files stay open
    #[arg(long, short = 'z')]
    pub lazy: bool,
}

/// `forerun top`.
#[derive(Debug, Group)]
#[command(
    after_long_help = "Keys: q leaves, Tab shows the next mount or watch.\n\
    They are found by their control sockets: see --control of `forerun mount`. FORERUN_RUNTIME_DIR in the\n\
    environment of both is another directory for them, of this user alone (mode 0700).\n\n\
    Examples:\n  \
    forerun top                  the mounts and watches that run\n  \
    forerun top --list           one line for each\n  \
    forerun top --once /fast     print the rates of a second, and end"
)]
pub struct Top {
    /// A mount point, a path that is watched, or the socket of a --control [default: all that run]
    #[arg(value_name = "PATH|SOCKET")]
    pub mount: Option<PathBuf>,

    /// Print one screen as text and end; its rates are those of the second that it takes
    #[arg(long)]
    pub once: bool,

    /// Print one line for each mount and watch, and end
    #[arg(long, conflicts_with = "once")]
    pub list: bool,
}

/// `forerun ctl`.
#[derive(Debug, Group)]
#[command(after_long_help = "Examples:\n  \
    forerun ctl /fast stats\n  \
    forerun ctl /fast set --memory 128MiB\n  \
    forerun ctl /fast hint epoch.txt     read the files of this list ahead\n  \
    forerun ctl /data pause              let a watch set nothing")]
pub struct Ctl {
    /// A mount point, a path that is watched, or the socket of a --control
    #[arg(value_name = "PATH|SOCKET")]
    pub mount: PathBuf,

    /// The request
    #[command(subcommand)]
    pub order: Order,
}

/// Requests to a running mount or watch.
#[derive(Clone, Debug, Subcommand)]
pub enum Order {
    /// Print the counters and the open files, as JSON
    #[command(
        after_long_help = "Counters whose names have no unit are of blocks of block_bytes, files_ahead_unread too; those of\n\
        requests, windows, waits, refusals, hints and files (files_ahead, _used, _wasted, _open) count these.\n\n\
        Examples:\n  \
        forerun ctl /fast stats | jq .counters\n  \
        forerun ctl /fast stats | jq -r .open_files[].path"
    )]
    Stats,
    /// Print the mount's options and the limits in force, as JSON
    #[command(after_long_help = "Examples:\n  \
        forerun ctl /fast limits | jq .memory_limit_bytes")]
    Limits,
    /// Let a watch set nothing until it is told to go on
    Pause,
    /// Let a watch that was paused go on
    Resume,
    /// Announce future reads of programs, to have them read ahead in that order
    #[command(
        after_long_help = "A line of the list is PATH, for a whole file, or PATH OFFSET LENGTH, for a part. PATH \
        begins at\nthe mount point; if it has blanks, tabs stand between the three. The order is that of \
        the reads.\nPrograms may read anything else, in any order: an announcement costs memory, and no \
        read waits for it.\n\n\
        Examples:\n  \
        forerun ctl /fast hint epoch.txt\n  \
        printf 'train/%s\\n' shard-7 shard-2 shard-5 | forerun ctl /fast hint -\n  \
        printf 'big.db %d 65536\\n' 1048576 0 4194304 | forerun ctl /fast hint -"
    )]
    Hint {
        /// The list; - is standard input
        #[arg(value_name = "FILE")]
        list: PathBuf,
    },
    /// Change a limit while the mount runs
    #[command(group(clap::ArgGroup::new("limit").required(true)))]
    #[command(after_long_help = "Examples:\n  \
        forerun ctl /fast set --memory 128MiB\n  \
        forerun ctl /fast set --kernel-readahead 512KiB")]
    Set {
        /// Readahead of the kernel on the mount
        #[arg(long, value_name = "SIZE", value_parser = kernel_readahead, group = "limit")]
        kernel_readahead: Option<Bytes>,

        /// Memory the daemon uses from now on, at most the mount's --memory
        #[arg(long, value_name = "SIZE", value_parser = parse_size, group = "limit")]
        memory: Option<Bytes>,
    },
}
