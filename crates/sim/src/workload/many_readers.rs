//! Many readers: each reads a whole file from start to end, its own or one they share.
//!
//! The server's workload, and the one prefetching depth is made for: every stream is perfectly
//! sequential, and the device sees them mixed. With a shared file the readers follow each other
//! through it, and the others hit the blocks that one fetched.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{FILE_BYTES, READ_BYTES, Step, Steps, THINK_NS, Workload, run};

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "many-readers",
        summary: "each reader reads a whole file, its own or one shared by all",
        source: "li04 section 4; wu10 section 5",
        unfit: "streams that share one open file: see interleaved",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            READ_BYTES,
            THINK_NS,
            Param {
                name: "readers",
                summary: "how many; 10 is where a disk with short windows spends itself on seeks",
                default: 10,
                min: 1,
                max: 1 << 20,
            },
            Param {
                name: "shared",
                summary: "0: a file each; 1: one file for all",
                default: 0,
                min: 0,
                max: 1,
            },
        ],
    },
    build: |v| {
        Box::new(ManyReaders {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            readers: v.get("readers") as usize,
            shared: v.get("shared") != 0,
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct ManyReaders {
    /// Size of each file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Number of readers.
    pub readers: usize,
    /// Whether all read one file.
    pub shared: bool,
}

impl Workload for ManyReaders {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes); if self.shared { 1 } else { self.readers }]
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.readers)
            .map(|reader| if self.shared { 0 } else { reader })
            .collect()
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let reads = run(0, self.file_bytes, self.read_bytes);
        Box::new(reads.map(|(offset, bytes)| Step::read(offset, bytes, self.think_ns)))
    }
}
