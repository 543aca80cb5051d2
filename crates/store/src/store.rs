//! A bucket, container or host, and the connections to it.
//!
//! Problem: credentials in files are replaced while a mount or a program runs, some every hour.
//!
//! Mechanism: connections are made with the credentials of one moment. Their files are looked at beside a request,
//! once a second, and after a refusal before it is told; if one has changed, requests from then on go over new
//! connections, and the refused one once more. So they do where the store answered with keys of a source and refuses
//! those: a session can end before its time. The source is asked again once a minute, and its keys are used if they are
//! other ones.
//!
//! ```text
//! GET, keys A   403   the file has keys B   GET, keys B   206
//! GET, keys B   403   unchanged             EACCES, and a line of the log with the source of the keys
//! GET, keys C   400   STS is asked again    GET, keys D   206
//! GET, keys D   403   STS fails             EACCES, other objects are read with keys D
//! ```

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forerun_io::source::remote;
use futures_util::{StreamExt, stream};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{Attribute, Error, Extensions, GetOptions, ListResult, ObjectMeta, ObjectStore};
use tokio::spawn;
use tokio::sync::{Mutex as Turn, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::address::{Address, Variables};
use crate::credentials::{self, Contents, KeySource};
use crate::failure;
use crate::kept::WAIT;
use crate::named_file;
use crate::nameless::{Flaw, LeftOut};
use crate::{Limits, StoreError};

/// The time between two looks at files.
const LOOK: Duration = Duration::from_secs(1);

/// For a look after a refusal: files may lie on a server that does not answer.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// The time between two questions to a source for other keys than those refused: a store may refuse some objects for good.
const RENEWAL: Duration = Duration::from_secs(60);

/// Questions to a store, about names and folders, that are under way at once; ranges are the engine's, as many again.
const QUESTIONS: usize = 64;

/// Requests of one question about many objects that are under way at once.
pub(crate) const HEADS: u32 = 16;

/// A question without an answer for so long counts no more, and has a place among [`STALLED`]: others go on beside some
/// that hang.
const STALL: Duration = Duration::from_secs(1);
/// See [`STALL`].
const STALLED: usize = 192;

/// The time between two lines about failures of one kind.
const TOLD: Duration = Duration::from_secs(60);

/// Connections with the credentials of one moment.
pub(crate) struct Connected {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// For listings, which HTTP has not.
    pages: Option<Arc<dyn PaginatedListStore>>,
    signed_with: String,
    /// The source of the keys, if it may have others.
    source: Option<KeySource>,
    /// Whether a request was answered with these keys.
    is_taken: AtomicBool,
    /// The contents of their files.
    contents: Contents,
    /// The address before the key.
    base: String,
    told: Arc<Told>,
}

/// Lines that were written.
#[derive(Default)]
struct Told {
    /// About a refusal.
    refusal: AtomicBool,
    /// About keys of each flaw.
    flaws: [AtomicBool; Flaw::COUNT],
}

/// An object, as a store tells of it alone.
pub(crate) struct Head {
    pub(crate) meta: ObjectMeta,
    /// It stands for a folder, by the metadata that programs for Azure give an empty one.
    pub(crate) is_folder: bool,
}

impl Connected {
    /// A request was answered.
    pub(crate) fn was_taken(&self) {
        self.is_taken.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn head(&self, key: &Path) -> object_store::Result<Head> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let answer = self.objects.get_opts(key, options).await?;
        let mark = Attribute::Metadata("hdi_isfolder".into());
        let mark = answer.attributes.get(&mark);
        let is_folder = answer.meta.size == 0 && mark.is_some_and(|mark| **mark == *"true");
        let meta = answer.meta;
        Ok(Head { meta, is_folder })
    }

    /// Those of some keys that stand for folders.
    pub(crate) async fn folders(&self, keys: &[Path]) -> object_store::Result<Vec<Path>> {
        let heads = stream::iter(keys.iter().cloned());
        let heads = heads.map(|key| async move { self.head(&key).await });
        let mut heads = heads.buffer_unordered(HEADS as usize);
        let mut folders = Vec::new();
        while let Some(head) = heads.next().await {
            match head {
                Ok(head) if head.is_folder => folders.push(head.meta.location),
                // It is gone by now.
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(folders)
    }

    /// A page of a listing, without keys that have no name.
    pub(crate) async fn list(
        &self,
        prefix: &str,
        options: PaginatedListOptions,
    ) -> object_store::Result<PaginatedListResult> {
        match &self.pages {
            Some(pages) => {
                let mut page = pages.list_paginated(Some(prefix), options).await?;
                // An empty token would be that of the first page.
                page.page_token = page.page_token.filter(|token| !token.is_empty());
                if let Some(left_out) = page.result.extensions.get() {
                    self.tell(left_out);
                }
                Ok(page)
            }
            None => Ok(PaginatedListResult {
                result: ListResult {
                    common_prefixes: Vec::new(),
                    objects: Vec::new(),
                    extensions: Extensions::default(),
                },
                page_token: None,
            }),
        }
    }

    /// One line for each flaw: a bucket may have millions of such keys.
    fn tell(&self, left_out: &LeftOut) {
        for (flaw, key) in &left_out.0 {
            if !self.told.flaws[*flaw as usize].swap(true, Ordering::Relaxed) {
                let (base, why) = (&self.base, flaw.words());
                tracing::warn!(
                    "{base}: the key {key:?} {why}, so no file can have its name: such keys are left out"
                );
            }
        }
    }
}

struct State {
    connected: Arc<Connected>,
    looked: Instant,
    /// When keys that were refused were asked for again.
    renewed: Option<Instant>,
}

/// See the [module](self).
pub(crate) struct Store {
    address: Address,
    limits: Limits,
    variables: Arc<Variables>,
    files: Vec<PathBuf>,
    state: Mutex<State>,
    /// One look at the files at a time: they may lie on a server that does not answer.
    look: Arc<Turn<()>>,
    /// One question for other keys at a time.
    renewal: Turn<()>,
    questions: Semaphore,
    stalled: Semaphore,
    /// Whether any request was answered.
    is_reached: AtomicBool,
    /// When a line was written about a failed range, by the number of the error.
    failed: Mutex<HashMap<i32, Instant>>,
    /// As a device: the same for its objects, above those of devices.
    pub(crate) number: u64,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Store {{ {} }}",
            remote::without_passwords(&self.address.base)
        )
    }
}

impl Store {
    /// No connection yet.
    pub(crate) fn new(
        address: &Address,
        limits: &Limits,
        variables: &Arc<Variables>,
    ) -> Result<Self, StoreError> {
        let files = credentials::files(address.scheme, &|name| variables.get(name).cloned());
        let connected = connect(address, limits, variables, &files)?;
        Ok(Self {
            address: address.clone(),
            limits: *limits,
            variables: variables.clone(),
            files,
            state: Mutex::new(State {
                connected: Arc::new(connected),
                looked: Instant::now(),
                renewed: None,
            }),
            look: Arc::default(),
            renewal: Turn::default(),
            questions: Semaphore::new(QUESTIONS),
            stalled: Semaphore::new(STALLED),
            is_reached: AtomicBool::new(false),
            failed: Mutex::default(),
            number: remote::number(&address.base),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was answered.
    pub(crate) fn was_reached(&self) {
        self.is_reached.store(true, Ordering::Relaxed);
    }

    /// Whether any request was answered.
    pub(crate) fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Relaxed)
    }

    /// Whether a line is to be written about a range that failed so: of thousands one is enough.
    pub(crate) fn tells(&self, number: i32) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = failed
            .get(&number)
            .is_none_or(|last| last.elapsed() >= TOLD);
        if is_due {
            failed.insert(number, Instant::now());
        }
        is_due
    }

    /// Whether it has listings.
    pub(crate) fn lists(&self) -> bool {
        self.state().connected.pages.is_some()
    }

    /// The source of the credentials, for people.
    pub(crate) fn signed_with(&self) -> String {
        self.state().connected.signed_with.clone()
    }

    /// The connections for a request of now. Called in a task.
    pub(crate) fn current(self: &Arc<Self>) -> Arc<Connected> {
        let mut state = self.state();
        if !self.files.is_empty() && state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            if let Ok(turn) = self.look.clone().try_lock_owned() {
                let store = self.clone();
                drop(spawn_blocking(move || {
                    store.look();
                    drop(turn);
                }));
            }
        }
        state.connected.clone()
    }

    /// Asks a question of so many requests, once few enough others are under way.
    pub(crate) async fn under_way<T, F: Future<Output = T>>(
        &self,
        requests: u32,
        asks: impl FnOnce() -> F,
    ) -> T {
        // Never closed, so both are had.
        let mut counted = Some(self.questions.acquire_many(requests).await);
        let mut question = pin!(asks());
        match timeout(STALL, &mut question).await {
            Ok(answer) => answer,
            Err(_) => {
                let stalled = self.stalled.try_acquire_many(requests);
                if stalled.is_ok() {
                    drop(counted.take());
                }
                question.await
            }
        }
    }

    /// Whether a request that was refused over these connections has others to go over now.
    pub(crate) async fn is_renewed(self: &Arc<Self>, refused: &Arc<Connected>) -> bool {
        let is_other = || !Arc::ptr_eq(&self.state().connected, refused);
        let look = async {
            let turn = self.look.clone().lock_owned().await;
            // By another request that was refused.
            if is_other() {
                return;
            }
            let store = self.clone();
            let looked = spawn_blocking(move || {
                store.look();
                drop(turn);
            });
            let _ = looked.await;
        };
        let has_looked = timeout(LOOK_MAX, look).await.is_ok();
        if has_looked && !is_other() {
            // In a task of its own: the request may be given up.
            let renewal = spawn(self.clone().renew(refused.clone()));
            let _ = timeout(WAIT, renewal).await;
        }
        let is_renewed = is_other();
        if !is_renewed && !refused.told.refusal.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "{}: a request was refused, {}",
                self.address.url,
                refused.signed_with
            );
        }
        is_renewed
    }

    /// Connects anew if a file of the credentials has changed.
    fn look(&self) {
        let connected = self.state().connected.clone();
        if self.files.is_empty() || Contents::of(&self.files) == connected.contents {
            return;
        }
        match self.connect() {
            Ok(connected) => self.state().connected = Arc::new(connected),
            // A file that is written just now is whole at another look.
            Err(error) => tracing::warn!("credentials that changed are not used: {error}"),
        }
    }

    /// Connects anew if the store took the keys of these connections, and their source has others.
    async fn renew(self: Arc<Self>, refused: Arc<Connected>) {
        let Some(source) = &refused.source else {
            return;
        };
        let _turn = self.renewal.lock().await;
        if !refused.is_taken.load(Ordering::Relaxed) || !self.is_due(&refused) {
            return;
        }
        let store = self.clone();
        let connected = spawn_blocking(move || store.connect()).await;
        let Ok(Ok(mut connected)) = connected else {
            return;
        };
        let Some(others) = &connected.source else {
            return;
        };
        let both = async {
            let others = others.give().await?;
            Ok::<_, Error>((source.give().await.ok(), others))
        };
        match timeout(WAIT, both).await {
            Ok(Ok((given, others))) if given.as_ref() != Some(&others) => {}
            Ok(Ok(_)) | Err(_) => return,
            Ok(Err(error)) => {
                let (url, why) = (&self.address.url, remote::shown(&failure::chain(&error)));
                tracing::warn!("{url}: no other keys than those that were refused: {why}");
                return;
            }
        }
        connected.told = refused.told.clone();
        let mut state = self.state();
        if Arc::ptr_eq(&state.connected, &refused) {
            state.connected = Arc::new(connected);
        }
    }

    /// Whether others are to be asked for than the keys of these connections, from now on not for a while.
    fn is_due(&self, refused: &Arc<Connected>) -> bool {
        let mut state = self.state();
        let is_due = Arc::ptr_eq(&state.connected, refused)
            && state
                .renewed
                .is_none_or(|renewed| renewed.elapsed() >= RENEWAL);
        if is_due {
            state.renewed = Some(Instant::now());
        }
        is_due
    }

    fn connect(&self) -> Result<Connected, StoreError> {
        connect(&self.address, &self.limits, &self.variables, &self.files)
    }
}

