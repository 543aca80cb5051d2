//! Errors of the libraries as exceptions of Python.
//!
//! A value outside its range is a `ValueError` whose message has the value and the range. A failure
//! of the system is an `OSError` with its number and the path, of which Python makes the subclass
//! (`FileNotFoundError`, `IsADirectoryError`).

use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::path::Path;

use forerun_io::Error;
use forerun_io::error::ReadError;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::settings::OFFSET_MAX;

/// Numbers of `errno(3)` that no `io::Error` brings along.
const EIO: i32 = 5;
const EINVAL: i32 = 22;
const EISDIR: i32 = 21;
const EMFILE: i32 = 24;
const EFBIG: i32 = 27;
const EBUSY: i32 = 16;
const ESTALE: i32 = 116;
const ECONNREFUSED: i32 = 111;
const EOPNOTSUPP: i32 = 95;

/// The meaning of [`ESTALE`] to a reader.
const REPLACED: &str = ": it was replaced or removed after it was opened or listed; open it again to read what is \
                        there now";

/// A value that is not accepted.
pub(crate) fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A failed call of the system, with the path if there is one.
pub(crate) fn system(error: &io::Error, path: Option<&Path>) -> PyErr {
    // The name of an object is the path of the exception.
    let named = error.get_ref().and_then(|e| e.downcast_ref::<ReadError>());
    let (number, text) = spoken(named.map_or(error, |named| &named.source));
    numbered(number, text, path)
}

/// The number of an error, and its text without it.
fn spoken(error: &io::Error) -> (i32, String) {
    let number = match (error.raw_os_error(), error.kind()) {
        (Some(number), _) => number,
        (None, io::ErrorKind::ResourceBusy) => EBUSY,
        (None, io::ErrorKind::ConnectionRefused) => ECONNREFUSED,
        (None, _) => EIO,
    };
    let text = error.to_string();
    let bare = text.strip_suffix(&format!(" (os error {number})"));
    let mut text = bare.unwrap_or(&text).to_owned();
    if number == ESTALE {
        text.push_str(REPLACED);
    }
    (number, text)
}

/// An object that cannot be opened, with the reason that its store gave.
#[cfg(feature = "object-store")]
fn refusal(error: &io::Error, url: &str) -> PyErr {
    let told = error.get_ref().and_then(|e| e.downcast_ref::<ReadError>());
    let Some(told) = told else {
        return system(error, Some(url.as_ref()));
    };
    let (number, text) = spoken(&told.source);
    numbered(number, format!("{text}: {}", told.name), Some(url.as_ref()))
}

/// A position that no file has: as `lseek(2)` names it where it is before the beginning.
pub(crate) fn position(offset: i64, base: u64, name: &OsStr) -> PyErr {
    let to = i128::from(base) + i128::from(offset);
    let why = format!("offset of {to}: must lie from 0 to {OFFSET_MAX}");
    match to < 0 {
        true => numbered(EINVAL, why, Some(name.as_ref())),
        false => value(why),
    }
}

fn numbered(number: i32, text: String, path: Option<&Path>) -> PyErr {
    match path {
        Some(path) => PyOSError::new_err((number, text, path.as_os_str().to_owned())),
        None => PyOSError::new_err((number, text)),
    }
}

/// Why a file or an object cannot be opened.
pub(crate) enum OpenError {
    Driver(Error),
    /// Not an address of an object.
    Address(String),
    #[cfg(feature = "object-store")]
    Store(forerun_store::StoreError),
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

#[cfg(feature = "object-store")]
impl From<forerun_store::StoreError> for OpenError {
    fn from(error: forerun_store::StoreError) -> Self {
        match error {
            forerun_store::StoreError::Address { .. } => Self::Address(error.to_string()),
            other => Self::Store(other),
        }
    }
}

/// An error of an opening.
pub(crate) fn opening(error: OpenError) -> PyErr {
    match error {
        OpenError::Driver(error) => of(error),
        OpenError::Address(why) => value(why),
        #[cfg(feature = "object-store")]
        OpenError::Store(forerun_store::StoreError::Object { url, source }) => {
            refusal(&source, &url)
        }
        #[cfg(feature = "object-store")]
        OpenError::Store(forerun_store::StoreError::NoFolder { url, why, number }) => {
            numbered(number, why.to_owned(), Some(url.as_ref()))
        }
        #[cfg(feature = "object-store")]
        OpenError::Store(other) => numbered(EIO, other.to_string(), None),
    }
}

/// An error of a driver.
pub(crate) fn of(error: Error) -> PyErr {
    match &error {
        Error::Settings(_) => value(error),
        Error::Open { path, source } => system(source, Some(path)),
        Error::Directory { path } => numbered(EISDIR, "Is a directory".to_owned(), Some(path)),
        Error::NotAFile { path } => {
            let why = "Is not a regular file or block device".to_owned();
            numbered(EINVAL, why, Some(path))
        }
        Error::HiddenSize { path } => {
            let why =
                "Has other bytes than its size says: read it with the built-in open".to_owned();
            numbered(EOPNOTSUPP, why, Some(path))
        }
        Error::TooManyOpenFiles { path, limit } => {
            let why = format!("Too many open files (the limit is {limit})");
            numbered(EMFILE, why, Some(path))
        }
        Error::TooLarge { .. } => numbered(EFBIG, error.to_string(), None),
        Error::TooManyFiles { .. } => numbered(EMFILE, error.to_string(), None),
        Error::Memory { source, .. } | Error::Backend { source, .. } => numbered(
            source.raw_os_error().unwrap_or(EIO),
            error.to_string(),
            None,
        ),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}
