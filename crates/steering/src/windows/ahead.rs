//! Files ahead: the engine's decisions on small files of a folder that is walked, as orders to fill them.
//!
//! Problem: a small file is read in one request, so no window of it is ever in time. The order of a folder's files is
//! known, and the engine predicts the next ones ([`next_file`](forerun_core::next_file)).
//!
//! Mechanism: a file of a listed folder that was missed, or whose mark was met, goes in as `Entered` and as a `Read` of
//! its blocks. The engine answers with `OpenAhead`. Nothing is opened for that: each has its reader at once, and the
//! extents that the engine fetches of it become a [`Fill`], carried out beside the loop. Where the engine gives a file
//! up, its fill is called off.
//!
//! ```text
//! Entered 7, 8, 9          OpenAhead 10, 11, 12, 13  ->  Fill 10 .. 13, in the order of the disk
//! filled 10                Completed
//! mark of 10 met           Entered 10 with the reader ahead, Read: a hit
//! ```
//!
//! Readers and files of streams have numbers below [`STREAMS_MAX`]; those of small files lie above.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forerun_core::detect::Access;
use forerun_core::next_file::{Entry, Place};
use forerun_core::protocol::Wants;
use forerun_core::{
    Block, Bytes, ErrorCode, Fetch, FetchOutcome, FileId, FolderId, Input, Nanos, Placement,
    ReaderId, RequestId,
};

use super::{APART, BLOCK_BYTES, DEVICE, PAGE_BYTES, READ, STREAMS_MAX, Windows};

/// Threads whose last file is taken to be open.
const OPENERS_MAX: usize = 1024;

/// Bytes of a file that are to be brought into the page cache.
#[derive(Clone, Debug)]
pub struct Fill {
    /// The file.
    pub place: Place,
    /// Where in it.
    pub bytes: Range<u64>,
    /// Set when it is not wanted any more.
    pub called_off: Arc<AtomicBool>,
    /// The engine's number of it.
    pub request: RequestId,
}

/// A small file in the engine.
#[derive(Debug)]
struct SmallFile {
    place: Place,
    bytes: u64,
    /// Fills that were ordered and are not over.
    requests: Vec<RequestId>,
    is_ahead: bool,
    called_off: Arc<AtomicBool>,
    /// The block behind the last one that its program read.
    next: u32,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Ahead {
    folders: HashMap<FolderId, Arc<[Entry]>>,
    files: HashMap<u32, SmallFile>,
    ahead: HashMap<Place, u32>,
    openers: HashMap<u64, u32>,
    free: Vec<u32>,
    orders: Vec<Fill>,
    /// Files that are not opened ahead because nothing is to be done.
    spared: u64,
    is_dry: bool,
}

/// State of a file that its program came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// Nothing was done ahead for it.
    Unexpected,
    /// Its fill is not over.
    Early,
    /// It was filled.
    Filled,
}

impl Ahead {
    fn number(&mut self) -> Option<u32> {
        let next = STREAMS_MAX + (self.files.len() + self.free.len()) as u32;
        let number = self.free.pop().unwrap_or(next);
        (number < FileId::LIMIT).then_some(number)
    }

    /// The inputs by which a file of a folder gets a reader.
    fn open(&mut self, place: Place, bytes: u64, is_ahead: bool) -> Option<(u32, [Input; 2])> {
        let entry = *self.folders.get(&place.folder)?.get(place.entry as usize)?;
        let number = self.number()?;
        let called_off = Arc::default();
        let file = SmallFile {
            place,
            bytes,
            requests: Vec::new(),
            is_ahead,
            called_off,
            next: 0,
        };
        self.files.insert(number, file);
        if is_ahead {
            self.ahead.insert(place, number);
        }
        // Behind all streams, in the order of the inodes; where it lies is known once it is open.
        let position = u64::from(STREAMS_MAX) * APART + ((entry.inode & 0xffff_ffff) << 20);
        let (file, reader) = (FileId(number), ReaderId(number));
        let known = Input::File {
            file,
            placement: Placement::linear(DEVICE, Bytes(position)),
            bytes: Bytes(bytes),
        };
        Some((number, [known, Input::Open { reader, file }]))
    }
}

impl Windows {
    /// Orders that came of the inputs.
    pub fn take_fills(&mut self) -> Vec<Fill> {
        std::mem::take(&mut self.ahead.orders)
    }

    /// Decides on files, and orders nothing.
    pub fn fill_nothing(&mut self, is_dry: bool) {
        self.ahead.is_dry = is_dry;
    }

