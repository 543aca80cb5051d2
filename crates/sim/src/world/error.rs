//! Errors that end a run: a scene that makes no sense, or an engine that breaks its contract.
//!
//! The second kind is a finding, not an accident: the world checks the engine while it drives it.

use forerun_core::settings::SettingsError;
use forerun_core::{FileId, Nanos};

/// Why a run did not reach its end.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WorldError {
    /// The settings cannot be used.
    Settings(SettingsError),
    /// No device, or more than can be numbered.
    Devices(usize),
    /// More files or readers than can be numbered.
    Count(usize),
    /// A file with more blocks than can be numbered; the file.
    FileSize(usize),
    /// A layout whose strip is no multiple of the block size, or which is not made of so many
    /// devices.
    Striping(String, usize),
    /// A file in more pieces than are kept; the file.
    Fragments(usize),
    /// A reader of a file that is not there; the reader.
    NoFile(usize),
    /// The engine broke a rule of its contract.
    Rule {
        /// When.
        now: Nanos,
        /// The rule, in words.
        rule: String,
    },
    /// Readers wait, and nothing will happen any more.
    Stuck {
        /// Since when.
        now: Nanos,
        /// The waiting readers.
        readers: Vec<usize>,
    },
    /// More events than allowed.
    Events(u64),
    /// Virtual time overflowed, and results at its end are not to be trusted.
    Time,
    /// The ledger does not balance.
    Ledger(String),
    /// A reader's clock does not add up; the reader.
    Clock(usize),
}

impl core::fmt::Display for WorldError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Settings(e) => e.fmt(f),
            Self::Devices(n) => write!(f, "{n} devices: give 1 to 65536"),
            Self::Count(n) => write!(f, "{n} files or readers: at most {}", FileId::LIMIT),
            Self::FileSize(file) => write!(f, "file {file} has more than 2^32 - 1 blocks"),
            Self::Striping(layout, devices) => write!(
                f,
                "{layout} over {devices} devices: strips must be multiples of the block size, and the \
                 layout one of so many devices"
            ),
            Self::Fragments(file) => write!(
                f,
                "file {file} lies in too many pieces: at most {}, give longer ones",
                forerun_core::layout::map::EXTENTS_MAX
            ),
            Self::NoFile(reader) => write!(f, "reader {reader} opens a file that is not there"),
            Self::Rule { now, rule } => write!(f, "the engine broke a rule at {now} ns: {rule}"),
            Self::Stuck { now, readers } => {
                write!(
                    f,
                    "readers {readers:?} wait at {now} ns, and nothing will happen any more"
                )
            }
            Self::Time => write!(f, "it takes longer than 2^64 - 1 ns (584 years)"),
            Self::Events(n) => write!(f, "no end after {n} events"),
            Self::Ledger(e) => write!(f, "the ledger does not balance: {e}"),
            Self::Clock(reader) => {
                write!(
                    f,
                    "reader {reader}: elapsed is not compute + driver + stall + idle"
                )
            }
        }
    }
}

impl core::error::Error for WorldError {}
