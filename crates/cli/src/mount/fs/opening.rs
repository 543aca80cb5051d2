//! Opening a file or a folder: is it what the kernel took it for, and may its caller?
//!
//! Part of the [file system](super). The kernel checks rights and sizes by attributes that may be as
//! old as [`TTL`](crate::mount::trust::TTL), so each open compares them with the source:
//!
//! | found | answer |
//! | --- | --- |
//! | as told | open |
//! | another size or time, the same rights | the kernel drops its attributes first, then open |
//! | other rights, access list included | it drops them, and `ESTALE` |
//! | another file of that name: key, time of birth or kind | the same |
//!
//! On `ESTALE` the kernel walks the path once more with fresh attributes and checks again. What it is
//! told then it may open, see [`retries`](super::retries).

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use forerun_io::Error as DriverError;
use forerun_io::source::OpenFile as SourceFile;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::Attributes;
use super::file::OpenFile;
use super::nodes::Node;
use super::resolve::{Readable, same};
use super::told::Verdict;
use super::{Opened, SourceFs, XATTR_BYTES_MAX, beneath};

/// The extended attribute that holds an access list.
pub(super) const ACCESS_LIST: &str = "system.posix_acl_access";

impl SourceFs {
    /// Opens a regular file for a thread of some program.
    ///
    /// # Errors
    /// `ESTALE` if the kernel must look again, `EMFILE` if no descriptor is left, and those of the
    /// source.
    pub fn open(&self, node: Node, thread: u32) -> Result<Opened, Errno> {
        self.open_for(node, thread, false)
    }

    /// The same, and if the kernel has no bytes of it ([`Opened::first`]) it may be given some before it
    /// hears of the open: [`SourceFs::given`] must follow then.
    ///
    /// # Errors
    /// The same.
    pub fn open_to_give(&self, node: Node, thread: u32) -> Result<Opened, Errno> {
        self.open_for(node, thread, true)
    }

    /// What was to be given of a file that was opened has been given; whether it is still right.
    #[must_use]
    pub fn given(&self, node: Node, opened: &Opened) -> bool {
        self.nodes.given(node, opened.version)
    }

    fn open_for(&self, node: Node, thread: u32, gives: bool) -> Result<Opened, Errno> {
        let claimed = self.retries.claimed(thread, node);
        let is_claimed = claimed.is_some();
        let driver = self.driver().ok_or(Errno::SHUTDOWN)?;
        let place = self.nodes.place(node)?;
        let glance = driver.glance(place.key.inode());
        // What is found there must be of this kind, too.
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
        let Readable { file, direct } = opened;
        let verdict = self.compare(node, &file, &attributes, is_claimed)?;
        let identity = attributes.identity();
        let source = || SourceFile::of(file.clone(), direct, identity.inode, place.served);
        let reader = match reader {
            Some(reader) => reader,
            None => driver
                .open_file(source(), glance, identity)
                .map_err(|error| errno(&error))?,
        };
        let gives = gives && verdict == Verdict::Same;
        let version = attributes.version;
        let (before, first) = self.nodes.opened(node, &file, version, gives)?;
        let unlisted = self
            .walk
            .entered(place.parent, &place.name, &reader, thread.into());
        let handle = self
            .files
            .add(OpenFile::new(node, thread, reader, self.lane(node)));
        Ok(Opened {
            handle,
            version,
            unchanged: before == Some(version),
            first,
            resized: verdict == Verdict::Changed,
            unlisted: unlisted.then_some(place.parent),
        })
    }

    /// A thread is answered `ESTALE`; the kernel will try again for it.
    pub fn refused(&self, thread: u32) {
        self.retries.expected(thread);
    }

    /// What is opened: the folder this thread was told of a moment ago, or the one of that name.
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

    /// Compares with what the kernel was told; `ESTALE` if its check of rights may not hold. Of a
    /// file that was looked up for this very open it does.
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
