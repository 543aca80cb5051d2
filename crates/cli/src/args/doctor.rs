//! Flags of `forerun doctor`.
//!
//! Part of `args`.

use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};

/// Output formats of findings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Findings {
    /// Lines of text
    Plain,
    /// One object
    Json,
}

/// `forerun doctor`.
#[derive(Debug, Group)]
#[command(
    after_long_help = "Each line is a check: ok, warn or fail. Below a line that is not ok stands what to do.\n\
    Nothing is changed. The answer is there within 3 s, also where a mount or its source hangs.\n\
    Exit codes: 0 no check failed, 1 at least one failed, 2 there is no such mount.\n\n\
    Examples:\n  \
    forerun doctor                       this machine, and the mounts that run\n  \
    forerun doctor /fast                 this machine, and one mount\n  \
    forerun doctor --bundle report.txt   for a bug report, without secrets and names of files\n  \
    forerun doctor --format json | jq '.checks[] | select(.verdict != \"ok\")'"
)]
pub struct Doctor {
    /// A mount point [default: every mount there is]
    #[arg(value_name = "MOUNTPOINT")]
    pub mount: Option<PathBuf>,

    /// A journal: can this program replay it?
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "plain")]
    pub format: Findings,

    /// Write the checks and the state of this machine to this new file, for a bug report
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,

    /// Look at this path, which may hang, and report
    #[arg(long, value_name = "PATH", hide = true, exclusive = true)]
    pub probe: Option<PathBuf>,
}
