//! forerun-store: objects of S3, Google Cloud Storage, Azure and HTTP(S) as sources of the engine.
//!
//! Problem: an object is far away (30 ms to the first byte is common), one connection to it is slow,
//! and it can be replaced between two ranges of it.
//!
//! Mechanism: [`Client::open`] asks for size and version of an object, and gives a [`Source`] that
//! reads ranges of that version alone. How long ranges are, and how many are under way, the engine
//! decides from the costs it measures, as for any other device. A range is written into the engine's
//! memory as it arrives, so the memory of a client is a few packets a request.
//!
//! ```text
//! s3://bucket/key     -> head: 1 GB, ETag "a1"
//! read 0..128 KiB     -> GET bytes 0..6 MB and 6..12 MB ahead, each If-Match "a1"
//! another ETag        -> ESTALE to the reader, and nothing of the new version
//! ```
//!
//! Addresses: `s3://bucket/key`, `gs://bucket/key`, `az://container/key`, `https://host/path` and
//! `http://host/path`. [`Client::list`] gives the objects and folders below one, page by page,
//! [`Client::tree`] all of them as a tree.
//! Credentials: see [`credentials`].
//!
//! [`Source`]: forerun_io::source::Source

#![forbid(unsafe_code)]

mod address;
mod attempts;
mod aws;
mod azure;
mod connector;
pub mod credentials;
mod failure;
mod google;
mod kept;
mod listed;
mod listing;
mod named_file;
mod nameless;
mod names;
mod object;
mod pages;
mod part;
mod service;
mod siblings;
mod store;
mod tree;
mod web;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use object_store::{GetOptions, ObjectStoreExt};
use tokio::runtime::{Handle, Runtime};

pub use failure::StoreError;
pub use forerun_io::source::remote::Limits;
pub use listing::Listing;
pub use object::Object;
pub use part::Part;
pub use tree::ObjectTree;

use address::{Address, Variables};
use attempts::{Attempts, Fault};
use object::Version;
use pages::Pages;
use store::{Connected, Store};

/// For a question about an object or a folder, instead of a range's two minutes: nothing was read yet, and an
/// address without a server is found out.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most threads that move bytes from sockets to memory. A GB took 1.3 s of a processor over loopback, so four move the
/// 3 GB/s of a network of 25 Gbit/s.
const WORKERS_MAX: usize = 4;

/// Connections to stores, shared by all objects opened with it. Its threads end with the last of them.
#[derive(Clone, Debug)]
pub struct Client {
    threads: Handle,
    _ends: Arc<Threads>,
    limits: Limits,
    variables: Arc<Variables>,
    /// By the part of their addresses before the key.
    stores: Arc<Mutex<HashMap<String, Arc<Store>>>>,
    pages: Arc<Pages>,
}

/// How a bucket of S3 is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// In place of AWS's own.
    pub url: Option<String>,
    /// Where it is, if that is set.
    pub region: Option<String>,
    /// Whether requests are signed.
    pub is_signed: bool,
}

