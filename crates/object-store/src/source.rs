//! One version of an object of the inner store, as a source of the engine.
//!
//! Each range is asked for with `If-Match`, and an answer with another ETag or size is refused, so that a
//! reader gets bytes of the version it opened or an error. An answer proves that the version was the
//! current one when it was asked for; the time of the last proof is kept.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use forerun_core::Profile;
use forerun_io::Source;
use forerun_io::arena::Target;
use forerun_io::source::remote::{self, Held, SERVERS};
use forerun_io::source::{Key, Pending};
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use object_store::{Attributes, Error, GetOptions, GetRange, GetResult, ObjectMeta, Result};

use crate::connection::{Connection, failed};
use crate::failures::Failures;

/// See the [module](self).
pub(crate) struct ObjectSource {
    pub(crate) connection: Arc<Connection>,
    pub(crate) meta: ObjectMeta,
    pub(crate) held: Held<Bytes>,
    name: Arc<str>,
    tag: Arc<str>,
    requests: u32,
    state: Mutex<State>,
}

struct State {
    proved: Instant,
    attributes: Option<Attributes>,
    failures: Failures,
}

impl fmt::Debug for ObjectSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, tag, .. } = self;
        write!(f, "ObjectSource {{ {name}, version {tag} }}")
    }
}

/// The ETag that names a version in a request; none if there is none, if it is weak, which stands for several
/// contents, or if it would be taken for any or for several.
pub(crate) fn strong_tag(meta: &ObjectMeta) -> Option<&str> {
    let tag = meta.e_tag.as_deref()?;
    let is_any = bare(tag).is_empty() || tag == "*";
    let is_usable = !is_any && !tag.contains(',') && !tag.contains(char::is_control);
    (is_usable && !tag.starts_with("W/")).then_some(tag)
}

/// A tag without quotes: listings of some stores leave them away.
fn bare(tag: &str) -> &str {
    let tag = tag.strip_prefix('"').unwrap_or(tag);
    tag.strip_suffix('"').unwrap_or(tag)
}

/// Whether both are of one version.
pub(crate) fn is_same(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    let tag = |meta| strong_tag(meta).map(bare);
    tag(one).is_some() && tag(one) == tag(other) && one.size == other.size
}

