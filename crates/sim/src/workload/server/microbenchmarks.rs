//! The four microbenchmarks of Li and Shen: 6,000 files of 4 MB, read in blocks of 64 KiB.
//!
//! ```text
//! one-whole    a file from its beginning to its end
//! one-rand     a file from its beginning on, 64 KiB to 4 MB of it, each length as likely
//! two-rand     two files by turns, equally much of each, as one-rand
//! four-64kb    a block anywhere in each of four files
//! ```
//!
//! With `pause_ns` a handler sleeps at so many points of its request, in front of reads drawn at
//! random: their One-Rand-10.

use forerun_core::spec::{Knows, Method, Param, Spec, Values};
use forerun_core::{Bytes, Nanos};

use super::{
    ANNOUNCES, Draw, HANDLERS, READ, READ_NS, REQUESTS, Read, START_NS, Server, begins, blocks,
};
use crate::random::Random;
use crate::workload::{SEED, Step, Workload};

const FILES: Param = Param {
    name: "files",
    summary: "how many",
    default: 6_000,
    min: 1,
    max: 1 << 20,
};

const FILE_BYTES: Param = Param {
    name: "file_bytes",
    summary: "size of each; 4 MB are 64 blocks of 64 KiB",
    default: 4 << 20,
    min: 0,
    max: 1 << 30,
};

const PAUSE: Param = Param {
    name: "pause_ns",
    summary: "how long a handler sleeps at each of its points",
    default: 0,
    min: 0,
    max: 60_000_000_000,
};

const POINTS: Param = Param {
    name: "pauses",
    summary: "points of a request at which it sleeps",
    default: 4,
    min: 0,
    max: 1_000,
};

const PARAMS: &[Param] = &[
    FILES, FILE_BYTES, HANDLERS, REQUESTS, READ_NS, START_NS, PAUSE, POINTS, ANNOUNCES, SEED,
];

macro_rules! microbenchmarks {
    ($($name:ident: $pattern:ident = $text:literal, $summary:literal;)*) => {
        $(pub(in crate::workload) const $name: Method<Box<dyn Workload>> = Method {
            spec: Spec {
                name: $text,
                summary: $summary,
                source: "li04 section 3.1; li05 section 4.1",
                unfit: "popularity: every file is as likely as any other",
                knows: Knows::Online,
                params: PARAMS,
            },
            build: |v| Box::new(Server::new(
                Microbenchmark::new(Pattern::$pattern, v),
                v.get("announces"),
                v.get("handlers"),
                v.get("requests"),
            )),
        };)*
    };
}

microbenchmarks! {
    ONE_WHOLE: OneWhole = "one-whole", "a server whose requests read one file whole";
    ONE_RAND: OneRand = "one-rand", "a server whose requests read a random part of one file, from its beginning on";
    TWO_RAND: TwoRand = "two-rand", "a server whose requests read random parts of two files by turns";
    FOUR_64KB: Four = "four-64kb", "a server whose requests read a random 64 KiB of each of four files";
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    OneWhole,
    OneRand,
    TwoRand,
    Four,
}

#[derive(Clone, Debug)]
struct Microbenchmark {
    pattern: Pattern,
    files: u64,
    file_bytes: u64,
    read_ns: u64,
    start_ns: u64,
    pause: Nanos,
    pauses: u64,
    seed: u64,
}

impl Microbenchmark {
    fn new(pattern: Pattern, v: &Values<'_>) -> Self {
        Self {
            pattern,
            files: v.get("files"),
            file_bytes: v.get("file_bytes"),
            read_ns: v.get("read_ns"),
            start_ns: v.get("start_ns"),
            pause: Nanos(v.get("pause_ns")),
            pauses: v.get("pauses"),
            seed: v.get("seed"),
        }
    }

