//! The store that programs see: which version a request is about, and whether its answer may be given.
//!
//! Problem: a request names a path, and means the object that is there now; the engine reads one version, and bytes of
//! its memory may be of an older one. Mechanism: a read takes the version that was told last, and asks for missing
//! ranges with `If-Match`. Its bytes are given if the version was proved to be the current one after the begin of the
//! read less [`fresh_for`](PrefetchStore::fresh_for); ranges that came prove it, and where none had to come, HEAD does.
//! A version that turned out to be replaced is read again from the beginning, in the new one.
//!
//! ```text
//! get_ranges   version known?  --no--> GET of the first range tells it
//!                   | yes
//!              read by the engine  --another version--> forget it, again
//!                   | bytes
//!              proved lately?  --no--> HEAD: the same?  --no--> again
//!                   | yes                  | yes
//!                 bytes <------------------+
//! ```

use std::fmt;
use std::io;
use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use forerun_io::Driver;
use forerun_io::source::remote::Limits;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, RenameOptions, Result,
};

use crate::connection::{Connection, Fetches, Inner};
use crate::driver_of_task::DriverOfTask;
use crate::object::Object;
use crate::opening;
use crate::table::{Known, Table};
use crate::upload::{EndsWritten, Upload};

/// As long as a mount believes a name.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// An object that changes faster than it can be read is an error, not a loop.
const CHANGES_MAX: u32 = 16;

/// Ranges up to this length are one piece of an answer: a chunk of a column, which its reader takes as a whole.
const WHOLE_MAX: u64 = 8 << 20;

/// Pieces of a longer range that are fetched before its reader takes them: with 32 MiB, 400 MB/s for 80 ms.
const AHEAD: usize = 4;

/// A piece of a stream behind the first, of which the engine decides how far it is fetched ahead: a request.
const STREAMED: u64 = 1 << 20;

/// An [`ObjectStore`] around another one, whose reads are answered by the engine of a [`Driver`].
///
/// - **One version an answer.** The bytes of a GET, and of all ranges of one [`get_ranges`](ObjectStore::get_ranges),
///   are of one version of the object. If it is replaced meanwhile they are read again in the new one; a stream that was
///   begun ends with [`Error::Precondition`] instead.
/// - **How old an answer may be.** A version is believed to be the current one for [a second](Self::fresh_for) after it
///   was. Writes through this store and its clones are seen at once.
/// - **Errors** are those of the inner store, and come after one request: attempts are its own. A fetch ahead that
///   fails is not shown.
/// - **Passed through**, and not kept: objects without a strong ETag; a GET of a `version` or with conditions other
///   than `if_match`; ranges that the object does not have; writes, copies, deletes and listings. The versions that
///   answers and listings tell are noted, 10,000 at most.
/// - **Extensions** of a GET that is answered by the engine do not reach the inner store.
/// - **Memory** is the driver's; answers take their own, and a stream of a bounded range at most 32 MiB ahead.
///
/// Clones are the same store. Two wrappers of one store have no version and no block in common.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use forerun_core::{Bytes, preset};
/// use forerun_io::{Config, Driver};
/// use forerun_object_store::PrefetchStore;
/// use object_store::memory::InMemory;
/// use object_store::{ObjectStore, ObjectStoreExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let driver = Driver::new(Config::new(preset::default().settings(Bytes(64 << 20))?))?;
/// let store: Arc<dyn ObjectStore> = Arc::new(PrefetchStore::new(InMemory::new(), Arc::new(driver))?);
/// store.put(&"a".into(), "read ahead".into()).await?;
/// assert_eq!(store.get_range(&"a".into(), 5..10).await?, "ahead");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PrefetchStore {
    connection: Arc<Connection>,
    /// Before the driver, whose end waits for fetches.
    _fetches: Arc<Fetches>,
    driver: Arc<Driver>,
    table: Arc<Table>,
    fresh_for: Duration,
    requests: u32,
}

