//! Sequential: one reader, one file, from the start to the end.
//!
//! With reads that are no multiple of the block size it is also the *unaligned* workload:
//! neighbouring reads share a block, and one block may be read several times.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Spec};

use super::{FILE_BYTES, READ_BYTES, Step, Steps, THINK_NS, Workload, run};

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "sequential",
        summary: "one reader reads one file from start to end",
        source: "wu10 section 5",
        unfit: "showing interference between readers",
        knows: Knows::Online,
        params: &[FILE_BYTES, READ_BYTES, THINK_NS],
    },
    build: |v| {
        Box::new(Sequential {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Sequential {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
}

impl Workload for Sequential {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes)]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let reads = run(0, self.file_bytes, self.read_bytes);
        Box::new(reads.map(|(offset, bytes)| Step::read(offset, bytes, self.think_ns)))
    }
}