    /// How much a request reads of each file.
    fn part(&self, random: &mut Random) -> u64 {
        let blocks = self.file_bytes.div_ceil(READ);
        match self.pattern {
            Pattern::OneWhole => self.file_bytes,
            _ => (random.between(1, blocks) * READ).min(self.file_bytes),
        }
    }

    fn pattern(&self, random: &mut Random) -> Vec<Read> {
        let part = self.part(random);
        match self.pattern {
            Pattern::OneWhole | Pattern::OneRand => {
                blocks(part, self.read_ns).map(|step| (0, step)).collect()
            }
            Pattern::TwoRand => blocks(part, self.read_ns)
                .flat_map(|step| [(0, step), (1, step)])
                .collect(),
            Pattern::Four => {
                let last = (self.file_bytes.div_ceil(READ)).saturating_sub(1);
                let mut block = || random.between(0, last) * READ;
                let steps = (0..4).map(|file| (file, Step::read(block(), READ, self.read_ns)));
                steps.collect()
            }
        }
    }

    fn sleep(&self, random: &mut Random, reads: &mut [Read]) {
        if self.pause.0 == 0 {
            return;
        }
        for _ in 0..self.pauses {
            let at = random.below(reads.len() as u64) as usize;
            if let Some((_, step)) = reads.get_mut(at) {
                step.pause.0 = step.pause.0.saturating_add(self.pause.0);
            }
        }
    }
}

impl Draw for Microbenchmark {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes); self.files as usize]
    }

    fn files_of(&self, request: u64) -> Vec<usize> {
        let mut random = Random::part(self.seed, request);
        let count = match self.pattern {
            Pattern::OneWhole | Pattern::OneRand => 1,
            Pattern::TwoRand => 2,
            Pattern::Four => 4,
        };
        (0..count)
            .map(|_| random.below(self.files) as usize)
            .collect()
    }

    fn reads(&self, request: u64) -> Vec<Read> {
        let mut random = Random::part(!self.seed, request);
        let mut reads = self.pattern(&mut random);
        self.sleep(&mut random, &mut reads);
        begins(reads, self.start_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<u64> {
        let workload = crate::workload::parse(text).unwrap();
        let readers = workload.readers().len();
        let owners = (0..readers).filter(|reader| workload.owner(*reader) == *reader);
        owners
            .map(|owner| workload.steps(owner).map(|step| step.bytes.0).sum())
            .collect()
    }

    #[test]
    fn random_parts_are_from_64_kib_to_4_mib_with_2_in_the_mean() {
        let lengths = lengths("one-rand(requests=4000)");
        let mean = lengths.iter().sum::<u64>() / 4000;
        assert_eq!(lengths.iter().min(), Some(&(64 << 10)));
        assert_eq!(lengths.iter().max(), Some(&(4 << 20)));
        assert!(mean.abs_diff(2 << 20) < 80 << 10, "{mean}");
    }

    #[test]
    fn two_files_are_read_by_turns_and_four_once_each() {
        let workload = crate::workload::parse("two-rand(requests=50)").unwrap();
        for owner in (0..100).step_by(2) {
            assert_eq!(workload.owner(owner + 1), owner);
            assert_eq!(workload.steps(owner + 1).count(), 0);
            let steps: Vec<Step> = workload.steps(owner).collect();
            for pair in steps.chunks(2) {
                assert_eq!((pair[0].on, pair[1].on), (None, Some(owner + 1)));
                assert_eq!(pair[0].offset, pair[1].offset);
            }
        }
        assert!(lengths("four-64kb").iter().all(|bytes| *bytes == 4 * READ));
        assert!(lengths("one-whole").iter().all(|bytes| *bytes == 4 << 20));
    }

    #[test]
    fn a_handler_sleeps_at_four_points() {
        let text = "one-rand(pause_ns=10000000,requests=100)";
        let workload = crate::workload::parse(text).unwrap();
        for owner in 0..100 {
            let slept: u64 = workload.steps(owner).map(|step| step.pause.0).sum();
            assert_eq!(slept, 40_000_000);
        }
    }
}
