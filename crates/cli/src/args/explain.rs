//! Flags of `forerun explain`.
//!
//! Part of `args`.

use clap::Args as Group;

/// `forerun explain`.
#[derive(Debug, Group)]
#[command(after_long_help = "Examples:\n  \
    forerun explain                                    all codes\n  \
    forerun explain daemon-dead\n  \
    forerun explain 'ls: /fast: Transport endpoint is not connected'")]
pub struct Explain {
    /// A code, or a message as it was printed [default: all codes]
    #[arg(value_name = "CODE|MESSAGE")]
    pub message: Option<String>,
}
