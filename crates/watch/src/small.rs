//! Small files: folders whose files are read one after another, filled ahead of their reader.
//!
//! Problem: a folder of 10,000 files of 3 to 60 kB costs a switch of the disk for each, because a file is read before
//! any window of it could open.
//!
//! Mechanism: the first miss of a file names a thread and an inode. Its descriptor gives the path, and the path the
//! folder, which the [filler](crate::filler) looks up. After the second file of a folder that was missed the filler lists
//! it, and from then on files are known by their inodes: no look at /proc any more. The engine decides which files are
//! next, how many and when to stop ([`windows`](crate::windows), *files ahead*); nothing is walked before the first miss.
//!
//! ```text
//! miss a, miss b of /data/x        list /data/x                 a, b, .. are entries 0, 1, ..
//! miss c                           the engine confirms a run    fill d, e, f, g
//! mark of d met, of e              read: the next eight         ..   the rest of the folder at once
//! ```
//!
//! A filled file tells by its mark that it is read; a file of one page, which has none, when its
//! [reader went past it](known).
//!
//! Listing costs reads, too. All listings together have [`FREE_BYTES`] and a 64th of the bytes that were missed, so
//! programs that open a few files of many folders, or in random order, pay next to nothing.

mod known;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use forerun_core::next_file::Place;
use forerun_core::{FolderId, Nanos};
use forerun_steering::events::FileKey;
use forerun_surface::failure::Failure;

use crate::filler::{Done, Filler, Folder, Found, Job, Listing, Sought};
use crate::memory::Domain;
use crate::mounts::Named;
use crate::process::{Program, is_idle};
use crate::sample::{Ahead, Cause as Why, Seeing};
use crate::signals::Signals;
use crate::watch::Watch;
use crate::windows::{Came, Fill};
use known::{Known, Missed};

/// A file with more is none: windows are for it.
const SMALL_BYTES: u64 = 1 << 20;
/// A file with no more is filled as a whole.
const WHOLE_BYTES: u64 = 256 << 10;
/// Files of a folder that are missed before it is listed.
const MISSED_MIN: usize = 2;
/// Those that are remembered while it is.
const MISSED_MAX: usize = 256;
/// Listings may read so much, and this part of the missed bytes.
pub(crate) const FREE_BYTES: u64 = 4 << 20;
const LIST_PART: u64 = 64;
/// The bytes of a listing, of those of the folder itself: an inode has 256, and its name takes some 32.
const LIST_COST: u64 = 9;
/// Files whose folders are looked for at a time: a filler that hangs gets no more.
const SOUGHT_MAX: usize = MISSED_MAX;
/// Names that are kept: 15 MB.
const NAMES_MAX: usize = 1 << 17;
/// Folders that are known, listed or not.
const FOLDERS_MAX: usize = 4096;
/// A folder that nothing was read of for so long is forgotten, with its files ahead.
const IDLE: u64 = 60_000_000_000;
/// A folder whose listing failed, or is old, is listed again after so long.
const AGAIN: u64 = 1_000_000_000;
/// Events in a second, and readers of files that are looked for: a fast device has more, and would take a processor.
const EVENTS_MAX: u32 = 4_000;
const FINDS_MAX: u32 = 128;
/// A shorter limit of the file system: its administrator wants no readahead.
const LIMIT_MIN: u32 = 4;

/// A folder, by its file system and inode.
type FolderKey = (u32, u64);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Small {
    folders: HashMap<FolderKey, Known>,
    numbers: HashMap<u32, FolderKey>,
    files: HashMap<FileKey, Place>,
    /// The place that a thread read last.
    openers: HashMap<u64, Place>,
    filler: Option<Filler>,
    next: u32,
    names: usize,
    /// Bytes that listings may have read, and bytes of missed files.
    listed_bytes: u64,
    missed_bytes: u64,
    /// Since the last tick.
    events: u32,
    finds: u32,
    /// Files whose folders the filler looks for.
    sought: usize,
    pub(crate) counts: Counts,
}

/// Counters of small files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Folders that were listed.
    pub folders: u64,
    /// Files that were filled, and their bytes.
    pub files: u64,
    /// See there.
    pub bytes: u64,
    /// Files that were not there any more, had a lease, or could not be opened.
    pub passed_over: u64,
    /// Files that were filled, and gone from memory when their program came.
    pub lost: u64,
}

