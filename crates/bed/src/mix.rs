//! Media clips: their sizes, and the order of requests for them.
//!
//! A web server of media clips has many small files, a few large ones that hold most of the bytes,
//! and a popularity that falls as one over the rank. The mix is that of the video and audio clips
//! of the World Cup 1998 site as Li et al. 2004, section 5, give it: 24 KB to 1,418 KB, 152 KB on
//! average, 9 % of the files large, drawn by Zipf's law. In between, each part is even:
//!
//! ```text
//! small   91 %     24,000 to    74,880 bytes, mean    49,440
//! large    9 %    960,000 to 1,418,000 bytes, mean 1,189,000     together 152,000
//! ```
//!
//! Used by [`fill`](crate::fill) for sizes and by `servers media` for requests. Integers only: a
//! seed gives the same sizes and the same requests on every machine. Sizes and ranks are drawn
//! apart, so the popular clips have the sizes of all, and lie anywhere on the disk.

use crate::content::{self, Draws};

/// The smallest clip.
pub const CLIP_BYTES_MIN: u64 = 24_000;
/// The largest.
pub const CLIP_BYTES_MAX: u64 = 1_418_000;
const SMALL_BYTES_MAX: u64 = 74_880;
const LARGE_BYTES_MIN: u64 = 960_000;
/// Of each hundred clips in order.
const LARGE_PER_HUNDRED: u64 = 9;
/// Any step without a common factor with 100 spreads the large ones over their hundred.
const STEP: u64 = 37;
/// Range of the sizes drawn, and where the large ones of a hundred begin: no file has these blocks.
const SIZES: u64 = u64::MAX - 2;
const LARGE: u64 = u64::MAX - 3;
/// The weight of the most popular clip: the sum over 200,000 ranks stays below 2^44.
const WEIGHT_MAX: u64 = 1 << 40;

/// Whether a clip is one of the 9 %.
#[must_use]
pub fn is_large(seed: u64, number: u64) -> bool {
    let begin = content::tag(seed, number / 100, LARGE) % 100;
    (begin + number % 100 * STEP) % 100 < LARGE_PER_HUNDRED
}

/// The size of a clip.
#[must_use]
pub fn clip_bytes(seed: u64, number: u64) -> u64 {
    let (min, max) = match is_large(seed, number) {
        true => (LARGE_BYTES_MIN, CLIP_BYTES_MAX),
        false => (CLIP_BYTES_MIN, SMALL_BYTES_MAX),
    };
    min + content::tag(seed, number, SIZES) % (max - min + 1)
}

/// Draws numbers of files by Zipf's law: the file of rank r, from 1, comes up as often as 1 / r.
#[derive(Clone, Debug)]
pub struct Popularity {
    draws: Draws,
    /// The weights of all ranks up to each.
    cumulative: Vec<u64>,
    /// The file of each rank.
    files: Vec<u64>,
}

impl Popularity {
    /// Of a given number of files.
    #[must_use]
    pub fn new(seed: u64, count: u64) -> Self {
        let mut draws = Draws::new(seed);
        let mut total = 0;
        let weight = |rank: u64| {
            total += WEIGHT_MAX / rank;
            total
        };
        let cumulative = (1..=count).map(weight).collect();
        let mut files: Vec<u64> = (0..count).collect();
        for last in (1..files.len()).rev() {
            let other = draws.below(last as u64 + 1);
            files.swap(last, usize::try_from(other).unwrap_or(last));
        }
        Self {
            draws,
            cumulative,
            files,
        }
    }

    /// The next file; none of none.
    pub fn draw(&mut self) -> Option<u64> {
        let total = self.cumulative.last()?;
        let at = self.draws.below(*total);
        let rank = self.cumulative.partition_point(|weight| *weight <= at);
        self.files.get(rank).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_each_hundred_clips_are_large_and_the_mean_is_152_kb() {
        for seed in [1, 7, 1998] {
            println!("seed {seed}");
            let sizes: Vec<u64> = (0..10_000).map(|number| clip_bytes(seed, number)).collect();
            for (hundred, sizes) in (0..).zip(sizes.chunks(100)) {
                let large = sizes.iter().filter(|size| **size >= LARGE_BYTES_MIN);
                assert_eq!(large.count(), 9, "hundred {hundred}");
            }
            let mean = sizes.iter().sum::<u64>() / 10_000;
            assert!((148_000..=156_000).contains(&mean), "{mean}");
            assert!(
                sizes
                    .iter()
                    .all(|size| (CLIP_BYTES_MIN..=CLIP_BYTES_MAX).contains(size))
            );
            assert!(
                sizes
                    .iter()
                    .all(|size| *size <= SMALL_BYTES_MAX || *size >= LARGE_BYTES_MIN)
            );
        }
        assert_ne!(clip_bytes(1, 5), clip_bytes(2, 5));
    }

    #[test]
    fn a_seed_draws_the_same_files_and_the_first_ranks_by_zipfs_law() {
        let drawn = |seed| {
            let mut popularity = Popularity::new(seed, 1_000);
            let files: Vec<u64> = (0..20_000).filter_map(|_| popularity.draw()).collect();
            (popularity.files, files)
        };
        let (ranks, files) = drawn(3);
        assert_eq!(files, drawn(3).1);
        assert_ne!(files, drawn(4).1);
        assert_eq!(files.len(), 20_000);
        // The harmonic number of 1,000 is 7.485: rank 1 is 2,672 of 20,000, rank 10 a tenth of
        // that.
        let times = |rank: usize| {
            files
                .iter()
                .filter(|file| **file == ranks[rank - 1])
                .count()
        };
        assert!((2_500..=2_850).contains(&times(1)), "{}", times(1));
        assert!((215..=320).contains(&times(10)), "{}", times(10));
        assert!(ranks[..10].iter().any(|file| *file > 500));
    }

    #[test]
    fn one_file_is_always_drawn_and_none_never() {
        assert_eq!(Popularity::new(1, 1).draw(), Some(0));
        assert_eq!(Popularity::new(1, 0).draw(), None);
    }
}
