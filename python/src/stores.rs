//! Objects of stores by their addresses, if the module was built with the feature `object-store`.
//!
//! Connections are made at the first address, with the credentials of the environment at that time; or with variables
//! that are given in place of the environment's, as those of a file system of fsspec.

use std::collections::BTreeMap;
use std::sync::Arc;
#[cfg(feature = "object-store")]
use std::sync::{Mutex, PoisonError};

use forerun_io::source::Source;
use forerun_io::source::tree::Tree;
#[cfg(feature = "object-store")]
use forerun_store::Part;

use crate::errors::OpenError;

/// Size and version of an object, as a listing told them.
pub(crate) type Version = (u64, Arc<str>);

/// An object whose store is reached by given variables.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) url: String,
    pub(crate) variables: BTreeMap<String, String>,
    /// Size and ETag, if they are known.
    pub(crate) version: Option<(u64, String)>,
    /// Bytes from the beginning, and at the end, of which one is asked for at the opening unless both are 0.
    pub(crate) part: (u64, u64),
}

/// Most sets of variables with connections of their own, each with threads: those of a program with a few accounts.
/// Of more, the ones made first are made again.
#[cfg(feature = "object-store")]
const CLIENTS_MAX: usize = 8;

#[cfg(feature = "object-store")]
type OfVariables = (BTreeMap<String, String>, forerun_store::Client);

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Stores {
    #[cfg(feature = "object-store")]
    client: std::sync::OnceLock<forerun_store::Client>,
    #[cfg(feature = "object-store")]
    others: Mutex<Vec<OfVariables>>,
}

impl Stores {
    #[cfg(feature = "object-store")]
    fn client(&self) -> Result<&forerun_store::Client, OpenError> {
        match self.client.get() {
            Some(client) => Ok(client),
            None => {
                let client = forerun_store::Client::new(forerun_store::Limits::default())?;
                Ok(self.client.get_or_init(|| client))
            }
        }
    }

    /// An object, in a version that a listing told or the one that is there now. May wait for its store.
    ///
    /// # Errors
    /// The address is none, or those of the store.
    #[cfg(feature = "object-store")]
    pub(crate) fn source(
        &self,
        url: &str,
        version: Option<&Version>,
    ) -> Result<Arc<dyn Source>, OpenError> {
        let client = self.client()?;
        Ok(Arc::new(match version {
            Some((bytes, version)) => client.open_version(url, *bytes, version)?,
            None => client.open(url)?,
        }))
    }

    /// An object by given variables. May wait for its store, unless its version is known.
    ///
    /// # Errors
    /// The address is none, or those of the store.
    #[cfg(feature = "object-store")]
    pub(crate) fn stored(&self, stored: &Stored) -> Result<Arc<dyn Source>, OpenError> {
        let client = {
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            let known = others.iter().find(|(of, _)| *of == stored.variables);
            if let Some((_, client)) = known {
                client.clone()
            } else {
                let (limits, set) = (forerun_store::Limits::default(), stored.variables.clone());
                let client = forerun_store::Client::with_variables(limits, set.clone())?;
                if others.len() == CLIENTS_MAX {
                    others.remove(0);
                }
                others.push((set, client.clone()));
                client
            }
        };
        Ok(Arc::new(match (&stored.version, stored.part) {
            (Some((bytes, tag)), _) => client.open_tagged(&stored.url, *bytes, tag)?,
            (None, (0, 0)) => client.open(&stored.url)?,
            (None, (0, last)) => client.open_part(&stored.url, Part::Last(last))?,
            (None, (first, _)) => client.open_part(&stored.url, Part::First(first))?,
        }))
    }

    /// The objects below an address. Waits for its store.
    ///
    /// # Errors
    /// The address is none, or those of the store.
    #[cfg(feature = "object-store")]
    pub(crate) fn tree(&self, url: &str) -> Result<Box<dyn Tree>, OpenError> {
        Ok(Box::new(self.client()?.tree(url)?))
    }

    #[cfg(not(feature = "object-store"))]
    #[expect(clippy::unused_self, reason = "the other one has a client")]
    pub(crate) fn stored(&self, stored: &Stored) -> Result<Arc<dyn Source>, OpenError> {
        Err(without(&stored.url))
    }

    #[cfg(not(feature = "object-store"))]
    #[expect(clippy::unused_self, reason = "the other one has a client")]
    pub(crate) fn tree(&self, url: &str) -> Result<Box<dyn Tree>, OpenError> {
        Err(without(url))
    }

    #[cfg(not(feature = "object-store"))]
    #[expect(clippy::unused_self, reason = "the other one has a client")]
    pub(crate) fn source(
        &self,
        url: &str,
        _: Option<&Version>,
    ) -> Result<Arc<dyn Source>, OpenError> {
        Err(without(url))
    }
}

#[cfg(not(feature = "object-store"))]
fn without(url: &str) -> OpenError {
    let why = "this forerun was built without the feature `object-store`";
    OpenError::Address(format!("{url}: {why}"))
}
