//! The command line of `forerun-bed store`.
//!
//! Every default is here: 30 ms, 80 MB/s and 400 MB/s are an object store of today as a machine in
//! the same region sees it, and within the reach of two processors that also run the clients.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as Group;
use clap::builder::ArgPredicate;
use forerun_core::Nanos;

use super::catalogue::{self, Catalogue};
use super::fault::{self, Fault, Faults};
use super::{Options, run};
use crate::args::{bytes, duration};
use crate::failure::Failure;

#[derive(Group, Debug)]
pub(crate) struct StoreArgs {
    /// Port on 127.0.0.1; 0 is one that is free. The first line of output is the address
    #[arg(long, default_value = "0")]
    port: u16,
    /// From a request to the first byte of its answer
    #[arg(long, value_name = "TIME", default_value = "30ms", value_parser = duration)]
    first_byte: Duration,
    /// Rate of one connection, each second
    #[arg(long, value_name = "SIZE", default_value = "80MB", value_parser = bytes)]
    connection_rate: u64,
    /// Rate of all connections together, each second
    #[arg(long, value_name = "SIZE", default_value = "400MB", value_parser = bytes)]
    rate: u64,
    /// Name of the bucket
    #[arg(long, default_value = "bed")]
    bucket: String,
    /// Objects by a name, their number and size: `NAME/000000` onwards
    #[arg(long, value_name = "NAME=COUNTxSIZE", value_delimiter = ',',
        default_value = "large=1x1GB,some=16x100MB,many=256x8MB,samples=1x4GB",
        default_value_if("files", ArgPredicate::IsPresent, None),
        value_parser = catalogue::group)]
    objects: Vec<catalogue::Group>,
    /// A folder whose files are objects by their paths, in place of the default --objects; read once, at the start
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Answers that go wrong (429, 503, reset, truncated, slow), one in so many
    #[arg(long, value_name = "WAY=NUMBER", value_delimiter = ',', value_parser = fault::parse)]
    fault: Vec<(Fault, u64)>,
    /// Seed of bytes and faults
    #[arg(long, default_value = "1")]
    seed: u64,
}

impl StoreArgs {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.bucket.chars().any(|c| !is_name(c)) || !(3..=63).contains(&self.bucket.len()) {
            return Err(Failure::Usage(format!(
                "--bucket {}: give 3 to 63 letters, digits or hyphens",
                self.bucket
            )));
        }
        let mut catalogue = Catalogue::new(&self.bucket, &self.objects, self.seed);
        if let Some(folder) = &self.files {
            catalogue = catalogue.with_files(folder)?;
        }
        let first_byte = u64::try_from(self.first_byte.as_nanos()).unwrap_or(u64::MAX);
        let options = Options {
            first_byte: Nanos(first_byte),
            connection_rate: self.connection_rate,
            rate: self.rate,
            faults: Faults {
                seed: self.seed,
                ways: self.fault,
            },
        };
        run(self.port, catalogue, options, out)
    }
}
