//! The folder that a mount point inside SOURCE hides.
//!
//! Problem: a mount point inside SOURCE hides a folder of SOURCE, and asking the source for that
//! name reaches this very mount, which would wait for itself for ever. Mechanism: the check of the
//! mount point opens the folder before the mount, and look-ups of its name are answered from that
//! descriptor.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::attributes::{Attributes, Key};
use super::beneath;

/// See the [module](self).
#[derive(Debug)]
pub struct Covered {
    /// The folder it is in.
    pub parent: Key,
    /// Its name there.
    pub name: OsString,
    /// Itself, from before it was covered.
    pub folder: Arc<File>,
}

/// A descriptor for something that is about to be covered; see [`Covered`].
///
/// # Errors
/// Errors of the source.
pub fn covered(mountpoint: &Path) -> Result<Covered, Errno> {
    let (Some(parent), Some(name)) = (mountpoint.parent(), mountpoint.file_name()) else {
        return Err(Errno::INVAL);
    };
    let parent = beneath::open_root(parent)?;
    let folder = beneath::open_mounted(parent.as_fd(), name)?;
    Ok(Covered {
        parent: Attributes::of(&parent, "")?.key,
        name: name.to_owned(),
        folder: Arc::new(folder),
    })
}
