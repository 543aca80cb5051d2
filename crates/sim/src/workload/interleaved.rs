//! Interleaved: several sequential streams through one open file.
//!
//! One reader, one file cut into equal parts, one stream a part; reads take the streams in turn,
//! or one at random. Each stream may begin with several reads in a row. The hardest pattern for a
//! detector with a single window an open file; a database scan by a thread pool, or an NFS server
//! with one handle, reads so.
//!
//! ```text
//! part    0         1         2
//! file |0 3 6 ...|1 4 7 ...|2 5 8 ...|     numbers = order of reads
//! ```

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{FILE_BYTES, READ_BYTES, SEED, Step, Steps, THINK_NS, Workload};
use crate::random::Random;

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "interleaved",
        summary: "several sequential streams through one open file",
        source: "wu10 section 4.4",
        unfit: "readers with a position of their own: see many-readers",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            READ_BYTES,
            THINK_NS,
            Param {
                name: "streams",
                summary: "how many; 10 is more than windows kept by luck survive",
                default: 10,
                min: 1,
                max: 1 << 16,
            },
            Param {
                name: "opening_reads",
                summary: "reads a stream makes in a row when it begins; two misses in a row open \
                          a window in the source, 1 leaves that out",
                default: 2,
                min: 1,
                max: 1 << 16,
            },
            Param {
                name: "random_order",
                summary: "0: streams in turn; 1: a random stream each time",
                default: 0,
                min: 0,
                max: 1,
            },
            SEED,
            Param {
                name: "reads",
                summary: "reads of all streams together after which it ends; 0: the whole file",
                default: 0,
                min: 0,
                max: u64::MAX,
            },
        ],
    },
    build: |v| {
        Box::new(Interleaved {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            streams: v.get("streams"),
            opening_reads: v.get("opening_reads"),
            random_order: v.get("random_order") != 0,
            seed: v.get("seed"),
            reads: v.get("reads"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Interleaved {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Number of streams.
    pub streams: u64,
    /// Reads a stream makes in a row when it begins.
    pub opening_reads: u64,
    /// Whether a random stream reads next, instead of the next in turn.
    pub random_order: bool,
    /// Decides the random order.
    pub seed: u64,
    /// Reads after which it ends; all there are if 0.
    pub reads: u64,
}

impl Interleaved {
    /// The parts of the file, each a whole number of reads long except the last.
    fn parts(&self) -> Vec<Part> {
        let read = self.read_bytes.max(1);
        let reads = self.file_bytes.div_ceil(read);
        let length = reads
            .div_ceil(self.streams.max(1))
            .saturating_mul(read)
            .max(1);
        let start = |part: u64| part.saturating_mul(length).min(self.file_bytes);
        (0..self.streams.max(1))
            .map(|part| Part {
                at: start(part),
                end: start(part + 1),
                opening: self.opening_reads,
            })
            .filter(|part| part.at < part.end)
            .collect()
    }
}

/// The rest of a stream.
#[derive(Clone, Copy, Debug)]
struct Part {
    at: u64,
    end: u64,
    /// Reads it still makes in a row.
    opening: u64,
}

impl Workload for Interleaved {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes)]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let mut random = Random::new(self.seed);
        let mut parts = self.parts();
        let (mut turn, mut stays) = (0, false);
        let steps = core::iter::from_fn(move || {
            if self.random_order && !stays {
                turn = random.below(parts.len() as u64) as usize;
            }
            let part = parts.get_mut(turn)?;
            let (offset, bytes) = (part.at, self.read_bytes.max(1).min(part.end - part.at));
            part.at += bytes;
            part.opening = part.opening.saturating_sub(1);
            let (is_done, opening) = (part.at == part.end, part.opening);
            stays = opening > 0 && !is_done;
            if is_done {
                parts.remove(turn);
            }
            if !is_done && !stays {
                turn += 1;
            }
            turn = if turn >= parts.len() { 0 } else { turn };
            Some(Step::read(offset, bytes, self.think_ns))
        });
        let reads = match self.reads {
            0 => usize::MAX,
            reads => usize::try_from(reads).unwrap_or(usize::MAX),
        };
        Box::new(steps.take(reads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(random_order: bool, streams: u64, opening_reads: u64) -> Vec<u64> {
        let workload = Interleaved {
            file_bytes: 70,
            read_bytes: 10,
            think_ns: 0,
            streams,
            opening_reads,
            random_order,
            seed: 3,
            reads: 0,
        };
        workload.steps(0).map(|step| step.offset.0).collect()
    }

    #[test]
    fn streams_take_turns_and_short_ones_drop_out() {
        assert_eq!(offsets(false, 3, 1), [0, 30, 60, 10, 40, 20, 50]);
        assert_eq!(offsets(false, 3, 2), [0, 10, 30, 40, 60, 20, 50]);
    }

    #[test]
    fn it_ends_after_so_many_reads() {
        let all =
            super::super::parse("interleaved(file_bytes=70,read_bytes=10,streams=3)").unwrap();
        let few = "interleaved(file_bytes=70,read_bytes=10,streams=3,reads=4)";
        let few: Vec<Step> = super::super::parse(few).unwrap().steps(0).collect();
        assert_eq!(few, all.steps(0).take(4).collect::<Vec<_>>());
        assert_eq!(few.len(), 4);
    }

    #[test]
    fn every_byte_is_read_once_in_any_order() {
        for streams in [1, 2, 7, 100] {
            let mut read = offsets(true, streams, 2);
            read.sort_unstable();
            assert_eq!(read, [0, 10, 20, 30, 40, 50, 60]);
        }
    }
}