impl Small {
    /// Starts the filler. Block events tell of no mark, so with them nothing is filled.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(seeing: Seeing, signals: &Signals) -> Result<Self, Failure> {
        let filler = match seeing {
            Seeing::Block => None,
            Seeing::Readahead => {
                let wake = signals.wake.try_clone();
                let wake = wake.map_err(|error| Failure::Run(format!("signals: {error}")))?;
                Some(Filler::start(wake)?)
            }
        };
        Ok(Self {
            folders: HashMap::new(),
            numbers: HashMap::new(),
            files: HashMap::new(),
            openers: HashMap::new(),
            filler,
            next: 0,
            names: 0,
            listed_bytes: 0,
            missed_bytes: 0,
            events: 0,
            finds: 0,
            sought: 0,
            counts: Counts::default(),
        })
    }

    /// Whether folders are known whose files the engine of this number fills.
    pub(crate) fn has_engine(&self, engine: usize) -> bool {
        self.folders.values().any(|folder| folder.domain == engine)
    }

    /// Whether /proc may be asked for another reader.
    fn may_find(&mut self) -> bool {
        self.finds += 1;
        self.finds <= FINDS_MAX
    }

    /// Whether another listing may be read, of a folder of so many bytes.
    fn may_list(&self, bytes: u64) -> bool {
        let most = FREE_BYTES.saturating_add(self.missed_bytes / LIST_PART);
        let cost = self
            .listed_bytes
            .saturating_add(bytes.saturating_mul(LIST_COST));
        cost <= most && self.names < NAMES_MAX
    }

    fn forget(&mut self, key: FolderKey) -> Option<(usize, FolderId)> {
        self.drop_names(key);
        let folder = self.folders.remove(&key)?;
        self.numbers.remove(&folder.number);
        Some((folder.domain, FolderId(folder.number)))
    }

    /// The names of a folder are not known any more.
    fn drop_names(&mut self, key: FolderKey) {
        let Some(folder) = self.folders.get_mut(&key) else {
            return;
        };
        let (number, Some(listing)) = (folder.number, folder.listing.take()) else {
            return;
        };
        self.names -= listing.1.len();
        self.openers.retain(|_, place| place.folder.0 != number);
        for listed in &listing.1 {
            let (device, inode) = (key.0, listed.inode);
            let key = FileKey { device, inode };
            let of = self.files.get(&key).map(|place| place.folder.0);
            if of == Some(number) {
                self.files.remove(&key);
            }
        }
    }
}

impl Watch {
    /// An event of a small file; false if it is none.
    pub(crate) fn small_file(&mut self, at: usize, key: FileKey, event: &Ahead) -> bool {
        if self.small.filler.is_none() || self.is_paused() {
            return false;
        }
        self.small.events += 1;
        if self.small.events > EVENTS_MAX {
            return event.size == 0;
        }
        let opener = u64::from(event.thread);
        let pages = event.index..event.index.saturating_add(event.asked.max(1));
        match self.small.files.get(&key).copied() {
            Some(place) if event.size == 0 => self.came(place, opener, pages, event),
            // A file that is filled as a whole has no windows.
            Some(place) => return self.went_on(place, opener, pages, event.time),
            None if event.size == 0 && event.cause == Why::Miss && event.index == 0 => {
                self.missed(at, key, event);
            }
            None => {}
        }
        event.size == 0
    }

    /// Whether the file is small enough to be filled as a whole.
    fn went_on(&mut self, place: Place, opener: u64, pages: Range<u64>, time: Nanos) -> bool {
        let now = self.since_start(time);
        let Some(domain) = self.domain_of(place) else {
            return false;
        };
        let windows = &mut self.steering.engines[domain].windows;
        let bytes = windows.went_on(now, place, opener, pages);
        self.order_fills(domain);
        bytes <= WHOLE_BYTES
    }

    fn domain_of(&self, place: Place) -> Option<usize> {
        let key = self.small.numbers.get(&place.folder.0)?;
        Some(self.small.folders.get(key)?.domain)
    }

