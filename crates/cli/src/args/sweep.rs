//! Flags of `forerun sweep` and `forerun rerun`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as Group, Subcommand};

use super::parse_count;

/// `forerun sweep`.
#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Sweep {
    /// Work on rows, in place of running a plan.
    #[command(subcommand)]
    pub command: Option<SweepCommand>,

    /// Plan of the runs: a TOML file whose keys are flags of `forerun simulate`, without the dashes;
    /// every list is varied
    #[arg(value_name = "PLAN", required = true)]
    pub plan: Option<PathBuf>,

    /// File for the rows, one JSON object a line; runs whose rows it has are not run again
    #[arg(short, long, value_name = "ROWS", required = true)]
    pub output: Option<PathBuf>,

    /// Part of the runs: 3/16 is the third of sixteen parts
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub shard: Shard,

    /// Runs at the same time [default: one for each processor]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = |text: &str| parse_count(text, 1024))]
    pub threads: Option<u32>,
}

/// Work on files of rows.
#[derive(Debug, Subcommand)]
pub enum SweepCommand {
    /// Put the rows of several files into one, each run once
    Merge(Merge),
    /// Compare the rows of two files, run by run; exit code 1 if any differ
    Diff(Diff),
}

/// `forerun sweep merge`.
#[derive(Debug, Group)]
pub struct Merge {
    /// Files of rows
    #[arg(required = true, value_name = "ROWS")]
    pub rows: Vec<PathBuf>,

    /// File that the rows it has not are added to [default: standard output]
    #[arg(short, long, value_name = "ROWS")]
    pub output: Option<PathBuf>,
}

/// `forerun sweep diff`.
#[derive(Debug, Group)]
pub struct Diff {
    /// Rows of before
    #[arg(value_name = "A")]
    pub before: PathBuf,

    /// Rows of after
    #[arg(value_name = "B")]
    pub after: PathBuf,
}

/// `forerun rerun`.
#[derive(Debug, Group)]
pub struct Rerun {
    /// File with rows of `forerun sweep`
    #[arg(value_name = "ROWS")]
    pub rows: PathBuf,

    /// Keys of the rows to run again [default: all]
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
}

/// A part of the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// From 0 on.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((i, n)) if (1..=n).contains(&i) && n <= 1_000_000 => Ok(Self {
                number: i - 1,
                of: n,
            }),
            _ => Err("must be I/N with I from 1 to N and N up to 1000000, as in 3/16".to_owned()),
        }
    }
}
