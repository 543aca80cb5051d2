//! The files the engine knows: open ones, and closed ones whose blocks may still be cached.
//!
//! Part of the engine's state, behind its lock. Two opens of one inode (or of the same generated
//! content) share one number, one descriptor and their blocks. When the last reader closes, the
//! descriptor goes and the number stays, so that a reopened file is still warm; past
//! [`CLOSED_MAX`] closed files those closed longest ago are forgotten, some hundreds at a time.
//!
//! ```text
//! open by path --> inode known? --yes--> same version? --yes--> share number and blocks
//!                       |                      | no: drop its blocks, a new version begins
//!                       no: next number
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forerun_core::FileId;
use forerun_core::layout::LayoutMap;

use crate::numbers::Numbered;
use crate::source::{Identity, Key, Source};

/// Closed files remembered. Each costs about 300 bytes; four thousand are the working set of a
/// build or a web server.
pub(crate) const CLOSED_MAX: usize = 4096;

/// So many are forgotten at a time: the engine goes through its frames once for all of them.
const FORGOTTEN: usize = 256;

/// The part that readers look at without a lock.
#[derive(Debug)]
pub(crate) struct Version {
    /// Twice the number of changes so far; odd while one is being made, from before the first
    /// block of the old version goes until after the last one went.
    count: AtomicU64,
    bytes: AtomicU64,
    /// The tick in which the file was last looked at; see [`crate::clock::coarse_ticks`].
    checked: AtomicU64,
}

impl Version {
    fn new(bytes: u64) -> Self {
        Self {
            count: AtomicU64::new(0),
            bytes: AtomicU64::new(bytes),
            checked: AtomicU64::new(0),
        }
    }

    /// The number of this version: all bytes of one read belong to one number, which is even.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The number that blocks fetched from now on belong to.
    pub(crate) fn wanted(&self) -> u64 {
        self.count().next_multiple_of(2)
    }

    /// The size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether the file was not looked at in this tick; true for one caller.
    pub(crate) fn look_is_due(&self, tick: u64) -> bool {
        self.checked.load(Ordering::Relaxed) != tick
            && self.checked.swap(tick, Ordering::Relaxed) != tick
    }

    /// A new version begins; blocks of the old one are still there.
    fn begin(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Release);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// The blocks of the old version are gone.
    pub(crate) fn begun(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// A file the engine knows.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) key: Key,
    pub(crate) layout: LayoutMap,
    /// Whether the system told that it lies so on an array.
    pub(crate) is_found: bool,
    pub(crate) identity: Option<Identity>,
    pub(crate) version: Arc<Version>,
    /// While a reader has it open.
    pub(crate) source: Option<Arc<dyn Source>>,
    pub(crate) readers: u32,
    pub(crate) in_flight: u32,
    closed_at: u64,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    files: Numbered<Known>,
    by_key: HashMap<Key, FileId>,
    closed: BTreeMap<u64, FileId>,
    closes: u64,
}

impl Catalog {
    pub(crate) fn find(&self, key: &Key) -> Option<FileId> {
        self.by_key.get(key).copied()
    }

    /// A file that is known, with the number of its version.
    pub(crate) fn numbered(&self, key: &Key) -> Option<(FileId, u64)> {
        let file = self.find(key)?;
        Some((file, self.get(file)?.version.count()))
    }

    pub(crate) fn get(&self, file: FileId) -> Option<&Known> {
        self.files.get(file.0)
    }

    pub(crate) fn get_mut(&mut self, file: FileId) -> Option<&mut Known> {
        self.files.get_mut(file.0)
    }

    /// Whether another file can be numbered.
    pub(crate) fn has_room(&self) -> bool {
        self.files.next() < FileId::LIMIT
    }

    /// The number that the next new file gets.
    pub(crate) fn next(&self) -> FileId {
        FileId(self.files.next())
    }