    /// A file of a listed folder was missed, or its mark was met.
    fn came(&mut self, place: Place, opener: u64, pages: Range<u64>, event: &Ahead) {
        let Some(domain) = self.domain_of(place) else {
            return;
        };
        let last = self.small.openers.get(&opener);
        if last.is_none_or(|last| last.folder != place.folder) && !self.is_followed(place, event) {
            return;
        }
        self.account_missed(place, event);
        self.enter_before(place, opener, event.time);
        let came = self.enter(place, opener, pages, event.time);
        if came == Came::Filled && event.cause == Why::Miss {
            self.small.counts.lost += 1;
            self.steering.counts.thrashed += 1;
            self.steering.lessen(domain, event.time);
        }
        self.order_fills(domain);
    }

    /// Whether a reader is not to be left alone, in a folder that another one made known.
    fn is_followed(&mut self, place: Place, event: &Ahead) -> bool {
        if !self.small.may_find() || is_idle(event.thread) {
            return false;
        }
        let program = Program::of(event.process).filter(|program| !program.is_kernel);
        let key = self.small.numbers.get(&place.folder.0);
        let folder = key.and_then(|key| self.small.folders.get(key));
        let (Some(program), Some(folder)) = (program, folder) else {
            return false;
        };
        let listed = folder.listing.as_ref();
        let listed = listed.and_then(|listing| listing.1.get(place.entry as usize));
        let name = listed.map(|listed| OsStr::from_bytes(listed.name.to_bytes()));
        let named = folder.at.named();
        let path = named.join(name.unwrap_or_default());
        let inner = folder.inner.as_ref();
        let inner = inner.map(|inner| inner.join(name.unwrap_or_default()));
        let file = Named {
            device: event.device,
            path: &path,
            is_here: named == folder.at.path,
            inner: inner.as_deref(),
        };
        !self.excludes.are_true_of(&program, file)
    }

    fn account_missed(&mut self, place: Place, event: &Ahead) {
        let key = self.small.numbers.get(&place.folder.0);
        let Some(folder) = key.and_then(|key| self.small.folders.get_mut(key)) else {
            return;
        };
        folder.used = event.time;
        if event.cause == Why::Miss {
            let listing = folder.listing.as_ref();
            let listed = listing.and_then(|listing| listing.1.get(place.entry as usize));
            self.small.missed_bytes += listed.map_or(0, |listed| listed.bytes);
        }
    }

    fn enter(&mut self, place: Place, opener: u64, pages: Range<u64>, time: Nanos) -> Came {
        let now = self.since_start(time);
        let key = self.small.numbers.get(&place.folder.0);
        let Some(folder) = key.and_then(|key| self.small.folders.get_mut(key)) else {
            return Came::Unexpected;
        };
        if let Some(entered) = folder.entered.get_mut(place.entry as usize) {
            *entered = true;
        }
        if self.small.openers.len() >= FOLDERS_MAX {
            self.small.openers.clear();
        }
        self.small.openers.insert(opener, place);
        let windows = &mut self.steering.engines[folder.domain].windows;
        windows.fill_nothing(self.is_dry);
        windows.entered(now, place, opener, pages)
    }

    /// Files of one page that were filled between the last file of this thread and this one were read.
    fn enter_before(&mut self, place: Place, opener: u64, time: Nanos) {
        let last = self.small.openers.get(&opener).copied();
        let mut before = Vec::new();
        if let Some(last) = last.filter(|last| last.folder != place.folder) {
            before.extend(self.unmarked(last, None));
        }
        before.extend(self.unmarked(place, Some(place.entry)));
        for place in before {
            self.enter(place, opener, 0..1, time);
        }
    }

    /// See [`Known::unmarked`].
    fn unmarked(&self, place: Place, to: Option<u32>) -> Vec<Place> {
        let key = self.small.numbers.get(&place.folder.0);
        let Some(folder) = key.and_then(|key| self.small.folders.get(key)) else {
            return Vec::new();
        };
        let windows = &self.steering.engines[folder.domain].windows;
        let row = folder.unmarked(to, |entry| windows.is_ahead(Place { entry, ..place }));
        row.into_iter()
            .map(|entry| Place { entry, ..place })
            .collect()
    }

