//! Files opened ahead of the programs that will open them.
//!
//! Part of the [file system](super). The engine names entries of a listed folder; the daemon opens
//! them as a program would, and [`walk`](super::walk) keeps each until a program opens it. The daemon
//! may open files that the program may not: the program's own open is checked by its kernel, as
//! always.
//!
//! The engine fetches files in the order in which it is told that they are open. That is the order in which
//! they begin on the disk, where the file system says so, because numbers of inodes follow it roughly at best:
//!
//! ```text
//! entries    7      3     12     by inode number, as the engine asks for them
//! begins at  90 MB  4 MB  5 MB   told as 3, 12, 7
//! ```

use std::ffi::OsStr;
use std::fs::File;
use std::mem;
use std::os::fd::AsFd;
use std::sync::Arc;

use forerun_core::{Bytes, FolderId, ReaderId};
use forerun_io::source::OpenFile as SourceFile;
use forerun_io::{Reader, position};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::attributes::Attributes;
use super::nodes::{Node, Place};
use super::resolve::Readable;
use super::walk::Ahead;
use super::{SourceFs, beneath};

/// Of the descriptors the process may have, the part that files ahead take at most: a quarter, because
/// programs open more than they walk.
const DESCRIPTORS_PART: usize = 4;

/// The same of those that are looked at and not open ahead yet.
const LOOKED_PART: usize = 16;

/// A file that is open ahead.
#[derive(Debug)]
pub(super) struct AheadFile {
    file: Arc<File>,
    attributes: Attributes,
}

/// A file with the reader it got.
pub(super) type Opening = (Readable, Attributes, Option<Reader>);

/// Files that are looked at before the first of them is fetched: so large a folder is in the order of the disk as a
/// whole, and each is a descriptor.
const LOOKED_MAX: usize = 1024;
/// The same in bytes: a disk of 80 MB/s reads them in a second.
const LOOKED_BYTES: u64 = 64 << 20;

/// A file that is open, and to be fetched in its turn.
struct Found {
    entry: u32,
    file: Arc<File>,
    direct: bool,
    /// Where it begins on its disk, if that is known.
    begins: Option<Bytes>,
}

/// Descriptors that the process may have.
fn descriptors_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

impl SourceFs {
    /// Opens entries of a folder ahead, in the order of their places on the disk, and tells the driver how that went.
    pub fn open_ahead(&self, folder: FolderId, entries: &[u32]) {
        let (mut found, mut bytes) = (Vec::new(), 0);
        let most = (descriptors_max() / LOOKED_PART).clamp(1, LOOKED_MAX);
        for entry in entries {
            let Some((node, name, known)) = self.walk.place(folder, *entry) else {
                self.engine.not_opened_ahead(folder, *entry);
                continue;
            };
            match self.found_ahead(node, &name, *entry) {
                Ok((file, size)) => {
                    found.push(file);
                    bytes += size;
                }
                Err(_) => known.opened_ahead(*entry, None),
            }
            if found.len() == most || bytes >= LOOKED_BYTES {
                self.fetch_ahead(folder, mem::take(&mut found));
                bytes = 0;
            }
        }
        self.fetch_ahead(folder, found);
    }

    /// A file by its name, with its size.
    fn found_ahead(&self, node: Node, name: &OsStr, entry: u32) -> Result<(Found, u64), Errno> {
        let place = self.nodes.place(node)?;
        let (file, direct) = beneath::open_to_read(self.descriptor(node)?, name)?;
        let bytes = rustix::fs::fstat(&file)?.st_size;
        let begins = (!place.served)
            .then(|| position::of(file.as_fd()))
            .flatten();
        let found = Found {
            entry,
            file: Arc::new(file),
            direct,
            begins,
        };
        Ok((found, u64::try_from(bytes).unwrap_or_default()))
    }

    /// Gives files to the driver, which fetches them in this order: that of the disk, or of their numbers.
    fn fetch_ahead(&self, folder: FolderId, mut found: Vec<Found>) {
        found.sort_by_key(|found| (found.begins.is_none(), found.begins));
        for file in found {
            let entry = file.entry;
            let Some((node, _, known)) = self.walk.place(folder, entry) else {
                self.engine.not_opened_ahead(folder, entry);
                continue;
            };
            let reader = self.try_ahead(node, file, folder).ok();
            known.opened_ahead(entry, reader);
        }
    }

    fn try_ahead(&self, node: Node, found: Found, folder: FolderId) -> Result<ReaderId, Errno> {
        let Found { file, direct, .. } = found;
        let driver = self.engine.driver().ok_or(Errno::SHUTDOWN)?;
        let place = self.nodes.place(node)?;
        let seen = Attributes::of(&file, "")?;
        // The look that counts comes after the glance.
        let glance = driver.glance(seen.key.in_engine(seen.born));
        let attributes = Attributes::of(&file, "")?;
        if attributes.kind != FileType::RegularFile {
            return Err(Errno::STALE);
        }
        let opened = Readable { file, direct };
        // Its program will have it from the kernel.
        if self.is_to_be_passed(&driver, &opened.candidate(&attributes, place.served)) {
            return Err(Errno::CANCELED);
        }
        let Readable { file, direct } = opened;
        let identity = attributes.identity();
        let key = attributes.key.in_engine(attributes.born);
        let source = SourceFile::of(file.clone(), direct, key, place.served);
        let reader = driver.open_file(source, glance, identity);
        let reader = reader.map_err(|_| Errno::IO)?;
        let id = reader.id();
        let most = descriptors_max() / DESCRIPTORS_PART;
        let (key, file) = (attributes.key, AheadFile { file, attributes });
        let kept = self.walk.opened(folder, key, file, reader, most);
        kept.map(|()| id).map_err(|_| Errno::EXIST)
    }

    /// The file that is open ahead, if a program opens it now.
    pub(super) fn taken_ahead(&self, place: &Place) -> Result<Option<Opening>, Errno> {
        let Some(ahead) = self.walk.take(&place.key) else {
            return Ok(None);
        };
        let attributes = self.attributes_of_file(place)?;
        let Ahead { file, reader, .. } = ahead;
        if attributes.identity() != file.attributes.identity() {
            return Ok(None);
        }
        let file = file.file;
        let opened = Readable { file, direct: true };
        Ok(Some((opened, attributes, Some(reader))))
    }

    /// No program comes for a file that was opened ahead: the handles to be dropped.
    #[must_use]
    pub fn not_ahead(&self, reader: ReaderId) -> Option<impl Send + use<>> {
        self.walk.take_reader(reader)
    }

    /// Files that are open ahead in folders that are not walked any more: to be dropped on a thread
    /// that may wait for their server.
    #[must_use]
    pub fn idle_ahead(&self) -> Vec<impl Send + use<>> {
        self.walk.take_idle()
    }
}
