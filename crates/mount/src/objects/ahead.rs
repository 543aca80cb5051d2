//! Objects opened ahead of the programs that will open them.
//!
//! Part of the [file system](super). The engine names an object of a listed folder; it is opened in the version
//! that the kernel was told of last, without a request, and its ranges name that version. A program that opens the
//! object in this version gets the reader; of another one the object ahead is closed. If the store has another
//! version by now, a range fetched ahead fails, which is reported to no program, and the program's own open asks the store.

use std::sync::Arc;

use forerun_core::{FolderId, ReaderId};
use forerun_io::Reader;
use forerun_io::source::tree::{Entry, Stat};

use super::ObjectFs;
use super::nodes::{Known, is_same};
use crate::fs::nodes::Node;
use crate::fuse::host::HasAhead;

/// An object: its folder, and its name there.
pub(super) type Name = (Node, Arc<str>);

/// Objects open ahead, most: each has a source with a path of its own, some 500 bytes.
const OPEN_MAX: usize = 4096;

impl ObjectFs {
    /// How many objects of a listing are gathered for the engine.
    pub(super) fn gathers(&self) -> usize {
        let driver = self.engine.driver();
        match driver.is_some_and(|driver| driver.follows_folders()) {
            true => self.walk.names_max(),
            false => 0,
        }
    }

    /// A program opened an object.
    pub(super) fn entered(&self, known: &Known, reader: &Reader, thread: u32) {
        let name = known.name.as_ref().as_ref();
        // A folder that is not listed stays so: listings cost requests.
        self.walk.entered(known.parent, name, reader, thread.into());
    }

    /// The reader of an object that is open ahead in this version.
    pub(super) fn taken_ahead(&self, known: &Known, stat: &Stat) -> Option<Reader> {
        let ahead = self.walk.take(&(known.parent, known.name.clone()))?;
        let is_this = ahead.file.version.is_some() && is_same(&ahead.file, stat);
        is_this.then_some(ahead.reader)
    }

    /// Closes objects ahead in folders that are not walked any more.
    pub(super) fn close_idle(&self) {
        drop(self.walk.take_idle());
    }

    fn ahead(&self, name: Name, folder: FolderId, path: &str, stat: Stat) -> Option<ReaderId> {
        let reader = self.reader(path, &stat).ok()?;
        let id = reader.id();
        let kept = self.walk.opened(folder, name, stat, reader, OPEN_MAX);
        kept.ok().map(|()| id)
    }
}

impl HasAhead for ObjectFs {
    fn open_ahead(self: Arc<Self>, folder: FolderId, entries: Vec<u32>) {
        for entry in entries {
            self.open_one_ahead(folder, entry);
        }
    }

    fn close_ahead(&self, reader: ReaderId) {
        drop(self.walk.take_reader(reader));
    }
}

impl ObjectFs {
    fn open_one_ahead(self: &Arc<Self>, folder: FolderId, entry: u32) {
        let Some((node, name, known)) = self.walk.place(folder, entry) else {
            return self.engine.not_opened_ahead(folder, entry);
        };
        let name: Arc<str> = name.to_string_lossy().into();
        let Ok(path) = self.nodes.path_of(node, &name) else {
            return known.opened_ahead(entry, None);
        };
        let key = (node, name);
        if let Some(Entry::Object(stat)) = self.nodes.newest(node, &key.1)
            && stat.version.is_some()
        {
            return known.opened_ahead(entry, self.ahead(key, folder, &path, stat));
        }
        let fs = self.clone();
        self.recall_then(path, self.believed, move |path, found| {
            let reader = match found {
                Ok((Some(Entry::Object(stat)), _)) => fs.ahead(key, folder, &path, stat),
                _ => None,
            };
            known.opened_ahead(entry, reader);
        });
    }
}
