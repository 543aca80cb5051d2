//! `forerun-lab`: the claims of papers, measured again. A program for researchers, apart from `forerun`, which neither
//! builds nor installs it.
//!
//! Problem: measuring papers takes plots, claims and models of their servers, which a program that reads files ahead has
//! no use for. The measuring is `forerun_lab`; here are its arguments, its threads and its output. Manner, log and exit codes are those of `forerun`.
//!
//! ```sh
//! forerun-lab reproduce li04 --only C4
//! ```

#![forbid(unsafe_code)]

mod args;
mod reproduce;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use forerun::failure::Failure;
use forerun::messages::{self, clean};

use crate::args::{Args, Command};

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
fn main() -> ExitCode {
    let log = std::env::var_os("FORERUN_LOG");
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_coloured = io::stderr().is_terminal() && !no_color;
    match run(log.as_ref(), is_coloured) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed) {
                let _ = writeln!(io::stderr(), "forerun-lab: {}", clean(&failure.to_string()));
            }
            failure.exit_code()
        }
    }
}

/// Arguments that are no command end the process by themselves, with their message.
fn run(log: Option<&OsString>, is_coloured: bool) -> Result<(), Failure> {
    let log = log.map(|log| log.to_string_lossy());
    let lines = messages::begin(log.as_deref(), is_coloured).map_err(Failure::Usage)?;
    let Command::Reproduce(reproduce) = Args::parse().command;
    let ended = reproduce::run(&reproduce, &mut io::stdout().lock());
    lines.end();
    ended
}
