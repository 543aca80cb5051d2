//! Errors of stores, as those of files.

use std::io;
use std::sync::Arc;

use forerun_io::error::{ReadError, number};
use forerun_io::source::remote;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use reqwest::Url;

use crate::connector::NoAddress;
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
    /// No folder of objects.
    #[error("{url}: {why}")]
    NoFolder {
        /// Its address.
        url: String,
        /// In words.
        why: &'static str,
        /// `ENOTDIR` of an object, `ENOENT` of nothing, as `errno(3)` has them.
        number: i32,
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

/// The error of a listing: one that is not found has no bucket, also where the store gives that no code of its own.
pub(crate) fn of_listing(error: io::Error) -> io::Error {
    match number(&error) {
        Some(libc::ENOENT) if !is_explained(&error) => told(
            "not found: there is no such bucket, or no store at this endpoint",
            libc::ENOENT,
        ),
        _ => error,
    }
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
    if let Some(none) = causes(error).find_map(|cause| cause.downcast_ref::<NoAddress>()) {
        let why = remote::shown(&none.to_string());
        return io::Error::new(io::ErrorKind::HostUnreachable, why);
    }
    if is_refused(error) {
        let why = format!("{}: Connection refused", no_server(error));
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

/// Whether no connection can be had with this server or proxy: it speaks no TLS, its certificate is not trusted, or the
/// proxy asks for a password. A server that ends a handshake with an alert may be one that is just replaced.
pub(crate) fn is_out_of_reach(error: &Error) -> bool {
    let mut http = causes(error).filter_map(|cause| cause.downcast_ref::<HttpError>());
    let is_of_tls = |cause: &(dyn std::error::Error + 'static)| {
        let error = cause.downcast_ref::<io::Error>();
        // An error within one is no cause of it.
        let mut errors =
            std::iter::successors(error, |error| error.get_ref()?.downcast_ref::<io::Error>());
        let is_alert = |error: &io::Error| error.to_string().contains("received fatal alert");
        errors.any(|error| error.kind() == io::ErrorKind::InvalidData && !is_alert(error))
            // Its type is private.
            || cause.to_string() == "tunnel error: proxy authorization required"
    };
    http.any(|error| error.kind() == HttpErrorKind::Connect) && causes(error).any(is_of_tls)
}

/// Whether a connection was refused.
fn is_refused(error: &Error) -> bool {
    let errors = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    let mut kinds = errors.map(io::Error::kind);
    kinds.any(|kind| kind == io::ErrorKind::ConnectionRefused)
}

/// The server that refused a connection, and the proxy before it, if one is set.
fn no_server(error: &Error) -> String {
    // It stands in the text alone, and is left out there where it may have a secret.
    let text = chain(error);
    let mut words = text.split_whitespace();
    let url = words.find_map(|word| Url::parse(word).ok().filter(Url::has_host));
    let Some(url) = url else {
        return "no server".to_owned();
    };
    let server = url.origin().ascii_serialization();
    match proxy(&url, |name| std::env::var(name).ok()) {
        Some(name) => format!("no server at {server}, or at the proxy that {name} names"),
        None => format!("no server at {server}"),
    }
}

/// Whether no server was reached: its name has no address, or the connection was refused.
pub(crate) fn is_unreached(error: &io::Error) -> bool {
    [
        io::ErrorKind::ConnectionRefused,
        io::ErrorKind::HostUnreachable,
    ]
    .contains(&error.kind())
}

/// Whether an error is the answer of a server.
pub(crate) fn is_answer(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::TimedOut
        && (number(error).is_some() || status(&error.to_string()).is_some())
}

/// The variable that names the proxy for an address, if one does.
fn proxy(url: &Url, variable: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let host = url.host_str()?;
    let spared = set("no_proxy")
        .or_else(|| set("NO_PROXY"))
        .unwrap_or_default();
    let is_spared = spared
        .split(',')
        .map(|name| name.trim().trim_start_matches('.'));
    let is_spared = is_spared.into_iter().any(|name| {
        let before = host.strip_suffix(name).filter(|_| !name.is_empty());
        name == "*" || before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    });
    let names = match url.scheme() {
        "https" => ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        _ => ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
    };
    let mut names = names.into_iter().filter(|name| set(name).is_some());
    names.next().filter(|_| !is_spared)
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
            ELSEWHERE,
            "TemporaryRedirect",
            "IllegalLocationConstraintException",
        ],
        REGION,
    ),
    (&["AuthorizationHeaderMalformed"], REGION),
];

/// The remedy for another region.
const REGION: &str = "the bucket is in another region: set AWS_REGION";

/// The refusal of a bucket in this region.
pub(crate) fn other_region(region: &str) -> String {
    format!("{ELSEWHERE}: the bucket is in region {region}: set AWS_REGION={region}")
}

/// The code of a bucket that is in another region.
const ELSEWHERE: &str = "PermanentRedirect";

/// The reason of an answer, and its remedy.
fn reason(error: &Error) -> Option<String> {
    let texts = causes(error).map(ToString::to_string);
    texts
        .filter_map(|text| {
            if text.starts_with(ELSEWHERE) {
                return Some(text);
            }
            if text.contains("redirect without LOCATION") {
                return Some(format!("{ELSEWHERE}: {REGION}"));
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

/// Whether the server that answers so may have time the next time.
pub(crate) fn is_busy(status: u16) -> bool {
    // It will not know the method or the version then.
    (status >= 500 && ![501, 505].contains(&status)) || [408, 429].contains(&status)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_the_proxy_is_named_but_for_hosts_that_are_spared() {
        let store = Url::parse("https://b.store.example/k").unwrap();
        let of = |set: &[(&str, &str)]| {
            proxy(&store, |name| {
                let mut set = set.iter().filter(|(set, _)| *set == name);
                set.next().map(|(_, value)| (*value).to_owned())
            })
        };
        let https = ("HTTPS_PROXY", "http://proxy:3128");
        assert_eq!(of(&[("http_proxy", "http://proxy:3128")]), None);
        assert_eq!(of(&[("https_proxy", "")]), None);
        assert_eq!(of(&[https, ("http_proxy", "x")]), Some("HTTPS_PROXY"));
        assert_eq!(of(&[("all_proxy", "socks5://proxy")]), Some("all_proxy"));
        for (spared, expected) in [
            ("other, store.example", None),
            (".store.example", None),
            ("*", None),
            ("tore.example", Some("HTTPS_PROXY")),
            ("", Some("HTTPS_PROXY")),
        ] {
            assert_eq!(of(&[https, ("NO_PROXY", spared)]), expected, "{spared}");
        }
    }
}
