//! glimpse: four keywords, looked for in 40 MB of news through a small index.
//!
//! Known (Kimbrel et al. 1996, section 3.1, Table 3): the index files are read again and again, the
//! data files seldom; 27,981 reads of 5247 blocks; 38.7 s of computing.
//!
//! Assumed: 5000 blocks are data, 40 MB, and 247 index. Glimpse's index names partitions of
//! the files, at most 256. A keyword is looked up by reading the index from front to back; every
//! partition it names is searched, file by file, and before each file the index is asked for the
//! file's name and the places of its words: blocks anywhere in it. A keyword names a partition or
//! does not, as likely, and each partition is named; once or twice would be too little for the
//! trace to wait for up to five disks, as section 4.3 says it does. The reads that Table 3 leaves
//! over after all this are those questions, spread evenly. News articles are small: one and a half
//! blocks in the mean, geometric. Compute times are exponential.

use forerun_core::Nanos;

use super::{Accesses, StandIn, small_files, spread};
use crate::random::Random;

/// Blocks of the index.
const INDEX_BLOCKS: u32 = 247;
/// Partitions of the data (glimpse numbers them with one byte).
const PARTITIONS: usize = 256;
const KEYWORDS: usize = 4;
/// Blocks of an article in the mean, per cent.
const FILE_BLOCKS_PERCENT: u64 = 150;

/// See the [module](self).
pub const GLIMPSE: StandIn = StandIn {
    name: "glimpse",
    summary: "a small index read often, many small files read seldom",
    reads: 27_981,
    distinct: 5247,
    compute: Nanos(38_700_000_000),
    accesses: |trace, random| accesses(trace, keywords, random),
};

/// glimpse without its fit: a partition is named by one keyword.
pub const GLIMPSE_ONCE: StandIn = StandIn {
    name: "glimpse, one keyword a partition",
    accesses: |trace, random| accesses(trace, one_keyword, random),
    ..GLIMPSE
};

type Keywords = fn(&mut Random) -> [bool; KEYWORDS];

fn accesses(trace: &StandIn, keywords: Keywords, random: &mut Random) -> Accesses {
    let mut files = vec![INDEX_BLOCKS];
    files.extend(small_files(
        trace.distinct - INDEX_BLOCKS,
        FILE_BLOCKS_PERCENT,
        random,
    ));
    let named: Vec<[bool; KEYWORDS]> = (0..PARTITIONS).map(|_| keywords(random)).collect();
    let articles = files.len() - 1;
    // The files that each keyword leads to, in order.
    let visits: Vec<Vec<u32>> = (0..KEYWORDS)
        .map(|keyword| {
            let of = |file: usize| (file - 1) * PARTITIONS / articles;
            let found = (1..=articles).filter(|file| named[of(*file)][keyword]);
            found.map(|file| file as u32).collect()
        })
        .collect();
    let visited = visits.iter().flatten();
    let data: u32 = visited.map(|file| files[*file as usize]).sum();
    let count = visits.iter().map(Vec::len).sum::<usize>() as u64;
    let questions = u64::from(trace.reads) - KEYWORDS as u64 * u64::from(INDEX_BLOCKS);
    let questions = questions.saturating_sub(data.into());
    let mut reads = Vec::new();
    let mut visit = 0;
    for own in &visits {
        reads.extend((0..INDEX_BLOCKS).map(|block| (0, block)));
        for file in own {
            for _ in 0..spread(questions, visit, count) {
                reads.push((0, random.below(INDEX_BLOCKS.into()) as u32));
            }
            reads.extend((0..files[*file as usize]).map(|block| (*file, block)));
            visit += 1;
        }
    }
    Accesses::exponential(files, reads, random)
}

/// Which keywords name a partition: each does or does not, but one at least.
fn keywords(random: &mut Random) -> [bool; KEYWORDS] {
    let drawn = random.between(1, (1 << KEYWORDS) - 1);
    std::array::from_fn(|keyword| drawn >> keyword & 1 == 1)
}

/// One keyword names it.
fn one_keyword(random: &mut Random) -> [bool; KEYWORDS] {
    let drawn = random.below(KEYWORDS as u64);
    std::array::from_fn(|keyword| keyword as u64 == drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_block_is_read_often_and_a_data_block_seldom() {
        let accesses = accesses(&GLIMPSE, keywords, &mut Random::new(1));
        let index = accesses.reads.iter().filter(|(file, _)| *file == 0).count();
        let data = accesses.reads.len() - index;
        let blocks = GLIMPSE.distinct - INDEX_BLOCKS;
        assert!(index as u32 / INDEX_BLOCKS > 50, "{index}");
        assert!((1..4).contains(&(data as u32 / blocks)), "{data}");
    }
}
