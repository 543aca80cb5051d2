//! Directory: the files of a folder are opened in the order of its listing, of their names or of their
//! inode numbers, from the first or from the last one, by one program or by several at different places.
//!
//! A *trail* is a place in one of the six ways through a folder, and how well the opens agree with it.
//!
//! ```text
//!           near: some rank of several threads         far: the trail begins anew here
//!      ...  |....... f X .......|  ...................... o ......
//!        opened so far ^ exactly next: a step
//! ```
//!
//! An exact step counts 4, a near one 1, a far open takes everything; 4 times `confirm` is a run: two
//! exact steps, or eight near ones in a row, as threads that share a walk make. An open is shown to
//! the first of these that it belongs to; the least recently used of [`WALKS_MAX`] each gives way:
//!
//! ```text
//! followed  the run that it is nearest to: whoever opens, at most NEAR_RUN off
//! own       the trails of its opener     \ both: threads may share a walk, or a
//! common    those near it, or new ones   / program have several; 1 + files / 512
//! ```
//!
//! A run breaks after [`STRAYS_MAX`] far opens in a row of the opener that it went on with last.
//! While a run goes on, or came to its end, a folder whose first open is the first file of the run's
//! way is followed at once: trees are walked alike. A run that breaks ends that.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{BYTES, CONFIRM, FILES, Limits, NextFile, Opened, Place, RunId, Step};
use crate::folder::{Folder, Folders, Order, Pass};
use crate::spec::{Knows, Method, Spec};
use crate::units::{Bytes, FolderId, saturate};

pub(super) const METHOD: Method<Box<dyn NextFile>> = Method {
    spec: Spec {
        name: "directory",
        summary: "files of a folder opened in the order of listing, names or inodes",
        source: "design note 0011",
        unfit: "files opened in any other order: nothing is predicted",
        knows: Knows::Online,
        params: &[CONFIRM, FILES, BYTES],
    },
    build: |values| {
        Box::new(Directory {
            confirm: values.get("confirm"),
            limits: Limits {
                files: saturate(values.get("files")),
                bytes: Bytes(values.get("bytes")),
            },
            walks: BTreeMap::new(),
            carried: None,
        })
    },
};

/// How far from a trail's end an open is near before there is a run: eight threads are seldom
/// further apart, and in a folder of 160 files a random open is near once in ten times.
const NEAR: u32 = 8;
/// The same once there is a run: more threads than processors are rare, and a filter that leaves
/// out 31 of 32 files leaves nothing to win.
const NEAR_RUN: u32 = 32;
/// Weight of an exact step; a near one counts 1.
const EXACT: u64 = 4;
/// Far opens in a row that end a run.
const STRAYS_MAX: u32 = 3;
/// Runs of a folder, and trails of each kind: twice as many as threads that a program mostly has.
const WALKS_MAX: usize = 16;
/// Files of a folder for each trail that is anybody's: an open in random order is next on one of them
/// once in 85 times, and on the same one twice once in 7,000.
const FILES_EACH: u32 = 512;
/// Memory charged for a run or trails: six of 16 bytes, an opener, and spare room of a list.
const WALK_BYTES: u64 = 208;

/// An order, and whether it is followed backward, from its last file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way(Order, bool);

impl Way {
    /// All, the likeliest first.
    const ALL: [Self; 6] = [
        Self(Order::Listing, false),
        Self(Order::Name, false),
        Self(Order::Inode, false),
        Self(Order::Listing, true),
        Self(Order::Name, true),
        Self(Order::Inode, true),
    ];

    /// A rank from the end where the way is backward.
    fn turn(self, folder: &Folder, rank: u32) -> Option<u32> {
        match self.1 {
            true => folder.len().checked_sub(rank)?.checked_sub(1),
            false => Some(rank),
        }
    }

    fn rank(self, folder: &Folder, entry: u32) -> u32 {
        let rank = folder.rank(self.0, entry);
        self.turn(folder, rank).unwrap_or(rank)
    }

    fn at(self, folder: &Folder, rank: u32) -> Option<u32> {
        folder.at(self.0, self.turn(folder, rank)?)
    }
}

/// How the opens of a folder agree with one way through it.
#[derive(Clone, Copy, Debug, Default)]
struct Trail {
    /// Behind the last rank that was opened in a row.
    end: u32,
    score: u64,
}

