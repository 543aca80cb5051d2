//! Objects of HTTP servers, read by range requests (RFC 9110, section 14).
//!
//! Problem: an object can be replaced between two ranges of it, and a request over a network can fail in
//! more ways than a read of a disk.
//!
//! Mechanism: opening asks for the first byte and learns size and ETag. From then on each request names
//! that ETag in `If-Match`, and an answer of another version is not used: a reader gets bytes of the one
//! version it opened, or `ESTALE`. A fault that may pass (429, 5xx, a connection that was
//! reset, a body cut short) is asked for again, from the first byte missing, with growing pauses, as long as
//! [`Limits::deadline`] allows.
//!
//! ```text
//! bytes 0..1 MiB, If-Match "a1"   206, 400 KiB, reset   pause 100 ms
//! bytes 400 KiB..1 MiB            503, Retry-After: 1   pause 1 s
//! bytes 400 KiB..1 MiB            206                   done
//! ```
//!
//! Not supported: servers that answer ranges with the whole object, weak ETags alone, redirects to other servers, HTTPS.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use forerun_core::Profile;
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body};

use super::remote::{self, Pauses, SERVERS, retry_after};
use super::{Key, Source};
use crate::arena::Target;
use crate::error::Error;

pub use super::remote::Limits;

/// Redirects of one request.
const REDIRECTS_MAX: usize = 5;

/// Connections to HTTP servers, shared by all objects opened with it.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    limits: Limits,
}

impl Default for Client {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Client {
    /// No connection yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let requests = limits.requests.max(1) as usize;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .accept_encoding("identity")
            .max_redirects(0)
            .timeout_connect(Some(limits.connect))
            .timeout_recv_response(Some(limits.silence))
            .timeout_per_read(Some(limits.silence))
            .max_idle_connections(requests)
            .max_idle_connections_per_host(requests)
            .build();
        let agent = config.new_agent();
        Self { agent, limits }
    }

    /// Opens the version of an object that is there now.
    ///
    /// # Errors
    /// The address is none, the server cannot be reached or refuses, or its answer has no strong ETag or
    /// ignores ranges. Each names the address.
    pub fn open(&self, url: &str) -> Result<Object, Error> {
        let failed = |source| Error::Open {
            path: remote::shown(url).into(),
            source,
        };
        let authority = authority(url).map_err(failed)?;
        let mut pauses = Pauses::new(&self.limits);
        let response = loop {
            match self.request(url, 0, 1, None) {
                Ok(response) => break response,
                Err(fault) => pause(&mut pauses, fault).map_err(failed)?,
            }
        };
        let header = |name| text(&response, name);
        let version = header(header::ETAG).filter(|tag| tag.starts_with('"'));
        let (version, bytes) = match response.status() {
            // An empty object has no first byte.
            StatusCode::RANGE_NOT_SATISFIABLE => (version.unwrap_or_default(), 0),
            _ => {
                let told = header(header::ETAG).map(|tag| remote::shown(&tag));
                let none = || {
                    other(format!(
                        "no strong ETag: {}",
                        told.as_deref().unwrap_or("none")
                    ))
                };
                let bytes = span(&response).map(|(_, bytes)| bytes);
                let ignored = || other("the server does not answer ranges");
                let version = version.ok_or_else(none).map_err(failed)?;
                (version, bytes.ok_or_else(ignored).map_err(failed)?)
            }
        };
        // Some servers tell the end of the range that was asked for as the end of the object.
        if bytes == 1 && self.request(url, 1, 2, Some(&version)).is_ok() {
            let why = "Content-Range says 1 byte in all, and the object has more";
            return Err(failed(other(why)));
        }
        Ok(Object {
            client: self.clone(),
            name: remote::without_passwords(url).into(),
            url: url.into(),
            version: version.into(),
            bytes,
            server: remote::number(authority),
        })
    }

    /// Asks for the bytes `begin..end`; the answer has some of them, or is that there are none.
    fn request(
        &self,
        url: &str,
        begin: u64,
        end: u64,
        version: Option<&str>,
    ) -> Result<Response<Body>, Fault> {
        let range = format!("bytes={begin}-{}", end - 1);
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS_MAX {
            let mut request = self.agent.get(&url).header(header::RANGE, &range);
            if let Some(version) = version {
                request = request.header(header::IF_MATCH, version);
            }
            let response = request.call().map_err(Fault::of_call)?;
            match response.status() {
                StatusCode::PARTIAL_CONTENT => return Ok(response),
                StatusCode::RANGE_NOT_SATISFIABLE if begin == 0 => return Ok(response),
                status => match text(&response, header::LOCATION) {
                    Some(to) if status.is_redirection() => url = redirected(&url, &to)?,
                    _ => return Err(Fault::of_status(status, &response)),
                },
            }
        }
        let why = format!("more than {REDIRECTS_MAX} redirects");
        Err(Fault::last(other(why)))
    }
}

/// One version of an object.
pub struct Object {
    client: Client,
    url: Arc<str>,
    /// It, without a password.
    name: Arc<str>,
    version: Arc<str>,
    bytes: u64,
    server: u64,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version, .. } = self;
        write!(f, "Object {{ {name}, version {version} }}")
    }
}

