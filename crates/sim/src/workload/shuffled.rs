//! Shuffled: one process reads every piece of several files once, in a random order.
//!
//! Training on samples in random order reads so: all of the data, no pattern at all, and yet every
//! read known beforehand, because the order was drawn before the first read. Readers take turns,
//! one an open file.
//!
//! The order of a pass is a permutation that needs no memory: a Feistel network of four rounds over
//! the smallest even number of bits that holds all pieces, applied again until the result is one
//! of them (cycle walking, Black and Rogaway 2002); less than four applications on average.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{FILE_BYTES, READ_BYTES, SEED, Step, Steps, THINK_NS, Turns, Workload};
use crate::random::Random;

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "shuffled",
        summary: "one process reads all pieces of several files in a random order",
        source: "training on samples, shuffled each epoch",
        unfit: "samples of several sizes: every piece but a file's last is as long",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            READ_BYTES,
            THINK_NS,
            SEED,
            Param {
                name: "files",
                summary: "how many; 2 lie on two disks where there are two",
                default: 2,
                min: 1,
                max: 1 << 20,
            },
            Param {
                name: "passes",
                summary: "how often all of them are read, each time in another order",
                default: 1,
                min: 0,
                max: 1 << 20,
            },
        ],
    },
    build: |v| {
        Box::new(Shuffled {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes").max(1),
            think_ns: v.get("think_ns"),
            seed: v.get("seed"),
            files: v.get("files") as usize,
            passes: v.get("passes"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Shuffled {
    /// Size of each file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Decides the order.
    pub seed: u64,
    /// Number of files, and of readers.
    pub files: usize,
    /// How often all is read.
    pub passes: u64,
}

impl Shuffled {
    fn pieces_of_file(&self) -> u64 {
        self.file_bytes.div_ceil(self.read_bytes)
    }

    /// File and piece of each read, in order.
    fn order(&self) -> impl Iterator<Item = (usize, u64)> + 'static {
        let (each, seed) = (self.pieces_of_file(), self.seed);
        let all = each.saturating_mul(self.files as u64);
        (0..self.passes).flat_map(move |pass| {
            let shuffle = Shuffle::new(all, Random::part(seed, pass));
            (0..all).map(move |i| {
                let at = shuffle.at(i);
                ((at / each) as usize, at % each)
            })
        })
    }
}

impl Workload for Shuffled {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes); self.files]
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.files).collect()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let own = self.order().filter(move |(file, _)| *file == reader);
        Box::new(own.map(move |(_, piece)| {
            let offset = piece * self.read_bytes;
            let bytes = self.read_bytes.min(self.file_bytes - offset);
            Step::read(offset, bytes, self.think_ns)
        }))
    }

    fn turns(&self) -> Option<Turns<'_>> {
        Some(Box::new(self.order().map(|(file, _)| file)))
    }
}

/// A permutation of the numbers below a bound.
#[derive(Clone, Copy, Debug)]
struct Shuffle {
    bound: u64,
    /// Half the bits of the network.
    half: u32,
    keys: [u64; 4],
}

impl Shuffle {
    fn new(bound: u64, mut random: Random) -> Self {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        Self {
            bound,
            half: bits.div_ceil(2).max(1),
            keys: [(); 4].map(|()| random.number()),
        }
    }

    /// The value at a place below the bound.
    fn at(&self, place: u64) -> u64 {
        let mut at = self.once(place);
        while at >= self.bound {
            at = self.once(at);
        }
        at
    }

    fn once(&self, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for key in self.keys {
            let mixed = Random::part(key, right).number() & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_piece_is_read_once_in_each_pass_and_the_turns_name_its_reader(
            file_bytes in 0u64..5_000, read_bytes in 1u64..400, files in 1usize..5,
            passes in 0u64..3, seed in any::<u64>(),
        ) {
            let shuffled = Shuffled { file_bytes, read_bytes, think_ns: 0, seed, files, passes };
            let mut steps: Vec<_> = (0..files).map(|reader| shuffled.steps(reader)).collect();
            let mut seen = vec![vec![0; shuffled.pieces_of_file() as usize]; files];
            for reader in shuffled.turns().unwrap() {
                let step = steps[reader].next().unwrap();
                seen[reader][(step.offset.0 / read_bytes) as usize] += 1;
            }
            prop_assert!(steps.iter_mut().all(|steps| steps.next().is_none()));
            prop_assert!(seen.iter().flatten().all(|times| *times == passes));
        }
    }

    #[test]
    fn a_shuffle_of_many_moves_nearly_all_and_two_seeds_differ() {
        let order = |seed| -> Vec<u64> {
            let shuffle = Shuffle::new(1000, Random::new(seed));
            (0..1000).map(|i| shuffle.at(i)).collect()
        };
        let stay = (0..).zip(order(1)).filter(|(i, at)| i == at).count();
        assert!(stay < 10, "{stay} stay; one is expected");
        assert_ne!(order(1), order(2));
    }
}
