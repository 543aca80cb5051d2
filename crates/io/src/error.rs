//! Errors of building a driver, opening a file, and finishing a run.
//!
//! Returned by [`crate::Driver`]. Every message names the path or the value, so a command line
//! can print it as it is. Errors of reads are [`std::io::Error`]s: of a file with the original code,
//! so that a reader sees no difference to `pread(2)`, of an object a [`ReadError`] that names it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use forerun_core::settings::SettingsError;

/// See the [module](self).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings are out of range.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// The user's array would cut blocks, or is not made of so many devices.
    #[error(
        "{layout} of {disks} devices: strips are multiples of {block_bytes} bytes, and the layout must take so many"
    )]
    Striping {
        /// Its layout.
        layout: String,
        /// How many devices.
        disks: u16,
        /// The size of which strips must be multiples.
        block_bytes: u32,
    },
    /// The file cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The path as given.
        path: PathBuf,
        /// The original error.
        source: io::Error,
    },
    /// A directory.
    #[error("{}: is a directory", path.display())]
    Directory {
        /// The path as given.
        path: PathBuf,
    },
    /// A pipe, socket or character device: nothing that can be read at an offset.
    #[error("{}: is not a regular file or block device", path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
    },
    /// A file with other bytes than its size says, as in `/proc` and `/sys`.
    #[error("{}: has other bytes than its size says: read it without forerun", path.display())]
    HiddenSize {
        /// The path as given.
        path: PathBuf,
    },
    /// No file descriptor is left.
    #[error("{}: too many open files (the limit is {limit}; raise it with ulimit -n)", path.display())]
    TooManyOpenFiles {
        /// The path as given.
        path: PathBuf,
        /// The hard limit of descriptors.
        limit: u64,
    },
    /// The file has more blocks than can be numbered.
    #[error("{name}: {bytes} bytes are more than the {limit} that blocks of this size can number")]
    TooLarge {
        /// The path or the name of generated content.
        name: String,
        /// Its size.
        bytes: u64,
        /// The largest size.
        limit: u64,
    },
    /// More files are open than can be numbered.
    #[error("{limit} files are open: no more can be numbered")]
    TooManyFiles {
        /// The limit.
        limit: u32,
    },
    /// As much is announced as the memory allows.
    #[error("no room for a hint: at most {limit} pieces can be announced with this memory")]
    HintsFull {
        /// The limit.
        limit: u32,
    },
    /// No backend of that name.
    #[error("no backend {name:?}: there is auto, {}", known.join(", "))]
    UnknownBackend {
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// A rate of injected faults above one thousand.
    #[error("fault rate {name} of {value} per mille: must lie from 0 to 1000")]
    FaultRate {
        /// Which rate.
        name: &'static str,
        /// The value given.
        value: u32,
    },
    /// Memory for the blocks cannot be mapped.
    #[error("cannot map {bytes} bytes of memory: {source}")]
    Memory {
        /// How much was asked for.
        bytes: u64,
        /// The original error.
        source: io::Error,
    },
    /// The backend cannot start.
    #[error("cannot start the {name} backend: {source}")]
    Backend {
        /// Which.
        name: &'static str,
        /// The original error.
        source: io::Error,
    },
    /// The thread that reads the clocks of programs cannot start.
    #[error("cannot start the thread that reads CPU times: {0}")]
    Thread(io::Error),
    /// The journal cannot be written.
    #[error("journal: {0}")]
    Journal(io::Error),
}

/// The error of a read of an object that is no file: its name, and the original error.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
pub struct ReadError {
    /// The name of the object, such as its URL.
    pub name: Arc<str>,
    /// The original error.
    pub source: io::Error,
}

impl ReadError {
    /// An [`io::Error`] of the same kind with the name.
    pub(crate) fn named(name: Arc<str>, code: i32) -> io::Error {
        let source = io::Error::from_raw_os_error(code);
        io::Error::new(source.kind(), Self { name, source })
    }
}

/// The number of a reader's error, if it has one: of a [`ReadError`] that of the original error.
///
/// ```
/// let error = std::io::Error::from_raw_os_error(5);
/// assert_eq!(forerun_io::error::number(&error), Some(5));
/// ```
#[must_use]
pub fn number(error: &io::Error) -> Option<i32> {
    let named = || error.get_ref()?.downcast_ref::<ReadError>();
    let original = || named()?.source.raw_os_error();
    error.raw_os_error().or_else(original)
}
