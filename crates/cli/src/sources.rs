//! Files by path, and objects by address.
//!
//! ```text
//! photos/a.jpg          a file
//! s3://bucket/a.jpg     an object, if this binary has the feature `object-store`
//! ```
//!
//! A path that begins like an address is one; `./s3:` is not.

#[cfg(feature = "object-store")]
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "object-store")]
use std::sync::PoisonError;
use std::thread;

use forerun_core::Bytes;
use forerun_io::source::remote::is_address;
use forerun_io::source::tree::Tree;
#[cfg(feature = "object-store")]
use forerun_io::source::tree::{Entry, Stat};
use forerun_io::{Driver, Reader, Source};

use crate::args::Storage;
use crate::failure::Failure;

/// The address that a path is.
#[must_use]
pub fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| is_address(text))
}

/// The files of a directory, as a shell is told them.
#[must_use]
pub fn all_below(folder: &Path) -> String {
    folder.join("*").display().to_string()
}

/// Stores whose requests are signed.
const SIGNED: [&str; 3] = ["s3://", "gs://", "az://"];

/// `--anonymous` is for paths of which one is an object of a store that takes keys: for others it would do nothing.
///
/// # Errors
/// There is none; the flag, and the first path.
pub fn check_anonymous(is_anonymous: bool, paths: &[PathBuf]) -> Result<(), Failure> {
    let takes_keys = |url: &str| SIGNED.iter().any(|scheme| url.starts_with(scheme));
    let is_signed = |path: &PathBuf| address(path).is_some_and(takes_keys);
    if !is_anonymous || paths.iter().any(is_signed) {
        return Ok(());
    }
    let path = paths
        .first()
        .map_or(String::new(), |path| format!("{}: ", path.display()));
    Err(Failure::Usage(format!(
        "--anonymous: {path}requests to {} are signed, and nothing else is",
        SIGNED.join(", ")
    )))
}

/// The flags of a storage fit these paths: none would do nothing for all of them.
///
/// # Errors
/// One that would; the flag, and the first path.
pub fn check_storage(storage: &Storage, paths: &[PathBuf]) -> Result<(), Failure> {
    check_anonymous(storage.anonymous, paths)?;
    let Some(first) = paths
        .first()
        .filter(|_| paths.iter().all(|path| address(path).is_some()))
    else {
        return Ok(());
    };
    let flags = [
        ("--stripe", storage.stripe.is_some()),
        ("--backend", storage.backend.is_some()),
    ];
    let unfit = flags.iter().find(|(_, is_given)| *is_given);
    unfit.map_or(Ok(()), |(flag, _)| {
        let why = "is for files of this machine, not for objects of a store";
        Err(Failure::Usage(format!(
            "{flag}: {}: it {why}",
            first.display()
        )))
    })
}

/// Objects of one folder at most: a list that a person meant to write.
#[cfg(feature = "object-store")]
const LISTED_MAX: usize = 1000;

/// Questions for objects under way at a time: 1,000 objects 30 ms away take two seconds.
const ASKED_AT_ONCE: usize = 16;

/// Opens files and objects.
#[derive(Debug, Default)]
pub struct Sources {
    #[cfg(feature = "object-store")]
    client: std::sync::OnceLock<Result<forerun_store::Client, String>>,
    #[cfg(feature = "object-store")]
    limits: forerun_store::Limits,
    #[cfg(feature = "object-store")]
    is_anonymous: bool,
    /// Objects of listings, by their addresses: they are opened without a question.
    #[cfg(feature = "object-store")]
    listed: std::sync::Mutex<HashMap<String, Stat>>,
}

