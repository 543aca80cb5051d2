//! Retried: reads that ask for much, take little, and come back for the rest.
//!
//! A server that sends a file through a socket asks for everything that is left and gets back as
//! much as the socket took; then it asks again from there. In pages, with 1000 asked and 4 taken:
//! `[0,1000] [4,1000] [8,1000]`. A detector that believes the size asked for, or finds that the
//! next read begins inside the last one and calls it a seek, never gets going.

use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::{Bytes, Nanos};

use super::{FILE_BYTES, Step, Steps, THINK_NS, Workload, run};

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "retried",
        summary: "reads ask for much, take little, and are retried from there",
        source: "wu10 section 4.4",
        unfit: "programs that take all they ask for: see sequential",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            Param {
                name: "ask_bytes",
                summary: "bytes a read asks for; 1000 pages as in the source",
                default: 4_096_000,
                min: 1,
                max: 1 << 30,
            },
            THINK_NS,
            Param {
                name: "take_bytes",
                summary: "bytes it takes; 4 pages as in the source",
                default: 16 << 10,
                min: 1,
                max: 1 << 30,
            },
        ],
    },
    build: |v| {
        Box::new(Retried {
            file_bytes: v.get("file_bytes"),
            ask_bytes: v.get("ask_bytes"),
            think_ns: v.get("think_ns"),
            take_bytes: v.get("take_bytes"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Retried {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub ask_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Bytes a read takes.
    pub take_bytes: u64,
}

impl Workload for Retried {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes)]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let taken = self.take_bytes.min(self.ask_bytes);
        let reads = run(0, self.file_bytes, taken);
        Box::new(reads.map(move |(offset, take)| Step {
            pause: Nanos(0),
            on: None,
            not_before: None,
            think: Nanos(self.think_ns),
            offset: Bytes(offset),
            bytes: Bytes(self.ask_bytes.min(self.file_bytes - offset)),
            take: Bytes(take),
        }))
    }
}
