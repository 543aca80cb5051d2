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
//! A key that has no name here (`a//b`, `a/../b`) is [left out](crate::nameless).

use std::borrow::Cow;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use forerun_io::source::tree::{Entry, Stat};
use object_store::ObjectMeta;
use object_store::list::{PaginatedListOptions, PaginatedListResult};
use object_store::path::Path;

use crate::address::Address;
use crate::failure;
use crate::names::{Listed, Names};
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
    at: (Next, Vec<Listed>),
    names: Names,
    next: Next,
    /// Pages since the last name, and the time when the first was asked for.
    empty: u32,
    since: Instant,
}

#[derive(PartialEq)]
enum Next {
    First,
    Token(String),
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
        })
    }

    fn ask(&mut self) -> io::Result<()> {
        if self.empty == 0 {
            self.since = Instant::now();
        }
        let page_token = match &self.next {
            Next::First => None,
            Next::Token(token) => Some(token.clone()),
            Next::End => return Ok(()),
        };
        let options = PaginatedListOptions {
            delimiter: Some(Cow::Borrowed("/")),
            page_token,
            max_keys: Some(KEYS_MAX),
            ..PaginatedListOptions::default()
        };
        let prefix = &self.prefix;
        let ask = |with: Arc<Connected>| {
            let options = options.clone();
            async move { with.list(prefix, options).await }
        };
        let page = self.client.ask(&self.store, 1, ask)?;
        self.take(page)
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
        let names = self
            .names
            .page(folders, objects, next == Next::End, Instant::now());
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

    /// The next name, with the time of its page.
    pub(crate) fn next_as_of(&mut self) -> Option<Result<Listed, StoreError>> {
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
            if let Err(source) = self.ask().map_err(failure::of_listing) {
                self.next = Next::End;
                self.page.clear();
                let url = self.address.url.clone();
                return Some(Err(StoreError::Object { url, source }));
            }
        }
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
}

/// An object as a store tells of it.
pub(crate) fn stat(meta: &ObjectMeta) -> Stat {
    Stat {
        bytes: meta.size,
        modified: meta.last_modified.into(),
        version: Version::of_listed(meta).map(|version| version.text()),
    }
}

impl Iterator for Listing {
    type Item = Result<(String, Entry), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_as_of()?;
        Some(next.map(|(name, entry, _)| (name, entry)))
    }
}
