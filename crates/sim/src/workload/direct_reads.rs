//! Direct reads: threads bypass the page cache, each request aligned to the strips of an array.
//!
//! Databases and video servers that prefetch by themselves read so, and it tells alignment from
//! detection: no page cache and no readahead stand between, so it is run with the preset `none`.
//! Each thread reads a region of its own sequentially, `request_bytes` at a time, which is one
//! strip or several; where it begins in its region is drawn, so that threads do not go round the
//! disks in step:
//!
//! ```text
//! 2 strips a request     thread 0  | 4 5 | 6 7 | 8 9 | .. | 2 3 |      thread 1  | 0 1 | 2 3 | ..
//! ```

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{SEED, Step, Steps, THINK_NS, Workload};
use crate::random::Random;

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "direct-reads",
        summary: "threads read strips of an array, aligned and without readahead",
        source: "baek09 section 5.3",
        unfit: "presets that read ahead: it is meant for `none`",
        knows: Knows::Online,
        params: &[
            Param {
                name: "threads",
                summary: "how many; 256 keep every disk of an array busy",
                default: 256,
                min: 1,
                max: 1 << 16,
            },
            Param {
                name: "request_bytes",
                summary: "of each read: a strip of the array, or several; 128 KiB in the source",
                default: 128 << 10,
                min: 512,
                max: 1 << 30,
            },
            Param {
                name: "requests",
                summary: "reads of each thread",
                default: 64,
                min: 0,
                max: 1 << 30,
            },
            THINK_NS,
            SEED,
        ],
    },
    build: |v| {
        Box::new(DirectReads {
            threads: v.get("threads") as usize,
            request_bytes: v.get("request_bytes"),
            requests: v.get("requests").min((1 << 41) / v.get("request_bytes")),
            think_ns: v.get("think_ns"),
            seed: v.get("seed"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct DirectReads {
    /// Threads, each with a region of its own.
    pub threads: usize,
    /// Of each read.
    pub request_bytes: u64,
    /// Reads of each thread.
    pub requests: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Decides where each thread begins.
    pub seed: u64,
}

impl Workload for DirectReads {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.request_bytes * self.requests); self.threads]
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.threads).collect()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let first = Random::part(self.seed, reader as u64).below(self.requests);
        Box::new((0..self.requests).map(move |at| {
            let offset = (first + at) % self.requests * self.request_bytes;
            Step::read(offset, self.request_bytes, self.think_ns)
        }))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_thread_reads_its_region_once_in_aligned_requests() {
        let text = "direct-reads(threads=5,request_bytes=131072,requests=9,seed=3)";
        let workload = crate::workload::parse(text).unwrap();
        let mut begins = Vec::new();
        for reader in 0..5 {
            let mut offsets: Vec<u64> = workload.steps(reader).map(|s| s.offset.0).collect();
            begins.push(offsets[0]);
            offsets.sort_unstable();
            let all: Vec<u64> = (0..9).map(|at| at * 131_072).collect();
            assert_eq!(offsets, all);
        }
        begins.dedup();
        assert!(begins.len() > 1, "{begins:?}");
    }
}
