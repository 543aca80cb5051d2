//! A store in memory that notes its requests, and answers, delays or fails each as a test sets it.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use forerun_core::{Bytes, preset};
use forerun_io::{Config, Driver};
use forerun_object_store::PrefetchStore;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result, UploadPart,
};
use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

/// The treatment of a request for bytes.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Pass,
    Fail(Kind),
    /// Fails once this is true.
    FailOnce(Kind, watch::Receiver<bool>),
    Hang,
    /// Answers once so many requests for bytes have come.
    Until(usize),
    /// The object is replaced before the answer.
    Replace(PutPayload),
    /// The answer comes without regard to conditions.
    Unconditional,
    /// The answer has this ETag, and no condition is met.
    Tagged(Option<&'static str>),
}

/// A kind of error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    NotFound,
    Precondition,
    PermissionDenied,
    Unauthenticated,
    NotSupported,
    NotModified,
    /// Of a server that gives no ranges, or knows no HEAD: it has words alone.
    Says(&'static str),
    Other,
}

impl Kind {
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::NotFound { .. } => Self::NotFound,
            Error::Precondition { .. } => Self::Precondition,
            Error::PermissionDenied { .. } => Self::PermissionDenied,
            Error::Unauthenticated { .. } => Self::Unauthenticated,
            Error::NotSupported { .. } => Self::NotSupported,
            Error::NotModified { .. } => Self::NotModified,
            _ => Self::Other,
        }
    }

    fn error(self, path: &Path) -> Error {
        let (path, source) = (path.to_string(), "said by the probe".into());
        match self {
            Self::NotFound => Error::NotFound { path, source },
            Self::Precondition => Error::Precondition { path, source },
            Self::PermissionDenied => Error::PermissionDenied { path, source },
            Self::Unauthenticated => Error::Unauthenticated { path, source },
            Self::NotSupported => Error::NotSupported { source },
            Self::NotModified => Error::NotModified { path, source },
            Self::Says(words) => Error::Generic {
                store: "probe",
                source: words.into(),
            },
            Self::Other => Error::Generic {
                store: "probe",
                source,
            },
        }
    }
}

/// A request that came.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Seen {
    pub(crate) path: Path,
    pub(crate) range: Option<GetRange>,
    pub(crate) head: bool,
}

type Rule = Box<dyn FnMut(&Seen) -> Act + Send>;

struct State {
    seen: Vec<Seen>,
    rule: Rule,
    /// In which something of the store was called or polled; none is outside of all.
    runtimes: HashSet<Option<Id>>,
}

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) inner: Arc<InMemory>,
    state: Arc<Mutex<State>>,
    came: Arc<watch::Sender<usize>>,
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probe")
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probe")
    }
}

impl Probe {
    pub(crate) fn new() -> Self {
        let rule: Rule = Box::new(|_| Act::Pass);
        let state = State {
            seen: Vec::new(),
            rule,
            runtimes: HashSet::new(),
        };
        Self {
            inner: Arc::default(),
            state: Arc::new(Mutex::new(state)),
            came: Arc::new(watch::Sender::new(0)),
        }
    }

    /// With an object.
    pub(crate) async fn with(path: &str, content: Vec<u8>) -> Self {
        let probe = Self::new();
        probe.inner.put(&path.into(), content.into()).await.unwrap();
        probe
    }

    /// From now on this is done with requests for bytes, HEAD too.
    pub(crate) fn rule(&self, rule: impl FnMut(&Seen) -> Act + Send + 'static) {
        self.state.lock().unwrap().rule = Box::new(rule);
    }

    /// The requests that came since the last call.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        self.came.send_replace(0);
        std::mem::take(&mut self.state.lock().unwrap().seen)
    }

    /// Whether no request came since then.
    pub(crate) fn is_unasked(&self) -> bool {
        self.state.lock().unwrap().seen.is_empty()
    }

    /// The runtimes in which something of the store was called or polled.
    pub(crate) fn runtimes(&self) -> HashSet<Option<Id>> {
        self.state.lock().unwrap().runtimes.clone()
    }

    fn note_runtime(&self) {
        let runtime = Handle::try_current().ok().map(|runtime| runtime.id());
        self.state.lock().unwrap().runtimes.insert(runtime);
    }

    /// A stream whose polls note their runtimes.
    fn noted<T: 'static>(&self, mut inner: BoxStream<'static, T>) -> BoxStream<'static, T> {
        self.note_runtime();
        let probe = self.clone();
        let noted = stream::poll_fn(move |context| {
            probe.note_runtime();
            inner.poll_next_unpin(context)
        });
        noted.boxed()
    }

    fn note(&self, seen: Seen) -> Act {
        let mut state = self.state.lock().unwrap();
        let act = (state.rule)(&seen);
        state.seen.push(seen);
        drop(state);
        self.came.send_modify(|came| *came += 1);
        act
    }

    async fn tagged(
        &self,
        path: &Path,
        options: GetOptions,
        tag: Option<&str>,
    ) -> Result<GetResult> {
        if options.if_match.is_some() {
            return Err(Kind::Precondition.error(path));
        }
        let mut answer = self.inner.get_opts(path, options).await?;
        answer.meta.e_tag = tag.map(str::to_owned);
        Ok(answer)
    }
}