    /// Files that would have been filled otherwise.
    #[must_use]
    pub fn spared_files(&self) -> u64 {
        self.ahead.spared
    }

    /// A folder was listed.
    pub fn folder(&mut self, now: Nanos, folder: FolderId, entries: Arc<[Entry]>) {
        self.ahead.folders.insert(folder, entries.clone());
        self.feed(now, Input::Folder { folder, entries });
    }

    /// A folder is not followed any more.
    pub fn forget_folder(&mut self, now: Nanos, folder: FolderId) {
        let entries = Arc::default();
        self.feed(now, Input::Folder { folder, entries });
        let files = self.ahead.files.iter();
        let of = files.filter(|(_, file)| file.place.folder == folder);
        let numbers: Vec<u32> = of.map(|(number, _)| *number).collect();
        numbers.iter().for_each(|number| self.leave(now, *number));
        self.ahead.folders.remove(&folder);
    }

    /// A thread reads a file of a listed folder for the first time: so many pages from this one on.
    pub fn entered(&mut self, now: Nanos, place: Place, opener: u64, pages: Range<u64>) -> Came {
        if let Some(before) = self.ahead.openers.remove(&opener) {
            self.leave(now, before);
        }
        if self.ahead.openers.len() >= OPENERS_MAX {
            let all: Vec<u32> = self.ahead.openers.drain().map(|(_, file)| file).collect();
            all.iter().for_each(|number| self.leave(now, *number));
        }
        let (number, came) = match self.ahead.ahead.remove(&place) {
            Some(number) => (number, self.came(now, number)),
            None => match self.opened(now, place) {
                Some(number) => (number, Came::Unexpected),
                None => return Came::Unexpected,
            },
        };
        self.ahead.openers.insert(opener, number);
        let (reader, Place { folder, entry }) = (ReaderId(number), place);
        let entered = Input::Entered {
            folder,
            entry,
            reader,
            opener,
        };
        self.feed(now, entered);
        self.read_small(now, number, pages);
        came
    }

    /// A thread reads on in the file that it read last, of so many bytes.
    pub fn went_on(&mut self, now: Nanos, place: Place, opener: u64, pages: Range<u64>) -> u64 {
        let number = self.ahead.openers.get(&opener).copied();
        let is_it = |number: &u32| {
            let file = self.ahead.files.get(number);
            file.is_some_and(|file| file.place == place)
        };
        if let Some(number) = number.filter(is_it) {
            self.read_small(now, number, pages);
        }
        let entries = self.ahead.folders.get(&place.folder);
        let entry = entries.and_then(|entries| entries.get(place.entry as usize));
        entry.map_or(0, |entry| entry.bytes)
    }

    /// Whether this file is filled ahead, or will be.
    #[must_use]
    pub fn is_ahead(&self, place: Place) -> bool {
        self.ahead.ahead.contains_key(&place)
    }

    /// A fill is over.
    pub fn filled(&mut self, now: Nanos, fill: &Fill, is_done: bool) {
        let number = self.ahead.ahead.get(&fill.place).copied();
        let Some(number) = number.filter(|_| !fill.called_off.load(Ordering::Relaxed)) else {
            return;
        };
        let request = fill.request;
        let Some(file) = self.ahead.files.get_mut(&number) else {
            return;
        };
        let Some(at) = file.requests.iter().position(|own| *own == request) else {
            return;
        };
        file.requests.remove(at);
        let outcome = match is_done {
            true => FetchOutcome::Done,
            false => FetchOutcome::Failed {
                error: ErrorCode(0),
            },
        };
        self.feed(now, Input::Completed { request, outcome });
        if !is_done {
            self.leave(now, number);
        }
    }

    /// A new reader, of a program.
    fn opened(&mut self, now: Nanos, place: Place) -> Option<u32> {
        let entries = self.ahead.folders.get(&place.folder)?;
        let bytes = entries.get(place.entry as usize)?.bytes;
        let (number, inputs) = self.ahead.open(place, bytes, false)?;
        inputs.into_iter().for_each(|input| self.feed(now, input));
        Some(number)
    }

    /// The program of a file ahead is there.
    fn came(&mut self, now: Nanos, number: u32) -> Came {
        let Some(file) = self.ahead.files.get_mut(&number) else {
            return Came::Unexpected;
        };
        file.is_ahead = false;
        file.called_off.store(true, Ordering::Relaxed);
        let requests = std::mem::take(&mut file.requests);
        let came = match requests.is_empty() {
            true => Came::Filled,
            false => Came::Early,
        };
        // Its own read brings the rest.
        let outcome = FetchOutcome::Done;
        for request in requests {
            self.feed(now, Input::Completed { request, outcome });
        }
        came
    }

