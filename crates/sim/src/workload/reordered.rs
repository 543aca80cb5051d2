//! Reordered: a sequential file whose reads arrive shuffled inside a band.
//!
//! A server's view of a client that sends several reads at once (NFS, FUSE with asynchronous
//! reads, threads that share an open file): on the whole forward, locally out of order. The next
//! read is drawn from the `band` oldest reads not yet sent, and none is overtaken by more than
//! `band` others, so a read arrives at most `band` places from its own.
//!
//! A band of 1 is plain sequential reading.

use std::collections::VecDeque;

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{FILE_BYTES, READ_BYTES, SEED, Step, Steps, THINK_NS, Workload, run};
use crate::random::Random;

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "reordered",
        summary: "sequential on the whole, shuffled inside a band",
        source: "wu10 section 4.4 (NFS)",
        unfit: "several streams at once: see interleaved",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            READ_BYTES,
            THINK_NS,
            Param {
                name: "band",
                summary: "reads in flight at the client; 8 is a small pool of NFS threads",
                default: 8,
                min: 1,
                max: 4096,
            },
            SEED,
        ],
    },
    build: |v| {
        Box::new(Reordered {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            band: v.get("band") as usize,
            seed: v.get("seed"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Reordered {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Reads that may overtake each other.
    pub band: usize,
    /// Decides the order.
    pub seed: u64,
}

impl Workload for Reordered {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes)]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let band = self.band.max(1);
        let mut coming = run(0, self.file_bytes, self.read_bytes).enumerate();
        let mut waiting = VecDeque::with_capacity(band);
        let mut random = Random::new(self.seed);
        let mut sent = 0;
        Box::new(core::iter::from_fn(move || {
            waiting.extend(coming.by_ref().take(band - waiting.len()));
            let &(oldest, _) = waiting.front()?;
            let overdue = sent >= oldest + band;
            let chosen = if overdue {
                0
            } else {
                random.below(waiting.len() as u64) as usize
            };
            let (_, (offset, bytes)) = waiting.remove(chosen)?;
            sent += 1;
            Some(Step::read(offset, bytes, self.think_ns))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_comes_once_and_at_most_a_band_from_its_place() {
        let workload = Reordered {
            file_bytes: 10_000,
            read_bytes: 10,
            think_ns: 0,
            band: 8,
            seed: 1,
        };
        let order: Vec<u64> = workload.steps(0).map(|step| step.offset.0 / 10).collect();
        assert!(
            order
                .iter()
                .enumerate()
                .all(|(at, read)| read.abs_diff(at as u64) <= 8)
        );
        assert!(!order.is_sorted());
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
    }
}
