//! The rows of the table of learned depth: requests that read whole files or pieces of them, with
//! the depth methods of the core in turn.

use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings, depth, preset};
use forerun_sim::random::Random;
use forerun_sim::workload::{Step, Steps, Workload};
use forerun_sim::{Scene, device};

/// 8 ms and 80 MB/s.
const DISK: &str = "switching";
/// Transfer during one switch: D.
const DEPTH: u64 = 640_000;
const MEMORY: u64 = 256 << 20;
const READ: u64 = 64 << 10;
/// Pieces lie anywhere in files of this size.
const FILE: u64 = 4 << 30;
const FILES: u64 = 64;
/// Requests to learn from before the measurement.
const BEFORE: usize = 200;
const AFTER: usize = 200;
const SEED: u64 = 1;

/// How many bytes a request reads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Lengths {
    /// So many hundredths of D.
    Fixed(u64),
    /// Any up to so many.
    Uniform(u64),
    /// Ends with every byte alike; the mean.
    Exponential(u64),
    /// Median, each power of e as far from it as in the web's files.
    Lognormal(u64),
    /// The first of two thirds, the second of one.
    Two(u64, u64),
}

impl Lengths {
    /// One of them, in bytes.
    pub(crate) fn draw(self, random: &mut Random) -> u64 {
        let part = (random.below(1 << 40) as f64 + 0.5) / (1_u64 << 40) as f64;
        let hundredths = match self {
            Self::Fixed(length) => length as f64,
            Self::Uniform(most) => part * most as f64,
            Self::Exponential(mean) => -part.ln() * mean as f64,
            Self::Lognormal(median) => {
                let other = (random.below(1 << 40) as f64 + 0.5) / (1_u64 << 40) as f64;
                let normal = (-2.0 * part.ln()).sqrt() * (core::f64::consts::TAU * other).cos();
                median as f64 * normal.exp()
            }
            Self::Two(short, long) => (if part < 2.0 / 3.0 { short } else { long }) as f64,
        };
        ((hundredths * DEPTH as f64 / 100.0) as u64).clamp(4096, 1 << 28)
    }
}

/// Requests, so many at a time, each a process that opens a file, reads and closes.
#[derive(Debug)]
struct Requests {
    /// Where each begins, and how long it is.
    all: Vec<(u64, u64)>,
    at_once: usize,
    /// Whether each has a file of its own, as long as it reads.
    is_whole: bool,
}

impl Workload for Requests {
    fn files(&self) -> Vec<Bytes> {
        match self.is_whole {
            true => self.all.iter().map(|(_, length)| Bytes(*length)).collect(),
            false => vec![Bytes(FILE); FILES as usize],
        }
    }

    fn readers(&self) -> Vec<usize> {
        let file = |request| match self.is_whole {
            true => request,
            false => (request as u64 % FILES) as usize,
        };
        (0..self.all.len()).map(file).collect()
    }

    fn at_once(&self) -> usize {
        self.at_once
    }

    fn steps(&self, request: usize) -> Steps<'_> {
        let (begin, length) = self.all[request];
        let reads = (0..length.div_ceil(READ)).map(move |read| read * READ);
        Box::new(reads.map(move |at| Step::read(begin + at, READ.min(length - at), 0)))
    }
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) is_whole: bool,
    pub(crate) lengths: Lengths,
    pub(crate) at_once: usize,
}

/// MB/s of the requests after the first ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) linux: f64,
    pub(crate) competitive: f64,
    pub(crate) growing: f64,
    pub(crate) learned: f64,
}

fn settings(preset: &str, depth: &str) -> Settings {
    let preset = preset::find(preset).expect("a preset");
    let mut settings = preset.settings(Bytes(MEMORY)).expect("enough memory");
    settings.depth = Choice::parse("depth", depth::LIST, depth).expect("a depth method");
    settings
}

impl Case {
    fn requests(&self, count: usize) -> Requests {
        let mut random = Random::new(SEED);
        let all = (0..count).map(|_| {
            let length = self.lengths.draw(&mut random);
            let begin = random.below((FILE - length) / 4096) * 4096;
            (if self.is_whole { 0 } else { begin }, length)
        });
        Requests {
            all: all.collect(),
            at_once: self.at_once,
            is_whole: self.is_whole,
        }
    }

    /// MB/s with this depth method in a composition.
    fn rate(&self, preset: &str, depth: &str) -> f64 {
        let end = |count| {
            let requests = self.requests(count);
            let device = device::parse(DISK).expect("a device");
            let scene = Scene::new(settings(preset, depth), device, &requests);
            let report = scene.run(&mut ()).expect("a run without faults");
            (report.bytes.0, report.elapsed.0)
        };
        let (early, late) = (end(BEFORE), end(BEFORE + AFTER));
        (late.0 - early.0) as f64 * 1000.0 / (late.1 - early.1) as f64
    }

    pub(crate) fn run(&self, preset: &str) -> Found {
        Found {
            linux: self.rate(preset, "fixed"),
            competitive: self.rate(preset, "competitive"),
            growing: self.rate(preset, "growing"),
            learned: self.rate(preset, "learned"),
        }
    }
}

/// Heading of the columns.
pub(crate) const HEAD: &str = "preset   reads   at  lengths (D/100)      linux  competitive  growing  learned  over comp  better";

/// The compositions in which the depth is exchanged.
pub(crate) const COMPOSITIONS: [&str; 2] = ["cp", "forerun"];

/// Whole files first.
pub(crate) fn cases() -> Vec<Case> {
    let whole = [25, 100, 200, 400, 800, 1600, 3200].map(Lengths::Fixed);
    let whole = whole.into_iter().chain([Lengths::Lognormal(200)]);
    let pieces = [
        Lengths::Fixed(25),
        Lengths::Fixed(150),
        Lengths::Fixed(1000),
        Lengths::Uniform(50),
        Lengths::Uniform(400),
        Lengths::Exponential(50),
        Lengths::Exponential(300),
        Lengths::Lognormal(30),
        Lengths::Lognormal(200),
        Lengths::Two(10, 1000),
    ];
    let mut cases = Vec::new();
    for (is_whole, all) in [(true, whole.collect()), (false, pieces.to_vec())] {
        for lengths in all {
            let of = |at_once| Case {
                is_whole,
                lengths,
                at_once,
            };
            cases.extend([1, 8].map(of));
        }
    }
    cases
}

/// The beginning of a row.
pub(crate) fn name(preset: &str, case: &Case) -> String {
    let what = if case.is_whole { "whole" } else { "pieces" };
    let lengths = format!("{:?}", case.lengths);
    format!("{preset:<9}{what:<8}{:>3}  {lengths:<18}", case.at_once)
}

/// A line of the table.
pub(crate) fn row(preset: &str, case: &Case) -> String {
    let found = case.run(preset);
    let better = found.competitive.max(found.linux);
    format!(
        "{}{:>7.1}{:>13.1}{:>9.1}{:>9.1}{:>10.2}{:>8.2}",
        name(preset, case),
        found.linux,
        found.competitive,
        found.growing,
        found.learned,
        found.learned / found.competitive,
        found.learned / better,
    )
}
