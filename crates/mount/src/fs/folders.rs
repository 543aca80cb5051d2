//! Folders: opened, listed with or without attributes, closed.
//!
//! Part of the [file system](super). A listing from the first name to the last is passed on to
//! [`walk`](super::walk), which expects a program to open the files of a folder it has listed.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::io::Errno;

use super::listing::{Listing, Name};
use super::nodes::Node;
use super::{Found, SourceFs, beneath};

/// The size of no file: the kernel takes nothing of a listed name that has it, and forgets its look-up.
const NOT_TAKEN: u64 = u64::MAX;

impl SourceFs {
    /// Opens a folder.
    ///
    /// # Errors
    /// Errors of [`SourceFs::open`].
    pub fn open_folder(&self, node: Node, thread: u32) -> Result<u64, Errno> {
        let claimed = self.retries.claimed(thread, node);
        let is_claimed = claimed.is_some();
        let (descriptor, attributes) = self.folder_as(node, claimed)?;
        self.compare(node, &descriptor, &attributes, is_claimed)?;
        let folder = beneath::open_for_listing(descriptor)?;
        let gathers = self
            .engine
            .driver()
            .is_some_and(|driver| driver.follows_folders());
        let most = if gathers { self.walk.names_max() } else { 0 };
        Ok(self.folders.add(Listing::new(folder, most)))
    }

    /// An open folder.
    ///
    /// # Errors
    /// `EBADF` if there is none of this number.
    pub fn listed(&self, handle: u64) -> Result<Arc<Listing>, Errno> {
        self.folders.get(handle)
    }

    /// Gives the names of a folder from a position on, with the number each will have, until one
    /// is not taken.
    ///
    /// # Errors
    /// Errors of the source.
    pub fn read_folder(
        &self,
        node: Node,
        folder: &Listing,
        from: u64,
        take: &mut dyn FnMut(Node, &Name) -> bool,
    ) -> Result<(), Errno> {
        self.read_names(node, folder, from, &mut |name| {
            let taken = take(self.nodes.number_on_device(name.inode), name);
            taken.then_some(0)
        })
    }

    /// As [`read_folder`](Self::read_folder), each name looked up; none where that is not possible
    /// and for `.` and `..`, which the kernel looks up by itself.
    ///
    /// # Errors
    /// Errors of the source.
    pub fn read_folder_found(
        &self,
        node: Node,
        folder: &Listing,
        from: u64,
        take: &mut dyn FnMut(Option<&Found>, &Name) -> bool,
    ) -> Result<(), Errno> {
        self.read_names(node, folder, from, &mut |name| {
            let dots = matches!(name.name.as_bytes(), b"." | b"..");
            let mut found = (!dots)
                .then(|| self.lookup_here(node, &name.name).ok().flatten())
                .flatten();
            let bytes = found.as_ref().map_or(0, |f| f.attributes.version.bytes);
            // With a larger size the kernel would show zeros; dropping them waits for reads.
            if let Some(found) = &mut found
                && self.zeros_below(found.node, bytes).is_some()
            {
                self.doubt(found.node);
                found.attributes.version.bytes = NOT_TAKEN;
            }
            let taken = take(found.as_ref(), name);
            if let Some(found) = found.filter(|_| !taken) {
                self.forget(found.node, 1);
            }
            taken.then_some(bytes)
        })
    }

    /// Gives names on; `take` answers with the size of the file, or that it does not take the name.
    fn read_names(
        &self,
        node: Node,
        folder: &Listing,
        from: u64,
        take: &mut dyn FnMut(&Name) -> Option<u64>,
    ) -> Result<(), Errno> {
        let is_end = folder.read(from, &mut |at, name| {
            let bytes = take(name);
            if let Some(bytes) = bytes {
                folder.gather(at, name, bytes);
            }
            bytes.is_some()
        })?;
        if is_end
            && let Some(files) = folder.all_gathered()
            && let Some(driver) = self.engine.driver()
        {
            self.walk.listed(&driver, node, files);
        }
        Ok(())
    }

    /// Lists a folder that no program lists, because programs open files of it.
    pub fn list_for_walk(&self, node: Node) {
        let Some(driver) = self.engine.driver() else {
            return;
        };
        let Ok(folder) = self.descriptor(node).and_then(beneath::open_for_listing) else {
            return;
        };
        let listing = Listing::new(folder, self.walk.names_max());
        let listed = listing.read(0, &mut |at, name| {
            listing.gather(at, name, 0);
            true
        });
        if let (Ok(true), Some(files)) = (listed, listing.all_gathered()) {
            self.walk.listed(&driver, node, files);
        }
    }

    /// Closes an open folder.
    pub fn release_folder(&self, handle: u64) {
        self.folders.remove(handle);
    }
}