impl Trail {
    /// The weight of the next open.
    fn worth(&self, rank: u32) -> u64 {
        match rank.abs_diff(self.end) {
            0 => EXACT,
            distance => u64::from(distance <= NEAR),
        }
    }

    fn step(&mut self, rank: u32) {
        match self.worth(rank) {
            0 => (self.end, self.score) = (rank, 0),
            worth => self.score += worth,
        }
        self.end = self.end.max(rank.saturating_add(1));
    }
}

/// Trails of the same opens, one for each of [`Way::ALL`].
#[derive(Clone, Copy, Debug)]
struct Trails([Trail; 6]);

impl Trails {
    fn begin(folder: &Folder, entry: u32) -> Self {
        Self(Way::ALL.map(|way| Trail {
            end: way.rank(folder, entry).saturating_add(1),
            score: 0,
        }))
    }

    /// The weight of an open on the trail that it agrees with best.
    fn worth(&self, folder: &Folder, entry: u32) -> u64 {
        let trails = self.0.iter().zip(Way::ALL);
        let worth = trails.map(|(trail, way)| trail.worth(way.rank(folder, entry)));
        worth.max().unwrap_or(0)
    }

    fn step(&mut self, folder: &Folder, entry: u32) {
        for (trail, way) in self.0.iter_mut().zip(Way::ALL) {
            trail.step(way.rank(folder, entry));
        }
    }

    /// The way that the opens agree with best, if well enough.
    fn confirmed(&self, confirm: u64) -> Option<Way> {
        let scores = self.0.iter().map(|trail| trail.score);
        let best = scores.zip(Way::ALL).rev().max_by_key(|(score, _)| *score);
        best.and_then(|(score, way)| (score >= EXACT * confirm).then_some(way))
    }
}

/// A run.
#[derive(Clone, Copy, Debug)]
struct Followed {
    /// Its number among the runs of the folder.
    slot: u32,
    way: Way,
    /// Behind the last rank that was opened.
    end: u32,
    /// The opener that it went on with last, and far opens of that one since.
    opener: u64,
    strays: u32,
}

impl Followed {
    fn distance(&self, folder: &Folder, entry: u32) -> u32 {
        self.way.rank(folder, entry).abs_diff(self.end)
    }

    fn go_on(&mut self, folder: &Folder, entry: u32, opener: u64) {
        let rank = self.way.rank(folder, entry);
        self.end = self.end.max(rank.saturating_add(1));
        (self.opener, self.strays) = (opener, 0);
    }
}

/// One pass over a folder: of each kind the least recently used first.
#[derive(Debug, Default)]
struct Walks {
    followed: Vec<Followed>,
    own: Vec<(u64, Trails)>,
    common: Vec<Trails>,
}

impl Walks {
    /// Bytes beyond those of the first trails, which every folder has.
    fn bytes(&self) -> u64 {
        WALK_BYTES * self.len().saturating_sub(1) as u64
    }

