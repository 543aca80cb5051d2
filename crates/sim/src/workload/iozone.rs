//! IOzone: several processes, each reading a file of its own from start to end, page by page.
//!
//! IOzone's throughput mode with its sequential read test: the files hold so many bytes in all,
//! however many processes share them, so the same work is done by 1 as by 128.
//!
//! ext3 puts a block of pointers between the data: behind the first 12 blocks of a file, and behind
//! each 1,024 from there on. It lies in the file's own run on the disk and is read when the reader
//! comes to the blocks it points to:
//!
//! ```text
//! disk   data 0 .. 11 | pointers | data 12 .. 1035 | pointers, pointers | data 1036 .. 2059 | pointers | ..
//! ```
//!
//! With `metadata=1` the process reads these blocks, one by one and outside of its windows, as a
//! kernel does: they are a file of their own, whose blocks lie between the data on an array
//! (elsewhere, behind it). A kernel needs a pointer block when a window reaches its data,
//! `ahead_bytes` before its reader does. With `metadata=2` they are blocks of the file, read in its
//! windows: so they are to a prefetcher of an array's blocks. Pointers to pointers to pointers, one
//! block in four gigabytes, are left out.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{READ_BYTES, Step, Steps, THINK_NS, Workload, run};

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "iozone",
        summary: "processes read a file each, page by page, so many bytes in all",
        source: "baek09 section 5.2; IOzone 3.283, throughput mode",
        unfit: "showing effects of the length of reads",
        knows: Knows::Online,
        params: &[
            Param {
                name: "total_bytes",
                summary: "of all files together; 8 GB is eight times the source's page cache",
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
                summary: "bytes a read asks for; 4 KiB is a page, and IOzone's size",
                default: PAGE,
                ..READ_BYTES
            },
            THINK_NS,
            Param {
                name: "metadata",
                summary: "blocks of pointers between the data: 0: none; 1: as in ext3; 2: in the file",
                default: 1,
                min: 0,
                max: 2,
            },
            Param {
                name: "ahead_bytes",
                summary: "how far ahead pointers are needed: a window; 128 KiB is Linux's",
                default: 128 << 10,
                min: 0,
                max: 1 << 30,
            },
        ],
    },
    build: |v| {
        Box::new(Iozone {
            total_bytes: v.get("total_bytes"),
            streams: v.get("streams") as usize,
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            metadata: [Metadata::None, Metadata::Beside, Metadata::Inside]
                [v.get("metadata") as usize % 3],
            ahead_bytes: v.get("ahead_bytes"),
        })
    },
};

/// A block of ext3, and a page.
const PAGE: u64 = 4096;
/// Blocks that the inode itself points to.
const DIRECT: u64 = 12;
/// Blocks that a block of pointers points to: four bytes each.
const POINTERS: u64 = PAGE / 4;

/// How blocks of pointers are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metadata {
    /// There are none.
    None,
    /// One by one, as files of their own.
    Beside,
    /// As blocks of the file.
    Inside,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Iozone {
    /// Of all files together.
    pub total_bytes: u64,
    /// Processes, and files.
    pub streams: usize,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Blocks of pointers between the data.
    pub metadata: Metadata,
    /// How far ahead of the reader they are needed.
    pub ahead_bytes: u64,
}

impl Iozone {
    fn file_bytes(&self) -> u64 {
        let data = self.total_bytes / self.streams as u64;
        match self.metadata {
            Metadata::Inside => data + pointer_blocks(data.div_ceil(PAGE)) * PAGE,
            _ => data,
        }
    }

    fn is_beside(&self) -> bool {
        self.metadata == Metadata::Beside
    }

    /// Of the blocks of pointers of one file.
    fn pointer_bytes(&self) -> u64 {
        pointer_blocks(self.file_bytes().div_ceil(PAGE)) * PAGE
    }

    /// Where the pointers to the data from an offset on are, if that is where they are needed
    /// first: an offset among all pointers of the file, and how many bytes they are.
    fn pointers_at(offset: u64) -> Option<(u64, u64)> {
        let pointed = (offset / PAGE).checked_sub(DIRECT)?;
        let is_first = offset.is_multiple_of(PAGE) && pointed.is_multiple_of(POINTERS);
        is_first.then(|| {
            let before = pointer_blocks(DIRECT + pointed);
            (
                before * PAGE,
                (pointer_blocks(DIRECT + pointed + 1) - before) * PAGE,
            )
        })
    }