/// The threads of a client. They end beside the last of its objects, which may end on one of them.
#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Client {
    /// No connection yet. Credentials are those of the process.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn new(limits: Limits) -> Result<Self, StoreError> {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::with_variables(limits, std::env::vars_os().filter_map(text))
    }

    /// The same, with requests that are not signed, whatever credentials there are: for public objects.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn anonymous(limits: Limits) -> Result<Self, StoreError> {
        let mut client = Self::new(limits)?;
        let variables = Arc::make_mut(&mut client.variables);
        variables.insert(credentials::ANONYMOUS.to_owned(), "1".to_owned());
        Ok(client)
    }

    /// The same, with variables in place of the environment's.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn with_variables(
        limits: Limits,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, StoreError> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        // They wait for sockets, and copy bytes as they come.
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let runtime = builder.worker_threads(processors.min(WORKERS_MAX));
        let runtime = runtime.thread_name("forerun-store");
        // They look names of hosts up, and files of credentials.
        let runtime = runtime.max_blocking_threads(8);
        let runtime = runtime.enable_all().build().map_err(StoreError::Threads)?;
        Ok(Self {
            threads: runtime.handle().clone(),
            _ends: Arc::new(Threads(Some(runtime))),
            limits,
            variables: Arc::new(variables.into_iter().collect()),
            stores: Arc::default(),
            pages: Arc::default(),
        })
    }

    /// Opens the version of an object that is there now.
    ///
    /// # Errors
    /// The address is none, the store cannot be reached or refuses, or it gives the object neither a
    /// strong ETag nor a version. Each names the address.
    ///
    /// # Examples
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use forerun_core::{Bytes, preset};
    /// use forerun_io::{Config, Driver};
    ///
    /// let client = forerun_store::Client::new(forerun_store::Limits::default())?;
    /// let driver = Driver::new(Config::new(preset::default().settings(Bytes(64 << 20))?))?;
    /// let reader = driver.open_source(Arc::new(client.open("s3://bucket/key")?))?;
    /// let mut begin = [0; 4096];
    /// let bytes = reader.read_at(&mut begin, 0)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(&self, url: &str) -> Result<Object, StoreError> {
        let address = Address::of(url)?;
        let store = self.store(&address)?;
        let opened = |with: Arc<Connected>| {
            let (key, web) = (&address.key, address.web.clone());
            async move {
                match web {
                    Some(web) => web::opened(with, web).await,
                    None => with.objects.head(key).await,
                }
            }
        };
        let opened = self.ask(&store, 1, opened);
        let meta = opened.map_err(|error| {
            let error = self.explained(&store, &address, error);
            StoreError::object(&address.url, &store, error)
        })?;
        let version = Version::of_opened(&meta).or_else(|| {
            // No range of an empty object is asked for.
            (address.web.is_some() && meta.size == 0).then(|| Version::of_text(""))
        });
        let version = version.ok_or_else(|| {
            let why = "neither a strong ETag nor a version: its ranges could be of two objects";
            StoreError::address(url, why)
        })?;
        Ok(Object::told(self, store, &address, &meta, version))
    }

    /// Opens the version of an object that is there now, with a part of it: one round trip for both. An object whose
    /// part cannot be had alone, as an empty one, is opened without it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_part(&self, url: &str, part: Part) -> Result<Object, StoreError> {
        let address = Address::of(url)?;
        if address.web.is_some() || part == Part::First(0) || part == Part::Last(0) {
            return self.open(url);
        }
        let store = self.store(&address)?;
        let opened = |with: Arc<Connected>| {
            let key = &address.key;
            async move { part::opened(&with, key, part).await }
        };
        let opened = self.ask(&store, 1, opened);
        // An answer to GET has its reason in it: no other question tells more.
        let opened = opened.map_err(|error| StoreError::object(&address.url, &store, error))?;
        let Some((meta, held)) = opened else {
            return self.open(url);
        };
        match Version::of_opened(&meta) {
            Some(version) => {
                Ok(Object::told(self, store, &address, &meta, version).with_held(held))
            }
            None => self.open(url),
        }
    }

    /// Opens the version of an object that a listing told ([`Stat::version`]), without a question to its store.
    ///
    /// # Errors
    /// The address is none.
    ///
    /// [`Stat::version`]: forerun_io::source::tree::Stat
    pub fn open_version(&self, url: &str, bytes: u64, version: &str) -> Result<Object, StoreError> {
        let address = Address::of(url)?;
        let store = self.store(&address)?;
        Ok(Object::new(
            self,
            store,
            &address,
            bytes,
            Version::of_text(version),
        ))
    }

    /// The same with the ETag that another client was told, which may have quotes or not.
    ///
    /// # Errors
    /// The address is none, or the ETag is none or a weak one.
    pub fn open_tagged(&self, url: &str, bytes: u64, e_tag: &str) -> Result<Object, StoreError> {
        let address = Address::of(url)?;
        let version = Version::of_tag(e_tag).ok_or_else(|| {
            let why = format!("ETag {e_tag:?}: must be a strong one, and not empty");
            StoreError::address(url, why)
        })?;
        let store = self.store(&address)?;
        Ok(Object::new(self, store, &address, bytes, version))
    }

    /// How a bucket of S3 is reached, for other programs that are to reach it, too.
    ///
    /// # Errors
    /// The address is none of S3, or credentials are there in part.
    pub fn endpoint(&self, url: &str) -> Result<Endpoint, StoreError> {
        let address = Address::of_folder(url)?;
        address.endpoint(&self.variables)
    }

    /// The objects and folders directly below an address, by their names there.
    ///
    /// # Errors
    /// The address is none, or the store has no listings (HTTP).
    pub fn list(&self, url: &str) -> Result<Listing, StoreError> {
        let address = Address::of_folder(url)?;
        let store = self.store(&address)?;
        Listing::new(self, &store, address)
    }

    /// The objects below an address, as folders and files: for a mount.
    ///
    /// # Errors
    /// The address is none, its store has no listings (HTTP), cannot be reached or refuses, or has nothing
    /// below it. Each names the address.
    pub fn tree(&self, url: &str) -> Result<ObjectTree, StoreError> {
        let address = Address::of_folder(url)?;
        ObjectTree::new(self, self.store(&address)?, address)
    }

    /// The reason why an object could not be opened: an answer to HEAD has no text, and one to GET has.
    fn explained(&self, store: &Arc<Store>, address: &Address, error: io::Error) -> io::Error {
        // A bucket that answered is there, and its object is not.
        let is_told = error.kind() == io::ErrorKind::NotFound && store.is_reached();
        if is_told
            || !failure::is_answer(&error)
            || address.web.is_some()
            || failure::is_explained(&error)
        {
            return error;
        }
        let first = |with: Arc<Connected>| {
            let options = GetOptions::new().with_range(Some(0..1));
            async move { with.objects.get_opts(&address.key, options).await.map(drop) }
        };
        match self.ask(store, 1, first) {
            Err(said) if failure::is_explained(&said) => said,
            _ => error,
        }
    }

    fn store(&self, address: &Address) -> Result<Arc<Store>, StoreError> {
        let stores = || self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores().get(&address.base) {
            return Ok(store.clone());
        }
        // Without the lock: files of credentials may lie on a server that does not answer, and other stores need none.
        let store = Arc::new(Store::new(address, &self.limits, &self.variables)?);
        let mut stores = stores();
        Ok(stores.entry(address.base.clone()).or_insert(store).clone())
    }

    /// Waits for the [answer](asked) to a question of so many requests.
    fn ask<T, F>(
        &self,
        store: &Arc<Store>,
        requests: u32,
        asks: impl Fn(Arc<Connected>) -> F + Send + Sync,
    ) -> io::Result<T>
    where
        T: Send,
        F: Future<Output = Result<T, object_store::Error>> + Send,
    {
        self.run(asked(store, &self.limits, requests, asks))
    }

    /// Runs a request here. One that panics has failed, and its thread goes on.
    fn run<T: Send>(&self, request: impl Future<Output = io::Result<T>> + Send) -> io::Result<T> {
        let run = || {
            let run = || self.threads.block_on(request);
            panic::catch_unwind(AssertUnwindSafe(run))
                .unwrap_or_else(|_| Err(io::Error::other("the request panicked")))
        };
        // A thread of a runtime, also of the caller's own one, must not wait for another runtime.
        if Handle::try_current().is_err() {
            return run();
        }
        thread::scope(|scope| {
            let thread = thread::Builder::new().spawn_scoped(scope, run)?;
            let panicked = |_| Err(io::Error::other("the request panicked"));
            thread.join().unwrap_or_else(panicked)
        })
    }
}

