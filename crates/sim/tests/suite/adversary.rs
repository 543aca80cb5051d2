//! The worst ratio of device time to the optimum's that an adversary finds, for the engine and not for its rules alone.
//!
//! The disk is the switching device of [`theory`](crate::theory): D is 156.25 blocks. The optimum of a run of x blocks is
//! one switch and x transfers. An adversary chooses the lengths of runs, alike or drawn, how many are read side by
//! side, and how:
//!
//! - *own files*: each run is the first part of a file of its own, read by a process of its own, to its end or not;
//! - *files in turn*: the same by one process in strict turn, so that each window of the ramp costs a switch;
//! - *one file*: runs far apart in one open file, read by one process in strict turn.
//!
//! The bounds are those that the headers of the depth methods and `docs/design/0003` state.

use std::collections::BTreeSet;
use std::fmt::Write;

use forerun_core::journal::Entry;
use forerun_core::{Bytes, Output, Settings};
use forerun_sim::random::Random;
use forerun_sim::workload::{Step, Steps, Turns, Workload};
use forerun_sim::{Report, Scene, device};

use crate::stage::{DISK, settings};

const BLOCK: u64 = 4096;
/// Blocks that the disk transfers in the time of a switch.
const DEPTH: f64 = 156.25;
const SWITCH_NS: f64 = 8e6;
const BLOCK_NS: f64 = SWITCH_NS / DEPTH;
/// Blocks between two runs of one file.
const GAP: u64 = 20_000;
/// Enough for every block of a run: nothing is given up.
const MEMORY: u64 = 1 << 30;

/// Where runs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In files of their own, which go on behind the run or end with it.
    OwnFiles { goes_on: bool },
    /// In files of their own, which one process reads in turn.
    FilesInTurn,
    /// In one open file, with a random read after each of theirs or without.
    OneFile { with_random: bool },
}

/// Runs to be read, so many side by side.
#[derive(Debug)]
struct Runs {
    place: Place,
    /// Blocks of each run.
    lengths: Vec<u64>,
    /// Blocks of a read.
    read: u64,
    together: usize,
}

impl Runs {
    fn begin(&self, run: usize) -> u64 {
        let before: u64 = self.lengths[..run].iter().map(|length| length + GAP).sum();
        before + GAP
    }

    fn reads(&self, run: usize) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (length, read) = (self.lengths[run], self.read);
        (0..length.div_ceil(read)).map(move |i| (i * read, read.min(length - i * read)))
    }

    /// The readers of files in turn, as [`reads_of_one_file`](Self::reads_of_one_file) has its reads.
    fn readers_in_turn(&self) -> Vec<usize> {
        let runs: Vec<usize> = (0..self.lengths.len()).collect();
        let mut all = Vec::new();
        for group in runs.chunks(self.together) {
            let longest = group
                .iter()
                .map(|run| self.lengths[*run].div_ceil(self.read));
            for _ in 0..longest.max().unwrap_or(0) {
                all.extend(group);
            }
        }
        all
    }

    /// The reads of one file: groups of runs, of each group a read of each run in turn.
    fn reads_of_one_file(&self) -> Vec<(u64, u64)> {
        let runs: Vec<usize> = (0..self.lengths.len()).collect();
        let (mut random, mut all) = (Random::new(7), Vec::new());
        let blocks = self.begin(self.lengths.len());
        for group in runs.chunks(self.together) {
            let mut left: Vec<_> = group.iter().map(|run| (*run, self.reads(*run))).collect();
            while !left.is_empty() {
                left.retain_mut(|(run, reads)| {
                    let Some((offset, count)) = reads.next() else {
                        return false;
                    };
                    all.push((self.begin(*run) + offset, count));
                    if self.place == (Place::OneFile { with_random: true }) {
                        // Behind all runs, in as many blocks again, so that chance is as the file's length has it.
                        all.push((blocks + random.below(RANDOM_BLOCKS), 1));
                    }
                    true
                });
            }
        }
        all
    }

    fn optimum_ns(&self) -> f64 {
        let times = self.lengths.iter();
        times.map(|x| SWITCH_NS + *x as f64 * BLOCK_NS).sum()
    }
}

