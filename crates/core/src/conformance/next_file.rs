//! The suite of the next-file methods: programs that open the files of a few folders.
//!
//! They walk in one of the three orders, in an order of their own that they repeat, in steps, in
//! none at all, alone or in turns; folders are listed anew and forgotten, and the method's tables
//! have room or not. One large folder is opened in random order besides.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::folder::{Folders, Order};
use crate::next_file::{Entry, NextFile, Opened, Place, RunId, Step};
use crate::units::FolderId;

/// Folders, and the most files of one.
const FOLDERS: u64 = 4;
const FILES: u64 = 200;
/// Opens of one seed, in walks of so many at most.
const OPENS: usize = 1500;
const WALK_MAX: u64 = 120;
/// How far each run is followed.
const CHAIN: usize = 40;
/// Files of the large folder, how many of them are opened, and how rarely that looks like a run.
const LARGE: u64 = 4000;
const LARGE_OPENS: usize = 2000;
const RARELY: usize = 100;

/// Checks the next-file method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn next_file(
    make: &dyn Fn() -> Box<dyn NextFile>,
    seed: u64,
    but: &[Rule],
) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let first = NextFileRun::new(make(), rules, 1).finish()?;
    let again = NextFileRun::new(make(), rules, 6).finish()?;
    let how = || "the same opens give other answers after more questions".into();
    rules.check(Rule::Deterministic, first == again, how)?;
    rarely_by_chance(make(), rules)
}

/// A large folder in random order, each file once.
fn rarely_by_chance(mut method: Box<dyn NextFile>, rules: Rules<'_>) -> Result<(), Broken> {
    let mut random = Random(rules.seed);
    let mut folders = Folders::default();
    folders.list(FolderId(0), listing(&mut random, LARGE));
    let order = shuffled(&mut random, LARGE);
    let mut follows = 0;
    for entry in order.into_iter().take(LARGE_OPENS) {
        let folder = FolderId(0);
        let place = Place { folder, entry };
        let Some(pass) = folders.open(place) else {
            continue;
        };
        let opened = Opened {
            place,
            opener: 0,
            pass,
            has_room: true,
        };
        let step = method.entered(&opened, &folders);
        follows += usize::from(matches!(step, Step::Follows { .. }));
    }
    let how = || format!("{follows} of {LARGE_OPENS} opens in random order are followed");
    let is_rare = follows * RARELY <= LARGE_OPENS;
    rules.check(Rule::RarelyByChance, is_rare, how)
}

fn shuffled(random: &mut Random, count: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    order
}

fn listing(random: &mut Random, count: u64) -> alloc::sync::Arc<[Entry]> {
    let (names, inodes) = (shuffled(random, count), shuffled(random, count));
    let entry = |(name_rank, inode): (u32, u32)| Entry {
        name_rank,
        inode: inode.into(),
        bytes: 1 + random.magnitude(20),
    };
    names.into_iter().zip(inodes).map(entry).collect()
}

/// Folders being walked.
struct NextFileRun<'a> {
    rules: Rules<'a>,
    method: Box<dyn NextFile>,
    random: Random,
    /// Questions that must not matter.
    questions: usize,
    folders: Folders,
    answers: Vec<(Step, Option<Place>)>,
}

impl<'a> NextFileRun<'a> {
    fn new(method: Box<dyn NextFile>, rules: Rules<'a>, questions: usize) -> Self {
        Self {
            rules,
            method,
            random: Random(rules.seed),
            questions,
            folders: Folders::default(),
            answers: Vec::new(),
        }
    }

    /// Walks until there were enough opens. Returns what the method answered.
    fn finish(mut self) -> Result<Vec<(Step, Option<Place>)>, Broken> {
        for folder in 0..FOLDERS {
            self.list(FolderId(folder as u32));
        }
        let limits = self.method.limits();
        let own = shuffled(&mut self.random, FILES);
        while self.answers.len() < OPENS {
            let folder = FolderId(self.random.below(FOLDERS) as u32);
            if self.random.one_in(8) {
                self.change(folder)?;
            }
            self.walk(folder, &own)?;
            let same = self.method.limits() == limits;
            let how = || "its limits change".into();
            self.rules.check(Rule::Deterministic, same, how)?;
        }
        Ok(self.answers)
    }