/// Asks until there is an answer, a refusal, or [`PATIENCE`] is over. A question is so many requests side by side.
async fn asked<T, F>(
    store: &Arc<Store>,
    limits: &Limits,
    requests: u32,
    asks: impl Fn(Arc<Connected>) -> F,
) -> io::Result<T>
where
    F: Future<Output = Result<T, object_store::Error>>,
{
    let deadline = limits.deadline.min(PATIENCE);
    let mut attempts = Attempts::new(&Limits {
        deadline,
        ..*limits
    });
    loop {
        let with = store.current();
        let attempt = async {
            let asked = store.under_way(requests, || asks(with.clone())).await;
            asked.map_err(|error| Fault::of(&error))
        };
        match attempts.make(attempt).await {
            Ok(answer) => {
                store.was_reached();
                with.was_taken();
                return Ok(answer);
            }
            Err(fault) => attempts.pause(fault, store, &with).await?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_panics_has_failed_and_the_next_one_goes_on() {
        let client = Client::with_variables(Limits::default(), []).unwrap();
        for _ in 0..3 {
            let failed: io::Result<()> = client.run(async { panic!("in a test") });
            assert!(failed.unwrap_err().to_string().contains("panicked"));
            assert_eq!(client.run(async { Ok(1) }).unwrap(), 1);
        }
    }

    #[test]
    fn a_program_with_a_runtime_waits_for_a_request_on_a_thread_of_it() {
        let client = Client::with_variables(Limits::default(), []).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let answer = runtime
            .unwrap()
            .block_on(async { client.run(async { Ok(1) }) });
        assert_eq!(answer.unwrap(), 1);
    }

    #[test]
    fn a_version_that_is_known_is_opened_without_a_request_and_a_weak_one_refused_by_name() {
        let variables = [("AWS_ENDPOINT_URL", "http://127.0.0.1:1")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let client = Client::with_variables(Limits::default(), variables).unwrap();
        for tag in ["a1", "\"a1\""] {
            let object = client.open_tagged("s3://b/k", 5, tag).unwrap();
            let shown = format!("{object:?}");
            assert!(shown.contains("\"a1\""), "{shown}");
        }
        for tag in ["", "\"\"", "W/\"a1\"", "a\n1"] {
            let refused = client.open_tagged("s3://b/k", 5, tag).unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains(&format!("{tag:?}")), "{refused}");
        }
        assert!(client.open_tagged("s3://b", 5, "a1").is_err());
    }
}
