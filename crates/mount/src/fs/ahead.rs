//! Files opened ahead of the programs that will open them.
//!
//! Part of the [file system](super). The engine names an entry of a listed folder; the daemon opens
//! it as a program would, and [`walk`](super::walk) keeps it until a program opens it. The daemon
//! may open files that the program may not: the program's own open is checked by its kernel, as
//! always.

use std::ffi::OsStr;
use std::fs::File;
use std::sync::Arc;

use forerun_core::{FolderId, ReaderId};
use forerun_io::Reader;
use forerun_io::source::OpenFile as SourceFile;
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
const DESCRIPTORS_PART: u64 = 4;

/// A file that is open ahead.
#[derive(Debug)]
pub(super) struct AheadFile {
    file: Arc<File>,
    attributes: Attributes,
}

/// A file with the reader it got.
pub(super) type Opening = (Readable, Attributes, Option<Reader>);

impl SourceFs {
    /// Opens an entry of a folder ahead, and tells the driver how that went.
    pub fn open_ahead(&self, folder: FolderId, entry: u32) {
        let Some((node, name, known)) = self.walk.place(folder, entry) else {
            return;
        };
        let reader = self.try_ahead(node, &name, folder).ok();
        known.opened_ahead(entry, reader);
    }

    fn try_ahead(&self, node: Node, name: &OsStr, folder: FolderId) -> Result<ReaderId, Errno> {
        let driver = self.engine.driver().ok_or(Errno::SHUTDOWN)?;
        let place = self.nodes.place(node)?;
        let (file, direct) = beneath::open_to_read(self.descriptor(node)?, name)?;
        let file = Arc::new(file);
        let seen = Attributes::of(&file, "")?;
        // The look that counts comes after the glance.
        let glance = driver.glance(seen.key.in_engine());
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
        let key = attributes.key.in_engine();
        let source = SourceFile::of(file.clone(), direct, key, place.served);
        let reader = driver.open_file(source, glance, identity);
        let reader = reader.map_err(|_| Errno::IO)?;
        let id = reader.id();
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(limit / DESCRIPTORS_PART).unwrap_or(usize::MAX);
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
