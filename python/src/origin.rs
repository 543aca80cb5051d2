//! Where the bytes of a file come from, kept so that a child process can open it again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use forerun_io::Reader;
use forerun_io::source::Source;
use forerun_io::source::remote::is_address;

use crate::announced::Key;
use crate::engine::Running;
use crate::errors::OpenError;
use crate::fetch::{Fetched, Object};
use crate::stores::{Stored, Version};

/// A reader, and the source of an object, by which others are opened without a question to its server.
pub(crate) type Opened = (Arc<Reader>, Option<Arc<dyn Source>>);

/// See the [module](self).
#[derive(Clone)]
pub(crate) enum Origin {
    Path(PathBuf),
    /// In a version that was listed, if there is one.
    Address(String, Option<Version>),
    Stored(Arc<Stored>),
    Fetched(Arc<Object>),
}

impl Origin {
    /// A path or an address.
    pub(crate) fn of(path: PathBuf, version: Option<Version>) -> Self {
        match path.to_str().filter(|text| is_address(text)) {
            Some(address) => Self::Address(address.to_owned(), version),
            None => Self::Path(path),
        }
    }

    pub(crate) fn name(&self) -> OsString {
        match self {
            Self::Path(path) => path.clone().into(),
            Self::Address(address, _) => address.into(),
            Self::Stored(stored) => stored.url.as_str().into(),
            Self::Fetched(object) => object.name.to_string().into(),
        }
    }

    /// Whether a server is asked where it is opened.
    pub(crate) fn asks(&self) -> bool {
        match self {
            Self::Address(_, version) => version.is_none(),
            Self::Stored(stored) => stored.version.is_none(),
            Self::Path(_) | Self::Fetched(_) => false,
        }
    }

    /// Whether it is an address that was announced by its name, which is opened without a question.
    pub(crate) fn is_announced(&self, running: &Running) -> bool {
        let key = self.key();
        key.is_some_and(|key| running.announced.source(&key).is_some())
    }

    fn key(&self) -> Option<Key> {
        match self {
            Self::Address(address, None) => Some(Key::Name(address.into())),
            _ => None,
        }
    }

    /// Opens it, and the source of an object. May wait for a server: the interpreter is released.
    ///
    /// # Errors
    /// Those of the path or the server.
    pub(crate) fn open(&self, running: &Running) -> Result<Opened, OpenError> {
        let Running {
            driver,
            stores,
            calls,
            announced: _,
        } = running;
        let (reader, source) = match self {
            Self::Path(path) => (driver.open(path)?, None),
            Self::Address(address, version) => {
                let announced = self.key().and_then(|key| running.announced.open(&key));
                let source = match announced {
                    Some(source) => source,
                    None => stores.source(address, version.as_ref())?,
                };
                (driver.open_source(source.clone())?, Some(source))
            }
            Self::Stored(stored) => {
                let source = stores.stored(stored)?;
                (driver.open_source(source.clone())?, Some(source))
            }
            Self::Fetched(object) => {
                let (object, calls) = (object.clone(), calls.clone());
                let source = Arc::new(Fetched { object, calls });
                (driver.open_source(source)?, None)
            }
        };
        Ok((Arc::new(reader), source))
    }
}
