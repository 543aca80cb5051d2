//! Objects of stores by their addresses, if the module was built with the feature `object-store`.
//!
//! Connections are made at the first address, with the credentials of the environment at that time; or with variables
//! that are given in place of the environment's, as those of a file system of fsspec.

use std::collections::BTreeMap;

use forerun_io::{Driver, Reader};
#[cfg(feature = "object-store")]
use forerun_store::Part;

use crate::errors::OpenError;

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
type OfVariables = (Option<BTreeMap<String, String>>, forerun_store::Client);

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Stores {
    #[cfg(feature = "object-store")]
    clients: std::sync::Mutex<Vec<OfVariables>>,
}

#[cfg(feature = "object-store")]
impl Stores {
    /// Opens an object. May wait for its store.
    ///
    /// # Errors
    /// The address is none, or those of the store.
    pub(crate) fn open(&self, driver: &Driver, url: &str) -> Result<Reader, OpenError> {
        let object = self.client(None)?.open(url)?;
        Ok(driver.open_source(std::sync::Arc::new(object))?)
    }

    /// Opens an object by given variables. May wait for its store, unless its version is known.
    ///
    /// # Errors
    /// The address is none, or those of the store.
    pub(crate) fn open_stored(
        &self,
        driver: &Driver,
        stored: &Stored,
    ) -> Result<Reader, OpenError> {
        let client = self.client(Some(&stored.variables))?;
        let object = match (&stored.version, stored.part) {
            (Some((bytes, tag)), _) => client.open_version(&stored.url, *bytes, tag)?,
            (None, (0, 0)) => client.open(&stored.url)?,
            (None, (0, last)) => client.open_part(&stored.url, Part::Last(last))?,
            (None, (first, _)) => client.open_part(&stored.url, Part::First(first))?,
        };
        Ok(driver.open_source(std::sync::Arc::new(object))?)
    }

    fn client(
        &self,
        variables: Option<&BTreeMap<String, String>>,
    ) -> Result<forerun_store::Client, OpenError> {
        let mut clients = self
            .clients
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = clients.iter().find(|(of, _)| of.as_ref() == variables);
        if let Some((_, client)) = known {
            return Ok(client.clone());
        }
        let limits = forerun_store::Limits::default();
        let client = match variables {
            None => forerun_store::Client::new(limits)?,
            Some(set) => forerun_store::Client::with_variables(limits, set.clone())?,
        };
        if clients.len() == CLIENTS_MAX {
            clients.remove(0);
        }
        clients.push((variables.cloned(), client.clone()));
        Ok(client)
    }
}

#[cfg(not(feature = "object-store"))]
#[expect(clippy::unused_self, reason = "the other one has clients")]
impl Stores {
    pub(crate) fn open(&self, _: &Driver, url: &str) -> Result<Reader, OpenError> {
        let why = "this forerun was built without the feature `object-store`";
        Err(OpenError::Address(format!("{url}: {why}")))
    }

    pub(crate) fn open_stored(
        &self,
        driver: &Driver,
        stored: &Stored,
    ) -> Result<Reader, OpenError> {
        self.open(driver, &stored.url)
    }
}