    /// Adds a file that is not known.
    pub(crate) fn add(
        &mut self,
        key: Key,
        identity: Option<Identity>,
        bytes: u64,
        layout: LayoutMap,
        is_found: bool,
    ) -> FileId {
        let version = Arc::new(Version::new(bytes));
        let file = FileId(self.files.insert(Known {
            key: key.clone(),
            layout,
            is_found,
            identity,
            version,
            source: None,
            readers: 0,
            in_flight: 0,
            closed_at: 0,
        }));
        self.by_key.insert(key, file);
        file
    }

    /// Begins a new version; [`Version::begun`] once the old blocks are gone.
    pub(crate) fn renew(&mut self, file: FileId, identity: Identity) -> Option<Arc<Version>> {
        let known = self.files.get_mut(file.0)?;
        known.identity = Some(identity);
        known.version.begin(identity.bytes);
        Some(known.version.clone())
    }

    /// A reader opened the file; its source is kept if the file had none.
    pub(crate) fn opened(
        &mut self,
        file: FileId,
        source: Arc<dyn Source>,
    ) -> Option<Arc<dyn Source>> {
        let known = self.files.get_mut(file.0)?;
        self.closed.remove(&known.closed_at);
        known.readers += 1;
        Some(known.source.get_or_insert(source).clone())
    }

    /// A reader closed the file.
    pub(crate) fn closed(&mut self, file: FileId) {
        let Some(known) = self.files.get_mut(file.0) else {
            return;
        };
        known.readers = known.readers.saturating_sub(1);
        if known.readers == 0 {
            known.source = None;
            self.closes += 1;
            known.closed_at = self.closes;
            self.closed.insert(self.closes, file);
        }
    }

    /// Whether closed files are to be forgotten, down to this many.
    pub(crate) fn surplus(&self) -> Option<usize> {
        let is_surplus = self.closed.len() > CLOSED_MAX || !self.has_room();
        is_surplus.then(|| self.closed.len().min(CLOSED_MAX).saturating_sub(FORGOTTEN))
    }

    /// Takes out the file closed longest ago of which nothing is in flight, if more than so many are
    /// closed.
    pub(crate) fn take_closed(&mut self, left: usize) -> Option<FileId> {
        if self.closed.len() <= left {
            return None;
        }
        let idle = |file: &FileId| self.files.get(file.0).is_some_and(|k| k.in_flight == 0);
        let (&at, &file) = self.closed.iter().find(|(_, file)| idle(file))?;
        self.closed.remove(&at);
        let known = self.files.remove(file.0)?;
        self.by_key.remove(&known.key);
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Generated;
    use forerun_core::{Bytes, DeviceId, Placement};

    fn add(catalog: &mut Catalog, index: u64) -> FileId {
        let key = Key::Generated {
            seed: 0,
            index,
            bytes: 10,
        };
        let file = catalog.find(&key);
        let placement = Placement::linear(DeviceId(0), Bytes(0));
        let layout = LayoutMap::new(&placement, 4096).unwrap();
        let file = file.unwrap_or_else(|| catalog.add(key, None, 10, layout, false));
        catalog.opened(
            file,
            Arc::new(Generated {
                seed: 0,
                index,
                bytes: 10,
            }),
        );
        file
    }

    #[test]
    fn closed_files_stay_known_until_there_are_too_many() {
        let mut catalog = Catalog::default();
        for index in 0..CLOSED_MAX as u64 + 2 {
            let file = add(&mut catalog, index);
            catalog.closed(file);
        }
        let first = add(&mut catalog, 0);
        assert_eq!(first, FileId(0));
        let left = catalog.surplus().unwrap();
        assert_eq!(catalog.take_closed(left), Some(FileId(1)));
        assert!(catalog.surplus().is_none());
        assert_eq!(add(&mut catalog, 77_777), FileId(1));
    }

    #[test]
    fn a_look_is_due_once_a_tick() {
        let version = Version::new(1);
        assert!(version.look_is_due(5));
        assert!(!version.look_is_due(5));
        assert!(version.look_is_due(6));
    }
}
