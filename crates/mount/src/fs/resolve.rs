//! From a node to a descriptor for it, also after changes of the source.
//!
//! Part of the [file system](super). A node is reached from the nearest folder above it whose
//! descriptor is kept, one name at a time; each step must find the very file that was found there
//! when the kernel was told of it, else the answer is `ESTALE`: the kernel then looks the path up
//! again, as it does for network file systems.
//!
//! ```text
//! node --> its folder --> .. --> a folder with a descriptor     (up, in the table)
//!  descriptor <-- step <-- .. <-- step                          (down, in the source)
//! ```

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::ahead::Opening;
use super::attributes::{Attributes, device_of};
use super::nodes::{DEPTH_MAX, FileSystem, Node, Place, ROOT};
use super::passthrough::Candidate;
use super::{SourceFs, beneath};

/// The target of a name.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) file: Arc<File>,
    pub(super) attributes: Attributes,
    pub(super) on: FileSystem,
}

/// A file that was opened for reading.
#[derive(Debug)]
pub(super) struct Readable {
    pub(super) file: Arc<File>,
    /// Whether past the page cache.
    pub(super) direct: bool,
}

impl Readable {
    /// It may be opened in passthrough.
    pub(super) fn candidate(&self, attributes: &Attributes, served: bool) -> Candidate<'_> {
        Candidate {
            file: &self.file,
            direct: self.direct,
            served,
            device: attributes.key.device,
            bytes: attributes.version.bytes,
        }
    }

    /// A file that something stands for already.
    pub(super) fn again(standing: &File) -> Result<Self, Errno> {
        let (file, direct) = beneath::open_again(standing)?;
        Ok(Self {
            file: file.into(),
            direct,
        })
    }
}

impl SourceFs {
    /// A descriptor that stands for a node, made from its folder's if none is kept.
    pub(super) fn descriptor(&self, node: Node) -> Result<Arc<File>, Errno> {
        self.resolve(node).map(|(descriptor, _)| descriptor)
    }

    /// The same for a node that is opened by its name, with its attributes: whoever has it open by
    /// now may have another file than the one of that name.
    pub(super) fn present(&self, node: Node) -> Result<(Arc<File>, Attributes), Errno> {
        let (descriptor, attributes) = self.resolve(node)?;
        let attributes = match attributes {
            Some(attributes) => attributes,
            None => self.attributes_by_name(node, &descriptor)?,
        };
        Ok((descriptor, attributes))
    }

    fn attributes_by_name(&self, node: Node, kept: &File) -> Result<Attributes, Errno> {
        let place = self.nodes.place(node)?;
        if node == ROOT || self.covered_by(place.parent, &place.name)?.is_some() {
            return Attributes::of(kept, "");
        }
        self.attributes_of_file(&place)
    }

    /// The attributes of the file at a place, by its name.
    pub(super) fn attributes_of_file(&self, place: &Place) -> Result<Attributes, Errno> {
        let folder = self.descriptor(place.parent)?;
        if place.mounted {
            return self.step(&folder, place).map(|(_, attributes)| attributes);
        }
        self.attributes_in(&folder, place)
    }

    fn attributes_in(&self, folder: &File, place: &Place) -> Result<Attributes, Errno> {
        let child = beneath::open_child(folder, &place.name).map_err(stale)?;
        same(place, Attributes::of(child, ""))
    }

    /// A regular file by its name, opened for reading unless it is open already, with its attributes.
    pub(super) fn to_read(&self, place: &Place) -> Result<Opening, Errno> {
        let folder = self.descriptor(place.parent)?;
        if place.mounted {
            let (file, attributes) = self.step(&folder, place)?;
            return Ok((Readable::again(&file)?, attributes, None));
        }
        // A server is asked to open it each time: some show changes at an open only.
        if let Some(file) = place.descriptor.as_ref().filter(|_| !place.served) {
            let attributes = self.attributes_in(&folder, place)?;
            let direct = rustix::fs::fcntl_getfl(file)?.contains(OFlags::DIRECT);
            let file = file.clone();
            return Ok((Readable { file, direct }, attributes, None));
        }
        let (file, direct) = beneath::open_to_read(&folder, &place.name).map_err(stale)?;
        let attributes = same(place, Attributes::of(&file, ""))?;
        let file = Arc::new(file);
        Ok((Readable { file, direct }, attributes, None))
    }