impl Sources {
    /// With requests to stores that fit a memory.
    #[must_use]
    #[cfg_attr(
        not(feature = "object-store"),
        expect(unused_variables, reason = "there are no stores")
    )]
    pub fn within(memory: Bytes) -> Self {
        Self {
            #[cfg(feature = "object-store")]
            limits: forerun_store::Limits::within(memory),
            ..Self::default()
        }
    }

    /// The same, with requests that are not signed if so.
    #[must_use]
    #[cfg_attr(
        not(feature = "object-store"),
        expect(unused_variables, unused_mut, reason = "there are no stores")
    )]
    pub fn anonymous(mut self, is_anonymous: bool) -> Self {
        #[cfg(feature = "object-store")]
        {
            self.is_anonymous = is_anonymous;
        }
        self
    }

    /// How a bucket of S3 is reached.
    ///
    /// # Errors
    /// It is no address of S3, or its credentials are there in part.
    #[cfg(feature = "object-store")]
    pub fn endpoint(&self, url: &str) -> Result<forerun_store::Endpoint, Failure> {
        self.client()?.endpoint(url).map_err(refused)
    }

    /// A file or an object, as a reader.
    ///
    /// # Errors
    /// It cannot be opened; by name.
    pub fn open(&self, driver: &Driver, path: &Path) -> Result<Reader, Failure> {
        let opened = match address(path) {
            Some(url) => driver.open_source(self.object(url)?),
            None => driver.open(path),
        };
        opened.map_err(|e| Failure::Usage(e.to_string()))
    }

    /// The version of an object that is there now, or that the listing told that named it.
    ///
    /// # Errors
    /// It cannot be opened; by its address.
    #[cfg(feature = "object-store")]
    pub fn object(&self, url: &str) -> Result<Arc<dyn Source>, Failure> {
        let client = self.client()?;
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let stat = listed.get(url).cloned();
        drop(listed);
        let told = stat.and_then(|stat| Some((stat.bytes, stat.version?)));
        let opened = match told {
            Some((bytes, version)) => client.open_version(url, bytes, &version),
            None => client.open(url),
        };
        Ok(Arc::new(opened.map_err(refused)?))
    }

    /// The objects among these paths, and none for a file: a key that is missing is found before any of them is read.
    ///
    /// # Errors
    /// As of [`Sources::object`], of the first that cannot be opened.
    pub fn objects(&self, paths: &[PathBuf]) -> Result<Vec<Option<Arc<dyn Source>>>, Failure> {
        let mut objects = Vec::with_capacity(paths.len());
        for paths in paths.chunks(ASKED_AT_ONCE) {
            thread::scope(|scope| {
                let ask = |url| scope.spawn(move || self.object(url));
                let asked: Vec<_> = paths.iter().map(|path| address(path).map(ask)).collect();
                for (path, asked) in paths.iter().zip(asked) {
                    let panicked = |_| Err(Failure::broken(path, "the question for it panicked"));
                    let object = asked.map(|asked| asked.join().unwrap_or_else(panicked));
                    objects.push(object.transpose()?);
                }
                Ok::<(), Failure>(())
            })?;
        }
        Ok(objects)
    }

    /// The same paths, with the objects directly below each address that ends in `/` in its place, in the order of
    /// their names.
    ///
    /// # Errors
    /// A store without listings, a listing that fails, or one of more than 1,000 objects or of none.
    pub fn listed(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
        let mut listed = Vec::new();
        for path in paths {
            match address(path).filter(|url| url.ends_with('/')) {
                Some(url) => listed.extend(self.below(url)?),
                None => listed.push(path.clone()),
            }
        }
        Ok(listed)
    }

    /// The objects below an address as a tree of folders, for a mount.
    ///
    /// # Errors
    /// A store that is not there, that refuses or has no listings, or nothing below the address; by its address.
    #[cfg(feature = "object-store")]
    pub fn tree(&self, url: &str) -> Result<Arc<dyn Tree>, Failure> {
        Ok(Arc::new(self.client()?.tree(url).map_err(refused)?))
    }

    /// The objects below an address as a tree of folders, for a mount.
    ///
    /// # Errors
    /// This binary reads no objects.
    #[cfg(not(feature = "object-store"))]
    #[expect(clippy::unused_self, reason = "the other one has a client")]
    pub fn tree(&self, url: &str) -> Result<Arc<dyn Tree>, Failure> {
        Err(without_stores(url))
    }

    #[cfg(feature = "object-store")]
    fn below(&self, url: &str) -> Result<Vec<PathBuf>, Failure> {
        let entries = self.client()?.list(url).map_err(refused)?;
        let mut below = Vec::new();
        for entry in entries {
            if let (name, Entry::Object(stat)) = entry.map_err(refused)? {
                let address = format!("{url}{name}");
                below.push(PathBuf::from(&address));
                let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
                listed.insert(address, stat);
            }
            if below.len() > LISTED_MAX {
                let why = format!("has more than {LISTED_MAX} objects: name some of them");
                return Err(Failure::Usage(format!("{url}: {why}")));
            }
        }
        match below.is_empty() {
            true => Err(Failure::Usage(format!(
                "{url}: there is no object directly below it"
            ))),
            false => Ok(below),
        }
    }

    #[cfg(not(feature = "object-store"))]
    fn below(&self, url: &str) -> Result<Vec<PathBuf>, Failure> {
        self.object(url).map(|_| Vec::new())
    }

    #[cfg(feature = "object-store")]
    fn client(&self) -> Result<&forerun_store::Client, Failure> {
        let client = self.client.get_or_init(|| {
            let client = match self.is_anonymous {
                true => forerun_store::Client::anonymous(self.limits),
                false => forerun_store::Client::new(self.limits),
            };
            client.map_err(|error| error.to_string())
        });
        let client = client.as_ref();
        client.map_err(|error| Failure::Usage(error.clone()))
    }

    /// The version of an object that is there now.
    ///
    /// # Errors
    /// This binary reads no objects.
    #[cfg(not(feature = "object-store"))]
    #[expect(clippy::unused_self, reason = "the other one has a client")]
    pub fn object(&self, url: &str) -> Result<Arc<dyn Source>, Failure> {
        Err(without_stores(url))
    }
}

#[cfg(not(feature = "object-store"))]
fn without_stores(url: &str) -> Failure {
    let why = "is an address, and this forerun was built without object stores: `make install`, the packages and \
               `cargo install --path crates/cli` have them";
    Failure::Usage(format!("{url}: {why}"))
}

#[cfg(feature = "object-store")]
fn refused(error: forerun_store::StoreError) -> Failure {
    Failure::Usage(error.to_string())
}
