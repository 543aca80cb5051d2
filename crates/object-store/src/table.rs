//! The versions of objects that answers told, by path.
//!
//! Problem: a range is asked for by its path alone, and the engine reads a version. Mechanism: each answer of the
//! inner store that tells size and ETag (a listing, HEAD, GET, a range) is kept; the newest question counts. A write
//! through the wrapper drops the path's, and answers to questions from before its end are not believed.
//!
//! ```text
//! list, asked at 1.0 s   a: ETag 1, 5 MB
//! get a, at 1.2 s        ranges of ETag 1
//! put a, ends at 1.4 s   nothing known; a HEAD that was asked at 1.3 s changes nothing
//! ```
//!
//! Paths are at most [`PATHS_MAX`], open versions [`OPEN_MAX`]; beyond that those used longest ago go.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use object_store::path::Path;
use object_store::{Attributes, ObjectMeta};

use crate::connection::Connection;
use crate::object::Object;
use crate::source::{ObjectSource, is_same};

/// Ten pages of a listing, of which each path takes some 500 bytes: 5 MB.
const PATHS_MAX: usize = 10_000;

/// As many as Linux gives a process descriptors, which these have not: each takes memory of the engine.
const OPEN_MAX: usize = 1024;

/// The state of a path.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    Version(Arc<Object>),
    /// Its versions have no name, or a request that names one is refused.
    Unnamed,
    /// It was written then.
    Written(Instant),
}

#[derive(Debug)]
struct Entry {
    known: Known,
    /// The number of its last use.
    used: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Table {
    connection: Arc<Connection>,
    requests: u32,
    paths: Mutex<Paths>,
}

#[derive(Debug, Default)]
struct Paths {
    entries: HashMap<Path, Entry>,
    uses: u64,
    /// Versions that were opened since those used longest ago were closed, and those left open then.
    opened: usize,
    /// The last write of a path that was dropped from the table.
    written: Option<Instant>,
}

impl Table {
    pub(crate) fn new(connection: Arc<Connection>, requests: u32) -> Self {
        let paths = Mutex::default();
        Self {
            connection,
            requests,
            paths,
        }
    }

    fn paths(&self) -> MutexGuard<'_, Paths> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries about a path.
    pub(crate) fn find(&self, path: &Path) -> Option<Known> {
        let mut paths = self.paths();
        paths.uses += 1;
        let used = paths.uses;
        let entry = paths.entries.get_mut(path)?;
        entry.used = used;
        Some(entry.known.clone())
    }

    /// A version of an object, which need not be in the table; none if it has no name.
    pub(crate) fn version(
        &self,
        meta: &ObjectMeta,
        asked: Instant,
        attributes: Option<Attributes>,
    ) -> Option<ObjectSource> {
        let meta = meta.clone();
        ObjectSource::new(&self.connection, meta, attributes, asked, self.requests)
    }

    /// An answer to a question of this time told a version.
    pub(crate) fn learn(&self, meta: &ObjectMeta, asked: Instant, attributes: Option<Attributes>) {
        let path = &meta.location;
        if let Some(Known::Version(object)) = self.find(path)
            && is_same(&object.source.meta, meta)
        {
            return object.source.prove(asked, attributes);
        }
        let known = match self.version(meta, asked, attributes) {
            Some(source) => Known::Version(Arc::new(Object::new(Arc::new(source)))),
            None => Known::Unnamed,
        };
        self.insert(path, known, asked);
    }

    /// Puts a version into the table, unless something newer is known.
    pub(crate) fn insert(&self, path: &Path, known: Known, asked: Instant) {
        let mut paths = self.paths();
        let is_newer = match paths.entries.get(path).map(|entry| &entry.known) {
            Some(Known::Version(before)) => asked >= before.source.proved(),
            Some(Known::Written(at)) => asked > *at,
            Some(Known::Unnamed) => true,
            None => paths.written.is_none_or(|at| asked > at),
        };
        if is_newer {
            let dropped = paths.put(path, known);
            drop(paths);
            // Closing a reader takes a lock of the engine.
            drop(dropped);
        }
    }

    /// A version is about to be opened in the engine. Beyond [`OPEN_MAX`] the half that was used longest ago is
    /// closed; its blocks stay in the engine's memory.
    pub(crate) fn opens(&self, object: &Object) {
        if object.is_open() {
            return;
        }
        let mut paths = self.paths();
        paths.opened += 1;
        if paths.opened > OPEN_MAX {
            let closed = paths.close();
            drop(paths);
            // Closing a reader takes a lock of the engine.
            drop(closed);
        }
    }

    /// A path was written, or perhaps so.
    pub(crate) fn written(&self, path: &Path) {
        let mut paths = self.paths();
        let dropped = paths.put(path, Known::Written(Instant::now()));
        drop(paths);
        drop(dropped);
    }

    /// A version is no longer there.
    pub(crate) fn gone(&self, object: &Arc<Object>) {
        let path = &object.source.meta.location;
        let mut paths = self.paths();
        let now = paths.entries.get(path).map(|entry| &entry.known);
        let dropped = match now {
            Some(Known::Version(now)) if Arc::ptr_eq(now, object) => paths.entries.remove(path),
            _ => None,
        };
        drop(paths);
        drop(dropped);
    }
}

impl Paths {
    /// Puts an entry in; those to drop without the lock.
    fn put(&mut self, path: &Path, known: Known) -> Vec<Known> {
        self.uses += 1;
        let used = self.uses;
        let before = self.entries.insert(path.clone(), Entry { known, used });
        let mut dropped: Vec<Known> = before.map(|entry| entry.known).into_iter().collect();
        if self.entries.len() > PATHS_MAX {
            self.forget(&mut dropped);
        }
        dropped
    }

    /// Closes the half of the open versions that was used longest ago.
    fn close(&mut self) -> Vec<Arc<Object>> {
        let is_open = |entry: &Entry| matches!(&entry.known, Known::Version(it) if it.is_open());
        let open = self.entries.values().filter(|entry| is_open(entry));
        let mut uses: Vec<u64> = open.map(|entry| entry.used).collect();
        self.opened = uses.len();
        if uses.len() < OPEN_MAX {
            return Vec::new();
        }
        uses.sort_unstable();
        let newest = uses.split_off(uses.len() / 2);
        self.opened = newest.len();
        let (mut closed, oldest) = (Vec::new(), newest.first().copied().unwrap_or_default());
        for entry in self.entries.values_mut() {
            if let Known::Version(object) = &mut entry.known
                && object.is_open()
                && entry.used < oldest
            {
                let shut = Arc::new(Object::new(object.source.clone()));
                closed.push(mem::replace(object, shut));
            }
        }
        closed
    }

    /// Drops the half that was used longest ago.
    fn forget(&mut self, dropped: &mut Vec<Known>) {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let middle = uses.len() / 2;
        let (_, oldest, _) = uses.select_nth_unstable(middle);
        let oldest = *oldest;
        let old = self.entries.extract_if(|_, entry| entry.used < oldest);
        for (_, entry) in old {
            if let Known::Written(at) = entry.known {
                self.written = self.written.max(Some(at));
            }
            dropped.push(entry.known);
        }
    }
}
