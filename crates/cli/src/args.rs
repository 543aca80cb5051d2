//! Every command, flag and default of the command line, in one place.
//!
//! `main` parses into [`Args`]; each command gets its own struct from here and no other input.
//! Values are checked as they are parsed: sizes, durations and rates by `quantity`, presets and
//! methods against the lists in `forerun-core`, so a new method shows up in the help and among
//! the accepted values with no edit here. Checks that involve several flags (memory against block
//! size, `kernel` against `--emulate`) are done where the command starts.

mod advise;
#[cfg(feature = "files")]
mod bench;
mod command;
mod count;
#[cfg(feature = "mount")]
mod doctor;
mod explain;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "files")]
mod layout;
#[cfg(feature = "mount")]
mod mount;
mod reading;
mod report;
#[cfg(feature = "install")]
mod setup;
mod simulate;
mod sweep;
mod trace;
#[cfg(feature = "mount")]
mod trial;
#[cfg(feature = "mount")]
mod tune;
#[cfg(feature = "mount")]
mod watch;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use self::simulate::split_names;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as Group, Parser, ValueEnum};
use forerun_baselines::METHODS;
use forerun_core::spec::{Choice, Method};
use forerun_core::{Bytes, depth, detect, dispatch, measure, next_file, reclaim, shape};
use forerun_sim::hinted::host::Notice;

pub use self::advise::Advise;
#[cfg(feature = "files")]
pub use self::bench::{Bench, Clock, Workload};
pub use self::command::Command;
pub use self::count::{Capacity, Policies, TraceCount};
#[cfg(feature = "mount")]
pub use self::doctor::{Doctor, Findings};
pub use self::explain::Explain;
#[cfg(feature = "files")]
pub use self::files::{Profile, Read, Storage};
#[cfg(feature = "files")]
pub use self::layout::Layout;
#[cfg(feature = "mount")]
pub use self::mount::{Ctl, Mount, Order, Top, Umount};
pub use self::reading::{Direction, Reading};
pub use self::report::Report;
#[cfg(feature = "install")]
pub use self::setup::{Completions, Man};
pub use self::simulate::{Presets, Simulate, Simulated, When};
pub use self::sweep::{Diff, Merge, Rerun, Shard, Sweep, SweepCommand};
pub use self::trace::{Trace, TraceCommand, TraceConvert, TraceInfo, TraceSample};
#[cfg(feature = "mount")]
pub use self::trial::Try;
#[cfg(feature = "mount")]
pub use self::tune::Tune;
#[cfg(feature = "mount")]
pub use self::watch::{Scheduler, Watch};
use crate::papers::in_words;
use crate::quantity::{parse_duration, parse_size};

/// Makes slow storage read fast: mounts a directory whose files are read ahead.
#[derive(Debug, Parser)]
#[command(
    name = "forerun",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = "Sizes: 64KiB, 1MiB, 100MB (KiB = 1024, kB = 1000; 1G = 1GiB). Durations: 8ms. Rates: 80MB/s.\n\
    Exit codes: 0 done, 1 tried and failed, 2 cannot be tried.\n\
    FORERUN_LOG=debug in the environment logs details on stderr.\n\n\
    To begin with:\n  \
    forerun try /data              does it help with these files?\n  \
    forerun mount /data /fast      then read below /fast\n  \
    forerun top                    watch it work\n  \
    forerun umount /fast"
)]
pub struct Args {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Methods, and their memory.
#[derive(Clone, Debug, Group)]
#[command(next_help_heading = "Engine")]
pub struct Composition {
    /// Memory for everything: blocks, buffers in flight and bookkeeping
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    pub memory: Bytes,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub methods: Methods,
}

/// Methods in place of a preset's.
#[derive(Clone, Debug, Default, Group)]
#[command(next_help_heading = "Engine")]
pub struct Methods {
    /// Detect method in place of the preset's, as name or name(param=value,..)
    #[arg(long, value_name = "METHOD", long_help = methods_help("detect", METHODS.detect))]
    #[arg(value_parser = |text: &str| Choice::parse("detect", METHODS.detect, text))]
    pub detect: Option<Choice<Box<dyn detect::Detect>>>,