/// A file of 400 MB.
const RANDOM_BLOCKS: u64 = 100_000;

impl Workload for Runs {
    fn files(&self) -> Vec<Bytes> {
        match self.place {
            Place::OwnFiles { goes_on } => {
                let behind = if goes_on { GAP } else { 0 };
                let lengths = self.lengths.iter();
                lengths.map(|x| Bytes((x + behind) * BLOCK)).collect()
            }
            Place::FilesInTurn => self
                .lengths
                .iter()
                .map(|x| Bytes((x + GAP) * BLOCK))
                .collect(),
            Place::OneFile { .. } => {
                vec![Bytes(
                    (self.begin(self.lengths.len()) + RANDOM_BLOCKS) * BLOCK,
                )]
            }
        }
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.files().len()).collect()
    }

    fn at_once(&self) -> usize {
        match self.place {
            Place::OwnFiles { .. } => self.together,
            _ => usize::MAX,
        }
    }

    fn turns(&self) -> Option<Turns<'_>> {
        let is_in_turn = self.place == Place::FilesInTurn;
        is_in_turn.then(|| Box::new(self.readers_in_turn().into_iter()) as Turns<'_>)
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let reads = match self.place {
            Place::OwnFiles { .. } | Place::FilesInTurn => self.reads(reader).collect(),
            Place::OneFile { .. } => self.reads_of_one_file(),
        };
        let steps = reads.into_iter();
        Box::new(steps.map(|(at, count)| Step::read(at * BLOCK, count * BLOCK, 0)))
    }
}

fn measured(settings: Settings, runs: &Runs) -> Report {
    let scene = Scene::new(settings, device::parse(DISK).unwrap(), runs);
    let report = scene.run(&mut ()).unwrap();
    report.ledger.check().unwrap();
    report
}

/// Lengths of runs, in blocks: each of them alike, then mixtures.
fn searched() -> Vec<Vec<u64>> {
    let alike = [1, 2, 3, 4, 5, 8, 12, 17, 20, 21, 22, 33, 53, 54, 64, 85];
    let parts = [
        0.45, 0.6, 0.69, 0.7, 0.87, 1.0, 1.05, 1.36, 1.5, 2.0, 2.4, 3.05, 4.05, 5.0, 6.3, 8.0, 20.0,
    ];
    let parts = parts.map(|part| (part * DEPTH) as u64);
    let count = |x: u64| (20_000 / x.max(1)).clamp(8, 32) as usize;
    let mut all: Vec<Vec<u64>> = alike
        .into_iter()
        .chain((100..400).step_by(16))
        .chain(parts)
        .map(|x| vec![x; count(x)])
        .collect();
    let mut random = Random::new(1);
    for longest in [30, 150, 500, 2_000] {
        all.push((0..32).map(|_| random.between(1, longest)).collect());
    }
    // Short and long by turns: what is learned of the ones does not fit the others.
    all.push([3, 1_000].repeat(8));
    all
}

/// The worst ratio of all lengths, and where it is.
fn worst(preset: &str, depth: Option<&str>, place: Place, read: u64, together: usize) -> f64 {
    let mut worst = (0.0_f64, String::new());
    for lengths in searched() {
        let runs = Runs {
            place,
            lengths,
            read,
            together,
        };
        let mut settings = settings(preset, MEMORY);
        if let Some(depth) = depth {
            let choice = forerun_core::spec::Choice::parse;
            settings.depth = choice("depth", forerun_baselines::METHODS.depth, depth).unwrap();
        }
        let ratio = measured(settings, &runs).device_busy().0 as f64 / runs.optimum_ns();
        if ratio > worst.0 {
            let mut place = String::new();
            let first = &runs.lengths[..runs.lengths.len().min(3)];
            let _ = write!(place, "{} runs of {first:?}..", runs.lengths.len());
            worst = (ratio, place);
        }
    }
    let depth = depth.unwrap_or_default();
    println!(
        "{preset} {depth} {place:?}, reads of {read}, {together} together: {:.3}, {}",
        worst.0, worst.1
    );
    worst.0
}

