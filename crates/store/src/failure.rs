//! Errors of stores, as those of files.

use std::io;
use std::sync::Arc;

use forerun_io::error::{ReadError, number};
use forerun_io::source::remote;
use object_store::Error;
use reqwest::Url;

use crate::kept::NoKeys;
use crate::listed::element;
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
        let source = match number(&error) {
            Some(libc::EACCES) if !error.to_string().starts_with(NO_KEYS) => {
                let said = error.get_ref().and_then(|e| e.downcast_ref::<ReadError>());
                let said = said.map_or(String::new(), |said| format!("{}; ", said.name));
                told(&format!("{said}{}", store.signed_with()), libc::EACCES)
            }
            _ => error,
        };
        let url = url.to_owned();
        Self::Object { url, source }
    }
}

/// The beginning of an error whose request was never made.
const NO_KEYS: &str = "no keys: ";

/// An error of this number, with its reason.
fn told(why: &str, number: i32) -> io::Error {
    let source = io::Error::from_raw_os_error(number);
    let name = remote::shown(why).into();
    io::Error::new(source.kind(), ReadError { name, source })
}

/// An error of a range without its reason: the engine has numbers alone.
pub(crate) fn bare(error: io::Error) -> io::Error {
    number(&error).map_or(error, io::Error::from_raw_os_error)
}

/// Whether an error has its reason with it.
pub(crate) fn is_explained(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<ReadError>())
}

/// The error of a file that stands for this one, with its reason where the store says one; without a number, its text.
pub(crate) fn of(error: &Error) -> io::Error {
    if let Some(none) = causes(error).find_map(|cause| cause.downcast_ref::<NoKeys>()) {
        return told(&format!("{NO_KEYS}{none}"), libc::EACCES);
    }
    if let Some(server) = refused(error) {
        let why = format!("no server at {server}: Connection refused");
        return io::Error::new(io::ErrorKind::ConnectionRefused, why);
    }
    let why = reason(error);
    let number = match error {
        Error::NotFound { .. } => libc::ENOENT,
        Error::Precondition { .. } => libc::ESTALE,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => libc::EACCES,
        // Listings are refused without a kind.
        _ => match status_of(error) {
            Some(401 | 403) => libc::EACCES,
            Some(404 | 410) => libc::ENOENT,
            Some(400) if why.is_some() => libc::EACCES,
            _ if why.is_some() => libc::EIO,
            _ => return io::Error::other(remote::shown(&chain(error))),
        },
    };
    match why {
        Some(why) => told(&why, number),
        None => io::Error::from_raw_os_error(number),
    }
}

/// The server that refused a connection, if this is such an error.
fn refused(error: &Error) -> Option<String> {
    let errors = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    let mut kinds = errors.map(io::Error::kind);
    kinds.find(|kind| *kind == io::ErrorKind::ConnectionRefused)?;
    // It stands in the text alone.
    let text = chain(error);
    let mut words = text.split_whitespace();
    let url = words.find_map(|word| Url::parse(word).ok().filter(Url::has_host))?;
    Some(url.origin().ascii_serialization())
}

/// Codes of stores whose remedy is known.
const REMEDIES: [(&[&str], &str); 9] = [
    (
        &["NoSuchBucket", "ContainerNotFound"],
        "there is no such bucket",
    ),
    (&["InvalidAccessKeyId"], "the store has no such key"),
    (
        &["SignatureDoesNotMatch"],
        "the secret is not that of the key",
    ),
    (
        &["AuthenticationFailed"],
        "the key or token is wrong or has ended, or the clock of this machine is wrong",
    ),
    (
        &["RequestTimeTooSkewed"],
        "the clock of this machine is more than 15 minutes wrong",
    ),
    (
        &["ExpiredToken", "TokenRefreshRequired", "InvalidToken"],
        "the session has ended: log in again",
    ),
    (
        &["AccessDenied", "AllAccessDisabled", "AuthorizationFailure"],
        "reading it is not permitted",
    ),
    (
        &[
            "PermanentRedirect",
            "TemporaryRedirect",
            "IllegalLocationConstraintException",
        ],
        REGION,
    ),
    (&["AuthorizationHeaderMalformed"], REGION),
];

/// The remedy for another region.
const REGION: &str = "the bucket is in another region: set AWS_REGION";

/// The reason of an answer, and its remedy.
fn reason(error: &Error) -> Option<String> {
    let texts = causes(error).map(ToString::to_string);
    texts
        .filter_map(|text| {
            if text.contains("redirect without LOCATION") {
                return Some(format!("PermanentRedirect: {REGION}"));
            }
            let code = element(&text, "Code")?;
            let (_, remedy) = REMEDIES.iter().find(|(codes, _)| codes.contains(&code))?;
            Some(match element(&text, "Region") {
                Some(region) if *remedy == REGION => {
                    format!("{code}: the bucket is in region {region}: set AWS_REGION={region}")
                }
                _ => format!("{code}: {remedy}"),
            })
        })
        .next()
}

/// An error with its causes, each once.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| cause.source()) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
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
