//! Backends carry out fetches. Wrappers fit around any of them.
//!
//! The driver [submits](Backend::submit) requests in the order the engine decided them; a backend
//! reads bytes into the request's frames and reports to its [`Sink`], from whatever thread. A
//! wrapper is a backend and a sink at once:
//!
//! ```text
//! driver --submit--> fault --submit--> emulated --submit--> uring
//! driver <-completed-- ... <-----------------------------------------completed--
//! ```
//!
//! **Adding a backend** is one file below, one `mod` line and one entry in [`LIST`]; wrappers are
//! in [`crate::wrap`]. A backend does not judge a result: whether a short read is the end of a file
//! or an accident, and whether the file is still the same, the driver finds out.

pub mod memory;
pub mod pread;
pub mod uring;

use std::io;
use std::sync::Arc;

use forerun_core::{Bytes, DeviceId, FileId, RequestId};

use crate::arena::{Arena, Target};
use crate::error::Error;
use crate::foreign::guarded;
use crate::source::{GiveUp, Source};

/// All backends, the preferred one first. One entry a backend.
pub static LIST: &[Entry] = &[uring::ENTRY, pread::ENTRY, memory::ENTRY];

/// A backend's name, and how one is made.
#[derive(Debug)]
pub struct Entry {
    /// Name as the user types it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where the idea comes from.
    pub source: &'static str,
    /// Starts one.
    pub start: Start,
}

/// Starts a backend that reports to the sink.
pub type Start = fn(Arc<dyn Sink>, &Setup) -> io::Result<Arc<dyn Backend>>;

/// Arguments of a backend's start.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The memory all requests fill.
    pub arena: Arc<Arena>,
    /// The most requests the engine has in flight on one device.
    pub in_flight_max: u32,
}

/// A disk of an array under a file system, which the requests for it should reach in their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// The device.
    pub device: DeviceId,
    /// Which copy of the bytes it has, and of how many: btrfs reads the copy that the number of the
    /// reading thread says, modulo their number.
    pub copy: (u32, u32),
}

/// One fetch to carry out.
#[derive(Debug)]
pub struct Request {
    /// The engine's number of the fetch, unique among those in flight.
    pub number: RequestId,
    /// The device, for wrappers that know several.
    pub device: DeviceId,
    /// If the file system chooses where on an array the bytes come from: its part of the array.
    pub member: Option<Member>,
    /// Which file, for reports.
    pub file: FileId,
    /// The version of the file the engine wants, as the driver counts them.
    pub version: u64,
    /// The source to read; none if the file was closed meanwhile, and the request can only fail.
    pub source: Option<Arc<dyn Source>>,
    /// Where on the device its first byte lies.
    pub position: Bytes,
    /// Where in the file to begin.
    pub offset: u64,
    /// How many bytes the file has from there on, at most what fits the target.
    pub bytes: u64,
    /// The memory to fill.
    pub target: Target,
    /// Bytes at the front that an earlier attempt brought, a whole number of sectors.
    pub skip: usize,
    /// How often the rest was asked for again.
    pub attempts: u32,
    /// Sources that failed to read it, and their errors.
    pub tried: Vec<(Arc<dyn Source>, i32)>,
    /// How a source that takes it can be told to give it up, and that it is to be.
    pub given_up: Option<Arc<GiveUp>>,
}

impl Request {
    /// The place on the device of the first byte still wanted.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.position.0.saturating_add(self.skip as u64)
    }

    /// Bytes still wanted.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.bytes.saturating_sub(self.skip as u64)
    }

    /// Whether it is to be given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.as_ref().is_some_and(|it| it.is_asked())
    }
}

/// How a request ended: the bytes that are in the target now, counted from its front and the
/// skipped ones included, or the original error number.
pub type Outcome = Result<u64, i32>;

/// Receives the requests that ended.
///
/// # Examples
/// Counts the requests that ended.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use forerun_io::backend::{Outcome, Request, Sink};
///
/// #[derive(Default)]
/// struct Ended(AtomicU64);
///
/// impl Sink for Ended {
///     fn completed(&self, _request: Box<Request>, _outcome: Outcome) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
/// ```
pub trait Sink: Send + Sync {
    /// The request ended. Called once for each request, from any thread, possibly from inside
    /// [`Backend::submit`].
    fn completed(&self, request: Box<Request>, outcome: Outcome);
}

/// Carries out requests.
///
/// # Examples
/// Reads on the thread that submits.
///
/// ```
/// use std::sync::Arc;
///
/// use forerun_io::backend::{Backend, Request, Sink};
///
/// struct OnThisThread(Arc<dyn Sink>);
///
/// impl Backend for OnThisThread {
///     fn submit(&self, mut request: Box<Request>) {
///         let outcome = match request.source.clone() {
///             Some(source) => {
///                 let read = source.read(&mut request.target, request.offset, request.skip);
///                 let number = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
///                 read.map(|bytes| bytes as u64).map_err(number)
///             }
///             // The file was closed meanwhile.
///             None => Err(libc::EBADF),
///         };
///         self.0.completed(request, outcome);
///     }
///     fn stop(&self) {}
/// }
/// ```
pub trait Backend: Send + Sync {
    /// Starts a request. The caller submits one at a time, in the order of the engine's decisions.
    fn submit(&self, request: Box<Request>);

    /// Called some times a second while requests are in flight: threads that hang in a read are to hold up
    /// no request of another file.
    fn look_for_hung(&self) {}

    /// Ends its threads once nothing is in flight any more. Nothing is submitted afterwards.
    fn stop(&self);
}

/// The backend a user asked for.
#[derive(Clone, Copy, Debug, Default)]
pub enum BackendChoice {
    /// The first of the list that starts: io_uring where the kernel has it, else threads.
    #[default]
    Auto,
    /// This one and no other.
    Only(&'static Entry),
}

impl BackendChoice {
    /// Reads a name of the list, or `auto`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn named(name: &str) -> Result<Self, Error> {
        if name == "auto" {
            return Ok(Self::Auto);
        }
        let known = || LIST.iter().map(|e| e.name).collect();
        let entry = LIST.iter().find(|e| e.name == name);
        entry.map(Self::Only).ok_or_else(|| Error::UnknownBackend {
            name: name.into(),
            known: known(),
        })
    }

    /// Starts the backend; `Auto` goes down the list and says so.
    ///
    /// # Errors
    /// The chosen one, or with `Auto` the last one tried, cannot start.
    pub fn start(self, sink: &Arc<dyn Sink>, setup: &Setup) -> Result<Arc<dyn Backend>, Error> {
        let start = |entry: &'static Entry| {
            (entry.start)(sink.clone(), setup).map_err(|source| Error::Backend {
                name: entry.name,
                source,
            })
        };
        match self {
            Self::Only(entry) => start(entry),
            Self::Auto => start(&uring::ENTRY).or_else(|refused| {
                tracing::warn!("{refused}: falling back to pread");
                start(&pread::ENTRY)
            }),
        }
    }
}

impl std::str::FromStr for BackendChoice {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::named(name)
    }
}

/// Reads a request's bytes on this thread. A source is not ours: one that panics has failed, and its
/// reader gets an error instead of waiting for ever.
pub(crate) fn read_here(request: &mut Request) -> Outcome {
    let Some(source) = request.source.clone() else {
        return Err(libc::EBADF);
    };
    let read = || source.read(&mut request.target, request.offset, request.skip);
    match guarded(read) {
        Some(Ok(n)) => Ok(n as u64),
        Some(Err(e)) => Err(e.raw_os_error().unwrap_or(libc::EIO)),
        None => Err(libc::EIO),
    }
}
