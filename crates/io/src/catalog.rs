//! The files the engine knows: open ones, and closed ones whose blocks may still be cached.
//!
//! Part of the engine's state, behind its lock. Two opens of one inode (or of the same generated
//! content) share one number and their blocks. Each reader has a source of its own, and requests go
//! through the newest: an older descriptor may be stale, and older credentials may have ended. Where a
//! server refuses that one, they go through the others in turn. When the last reader closes the number stays,
//! so that a reopened file is still warm; past [`CLOSED_MAX`] closed files those closed longest ago are
//! forgotten, some hundreds at a time.
//!
//! ```text
//! open by path --> inode known? --yes--> same version? --yes--> share number and blocks
//!                       |                      | no: drop its blocks, a new version begins
//!                       no: next number
//! ```

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forerun_core::layout::LayoutMap;
use forerun_core::{FileId, ReaderId};

use crate::clock::coarse_nanos;
use crate::numbers::Numbered;
use crate::settle::Looks;
use crate::source::{Identity, Key, Source};
use crate::version_number::VersionNumber;

/// Closed files remembered. Each costs about 300 bytes; four thousand are the working set of a
/// build or a web server.
pub(crate) const CLOSED_MAX: usize = 4096;

/// So many are forgotten at a time: the engine goes through its frames once for all of them.
const FORGOTTEN: usize = 256;

/// The part that readers look at without a lock.
#[derive(Debug)]
pub(crate) struct Version {
    /// With the bytes that can be read, which are those whose blocks have numbers.
    number: VersionNumber,
    /// The size of the file.
    size: AtomicU64,
    /// The number of the last version that the file did not come to by growing.
    replaced: AtomicU64,
    /// When the next look is due, by [`coarse_nanos`]; [`NEVER`] if the file cannot change.
    look_at: AtomicU64,
    /// Nanoseconds from one look to the next; 0 if each read looks.
    interval: u64,
}

/// Later than any time of the clock.
const NEVER: u64 = u64::MAX;

impl Version {
    /// Of a file that was just looked at; without looks of one that cannot change.
    fn new(bytes: u64, looks: Option<Looks>) -> Self {
        let interval = looks.map_or(NEVER, Looks::interval);
        Self {
            number: VersionNumber::new(bytes),
            size: AtomicU64::new(bytes),
            replaced: AtomicU64::new(0),
            look_at: AtomicU64::new(next_look(coarse_nanos(), interval)),
            interval,
        }
    }

    /// [`VersionNumber::count`].
    pub(crate) fn count(&self) -> u64 {
        self.number.count()
    }

    /// The number that blocks fetched from now on belong to.
    pub(crate) fn wanted(&self) -> u64 {
        self.count().next_multiple_of(2)
    }

    /// [`VersionNumber::at_rest`].
    pub(crate) fn at_rest(&self) -> Option<(u64, u64)> {
        self.number.at_rest()
    }

    /// Whether the file did nothing but grow since it had the version of this number, as far as looks tell; never
    /// where each read looks, for the sake of one version.
    pub(crate) fn only_grew_since(&self, count: u64) -> bool {
        !self.looks_each_read() && self.replaced.load(Ordering::Acquire) <= count
    }

    /// The bytes that can be read; a read asks for it after the number.
    pub(crate) fn bytes(&self) -> u64 {
        self.number.bytes()
    }

    /// The size of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Whether a look is due; true for one caller in an interval.
    #[inline]
    pub(crate) fn look_is_due(&self) -> bool {
        let due = self.look_at.load(Ordering::Relaxed);
        due != NEVER && coarse_nanos() >= due && self.begin_look(due, coarse_nanos())
    }

    #[cold]
    #[inline(never)]
    fn begin_look(&self, due: u64, now: u64) -> bool {
        let (next, relaxed) = (next_look(now, self.interval), Ordering::Relaxed);
        let begun = self.look_at.compare_exchange(due, next, relaxed, relaxed);
        begun.is_ok() || self.looks_each_read()
    }

    /// Whether each read looks.
    fn looks_each_read(&self) -> bool {
        self.interval == 0
    }

    /// Whether the file can change.
    pub(crate) fn can_change(&self) -> bool {
        self.interval != NEVER
    }

    /// A look begins, due or not.
    pub(crate) fn looks_now(&self) {
        let next = next_look(coarse_nanos(), self.interval);
        self.look_at.store(next, Ordering::Relaxed);
    }

    /// The last look failed or met another one: the next reader looks.
    pub(crate) fn looks_again(&self) {
        if self.can_change() {
            self.look_at.store(0, Ordering::Relaxed);
        }
    }

    /// [`VersionNumber::begun`].
    pub(crate) fn begun(&self) {
        self.number.begun();
    }
}

