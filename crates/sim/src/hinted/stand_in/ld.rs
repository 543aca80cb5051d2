//! ld: the link-editor, building a kernel from about 25 MB of object files.
//!
//! Known (Kimbrel et al. 1996, section 3.1, Table 3): the object files; 5881 reads of 2882 blocks,
//! 23.6 MB; 8.2 s of computing; it waits for its disks until there are ten of them (section 4.3).
//!
//! Assumed: it goes through all object files four times, as a classic Unix link-editor does, once
//! for symbols and strings, then for text, then for data, each with their relocations, and once
//! more for symbols:
//!
//! ```text
//! object file   |header|   text 45 %   | data 15 % | relocations 15 % | symbols, strings 25 % |
//! pass 1            x                                                            x
//! pass 2                        x                            x
//! pass 3                                      x              x
//! pass 4                                                                         x
//! ```
//!
//! Sizes of object files are geometric, eight and a half blocks in the mean. Parts share blocks
//! at their edges, so with this mean the reads come near to Table 3's by themselves. Missing reads
//! are made up by reads of pass 2 that are made twice, spread evenly; surplus reads are left out
//! of pass 4. Compute times are exponential.

use forerun_core::Nanos;

use super::{Accesses, StandIn, small_files, spread};
use crate::random::Random;

/// Blocks of an object file in the mean, per cent.
const FILE_BLOCKS_PERCENT: u64 = 850;
/// Where text, data, relocations and symbols begin, and where the file ends, per cent.
const PARTS: [u32; 5] = [0, 45, 60, 75, 100];
const TEXT: usize = 0;
const DATA: usize = 1;
const RELOCATIONS: usize = 2;
const SYMBOLS: usize = 3;

/// See the [module](self).
pub const LD: StandIn = StandIn {
    name: "ld",
    summary: "a link-editor's passes over parts of object files",
    reads: 5881,
    distinct: 2882,
    compute: Nanos(8_200_000_000),
    accesses,
};

fn accesses(trace: &StandIn, random: &mut Random) -> Accesses {
    let files = small_files(trace.distinct, FILE_BLOCKS_PERCENT, random);
    let passes: [&[usize]; 4] = [
        &[SYMBOLS],
        &[TEXT, RELOCATIONS],
        &[DATA, RELOCATIONS],
        &[SYMBOLS],
    ];
    let mut reads = Vec::new();
    let mut ends = Vec::new();
    for (pass, parts) in passes.iter().enumerate() {
        for (file, blocks) in (0..).zip(&files) {
            if pass == 0 {
                reads.push((file, 0));
            }
            for part in *parts {
                reads.extend(blocks_of(*part, *blocks).map(|block| (file, block)));
            }
        }
        ends.push(reads.len());
    }
    let wanted = trace.reads as usize;
    if reads.len() < wanted {
        let extra = wanted - reads.len();
        reads = repeated(&reads, ends[0]..ends[1], extra);
    }
    reads.truncate(wanted);
    Accesses::exponential(files, reads, random)
}

/// The blocks that hold a part of a file of a given number of blocks.
fn blocks_of(part: usize, blocks: u32) -> impl Iterator<Item = u32> {
    let begin = PARTS[part] * blocks / 100;
    let end = (PARTS[part + 1] * blocks).div_ceil(100);
    begin..end.max(begin + 1)
}

/// The reads, with so many of those in `range` made twice.
fn repeated(reads: &[(u32, u32)], range: std::ops::Range<usize>, extra: usize) -> Vec<(u32, u32)> {
    let (count, first) = (range.len() as u64, range.start);
    let mut all = Vec::with_capacity(reads.len() + extra);
    for (at, read) in reads.iter().enumerate() {
        all.push(*read);
        if range.contains(&at) {
            let again = spread(extra as u64, (at - first) as u64, count);
            all.extend((0..again).map(|_| *read));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_file_and_share_the_blocks_at_their_edges() {
        for blocks in 1..40 {
            let parts = [TEXT, DATA, RELOCATIONS, SYMBOLS];
            let mut covered: Vec<u32> = parts
                .into_iter()
                .flat_map(|part| blocks_of(part, blocks))
                .collect();
            covered.dedup();
            assert_eq!(covered, (0..blocks).collect::<Vec<_>>());
        }
    }
}