    fn read_small(&mut self, now: Nanos, number: u32, pages: Range<u64>) {
        let per_block = u64::from(BLOCK_BYTES) / PAGE_BYTES;
        let Some(file) = self.ahead.files.get_mut(&number) else {
            return;
        };
        let blocks = file.bytes.div_ceil(u64::from(BLOCK_BYTES));
        let end = pages.end.div_ceil(per_block).min(blocks);
        let first = (pages.start / per_block).max(u64::from(file.next));
        let (Ok(first), Ok(end)) = (u32::try_from(first), u32::try_from(end)) else {
            return;
        };
        file.next = file.next.max(end);
        for block in first..end {
            let input = Input::Read {
                read: READ,
                reader: ReaderId(number),
                access: Access::new(Block(block), 1).with_previous(block.checked_sub(1).map(Block)),
                fresh: true,
                wants: Wants::Presence,
            };
            self.feed(now, input);
        }
    }

    /// A reader is closed, and its file forgotten.
    fn leave(&mut self, now: Nanos, number: u32) {
        let mut inputs = VecDeque::new();
        self.drop_small(number, &mut inputs);
        inputs.into_iter().for_each(|input| self.feed(now, input));
    }

    fn drop_small(&mut self, number: u32, inputs: &mut VecDeque<Input>) {
        let Some(file) = self.ahead.files.remove(&number) else {
            return;
        };
        file.called_off.store(true, Ordering::Relaxed);
        if self.ahead.ahead.get(&file.place) == Some(&number) {
            self.ahead.ahead.remove(&file.place);
        }
        self.ahead.openers.retain(|_, own| *own != number);
        self.ahead.free.push(number);
        let outcome = FetchOutcome::Cancelled { blocks: 0 };
        let (file_of, reader) = (FileId(number), ReaderId(number));
        let completed = |request| Input::Completed { request, outcome };
        // The fetches end after the reader: none is asked for again.
        inputs.push_back(Input::Close { reader });
        inputs.extend(file.requests.into_iter().map(completed));
        inputs.push_back(Input::Forget { file: file_of });
    }

    /// The engine expects a program to open this file.
    pub(super) fn open_ahead(&mut self, place: Place, inputs: &mut VecDeque<Input>) {
        let Place { folder, entry } = place;
        let bytes = self.ahead.folders.get(&folder);
        let bytes = bytes.and_then(|entries| Some(entries.get(entry as usize)?.bytes));
        let is_free = !self.ahead.is_dry && !self.ahead.ahead.contains_key(&place);
        self.ahead.spared += u64::from(self.ahead.is_dry);
        let opened = bytes.filter(|_| is_free);
        let opened = opened.and_then(|bytes| self.ahead.open(place, bytes, true));
        let reader = opened.as_ref().map(|(number, _)| ReaderId(*number));
        inputs.extend(opened.into_iter().flat_map(|(_, inputs)| inputs));
        inputs.push_back(Input::Ahead {
            folder,
            entry,
            reader,
        });
    }

    /// The engine does not expect it any more.
    pub(super) fn close_ahead(&mut self, reader: ReaderId, inputs: &mut VecDeque<Input>) {
        let file = self.ahead.files.get(&reader.0);
        if file.is_some_and(|file| file.is_ahead) {
            self.drop_small(reader.0, inputs);
        }
    }

    /// A fetch of a small file: an order, if it is ahead, else the kernel's own.
    pub(super) fn fetch_small(&mut self, fetch: &Fetch) -> Option<Input> {
        let (request, block) = (fetch.request, u64::from(BLOCK_BYTES));
        let file = self.ahead.files.get_mut(&fetch.extent.file.0);
        let Some(file) = file.filter(|file| file.is_ahead) else {
            let outcome = FetchOutcome::Done;
            return Some(Input::Completed { request, outcome });
        };
        let first = u64::from(fetch.extent.first.0) * block;
        file.requests.push(request);
        self.ahead.orders.push(Fill {
            place: file.place,
            bytes: first..(fetch.extent.end() * block).min(file.bytes),
            called_off: file.called_off.clone(),
            request,
        });
        None
    }

    /// A fetch of a small file is given up.
    pub(super) fn cancelled_small(&mut self, request: RequestId) {
        for file in self.ahead.files.values_mut() {
            file.requests.retain(|own| *own != request);
        }
    }
}

#[cfg(test)]
mod tests {
    use forerun_core::Profile;
    use forerun_core::preset;
    use proptest::prelude::*;

    use super::*;
    use crate::windows::settings;