    fn list(&mut self, folder: FolderId) {
        let count = 1 + self.random.below(FILES);
        let entries = listing(&mut self.random, count);
        self.folders.list(folder, entries);
    }

    /// A folder has other entries: nothing of the old ones may be left.
    fn change(&mut self, folder: FolderId) -> Result<(), Broken> {
        self.folders.forget(folder);
        self.method.forget(folder);
        self.list(folder);
        let files = self.folders.get(folder).map_or(0, |folder| folder.len());
        for (entry, run) in (0..files).flat_map(|entry| (0..FOLDERS).map(move |run| (entry, run))) {
            let place = Place { folder, entry };
            let next = self.method.next(RunId(run), place, &self.folders);
            let how = || format!("{next:?} after {place:?} of a folder it has to forget");
            self.rules.check(Rule::Forgets, next.is_none(), how)?;
        }
        Ok(())
    }

    /// One or several programs open files of a folder.
    fn walk(&mut self, folder: FolderId, own: &[u32]) -> Result<(), Broken> {
        let files = self.folders.get(folder).map_or(1, |folder| folder.len());
        let (way, from) = (self.random.below(6), self.random.below(u64::from(files)));
        let begin = if self.random.one_in(2) { from } else { 0 };
        let openers = 1 + self.random.below(3);
        for at in begin..begin + self.random.below(WALK_MAX) {
            let rank = at as u32 % files;
            let known = self.folders.get(folder);
            let by = |order| known.and_then(|folder| folder.at(order, rank));
            let entry = match way {
                0 => by(Order::Listing),
                1 => by(Order::Name),
                2 => by(Order::Inode),
                3 => own.get(at as usize % own.len()).map(|entry| entry % files),
                4 => by(Order::Listing).map(|entry| entry / 4 * 4 + (3 - entry % 4)),
                _ => Some(self.random.below(u64::from(files)) as u32),
            };
            let place = Place {
                folder,
                entry: entry.unwrap_or(0),
            };
            self.open(place, at % openers)?;
        }
        Ok(())
    }

    fn open(&mut self, place: Place, opener: u64) -> Result<(), Broken> {
        let Some(pass) = self.folders.open(place) else {
            return Ok(());
        };
        let has_room = !self.random.one_in(3);
        let opened = Opened {
            place,
            opener,
            pass,
            has_room,
        };
        let before = self.method.bytes();
        let step = self.method.entered(&opened, &self.folders);
        let bytes = self.method.bytes();
        let how = || format!("{before} bytes, then {bytes} without room");
        let is_bounded = has_room || bytes <= before;
        self.rules.check(Rule::TablesBounded, is_bounded, how)?;
        let next = match step {
            Step::Follows { run, .. } => self.chain(run, place)?,
            _ => None,
        };
        self.answers.push((step, next));
        Ok(())
    }

    /// The files that are expected now: they exist, and each question has one answer.
    fn chain(&self, run: RunId, from: Place) -> Result<Option<Place>, Broken> {
        let first = self.method.next(run, from, &self.folders);
        let mut place = from;
        for _ in 0..CHAIN {
            let next = self.method.next(run, place, &self.folders);
            for _ in 0..self.questions {
                let again = self.method.next(run, place, &self.folders);
                let how = || format!("{next:?} and then {again:?} after {place:?}");
                self.rules.check(Rule::Deterministic, next == again, how)?;
            }
            let Some(next) = next else { break };
            let exists = self.folders.entry(next).is_some();
            let how = || format!("{next:?} after {place:?}");
            self.rules.check(Rule::FileExists, exists, how)?;
            self.rules.check(Rule::FileIsNext, next != place, how)?;
            place = next;
        }
        Ok(first)
    }
}
