//! Opening a file or a folder: a check that the kernel's attributes still hold.
//!
//! Part of the [file system](super). The kernel checks rights and sizes by attributes that may be as
//! old as [`TTL`](crate::trust::TTL), so each open compares them with the source:
//!
//! | found | answer |
//! | --- | --- |
//! | as told | open |
//! | another size or time, the same rights | the kernel drops its attributes first, then open |
//! | other rights, access list included | it drops them, and `ESTALE` |
//! | another file of that name: key, time of birth or kind | the same |
//!
//! On `ESTALE` the kernel walks the path once more with fresh attributes and checks again. The file
//! found then may be opened, see [`retries`](super::retries).
//!
//! An open enters the [mode](super::io_mode) its file is open in. The mode of a file that is not
//! open is [chosen](super::passthrough), and its reader or backing id made, before the table is
//! asked: if another open came first with the other mode, that one is entered instead.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use forerun_io::source::OpenFile as SourceFile;
use forerun_io::{Driver, Error as DriverError};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::attributes::Attributes;
use super::io_mode::IoMode;
use super::nodes::{Entered, Node, NotEntered};
use super::passthrough::{Back, Backing, Candidate};
use super::resolve::{Readable, same};
use super::told::Verdict;
use super::{Opened, SourceFs, XATTR_BYTES_MAX, beneath};
use crate::open_file::OpenFile;

/// The extended attribute that holds an access list.
pub(super) const ACCESS_LIST: &str = "system.posix_acl_access";

impl SourceFs {
    /// Opens a regular file for a thread of some program.
    ///
    /// # Errors
    /// `ESTALE` if the kernel must look again, `EMFILE` if no descriptor is left, and those of the
    /// source.
    pub fn open(&self, node: Node, thread: u32) -> Result<Opened, Errno> {
        self.open_for(node, thread, None)
    }

    /// The same, and if the kernel has no bytes of it ([`Opened::first`]) it may be given some before it
    /// hears of the open: [`SourceFs::given`] must follow then. Or the kernel reads it by itself
    /// ([`Opened::io`]), if it can be made known to it by `back`.
    ///
    /// # Errors
    /// The same.
    pub fn open_to_give(&self, node: Node, thread: u32, back: Back<'_>) -> Result<Opened, Errno> {
        self.open_for(node, thread, Some(back))
    }

    /// Bytes were given for an opened file; whether the open is still right.
    #[must_use]
    pub fn given(&self, node: Node, opened: &Opened) -> bool {
        self.nodes.given(node, opened.version)
    }