    fn len(&self) -> usize {
        self.followed.len() + self.own.len() + self.common.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A run goes on with an open.
    fn go_on(&mut self, folder: &Folder, entry: u32, opener: u64) -> Option<u32> {
        let distances = self.followed.iter().map(|run| run.distance(folder, entry));
        let (distance, at) = distances.zip(0..).min()?;
        if distance > NEAR_RUN {
            return None;
        }
        let mut run = self.followed.remove(at);
        run.go_on(folder, entry, opener);
        self.followed.push(run);
        Some(run.slot)
    }

    /// Shows an open to the trails of its opener and to those near it. The way, once it is confirmed.
    fn step(&mut self, folder: &Folder, opened: &Opened, confirm: u64) -> Option<Way> {
        let Opened {
            opener, has_room, ..
        } = *opened;
        let (entry, was_empty) = (opened.place.entry, self.is_empty());
        let stepped = |mut trails: Trails| {
            trails.step(folder, entry);
            trails
        };
        let own = self.own.iter().position(|(number, _)| *number == opener);
        let own = own.map(|at| stepped(self.own.remove(at).1));
        let worths = self.common.iter().map(|c| c.worth(folder, entry));
        let best = worths.zip(0..).max().filter(|(worth, _)| *worth > 0);
        let common = best.map(|(_, at)| stepped(self.common.remove(at)));
        let most = WALKS_MAX.min((1 + folder.len() / FILES_EACH) as usize);
        // By chance one step is made on one of many often, two are not.
        let of_many = if most > 1 { confirm.max(2) } else { confirm };
        let own_way = own.as_ref().and_then(|own| own.confirmed(confirm));
        let way = own_way.or_else(|| common.as_ref()?.confirmed(of_many));
        if way.is_some() {
            return way;
        }
        let begin = Trails::begin(folder, entry);
        let may_grow = has_room || common.is_some() || was_empty;
        keep(&mut self.common, common.unwrap_or(begin), most, may_grow);
        let may_grow = has_room || own.is_some();
        let own = (opener, own.unwrap_or(begin));
        keep(&mut self.own, own, WALKS_MAX, may_grow);
        None
    }

    /// Follows a way from an open on. The number of the run, and whether that was another one's.
    fn follow(&mut self, folder: &Folder, entry: u32, opener: u64, way: Way) -> (u32, bool) {
        let is_full = self.followed.len() == WALKS_MAX;
        let given_up = is_full.then(|| self.followed.remove(0).slot);
        let is_used = |slot: &u32| self.followed.iter().any(|run| run.slot == *slot);
        let free = (0..).find(|slot| !is_used(slot)).unwrap_or(0);
        let slot = given_up.unwrap_or(free);
        self.followed.push(Followed {
            slot,
            way,
            end: way.rank(folder, entry).saturating_add(1),
            opener,
            strays: 0,
        });
        (slot, is_full)
    }

    /// A far open of an opener: a run that went on with it last, and whether that is over.
    fn stray(&mut self, opener: u64) -> Option<(u32, bool)> {
        let mut runs = self.followed.iter_mut().rev();
        let run = runs.find(|run| run.opener == opener)?;
        run.strays += 1;
        let (slot, is_over) = (run.slot, run.strays == STRAYS_MAX);
        if is_over {
            self.followed.retain(|run| run.slot != slot);
        }
        Some((slot, is_over))
    }
}

/// Puts something last; the first gives way beyond a number, or where the list is not to grow.
fn keep<T>(list: &mut Vec<T>, last: T, most: usize, may_grow: bool) {
    if !list.is_empty() && (list.len() >= most || !may_grow) {
        list.remove(0);
        list.push(last);
    } else if may_grow {
        list.push(last);
    }
}

#[derive(Debug)]
struct Directory {
    confirm: u64,
    limits: Limits,
    walks: BTreeMap<FolderId, Walks>,
    /// The way of the last run, if it did not break.
    carried: Option<Way>,
}

impl Directory {
    /// The first open of a pass.
    fn begin(&mut self, folder: &Folder, opened: &Opened) -> Step {
        let Opened { place, opener, .. } = *opened;
        self.forget(place.folder);
        let mut walks = Walks::default();
        let carried = self.carried;
        let carried = carried.filter(|way| way.rank(folder, place.entry) == 0);
        let step = match carried {
            Some(way) => {
                let (slot, _) = walks.follow(folder, place.entry, opener, way);
                let run = run_of(place.folder, slot);
                Step::Follows { run, carried: true }
            }
            None => {
                walks.common.push(Trails::begin(folder, place.entry));
                Step::Unsure
            }
        };
        self.walks.insert(place.folder, walks);
        step
    }
}

fn run_of(folder: FolderId, slot: u32) -> RunId {
    RunId(u64::from(folder.0) * WALKS_MAX as u64 + u64::from(slot))
}

impl NextFile for Directory {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn entered(&mut self, opened: &Opened, folders: &Folders) -> Step {
        let Opened {
            place,
            opener,
            pass,
            ..
        } = *opened;
        let Some(folder) = folders.get(place.folder) else {
            return Step::Unsure;
        };
        let walks = match (pass, self.walks.get_mut(&place.folder)) {
            (Pass::Again, _) => return Step::Unsure,
            (Pass::New, Some(walks)) => walks,
            _ => return self.begin(folder, opened),
        };
        let run = |slot| run_of(place.folder, slot);
        if let Some(slot) = walks.go_on(folder, place.entry, opener) {
            let (run, carried) = (run(slot), false);
            return Step::Follows { run, carried };
        }
        let stray = walks.stray(opener);
        let confirmed = walks.step(folder, opened, self.confirm);
        let followed = confirmed.map(|way| walks.follow(folder, place.entry, opener, way));
        // A run that goes on elsewhere has the number of the one that is over, from the next open on.
        if let Some((slot, true)) = stray {
            self.carried = confirmed;
            return Step::Breaks(run(slot));
        }
        match followed {
            Some((slot, true)) => Step::Breaks(run(slot)),
            Some((slot, false)) => {
                self.carried = confirmed;
                let (run, carried) = (run(slot), false);
                Step::Follows { run, carried }
            }
            None => Step::Unsure,
        }
    }

