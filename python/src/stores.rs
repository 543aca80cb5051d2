//! Objects of stores by their addresses, if the module was built with the feature `object-store`.
//!
//! Connections are made at the first address, with the credentials of the environment at that time.

use forerun_io::{Driver, Reader};

use crate::errors::OpenError;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Stores {
    #[cfg(feature = "object-store")]
    client: std::sync::OnceLock<forerun_store::Client>,
}

impl Stores {
    /// Opens an object. May wait for its store.
    ///
    /// # Errors
    /// The address is none, or those of the store.
    #[cfg(feature = "object-store")]
    pub(crate) fn open(&self, driver: &Driver, url: &str) -> Result<Reader, OpenError> {
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let client = forerun_store::Client::new(forerun_store::Limits::default())?;
                self.client.get_or_init(|| client)
            }
        };
        Ok(driver.open_source(std::sync::Arc::new(client.open(url)?))?)
    }

    #[cfg(not(feature = "object-store"))]
    #[expect(clippy::unused_self, reason = "the other one has a client")]
    pub(crate) fn open(&self, _: &Driver, url: &str) -> Result<Reader, OpenError> {
        let why = "this forerun was built without the feature `object-store`";
        Err(OpenError::Address(format!("{url}: {why}")))
    }
}
