//! The folder that a mount point inside SOURCE hides.
//!
//! Made before the mount by the check of the mount point. A look-up of its name must be answered
//! with the folder below the mount: asking the source for the folder there now would be asking
//! ourselves, and wait for ever.

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
