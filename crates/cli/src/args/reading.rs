//! Flags of every command that reads a trace: its format, further logs of it, and the part that is wanted.
//!
//! Part of `args`. One table: `trace`, `simulate`, `sweep`, `advise` and Python have these flags from here.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};
use forerun_core::Nanos;
use forerun_sim::trace::format::csv::Columns;
use forerun_sim::trace::{Filter, Format, Op, Options, format};

use super::parse_number;
use crate::failure::Failure;
use crate::flags::Values;
use crate::quantity::{duration, parse_duration};

/// Options of the reader of a trace.
#[derive(Clone, Debug, Group)]
#[command(next_help_heading = "Trace")]
pub struct Reading {
    /// Format of the trace (see `forerun list formats`) [default: guessed]
    #[arg(long, value_name = "FORMAT", value_parser = |name: &str| format::parse(name))]
    pub trace_format: Option<&'static Format>,

    /// Size of the window that sorts requests by time, in requests
    #[arg(long, value_name = "N", default_value = "1024", value_parser = parse_number::<u32>)]
    pub sort_window: u32,

    /// Columns of any file in lines, as in time-col=1,obj-id-col=2,obj-size-col=3 (docs/TRACES.md)
    #[arg(long, value_name = "COLUMNS", value_parser = checked_columns)]
    pub columns: Option<String>,

    /// Further logs of the trace, with commas between, merged by time; their devices are others
    #[arg(long, value_name = "FILE,..", value_delimiter = ',')]
    pub merge: Vec<PathBuf>,

    /// Leave out requests that come earlier than this after the first one
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub from: Option<Nanos>,

    /// Leave out requests that come this long after the first one, or later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub until: Option<Nanos>,

    /// Leave out requests to other devices or files, which are numbered as in the trace, or from 0 in the order of first use
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = parse_number::<u32>)]
    pub only_devices: Vec<u32>,

    /// Leave out requests of the other direction
    #[arg(long, value_enum, value_name = "OP")]
    pub only_op: Option<Direction>,

    /// Leave out requests of other processes
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = parse_number::<u32>)]
    pub only_processes: Vec<u32>,
}

/// Directions of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Direction {
    /// Reads, and requests without a direction
    Read,
    /// Writes
    Write,
}

impl Reading {
    /// Of the reader of a log.
    #[must_use]
    pub fn options(&self) -> Options {
        let columns = self.columns.as_deref();
        Options {
            sort_window: self.sort_window as usize,
            columns: columns.and_then(|text| text.parse().ok()),
            ..Options::default()
        }
    }

    /// The part that is wanted.
    ///
    /// # Errors
    /// A time that ends before it begins.
    pub fn filter(&self) -> Result<Filter, Failure> {
        Ok(Filter {
            times: self.times()?,
            devices: self.only_devices.clone(),
            op: self.only_op.map(|op| match op {
                Direction::Read => Op::Read,
                Direction::Write => Op::Write,
            }),
            processes: self.only_processes.clone(),
        })
    }

    fn times(&self) -> Result<Option<Range<Nanos>>, Failure> {
        let begin = self.from.unwrap_or_default();
        match (self.from, self.until) {
            (None, None) => Ok(None),
            (_, Some(until)) if until <= begin => Err(Failure::Usage(format!(
                "--until {}: must be later than --from, {}",
                duration(until),
                duration(begin)
            ))),
            (_, until) => Ok(Some(begin..until.unwrap_or(Nanos(u64::MAX)))),
        }
    }

    /// The flags that are given, by their names.
    #[must_use]
    pub fn values(&self) -> Values {
        let time = |time: Nanos| format!("{}ns", time.0);
        let list = |all: &[u32]| {
            let all: Vec<String> = all.iter().map(u32::to_string).collect();
            all.join(",")
        };
        let merge: Vec<String> = self
            .merge
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let all = [
            (
                "trace-format",
                self.trace_format.map(|it| it.name.to_owned()),
            ),
            ("sort-window", Some(self.sort_window.to_string())),
            ("columns", self.columns.clone()),
            ("merge", Some(merge.join(","))),
            ("from", self.from.map(time)),
            ("until", self.until.map(time)),
            ("only-devices", Some(list(&self.only_devices))),
            (
                "only-op",
                self.only_op.map(|op| match op {
                    Direction::Read => "read".to_owned(),
                    Direction::Write => "write".to_owned(),
                }),
            ),
            ("only-processes", Some(list(&self.only_processes))),
        ];
        let is_given = |(name, value): &(&str, Option<String>)| {
            let default = if *name == "sort-window" { "1024" } else { "" };
            value.as_ref().is_some_and(|value| value != default)
        };
        let given = all.into_iter().filter(is_given);
        given
            .map(|(name, value)| (name.to_owned(), value.unwrap_or_default()))
            .collect()
    }

    /// The part that is wanted, in the words of the flags; none for all.
    #[must_use]
    pub fn part(&self) -> Option<String> {
        let is_part = |name: &str| matches!(name, "from" | "until") || name.starts_with("only-");
        let values = self.values().into_iter();
        let parts = values.filter(|(name, _)| is_part(name));
        let parts: Vec<String> = parts
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// As they were typed: runs of a sweep get them as a flag.
fn checked_columns(text: &str) -> Result<String, String> {
    let columns = text.parse::<Columns>().map_err(|cause| cause.to_string());
    columns.map(|_| text.to_owned())
}

fn parse_time(text: &str) -> Result<Nanos, String> {
    parse_duration(text).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command, TraceCommand};
    use crate::flags::{Parser as Flags, SIMULATE};

    fn reading(flags: &str) -> Reading {
        let words = format!("forerun trace info {flags} t");
        let args = Args::try_parse_from(words.split_whitespace()).unwrap();
        let Command::Trace(trace) = args.command else {
            panic!("a trace");
        };
        match trace.what {
            TraceCommand::Info(info) => info.reading,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_the_flags_again_in_another_command() {
        assert!(reading("").values().is_empty() && reading("").part().is_none());
        let all = "--trace-format csv --columns obj-id-col=1 --sort-window 9 --merge a,b --merge c --from 1s \
                   --until 5400s --only-devices 3,4 --only-op write --only-processes 7";
        let first = reading(all);
        let mut values = first.values();
        assert_eq!(values.len(), 9);
        values.insert("trace".to_owned(), "t".to_owned());
        let command = Flags::new(SIMULATE).parse(&values).unwrap();
        let Command::Simulate(again) = command else {
            panic!("a simulation");
        };
        assert_eq!(format!("{:?}", again.reading), format!("{first:?}"));
        let part = "from 1000000000ns, only-devices 3,4, only-op write, only-processes 7, until 5400000000000ns";
        assert_eq!(first.part().as_deref(), Some(part));
    }

    #[test]
    fn a_time_that_ends_before_it_begins_is_refused() {
        let said = reading("--from 2s --until 1s").filter().unwrap_err();
        assert_eq!(
            said.to_string(),
            "--until 1s: must be later than --from, 2s"
        );
        let until = reading("--until 1s").filter().unwrap();
        assert_eq!(until.times, Some(Nanos(0)..Nanos(1_000_000_000)));
    }
}
