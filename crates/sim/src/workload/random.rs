//! Random: reads anywhere in one file.
//!
//! Positions are uniform over the aligned ones, drawn with replacement. Nothing should be
//! fetched ahead of such a reader; two reads that happen to touch are the only temptation.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{FILE_BYTES, PAGE_BYTES, SEED, Step, Steps, THINK_NS, Workload};
use crate::random::Random;

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "random",
        summary: "one reader reads at random positions of one file",
        source: "wu10 section 5.4",
        unfit: "skewed popularity: every position is equally likely",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            PAGE_BYTES,
            THINK_NS,
            Param {
                name: "reads",
                summary: "how many; 2000 read a third of the default file",
                default: 2000,
                min: 0,
                max: u64::MAX,
            },
            Param {
                name: "align_bytes",
                summary: "positions are multiples of it; 4 KiB is a page",
                default: 4096,
                min: 1,
                max: 1 << 30,
            },
            SEED,
        ],
    },
    build: |v| {
        Box::new(RandomReads {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            reads: v.get("reads"),
            align_bytes: v.get("align_bytes"),
            seed: v.get("seed"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct RandomReads {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Number of reads.
    pub reads: u64,
    /// Positions are multiples of this.
    pub align_bytes: u64,
    /// Decides the positions.
    pub seed: u64,
}

impl Workload for RandomReads {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes)]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let align = self.align_bytes.max(1);
        let last = self.file_bytes.saturating_sub(self.read_bytes) / align;
        let mut random = Random::new(self.seed);
        let reads = if self.file_bytes == 0 { 0 } else { self.reads };
        Box::new((0..reads).map(move |_| {
            let offset = random.between(0, last) * align;
            let bytes = self.read_bytes.min(self.file_bytes - offset);
            Step::read(offset, bytes, self.think_ns)
        }))
    }
}
