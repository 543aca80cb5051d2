//! The command line: words of the user, and the module of each.
//!
//! Called by `main`. Every default is here, with its reason in the help.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use forerun_core::{Bytes, Nanos};
use forerun_surface::quantity::{parse_duration, parse_size};
use serde::Serialize;

use crate::compare::{Compared, side::How};
use crate::failure::{At, Failure};
use crate::objects::command::StoreArgs;
use crate::plan::{BedPaths, Plan};
use crate::read::{self, READERS_MAX, Reading};
use crate::servers::command::ServersCommand;
use crate::soak::command::{SoakArgs, SoakReaderArgs};
use crate::{
    bed, changes, cold, down, fill, local, memory_group, passthrough, serve, small, state, status,
    table, up,
};

/// Emulated disks under the kernel's own page cache, readahead and scheduler.
#[derive(Parser, Debug)]
#[command(name = "forerun-bed", version)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a bed: disks, file system, files
    Up {
        /// The bed
        bed: PathBuf,
        #[command(flatten)]
        state: StateFolder,
        /// Print the steps, and make nothing
        #[arg(long)]
        dry_run: bool,
        /// Copy the files of this folder onto it, too
        #[arg(long, value_name = "DIR", conflicts_with = "dry_run")]
        copy: Option<PathBuf>,
    },
    /// Make a bed cold: nothing of its files is in memory then
    Cold(StateFolder),
    /// Undo everything a bed made
    Down(StateFolder),
    /// Show the existing parts of a bed, and the counters of its disks
    Status(StateFolder),
    /// Read files of a folder, one for each reader, and report rates as JSON
    Read(ReadArgs),
    /// Compare readahead settings, and forerun, on a bed: makes it, measures, undoes it
    Table(TableArgs),
    /// Compare how long programs take over many small files: makes a bed, measures, undoes it
    Small(SmallArgs),
    /// Compare a real server on a bed: makes it, measures, undoes it
    Servers {
        #[command(subcommand)]
        server: ServersCommand,
    },
    /// Compare how fast one large file of this machine's disk is read: cold and warm, on it and
    /// mounted
    Local(LocalArgs),
    /// Change files of a folder while its mount is read, and check every read
    Changes(ChangesArgs),
    /// Let readers come, go, stall and die on a mount, and check that its memory is flat
    Soak(SoakArgs),
    /// Serve objects on loopback as a store behind a network would, until it is stopped
    Store(StoreArgs),
    /// One reader of a soak; `soak` starts it
    #[command(hide = true)]
    SoakReader(SoakReaderArgs),
    /// Show a folder at another place by plain FUSE, as a measure of its cost
    Passthrough {
        /// The folder
        source: PathBuf,
        /// The place
        mountpoint: PathBuf,
    },
    /// The daemon; `up` starts it
    #[command(hide = true)]
    Serve(StateFolder),
}

#[derive(Group, Debug)]
struct StateFolder {
    /// The state directory
    #[arg(long, value_name = "DIR", default_value = state::DEFAULT)]
    state: PathBuf,
}

#[derive(Group, Debug)]
struct ReadArgs {
    /// The folder
    folder: PathBuf,
    /// Number of readers
    #[arg(long, default_value = "1", value_parser = readers)]
    readers: usize,
    /// Size of one read
    #[arg(long, value_name = "SIZE", default_value = "128KiB", value_parser = read_bytes)]
    read_bytes: usize,
    /// Bytes of each reader [default: its whole file]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    bytes_per_reader: Option<u64>,
    /// Stop all readers after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Check content against the seed of the bed's files
    #[arg(long)]
    seed: Option<u64>,
    /// Join this memory group first
    #[arg(long, hide = true, value_name = "DIR")]
    memory_group: Option<PathBuf>,
}

#[derive(Group, Debug)]
struct TableArgs {
    /// The bed
    bed: PathBuf,
    #[command(flatten)]
    state: StateFolder,
    /// Numbers of readers
    #[arg(long, value_delimiter = ',', default_value = "1,10,64", value_parser = readers)]
    readers: Vec<usize>,
    /// Readahead of the kernel, in KiB
    #[arg(long, value_name = "KIB", value_delimiter = ',', default_value = "128,1024",
        value_parser = kib)]
    read_ahead: Vec<u64>,
    /// I/O schedulers of the kernel
    #[arg(long, value_delimiter = ',', default_value = "none")]
    schedulers: Vec<String>,
    /// Compare with this forerun binary
    #[arg(long, value_name = "PATH")]
    forerun: Option<PathBuf>,
    /// Presets of forerun
    #[arg(
        long,
        value_name = "PRESET",
        value_delimiter = ',',
        default_value = "mount",
        requires = "forerun"
    )]
    presets: Vec<String>,
    /// Compare with forerun without the profile of the disks, too
    #[arg(long, requires = "forerun")]
    without_profile: bool,
    /// Compare with the kernel beside `forerun watch`: seeing by these events, or with the scheduler left to it
    #[arg(
        long,
        value_name = "HOW",
        value_delimiter = ',',
        value_enum,
        requires = "forerun"
    )]
    watch: Vec<How>,
    /// Memory of either candidate
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes)]
    memory: u64,
    /// Size of one read
    #[arg(long, value_name = "SIZE", default_value = "128KiB", value_parser = read_bytes)]
    read_bytes: usize,
    /// Time of one run: long enough that the first windows do not count
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    time: Duration,
    /// Runs of each; the median is shown
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// How to print it
    #[arg(long, default_value = "table")]
    format: Format,
}

