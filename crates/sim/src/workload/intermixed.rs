//! Intermixed: one sequential stream, with random reads in between.
//!
//! One process reads the first half of its file from front to back through one open file, and now
//! and then somewhere in the second half: a database that scans a table and looks something up.
//!
//! ```text
//! first half                  second half
//! |0 1 3 4 6 7 8 ...          |     5        2    ...|       numbers = order of reads
//! ```
//!
//! A detector that takes one read elsewhere for the end of a stream begins its ramp anew each time.
//! Random reads are spread at random over the whole run; positions are uniform, drawn with
//! replacement.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{FILE_BYTES, READ_BYTES, SEED, Step, Steps, THINK_NS, Workload};
use crate::random::Random;

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "intermixed",
        summary: "a sequential stream with random reads in between, through one open file",
        source: "wu10 section 5.1",
        unfit: "several streams: see interleaved",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            Param {
                summary: "bytes a read asks for; 4 KiB as in the source",
                default: 4096,
                ..READ_BYTES
            },
            THINK_NS,
            Param {
                name: "random_bytes",
                summary: "bytes of all random reads together; 1 MB beside 100 is the source's first",
                default: 1_000_000,
                min: 0,
                max: 1 << 40,
            },
            SEED,
        ],
    },
    build: |v| {
        Box::new(Intermixed {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            random_bytes: v.get("random_bytes"),
            seed: v.get("seed"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Intermixed {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Bytes of all random reads together.
    pub random_bytes: u64,
    /// Decides when and where random reads are.
    pub seed: u64,
}

impl Workload for Intermixed {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes)]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let read = self.read_bytes.max(1);
        // The stream's reads and the places for random ones are whole reads.
        let half = self.file_bytes / 2 / read * read;
        let places = (self.file_bytes - half) / read;
        let mut left = half / read;
        let mut others = if places == 0 {
            0
        } else {
            self.random_bytes / read
        };
        let mut next = 0;
        let mut random = Random::new(self.seed);
        Box::new(core::iter::from_fn(move || {
            let all = left.checked_add(others).filter(|all| *all > 0)?;
            if random.below(all) < others {
                others -= 1;
                let offset = half + random.below(places) * read;
                return Some(Step::read(offset, read, self.think_ns));
            }
            left -= 1;
            next += read;
            Some(Step::read(next - read, read, self.think_ns))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_half_is_read_in_order_and_random_reads_fall_into_the_second() {
        let workload = Intermixed {
            file_bytes: 2000,
            read_bytes: 10,
            think_ns: 0,
            random_bytes: 105,
            seed: 1,
        };
        let offsets: Vec<u64> = workload.steps(0).map(|step| step.offset.0).collect();
        let (front, back): (Vec<u64>, Vec<u64>) = offsets.iter().partition(|at| **at < 1000);
        assert!(front.iter().copied().eq((0..1000).step_by(10)));
        assert_eq!(back.len(), 10);
        assert!(
            back.iter()
                .all(|at| (1000..2000).contains(at) && at % 10 == 0)
        );
        // They are in between, not behind.
        assert!(
            offsets[offsets.len() - 20..]
                .iter()
                .filter(|at| **at >= 1000)
                .count()
                < 8
        );
    }

    #[test]
    fn a_file_too_small_for_a_read_has_none() {
        let workload = Intermixed {
            file_bytes: 9,
            read_bytes: 10,
            think_ns: 0,
            random_bytes: 100,
            seed: 1,
        };
        assert_eq!(workload.steps(0).count(), 0);
    }
}
