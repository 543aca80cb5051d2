//! Where the bytes of a file come from, kept so that a child process can open it again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use forerun_io::Reader;
use forerun_io::source::remote::is_address;

use crate::engine::Running;
use crate::errors::OpenError;
use crate::fetch::{Fetched, Object};
use crate::stores::Stored;

/// See the [module](self).
#[derive(Clone)]
pub(crate) enum Origin {
    Path(PathBuf),
    Address(String),
    Stored(Arc<Stored>),
    Fetched(Arc<Object>),
}

impl Origin {
    /// A path or an address.
    pub(crate) fn of(path: PathBuf) -> Self {
        match path.to_str().filter(|text| is_address(text)) {
            Some(address) => Self::Address(address.to_owned()),
            None => Self::Path(path),
        }
    }

    pub(crate) fn name(&self) -> OsString {
        match self {
            Self::Path(path) => path.clone().into(),
            Self::Address(address) => address.into(),
            Self::Stored(stored) => stored.url.as_str().into(),
            Self::Fetched(object) => object.name.to_string().into(),
        }
    }

    /// Whether a server is asked where it is opened.
    pub(crate) fn is_address(&self) -> bool {
        match self {
            Self::Address(_) => true,
            Self::Stored(stored) => stored.version.is_none(),
            Self::Path(_) | Self::Fetched(_) => false,
        }
    }

    /// Opens it. May wait for a server: the interpreter is released.
    ///
    /// # Errors
    /// Those of the path or the server.
    pub(crate) fn open(&self, running: &Running) -> Result<Reader, OpenError> {
        let Running {
            driver,
            stores,
            calls,
        } = running;
        match self {
            Self::Path(path) => Ok(driver.open(path)?),
            Self::Address(address) => stores.open(driver, address),
            Self::Stored(stored) => stores.open_stored(driver, stored),
            Self::Fetched(object) => {
                let (object, calls) = (object.clone(), calls.clone());
                Ok(driver.open_source(Arc::new(Fetched { object, calls }))?)
            }
        }
    }
}