impl PrefetchStore {
    /// Wraps a store. Requests run on threads of its own, and need no runtime of the program.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn new(inner: impl ObjectStore, driver: Arc<Driver>) -> io::Result<Self> {
        let connection = Arc::new(Connection::new(Arc::new(inner))?);
        let requests = Limits::within(driver.memory_limit()).requests;
        Ok(Self {
            table: Arc::new(Table::new(connection.clone(), requests)),
            _fetches: Arc::new(Fetches(connection.clone())),
            connection,
            driver,
            fresh_for: FRESH_FOR,
            requests,
        })
    }

    /// With versions believed for so long: a second by default. With zero each answer was the current version when it
    /// was asked for, which costs a HEAD where all bytes are in memory. With [`Duration::MAX`] objects are taken to
    /// never change under their names, as files of Delta, Iceberg and Lance.
    #[must_use]
    pub fn fresh_for(self, fresh_for: Duration) -> Self {
        Self { fresh_for, ..self }
    }

    /// The driver whose engine answers.
    #[must_use]
    pub fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// The version that a read is about; none if the request has to be made as it is.
    async fn version(&self, location: &Path, options: &GetOptions) -> Result<Option<Arc<Object>>> {
        match self.table.find(location) {
            Some(Known::Unnamed) => return Ok(None),
            Some(Known::Version(object)) => {
                let condition = options.if_match.as_deref();
                let is_met = condition.is_none_or(|tag| Some(tag) == object.tag());
                return Ok(is_met.then_some(object));
            }
            Some(Known::Written(_)) | None => {}
        }
        let asked = Instant::now();
        let (connection, table) = (self.connection.clone(), self.table.clone());
        let (path, options) = (location.clone(), options.clone());
        let opened = async move { opening::open(&connection, &table, &path, options).await };
        let Some(source) = self.connection.run(opened).await? else {
            return Ok(None);
        };
        let object = Arc::new(Object::new(Arc::new(source)));
        self.table
            .insert(location, Known::Version(object.clone()), asked);
        Ok(Some(object))
    }

    /// The version of another attempt after this one, which turned out to be replaced; none if the store refuses to name
    /// the one that is there.
    fn is_named(&self, object: &Object, refused: Option<&str>) -> bool {
        let is_named = refused.is_none() || object.tag() != refused;
        if !is_named {
            let path = &object.source.meta.location;
            self.table.insert(path, Known::Unnamed, Instant::now());
        }
        is_named
    }

    /// The outcome of a read that began then; none if its version was replaced.
    async fn judged<T>(
        &self,
        object: &Arc<Object>,
        read: Result<T>,
        begun: Instant,
    ) -> Result<Option<T>> {
        object.source.held.clear();
        match read {
            Ok(read) => Ok(self.is_current(object, begun).await?.then_some(read)),
            Err(Error::Precondition { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a version may answer a read that began then.
    async fn is_current(&self, object: &Arc<Object>, begun: Instant) -> Result<bool> {
        let until = object.source.proved().checked_add(self.fresh_for);
        if until.is_none_or(|until| until >= begun) {
            return Ok(true);
        }
        self.look(object).await
    }

    /// Asks whether a version is the current one.
    async fn look(&self, object: &Arc<Object>) -> Result<bool> {
        let (asked, location) = (Instant::now(), object.source.meta.location.clone());
        let head = GetOptions::new().with_head(true);
        let look = |inner: Inner| async move { inner.get_opts(&location, head).await };
        let answer = self.connection.ask(look).await.inspect_err(|error| {
            if matches!(error, Error::NotFound { .. }) {
                self.table.gone(object);
            }
        })?;
        let is_current = object.is_version(&answer.meta);
        if is_current {
            object.source.prove(asked, Some(answer.attributes.clone()));
        }
        self.table
            .learn(&answer.meta, asked, Some(answer.attributes));
        Ok(is_current)
    }

    /// The bytes of ranges of a version.
    async fn read(
        &self,
        object: &Arc<Object>,
        ranges: Vec<Range<u64>>,
        is_announced: bool,
    ) -> Result<Vec<Bytes>> {
        self.table.opens(object);
        let (version, at_once) = (object.clone(), self.requests);
        let driver = DriverOfTask::new(&self.driver);
        let read = async move {
            let read = version.read(&driver, ranges, at_once as usize, is_announced);
            read.await
        };
        self.connection.run(read).await.inspect_err(|error| {
            // Also one of a stream that its reader leaves there.
            if matches!(error, Error::Precondition { .. } | Error::NotFound { .. }) {
                self.table.gone(object);
            }
        })
    }

    /// The bytes of a range in their order. Of a bounded one all is asked for; of another one the engine decides how
    /// much is fetched ahead of its reader.
    fn stream(
        &self,
        object: &Arc<Object>,
        range: Range<u64>,
        is_bounded: bool,
    ) -> BoxStream<'static, Result<Bytes>> {
        let is_whole = is_bounded || range.end - range.start <= WHOLE_MAX;
        let (step, ahead) = match is_whole {
            true => (WHOLE_MAX, AHEAD),
            false => (STREAMED, 1),
        };
        let first = range.start..range.end.min(range.start + step.max(opening::FIRST_MAX));
        let (store, object, rest) = (self.clone(), object.clone(), first.end..range.end);
        let end = rest.end;
        let steps = rest.step_by(step as usize);
        let steps = steps.map(move |begin| begin..end.min(begin + step));
        let pieces = stream::iter(iter::once(first).chain(steps)).map(move |range| {
            let (store, object) = (store.clone(), object.clone());
            async move {
                let read = store.read(&object, vec![range], is_whole).await?;
                Ok(read.into_iter().next().unwrap_or_default())
            }
        });
        pieces.buffered(ahead).boxed()
    }

    /// A GET of a version; nothing if it was replaced.
    async fn get(
        &self,
        object: &Arc<Object>,
        range: Range<u64>,
        is_bounded: bool,
        begun: Instant,
    ) -> Result<Option<GetResult>> {
        let mut pieces = self.stream(object, range.clone(), is_bounded);
        let first = pieces.next().await.unwrap_or_else(|| Ok(Bytes::new()));
        let Some(first) = self.judged(object, first, begun).await? else {
            return Ok(None);
        };
        // Of a version that a listing told, whose bytes were all there.
        if object.source.attributes().is_none() && !self.look(object).await? {
            return Ok(None);
        }
        let first = stream::iter([Ok(first)]);
        Ok(Some(GetResult {
            payload: GetResultPayload::Stream(first.chain(pieces).boxed()),
            meta: object.source.meta.clone(),
            range,
            attributes: object.source.attributes().unwrap_or_default(),
        }))
    }

    /// Makes the request as it is.
    async fn pass(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (asked, is_of_now) = (Instant::now(), options.version.is_none());
        let path = location.clone();
        let get = |inner: Inner| async move { inner.get_opts(&path, options).await };
        let mut answer = self.connection.ask(get).await?;
        if is_of_now {
            let attributes = Some(answer.attributes.clone());
            self.table.learn(&answer.meta, asked, attributes);
        }
        // The rest of a body that was cut short is one more request.
        if let GetResultPayload::Stream(body) = answer.payload {
            answer.payload = GetResultPayload::Stream(self.connection.stream(|_| body));
        }
        Ok(answer)
    }

    /// Makes a request for ranges as it is.
    async fn pass_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (path, ranges) = (location.clone(), ranges.to_vec());
        let get = |inner: Inner| async move { inner.get_ranges(&path, &ranges).await };
        self.connection.ask(get).await
    }

    /// Writes these paths. One that its caller lets go of may be carried out until its task has ended.
    async fn write<T: Send + 'static, F>(
        &self,
        paths: &[&Path],
        write: impl FnOnce(Inner) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let ends = |path: &&Path| EndsWritten::new(&self.table, path);
        let ends = || paths.iter().map(ends).collect::<Vec<_>>();
        let (_here, there) = (ends(), ends());
        let write = write(self.connection.inner.clone());
        let write = async move {
            let _there = there;
            write.await
        };
        self.connection.run(write).await
    }

    /// Learns from a listing.
    fn listed(
        &self,
        list: impl FnOnce(&dyn ObjectStore) -> BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (table, asked) = (self.table.clone(), Instant::now());
        let listing = self.connection.stream(list);
        listing
            .inspect_ok(move |meta| table.learn(meta, asked, None))
            .boxed()
    }
}

