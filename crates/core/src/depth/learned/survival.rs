//! Survival: how long the streams of a device have been, the newest ones counting most.
//!
//! A histogram in buckets of an eighth of an octave. A stream that its reader left is an *end*; one
//! that reached the end of its file is a *cut*: its true length is unknown (right-censored). Of the
//! streams that came as far as a bucket, the part that passes it is the product-limit estimate of
//! Kaplan and Meier (1958):
//!
//! ```text
//!   bucket           16 KiB   64 KiB   1 MiB   8 MiB      ends: left there
//!   ends                50       30       0      20       cuts: the file ended there
//!   cuts                 0        0      40       0       come so far: 140, 90, 60, 20
//!   passes           90/140   60/90   60/60    0/20
//! ```
//!
//! Files that are read whole give cuts only: then all pass, and a window may be as long as the
//! file, whatever its length. Each bucket keeps the greatest length in it: streams of one length
//! are known to the byte. At [`KEPT`] streams all weights are halved, so the last few hundred
//! decide.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Lengths up to 4 KiB, one block, are one bucket.
const FIRST_BITS: u32 = 12;
/// Above the first bucket each octave has eight. An edge is off by at most a ninth of the length where lengths
/// are spread, which costs some per cent of a window; with four it would be a fifth.
const PARTS_BITS: u32 = 3;
/// 1 TiB, after which all is one bucket.
const LAST_BITS: u32 = 40;
const BUCKETS: usize = ((LAST_BITS - FIRST_BITS) << PARTS_BITS) as usize;

/// A stream's weight when it is new: one alone in its bucket lasts for four halvings.
const WEIGHT: u32 = 16;
/// Streams that are counted at most. The part that passes a bucket is then known within 2 points;
/// twice as many would be followed half as soon when lengths change.
const KEPT: u32 = 512;
/// Passing is estimated from so many streams at least, each of full weight: the fate
/// of fewer says nothing of the next one.
const KNOWN_MIN: u32 = 4 * WEIGHT;

/// 1, for parts.
pub(super) const ONE: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    ends: u32,
    cuts: u32,
    /// Greatest length since weights were halved, and in the time before.
    longest: [u64; 2],
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Survival {
    buckets: Box<[Bucket]>,
    weight: u32,
}

/// A length at which streams end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    /// The greatest length of its bucket.
    pub(super) length: u64,
    /// Of the streams that came so far, the part that goes on, of [`ONE`].
    pub(super) passes: u64,
    /// Whether enough streams went on for the next edges to be known.
    pub(super) is_known: bool,
}

impl Survival {
    pub(super) const BYTES: u64 = (size_of::<Survival>() + BUCKETS * size_of::<Bucket>()) as u64;
    pub(super) const EDGES_MAX: usize = BUCKETS + 1;

    pub(super) fn new() -> Self {
        Self {
            buckets: alloc::vec![Bucket::default(); BUCKETS].into_boxed_slice(),
            weight: 0,
        }
    }

    /// A stream ended after so many bytes, or was cut there.
    pub(super) fn add(&mut self, length: u64, is_cut: bool) {
        if self.weight >= KEPT * WEIGHT {
            self.halve();
        }
        let bucket = &mut self.buckets[bucket_of(length)];
        let count = if is_cut {
            &mut bucket.cuts
        } else {
            &mut bucket.ends
        };
        *count += WEIGHT;
        bucket.longest[0] = bucket.longest[0].max(length);
        self.weight += WEIGHT;
    }

    fn halve(&mut self) {
        self.weight = 0;
        for bucket in &mut self.buckets {
            bucket.ends /= 2;
            bucket.cuts /= 2;
            bucket.longest = [0, bucket.longest[0]];
            self.weight += bucket.ends + bucket.cuts;
        }
    }

    /// The edges in order, the begin of all streams as the first.
    pub(super) fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::with_capacity(Self::EDGES_MAX);
        let mut come = self.weight;
        edges.push(Edge {
            length: 0,
            passes: ONE,
            is_known: come >= KNOWN_MIN,
        });
        for (index, bucket) in self.buckets.iter().enumerate() {
            if bucket.ends + bucket.cuts == 0 {
                continue;
            }
            let left = come - bucket.ends;
            let passes = u64::from(left) * ONE / u64::from(come.max(1));
            come = left - bucket.cuts;
            let seen = bucket.longest[0].max(bucket.longest[1]);
            edges.push(Edge {
                length: if seen == 0 { end_of(index) } else { seen },
                passes,
                is_known: come >= KNOWN_MIN,
            });
        }
        edges
    }
}

/// The bucket of a length: those from behind its begin up to its end, inclusive.
fn bucket_of(length: u64) -> usize {
    let last = length.saturating_sub(1);
    let Some(octave) = last
        .checked_ilog2()
        .and_then(|bits| bits.checked_sub(FIRST_BITS))
    else {
        return 0;
    };
    let part = (last >> (octave + FIRST_BITS - PARTS_BITS)) & ((1 << PARTS_BITS) - 1);
    (((octave << PARTS_BITS) as usize) + part as usize).min(BUCKETS - 1)
}

/// The greatest length of a bucket.
fn end_of(index: usize) -> u64 {
    let (octave, part) = (index >> PARTS_BITS, index as u64 & ((1 << PARTS_BITS) - 1));
    ((1 << PARTS_BITS) + part + 1) << (octave as u32 + FIRST_BITS - PARTS_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_the_lengths_up_to_its_end() {
        for index in 0..BUCKETS {
            assert_eq!(bucket_of(end_of(index)), index);
            assert_eq!(bucket_of(end_of(index) + 1), (index + 1).min(BUCKETS - 1));
        }
        assert_eq!([0, 1, 4096].map(bucket_of), [0; 3]);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    /// The table above.
    #[test]
    fn streams_cut_by_their_file_count_as_going_on() {
        let mut survival = Survival::new();
        let counts = [
            (50, 16 << 10, false),
            (30, 64 << 10, false),
            (40, 1 << 20, true),
            (20, 8 << 20, false),
        ];
        for (count, length, is_cut) in counts {
            (0..count).for_each(|_| survival.add(length, is_cut));
        }
        let found: Vec<_> = survival
            .edges()
            .iter()
            .map(|e| (e.length, e.passes, e.is_known))
            .collect();
        assert_eq!(
            found,
            [
                (0, ONE, true),
                (16 << 10, 90 * ONE / 140, true),
                (64 << 10, 60 * ONE / 90, true),
                (1 << 20, ONE, true),
                (8 << 20, 0, false),
            ]
        );
    }

    #[test]
    fn old_streams_are_forgotten() {
        let mut survival = Survival::new();
        (0..5000).for_each(|_| survival.add(1_000_000, false));
        (0..8 * KEPT).for_each(|_| survival.add(50_000, false));
        let lengths: Vec<_> = survival.edges().iter().map(|edge| edge.length).collect();
        assert_eq!(lengths, [0, 50_000]);
        assert!(survival.weight <= KEPT * WEIGHT);
    }
}
