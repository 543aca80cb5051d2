//! The binary `forerun-bed`: parses the command line, runs the command, prints how it ended.
//!
//! Everything it does is in the library of this crate; see there.

use std::process::ExitCode;

use clap::Parser;
use forerun_bed::args::Args;

fn main() -> ExitCode {
    match Args::parse().run(&mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            #[expect(clippy::print_stderr, reason = "the one place that prints a failure")]
            {
                eprintln!("forerun-bed: {failure}");
            }
            failure.exit_code()
        }
    }
}
