//! Files ahead: how many files are opened ahead of a program, when, and when they are closed again.
//!
//! Used by the engine's stage `engine/next.rs`, which fetches; asks the
//! [method](crate::next_file) which files come next. Each run that the method follows has a window:
//!
//! ```text
//!  entered ... | due: asked for or opened ahead, in the order expected | tail
//!              |<--------------- at most window files --------------->|
//! ```
//!
//! Control law of growth: a window begins with 4 files. Whenever half of it was used up, on a server at each file, it is
//! filled again, in one batch that is emitted by inode number; where half of it was used, and not
//! passed over, it is doubled first, up to the method's limit and the files' part of the frames. A run
//! that breaks with files left has them closed, and the next one begins with half as many.
//!
//! A file that was not opened ahead is read first, and then its run is filled: else the disk goes there and back.
//!
//! Control law of waste: at every moment, whatever is opened in whatever order,
//! `asked + wasted <= 16 + used + opens / 16` ([`FREE`], [`OPENS`]). So files opened for nothing are at
//! most 16, as many as were used, and one for each 16 that programs opened. A file of which blocks were
//! fetched is used once one of them is read; which are fetched follows the [habit] of the folder.
//!
//! On a disk that does one thing at a time a [law of time](fill) allows the rest of a folder at once.
//!
//! A program that passes over more than [`PASSED`] files is not expected back: these are closed.

mod asked;
mod fill;
pub(crate) mod habit;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use self::habit::{Habits, Parts, Run};
use crate::folder::Folders;
use crate::next_file::{Entry, Limits, NextFile, Opened, Place, RunId, Step};
use crate::protocol::Output;
use crate::units::{FolderId, ReaderId};

/// Files that may be wasted for nothing: four first windows, or there would never be a first run.
pub(crate) const FREE: u64 = 16;
/// One more for each so many files opened: 6 % of the opens, so that false starts of long ago do
/// not forbid runs for ever.
pub(crate) const OPENS: u64 = 16;
/// Files of the rest of a folder to those that saved a switch, most: a folder whose files are tiny costs opens.
pub(crate) const FILL: u64 = 16;
/// Files that saved a switch before the rest of any folder is asked for: runs by chance have fewer, in random order in a
/// folder of 100 files up to 14.
pub(crate) const SAVED_MIN: u64 = 32;
/// The first window: two small reads of a disk are lost if it is wrong, and it is half used soon.
const WINDOW: u32 = 4;
/// Files that a run may pass over before they are closed, or miss before it begins anew where its
/// program is: more than any number of threads that walk together have apart.
const PASSED: usize = 32;
/// Runs at a time; the one that went on least recently gives way. A folder's, twice.
const RUNS_MAX: usize = 32;
/// A run that stood still for so many opens gives way to one that lacks room.
const IDLE: u64 = 256;
/// Folders known at a time; the least recently used is forgotten.
const FOLDERS_MAX: usize = 1024;
/// Files that are not entered or passed over: a method's largest window, twice.
const ASKED_MAX: usize = 8192;
/// Memory charged for one: in three maps and a queue, with the parts that are fetched.
const ASKED_BYTES: u64 = 256;

/// A file that the driver was asked to open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It has not answered yet.
    Pending,
    /// The same, and it stays unused.
    CalledOff,
    /// It is open.
    Ahead(ReaderId),
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    run: RunId,
    /// Most blocks that are fetched of it.
    blocks: u64,
    state: State,
    /// Those that are, once it is open.
    parts: Parts,
}

/// A file ahead that a program came for.
#[derive(Clone, Copy, Debug)]
struct CameFor {
    /// Fetched of it.
    parts: Parts,
    /// A block of them was read, or there are none.
    is_used: bool,
}

