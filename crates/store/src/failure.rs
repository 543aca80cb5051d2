//! Errors of stores, as those of files.

use std::io;
use std::sync::Arc;

use forerun_io::error::ReadError;
use forerun_io::source::remote;
use object_store::Error;

use crate::store::Store;

/// Why a store or an object of it cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not an address of an object.
    #[error("{url}: {why}")]
    Address {
        /// As it was given.
        url: String,
        /// In words.
        why: String,
    },
    /// Its store or the object cannot be reached, is not there, or refuses.
    #[error("{url}: {source}")]
    Object {
        /// Its address.
        url: String,
        /// With the number of `errno(3)` where there is one: `ENOENT`, `EACCES`, `ETIMEDOUT`.
        source: io::Error,
    },
    /// Threads for requests cannot be had.
    #[error("no threads for requests: {0}")]
    Threads(io::Error),
}

impl StoreError {
    pub(crate) fn address(url: &str, why: impl ToString) -> Self {
        Self::Address {
            url: remote::shown(url),
            why: remote::shown(&why.to_string()),
        }
    }

    /// A refusal names the source of the credentials.
    pub(crate) fn object(url: &str, store: &Arc<Store>, error: io::Error) -> Self {
        let source = match error.raw_os_error() {
            Some(libc::EACCES) => {
                let name = store.signed_with().into();
                io::Error::new(
                    error.kind(),
                    ReadError {
                        name,
                        source: error,
                    },
                )
            }
            _ => error,
        };
        let url = url.to_owned();
        Self::Object { url, source }
    }
}

/// The error of a file that stands for this one; without one, its text.
pub(crate) fn of(error: &Error) -> io::Error {
    let number = match error {
        Error::NotFound { .. } => libc::ENOENT,
        Error::Precondition { .. } => libc::ESTALE,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => libc::EACCES,
        // Listings are refused without a kind.
        _ => match status_of(error) {
            Some(401 | 403) => libc::EACCES,
            Some(404 | 410) => libc::ENOENT,
            _ => return io::Error::other(remote::shown(&innermost(error))),
        },
    };
    io::Error::from_raw_os_error(number)
}

/// The causes of an error, from the next one on.
pub(crate) fn causes(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    let first = std::error::Error::source(error);
    std::iter::successors(first, |cause| cause.source())
}

/// The status of an answer; it stands in the text alone.
pub(crate) fn status(text: &str) -> Option<u16> {
    let (_, behind) = text.split_once("status code: ")?;
    behind.get(..3)?.parse().ok()
}

/// The same of the answer behind an error.
pub(crate) fn status_of(error: &Error) -> Option<u16> {
    causes(error).find_map(|cause| status(&cause.to_string()))
}

/// The causes of an error, the last of which says it best.
fn innermost(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
    }
    text
}
