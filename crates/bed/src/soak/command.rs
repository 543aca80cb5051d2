//! The command line of `soak`, and of the readers it starts.
//!
//! Part of [`args`](crate::args). Every default is here, with its reason in the help.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::args::{bytes, duration, readers};
use crate::failure::{At, Failure};
use crate::soak::{self, Soaking, life, plot};

/// `soak`.
#[derive(Args, Debug)]
pub(crate) struct SoakArgs {
    /// A folder with room for the files, which are removed at the end
    folder: PathBuf,
    /// The forerun binary
    #[arg(long, value_name = "PATH")]
    forerun: PathBuf,
    /// Number of readers at a time, each a process
    #[arg(long, default_value = "1000", value_parser = readers)]
    readers: usize,
    /// Duration
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = duration)]
    time: Duration,
    /// Memory of the mount
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = bytes)]
    memory: u64,
    /// The disk that the mount emulates
    #[arg(long, value_name = "COST", default_value = "switching=8ms,rate=80MB/s")]
    emulate: String,
    /// Number of files; several readers read one
    #[arg(long, default_value = "64", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    files: u64,
    /// Size of each
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = bytes)]
    file_bytes: u64,
    /// Seed of content and lives
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Write a plot of memory and readers, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// A reader.
#[derive(Args, Debug)]
pub(crate) struct SoakReaderArgs {
    folder: PathBuf,
    #[arg(long)]
    files: u64,
    #[arg(long)]
    file_bytes: u64,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    number: u64,
}

impl SoakArgs {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let soaking = Soaking {
            folder: self.folder,
            forerun: self.forerun,
            readers: self.readers,
            time: self.time,
            memory_bytes: self.memory,
            emulate: self.emulate,
            files: self.files,
            file_bytes: self.file_bytes,
            seed: self.seed,
        };
        let report = soak::run(&soaking, &mut std::io::stderr())?;
        if let Some(path) = &self.plot {
            fs::write(path, plot::svg(&report)).at(path)?;
        }
        let text = serde_json::to_string_pretty(&report).at(&soaking.folder)?;
        writeln!(out, "{text}").at(&soaking.folder)?;
        match report.violations.len() {
            0 => Ok(()),
            _ => Err(Failure::Run(report.violations.join("; "))),
        }
    }
}

impl SoakReaderArgs {
    pub(crate) fn run(self) -> Result<(), Failure> {
        // A soak that is killed takes its readers with it.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let files = crate::bed::Files::flat(self.files, self.file_bytes, self.seed);
        life::live(&self.folder, &files, self.number)
    }
}