#[derive(Debug)]
struct FollowedRun {
    id: RunId,
    window: u32,
    /// In the order in which they are expected; some may have been entered already.
    due: VecDeque<Place>,
    /// How many of them are pending or ahead.
    open: u32,
    /// How many were open when the window was filled last, and how many were used since.
    filled: u32,
    used: u32,
    /// Opens of the run in a row that were not ahead.
    missed: usize,
    /// The last file asked for.
    tail: Place,
    /// When it went on.
    went_on: u64,
}

/// Outcome of the files ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) ahead: u64,
    pub(crate) used: u64,
    pub(crate) wasted: u64,
    /// Used files of which blocks were fetched: each saved a switch.
    saved: u64,
    /// Blocks that were set apart for wasted files.
    wasted_blocks: u64,
    /// Files that programs opened.
    opens: u64,
}

impl Counts {
    /// A file for which so many blocks were set apart was opened for nothing.
    fn waste(&mut self, blocks: u64) {
        self.wasted += 1;
        self.wasted_blocks += blocks;
    }
}

/// How much may be asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Blocks of all files ahead together.
    pub(crate) blocks: u64,
    pub(crate) block_bytes: u64,
    /// Blocks that a server of the device could read in the time of a switch.
    pub(crate) depth: u64,
    /// Its servers; 1 if it does one thing at a time.
    pub(crate) servers: u64,
    /// It has no places, so no order of files saves a switch.
    pub(crate) any_worker: bool,
}

/// Reaction to an answer of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answered {
    /// These blocks are fetched.
    Fetch {
        parts: Parts,
        /// The program is expected to read on behind the first part.
        reads_on: bool,
    },
    Nothing,
}

/// The runs of files that programs walk through.
#[derive(Debug)]
struct Walks {
    runs: Vec<FollowedRun>,
    /// Runs that are filled up once this reader has asked for its own first blocks.
    later: Vec<(ReaderId, RunId)>,
    /// Files of the next run's first window, and of one that goes on where another one ended.
    start: u32,
    reached: u32,
}

impl Default for Walks {
    fn default() -> Self {
        Self {
            runs: Vec::new(),
            later: Vec::new(),
            start: WINDOW,
            reached: WINDOW,
        }
    }
}

