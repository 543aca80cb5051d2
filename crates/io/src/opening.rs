//! Opening: from a path, a descriptor or a seed to a reader of the version that is there now.
//!
//! Called by programs that read. The file is looked at before the engine's lock is taken, and the look is
//! settled under it ([`settle`](crate::settle)): if the file changed meanwhile it is looked at again.
//! A caller that has the file open, and its attributes, hands both over instead of a path.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use forerun_core::FileId;

use crate::driver::Driver;
use crate::engine_state::{Found, FoundArray, Place};
use crate::error::Error;
use crate::position;
use crate::reader::{Position, Reader};
use crate::settle::{Look, Settled};
use crate::source::{Generated, Identity, Key, OpenFile, Source};

/// A file that each look finds changed meanwhile is looked at so often before its open fails.
const LOOKS_MAX: u32 = 64;

/// The number of a file's version before it is looked at: tells whether another look came between.
#[derive(Clone, Copy, Debug)]
pub struct Glance(Option<(FileId, u64)>);

/// The number of no version: odd, as while a version changes.
const CHANGING: u64 = u64::MAX;

impl Driver {
    /// Opens a file or block device.
    ///
    /// # Errors
    /// Each names the path: missing, unreadable, a directory, without positions, too large, or no
    /// descriptor left.
    pub fn open(&self, path: &Path) -> Result<Reader, Error> {
        let file = OpenFile::open(path)?;
        let name = || path.display().to_string();
        self.open_named(Arc::new(file), None, name)
    }

    /// Opens whatever a source reads.
    ///
    /// # Errors
    /// More bytes than blocks can be numbered, or too many files; those of the source when it is asked
    /// for its size or version. Each names it by its key.
    pub fn open_source(&self, source: Arc<dyn Source>) -> Result<Reader, Error> {
        let name = source.key();
        self.open_named(source, None, || name.to_string())
    }

    /// Begins to look at a file, before its caller asks for its attributes: see [`Driver::open_file`].
    #[must_use]
    pub fn glance(&self, inode: (u64, u64)) -> Glance {
        let key = Key::Inode(inode.0, inode.1);
        Glance(
            self.engine_host()
                .with(|state| state.catalog.numbered(&key)),
        )
    }

    /// As [`Driver::open`], for a regular file that its caller has open and knows to be in this
    /// version, by a look made after the `glance` at it: so it is not asked again.
    ///
    /// # Errors
    /// It is too large, or there are too many; those of `fstat(2)` if it changed meanwhile. Each
    /// names it by its inode.
    pub fn open_file(
        &self,
        file: OpenFile,
        glance: Glance,
        identity: Identity,
    ) -> Result<Reader, Error> {
        let name = || format!("inode {}", identity.inode.1);
        self.open_named(Arc::new(file), Some((glance, identity)), name)
    }

    fn place(&self, source: &dyn Source) -> Place {
        match source.device() {
            Some(device) if !self.emulated => match source.is_served() {
                true => Place::Served(device, source.requests_max()),
                false => Place::Real(device),
            },
            _ => Place::Imagined,
        }
    }

    /// Opens content that is made from a seed as it is read; see [`crate::generated`].
    ///
    /// # Errors
    /// More bytes than blocks can be numbered.
    pub fn open_generated(&self, seed: u64, index: u64, bytes: u64) -> Result<Reader, Error> {
        self.open_source(Arc::new(Generated { seed, index, bytes }))
    }

    /// The system's account of a file that is not known. Local file systems alone are asked for places:
    /// they answer.
    fn found(&self, place: Place, source: &dyn Source, bytes: u64) -> Found {
        let Some(file) = source.file() else {
            return Found {
                prior: self.priors.as_ref().and_then(|_| source.profile()),
                ..Found::default()
            };
        };
        let (is_local, device) = match place {
            Place::Imagined => return Found::default(),
            Place::Real(device) => (true, device),
            Place::Served(device, _) => (false, device),
        };
        let priors = self.priors.as_ref();
        let prior = |device| priors.and_then(|priors| priors.of(device, || file.file_system()));
        let file = file.as_fd();
        let is_worth_it = is_local && bytes >= position::BYTES_MIN;
        let geometry = is_worth_it.then(|| self.arrays.of(file)).flatten();
        let array = geometry.map(|geometry| {
            let members = geometry.arrays.iter().flat_map(|array| &array.members);
            let numbers = members.map(FoundArray::number);
            let priors = numbers.map(|number| (number, prior(number))).collect();
            FoundArray { geometry, priors }
        });
        Found {
            location: match array {
                None if is_worth_it => position::of(file),
                _ => None,
            },
            prior: if array.is_none() { prior(device) } else { None },
            array,
        }
    }

    fn open_named(
        &self,
        source: Arc<dyn Source>,
        mut look: Option<(Glance, Identity)>,
        name: impl Fn() -> String,
    ) -> Result<Reader, Error> {
        let failed = |source| Error::Open {
            path: name().into(),
            source,
        };
        let (key, place) = (source.key(), self.place(&*source));
        for _ in 0..LOOKS_MAX {
            let (before, identity) = match look.take() {
                Some((Glance(before), identity)) => (before, Some(identity)),
                None => {
                    let before = self
                        .engine_host()
                        .with(|state| state.catalog.numbered(&key));
                    (before, source.identity().map_err(failed)?)
                }
            };
            let bytes = identity.map_or_else(|| source.bytes().map_err(failed), |i| Ok(i.bytes))?;
            let system = match before {
                None => self.found(place, &*source, bytes),
                Some(_) => Found::default(),
            };
            let opened = self.engine_host().with(|state| {
                let limit = state.file_bytes_max();
                if bytes > limit {
                    return Err(Error::TooLarge {
                        name: name(),
                        bytes,
                        limit,
                    });
                }
                self.engine_host().forget_surplus(state);
                if !state.catalog.has_room() {
                    return Err(Error::TooManyFiles {
                        limit: forerun_core::FileId::LIMIT,
                    });
                }
                let found = state.catalog.find(&key);
                if let (Some(file), seen) = (found, identity) {
                    let before = before.filter(|(then, _)| *then == file);
                    let before = before.map_or(CHANGING, |(_, count)| count);
                    let look = Look { before, seen };
                    if self.engine_host().settle(state, file, look) == Settled::LookAgain {
                        return Ok(None);
                    }
                }
                let looks = self.engine_host().looks;
                let file = state.file(key.clone(), place, identity, bytes, system, looks);
                let position = Arc::<Position>::default();
                let reader = state.open(file, position.clone());
                let gone = || failed(std::io::Error::from_raw_os_error(libc::ENOENT));
                let version = state.catalog.opened(file, reader, source.clone());
                let version = version.ok_or_else(gone)?;
                // This was a look.
                version.looks_now();
                Ok(Some(Reader::new(
                    self.engine_host().clone(),
                    reader,
                    file,
                    version,
                    source.clone(),
                    position,
                )))
            })?;
            if let Some(reader) = opened {
                return Ok(reader);
            }
        }
        Err(failed(std::io::ErrorKind::ResourceBusy.into()))
    }
}
