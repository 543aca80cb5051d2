//! Objects below an address, as a directory, one page at a time.
//!
//! A bucket has keys and no directories; keys with one beginning up to a `/` stand for one here:
//!
//! ```text
//! keys      a/1  a/2  b  c/d/3
//! listing   folder a,  object b,  folder c
//! ```
//!
//! A page has at most 1,000 of them, and only one is in memory. Keys that come or go meanwhile are
//! listed or not, as the store has it; [none](Names) is listed twice. A listing that gives no further name
//! ends with an error, after a hundred pages or two minutes of them.
//!
//! A key that has no name here (`a//b`, `a/../b`) is left out. The store's client refuses the whole page it
//! is on, so pages are halved until the key is alone, and the listing goes on behind it: about twenty
//! requests for each such key.

use std::borrow::Cow;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use forerun_io::source::tree::{Entry, Stat};
use object_store::list::{PaginatedListOptions, PaginatedListResult};
use object_store::path::{self, Path};
use object_store::{Error, ObjectMeta};

use crate::address::Address;
use crate::names::Names;
use crate::object::Version;
use crate::pages::Page;
use crate::store::{Connected, HEADS, Store};
use crate::{Client, StoreError};

/// Keys of a page: the most that S3 gives.
pub(crate) const KEYS_MAX: usize = 1000;

/// Pages without a further name, one after the other. Stores give some: keys that were deleted take places of a page.
const EMPTY_MAX: u32 = 100;

/// No key with one beginning comes behind that and this: keys are in the order of their bytes.
pub(crate) const LAST: char = char::MAX;

/// See the [module](self).
pub struct Listing {
    client: Client,
    store: Arc<Store>,
    address: Address,
    prefix: String,
    page: Page,
    /// The place of this page, and the objects held back before it.
    at: (Next, Vec<(String, Entry)>),
    names: Names,
    next: Next,
    /// Pages since the last name, and the time when the first was asked for.
    empty: u32,
    since: Instant,
    /// Most keys of the next page.
    keys_max: usize,
    /// The key left out last.
    left_out: Option<String>,
}

#[derive(PartialEq)]
enum Next {
    First,
    Token(String),
    Behind(String),
    End,
}

impl Listing {
    pub(crate) fn new(
        client: &Client,
        store: &Arc<Store>,
        address: Address,
    ) -> Result<Self, StoreError> {
        if !store.lists() {
            let none = "its store has no listings; name the objects";
            return Err(StoreError::address(&address.url, none));
        }
        Ok(Self {
            client: client.clone(),
            store: store.clone(),
            prefix: address.prefix(),
            address,
            page: Page::default(),
            at: (Next::First, Vec::new()),
            names: Names::default(),
            next: Next::First,
            empty: 0,
            since: Instant::now(),
            keys_max: KEYS_MAX,
            left_out: None,
        })
    }

    fn ask(&mut self) -> io::Result<()> {
        if self.empty == 0 {
            self.since = Instant::now();
        }
        let (page_token, offset) = match &self.next {
            Next::First => (None, None),
            Next::Token(token) => (Some(token.clone()), None),
            Next::Behind(key) => (None, Some(key.clone())),
            Next::End => return Ok(()),
        };
        let options = PaginatedListOptions {
            delimiter: Some(Cow::Borrowed("/")),
            page_token,
            offset,
            max_keys: Some(self.keys_max),
            ..PaginatedListOptions::default()
        };
        let prefix = &self.prefix;
        let ask = |with: Arc<Connected>| {
            let options = options.clone();
            async move {
                let page = with.list(prefix, options).await;
                page.map(Ok).or_else(|error| nameless(error).map(Err))
            }
        };
        match self.client.ask(&self.store, 1, ask)? {
            Ok(page) => self.take(page)?,
            Err(_) if self.keys_max > 1 => self.keys_max /= 2,
            Err(key) => self.leave_out(key)?,
        }
        Ok(())
    }

    fn take(&mut self, page: PaginatedListResult) -> io::Result<()> {
        let below = |path: &Path| {
            let name = path.as_ref().strip_prefix(&self.prefix)?;
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        };
        let marks = self.marks(&page.result.objects)?;
        let prefixes = page.result.common_prefixes.iter();
        let folders = prefixes.chain(&marks).filter_map(below);
        // The object `a/` stands for the folder itself.
        let object = |meta: &ObjectMeta| {
            let name = below(&meta.location).filter(|_| !marks.contains(&meta.location));
            Some((name?, Entry::Object(stat(meta))))
        };
        let objects = page.result.objects.iter().filter_map(object);
        let next = page.page_token.map_or(Next::End, Next::Token);
        let (folders, objects) = (folders.collect(), objects.collect());
        let held = self.names.held().clone();
        let names = self.names.page(folders, objects, next == Next::End);
        self.page = self.client.pages.keep(names);
        self.empty += 1;
        let is_late = self.since.elapsed() > self.client.limits.deadline;
        if next != Next::End && (next == self.next || self.empty > EMPTY_MAX || is_late) {
            let pages = self.empty;
            let why = format!("the listing goes on without a further name, after {pages} pages");
            return Err(io::Error::other(why));
        }
        self.at = (mem::replace(&mut self.next, next), held);
        Ok(())
    }

    /// Objects that stand for empty folders: a listing of Azure does not tell them from empty objects.
    fn marks(&self, objects: &[ObjectMeta]) -> io::Result<Vec<Path>> {
        let empty = objects.iter().filter(|meta| meta.size == 0);
        let empty: Vec<_> = empty.map(|meta| meta.location.clone()).collect();
        if self.address.scheme != "az" || empty.is_empty() {
            return Ok(Vec::new());
        }
        let empty = &empty;
        let ask = |with: Arc<Connected>| async move { with.folders(empty).await };
        self.client.ask(&self.store, HEADS, ask)
    }

    /// Goes on behind a key that has no name here.
    fn leave_out(&mut self, key: String) -> io::Result<()> {
        let url = &self.address.url;
        if self.left_out.as_ref() == Some(&key) {
            let why = format!("the store lists no further than the key {key:?}, which has no name");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        tracing::warn!("{url}: the key {key:?} has no name here and is left out");
        let mut behind = key.clone();
        if key.ends_with('/') {
            behind.push(LAST);
        }
        self.next = Next::Behind(behind);
        self.left_out = Some(key);
        self.keys_max = KEYS_MAX;
        Ok(())
    }
}

/// An object as a store tells of it.
pub(crate) fn stat(meta: &ObjectMeta) -> Stat {
    Stat {
        bytes: meta.size,
        modified: meta.last_modified.into(),
        version: Version::of_listed(meta).map(|version| version.text()),
    }
}

/// The first key of a page that has no name.
fn nameless(error: Error) -> Result<String, Error> {
    match error {
        Error::InvalidPath {
            source: path::Error::EmptySegment { path } | path::Error::BadSegment { path, .. },
        } => Ok(path),
        other => Err(other),
    }
}

impl Iterator for Listing {
    type Item = Result<(String, Entry), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.page.next() {
                if self.names.is_new(&entry.0) {
                    self.empty = 0;
                    return Some(Ok(entry));
                }
                continue;
            }
            if self.page.was_dropped() {
                let (place, held) = mem::replace(&mut self.at, (Next::End, Vec::new()));
                (self.next, *self.names.held()) = (place, held);
            }
            if self.next == Next::End {
                return None;
            }
            if let Err(source) = self.ask() {
                self.next = Next::End;
                self.page.clear();
                let url = self.address.url.clone();
                return Some(Err(StoreError::Object { url, source }));
            }
        }
    }
}
