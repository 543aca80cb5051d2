//! The objects below an address as a tree of folders.
//!
//! ```text
//! tree s3://b/data        find "a/1" -> HEAD data/a/1, and beside it one key below data/a/1/
//!                         list "a"   -> keys below data/a/, a page at a time
//! ```
//!
//! Names that are asked for one after the other are [siblings](crate::siblings) of one listing.
//!
//! Where a key is an object and the beginning of others, the folder is shown: the others could not be
//! reached otherwise.

use std::fmt;
use std::io;
use std::iter;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use forerun_core::Bytes;
use forerun_io::source::Source;
use forerun_io::source::remote;
use forerun_io::source::tree::{Age, Entry, Found, Names, Recalled, RecalledNames, Stat, Tree};
use object_store::Error;
use object_store::list::PaginatedListOptions;

use crate::address::Address;
use crate::failure;
use crate::listing::{Listing, stat};
use crate::nameless::LeftOut;
use crate::object::{Object, Version};
use crate::siblings::Siblings;
use crate::store::{Connected, Head, Store};
use crate::{Client, StoreError, asked};

/// See the [module](self).
pub struct ObjectTree {
    client: Client,
    store: Arc<Store>,
    root: Address,
    siblings: Arc<Siblings>,
}

impl ObjectTree {
    pub(crate) fn new(
        client: &Client,
        store: Arc<Store>,
        root: Address,
    ) -> Result<Self, StoreError> {
        if !store.lists() {
            let none = "its store has no listings, so it has no folders";
            return Err(StoreError::address(&root.url, none));
        }
        let tree = Self {
            client: client.clone(),
            store,
            root,
            siblings: Arc::default(),
        };
        tree.check()?;
        Ok(tree)
    }

    /// The address of a folder.
    fn folder(&self, path: &str) -> Option<Address> {
        match path.is_empty() {
            true => Some(self.root.clone()),
            false => self.root.below(path),
        }
    }

    /// The store answers, and there is such a folder. A bucket may be empty.
    fn check(&self) -> Result<(), StoreError> {
        let Address { url, key, .. } = &self.root;
        let begins = |with| begins(with, self.root.prefix());
        let begins = self.client.ask(&self.store, 1, begins);
        let begins = begins.map_err(failure::of_listing);
        let begins = begins.map_err(|error| StoreError::object(url, &self.store, error))?;
        if begins || key.as_ref().is_empty() {
            return Ok(());
        }
        let head = |with: Arc<Connected>| async move { with.head(key).await.map(drop) };
        let (why, number) = match self.client.ask(&self.store, 1, head) {
            Ok(()) => ("it is an object, and no folder of objects", libc::ENOTDIR),
            Err(_) => ("no key begins with it and a /", libc::ENOENT),
        };
        let url = remote::shown(url);
        Err(StoreError::NoFolder { url, why, number })
    }
}

/// Whether a key has this beginning.
async fn begins(with: Arc<Connected>, prefix: String) -> Result<bool, Error> {
    let options = PaginatedListOptions {
        max_keys: Some(1),
        ..PaginatedListOptions::default()
    };
    let page = with.list(&prefix, options).await?.result;
    // A key without a name is there as well.
    Ok(!page.objects.is_empty() || page.extensions.get::<LeftOut>().is_some())
}

/// The entry of a key: of both questions the one that says most.
async fn entry(with: Arc<Connected>, address: Address) -> Result<Option<Entry>, Error> {
    let head = with.head(&address.key);
    match futures_util::join!(head, begins(with.clone(), address.prefix())) {
        (_, Ok(true))
        | (
            Ok(Head {
                is_folder: true, ..
            }),
            _,
        ) => Ok(Some(Entry::Folder)),
        (Ok(head), _) => Ok(Some(Entry::Object(stat(&head.meta)))),
        (Err(Error::NotFound { .. }), Ok(false)) => Ok(None),
        (Err(Error::NotFound { .. }), Err(error)) | (Err(error), _) => Err(error),
    }
}

impl fmt::Debug for ObjectTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectTree {{ {} }}", self.root.url)
    }
}

impl Tree for ObjectTree {
    fn address(&self) -> &str {
        &self.root.url
    }

    fn memory(&self) -> Bytes {
        self.client.limits.memory()
    }

    fn find(&self, path: &str) -> io::Result<Option<Entry>> {
        let (give, given) = channel();
        self.find_then(path, Box::new(move |found| drop(give.send(found))));
        let failed = |_| Err(io::Error::other("the request panicked"));
        given.recv().unwrap_or_else(failed)
    }

    fn find_then(&self, path: &str, then: Found) {
        let address = match self.root.below(path) {
            _ if path.is_empty() => return then(Ok(Some(Entry::Folder))),
            None => return then(Ok(None)),
            Some(address) => address,
        };
        let (store, limits) = (self.store.clone(), self.client.limits);
        self.client.threads.spawn(async move {
            then(asked(&store, &limits, 2, |with| entry(with, address.clone())).await);
        });
    }

    fn recall_then(&self, path: &str, age: Age, then: Recalled) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let addresses = self.root.below(path).zip(self.folder(folder));
        let (address, above) = match addresses {
            _ if path.is_empty() => return then(Ok((Some(Entry::Folder), Instant::now()))),
            None => return then(Ok((None, Instant::now()))),
            Some(addresses) => addresses,
        };
        let (store, limits) = (self.store.clone(), self.client.limits);
        let (folder, name) = (folder.to_owned(), name.to_owned());
        let siblings = self.siblings.clone();
        self.client.threads.spawn(async move {
            let (of, at) = ((&store, &limits), (&above, &*folder));
            if let Some(recalled) = siblings.recall(of, at, &name, age).await {
                return then(Ok(recalled));
            }
            let found = asked(&store, &limits, 2, |with| entry(with, address.clone())).await;
            then(found.map(|found| (found, Instant::now())));
        });
    }

    fn list(&self, folder: &str) -> io::Result<Names> {
        let names = self.list_recalled(folder)?;
        Ok(Box::new(
            names.map(|next| next.map(|(name, entry, _)| (name, entry))),
        ))
    }

    fn list_recalled(&self, folder: &str) -> io::Result<RecalledNames> {
        let address = self.folder(folder);
        let address = address.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        let listing = Listing::new(&self.client, &self.store, address);
        let mut listing = listing.map_err(io::Error::other)?;
        Ok(Box::new(iter::from_fn(move || {
            let next = listing.next_as_of()?;
            Some(next.map_err(|error| match error {
                StoreError::Object { source, .. } => source,
                other => io::Error::other(other),
            }))
        })))
    }

    fn open(&self, path: &str, object: &Stat) -> io::Result<Arc<dyn Source>> {
        let stale = || io::Error::from_raw_os_error(libc::ESTALE);
        let address = self.root.below(path).ok_or_else(stale)?;
        let version = object.version.as_deref().map(Version::of_text);
        Ok(Arc::new(Object::new(
            &self.client,
            self.store.clone(),
            &address,
            object.bytes,
            version.ok_or_else(stale)?,
        )))
    }
}