/// Whether a request is one for the current version alone.
fn is_of_current(options: &GetOptions) -> bool {
    let has_condition = options.if_none_match.is_some()
        || options.if_modified_since.is_some()
        || options.if_unmodified_since.is_some();
    !(options.head || has_condition || options.version.is_some())
}

/// The bytes of a range that are there; none if the inner store has to say why not.
fn within(range: Option<&GetRange>, size: u64) -> Option<Range<u64>> {
    let range = match range {
        None => 0..size,
        Some(range) => range.as_range(size).ok()?,
    };
    (!range.is_empty()).then_some(range)
}

fn keeps_changing(location: &Path) -> Error {
    Error::Precondition {
        path: location.to_string(),
        source: "the object keeps changing while it is read".into(),
    }
}

impl fmt::Display for PrefetchStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrefetchStore({})", self.connection.inner)
    }
}

#[async_trait]
impl ObjectStore for PrefetchStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let path = location.clone();
        let put = |inner: Inner| async move { inner.put_opts(&path, payload, opts).await };
        self.write(&[location], put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let path = location.clone();
        let begin = |inner: Inner| async move { inner.put_multipart_opts(&path, opts).await };
        Ok(Box::new(Upload {
            inner: self.connection.ask(begin).await?,
            connection: self.connection.clone(),
            table: self.table.clone(),
            path: location.clone(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if !is_of_current(&options) {
            return self.pass(location, options).await;
        }
        let (begun, mut refused) = (Instant::now(), None);
        for _ in 0..CHANGES_MAX {
            let Some(object) = self.version(location, &options).await? else {
                return self.pass(location, options).await;
            };
            let range = within(options.range.as_ref(), object.source.meta.size);
            let is_bounded = matches!(options.range, Some(GetRange::Bounded(_)));
            let Some(range) = range.filter(|_| self.is_named(&object, refused.as_deref())) else {
                return self.pass(location, options).await;
            };
            if let Some(answer) = self.get(&object, range, is_bounded, begun).await? {
                return Ok(answer);
            }
            refused = object.tag().map(str::to_owned);
        }
        Err(keeps_changing(location))
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(first) = ranges.first().cloned() else {
            return Ok(Vec::new());
        };
        let options = GetOptions::new().with_range(Some(first));
        let (begun, mut refused) = (Instant::now(), None);
        for _ in 0..CHANGES_MAX {
            let Some(object) = self.version(location, &options).await? else {
                return self.pass_ranges(location, ranges).await;
            };
            let ranges_of = ranges.iter().map(|range| {
                within(
                    Some(&GetRange::Bounded(range.clone())),
                    object.source.meta.size,
                )
            });
            let there: Option<Vec<Range<u64>>> = ranges_of.collect();
            let Some(there) = there.filter(|_| self.is_named(&object, refused.as_deref())) else {
                return self.pass_ranges(location, ranges).await;
            };
            let read = self.read(&object, there, true).await;
            if let Some(bytes) = self.judged(&object, read, begun).await? {
                return Ok(bytes);
            }
            refused = object.tag().map(str::to_owned);
        }
        Err(keeps_changing(location))
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (before, after) = (self.table.clone(), self.table.clone());
        // A delete that fails may have been carried out.
        let locations = Connection::of_caller(locations)
            .inspect_ok(move |path| before.written(path))
            .boxed();
        let deleted = self
            .connection
            .stream(|inner| inner.delete_stream(locations));
        deleted.inspect_ok(move |path| after.written(path)).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(|inner| inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(|inner| inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let (asked, prefix) = (Instant::now(), prefix.cloned());
        let list = |inner: Inner| async move { inner.list_with_delimiter(prefix.as_ref()).await };
        let listing = self.connection.ask(list).await?;
        for meta in &listing.objects {
            self.table.learn(meta, asked, None);
        }
        Ok(listing)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (source, target) = (from.clone(), to.clone());
        let copy = |inner: Inner| async move { inner.copy_opts(&source, &target, options).await };
        self.write(&[to], copy).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let (source, target) = (from.clone(), to.clone());
        let rename =
            |inner: Inner| async move { inner.rename_opts(&source, &target, options).await };
        self.write(&[from, to], rename).await
    }
}