impl ObjectSource {
    /// A version that was the current one at a time; none if it has no name.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        meta: ObjectMeta,
        attributes: Option<Attributes>,
        proved: Instant,
        requests: u32,
    ) -> Option<Self> {
        let tag = strong_tag(&meta)?.into();
        let state = State {
            proved,
            attributes,
            failures: Failures::default(),
        };
        Some(Self {
            connection: connection.clone(),
            name: connection.name(&meta.location),
            meta,
            held: Held::default(),
            tag,
            requests,
            state: Mutex::new(state),
        })
    }

    /// With bytes that came with its opening.
    pub(crate) fn with_held(self, held: Held<Bytes>) -> Self {
        Self { held, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it was last known to be the current version.
    pub(crate) fn proved(&self) -> Instant {
        self.state().proved
    }

    /// It was the current version at this time; its attributes, if the answer had them.
    pub(crate) fn prove(&self, at: Instant, attributes: Option<Attributes>) {
        let mut state = self.state();
        state.proved = state.proved.max(at);
        if attributes.is_some() {
            state.attributes = attributes;
        }
    }

    /// Its attributes, if an answer had them.
    pub(crate) fn attributes(&self) -> Option<Attributes> {
        self.state().attributes.clone()
    }

    /// The number of a read of these ranges, which begins.
    pub(crate) fn begin_read(&self, ranges: &[Range<u64>]) -> u64 {
        self.state().failures.begin(ranges)
    }

    /// The error of a fetch in a range of the read of this number.
    pub(crate) fn failure(&self, range: &Range<u64>, read: u64) -> Option<Error> {
        self.state().failures.of_read(range, read)
    }

    /// Asks for a range of this version; the answer is of it.
    pub(crate) async fn get(&self, range: Range<u64>) -> Result<GetResult> {
        let asked = Instant::now();
        let answer = ask(&self.connection, &self.meta, &self.tag, range).await?;
        self.prove(asked, Some(answer.attributes.clone()));
        Ok(answer)
    }

    /// Fills a target to `end`; how far it came stands in `done`.
    async fn fill(
        &self,
        target: &mut Target,
        offset: u64,
        done: &mut usize,
        end: usize,
    ) -> Result<()> {
        let range = offset + *done as u64..offset + end as u64;
        let mut pieces = self.get(range).await?.into_stream();
        // Bytes behind the range are left.
        while *done < end
            && let Some(piece) = pieces.next().await
        {
            *done = target.copy(*done, end, &piece?);
        }
        Ok(())
    }

    /// The end of a target that begins at an offset.
    fn end(&self, target: &Target, offset: u64) -> usize {
        let left = self.meta.size.saturating_sub(offset);
        target
            .bytes()
            .min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    async fn read_range(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let end = self.end(target, offset);
        let mut done = self.held.fill(target, offset, skip, end);
        if done >= end {
            return Ok(done);
        }
        let begin = offset + done as u64;
        if let Some(number) = self.state().failures.of_fetch(begin) {
            return Err(io::Error::from_raw_os_error(number));
        }
        // A body cut short is asked for again by the engine, some times.
        let filled = self.fill(target, offset, &mut done, end).await;
        filled.map(|()| done).map_err(|error| {
            let (number, range) = (number(&error), begin..offset + end as u64);
            self.state().failures.keep(range, number, error);
            io::Error::from_raw_os_error(number)
        })
    }
}

/// Asks for a range of a version; an answer of another one is an error.
async fn ask(
    connection: &Connection,
    meta: &ObjectMeta,
    tag: &str,
    range: Range<u64>,
) -> Result<GetResult> {
    let options = GetOptions::new()
        .with_range(Some(GetRange::Bounded(range.clone())))
        .with_if_match(Some(tag));
    let answer = connection.inner.get_opts(&meta.location, options).await?;
    if !is_same(meta, &answer.meta) {
        let other = answer.meta.e_tag.as_deref().unwrap_or("none");
        return Err(Error::Precondition {
            path: meta.location.to_string(),
            source: format!("ETag {other} is not {tag}").into(),
        });
    }
    if answer.range.start != range.start {
        let why = format!("bytes from {}, not {}", answer.range.start, range.start);
        return Err(failed(why));
    }
    Ok(answer)
}

/// The number of `errno(3)` nearest to an error.
fn number(error: &Error) -> i32 {
    match error {
        Error::NotFound { .. } => libc::ENOENT,
        Error::Precondition { .. } => libc::ESTALE,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => libc::EACCES,
        _ => libc::EIO,
    }
}

impl Source for ObjectSource {
    fn key(&self) -> Key {
        let (name, version) = (self.name.clone(), self.tag.clone());
        Key::Object { name, version }
    }

    fn device(&self) -> Option<u64> {
        // Two wrappers of one bucket share its queue.
        Some(remote::number(&self.connection.inner.to_string()))
    }

    fn is_served(&self) -> bool {
        true
    }

    fn requests_max(&self) -> Option<u32> {
        Some(self.requests)
    }

    fn profile(&self) -> Option<Profile> {
        remote::profile(SERVERS)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.meta.size)
    }

    /// The driver has no thread for this, since `begin` takes every read.
    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        let end = self.end(target, offset);
        let range = offset + skip as u64..offset + end as u64;
        if range.is_empty() {
            return Ok(skip);
        }
        let (sender, answer) = sync_channel(1);
        let (connection, meta) = (self.connection.clone(), self.meta.clone());
        let tag = self.tag.clone();
        self.connection.spawn(async move {
            let bytes = async { ask(&connection, &meta, &tag, range).await?.bytes().await };
            // It fails if nothing waits any more.
            let _ = sender.send(bytes.await);
        });
        let bytes: Result<Bytes> = answer.recv().map_err(io::Error::other)?;
        let bytes = bytes.map_err(|error| io::Error::from_raw_os_error(number(&error)))?;
        Ok(target.copy(skip, end, &bytes))
    }

    fn begin(self: Arc<Self>, mut pending: Pending) -> Option<Pending> {
        let (give_up, asked) = AbortHandle::new_pair();
        pending.on_give_up(move || give_up.abort());
        let connection = self.connection.clone();
        let read = async move {
            let (offset, skip) = (pending.offset(), pending.skip());
            if let Some(target) = pending.target() {
                let read = self.read_range(target, offset, skip).await;
                pending.end(read);
            }
        };
        connection.spawn(async {
            // One that was given up is dropped, which ends it.
            let _ = Abortable::new(read, asked).await;
        });
        None
    }
}