    fn next(&self, run: RunId, after: Place, folders: &Folders) -> Option<Place> {
        let mut runs = self.walks.get(&after.folder)?.followed.iter();
        let way = runs
            .find(|followed| run == run_of(after.folder, followed.slot))?
            .way;
        let folder = folders.get(after.folder)?;
        let rank = way.rank(folder, after.entry).checked_add(1)?;
        let entry = way.at(folder, rank)?;
        Some(Place { entry, ..after })
    }

    fn forget(&mut self, folder: FolderId) {
        self.walks.remove(&folder);
    }

    fn bytes(&self) -> u64 {
        self.walks.values().map(Walks::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;

    /// A folder of so many files, whose listing is by 7s, names by 11s and inodes in order; a
    /// method.
    fn rig(files: u32) -> (Folders, Box<dyn NextFile>) {
        let entry = |at| Entry {
            name_rank: at * 11 % files,
            inode: u64::from(at * 7 % files),
            bytes: 0,
        };
        let mut folders = Folders::default();
        folders.list(FolderId(0), (0..files).map(entry).collect());
        (folders, METHOD.of(&[2, 256, 4096]))
    }

    fn walk(files: u32, opens: impl IntoIterator<Item = u32>) -> Vec<Step> {
        let (mut folders, mut method) = rig(files);
        let open = |entry| {
            let folder = FolderId(0);
            let place = Place { folder, entry };
            let opened = Opened {
                place,
                opener: 0,
                pass: folders.open(place).unwrap(),
                has_room: true,
            };
            method.entered(&opened, &folders)
        };
        opens.into_iter().map(open).collect()
    }

    const FOLLOWS: Step = Step::Follows {
        run: RunId(0),
        carried: false,
    };

    #[test]
    fn two_steps_in_any_order_begin_a_run() {
        for opens in [
            [5, 6, 7],
            [0, 46, 92],
            [0, 29, 58],
            [7, 6, 5],
            [92, 46, 0],
            [58, 29, 0],
        ] {
            let steps = walk(101, opens);
            assert_eq!(steps, [Step::Unsure, Step::Unsure, FOLLOWS], "{opens:?}");
        }
    }

    #[test]
    fn a_run_survives_strays_and_breaks_after_three() {
        let steps = walk(200, [5, 6, 7, 150, 8, 150, 100, 120, 60, 90, 170]);
        assert_eq!(steps[2], FOLLOWS);
        assert_eq!(steps[4], FOLLOWS, "after a stray");
        assert_eq!(steps[7..9], [Step::Unsure, Step::Breaks(RunId(0))]);
        assert_eq!(steps[9..], [Step::Unsure; 2]);
    }

    #[test]
    fn openers_without_number_are_told_apart_within_bounds_and_none_without_room() {
        let files = 3000;
        let (mut folders, mut method) = rig(files);
        let mut most = 0;
        for at in 0..files {
            let (folder, entry) = (FolderId(0), at * 1361 % files);
            let place = Place { folder, entry };
            let opened = Opened {
                place,
                opener: at.into(),
                pass: folders.open(place).unwrap(),
                has_room: at >= 40,
            };
            method.entered(&opened, &folders);
            assert!(at >= 40 || method.bytes() == 0);
            most = most.max(method.bytes());
        }
        let trails = WALKS_MAX as u64 + u64::from(1 + files / FILES_EACH);
        assert_eq!(most, WALK_BYTES * (trails - 1));
        method.forget(FolderId(0));
        assert_eq!(method.bytes(), 0);
    }

    #[test]
    fn threads_that_walk_together_are_one_run() {
        let apart = |at: u32| at / 6 * 6 + [4, 1, 5, 0, 3, 2][at as usize % 6];
        let steps = walk(400, (0..60).map(apart));
        let begins = steps.iter().position(|step| *step == FOLLOWS).unwrap();
        assert!(begins < 15, "followed from open {begins} on");
        assert!(steps[begins..].iter().all(|step| *step == FOLLOWS));
    }
}