fn next_look(now: u64, interval: u64) -> u64 {
    match interval {
        // Not an interval after the clock, which would be in the same step of it.
        0 => 0,
        interval => now.saturating_add(interval),
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
    /// Those of the readers that have it open, the newest last. Those that failed go before all others.
    sources: Vec<(ReaderId, Arc<dyn Source>)>,
    pub(crate) in_flight: u32,
    closed_at: u64,
}

impl Known {
    /// The sources of the readers that have the file open, in the order in which a request goes through them.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<dyn Source>> {
        self.sources.iter().rev().map(|(_, source)| source)
    }
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
        looks: Looks,
    ) -> FileId {
        let looks = identity.map(|_| looks);
        let version = Arc::new(Version::new(bytes, looks));
        let file = FileId(self.files.insert(Known {
            key: key.clone(),
            layout,
            is_found,
            identity,
            version,
            sources: Vec::new(),
            in_flight: 0,
            closed_at: 0,
        }));
        self.by_key.insert(key, file);
        file
    }

    /// Begins a new version of which so many bytes can be read; [`Version::begun`] once the old blocks are gone.
    pub(crate) fn renew(
        &mut self,
        file: FileId,
        identity: Identity,
        bytes: u64,
    ) -> Option<Arc<Version>> {
        let known = self.files.get_mut(file.0)?;
        let before = known.identity.replace(identity);
        if !before.is_some_and(|before| identity.is_grown_from(&before)) {
            let next = known.version.wanted() + 2;
            known.version.replaced.store(next, Ordering::Release);
        }
        known.version.size.store(identity.bytes, Ordering::Relaxed);
        known.version.number.begin(bytes);
        Some(known.version.clone())
    }

    /// A reader opened the file; its version.
    pub(crate) fn opened(
        &mut self,
        file: FileId,
        reader: ReaderId,
        source: Arc<dyn Source>,
    ) -> Option<Arc<Version>> {
        let known = self.files.get_mut(file.0)?;
        self.closed.remove(&known.closed_at);
        known.sources.push((reader, source));
        Some(known.version.clone())
    }

    /// A reader closed the file. It has its source still, which must not end under the lock.
    pub(crate) fn closed(&mut self, file: FileId, reader: ReaderId) {
        let Some(known) = self.files.get_mut(file.0) else {
            return;
        };
        known.sources.retain(|(of, _)| *of != reader);
        if known.sources.is_empty() {
            self.closes += 1;
            known.closed_at = self.closes;
            self.closed.insert(self.closes, file);
        }
    }

    /// These sources failed where another did not, and come after all others from now on.
    pub(crate) fn failed(&mut self, file: FileId, tried: &[(Arc<dyn Source>, i32)]) {
        let Some(known) = self.files.get_mut(file.0).filter(|_| !tried.is_empty()) else {
            return;
        };
        let (failed, rest) = mem::take(&mut known.sources)
            .into_iter()
            .partition(|(_, of)| tried.iter().any(|(it, _)| Arc::ptr_eq(it, of)));
        known.sources = failed;
        known.sources.extend::<Vec<_>>(rest);
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

    const READER: ReaderId = ReaderId(0);

    fn add(catalog: &mut Catalog, index: u64) -> FileId {
        let key = Key::Generated {
            seed: 0,
            index,
            bytes: 10,
        };
        let file = catalog.find(&key);
        let placement = Placement::linear(DeviceId(0), Bytes(0));
        let layout = LayoutMap::new(&placement, 4096).unwrap();
        let file =
            file.unwrap_or_else(|| catalog.add(key, None, 10, layout, false, Looks::EachRead));
        catalog.opened(
            file,
            READER,
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
            catalog.closed(file, READER);
        }
        let first = add(&mut catalog, 0);
        assert_eq!(first, FileId(0));
        let left = catalog.surplus().unwrap();
        assert_eq!(catalog.take_closed(left), Some(FileId(1)));
        assert!(catalog.surplus().is_none());
        assert_eq!(add(&mut catalog, 77_777), FileId(1));
    }

    #[test]
    fn a_look_is_due_once_in_an_interval_and_after_a_conflict() {
        let version = Version::new(1, Some(Looks::EachInterval));
        let due = |version: &Version| version.look_at.load(Ordering::Relaxed);
        let first = due(&version);
        assert!(version.begin_look(first, first));
        assert!(
            !version.begin_look(first, first),
            "another thread was first"
        );
        assert_eq!(due(&version), first + 100_000_000);
        version.looks_again();
        assert!(version.look_is_due());
        assert!(due(&version) >= 100_000_000);
        let each = Version::new(1, Some(Looks::EachRead));
        assert!(each.look_is_due() && each.look_is_due());
        let fixed = Version::new(1, None);
        fixed.looks_now();
        fixed.looks_again();
        assert!(!fixed.look_is_due());
    }
}