    fn open_for(&self, node: Node, thread: u32, back: Option<Back<'_>>) -> Result<Opened, Errno> {
        let claimed = self.retries.claimed(thread, node);
        let is_claimed = claimed.is_some();
        let driver = self.engine.driver().ok_or(Errno::SHUTDOWN)?;
        let place = self.nodes.place(node)?;
        let glance = driver.glance(place.key.in_engine(place.born));
        // The file found there must be of this kind, too.
        match place.kind {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR),
            FileType::Symlink => return Err(Errno::LOOP),
            _ => return Err(Errno::STALE),
        }
        let (opened, attributes, reader) = match claimed {
            Some(file) => {
                let attributes = same(&place, Attributes::of(&file, ""))?;
                (Readable::again(&file)?, attributes, None)
            }
            None => match self.taken_ahead(&place)? {
                Some(ahead) => ahead,
                None => self.to_read(&place)?,
            },
        };
        let verdict = self.compare(node, &opened.file, &attributes, is_claimed)?;
        let identity = attributes.identity();
        let key = attributes.key.in_engine(attributes.born);
        let version = attributes.version;
        let gives = back.is_some() && verdict == Verdict::Same;
        let mut wanted = match (self.nodes.io_mode(node), back) {
            (Some(mode), _) => mode,
            (None, Some(back)) if reader.is_none() => {
                self.wanted_mode(&driver, &opened, &attributes, place.served, back)
            }
            _ => IoMode::Cached,
        };
        let mut reader = reader;
        let entered = loop {
            let Readable { file, direct } = &opened;
            if wanted.backing().is_some() {
                reader = None;
            } else if reader.is_none() {
                let source = SourceFile::of(file.clone(), *direct, key, place.served);
                let opened = driver.open_file(source, glance, identity);
                reader = Some(opened.map_err(|error| errno(&error))?);
            }
            // Others may have opened it meanwhile, in the other mode, or closed it.
            match self
                .nodes
                .opened(node, thread, file, version, gives, &wanted)
            {
                Err(NotEntered::Other(mode)) => wanted = mode,
                entered => break entered?,
            }
        };
        let Entered {
            before,
            first,
            io,
            ends,
        } = entered;
        let unlisted = reader.as_ref().is_some_and(|reader| {
            self.walk
                .entered(place.parent, &place.name, reader, thread.into())
        });
        if io.backing().is_some() {
            self.passthrough.count();
        }
        let resized = verdict == Verdict::Changed;
        let changed = resized || before.is_some_and(|before| before != version);
        let direct = ends.is_in_storm(changed, Instant::now()) && io.backing().is_none();
        let lane = self.lane(node);
        let file = OpenFile::new(node, thread, version.bytes, reader, lane).ending(ends);
        Ok(Opened {
            handle: self.files.add(file),
            version,
            unchanged: before == Some(version),
            first,
            resized,
            unlisted: unlisted.then_some(place.parent),
            io,
            direct,
        })
    }

    /// The mode for a file that is not open.
    fn wanted_mode(
        &self,
        driver: &Driver,
        opened: &Readable,
        attributes: &Attributes,
        served: bool,
        back: Back<'_>,
    ) -> IoMode<Backing> {
        let candidate = opened.candidate(attributes, served);
        match self.is_to_be_passed(driver, &candidate) {
            true => self.passthrough.back(&candidate, back),
            false => IoMode::Cached,
        }
    }

    /// Whether a file is to be opened in passthrough, as far as it can be.
    pub(super) fn is_to_be_passed(&self, driver: &Driver, candidate: &Candidate<'_>) -> bool {
        let (major, minor) = candidate.device;
        let device = rustix::fs::makedev(major, minor);
        let measured = || driver.measured(device);
        let emulated = driver.is_emulated();
        self.passthrough.wants(candidate, emulated, &measured)
    }

    /// Bytes of a file are asked for that the kernel reads by itself otherwise: it has a reader from now
    /// on. Asks the source.
    ///
    /// # Errors
    /// Errors of the source.
    pub fn begin_reader(&self, file: &OpenFile) -> Result<(), Errno> {
        let driver = self.engine.driver().ok_or(Errno::SHUTDOWN)?;
        let place = self.nodes.place(file.node)?;
        let glance = driver.glance(place.key.in_engine(place.born));
        let descriptor = place.descriptor.ok_or(Errno::STALE)?;
        let direct = rustix::fs::fcntl_getfl(&descriptor)?.contains(OFlags::DIRECT);
        let now = Attributes::of(&descriptor, "")?;
        let key = now.key.in_engine(now.born);
        let source = SourceFile::of(descriptor, direct, key, place.served);
        let reader = driver.open_file(source, glance, now.identity());
        file.begin_reader(reader.map_err(|error| errno(&error))?);
        Ok(())
    }

    /// A thread is answered `ESTALE`; the kernel will try again for it.
    pub fn refused(&self, thread: u32) {
        self.retries.expected(thread);
    }

    /// The folder to open: the one this thread was told of a moment ago, or the one of that name.
    pub(super) fn folder_as(
        &self,
        node: Node,
        claimed: Option<Arc<File>>,
    ) -> Result<(Arc<File>, Attributes), Errno> {
        let Some(file) = claimed else {
            return self.present(node);
        };
        let attributes = same(&self.nodes.place(node)?, Attributes::of(&file, ""))?;
        Ok((file, attributes))
    }

    /// Compares with the attributes sent to the kernel; `ESTALE` if its check of rights may not
    /// hold. For a file that was looked up for this very open it holds.
    pub(super) fn compare(
        &self,
        node: Node,
        descriptor: &Arc<File>,
        now: &Attributes,
        is_claimed: bool,
    ) -> Result<Verdict, Errno> {
        let access_list = || {
            let mut value = vec![0; XATTR_BYTES_MAX];
            let path = beneath::path_of(descriptor);
            let found = rustix::fs::getxattr(path, OsStr::new(ACCESS_LIST), &mut value[..]);
            digest(&found.map(|bytes| {
                value.truncate(bytes);
                value
            }))
        };
        match self.nodes.compare(node, now, access_list)? {
            Verdict::Rights if is_claimed => Ok(Verdict::Changed),
            Verdict::Rights => Err(Errno::STALE),
            other => Ok(other),
        }
    }
}

/// Tells one access list from another; all failures to have one are alike.
pub(super) fn digest(list: &Result<Vec<u8>, Errno>) -> u64 {
    let mut hasher = DefaultHasher::new();
    list.as_ref().ok().hash(&mut hasher);
    hasher.finish()
}

fn errno(error: &DriverError) -> Errno {
    match error {
        DriverError::Open { source, .. } => beneath::errno(source),
        DriverError::Directory { .. } => Errno::ISDIR,
        DriverError::TooManyOpenFiles { .. } => Errno::MFILE,
        DriverError::TooManyFiles { .. } => Errno::NFILE,
        DriverError::TooLarge { .. } => {
            tracing::warn!("{error}");
            Errno::FBIG
        }
        _ => Errno::IO,
    }
}