#[derive(Group, Debug)]
struct SmallArgs {
    /// The bed
    bed: PathBuf,
    /// Where everything that is made is written down; of a bed with a local disk, also where the
    /// image is: on the disk to be measured
    #[arg(long, value_name = "DIR", default_value = state::DEFAULT)]
    state: PathBuf,
    /// Numbers of files [default: the bed's]
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    files: Vec<u64>,
    /// Compare with this forerun binary
    #[arg(long, value_name = "PATH")]
    forerun: Option<PathBuf>,
    /// Compare the file system with and without `forerun watch` in place of mounts
    #[arg(long, requires = "forerun")]
    watch: bool,
    /// Memory of forerun
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes)]
    memory: u64,
    /// Runs of each; the median is shown
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// How to print it
    #[arg(long, default_value = "table")]
    format: Format,
}

#[derive(Group, Debug)]
struct LocalArgs {
    /// A folder on the disk to be measured
    folder: PathBuf,
    /// The forerun binary
    #[arg(long, value_name = "PATH")]
    forerun: PathBuf,
    /// Size of the file
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes)]
    bytes: u64,
    /// Memory of forerun
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes)]
    memory: u64,
    /// The disk as `forerun profile` measured it
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Runs of each; the median is shown
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// How to print it
    #[arg(long, default_value = "table")]
    format: Format,
}

#[derive(Group, Debug)]
struct ChangesArgs {
    /// The folder where files are changed
    source: PathBuf,
    /// Folder of the readers; SOURCE itself passes
    mountpoint: PathBuf,
    /// For how long
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = duration)]
    time: Duration,
    /// Number of readers, half of them another user
    #[arg(long, default_value = "16", value_parser = readers)]
    readers: usize,
    /// Seed of the changes and of the files read
    #[arg(long, default_value = "1")]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

pub(crate) fn readers(text: &str) -> Result<usize, String> {
    let wanted = || format!("`{text}`: give a number from 1 to {READERS_MAX}");
    let number = text.parse().map_err(|_| wanted())?;
    if (1..=READERS_MAX).contains(&number) {
        Ok(number)
    } else {
        Err(wanted())
    }
}

/// A size in bytes, but 0.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let Bytes(bytes) = parse_size(text).map_err(|e| e.to_string())?;
    Some(bytes)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("`{text}`: give more than 0"))
}

/// A span of time, but 0.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let Nanos(time) = parse_duration(text).map_err(|e| e.to_string())?;
    Some(Duration::from_nanos(time))
        .filter(|time| !time.is_zero())
        .ok_or_else(|| format!("`{text}`: give more than 0"))
}

/// A whole number of KiB, the unit of the kernel's queue settings. Zero is fine: it turns readahead off.
pub(crate) fn kib(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("KiB").unwrap_or(text);
    number
        .parse()
        .map_err(|_| format!("`{text}`: give a number of KiB, as 128"))
}

