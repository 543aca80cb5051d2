//! The argument parser and everything a command checks before it looks at a file.
//!
//! Words are the lines of the input. Must hold: no panic, and accepted arguments make settings or
//! a message.

use clap::Parser;
use forerun::args::{Args, Command};
use forerun::bench::pattern::Shape;
use forerun::bench::plan::Contender;
use forerun::composition::settings;
use forerun_fuzz::fuzz;

fn main() {
    fuzz("arguments", |bytes| parse(&String::from_utf8_lossy(bytes)));
}

fn parse(text: &str) -> String {
    let words = std::iter::once("forerun").chain(text.lines());
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            return format!(
                "{:?} {:?}",
                error.kind(),
                error.context().collect::<Vec<_>>()
            );
        }
    };
    let outcome = match &args.command {
        Command::Read(_) => "read",
        Command::Bench(_) => "bench",
        _ => "another",
    };
    match args.command {
        Command::Read(read) => {
            let _ = settings(read.preset, &read.composition);
        }
        Command::Bench(bench) => {
            for contender in &bench.preset {
                if let Contender::Preset(preset) = contender {
                    let _ = settings(preset, &bench.composition);
                }
            }
            let wanted = bench.workload;
            let shape = Shape {
                file_bytes: wanted.file_bytes.0,
                read_bytes: wanted.read_bytes.0,
                think: wanted.think,
                seed: wanted.seed,
                files: u64::from(wanted.readers.unwrap_or(1)),
            };
            let workload = wanted.pattern.map(|pattern| pattern.workload(&shape));
            if let Some(Ok(workload)) = workload {
                for step in workload.steps(0).take(64) {
                    assert!(step.offset.0.saturating_add(step.take.0) <= shape.file_bytes);
                }
            }
        }
        // The others are checked as they are parsed, or look at a file first.
        _ => {}
    }
    outcome.into()
}
