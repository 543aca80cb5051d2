//! Flags of `forerun reproduce`.

use std::path::PathBuf;

use clap::Args as Group;
use forerun_lab::Paper;

use super::{ListFormat, Noticing};

/// `forerun reproduce`.
#[derive(Debug, Group)]
pub struct Reproduce {
    /// The papers whose claims are measured: li04, li05, wu10, kimbrel96, baek09
    #[arg(value_name = "PAPER", required = true, value_parser = |name: &str| forerun_lab::find(name))]
    pub papers: Vec<&'static Paper>,

    /// Only these claims, tables and figures: K1,table-2,figure-6,runs or B3,figure-8; a table or a
    /// figure needs -o
    #[arg(long, value_name = "ID,..", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Change a condition of all runs that have it, for its effect: expiry=60s; as often as there
    /// are conditions. A name there is not is answered with all
    #[arg(long, value_name = "KNOB=VALUE")]
    pub with: Vec<String>,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub noticing: Noticing,

    /// Output format of the claims; as JSON, one object a line
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    pub format: ListFormat,

    /// Write report.html, with the paper's tables and figures, into this directory; of several
    /// papers a page each, li04.html and so on
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