    /// A descriptor, and the attributes if it was not kept.
    fn resolve(&self, node: Node) -> Result<(Arc<File>, Option<Attributes>), Errno> {
        // From the node up to a folder whose descriptor is kept, then down again.
        let mut way = Vec::new();
        let mut at = node;
        let mut folder = loop {
            let place = self.nodes.place(at)?;
            if let Some(descriptor) = place.descriptor {
                break descriptor;
            }
            if way.len() == DEPTH_MAX {
                return Err(Errno::STALE);
            }
            let parent = place.parent;
            way.push((at, place));
            at = parent;
        };
        let mut last = None;
        for (node, place) in way.into_iter().rev() {
            let (child, attributes) = self.step(&folder, &place)?;
            if attributes.kind == FileType::Directory {
                self.nodes.keep_folder(node, &child);
            }
            folder = child;
            last = Some(attributes);
        }
        Ok((folder, last))
    }

    /// The target of a name, on the folder's own file system; none if something is mounted there.
    pub(super) fn child(&self, parent: Node, name: &OsStr) -> Result<Option<Child>, Errno> {
        let place = self.nodes.place(parent)?;
        let on = FileSystem {
            served: place.served,
            mounted: false,
        };
        let file = match self.covered_by(parent, name)? {
            Some(covered) => covered.clone(),
            None => match beneath::open_child(self.descriptor(parent)?, name) {
                Ok(child) => Arc::new(child),
                Err(Errno::XDEV) => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let attributes = Attributes::of(&file, "")?;
        Ok(Some(Child {
            file,
            attributes,
            on,
        }))
    }

    /// The root of a file system mounted on a name. This mount itself is never looked into: its
    /// requests would be ours to answer, while we wait.
    pub(super) fn mounted_child(&self, parent: Node, name: &OsStr) -> Result<Child, Errno> {
        let file = Arc::new(beneath::open_mounted(self.descriptor(parent)?, name)?);
        if self.own.get() == Some(&device_of(&file)?) {
            return Err(Errno::LOOP);
        }
        let on = FileSystem {
            served: is_served(&file),
            mounted: true,
        };
        let attributes = Attributes::of(&file, "")?;
        Ok(Child {
            file,
            attributes,
            on,
        })
    }

    fn step(&self, folder: &File, place: &Place) -> Result<(Arc<File>, Attributes), Errno> {
        let child = match self.covered_by(place.parent, &place.name)? {
            Some(covered) => covered.clone(),
            None if place.mounted => {
                let child = beneath::open_mounted(folder, &place.name).map_err(stale)?;
                if device_of(&child)? != place.key.device {
                    return Err(Errno::STALE);
                }
                Arc::new(child)
            }
            None => Arc::new(beneath::open_child(folder, &place.name).map_err(stale)?),
        };
        let attributes = same(place, Attributes::of(&child, ""))?;
        Ok((child, attributes))
    }

    /// The folder under the mount point, if this is its name.
    pub(super) fn covered_by(
        &self,
        parent: Node,
        name: &OsStr,
    ) -> Result<Option<&Arc<File>>, Errno> {
        let Some(covered) = self.covered.as_ref().filter(|c| c.name == name) else {
            return Ok(None);
        };
        let is_parent = self.nodes.place(parent)?.key.is_inode_of(&covered.parent);
        Ok(is_parent.then_some(&covered.folder))
    }
}

/// Whether the file system of a file is [served](forerun_io::served).
pub(super) fn is_served(file: &File) -> bool {
    forerun_io::served::is_served(file.as_fd())
}

/// The attributes, if they are still those of the file that was found at this place.
pub(super) fn same(place: &Place, now: Result<Attributes, Errno>) -> Result<Attributes, Errno> {
    let now = now.map_err(stale)?;
    if place.is(&now) {
        Ok(now)
    } else {
        Err(Errno::STALE)
    }
}

/// A node that is not where it was found may be elsewhere: the kernel looks again.
fn stale(error: Errno) -> Errno {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO => Errno::STALE,
        other => other,
    }
}
