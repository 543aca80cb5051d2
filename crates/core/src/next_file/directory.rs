//! Directory: the files of a folder are opened in the order of its listing, of their names or of
//! their inode numbers, from the first one or from the last.
//!
//! For each folder and each of the six ways through it there is a *trail*: where in the order the last
//! open stood, and how well the opens agree with it.
//!
//! ```text
//!           near: some rank of several threads         far: the trail begins anew here
//!      ...  |....... f X .......|  ...................... o ......
//!        opened so far ^ exactly next: a step
//! ```
//!
//! An exact step counts 4, a near one 1, a far open takes everything; 4 times `confirm` is a run.
//! So two exact steps do, or eight near ones in a row, as several threads make: in random order, of
//! n files, each near step has a chance of 16 in n, an exact one of 1 in n, for each way.
//! A run breaks after [`STRAYS_MAX`] far opens in a row; one alone may be another program's.
//!
//! A program that walks a tree walks its folders alike: while a run goes on, or came to its end, a
//! folder whose first open is the first file of the run's way is followed at once. A run that
//! breaks ends that.
//!
//! Readahead over files in directory order is in Linux for directories themselves; for the files in
//! them the source is design note 0011.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::{BYTES, CONFIRM, FILES, Limits, NextFile, Opened, Place, RunId, Step};
use crate::folder::{Folder, Folders, Order, Pass};
use crate::spec::{Knows, Method, Spec};
use crate::units::{Bytes, FolderId};

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
                files: u32::try_from(values.get("files")).unwrap_or(u32::MAX),
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

/// An order, from its first file or from its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    order: Order,
    is_backward: bool,
}

impl Way {
    /// All, the likeliest first.
    const ALL: [Self; 6] = [
        Self::forward(Order::Listing),
        Self::forward(Order::Name),
        Self::forward(Order::Inode),
        Self::backward(Order::Listing),
        Self::backward(Order::Name),
        Self::backward(Order::Inode),
    ];

    const fn forward(order: Order) -> Self {
        let is_backward = false;
        Self { order, is_backward }
    }

    const fn backward(order: Order) -> Self {
        let is_backward = true;
        Self { order, is_backward }
    }

    /// A rank from the end where the way is backward.
    fn turn(self, folder: &Folder, rank: u32) -> Option<u32> {
        match self.is_backward {
            true => folder.len().checked_sub(rank)?.checked_sub(1),
            false => Some(rank),
        }
    }

    fn rank(self, folder: &Folder, entry: u32) -> u32 {
        let rank = folder.rank(self.order, entry);
        self.turn(folder, rank).unwrap_or(rank)
    }

    fn at(self, folder: &Folder, rank: u32) -> Option<u32> {
        folder.at(self.order, self.turn(folder, rank)?)
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
    fn is_near(&self, rank: u32, near: u32) -> bool {
        rank.abs_diff(self.end) <= near
    }

    fn step(&mut self, rank: u32) {
        self.score += match rank {
            _ if rank == self.end => EXACT,
            _ if self.is_near(rank, NEAR) => 1,
            _ => {
                (self.end, self.score) = (rank, 0);
                0
            }
        };
        self.end = self.end.max(rank.saturating_add(1));
    }
}

/// One pass over a folder.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    /// One for each of [`Way::ALL`].
    trails: [Trail; 6],
    following: Option<Way>,
    strays: u32,
}

impl Walk {
    fn begin(folder: &Folder, entry: u32) -> Self {
        let trails = Way::ALL.map(|way| Trail {
            end: way.rank(folder, entry).saturating_add(1),
            score: 0,
        });
        Self {
            trails,
            ..Self::default()
        }
    }

    fn step(&mut self, folder: &Folder, entry: u32) {
        for (trail, way) in self.trails.iter_mut().zip(Way::ALL) {
            trail.step(way.rank(folder, entry));
        }
    }

    /// The way that the opens agree with best, if well enough.
    fn confirmed(&self, confirm: u64) -> Option<Way> {
        let scores = self.trails.iter().map(|trail| trail.score);
        let best = scores.zip(Way::ALL).rev().max_by_key(|(score, _)| *score);
        best.and_then(|(score, way)| (score >= EXACT * confirm).then_some(way))
    }

    /// Whether an open is near the trail of the run; moves the trail on.
    fn goes_on(&mut self, folder: &Folder, entry: u32, way: Way) -> bool {
        let at = Way::ALL.iter().position(|w| *w == way).unwrap_or(0);
        let rank = way.rank(folder, entry);
        let trail = &mut self.trails[at];
        if !trail.is_near(rank, NEAR_RUN) {
            return false;
        }
        trail.end = trail.end.max(rank.saturating_add(1));
        true
    }
}

#[derive(Debug)]
struct Directory {
    confirm: u64,
    limits: Limits,
    walks: BTreeMap<FolderId, Walk>,
    /// The way of the last run, if it did not break.
    carried: Option<Way>,
}

impl Directory {
    /// The first open of a pass.
    fn begin(&mut self, folder: &Folder, place: Place) -> Step {
        let mut walk = Walk::begin(folder, place.entry);
        let carried = self.carried;
        let carried = carried.filter(|way| way.rank(folder, place.entry) == 0);
        walk.following = carried;
        self.walks.insert(place.folder, walk);
        match carried {
            Some(_) => Step::Follows {
                run: run_of(place.folder),
                carried: true,
            },
            None => Step::Unsure,
        }
    }
}

fn run_of(folder: FolderId) -> RunId {
    RunId(folder.0.into())
}

impl NextFile for Directory {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn entered(&mut self, opened: &Opened, folders: &Folders) -> Step {
        let Opened { place, pass, .. } = *opened;
        let Some(folder) = folders.get(place.folder) else {
            return Step::Unsure;
        };
        let walk = match (pass, self.walks.get_mut(&place.folder)) {
            (Pass::Again, _) => return Step::Unsure,
            (Pass::New, Some(walk)) => walk,
            _ => return self.begin(folder, place),
        };
        let run = run_of(place.folder);
        let carried = false;
        if let Some(way) = walk.following {
            if walk.goes_on(folder, place.entry, way) {
                walk.strays = 0;
                return Step::Follows { run, carried };
            }
            walk.strays += 1;
            if walk.strays < STRAYS_MAX {
                return Step::Unsure;
            }
            *walk = Walk::begin(folder, place.entry);
            self.carried = None;
            return Step::Breaks(run);
        }
        walk.step(folder, place.entry);
        walk.following = walk.confirmed(self.confirm);
        let Some(way) = walk.following else {
            return Step::Unsure;
        };
        self.carried = Some(way);
        Step::Follows { run, carried }
    }

    fn next(&self, run: RunId, after: Place, folders: &Folders) -> Option<Place> {
        let way = self.walks.get(&after.folder)?.following?;
        if run != run_of(after.folder) {
            return None;
        }
        let folder = folders.get(after.folder)?;
        let rank = way.rank(folder, after.entry).checked_add(1)?;
        let entry = way.at(folder, rank)?;
        Some(Place { entry, ..after })
    }

    fn forget(&mut self, folder: FolderId) {
        self.walks.remove(&folder);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;
    use alloc::vec::Vec;

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
    fn threads_that_walk_together_are_one_run() {
        let apart = |at: u32| at / 6 * 6 + [4, 1, 5, 0, 3, 2][at as usize % 6];
        let steps = walk(400, (0..60).map(apart));
        let begins = steps.iter().position(|step| *step == FOLLOWS).unwrap();
        assert!(begins < 15, "followed from open {begins} on");
        assert!(steps[begins..].iter().all(|step| *step == FOLLOWS));
    }
}
