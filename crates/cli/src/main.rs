//! The `forerun` binary: reads the environment once, parses the arguments, runs the command and
//! turns its end into an exit code. Everything else is in the library.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use forerun::args::Args;
use forerun::environment::Environment;
use forerun::failure::Failure;
use forerun::messages::{self, clean};
use forerun::mistakes::{explained, with_help_of_help, with_negative_values};

#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
fn main() -> ExitCode {
    let log = std::env::var_os("FORERUN_LOG");
    let log = log.as_ref().map(|log| log.to_string_lossy());
    // https://no-color.org: set, and not empty.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let environment = Environment {
        forerun_runtime_dir: std::env::var_os("FORERUN_RUNTIME_DIR"),
        xdg_runtime_dir: std::env::var_os("XDG_RUNTIME_DIR"),
        path: std::env::var_os("PATH"),
    };
    forerun::terminal::is_told(std::env::var_os("COLUMNS").as_deref());
    // Its lines go to the system's log, which is no terminal.
    let is_in_background = std::env::args_os().any(|word| word == "--report-ready");
    let is_coloured = io::stderr().is_terminal() && !no_color && !is_in_background;
    let lines = match messages::begin(log.as_deref(), is_coloured) {
        Ok(lines) => lines,
        Err(refused) => {
            let _ = writeln!(io::stderr(), "forerun: {}", clean(&refused));
            return ExitCode::from(2);
        }
    };
    let code = run(std::env::args_os().collect(), &environment);
    lines.end();
    code
}

fn run(typed: Vec<OsString>, environment: &Environment) -> ExitCode {
    let words = typed.clone();
    #[cfg(feature = "mount")]
    let words = forerun::mount::options::expand(words);
    let words = with_help_of_help(with_negative_values(words));
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            let error = explained(error, &typed);
            let printed = error.print();
            let asked_for = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            return match (asked_for, printed) {
                (true, Err(e)) => ended(&Failure::output(&e)),
                (true, Ok(())) => ExitCode::SUCCESS,
                (false, _) => ExitCode::from(2),
            };
        }
    };
    #[cfg(feature = "mount")]
    forerun::mount::ending::survive_limits_of_files();
    match output().and_then(|mut out| forerun::run_in(&args, environment, &mut out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ended(&failure),
    }
}

/// A closed pipe behind the output is no error to tell of.
fn ended(failure: &Failure) -> ExitCode {
    if !matches!(failure, Failure::OutputClosed) {
        let _ = writeln!(io::stderr(), "forerun: {}", clean(&failure.to_string()));
    }
    failure.exit_code()
}

/// Standard output without the line buffer of `std`, which would copy every byte of a file.
fn output() -> Result<File, Failure> {
    let descriptor = io::stdout().as_fd().try_clone_to_owned();
    descriptor.map(File::from).map_err(|e| Failure::output(&e))
}
