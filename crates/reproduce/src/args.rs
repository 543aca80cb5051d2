//! The arguments of `forerun-lab`.

use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand};
use forerun::args::{ListFormat, Noticing};
use forerun_lab::Paper;

/// Measures the claims of papers on prefetching again, in the simulator of forerun.
#[derive(Debug, Parser)]
#[command(
    name = "forerun-lab",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the claims of papers again
    #[command(after_long_help = "Examples:\n  \
        forerun-lab reproduce li04 --only C4\n  \
        forerun-lab reproduce kimbrel96 -o report")]
    Reproduce(Reproduce),
}

/// `forerun-lab reproduce`.
#[derive(Debug, Group)]
pub(crate) struct Reproduce {
    /// The papers whose claims are measured: li04, li05, wu10, kimbrel96, baek09
    #[arg(value_name = "PAPER", required = true, value_parser = |name: &str| forerun_lab::find(name))]
    pub(crate) papers: Vec<&'static Paper>,

    /// Only these claims, tables and figures: K1,table-2,figure-6,runs or B3,figure-8; a table or a
    /// figure needs -o
    #[arg(long, value_name = "ID,..", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// Change a condition of all runs that have it, for its effect: expiry=60s; as often as there
    /// are conditions. A name there is not is answered with all
    #[arg(long, value_name = "KNOB=VALUE")]
    pub(crate) with: Vec<String>,

    #[command(flatten)]
    pub(crate) noticing: Noticing,

    /// Output format of the claims; as JSON, one object a line
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    pub(crate) format: ListFormat,

    /// Write report.html, with the paper's tables and figures, into this directory; of several
    /// papers a page each, li04.html and so on
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[cfg(test)]
#[path = "../../documents.rs"]
#[allow(dead_code, reason = "tables are compared beside the results")]
mod documents;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use forerun::differences;

    use super::documents::commands;
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_of_the_documents_is_one() {
        let mut lines: Vec<Vec<String>> = Vec::new();
        for found in commands("forerun-lab") {
            lines.push([vec!["forerun-lab".to_owned()], found.words].concat());
        }
        for one in differences::LIST {
            let words = one.command.split(' ').map(str::to_owned);
            lines.push(words.collect());
        }
        lines.retain(|words| words[0] == "forerun-lab");
        assert!(lines.len() >= 6, "{lines:?}");
        for words in lines {
            if let Err(error) = Args::try_parse_from(&words) {
                panic!("{}\n{error}", words.join(" "));
            }
        }
    }
}
