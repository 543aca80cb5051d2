//! The command line of `servers`: `media` and `search`, and the options of both.
//!
//! Part of [`args`](crate::args). Every default is here, with its reason in the help.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::args::{Format, bytes, duration, kib, readers};
use crate::failure::Failure;
use crate::servers::{Comparison, Server, run};
use crate::{bed, compare, state};

/// A server.
#[derive(Subcommand, Debug)]
pub(crate) enum ServersCommand {
    /// nginx with media clips, asked by wrk (packages nginx-light and wrk)
    Media {
        #[command(flatten)]
        compared: Compared,
    },
    /// Index search with Xapian (packages python3-xapian and xapian-tools)
    Search {
        #[command(flatten)]
        compared: Compared,
        /// Folder of the indexes, kept from run to run; one of 500,000 documents takes minutes
        #[arg(long, value_name = "DIR", default_value = "/var/tmp/forerun-bed")]
        index: PathBuf,
        /// Number of documents: 1.8 KB of index each
        #[arg(long, default_value = "500000",
            value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
        documents: u64,
    },
}

/// Options of both servers.
#[derive(Args, Debug)]
pub(crate) struct Compared {
    /// The bed
    bed: PathBuf,
    /// The state directory
    #[arg(long, value_name = "DIR", default_value = state::DEFAULT)]
    state: PathBuf,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64,256", value_parser = readers)]
    clients: Vec<usize>,
    /// Readahead of the kernel, in KiB; the first is the default that ratios are to
    #[arg(long, value_name = "KIB", value_delimiter = ',', default_value = "128,512,1024,4096",
        value_parser = kib)]
    read_ahead: Vec<u64>,
    /// I/O schedulers; the first with every readahead, the others with the first readahead
    #[arg(long, value_delimiter = ',', default_value = "none,bfq")]
    schedulers: Vec<String>,
    /// Compare with this forerun binary
    #[arg(long, value_name = "PATH")]
    forerun: Option<PathBuf>,
    /// Its preset
    #[arg(long, default_value = "mount", requires = "forerun")]
    preset: String,
    /// Memory of either candidate, server included
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes)]
    memory: u64,
    /// Time of one run
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    time: Duration,
    /// Runs of each; the median is shown
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u16).range(1..=99))]
    runs: u16,
    /// How to print it
    #[arg(long, default_value = "table")]
    format: Format,
}

impl ServersCommand {
    /// Runs the comparison and prints its table.
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Self::Media { compared } => compared.run(Server::Media, out),
            Self::Search {
                compared,
                index,
                documents,
            } => compared.run(Server::Search { index, documents }, out),
        }
    }
}

impl Compared {
    fn run(self, server: Server, out: &mut dyn Write) -> Result<(), Failure> {
        let bed = bed::load(&self.bed)?;
        let comparison = Comparison {
            server,
            compared: compare::Compared {
                numbers: self.clients,
                forerun: self.forerun,
                memory_bytes: self.memory,
                time: self.time,
                runs: self.runs,
            },
            read_ahead_kib: self.read_ahead,
            schedulers: self.schedulers,
            preset: self.preset,
        };
        let table = run(&bed, &self.state, &comparison, &mut std::io::stderr())?;
        self.format.print(&table, &self.bed, out)
    }
}
