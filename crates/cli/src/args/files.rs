//! Flags of the commands that read files and objects: `forerun read`, `forerun profile`, and the storage of all.
//!
//! Part of `args`.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, Resettable, TypedValueParser};
use clap::{Arg, Args as Group};
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings, preset};
use forerun_io::BackendChoice;

use super::Composition;
use crate::emulation::EmulatedStorage;
use crate::quantity::parse_size;
use crate::sources::address;
use crate::striping::Striping;

/// The storage under the engine.
#[derive(Clone, Debug, Group)]
#[command(next_help_heading = "Storage")]
pub struct Storage {
    /// Profile of the device to begin with, as `forerun profile` writes it
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Use the profile's figures without measuring
    #[arg(long, requires = "profile", conflicts_with = "measure")]
    pub profile_fixed: bool,

    /// Emulate a device of this cost: switching=8ms,rate=80MB/s[,servers=1]; with
    /// disks=4,strip=64KiB an array of them, and with raid10, raid5 or raid6 one of another layout
    /// than RAID-0
    #[arg(long, value_name = "COST")]
    pub emulate: Option<EmulatedStorage>,

    /// The array of the files, if it is not detected or differs: strip=64KiB,disks=4, with raid10,
    /// raid5 or raid6 behind it
    #[arg(long, value_name = "ARRAY", conflicts_with = "emulate")]
    pub stripe: Option<Striping>,

    /// Sign no request to a store, whatever credentials there are
    #[arg(long)]
    pub anonymous: bool,

    /// Number of these devices, from the arguments of `bench`
    #[arg(skip = 1_u16)]
    pub disks: u16,

    /// Backend that reads the device (see `forerun list backends`) [default: the best that works]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<BackendChoice>,

    /// Record every decision to this file, for `forerun replay`
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

impl Storage {
    /// The settings with the costs of devices as `--profile-fixed` says.
    #[must_use]
    pub fn measured(&self, mut settings: Settings) -> Settings {
        let given = &forerun_baselines::measure::given::METHOD;
        // Presets of kernels have it already, with a queue of the device's own.
        if self.profile_fixed && settings.measure.spec().name != given.spec.name {
            settings.measure = Choice::of(given);
        }
        settings
    }

    /// The array all files lie on, if the user described one.
    #[must_use]
    pub fn striping(&self) -> Option<Striping> {
        let emulated = self.emulate.and_then(|emulation| emulation.array);
        emulated.or(self.stripe)
    }
}

/// `forerun read`.
#[derive(Debug, Group)]
#[command(mut_args(|arg| without_walks(in_order(arg))))]
pub struct Read {
    /// The files or objects to read, one after the other; an address that ends in / stands for the
    /// objects directly below it, and the files of a directory are named, as by DIR/*
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Offset of the first byte in each file; past its end is nothing, not an error
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_size)]
    pub offset: Bytes,

    /// Bytes to read of each file at most [default: to its end]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub length: Option<Bytes>,

    /// Bytes of each request
    #[arg(long, value_name = "SIZE", default_value = "128KiB", value_parser = parse_read_bytes)]
    pub read_bytes: Bytes,

    /// Print the counters to standard error at the end; blocks of 4 KiB unless the name says
    /// otherwise
    #[arg(long)]
    pub stats: bool,

    /// Named composition of methods (see `forerun list presets`)
    #[arg(long, value_name = "NAME", default_value = preset::ONCE)]
    #[arg(value_parser = |name: &str| forerun_baselines::preset(name))]
    pub preset: &'static preset::Preset,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub composition: Composition,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub storage: Storage,
}

/// `forerun profile`.
#[derive(Debug, Group)]
pub struct Profile {
    /// A large file, a block device, or an object by its address
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    /// Write the profile to this file, for --profile
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Sign no request to a store, whatever credentials there are
    #[arg(long)]
    pub anonymous: bool,
}

/// Flags of every day first; what only research needs comes last, and its methods are not listed
/// again.
pub(super) fn in_order(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "memory" => arg.help_heading(Resettable::Reset).display_order(0),
        "profile" | "profile_fixed" | "stripe" | "longest_wait" | "anonymous" => {
            arg.help_heading(Resettable::Reset).display_order(1)
        }
        "preset" | "emulate" | "backend" | "journal" => arg.help_heading("Research"),
        "detect" | "depth" | "shape" | "dispatch" | "reclaim" | "next_file" | "measure" => {
            let help = arg.get_help().cloned().unwrap_or_default();
            let long = format!("{help} (see `forerun list methods`)");
            arg.help_heading("Research").long_help(long)
        }
        _ => arg,
    }
}

/// Of a command that reads the files it is given no method can say which comes next.
pub(super) fn without_walks(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "next_file" => arg.hide(true),
        _ => arg,
    }
}

/// Largest request: a reader holds a buffer of that size.
const READ_BYTES_MAX: u64 = 1 << 30;

pub(super) fn parse_read_bytes(text: &str) -> Result<Bytes, String> {
    let bytes = parse_size(text).map_err(|e| e.to_string())?;
    if (1..=READ_BYTES_MAX).contains(&bytes.0) {
        Ok(bytes)
    } else {
        Err(format!("must lie from 1 to {READ_BYTES_MAX} bytes"))
    }
}

/// A path of this system, for commands that read no objects.
pub(super) fn local_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match address(&path) {
        None => Ok(path),
        Some(_) => {
            Err("it is the address of an object, which read, profile, bench, try and mount take")
        }
    })
}
