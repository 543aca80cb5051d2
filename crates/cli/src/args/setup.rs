//! Flags of `forerun try`, `completions` and `man`: commands used once, before or beside the work.

use std::path::PathBuf;

use clap::Args as Group;
use clap_complete::Shell;
use forerun_core::Bytes;

use super::parse_count;
use crate::quantity::parse_size;

/// Most readers of a trial: each is a thread, and more give the same answer.
const READERS_MAX: u32 = 1024;

/// Longest trial: a minute gives the answer already.
const SECONDS_MAX: u32 = 600;

/// `forerun try`.
#[derive(Debug, Group)]
#[command(
    after_long_help = "Nothing is written and nothing stays mounted. The files are read cold: \
    their pages are dropped\nfrom the page cache before each run, which slows other programs that use \
    them for a moment.\n\n\
    Examples:\n  \
    forerun try /data\n  \
    forerun try --readers 64 /data     as many programs as read at once\n  \
    forerun try big.db"
)]
pub struct Try {
    /// Your own files: a directory, or one large file
    #[arg(value_name = "DIR|FILE")]
    pub path: PathBuf,

    /// Number of readers in the second part
    #[arg(long, value_name = "N", default_value = "16")]
    #[arg(value_parser = |text: &str| parse_count(text, READERS_MAX))]
    pub readers: u32,

    /// Time limit of the whole trial
    #[arg(long, value_name = "N", default_value = "50")]
    #[arg(value_parser = |text: &str| parse_count(text, SECONDS_MAX))]
    pub seconds: u32,

    /// Memory of forerun
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    pub memory: Bytes,
}

/// `forerun completions`.
#[derive(Debug, Group)]
#[command(after_long_help = "Examples:\n  \
    source <(forerun completions bash)\n  \
    forerun completions zsh > ~/.zfunc/_forerun\n  \
    forerun completions fish > ~/.config/fish/completions/forerun.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// `forerun man`.
#[derive(Debug, Group)]
#[command(after_long_help = "Examples:\n  \
    forerun man | man -l -\n  \
    forerun man mount | man -l -\n  \
    forerun man --output ~/.local/share/man/man1")]
pub struct Man {
    /// The command whose page it is [default: the overview]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,

    /// Write all pages into this directory
    #[arg(long, short, value_name = "DIR", conflicts_with = "command")]
    pub output: Option<PathBuf>,
}