    /// The first miss of a file whose folder is not listed.
    fn missed(&mut self, at: usize, key: FileKey, event: &Ahead) {
        // Without a number of its process the look would be for nothing.
        if event.process == 0 || !self.small.may_find() {
            return;
        }
        let Ok((program, found, paths)) = self.parts().1.reader_of(at, key, event) else {
            return;
        };
        let bytes = found.bytes;
        drop(found);
        if bytes == 0 || bytes > SMALL_BYTES {
            return;
        }
        self.small.missed_bytes += bytes;
        // The path may lead past a server that hangs, which is the filler's to wait for.
        if let Some(filler) = self
            .small
            .filler
            .as_ref()
            .filter(|_| self.small.sought < SOUGHT_MAX)
        {
            self.small.sought += 1;
            let (event, domain) = (*event, Domain::of(&program));
            filler.put(Job::Find(Sought {
                event,
                domain,
                paths,
            }));
        }
    }

    /// The folder of a file that was missed.
    fn found(&mut self, sought: &Sought, (folder, mount, size): Found) {
        let Sought { event, domain, .. } = sought;
        let key = event.file();
        let descriptors = &mut self.descriptors;
        let is_of = |device| device == event.device;
        let mut is_on = |process| descriptors.device_of(process, mount, is_of).is_some();
        let is_there = is_on(std::process::id()) || is_on(event.process);
        let Some(at) = self.file_system(event.device).filter(|_| is_there) else {
            return;
        };
        // It was listed meanwhile.
        if let Some(place) = self.small.files.get(&key).copied() {
            let pages = 0..event.asked.max(1);
            self.enter(place, event.thread.into(), pages, event.time);
            self.domain_of(place)
                .into_iter()
                .for_each(|domain| self.order_fills(domain));
            return;
        }
        let folder_key = (event.device, folder.inode);
        if let Some(known) = self.small.folders.get_mut(&folder_key) {
            // The reader of before may have ended, and the way through its root with it.
            known.at = folder;
        } else {
            let (steering, mut running) = self.parts();
            let Some(domain) = steering.domain(at, domain, event.time, &mut running) else {
                return;
            };
            self.learn(folder_key, folder, domain, event.time);
        }
        let may_list = self.small.may_list(size);
        let Some(known) = self.small.folders.get_mut(&folder_key) else {
            return;
        };
        let inner = sought.paths.1.as_deref().and_then(Path::parent);
        known.inner = inner.map(Path::to_owned);
        known.used = event.time;
        if known.missed.len() < MISSED_MAX {
            known.missed.push(Missed {
                inode: key.inode,
                opener: event.thread.into(),
                pages: event.asked.max(1),
            });
        }
        let is_late = known.asked == Nanos(0) || event.time.since(known.asked).0 >= AGAIN;
        let is_due = known.missed.len() >= MISSED_MIN && !known.is_asked && is_late;
        if is_due && may_list {
            (known.is_asked, known.asked) = (true, event.time);
            self.small.listed_bytes += size.saturating_mul(LIST_COST);
            if let Some(filler) = &self.small.filler {
                filler.put(Job::List(known.number, known.at.clone()));
            }
        }
    }

    fn learn(&mut self, key: FolderKey, at: Folder, domain: usize, now: Nanos) {
        while self.small.folders.len() >= FOLDERS_MAX
            && let Some(oldest) = self.small.folders.iter().min_by_key(|(_, of)| of.used)
        {
            let oldest = *oldest.0;
            self.forget_folder(oldest);
        }
        let number = self.small.next;
        if number >= FolderId::LIMIT {
            return;
        }
        self.small.next += 1;
        self.small.numbers.insert(number, key);
        let known = Known {
            at,
            inner: None,
            domain,
            number,
            missed: Vec::new(),
            is_asked: false,
            asked: Nanos(0),
            used: now,
            listing: None,
            orders: Default::default(),
            ranks: Default::default(),
            entered: Vec::new(),
        };
        self.small.folders.insert(key, known);
    }

    fn forget_folder(&mut self, key: FolderKey) {
        let now = self.since_start(self.now());
        if let Some((domain, folder)) = self.small.forget(key) {
            self.steering.engines[domain]
                .windows
                .forget_folder(now, folder);
            self.order_fills(domain);
        }
    }

