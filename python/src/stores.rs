//! Objects of stores by their addresses, if the module was built with the feature `object-store`.
//!
//! Connections are made at the first address, with the credentials of the environment at that time.

use std::sync::Arc;

use forerun_io::source::Source;

use crate::errors::OpenError;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Stores {
    #[cfg(feature = "object-store")]
    client: std::sync::OnceLock<forerun_store::Client>,
}

impl Stores {
    /// An object, in the version that is there now. May wait for its store.
    ///
    /// # Errors
    /// The address is none, or those of the store.
    #[cfg(feature = "object-store")]
    pub(crate) fn source(&self, url: &str) -> Result<Arc<dyn Source>, OpenError> {
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let client = forerun_store::Client::new(forerun_store::Limits::default())?;
                self.client.get_or_init(|| client)
            }
        };
        Ok(Arc::new(client.open(url)?))
    }

    #[cfg(not(feature = "object-store"))]
    #[expect(clippy::unused_self, reason = "the other one has a client")]
    pub(crate) fn source(&self, url: &str) -> Result<Arc<dyn Source>, OpenError> {
        let why = "this forerun was built without the feature `object-store`";
        Err(OpenError::Address(format!("{url}: {why}")))
    }
}
