//! The commands, in the order of the overview: those of every day, then those for research. Each
//! has examples in its long help.

use clap::Subcommand;

#[cfg(feature = "top")]
use super::Top;
use super::{Advise, Explain, List, Replay, Report, Rerun, Simulate, Sweep, Trace, Version};
#[cfg(feature = "files")]
use super::{Bench, Layout, Profile, Read};
#[cfg(feature = "install")]
use super::{Completions, Man};
#[cfg(feature = "mount")]
use super::{Ctl, Doctor, Mount, Try, Tune, Umount, Watch};

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "mount")]
    /// Measure with your own files whether forerun helps here
    Try(Try),
    #[cfg(feature = "mount")]
    /// Find, try and set the best constant read-ahead of a device
    Tune(Tune),
    #[cfg(feature = "mount")]
    /// Mount a directory whose files are read ahead for any program
    Mount(Box<Mount>),
    #[cfg(feature = "mount")]
    /// Take a mount off its path
    Umount(Umount),
    #[cfg(feature = "top")]
    /// Show running mounts and watches in the terminal
    Top(Top),
    #[cfg(feature = "mount")]
    /// Ask a running mount or watch, or change its limits
    Ctl(Ctl),
    #[cfg(feature = "mount")]
    /// Check this machine and its mounts, and say what to do
    Doctor(Doctor),
    #[cfg(feature = "mount")]
    /// Let the kernel read ahead as far as forerun would, without a mount
    Watch(Watch),
    #[cfg(feature = "files")]
    /// Write files to standard output, read ahead
    #[command(after_long_help = "Examples:\n  \
        forerun read big.log | grep error\n  \
        forerun read --stats --memory 64MiB a b c > /dev/null")]
    Read(Read),
    #[cfg(feature = "files")]
    /// Measure the switching cost and transfer rate of a device
    #[command(
        after_long_help = "It reads for 5 to 15 seconds on flash, for half a minute on a disk, for three minutes at most.\n\
        It writes nothing to the device and leaves each setting as it was.\n\n\
        Examples:\n  \
        forerun profile /data/big.db\n  \
        forerun profile /dev/sdb -o disk.toml && forerun mount --profile disk.toml /data /fast"
    )]
    Profile(Profile),
    #[cfg(feature = "files")]
    /// Show the devices, strips and extents of a file
    #[command(
        after_long_help = "On btrfs and on mapped devices it takes root. It reads no data and writes nothing.\n\n\
        Examples:\n  \
        forerun layout /data/big.db\n  \
        forerun layout --json /data/big.db | jq -r .extents[].length_bytes"
    )]
    Layout(Layout),
    #[cfg(feature = "files")]
    /// Compare presets, and the kernel, on a workload
    #[command(after_long_help = "Examples:\n  \
        forerun bench /tmp --readers 10 --preset kernel,linux-2.6.24,forerun\n  \
        forerun bench --emulate switching=8ms,rate=80MB/s --readers 10 --clock virtual")]
    Bench(Bench),
    /// Run presets over a trace or a workload on modelled disks, in virtual time
    #[command(after_long_help = "Examples:\n  \
        forerun simulate --workload synth --preset demand-lru,forestall --device hp97560 --cache-blocks 1280\n  \
        forerun simulate --trace requests.csv --device instant --preset demand-lru --cache-blocks 10000")]
    Simulate(Box<Simulate>),
    /// Run the simulations of a plan as rows of a file; stopped, it goes on
    #[command(after_long_help = "Examples:\n  \
        forerun sweep plan.toml -o rows.jsonl\n  \
        forerun sweep plan.toml -o part3.jsonl --shard 3/16\n  \
        forerun sweep merge part*.jsonl -o rows.jsonl\n  \
        forerun sweep diff before.jsonl rows.jsonl")]
    Sweep(Sweep),
    /// Make rows of a sweep once more, and compare them
    #[command(after_long_help = "Examples:\n  \
        forerun rerun rows.jsonl")]
    Rerun(Rerun),
    /// Show rows of other commands as a page of figures and answers
    #[command(after_long_help = "Examples:\n  \
        forerun report rows.jsonl -o page.html\n  \
        forerun report rows.jsonl -o page.html --against before.jsonl --within 2% --figures figures")]
    Report(Report),
    /// Say which preset and how much memory suit the reads of a trace
    #[command(
        after_long_help = "It runs some fifty simulations on all processors.\n\n\
        Examples:\n  \
        forerun mount --record reads.csv /data /fast        then use it for a while\n  \
        forerun advise reads.csv --device ssd\n  \
        forerun advise reads.csv --format json > advice.jsonl && forerun report advice.jsonl -o advice.html"
    )]
    Advise(Advise),
    /// Look into a trace, or write it in another format
    #[command(after_long_help = "Examples:\n  \
        forerun trace info requests.csv.zst\n  \
        forerun trace convert requests.csv --to plain -o requests.txt")]
    Trace(Trace),
    /// Replay the decisions of a journal and compare them
    #[command(after_long_help = "Examples:\n  \
        forerun read --journal j big.log > /dev/null && forerun replay j")]
    Replay(Replay),
    /// Explain a message: its cause, and what to do
    Explain(Explain),
    /// List presets, methods, devices, backends and trace formats
    #[command(after_long_help = "Examples:\n  \
        forerun list presets\n  \
        forerun list --format json | jq -r .presets[].name")]
    List(List),
    /// Print the version, and the parts of this binary
    #[command(after_long_help = "Examples:\n  \
        forerun version --verbose")]
    Version(Version),
    #[cfg(feature = "install")]
    /// Print a completion script for a shell
    Completions(Completions),
    #[cfg(feature = "install")]
    /// Print a manual page
    Man(Man),
}
