//! A server in the manner of Li and Shen 2005, section 4.1: requests that read runs of random
//! length.
//!
//! So many requests are worked on at a time, each by a handler that opens a file, reads one or two
//! runs from their starts on, in turns of 64 KiB, computes before each read, and exits. Handlers
//! compute at paces of their own. Where a request ends early its window is left behind unread.
//! There are more requests than a test has time for.
//!
//! The two runs of a request lie in one open file: a process of the simulator has one. The paper's
//! have a file for each run.

use forerun_core::Bytes;
use forerun_sim::random::Random;
use forerun_sim::workload::{Announcement, Announcements, Step, Steps, Workload};

const READ: u64 = 64 << 10;
/// A run lies in a slot of 4 MiB, a file of the paper.
const SLOT: u64 = 4 << 20;
/// Slots of a file, and files: 16 GiB, where the paper has 24.
const SLOTS: u64 = 64;
const FILES: u64 = 64;
/// Requests, and their random numbers.
const REQUESTS: usize = 4_000;
const SEED: u64 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    OneWhole,
    OneRand,
    TwoRand,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) load: Load,
    /// Requests at a time.
    pub(super) handlers: usize,
    /// The longest time a handler computes before a read.
    pub(super) think_max: u64,
    /// Whether a request announces its reads as it opens its file.
    pub(super) announces: bool,
}

impl Workload for Server {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(SLOT * SLOTS); FILES as usize]
    }

    fn readers(&self) -> Vec<usize> {
        let mut random = Random::new(SEED);
        (0..REQUESTS)
            .map(|_| random.below(FILES) as usize)
            .collect()
    }

    fn at_once(&self) -> usize {
        self.handlers
    }

    fn hints_at_open(&self, request: usize) -> Announcements<'_> {
        let reads = self.steps(request).filter(|_| self.announces);
        Box::new(reads.map(move |step| Announcement {
            reader: request,
            offset: step.offset,
            bytes: step.bytes,
        }))
    }

    fn steps(&self, request: usize) -> Steps<'_> {
        let mut random = Random::part(SEED, request as u64);
        let think = random.below(self.think_max);
        let (runs, reads) = match self.load {
            Load::OneWhole => (1, SLOT / READ),
            Load::OneRand => (1, random.between(1, SLOT / READ)),
            Load::TwoRand => (2, random.between(1, SLOT / READ)),
        };
        let starts: Vec<u64> = (0..runs).map(|_| random.below(SLOTS) * SLOT).collect();
        let turns = (0..reads * runs).map(move |turn| {
            let start = starts[(turn % runs) as usize];
            Step::read(start + turn / runs * READ, READ, think)
        });
        Box::new(turns)
    }
}
