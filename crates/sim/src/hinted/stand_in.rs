//! Stand-ins for the nine traces of Kimbrel et al. 1996 that are lost.
//!
//! Each is generated from a seed, with the reads, distinct blocks and compute time that Table 3
//! prints, exactly, and with the structure that section 3.1 tells of its application. Known facts
//! and assumptions stand at the head of each file. [`LIST`] names them; the lab of `reproduce`
//! runs them.
//!
//! ```text
//! application -> files, reads of (file, block), weights of compute times
//!             -> files placed, blocks numbered, compute times scaled to the total -> Trace
//! ```
//!
//! Files are placed as the paper placed those of its traces that it knew by file and offset
//! (section 3.2): each begins at random within one group of 8550 blocks, which are 100 cylinders
//! of its disk. Here a file that would lie on another moves up to the next gap; the paper does
//! not tell its own rule. Some of the lost traces had real block numbers; which is not known.
//!
//! A stand-in can show whether an order or a shape holds for reads of that kind. It cannot give
//! back the published seconds.

pub mod cscope;
pub mod dinero;
pub mod glimpse;
pub mod ld;
pub mod postgres;
pub mod xds;

use forerun_core::Nanos;
use forerun_core::hinted::BlockNo;

use super::synth::{self, exponential};
use super::{BLOCK_BYTES, Place, Reads, Reference};
use crate::random::Random;

/// The stand-ins, in the order of Table 3. One entry a trace.
pub static LIST: &[StandIn] = &[
    dinero::DINERO,
    cscope::CSCOPE_1,
    cscope::CSCOPE_2,
    cscope::CSCOPE_3,
    glimpse::GLIMPSE,
    ld::LD,
    postgres::JOIN,
    postgres::SELECT,
    xds::XDS,
];

/// Each stand-in that was fitted to a printed outcome, without the fit. The lab runs them so that a
/// report can show the figure both ways.
pub static WITHOUT_FIT: &[StandIn] = &[
    cscope::CSCOPE_1_WHOLE,
    cscope::CSCOPE_2_SINGLE,
    cscope::CSCOPE_2_LONG,
    glimpse::GLIMPSE_ONCE,
    postgres::JOIN_RANDOM,
    xds::XDS_ANY,
];

/// Blocks among which files begin: 100 cylinders of the paper's disk (section 3.2).
pub const GROUP_BLOCKS: u32 = 8550;

/// A trace that is generated in place of a lost one.
#[derive(Debug)]
pub struct StandIn {
    /// The lost trace.
    pub name: &'static str,
    /// Its reads, in a line.
    pub summary: &'static str,
    /// Reads of it, as Table 3 prints.
    pub reads: u32,
    /// Distinct blocks among them.
    pub distinct: u32,
    /// Compute time of all of it.
    pub compute: Nanos,
    /// The accesses of its application.
    accesses: fn(&StandIn, &mut Random) -> Accesses,
}

/// Accesses of an application.
#[derive(Debug, Default)]
struct Accesses {
    /// Blocks of each file.
    files: Vec<u32>,
    /// Which block of which file, in order.
    reads: Vec<(u32, u32)>,
    /// For each read, its share of the compute time, in any unit.
    weights: Vec<u64>,
}

impl Accesses {
    /// Of exponential compute times, where nothing is known of them but their sum.
    fn exponential(files: Vec<u32>, reads: Vec<(u32, u32)>, random: &mut Random) -> Self {
        let mean = Nanos(1_000_000);
        let weights = reads.iter().map(|_| exponential(random, mean).0).collect();
        Self {
            files,
            reads,
            weights,
        }
    }
}

/// A trace of block references, and where its blocks lie in one address space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Its name in the paper.
    pub name: &'static str,
    /// The cache it was run with.
    pub cache_blocks: u32,
    /// The references, in order.
    pub references: Vec<Reference>,
    /// For each block, its number on an array.
    pub addresses: Vec<u64>,
}

impl Trace {
    /// The trace on an array of a given number of disks, striped by one block.
    #[must_use]
    pub fn on(&self, disks: u16) -> Reads {
        let place = |address: &u64| Place::striped(*address, disks, BLOCK_BYTES);
        Reads {
            references: self.references.clone(),
            places: self.addresses.iter().map(place).collect(),
        }
    }

    /// `synth`, the one that is not lost.
    #[must_use]
    pub fn synth(seed: u64) -> Self {
        Self {
            name: "synth",
            cache_blocks: synth::CACHE_BLOCKS,
            references: synth::synth(1, seed).references,
            addresses: (0..u64::from(synth::BLOCKS)).collect(),
        }
    }
}

impl StandIn {
    /// The cache it was run with (section 3.1): 1280 blocks, or 512 where there are no more.
    #[must_use]
    pub fn cache_blocks(&self) -> u32 {
        if self.distinct > 1280 { 1280 } else { 512 }
    }

