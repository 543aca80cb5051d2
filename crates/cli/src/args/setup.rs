//! Flags of `forerun completions` and `man`, which are used once, beside the work.

use std::path::PathBuf;

use clap::Args as Group;
use clap_complete::Shell;

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