    /// Depth method in place of the preset's, as name or name(param=value,..)
    #[arg(long, value_name = "METHOD", long_help = methods_help("depth", METHODS.depth))]
    #[arg(value_parser = |text: &str| Choice::parse("depth", METHODS.depth, text))]
    pub depth: Option<Choice<Box<dyn depth::Depth>>>,

    /// Shape method in place of the preset's, as name or name(param=value,..)
    #[arg(long, value_name = "METHOD", long_help = methods_help("shape", METHODS.shape))]
    #[arg(value_parser = |text: &str| Choice::parse("shape", METHODS.shape, text))]
    pub shape: Option<Choice<Box<dyn shape::Shape>>>,

    /// Dispatch method in place of the preset's, as name or name(param=value,..)
    #[arg(long, value_name = "METHOD", long_help = methods_help("dispatch", METHODS.dispatch))]
    #[arg(value_parser = |text: &str| Choice::parse("dispatch", METHODS.dispatch, text))]
    pub dispatch: Option<Choice<Box<dyn dispatch::Dispatch>>>,

    /// Longest wait for a turn among many readers, 1ms to 1h; longer switches less [default: 3s]
    #[arg(long, value_name = "TIME", value_parser = parse_longest_wait)]
    pub longest_wait: Option<u64>,

    /// Reclaim method in place of the preset's, as name or name(param=value,..)
    #[arg(long, value_name = "METHOD", long_help = methods_help("reclaim", METHODS.reclaim))]
    #[arg(value_parser = |text: &str| Choice::parse("reclaim", METHODS.reclaim, text))]
    pub reclaim: Option<Choice<Box<dyn reclaim::Reclaim>>>,

    /// Next-file method in place of the preset's, as name or name(param=value,..), or none
    #[arg(long, value_name = "METHOD", long_help = methods_help("next-file", METHODS.next_file))]
    #[arg(value_parser = |text: &str| METHODS.next_file(text).map(NextFile))]
    pub next_file: Option<NextFile>,

    /// Measure method in place of the preset's, as name or name(param=value,..)
    #[arg(long, value_name = "METHOD", long_help = methods_help("measure", METHODS.measure))]
    #[arg(value_parser = |text: &str| Choice::parse("measure", METHODS.measure, text))]
    pub measure: Option<Choice<Box<dyn measure::Measure>>>,
}

impl Methods {
    /// The flags and their values, as they are given.
    #[must_use]
    pub fn values(&self) -> [(&'static str, Option<String>); 8] {
        let next_file = |NextFile(method): &NextFile| {
            let method = method.as_ref();
            method.map_or("none".to_owned(), ToString::to_string)
        };
        [
            ("detect", self.detect.as_ref().map(ToString::to_string)),
            ("depth", self.depth.as_ref().map(ToString::to_string)),
            ("shape", self.shape.as_ref().map(ToString::to_string)),
            ("dispatch", self.dispatch.as_ref().map(ToString::to_string)),
            (
                "longest-wait",
                self.longest_wait.map(|ms| format!("{ms}ms")),
            ),
            ("reclaim", self.reclaim.as_ref().map(ToString::to_string)),
            ("next-file", self.next_file.as_ref().map(next_file)),
            ("measure", self.measure.as_ref().map(ToString::to_string)),
        ]
    }
}

/// Milliseconds, in the range of the dispatch method's parameter.
fn parse_longest_wait(text: &str) -> Result<u64, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match time.0 / 1_000_000 {
        ms @ 1..=3_600_000 => Ok(ms),
        _ => Err("must lie from 1ms to 3600s".into()),
    }
}

/// The notice of a hinted method.
#[derive(Clone, Copy, Debug, Group)]
pub struct Noticing {
    /// When a hinted method notices that a fetch has ended: at once, or at reads (when one begins
    /// or waits, as the simulator of Kimbrel et al. 1996) [default: at-once]
    #[arg(long, value_name = "WHEN")]
    #[arg(value_parser = PossibleValuesParser::new(Notice::LIST.map(|(name, _)| name))
        .try_map(|name| name.parse::<Notice>()))]
    pub notice: Option<Notice>,
}

