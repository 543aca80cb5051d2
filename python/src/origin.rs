//! Where the bytes of a file come from, kept so that a child process can open it again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use forerun_io::{Error, Reader};

use crate::engine::Running;
use crate::fetch::Object;

/// Addresses that are read by HTTP; all others are paths.
const HTTP: &str = "http://";

/// See the [module](self).
#[derive(Clone)]
pub(crate) enum Origin {
    Path(PathBuf),
    Http(String),
    Fetched(Arc<Object>),
}

impl Origin {
    /// A path or an address.
    pub(crate) fn of(path: PathBuf) -> Self {
        match path.to_str().filter(|text| text.starts_with(HTTP)) {
            Some(address) => Self::Http(address.to_owned()),
            None => Self::Path(path),
        }
    }

    pub(crate) fn name(&self) -> OsString {
        match self {
            Self::Path(path) => path.clone().into(),
            Self::Http(address) => address.into(),
            Self::Fetched(object) => object.name.to_string().into(),
        }
    }

    /// Opens it. May wait for a server: the interpreter is released.
    ///
    /// # Errors
    /// Those of the path or the server.
    pub(crate) fn open(&self, running: &Running) -> Result<Reader, Error> {
        let Running { driver, client } = running;
        match self {
            Self::Path(path) => driver.open(path),
            Self::Http(address) => driver.open_source(Arc::new(client.open(address)?)),
            Self::Fetched(object) => driver.open_source(object.clone()),
        }
    }
}