fn read_bytes(text: &str) -> Result<usize, String> {
    let max = 64 << 20;
    let bytes = bytes(text)?;
    let fitting = usize::try_from(bytes).ok().filter(|bytes| *bytes <= max);
    fitting.ok_or_else(|| format!("`{text}`: one read is at most 64MiB"))
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// The command's.
    pub fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Up {
                bed,
                state,
                dry_run,
                copy,
            } => {
                let bed = bed::load(&bed)?;
                if let Some(from) = copy.as_deref().filter(|from| !from.is_dir()) {
                    return Err(Failure::unusable(from, "--copy takes a folder"));
                }
                if dry_run {
                    let plan = Plan::new(&bed, &BedPaths::of(&state.state, &bed.disks)?);
                    return write!(out, "{plan}").at(&state.state);
                }
                let made = up::run(&bed, &state.state, out)?;
                let place = BedPaths::of(made.folder(), &bed.disks)?;
                let from = copy.as_deref();
                if let Some(Err(failure)) = from.map(|f| fill::copy(&bed, &place, f, &place.files))
                {
                    down::undo(made)?;
                    return Err(failure);
                }
                writeln!(out, "up: files in {}", place.files.display()).at(&state.state)
            }
            Command::Cold(state) => {
                let bed = state::bed(&state.state)?;
                let place = BedPaths::of(&state.state, &bed.disks)?;
                cold::again(&bed, &place, &bed.queue)
            }
            Command::Down(state) => down::run(&state.state),
            Command::Status(state) => status::run(&state.state, out),
            Command::Serve(state) => serve::run(&state.state),
            Command::Passthrough { source, mountpoint } => passthrough::run(&source, &mountpoint),
            Command::Read(args) => args.run(out),
            Command::Table(args) => args.run(out),
            Command::Small(args) => args.run(out),
            Command::Servers { server } => server.run(out),
            Command::Local(args) => args.run(out),
            Command::Changes(args) => args.run(out),
            Command::Soak(args) => args.run(out),
            Command::Store(args) => args.run(out),
            Command::SoakReader(args) => args.run(),
        }
    }
}

impl ReadArgs {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(group) = &self.memory_group {
            memory_group::join(group)?;
        }
        let reading = Reading {
            readers: self.readers,
            read_bytes: self.read_bytes,
            bytes_per_reader: self.bytes_per_reader,
            time_max: self.time,
            seed: self.seed,
        };
        let readings = read::run(&self.folder, &reading)?;
        let text = serde_json::to_string(&readings).at(&self.folder)?;
        writeln!(out, "{text}").at(&self.folder)
    }
}

impl TableArgs {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let bed = bed::load(&self.bed)?;
        let comparison = table::Comparison {
            compared: Compared {
                numbers: self.readers,
                forerun: self.forerun,
                memory_bytes: self.memory,
                time: self.time,
                runs: self.runs,
            },
            read_ahead_kib: self.read_ahead,
            schedulers: self.schedulers,
            presets: self.presets,
            without_profile: self.without_profile,
            watch: self.watch,
            read_bytes: self.read_bytes,
        };
        let table = table::run(&bed, &self.state.state, &comparison, &mut std::io::stderr())?;
        self.format.print(&table, &self.bed, out)
    }
}

impl SmallArgs {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let bed = bed::load(&self.bed)?;
        let comparison = small::Comparison {
            files: self.files,
            forerun: self.forerun,
            watches: self.watch,
            memory_bytes: self.memory,
            runs: self.runs,
        };
        let table = small::run(&bed, &self.state, &comparison, &mut std::io::stderr())?;
        self.format.print(&table, &self.bed, out)
    }
}

impl LocalArgs {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let comparison = local::Comparison {
            folder: self.folder,
            forerun: self.forerun,
            bytes: self.bytes,
            memory_bytes: self.memory,
            profile: self.profile,
            runs: self.runs,
        };
        let table = local::run(&comparison, &mut std::io::stderr())?;
        self.format.print(&table, &comparison.folder, out)
    }
}

impl ChangesArgs {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let changing = changes::Changing {
            source: self.source,
            mountpoint: self.mountpoint,
            time: self.time,
            readers: self.readers,
            seed: self.seed,
        };
        let report = changes::run(&changing)?;
        let text = serde_json::to_string_pretty(&report).at(&changing.mountpoint)?;
        writeln!(out, "{text}").at(&changing.mountpoint)?;
        match report.violations() {
            0 => Ok(()),
            count => Err(Failure::Run(format!(
                "{count} violations, seed {}",
                changing.seed
            ))),
        }
    }
}

impl Format {
    pub(crate) fn print(
        self,
        table: &(impl Display + Serialize),
        bed: &Path,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        match self {
            Self::Table => write!(out, "{table}").at(bed),
            Self::Json => {
                let text = serde_json::to_string_pretty(table).at(bed)?;
                writeln!(out, "{text}").at(bed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
        assert!(readers("0").is_err() && readers("64") == Ok(64));
        assert!(read_bytes("1GiB").is_err() && read_bytes("4KiB") == Ok(4096));
    }

    #[test]
    fn a_quantity_is_more_than_0_and_read_ahead_may_be_none() {
        assert_eq!(bytes("128KiB"), Ok(131_072));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        for refused in [bytes("0MB"), bytes("-1MB"), bytes("x")] {
            assert!(refused.is_err(), "{refused:?}");
        }
        assert!(duration("0s").is_err() && duration("10").is_err());
        assert_eq!(
            (kib("0"), kib("128"), kib("1024KiB")),
            (Ok(0), Ok(128), Ok(1024))
        );
        assert!(kib("1MiB").is_err());
    }
}