    /// The extents of a file and of its pointers, of which the first block lies at this address.
    fn extents(&self, begin: u64) -> [Vec<(Bytes, Bytes)>; 2] {
        let mut data = vec![(Bytes(0), Bytes(begin))];
        let mut pointers = Vec::new();
        let firsts = (DIRECT * PAGE..self.file_bytes()).step_by((POINTERS * PAGE) as usize);
        for offset in firsts {
            let Some((before, bytes)) = Self::pointers_at(offset) else {
                continue;
            };
            let at = begin + offset + before;
            pointers.push((Bytes(before), Bytes(at)));
            data.push((Bytes(offset), Bytes(at + bytes)));
        }
        [data, pointers]
    }
}

/// Blocks of pointers of a file of a given number of blocks of data.
fn pointer_blocks(data: u64) -> u64 {
    let pointed = data.saturating_sub(DIRECT);
    let to_pointers = pointed.saturating_sub(POINTERS);
    pointed.div_ceil(POINTERS) + to_pointers.div_ceil(POINTERS * POINTERS)
}

impl Workload for Iozone {
    fn files(&self) -> Vec<Bytes> {
        let mut sizes = vec![Bytes(self.file_bytes()); self.streams];
        if self.is_beside() {
            sizes.extend(vec![Bytes(self.pointer_bytes()); self.streams]);
        }
        sizes
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.files().len()).collect()
    }

    fn owner(&self, reader: usize) -> usize {
        reader % self.streams
    }

    fn places(&self) -> Option<Vec<Vec<(Bytes, Bytes)>>> {
        if !self.is_beside() {
            return None;
        }
        let blocks = self.file_bytes().div_ceil(PAGE) * PAGE + self.pointer_bytes();
        let files = (0..self.streams as u64).map(|file| self.extents(file * blocks));
        let (data, pointers): (Vec<_>, Vec<_>) = files.map(|[data, own]| (data, own)).unzip();
        Some([data, pointers].concat())
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        if reader >= self.streams {
            return Box::new(core::iter::empty());
        }
        let beside = reader + self.streams;
        let reads = run(0, self.file_bytes(), self.read_bytes);
        Box::new(reads.flat_map(move |(offset, bytes)| {
            let ahead = self.ahead_bytes.next_multiple_of(PAGE);
            let end = (offset + bytes).next_multiple_of(PAGE) + ahead;
            let begin = match offset {
                0 => 0,
                _ => offset.next_multiple_of(PAGE) + ahead,
            };
            let blocks = (begin..end.min(self.file_bytes())).step_by(PAGE as usize);
            let needed = blocks.filter_map(Self::pointers_at);
            let needed = needed.filter(|_| self.is_beside());
            let pointers = needed.map(move |(at, bytes)| Step::read(at, bytes, 0).on(beside));
            let data = Step::read(offset, bytes, self.think_ns);
            pointers.chain(core::iter::once(data))
        }))
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
    fn pointers_are_read_where_they_are_needed_and_lie_between_the_data() {
        let mut iozone = Iozone {
            total_bytes: 2 * (12 + 2 * 1024 + 1) * PAGE,
            streams: 2,
            read_bytes: PAGE,
            think_ns: 0,
            metadata: Metadata::Beside,
            ahead_bytes: 0,
        };
        let places = iozone.places().unwrap();
        // Every block of the array, once.
        let mut blocks = Vec::new();
        for (extents, size) in places.iter().zip(iozone.files()) {
            for block in 0..size.0 / PAGE {
                let at = extents.partition_point(|(offset, _)| offset.0 <= block * PAGE);
                let (offset, address) = extents[at - 1];
                blocks.push((address.0 + block * PAGE - offset.0) / PAGE);
            }
        }
        blocks.sort_unstable();
        assert!(blocks.iter().copied().eq(0..2 * (12 + 2 * 1024 + 1 + 4)));
        for (read_bytes, ahead) in [
            (PAGE, 0),
            (3 * PAGE, 0),
            (1000, 0),
            (PAGE, 40),
            (PAGE, 1 << 20),
        ] {
            (iozone.read_bytes, iozone.ahead_bytes) = (read_bytes, ahead * PAGE);
            let steps: Vec<Step> = iozone.steps(1).collect();
            let on = steps.iter().filter(|step| step.on == Some(3));
            let read: Vec<_> = on
                .map(|step| (step.offset.0 / PAGE, step.bytes.0 / PAGE))
                .collect();
            assert_eq!(read, [(0, 1), (1, 2), (3, 1)], "{read_bytes}");
        }
        assert_eq!(iozone.steps(2).count(), 0);
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