/// How many requests were HEADs, and how many bytes the others were for.
pub(crate) fn counted(seen: &[Seen], size: u64) -> (usize, usize, u64) {
    let heads = seen.iter().filter(|seen| seen.head).count();
    let bytes = seen.iter().filter(|seen| !seen.head).map(|seen| {
        let range = seen
            .range
            .as_ref()
            .map_or(0..size, |range| range.as_range(size).unwrap());
        range.end - range.start
    });
    (heads, seen.len() - heads, bytes.sum())
}

#[async_trait]
impl ObjectStore for Probe {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.note_runtime();
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.note_runtime();
        let inner = self.inner.put_multipart_opts(location, opts).await?;
        let probe = self.clone();
        Ok(Box::new(Noted { inner, probe }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (path, range, head) = (location.clone(), options.range.clone(), options.head);
        self.note_runtime();
        let answer = match self.note(Seen { path, range, head }) {
            Act::Pass => self.inner.get_opts(location, options).await,
            Act::Fail(kind) => Err(kind.error(location)),
            Act::FailOnce(kind, mut is_due) => {
                is_due.wait_for(|is_due| *is_due).await.unwrap();
                Err(kind.error(location))
            }
            Act::Hang => std::future::pending().await,
            Act::Until(many) => {
                let mut came = self.came.subscribe();
                came.wait_for(|came| *came >= many).await.unwrap();
                self.inner.get_opts(location, options).await
            }
            Act::Replace(payload) => {
                self.inner.put(location, payload).await?;
                self.inner.get_opts(location, options).await
            }
            Act::Unconditional => {
                let if_match = None;
                let options = GetOptions {
                    if_match,
                    ..options
                };
                self.inner.get_opts(location, options).await
            }
            Act::Tagged(tag) => self.tagged(location, options, tag).await,
        };
        let mut answer = answer?;
        if let GetResultPayload::Stream(body) = answer.payload {
            answer.payload = GetResultPayload::Stream(self.noted(body));
        }
        Ok(answer)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.noted(self.inner.delete_stream(locations))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.noted(self.inner.list(prefix))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.note_runtime();
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.note_runtime();
        self.inner.copy_opts(from, to, options).await
    }
}

/// An upload whose calls note their runtimes.
#[derive(Debug)]
struct Noted {
    inner: Box<dyn MultipartUpload>,
    probe: Probe,
}

#[async_trait]
impl MultipartUpload for Noted {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.probe.note_runtime();
        let (part, probe) = (self.inner.put_part(data), self.probe.clone());
        Box::pin(async move {
            probe.note_runtime();
            part.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.probe.note_runtime();
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.probe.note_runtime();
        self.inner.abort().await
    }
}

/// A store of whose batches each range is a GET, as where none other is implemented.
#[derive(Clone, Debug)]
pub(crate) struct OneByOne(pub(crate) Arc<dyn ObjectStore>);

impl fmt::Display for OneByOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for OneByOne {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.0.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

/// An engine with so much memory.
pub(crate) fn driver(memory: u64) -> Arc<Driver> {
    let settings = preset::default().settings(Bytes(memory)).unwrap();
    Arc::new(Driver::new(Config::new(settings)).unwrap())
}

/// The store around a probe.
pub(crate) fn around(probe: &Probe) -> PrefetchStore {
    PrefetchStore::new(probe.clone(), driver(64 << 20)).unwrap()
}

/// Bytes by which a place is known.
pub(crate) fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let byte = |at: usize| {
        let mixed = (at as u64 / 8)
            .wrapping_add(seed)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.to_le_bytes()[at % 8] ^ (mixed >> 32) as u8
    };
    (0..bytes).map(byte).collect()
}

/// A part of some bytes.
pub(crate) fn part(bytes: &[u8], range: &Range<u64>) -> Vec<u8> {
    let end = (range.end as usize).min(bytes.len());
    bytes[range.start as usize..end].to_vec()
}
