//! Objects of stores by their addresses, if the module was built with the feature `object-store`.
//!
//! Connections are made at the first address, with the credentials of the environment at that time.

use std::sync::Arc;

use forerun_io::source::Source;
use forerun_io::source::tree::Tree;

use crate::errors::OpenError;

/// Size and version of an object, as a listing told them.
pub(crate) type Version = (u64, Arc<str>);

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Stores {
    #[cfg(feature = "object-store")]
    client: std::sync::OnceLock<forerun_store::Client>,
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