/// Presets with the depth that is put in place of theirs.
const RULES: [(&str, Option<&str>); 3] = [("cp", None), ("cp", Some("growing")), ("forerun", None)];

/// The worst of some places, for each of [`RULES`]; these are the figures that `depth.rs` of the engine states.
fn assert_worst(stated: [f64; 3], reads: &[u64], together: &[usize], places: &[Place]) {
    for ((preset, depth), stated) in RULES.into_iter().zip(stated) {
        let mut most = 0.0_f64;
        for place in places {
            for read in reads {
                for together in together {
                    most = most.max(worst(preset, depth, *place, *read, *together));
                }
            }
        }
        let is_stated = (most - stated).abs() < 0.01;
        assert!(
            is_stated,
            "{preset} {depth:?} {places:?}: {most:.3}, stated {stated}"
        );
    }
}

/// Processes that read files of their own: to any part, then to the end.
#[test]
fn own_files_stay_within_the_stated_bounds() {
    let part = [Place::OwnFiles { goes_on: true }];
    assert_worst([3.559, 3.559, 2.835], &[1, 16], &[1, 4, 16], &part);
    let whole = [Place::OwnFiles { goes_on: false }];
    assert_worst([2.493, 2.493, 1.969], &[1, 16], &[1, 4, 16], &whole);
}

/// One process that goes from file to file: the ramp's windows are not side by side, and each costs a switch.
#[test]
fn files_in_turn_stay_within_the_stated_bounds() {
    let places = [Place::FilesInTurn];
    assert_worst([4.900, 4.900, 3.364], &[1, 4, 16], &[2, 8], &places);
}

/// Streams in strict turn: `cp` opens no window at all, `forerun` keeps 3.
#[test]
fn streams_in_turn_on_one_open_file_stay_within_three_on_forerun() {
    let place = Place::OneFile { with_random: false };
    for read in [1, 4, 16] {
        for together in 2..=8 {
            let ratio = worst("forerun", None, place, read, together);
            assert!(ratio <= 3.0, "reads of {read}, {together}: {ratio:.3}");
        }
    }
    let alone = worst("cp", None, place, 1, 2);
    assert!(alone > 50.0, "{alone:.1}");
}

/// Blocks fetched where only random reads are, between those of streams, over the blocks they ask for.
#[test]
fn random_reads_beside_streams_fetch_little_more() {
    for together in [2, 4, 8] {
        for length in [500, 2_000, 10_000] {
            let runs = Runs {
                place: Place::OneFile { with_random: true },
                lengths: vec![length; 8],
                read: 1,
                together,
            };
            let mut journal: Vec<Entry> = Vec::new();
            let scene = Scene::new(
                settings("forerun", MEMORY),
                device::parse(DISK).unwrap(),
                &runs,
            );
            scene.run(&mut journal).unwrap();
            let behind = runs.begin(8);
            let fetched = journal.iter().filter_map(|entry| match entry {
                Entry::Output(Output::Fetch(fetch)) => Some(fetch.extent),
                _ => None,
            });
            let fetched = fetched.filter(|extent| u64::from(extent.first.0) >= behind);
            let fetched: u64 = fetched.map(|extent| u64::from(extent.count)).sum();
            let asked: BTreeSet<u64> = runs.reads_of_one_file().iter().map(|(at, _)| *at).collect();
            let ratio = fetched as f64 / asked.range(behind..).count() as f64;
            println!("{together} streams of {length}: {ratio:.4}");
            assert!(
                (0.9..=1.02).contains(&ratio),
                "{together} of {length}: {ratio:.4}"
            );
        }
    }
}
