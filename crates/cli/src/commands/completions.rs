//! `forerun completions`: a completion script for a shell, from the definition of the arguments.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Args, Completions};
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// Output that cannot be written.
pub fn run(args: &Completions, out: &mut dyn Write) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "forerun", &mut text);
    out.write_all(&text).map_err(|e| Failure::output(&e))
}
