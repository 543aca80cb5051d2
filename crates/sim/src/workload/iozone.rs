//! IOzone: several processes, each reading a file of its own from start to end, page by page.
//!
//! IOzone's throughput mode with its sequential read test: the files hold so many bytes in all, however many
//! processes share them, so the same work is done by 1 as by 128.
//!
//! ext3 puts a block of pointers between the data: behind the first 12 blocks of a file, and behind each
//! 1,024 from there on. It lies in the file's own run on the disk and is read when the reader comes to what
//! it points to:
//!
//! ```text
//! disk   data 0 .. 11 | pointers | data 12 .. 1035 | pointers, pointers | data 1036 .. 2059 | pointers | ..
//! ```
//!
//! With `metadata=1` the file contains these blocks, and they are read in their places, as one more block of a
//! sequential read. A kernel reads them one by one, outside of its windows: one request more in 4 MB.
//! Pointers to pointers to pointers, one block in four gigabytes, are left out.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{READ_BYTES, Step, Steps, THINK_NS, Workload, run};

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "iozone",
        summary: "processes read a file each, page by page, so many bytes in all",
        source: "baek09 section 5.2; IOzone 3.283, throughput mode",
        unfit: "showing what reads of different lengths do",
        knows: Knows::Online,
        params: &[
            Param {
                name: "total_bytes",
                summary: "of all files together; 8 GB is eight times the page cache of baek09",
                default: 8 << 30,
                min: 0,
                max: 1 << 41,
            },
            Param {
                name: "streams",
                summary: "processes, and files",
                default: 1,
                min: 1,
                max: 1 << 16,
            },
            Param {
                summary: "bytes a read asks for; 4 KiB is a page, and what IOzone asks for",
                default: PAGE,
                ..READ_BYTES
            },
            THINK_NS,
            Param {
                name: "metadata",
                summary: "1: blocks of pointers lie between the data, as in ext3",
                default: 1,
                min: 0,
                max: 1,
            },
        ],
    },
    build: |v| {
        Box::new(Iozone {
            total_bytes: v[0],
            streams: v[1] as usize,
            read_bytes: v[2],
            think_ns: v[3],
            has_metadata: v[4] != 0,
        })
    },
};

/// A block of ext3, and a page.
const PAGE: u64 = 4096;
/// Blocks that the inode itself points to.
const DIRECT: u64 = 12;
/// Blocks that a block of pointers points to: four bytes each.
const POINTERS: u64 = PAGE / 4;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Iozone {
    /// Of all files together.
    pub total_bytes: u64,
    /// Processes, and files.
    pub streams: usize,
    /// Bytes a read asks for.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Whether blocks of pointers lie between the data.
    pub has_metadata: bool,
}

impl Iozone {
    fn file_bytes(&self) -> u64 {
        let data = self.total_bytes / self.streams as u64;
        match self.has_metadata {
            true => data + pointer_blocks(data.div_ceil(PAGE)) * PAGE,
            false => data,
        }
    }
}

/// Blocks of pointers of a file of so many blocks of data.
fn pointer_blocks(data: u64) -> u64 {
    let pointed = data.saturating_sub(DIRECT);
    let to_pointers = pointed.saturating_sub(POINTERS);
    pointed.div_ceil(POINTERS) + to_pointers.div_ceil(POINTERS * POINTERS)
}

impl Workload for Iozone {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes()); self.streams]
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.streams).collect()
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let reads = run(0, self.file_bytes(), self.read_bytes);
        Box::new(reads.map(|(offset, bytes)| Step::read(offset, bytes, self.think_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lie_behind_twelve_blocks_and_behind_each_thousand() {
        let blocks = [0, 12, 13, 12 + 1024, 13 + 1024, 12 + 2048, 13 + 2048];
        assert_eq!(blocks.map(pointer_blocks), [0, 0, 1, 1, 3, 3, 4]);
    }

    #[test]
    fn all_files_together_are_as_long_however_many_there_are() {
        for streams in [1, 8, 64] {
            let text = format!("iozone(total_bytes=67108864,streams={streams},metadata=0)");
            let sizes = crate::workload::parse(&text).unwrap().files();
            let all: u64 = sizes.iter().map(|size| size.0).sum();
            assert_eq!((all, sizes.len()), (64 << 20, streams));
        }
    }
}