/// Files that are open ahead, or to be opened.
#[derive(Debug, Default)]
struct Files {
    asked: BTreeMap<Place, Asked>,
    readers: BTreeMap<ReaderId, Place>,
    /// Files ahead that programs came for, as long as they are open.
    came_for: BTreeMap<ReaderId, CameFor>,
    /// Blocks of files pending or ahead.
    blocks: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct FilesAhead {
    method: Box<dyn NextFile>,
    limits: Limits,
    folders: Folders,
    walks: Walks,
    files: Files,
    habits: Habits,
    counts: Counts,
    /// Most bytes of folders, and of the method's tables.
    bytes_max: u64,
    charged: u64,
    /// Files to be opened and closed.
    pub(crate) out: Vec<Output>,
}

impl FilesAhead {
    /// None known, in so much memory.
    pub(crate) fn new(method: Box<dyn NextFile>, memory: u64) -> Self {
        Self {
            limits: method.limits(),
            method,
            folders: Folders::default(),
            walks: Walks::default(),
            files: Files::default(),
            habits: Habits::default(),
            counts: Counts::default(),
            // A 32nd each: 2 MiB of 64, which are folders of 50,000 files.
            bytes_max: memory / 32,
            charged: 0,
            out: Vec::new(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Files that are open and neither used nor wasted yet.
    pub(crate) fn open(&self) -> u64 {
        self.files.readers.len() as u64 + self.unread()
    }

    /// Files that were opened ahead and then came, without a read of the bytes that were fetched.
    fn unread(&self) -> u64 {
        self.files
            .came_for
            .values()
            .filter(|file| !file.is_used)
            .count() as u64
    }

    /// Blocks set apart for files ahead.
    pub(crate) fn blocks(&self) -> u64 {
        self.files.blocks
    }

    /// By how much its bookkeeping has grown since it was asked last.
    pub(crate) fn growth(&mut self) -> i64 {
        let asked = ASKED_BYTES * (self.files.asked.len() + self.files.came_for.len()) as u64;
        let bytes = self.folders.bytes() + self.method.bytes() + asked;
        let before = core::mem::replace(&mut self.charged, bytes);
        bytes as i64 - before as i64
    }

    /// A folder was listed; one without entries is not known any more.
    pub(crate) fn list(&mut self, folder: FolderId, entries: Arc<[Entry]>) {
        if entries.is_empty() {
            return self.forget(folder);
        }
        if self.folders.list(folder, entries) {
            self.drop_folder(folder);
        }
        while (self.folders.len() > FOLDERS_MAX || self.folders.bytes() > self.bytes_max)
            && let Some(oldest) = self.folders.oldest()
        {
            self.forget(oldest);
        }
    }

    /// A folder is not known any more.
    fn forget(&mut self, folder: FolderId) {
        self.folders.forget(folder);
        self.drop_folder(folder);
    }

    /// Predictions for a folder do not hold.
    fn drop_folder(&mut self, folder: FolderId) {
        self.method.forget(folder);
        let [first, last] = [0, u32::MAX].map(|entry| Place { folder, entry });
        let asked: Vec<Place> = self
            .files
            .asked
            .range(first..=last)
            .map(|(at, _)| *at)
            .collect();
        for place in asked {
            self.give_up(place);
        }
        let mut over = Vec::new();
        for run in &mut self.walks.runs {
            run.due.retain(|place| place.folder != folder);
            over.extend((run.tail.folder == folder).then_some(run.id));
        }
        for run in over {
            self.end_run(run);
        }
    }

    /// Files that were asked for, and are not used or wasted yet.
    fn outstanding(&self) -> u64 {
        self.files.asked.len() as u64 + self.unread()
    }

    /// A program opened a file of so many blocks with this reader. `None` if that cannot be.
    pub(crate) fn enter(
        &mut self,
        place: Place,
        (reader, blocks): (ReaderId, u64),
        opener: u64,
        budget: &Budget,
    ) -> Option<()> {
        let is_others = self
            .files
            .readers
            .get(&reader)
            .is_some_and(|at| *at != place);
        if is_others || self.files.came_for.contains_key(&reader) {
            return None;
        }
        let Some(pass) = self.folders.open(place) else {
            return Some(());
        };
        self.counts.opens += 1;
        self.habits.opened(place.folder, reader, opener, blocks);
        let own = self.files.asked.get(&place).map(|asked| asked.state);
        let is_used = own == Some(State::Ahead(reader));
        let hit = self.hit(place, is_used);
        let has_room = self.method.bytes() < self.bytes_max;
        let opened = Opened {
            place,
            opener,
            pass,
            has_room,
        };
        let step = self.method.entered(&opened, &self.folders);
        let of = hit.map(|(run, _)| run);
        let goes_on = match step {
            Step::Follows { run, carried } => {
                if let Some((_, passed)) = hit.filter(|(of, _)| *of == run) {
                    self.pass_over(run, passed);
                }
                let at = self.run(run, carried, place);
                self.follow(at, place, hit.is_some());
                Some(run)
            }
            Step::Breaks(run) => {
                self.break_run(run);
                of.filter(|of| *of != run)
            }
            Step::Unsure => of,
        };
        if let Some(run) = goes_on {
            self.walks.later.retain(|(_, other)| *other != run);
            if is_used {
                self.extend(run, budget);
            } else {
                // Its present read is not fetched yet, and goes first.
                self.walks.later.push((reader, run));
            }
        }
        Some(())
    }

    /// Blocks were read: of a file that was opened ahead, perhaps some that were fetched.
    pub(crate) fn read(&mut self, reader: ReaderId, read: Run) {
        self.habits.read(reader, read);
        if let Some(file) = self.files.came_for.get_mut(&reader)
            && !file.is_used
            && file.parts.iter().any(|part| part.meets(read))
        {
            file.is_used = true;
            self.counts.used += 1;
            self.counts.saved += 1;
        }
    }

    /// A reader read, or closed. The run that waited for that, to be filled up.
    pub(crate) fn begun(&mut self, reader: ReaderId) -> Option<RunId> {
        let at = self
            .walks
            .later
            .iter()
            .position(|(own, _)| *own == reader)?;
        Some(self.walks.later.remove(at).1)
    }

    /// A program opened a file that may be pending or ahead. Returns the run it is of, and how many others of it were
    /// expected before.
    fn hit(&mut self, place: Place, is_used: bool) -> Option<(RunId, usize)> {
        let asked = *self.files.asked.get(&place)?;
        if asked.state == State::CalledOff {
            return None;
        }
        if let State::Ahead(reader) = asked.state
            && is_used
        {
            self.take(place);
            let parts = asked.parts;
            let is_used = parts.iter().all(|part| part.count == 0);
            self.files
                .came_for
                .insert(reader, CameFor { parts, is_used });
            self.counts.used += u64::from(is_used);
        } else {
            // It came too late, or the driver gave the program another one.
            self.give_up(place);
        }
        let run = self.walks.runs.iter_mut().find(|run| run.id == asked.run)?;
        run.used += u32::from(is_used);
        run.missed = 0;
        run.went_on = self.counts.opens;
        let at = run.due.iter().position(|due| *due == place);
        if let Some(at) = at {
            run.due.remove(at);
        }
        Some((asked.run, at.unwrap_or(0)))
    }

    /// The program of a run came for a file before which so many were expected. Another program that comes for one
    /// passes over none.
    fn pass_over(&mut self, id: RunId, files: usize) {
        if let Some(run) = self.walks.runs.iter_mut().find(|run| run.id == id) {
            let passed: Vec<Place> = run.due.drain(..files.saturating_sub(PASSED)).collect();
            self.give_up_of(id, passed);
        }
    }

    /// The index of a run, which begins if it is new.
    fn run(&mut self, id: RunId, carried: bool, at: Place) -> usize {
        if let Some(at) = self.walks.runs.iter().position(|run| run.id == id) {
            return at;
        }
        if self.walks.runs.len() >= RUNS_MAX
            && let Some(oldest) = self.walks.runs.iter().min_by_key(|run| run.went_on)
        {
            self.end_run(oldest.id);
        }
        let window = if carried {
            self.walks.reached
        } else {
            self.walks.start
        };
        self.walks.runs.push(FollowedRun {
            id,
            window: window.min(self.limits.files),
            due: VecDeque::new(),
            open: 0,
            filled: 0,
            used: 0,
            missed: 0,
            tail: at,
            went_on: self.counts.opens,
        });
        self.walks.runs.len() - 1
    }

    /// A run went on to a file.
    fn follow(&mut self, at: usize, place: Place, is_hit: bool) {
        let Some(run) = self.walks.runs.get_mut(at) else {
            return;
        };
        self.walks.reached = run.window;
        run.went_on = self.counts.opens;
        if is_hit {
            return;
        }
        run.missed += 1;
        if run.open == 0 || run.missed > PASSED {
            // Its program is at another place than the file due.
            run.missed = 0;
            run.tail = place;
            let (id, due) = (run.id, core::mem::take(&mut run.due));
            self.give_up_of(id, due);
        }
    }

    /// A run broke: the next one is to begin with less, if this one wasted anything.
    fn break_run(&mut self, id: RunId) {
        if self
            .walks
            .runs
            .iter()
            .any(|run| run.id == id && run.open > 0)
        {
            self.walks.start = (self.walks.start / 2).max(1);
        }
        self.walks.reached = self.walks.start;
        self.end_run(id);
    }

    fn end_run(&mut self, id: RunId) {
        if let Some(at) = self.walks.runs.iter().position(|run| run.id == id) {
            self.walks.later.retain(|(_, run)| *run != id);
            let due = core::mem::take(&mut self.walks.runs[at].due);
            self.give_up_of(id, due);
            self.walks.runs.remove(at);
        }
    }
}
