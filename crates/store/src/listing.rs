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

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use object_store::list::{PaginatedListOptions, PaginatedListStore};

use crate::address::{Address, Store};
use crate::{Client, StoreError};

/// An object or a folder, by its full address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// An object and its size.
    Object {
        /// Its address.
        url: String,
        /// Its size.
        bytes: u64,
    },
    /// A folder, with a `/` at its end.
    Folder {
        /// Its address.
        url: String,
    },
}

/// See the [module](self).
pub struct Listing {
    client: Client,
    pages: Arc<dyn PaginatedListStore>,
    address: Address,
    prefix: String,
    page: VecDeque<Entry>,
    next: Next,
}

enum Next {
    First,
    Token(String),
    End,
}

impl Listing {
    pub(crate) fn new(
        client: &Client,
        store: Arc<Store>,
        address: Address,
    ) -> Result<Self, StoreError> {
        let none = "its store has no listings; name the objects";
        let pages = store.pages.clone();
        let pages = pages.ok_or_else(|| StoreError::address(&address.url, none))?;
        let key = address.key.as_ref();
        let prefix = if key.is_empty() {
            String::new()
        } else {
            format!("{key}/")
        };
        Ok(Self {
            client: client.clone(),
            pages,
            address,
            prefix,
            page: VecDeque::new(),
            next: Next::First,
        })
    }

    fn ask(&mut self) -> io::Result<()> {
        let page_token = match std::mem::replace(&mut self.next, Next::End) {
            Next::First => None,
            Next::Token(token) => Some(token),
            Next::End => return Ok(()),
        };
        let options = PaginatedListOptions {
            delimiter: Some(Cow::Borrowed("/")),
            page_token,
            ..PaginatedListOptions::default()
        };
        let ask = || {
            self.pages
                .list_paginated(Some(&self.prefix), options.clone())
        };
        let answer = self.client.ask(ask)?;
        let base = &self.address.base;
        let folders = answer.result.common_prefixes.into_iter();
        self.page.extend(folders.map(|prefix| Entry::Folder {
            url: format!("{base}/{prefix}/"),
        }));
        let objects = answer.result.objects.into_iter();
        self.page.extend(objects.map(|object| Entry::Object {
            url: format!("{base}/{}", object.location),
            bytes: object.size,
        }));
        self.next = answer.page_token.map_or(Next::End, Next::Token);
        Ok(())
    }
}

impl Iterator for Listing {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.page.pop_front() {
                return Some(Ok(entry));
            }
            if matches!(self.next, Next::End) {
                return None;
            }
            if let Err(source) = self.ask() {
                let url = self.address.url.clone();
                return Some(Err(StoreError::Object { url, source }));
            }
        }
    }
}
