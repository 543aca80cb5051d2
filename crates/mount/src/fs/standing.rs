//! Files and folders the kernel reads without opening them, of a tree that does not change.
//!
//! Part of the [file system](super). Such a request of the kernel names a node and no handle, so
//! the file is opened at the first request and stays open for [`IDLE`] after the last, or until
//! [`FILES_MAX`] others are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::SourceFs;
use super::listing::Listing;
use super::nodes::Node;
use crate::lock;
use crate::open_file::OpenFile;

/// How long after its last request something stays open: programs pause less between two of them,
/// and a file that is opened again costs a whole open.
const IDLE: Duration = Duration::from_secs(2);

/// Most files, and most folders, that stand: more than programs read at a time.
const FILES_MAX: usize = 512;

/// With the thing itself: its number may be another one's when it is looked up.
type Handles<T> = HashMap<Node, (u64, Arc<T>, Instant)>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Standing {
    files: Mutex<Handles<OpenFile>>,
    folders: Mutex<Handles<Listing>>,
}

/// The thing of a node that stands, used now.
fn used<T>(handles: &Mutex<Handles<T>>, node: Node) -> Option<Arc<T>> {
    let mut handles = lock(handles);
    let (_, thing, at) = handles.get_mut(&node)?;
    *at = Instant::now();
    Some(thing.clone())
}

/// A node stands from now on. Returns the handle to release instead: its own if it stood already,
/// the one used least recently if there are too many.
fn stands<T>(handles: &Mutex<Handles<T>>, node: Node, handle: u64, thing: &Arc<T>) -> Option<u64> {
    let mut handles = lock(handles);
    if handles.contains_key(&node) {
        return Some(handle);
    }
    handles.insert(node, (handle, thing.clone(), Instant::now()));
    if handles.len() <= FILES_MAX {
        return None;
    }
    let oldest = handles
        .iter()
        .min_by_key(|(_, (_, _, at))| *at)
        .map(|(node, _)| *node)?;
    handles.remove(&oldest).map(|(handle, ..)| handle)
}

fn has_idle<T>(handles: &Mutex<Handles<T>>) -> bool {
    let handles = lock(handles);
    handles.values().any(|(.., at)| at.elapsed() > IDLE)
}

fn idle<T>(handles: &Mutex<Handles<T>>) -> Vec<u64> {
    let mut handles = lock(handles);
    let gone = handles.extract_if(|_, (.., at)| at.elapsed() > IDLE);
    gone.map(|(_, (handle, ..))| handle).collect()
}

fn all<T>(handles: &Mutex<Handles<T>>) -> Vec<u64> {
    lock(handles)
        .drain()
        .map(|(_, (handle, ..))| handle)
        .collect()
}

impl SourceFs {
    /// The file a read without a handle is of, opened if it does not stand.
    ///
    /// # Errors
    /// Errors of [`SourceFs::open`].
    pub fn standing(&self, node: Node, thread: u32) -> Result<Arc<OpenFile>, Errno> {
        if let Some(file) = self.stands(node) {
            return Ok(file);
        }
        let handle = self.open(node, thread)?.handle;
        let file = self.files.get(handle)?;
        if let Some(handle) = stands(&self.standing.files, node, handle, &file) {
            self.release(handle);
        }
        Ok(file)
    }

    /// The same, if it stands: no call to the source.
    #[must_use]
    pub fn stands(&self, node: Node) -> Option<Arc<OpenFile>> {
        used(&self.standing.files, node)
    }

    /// The folder a listing without a handle is of, opened if it does not stand.
    ///
    /// # Errors
    /// Errors of [`SourceFs::open_folder`].
    pub fn standing_folder(&self, node: Node, thread: u32) -> Result<Arc<Listing>, Errno> {
        if let Some(folder) = used(&self.standing.folders, node) {
            return Ok(folder);
        }
        let handle = self.open_folder(node, thread)?;
        let folder = self.folders.get(handle)?;
        if let Some(handle) = stands(&self.standing.folders, node, handle, &folder) {
            self.release_folder(handle);
        }
        Ok(folder)
    }

    /// Whether anything was not used for a while.
    #[must_use]
    pub fn has_idle(&self) -> bool {
        has_idle(&self.standing.files) || has_idle(&self.standing.folders)
    }

    /// Closes handles that were not used for a while. Asks the source, which may not answer.
    pub fn close_idle(&self) {
        for handle in idle(&self.standing.files) {
            self.release(handle);
        }
        for handle in idle(&self.standing.folders) {
            self.release_folder(handle);
        }
    }

    /// Closes all of it. False if there was none.
    pub(super) fn close_standing(&self) -> bool {
        let files = all(&self.standing.files);
        let folders = all(&self.standing.folders);
        for handle in &files {
            self.release(*handle);
        }
        for handle in &folders {
            self.release_folder(*handle);
        }
        !files.is_empty() || !folders.is_empty()
    }
}