fn connect(
    address: &Address,
    limits: &Limits,
    variables: &Variables,
    files: &[PathBuf],
) -> Result<Connected, StoreError> {
    for file in files {
        named_file::check(file).map_err(|why| StoreError::address(&address.url, why))?;
    }
    // Before they are used: a change in between is found by the next look.
    let contents = Contents::of(files);
    let (objects, pages, signed_with, source) = address.connect(limits, variables)?;
    Ok(Connected {
        objects,
        pages,
        signed_with,
        source,
        is_taken: AtomicBool::new(false),
        contents,
        base: remote::without_passwords(&address.base).to_string(),
        told: Arc::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files on a server that does not answer would have all threads that look names of hosts up.
    #[test]
    fn no_look_at_files_begins_beside_one_that_hangs() {
        let address = Address::of("s3://b/k").unwrap();
        let set = [("HOME", "/absent"), ("AWS_ENDPOINT_URL", "http://[::1]:9")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let variables = Arc::new(Variables::from(set));
        let store = Arc::new(Store::new(&address, &Limits::default(), &variables).unwrap());
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).max_blocking_threads(1);
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let late = || Instant::now() - 2 * LOOK;
            // A look that begins waits behind this.
            let (end, ends) = std::sync::mpsc::channel::<()>();
            drop(spawn_blocking(move || ends.recv()));
            let hangs = store.look.clone().try_lock_owned().unwrap();
            for _ in 0..20 {
                store.state().looked = late();
                store.current();
            }
            assert_eq!(Arc::strong_count(&store), 1, "a look has the store");
            drop((hangs, end));
            store.state().looked = late();
            store.current();
            // The look that has begun gives its turn back.
            drop(store.look.lock().await);
        });
    }
}