impl Object {
    /// Reads from `offset + done` on until `end` is there; how far it came stands in `done`.
    fn read_once(
        &self,
        target: &mut Target,
        offset: u64,
        done: &mut usize,
        end: usize,
    ) -> Result<(), Fault> {
        let (begin, stop) = (offset + *done as u64, offset + end as u64);
        let client = &self.client;
        let mut response = client.request(&self.url, begin, stop, Some(&self.version))?;
        if span(&response) != Some((begin, self.bytes)) {
            let told = text(&response, header::CONTENT_RANGE).unwrap_or_default();
            let (told, bytes) = (remote::shown(&told), self.bytes);
            let why = format!("Content-Range {told:?}, not from byte {begin} of {bytes}");
            return Err(Fault::last(other(why)));
        }
        // Also one without an ETag: the server may have ignored the condition.
        if text(&response, header::ETAG).as_deref() != Some(&*self.version) {
            return Err(Fault::last(io::Error::from_raw_os_error(libc::ESTALE)));
        }
        let mut body = response.body_mut().as_reader();
        let mut result = Ok(());
        target.fill(*done, end, |_, mut memory| {
            while result.is_ok() && !memory.is_empty() {
                match body.read(memory) {
                    Ok(0) => result = Err(Fault::passing("the body is cut short")),
                    Ok(read) => {
                        *done += read;
                        memory = &mut memory[read..];
                    }
                    Err(error) => result = Err(Fault::passing(error)),
                }
            }
        });
        result
    }
}

impl Source for Object {
    fn key(&self) -> Key {
        Key::Object {
            name: self.name.clone(),
            version: self.version.clone(),
        }
    }

    fn device(&self) -> Option<u64> {
        Some(self.server)
    }

    fn is_served(&self) -> bool {
        true
    }

    fn requests_max(&self) -> Option<u32> {
        Some(self.client.limits.requests)
    }

    fn profile(&self) -> Option<Profile> {
        remote::profile(SERVERS)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let end = target.bytes().min(left);
        let mut pauses = Pauses::new(&self.client.limits);
        let mut done = skip;
        while done < end {
            let before = done;
            if let Err(fault) = self.read_once(target, offset, &mut done, end) {
                if done > before {
                    pauses.begin_anew();
                }
                pause(&mut pauses, fault).inspect_err(|error| {
                    tracing::warn!("{}: bytes from {offset}: {error}", self.name);
                })?;
            }
        }
        Ok(done)
    }
}

/// Waits before the next attempt.
///
/// # Errors
/// The fault is for good, or the next attempt would come after the deadline.
#[expect(
    clippy::disallowed_methods,
    reason = "a pause is kept to: nothing can make the server ready before"
)]
fn pause(pauses: &mut Pauses, fault: Fault) -> io::Result<()> {
    let next = pauses.next(fault.after).filter(|_| !fault.is_last);
    let next = next.ok_or(fault.error)?;
    thread::sleep(next);
    Ok(())
}

/// Why a request brought nothing, or not all.
struct Fault {
    error: io::Error,
    /// Whether another attempt would end the same.
    is_last: bool,
    /// When the server says that the next one may come.
    after: Option<Duration>,
}

impl Fault {
    fn last(error: io::Error) -> Self {
        Self {
            error,
            is_last: true,
            after: None,
        }
    }

    fn passing(why: impl fmt::Display) -> Self {
        Self {
            error: other(why.to_string()),
            is_last: false,
            after: None,
        }
    }

    fn of_call(error: ureq::Error) -> Self {
        match error {
            ureq::Error::Io(error) => Self::passing(error),
            ureq::Error::Timeout(_) => Self {
                error: io::Error::from_raw_os_error(libc::ETIMEDOUT),
                is_last: false,
                after: None,
            },
            ureq::Error::ConnectionFailed | ureq::Error::Protocol(_) => Self::passing(error),
            // An address that is none, an unknown host name, a redirect to nowhere.
            error => Self::last(other(error)),
        }
    }

    fn of_status(status: StatusCode, response: &Response<Body>) -> Self {
        let number = match status.as_u16() {
            401 | 403 => libc::EACCES,
            404 | 410 => libc::ENOENT,
            412 => libc::ESTALE,
            408 | 429 | 500..=599 => {
                let asked = text(response, header::RETRY_AFTER);
                return Self {
                    after: asked.and_then(|asked| retry_after(&asked)),
                    ..Self::passing(format!("the server answers {status}"))
                };
            }
            _ => return Self::last(other(format!("the server answers {status}"))),
        };
        Self::last(io::Error::from_raw_os_error(number))
    }
}

fn other(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::other(why)
}

fn text(response: &Response<Body>, name: header::HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

/// Where the range of an answer begins, and how long the object is: `bytes 0-99/1234`.
fn span(response: &Response<Body>) -> Option<(u64, u64)> {
    let text = text(response, header::CONTENT_RANGE)?;
    let (range, bytes) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (begin, _) = range.split_once('-')?;
    Some((begin.parse().ok()?, bytes.parse().ok()?))
}

/// The target of a redirect that stays with its server.
fn redirected(url: &str, to: &str) -> Result<String, Fault> {
    let server = authority(url).map_err(Fault::last)?;
    match authority(to) {
        Ok(other) if other == server => Ok(to.to_owned()),
        Err(_) if to.starts_with('/') && !to.starts_with("//") => {
            Ok(format!("http://{server}{to}"))
        }
        _ => {
            let to = remote::shown(to);
            let why = format!("redirects to {to}, and another server is not asked");
            Err(Fault::last(other(why)))
        }
    }
}

/// The server of an address.
fn authority(url: &str) -> io::Result<&str> {
    let rest = url.strip_prefix("http://");
    let refused = || other("an address begins with http://");
    let rest = rest.ok_or_else(refused)?;
    Ok(rest.split(['/', '?', '#']).next().unwrap_or(rest))
}
