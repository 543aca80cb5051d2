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
//! listed or not, as the store has it; none is listed twice.
//!
//! A key that has no name here (`a//b`, `a/../b`) is left out. The store's client refuses the whole page it
//! is on, so pages are halved until the key is alone, and the listing goes on behind it: about twenty
//! requests for each such key.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use forerun_io::source::tree::{Entry, Stat};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::{Error, ObjectMeta, path};

use crate::address::{Address, Store};
use crate::object::Version;
use crate::{Client, StoreError};

/// Keys of a page: the most that S3 gives.
const KEYS_MAX: usize = 1000;

/// No key with one beginning comes behind that and this: keys are in the order of their bytes.
const LAST: char = char::MAX;

/// See the [module](self).
pub struct Listing {
    client: Client,
    pages: Arc<dyn PaginatedListStore>,
    address: Address,
    prefix: String,
    page: VecDeque<(String, Entry)>,
    next: Next,
    /// Most keys of the next page.
    keys_max: usize,
    /// The key left out last.
    left_out: Option<String>,
}

enum Next {
    First,
    Token(String),
    Behind(String),
    End,
}

impl Listing {
    pub(crate) fn new(
        client: &Client,
        store: &Store,
        address: Address,
    ) -> Result<Self, StoreError> {
        let none = "its store has no listings; name the objects";
        let pages = store.pages.clone();
        let pages = pages.ok_or_else(|| StoreError::address(&address.url, none))?;
        Ok(Self {
            client: client.clone(),
            pages,
            prefix: address.prefix(),
            address,
            page: VecDeque::new(),
            next: Next::First,
            keys_max: KEYS_MAX,
            left_out: None,
        })
    }

    fn ask(&mut self) -> io::Result<()> {
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
        let (pages, prefix) = (&self.pages, &self.prefix);
        let ask = || {
            let asked = pages.list_paginated(Some(prefix), options.clone());
            async {
                asked
                    .await
                    .map(Ok)
                    .or_else(|error| nameless(error).map(Err))
            }
        };
        match self.client.ask(ask)? {
            Ok(page) => self.take(page),
            Err(_) if self.keys_max > 1 => self.keys_max /= 2,
            Err(key) => self.leave_out(key)?,
        }
        Ok(())
    }

    fn take(&mut self, page: PaginatedListResult) {
        let below = |path: &object_store::path::Path| {
            let name = path.as_ref().strip_prefix(&self.prefix)?;
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        };
        let folders = page.result.common_prefixes.iter().filter_map(below);
        let folders: Vec<_> = folders.map(|name| (name, Entry::Folder)).collect();
        let shown: HashSet<_> = folders.iter().map(|(name, _)| name).collect();
        let object = |meta: &ObjectMeta| {
            // One with a folder's name cannot be reached by a path; the object `a/` stands for the folder itself.
            let name = below(&meta.location).filter(|name| !shown.contains(name))?;
            Some((name, Entry::Object(stat(meta))))
        };
        let objects: Vec<_> = page.result.objects.iter().filter_map(object).collect();
        self.page = folders.into_iter().chain(objects).collect();
        self.next = page.page_token.map_or(Next::End, Next::Token);
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
            if let Some(entry) = self.page.pop_front() {
                return Some(Ok(entry));
            }
            if matches!(self.next, Next::End) {
                return None;
            }
            if let Err(source) = self.ask() {
                self.next = Next::End;
                let url = self.address.url.clone();
                return Some(Err(StoreError::Object { url, source }));
            }
        }
    }
}
