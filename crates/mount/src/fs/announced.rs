//! Files opened by the daemon for itself, because reads of them were announced.
//!
//! Part of the [file system](super). An announcement comes before any program opens the file, so no
//! node of the kernel stands for it. Asking `nodes` for one would record attributes that the kernel
//! never received, and [opens](super::opening) are compared with those records. So the path is
//! walked from the root instead, one name at a time with [`beneath`]: no link is followed and
//! nothing leads out of SOURCE.
//!
//! ```text
//! a/b/c --> root -- open_child a -- open_child b -- open_child c --> open_source --> Reader
//!                        |
//!                        +-- the mount point itself: the covered folder; another mount: enters it
//! ```
//!
//! The caller's rights are those of the daemon: the control socket admits its user alone. Calls
//! here wait as long as the source does, so they are made on the thread of the announcements.

use std::os::fd::AsFd;
use std::path::{Component, Path};
use std::sync::Arc;

use forerun_io::served::is_served;
use forerun_io::source::OpenFile as SourceFile;
use forerun_io::{Error as DriverError, Reader};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::{Attributes, device_of};
use super::nodes::ROOT;
use super::resolve::Readable;
use super::{SourceFs, beneath};
use crate::mounted::Refused;

impl SourceFs {
    /// Opens a regular file by its path below SOURCE, to announce reads of it.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn open_announced(&self, path: &Path) -> Result<Reader, Refused> {
        let mut at = self.descriptor(ROOT)?;
        for component in path.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                _ => return Err(Refused::Path),
            };
            let covered = self.covered.as_ref().filter(|c| c.name == name);
            if let Some(covered) = covered
                && Attributes::of(&at, "")?.key == covered.parent
            {
                at = covered.folder.clone();
                continue;
            }
            at = match beneath::open_child(&at, name) {
                Err(Errno::XDEV) => {
                    let mounted = beneath::open_mounted(&at, name)?;
                    if self.own_device() == Some(device_of(&mounted)?) {
                        return Err(Errno::LOOP.into());
                    }
                    Arc::new(mounted)
                }
                child => Arc::new(child?),
            };
        }
        let attributes = Attributes::of(&at, "")?;
        if attributes.kind != FileType::RegularFile {
            return Err(Refused::Kind);
        }
        let driver = self.engine.driver().ok_or(Refused::Ended)?;
        // Not waiting for a lease, which would hold up all announcements.
        let opened = Readable::again(&at)?;
        let served = is_served(at.as_fd());
        let would_pass = || {
            let candidate = opened.candidate(&attributes, served);
            self.passthrough.is_possible() && self.is_to_be_passed(&driver, &candidate)
        };
        if self.nodes.is_passed_through(&attributes) || would_pass() {
            return Err(Refused::Passthrough);
        }
        let Readable { file, direct } = opened;
        let key = attributes.key.in_engine(attributes.born);
        let source = SourceFile::of(file, direct, key, served);
        let opened = driver.open_source(Arc::new(source));
        opened.map_err(|error| match error {
            DriverError::Open { source, .. } => beneath::errno(&source).into(),
            DriverError::TooLarge { .. } => Errno::FBIG.into(),
            _ => Errno::IO.into(),
        })
    }
}