/// A next-file method, or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextFile(pub Option<Choice<Box<dyn next_file::NextFile>>>);

/// A hinted method, or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hinted(pub Option<Choice<Box<dyn forerun_core::hinted::policy::Policy>>>);

/// Output formats of rows: of a bench, of simulations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For spreadsheets
    Csv,
    /// One object a row, one a line
    Json,
}

/// `forerun replay`.
#[derive(Debug, Group)]
pub struct Replay {
    /// A journal written by `mount --journal`, `read --journal` or `bench --journal`
    #[arg(value_name = "JOURNAL")]
    pub journal: PathBuf,
}

/// `forerun list`.
#[derive(Debug, Group)]
pub struct List {
    /// A part (presets, methods, devices, backends, hinted, schedulers, workloads, policies, formats), or the name of an
    /// entry, with its differences from its paper [default: everything]
    #[arg(value_name = "WHAT", value_parser = crate::commands::list::selected)]
    pub what: Option<Selected>,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    pub format: ListFormat,
}

/// `forerun version`.
#[derive(Debug, Group)]
pub struct Version {
    /// Also what this binary was built with, and without
    #[arg(long, short)]
    pub verbose: bool,
}

/// The entries of the list that are shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selected {
    /// Those of a part.
    Part(Listed),
    /// Those of this name.
    Name(String),
}

/// Parts of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[allow(missing_docs)]
pub enum Listed {
    Presets,
    Methods,
    Devices,
    #[cfg(feature = "files")]
    Backends,
    Hinted,
    Schedulers,
    Workloads,
    Policies,
    Formats,
}

/// Output formats of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ListFormat {
    /// For people
    Table,
    /// For programs: an object, of rows one a line
    Json,
}

fn parse_count(text: &str, max: u32) -> Result<u32, String> {
    parse_whole(text, 1..=max.into())
}

/// Any number of an unsigned type.
fn parse_number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    parse_whole(
        text,
        0..=u64::MAX >> (u64::BITS as usize - 8 * size_of::<N>()),
    )
}

/// A number, or what is accepted.
fn parse_whole<N: TryFrom<u64>>(text: &str, accepted: RangeInclusive<u64>) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| accepted.contains(number));
    let number = number.and_then(|number| N::try_from(number).ok());
    let (least, most) = accepted.into_inner();
    number.ok_or_else(|| format!("must be a whole number from {least} to {most}"))
}

/// The methods of a family with their parameters, for `--help`.
fn methods_help<B>(family: &str, list: &[Method<B>]) -> String {
    use std::fmt::Write;
    let mut help = format!("The {family} method in place of the preset's:\n");
    for Method { spec, .. } in list {
        let _ = write!(help, "\n- {}: {}", spec.name, in_words(spec.summary));
        for p in spec.params {
            let _ = write!(
                help,
                "\n    {}={} ({} to {}): {}",
                p.name,
                p.default,
                p.min,
                p.max,
                in_words(p.summary)
            );
        }
    }
    help
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    proptest! {
        #[test]
        fn any_arguments_are_parsed_or_refused(
            words in proptest::collection::vec("\\PC{0,12}|--[a-z]{1,10}|read|bench|replay", 0..8)
        ) {
            let _ = Args::try_parse_from(std::iter::once("forerun".to_owned()).chain(words));
        }
    }
}