    /// Takes the filler's answers.
    pub(crate) fn take_done(&mut self) {
        while let Some(done) = self.small.filler.as_ref().and_then(Filler::take) {
            match done {
                Done::Found(sought, found) => {
                    self.small.sought -= 1;
                    found
                        .into_iter()
                        .for_each(|found| self.found(&sought, found));
                }
                Done::Listed(number, listing) => self.listed(number, listing),
                Done::Filled(domain, fill, is_done) => {
                    let counts = &mut self.small.counts;
                    if is_done {
                        counts.files += u64::from(fill.bytes.start == 0);
                        counts.bytes += fill.bytes.end - fill.bytes.start;
                    } else if !fill.called_off.load(Ordering::Relaxed) {
                        counts.passed_over += 1;
                    }
                    let now = self.since_start(self.now());
                    self.steering.engines[domain]
                        .windows
                        .filled(now, &fill, is_done);
                    self.order_fills(domain);
                }
            }
        }
    }

    fn listed(&mut self, number: u32, listing: Option<Listing>) {
        let now = self.now();
        let Some(key) = self.small.numbers.get(&number).copied() else {
            return;
        };
        self.small.drop_names(key);
        let names = self.small.names;
        let Some(known) = self.small.folders.get_mut(&key) else {
            return;
        };
        known.is_asked = false;
        let missed = std::mem::take(&mut known.missed);
        let listing = listing.filter(|of| names + of.1.len() <= NAMES_MAX);
        let Some(listing) = listing else {
            return;
        };
        self.small.names = names + listing.1.len();
        self.small.counts.folders += 1;
        let (domain, folder) = (known.domain, FolderId(number));
        let entries = known.list(listing.clone());
        let place = |entry| Place { folder, entry };
        let of_inode = |inode| FileKey {
            device: key.0,
            inode,
        };
        for (entry, listed) in (0..).zip(&listing.1) {
            self.small
                .files
                .insert(of_inode(listed.inode), place(entry));
        }
        let time = self.since_start(now);
        self.steering.engines[domain]
            .windows
            .folder(time, folder, entries);
        for miss in missed {
            let known = self.small.files.get(&of_inode(miss.inode));
            if let Some(place) = known.copied().filter(|place| place.folder == folder) {
                self.enter(place, miss.opener, 0..miss.pages, now);
            }
        }
        self.order_fills(domain);
    }

    /// Hands the engine's orders to the filler.
    fn order_fills(&mut self, domain: usize) {
        let mut fills = self.steering.engines[domain].windows.take_fills();
        while let Some(folder) = fills.first().map(|fill| fill.place.folder) {
            let (of, rest) = fills
                .into_iter()
                .partition(|fill| fill.place.folder == folder);
            fills = rest;
            let key = self.small.numbers.get(&folder.0);
            let known = key.and_then(|key| self.small.folders.get(key));
            let device = key.map(|(device, _)| *device);
            let listing = known.and_then(|known| known.listing.clone());
            let at = device.and_then(|device| self.file_system(device));
            let limit = at.and_then(|at| self.own_limit(&self.file_systems[at]));
            let filler = self.small.filler.as_ref();
            match (filler, listing, limit) {
                (Some(filler), Some(listing), Some(limit @ LIMIT_MIN..)) => {
                    filler.put(Job::Fill(domain, listing, of, limit));
                }
                _ => {
                    let now = self.since_start(self.now());
                    let windows = &mut self.steering.engines[domain].windows;
                    let of: Vec<Fill> = of;
                    of.iter().for_each(|fill| windows.filled(now, fill, false));
                }
            }
        }
    }

    /// Once a second: folders that nothing is read of any more.
    pub(crate) fn forget_idle_folders(&mut self) {
        let now = self.now();
        (self.small.events, self.small.finds) = (0, 0);
        let folders = self.small.folders.iter();
        let idle = folders.filter(|(_, folder)| now.since(folder.used).0 > IDLE);
        let idle: Vec<FolderKey> = idle.map(|(key, _)| *key).collect();
        idle.into_iter().for_each(|key| self.forget_folder(key));
    }
}
