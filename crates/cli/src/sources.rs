//! Files by path, and objects by address.
//!
//! ```text
//! photos/a.jpg          a file
//! s3://bucket/a.jpg     an object, if this binary has the feature `object-store`
//! ```
//!
//! A path that begins like an address is one; `./s3:` is not.

use std::path::Path;

use forerun_io::source::remote::is_address;
use forerun_io::{Driver, Reader};

use crate::failure::Failure;

/// The address that a path is.
#[must_use]
pub fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| is_address(text))
}

/// Opens files and objects.
#[derive(Debug, Default)]
pub struct Sources {
    #[cfg(feature = "object-store")]
    client: std::cell::OnceCell<forerun_store::Client>,
}

impl Sources {
    /// A file or an object, as a reader.
    ///
    /// # Errors
    /// It cannot be opened; by name.
    pub fn open(&self, driver: &Driver, path: &Path) -> Result<Reader, Failure> {
        match address(path) {
            Some(url) => self.object(driver, url),
            None => driver.open(path).map_err(|e| Failure::Usage(e.to_string())),
        }
    }

    #[cfg(feature = "object-store")]
    fn object(&self, driver: &Driver, url: &str) -> Result<Reader, Failure> {
        let refused = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let client = forerun_store::Client::new(forerun_store::Limits::default());
                let client = client.map_err(|error| refused(&error))?;
                self.client.get_or_init(|| client)
            }
        };
        let object = client.open(url).map_err(|error| refused(&error))?;
        let reader = driver.open_source(std::sync::Arc::new(object));
        reader.map_err(|error| refused(&error))
    }

    #[cfg(not(feature = "object-store"))]
    #[expect(clippy::unused_self, reason = "the other one has a client")]
    fn object(&self, _: &Driver, url: &str) -> Result<Reader, Failure> {
        let why = "is an address, and this forerun was built without the feature `object-store`";
        Err(Failure::Usage(format!("{url}: {why}")))
    }
}
