//! Trees of objects: the folders of a store and the objects in them, by their paths.
//!
//! A store has keys and no folders: keys with one beginning up to a `/` stand for a folder here. A tree
//! is asked for one name or one folder at a time, so its size is of no matter.
//!
//! ```text
//! keys      a/1  a/2  b
//! tree      ""  has folder a, object b        a  has objects 1, 2
//! find      "a/1" -> object of 10 bytes, version "x"     "a" -> folder     "c" -> nothing
//! open      "a/1" in version "x" -> its source
//! ```

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use forerun_core::Bytes;

use super::Source;

/// An object, as of one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Its size.
    pub bytes: u64,
    /// Time of its last change.
    pub modified: SystemTime,
    /// Its version, in the tree's own words; none if the tree was not told of it.
    pub version: Option<Arc<str>>,
}

/// The target of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A folder.
    Folder,
    /// An object.
    Object(Stat),
}

/// Names in a folder, as they come.
pub type Names = Box<dyn Iterator<Item = io::Result<(String, Entry)>> + Send>;

/// The same, each with the time it is of: names of a page are as old as the page.
pub type RecalledNames = Box<dyn Iterator<Item = io::Result<(String, Entry, Instant)>> + Send>;

/// Takes the answer of [`Tree::find_then`].
pub type Found = Box<dyn FnOnce(io::Result<Option<Entry>>) + Send>;

/// How old an answer may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Age {
    /// Of a name that is there.
    pub present: Duration,
    /// Of one that is not.
    pub absent: Duration,
}

/// Takes the answer of [`Tree::recall_then`], and the time it is of.
pub type Recalled = Box<dyn FnOnce(io::Result<(Option<Entry>, Instant)>) + Send>;

/// Folders and objects by their paths: names with `/` between them, none of them empty, `.` or `..`. The
/// root is the empty path. Calls may wait for a server.
///
/// # Examples
///
/// Objects that lie in memory, without folders:
///
/// ```
/// use std::collections::BTreeMap;
/// use std::io;
/// use std::sync::Arc;
/// use std::time::SystemTime;
///
/// use forerun_io::source::tree::{Entry, Names, Stat, Tree};
/// use forerun_io::source::{Generated, Source};
///
/// #[derive(Debug)]
/// struct Flat(BTreeMap<String, u64>);
///
/// fn stat(bytes: u64) -> Stat {
///     Stat { bytes, modified: SystemTime::UNIX_EPOCH, version: Some("1".into()) }
/// }
///
/// impl Tree for Flat {
///     fn address(&self) -> &str {
///         "memory:"
///     }
///     fn find(&self, path: &str) -> io::Result<Option<Entry>> {
///         Ok(match path {
///             "" => Some(Entry::Folder),
///             path => self.0.get(path).map(|bytes| Entry::Object(stat(*bytes))),
///         })
///     }
///     fn list(&self, _: &str) -> io::Result<Names> {
///         let names: Vec<_> = self.0.iter().map(|(n, b)| Ok((n.clone(), Entry::Object(stat(*b))))).collect();
///         Ok(Box::new(names.into_iter()))
///     }
///     fn open(&self, _: &str, stat: &Stat) -> io::Result<Arc<dyn Source>> {
///         Ok(Arc::new(Generated { seed: 1, index: 0, bytes: stat.bytes }))
///     }
/// }
///
/// let tree = Flat(BTreeMap::from([("a".to_owned(), 10)]));
/// assert_eq!(tree.find("a")?, Some(Entry::Object(stat(10))));
/// assert_eq!(tree.open("a", &stat(10))?.bytes()?, 10);
/// # Ok::<(), io::Error>(())
/// ```
pub trait Tree: fmt::Debug + Send + Sync {
    /// Its address, for people. MUST always be the same.
    fn address(&self) -> &str;

    /// Memory of its own, most: of connections, beside the engine's memory that ranges are written to.
    fn memory(&self) -> Bytes {
        Bytes(0)
    }

    /// The target of a path, as of now; `None` if there is none.
    ///
    /// # Errors
    /// The original error, with its number ([`raw_os_error`](io::Error::raw_os_error)) where it has one.
    fn find(&self, path: &str) -> io::Result<Option<Entry>>;

    /// As [`find`](Self::find), with the answer given to `then`: here, or on a thread of the tree, so that none waits
    /// for each question.
    fn find_then(&self, path: &str, then: Found) {
        then(self.find(path));
    }

    /// As [`find_then`](Self::find_then), with an answer that MUST NOT be older than this: the tree may have been told
    /// it with another name's.
    fn recall_then(&self, path: &str, _: Age, then: Recalled) {
        let then = |found: io::Result<_>| then(found.map(|entry| (entry, Instant::now())));
        self.find_then(path, Box::new(then));
    }

    /// Names in a folder. Those that come or go meanwhile are among them or not.
    ///
    /// # Errors
    /// The tree has no listings. Those of the server come in a name's place, and end it.
    fn list(&self, folder: &str) -> io::Result<Names>;

    /// As [`list`](Self::list), each name with the time it is of. A tree that keeps names it was told before MUST say when.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    fn list_recalled(&self, folder: &str) -> io::Result<RecalledNames> {
        let now = |(name, entry)| (name, entry, Instant::now());
        Ok(Box::new(self.list(folder)?.map(move |next| next.map(now))))
    }

    /// An object in this version, which MUST have one. Need not ask the server: that another version is there by now
    /// may be found by the first read.
    ///
    /// # Errors
    /// The original error; `ESTALE` if it has no version.
    fn open(&self, path: &str, object: &Stat) -> io::Result<Arc<dyn Source>>;
}
