//! Flags of `forerun layout`.
//!
//! Part of `args`.

use std::path::PathBuf;

use clap::Args as Group;

/// `forerun layout`.
#[derive(Debug, Group)]
pub struct Layout {
    /// A file, or a block device
    #[arg(value_name = "FILE", value_parser = super::files::local_path())]
    pub file: PathBuf,

    /// Print one JSON object, with all arrays and extents
    #[arg(long)]
    pub json: bool,
}