    const MIB: u64 = 1 << 20;
    const FOLDER: FolderId = FolderId(0);

    /// A disk of 8 ms and 80 MB/s, and a folder of so many files of 31 kB.
    fn walked(files: u32) -> Windows {
        let preset = preset::default().settings(Bytes(256 * MIB)).unwrap();
        let profile = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
        let mut windows = Windows::new(settings(preset).unwrap(), profile, None).unwrap();
        let entry = |at: u32| Entry {
            name_rank: at,
            inode: u64::from(at) * 7 % u64::from(files),
            bytes: 31_000,
        };
        windows.folder(Nanos(1), FOLDER, (0..files).map(entry).collect());
        windows
    }

    fn enter(windows: &mut Windows, entry: u32) -> Came {
        let folder = FOLDER;
        let now = Nanos(u64::from(entry) * 1_000_000);
        windows.entered(now, Place { folder, entry }, 7, 0..3)
    }

    #[test]
    fn a_folder_that_is_read_in_order_is_filled_at_once_when_that_pays() {
        let mut windows = walked(1000);
        let (mut filled, mut longest) = (0, 0);
        for entry in 0..1000 {
            let came = enter(&mut windows, entry);
            assert_ne!(came, Came::Early, "{entry}");
            filled += u32::from(came == Came::Filled);
            let fills = windows.take_fills();
            longest = longest.max(fills.len());
            for fill in fills {
                assert_eq!(fill.bytes, 0..31_000);
                windows.filled(Nanos(u64::from(entry) * 1_000_000), &fill, true);
            }
        }
        assert!(filled > 990 && longest > 800, "{filled}, {longest}");
        let ledger = windows.ledger();
        assert_eq!((ledger.files_ahead_wasted, ledger.files_ahead_open), (0, 0));
        assert_eq!(ledger.refused_inputs, 0);
    }

    #[test]
    fn a_folder_that_is_forgotten_or_not_read_on_calls_its_fills_off() {
        let mut windows = walked(1000);
        for entry in 0..3 {
            enter(&mut windows, entry);
        }
        let fills = windows.take_fills();
        assert!(!fills.is_empty());
        windows.forget_folder(Nanos(9_000_000), FOLDER);
        assert!(
            fills
                .iter()
                .all(|fill| fill.called_off.load(Ordering::Relaxed))
        );
        // The answer comes too late.
        windows.filled(Nanos(9_000_001), &fills[0], true);
        let ledger = windows.ledger();
        assert_eq!((ledger.refused_inputs, ledger.files_ahead_open), (0, 0));
        assert_eq!(ledger.files_ahead_wasted, fills.len() as u64);
    }

    #[test]
    fn a_dry_run_decides_and_orders_nothing() {
        let mut windows = walked(1000);
        windows.fill_nothing(true);
        for entry in 0..9 {
            enter(&mut windows, entry);
        }
        assert!(windows.take_fills().is_empty() && windows.spared_files() > 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_order_of_entries_and_answers_leaves_a_ledger_that_adds_up(
            steps in proptest::collection::vec((0u32..120, 0u64..4, 0u32..6), 1..200),
        ) {
            let mut windows = walked(100);
            let mut fills: Vec<Fill> = Vec::new();
            for (at, (entry, opener, what)) in steps.into_iter().enumerate() {
                let (now, folder) = (Nanos(at as u64), FOLDER);
                let place = Place { folder, entry };
                match what {
                    0 => for fill in fills.drain(..) {
                        windows.filled(now, &fill, entry % 2 == 0);
                    },
                    1 => windows.forget_folder(now, folder),
                    2 => drop(windows.went_on(now, place, opener, 3..40)),
                    _ => drop(windows.entered(now, place, opener, 0..1)),
                }
                fills.extend(windows.take_fills());
            }
            let ledger = windows.ledger();
            prop_assert_eq!(ledger.reads, ledger.hits + ledger.late_hits + ledger.misses);
            prop_assert_eq!(ledger.refused_inputs, 0);
        }

        #[test]
        fn files_in_random_order_are_filled_by_the_law_of_waste_alone(seed in 0u64..1 << 32) {
            let mut windows = walked(1000);
            let (mut state, mut filled) = (seed, 0);
            for _ in 0..1000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                enter(&mut windows, (state >> 33) as u32 % 1000);
                for fill in windows.take_fills() {
                    filled += 1;
                    windows.filled(Nanos(u64::MAX / 2), &fill, true);
                }
            }
            let ledger = windows.ledger();
            prop_assert!(filled <= 16 + ledger.files_ahead_used + 1000 / 16, "{filled}");
        }
    }
}