    /// The trace of this seed.
    #[must_use]
    pub fn trace(&self, seed: u64) -> Trace {
        let accesses = (self.accesses)(self, &mut Random::part(seed, 0));
        let starts = placed(&accesses.files, &mut Random::part(seed, 1));
        let compute = scaled(&accesses.weights, self.compute);
        let mut firsts: Vec<usize> = Vec::new();
        let mut blocks = 0;
        for file in &accesses.files {
            firsts.push(blocks);
            blocks += *file as usize;
        }
        let mut numbers: Vec<Option<u32>> = vec![None; blocks];
        let mut addresses = Vec::new();
        let mut references = Vec::with_capacity(accesses.reads.len());
        for (&(file, block), compute) in accesses.reads.iter().zip(compute) {
            let file = file as usize;
            let slot = &mut numbers[firsts[file] + block as usize];
            let number = *slot.get_or_insert_with(|| {
                addresses.push(u64::from(starts[file]) + u64::from(block));
                addresses.len() as u32 - 1
            });
            let block = BlockNo(number);
            references.push(Reference { block, compute });
        }
        Trace {
            name: self.name,
            cache_blocks: self.cache_blocks(),
            references,
            addresses,
        }
    }
}

/// Where each file begins: at random in the group, or in the next gap that is wide enough. One
/// that fits nowhere lies behind everything.
fn placed(files: &[u32], random: &mut Random) -> Vec<u32> {
    let mut taken = vec![false; GROUP_BLOCKS as usize];
    let mut behind = GROUP_BLOCKS;
    let mut place = |blocks: u32| {
        let wished = random.below(GROUP_BLOCKS.into()) as u32;
        if files.len() == 1 {
            return wished;
        }
        let Some(start) = gap(&taken, wished, blocks) else {
            behind += blocks;
            return behind - blocks;
        };
        taken[start as usize..(start + blocks) as usize].fill(true);
        start
    };
    files.iter().map(|blocks| place(*blocks)).collect()
}

/// The first free run of a given number of blocks from `from` on, then from the group's front.
fn gap(taken: &[bool], from: u32, blocks: u32) -> Option<u32> {
    let mut free = 0;
    let all = taken.len();
    for step in 0..2 * all {
        let at = (from as usize + step) % all;
        if at == 0 {
            free = 0;
        }
        free = if taken[at] { 0 } else { free + 1 };
        if free >= blocks {
            return Some(at as u32 + 1 - blocks);
        }
    }
    None
}

/// Shares of a total that add up to it to the nanosecond.
fn scaled(weights: &[u64], total: Nanos) -> Vec<Nanos> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let (mut seen, mut given) = (0, 0);
    let mut share = |weight: &u64| {
        seen += u128::from(*weight);
        let up_to = (seen * u128::from(total.0)).checked_div(sum).unwrap_or(0);
        let own = up_to - given;
        given = up_to;
        Nanos(own as u64)
    };
    weights.iter().map(&mut share).collect()
}

/// How many of `extra` reads fall to visit `at` of `visits`, spread evenly.
fn spread(extra: u64, at: u64, visits: u64) -> u64 {
    extra * (at + 1) / visits - extra * at / visits
}

/// Files of a mean number of blocks, geometric and so mostly small, that add up to `total`.
fn small_files(total: u32, mean_percent: u64, random: &mut Random) -> Vec<u32> {
    let mut files = Vec::new();
    let mut left = total;
    while left > 0 {
        let mut blocks = 1;
        // One block more with probability 1 - 1/mean.
        while blocks < left && random.below(mean_percent) >= 100 {
            blocks += 1;
        }
        files.push(blocks);
        left -= blocks;
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stand_in_has_the_numbers_of_table_3_whatever_the_seed() {
        for stand_in in LIST.iter().chain(WITHOUT_FIT) {
            for seed in 1..=4 {
                let trace = stand_in.trace(seed);
                let about = format!("{} seed {seed}", stand_in.name);
                let compute: u64 = trace.references.iter().map(|r| r.compute.0).sum();
                assert_eq!(trace.references.len(), stand_in.reads as usize, "{about}");
                assert_eq!(trace.addresses.len(), stand_in.distinct as usize, "{about}");
                assert_eq!(compute, stand_in.compute.0, "{about}");
                assert_eq!(trace, stand_in.trace(seed), "{about}");
                assert!(trace.on(5).check(), "{about}");
            }
        }
    }

    #[test]
    fn no_two_blocks_lie_in_one_place() {
        for stand_in in LIST.iter().chain(WITHOUT_FIT) {
            let mut addresses = stand_in.trace(1).addresses;
            addresses.sort_unstable();
            addresses.dedup();
            assert_eq!(
                addresses.len(),
                stand_in.distinct as usize,
                "{}",
                stand_in.name
            );
        }
    }

    #[test]
    fn shares_add_up() {
        assert_eq!(scaled(&[1, 1, 1], Nanos(100)), [33, 33, 34].map(Nanos));
        assert_eq!((0..7).map(|at| spread(10, at, 7)).sum::<u64>(), 10);
    }
}
