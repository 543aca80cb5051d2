//! Servers: request handlers, each a new process with files of its own.
//!
//! The workloads of Li and Shen: as many handlers as the concurrency says are at work at a time;
//! when one is done the next request has a new one. A handler reads one file or several by turns,
//! and computes between:
//!
//! ```text
//! handler 1   open a, b   a b a b a ..  close      readers 0 (a), 1 (b, beside 0)
//! handler 2   open c, d   c d c ..    close        readers 2 (c), 3 (d, beside 2)
//! handler 3              (waits)        open ..    begins when one of them is done
//! ```
//!
//! Every request is drawn from the seed and its number, so all methods serve the same requests in
//! the same order.

pub mod index_search;
pub mod media_clips;
pub mod microbenchmarks;

use forerun_core::spec::Param;
use forerun_core::{Bytes, Nanos};

use super::{Announcement, Announcements, Step, Steps, Workload};

/// A read of a request, and of which of its files.
type Read = (usize, Step);

/// Draws requests by their numbers.
trait Draw: core::fmt::Debug {
    /// The sizes of all files.
    fn files(&self) -> Vec<Bytes>;
    /// The files of a request.
    fn files_of(&self, request: u64) -> Vec<usize>;
    /// Its reads, in their order.
    fn reads(&self, request: u64) -> Vec<Read>;
}

/// See the [module](self).
#[derive(Debug)]
struct Server<D> {
    draw: D,
    announces: bool,
    handlers: usize,
    /// The file and the owner of each reader; a request's number is that of its owner among owners.
    readers: Vec<(usize, usize)>,
    /// The first reader of each request.
    firsts: Vec<usize>,
}

impl<D: Draw> Server<D> {
    fn new(draw: D, announces: u64, handlers: u64, requests: u64) -> Self {
        let (mut readers, mut firsts) = (Vec::new(), Vec::new());
        for request in 0..requests {
            let first = readers.len();
            firsts.push(first);
            readers.extend(draw.files_of(request).into_iter().map(|file| (file, first)));
        }
        Self {
            draw,
            announces: announces == 1,
            handlers: handlers as usize,
            readers,
            firsts,
        }
    }
}

impl<D: Draw> Workload for Server<D> {
    fn files(&self) -> Vec<Bytes> {
        self.draw.files()
    }

    fn readers(&self) -> Vec<usize> {
        self.readers.iter().map(|(file, _)| *file).collect()
    }

    fn owner(&self, reader: usize) -> usize {
        self.readers.get(reader).map_or(reader, |(_, owner)| *owner)
    }

    fn at_once(&self) -> usize {
        self.handlers
    }

    fn ends_processes(&self) -> bool {
        true
    }

    fn hints_at_open(&self, reader: usize) -> Announcements<'_> {
        let owner = self.owner(reader);
        let (true, Ok(request)) = (self.announces, self.firsts.binary_search(&owner)) else {
            return Box::new(core::iter::empty());
        };
        let reads = self.draw.reads(request as u64).into_iter();
        let here = reads.filter(move |(file, _)| owner + file == reader);
        Box::new(here.map(move |(_, step)| Announcement {
            reader,
            offset: step.offset,
            bytes: step.bytes,
        }))
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let Ok(request) = self.firsts.binary_search(&reader) else {
            return Box::new(core::iter::empty());
        };
        let reads = self.draw.reads(request as u64);
        Box::new(reads.into_iter().map(move |(file, step)| match file {
            0 => step,
            beside => step.on(reader + beside),
        }))
    }
}

/// Bytes of one read, as in the servers of Li and Shen.
const READ: u64 = 64 << 10;

/// Reads of a given size from the beginning of a file on.
fn blocks(bytes: u64, think: u64) -> impl Iterator<Item = Step> {
    super::run(0, bytes, READ).map(move |(offset, bytes)| Step::read(offset, bytes, think))
}

/// Puts the processor time of a new handler before its first read.
fn begins(mut reads: Vec<Read>, start_ns: u64) -> Vec<Read> {
    if let Some((_, first)) = reads.first_mut() {
        first.think = Nanos(first.think.0.saturating_add(start_ns));
    }
    reads
}

const HANDLERS: Param = Param {
    name: "handlers",
    summary: "requests that are served at a time",
    default: 16,
    min: 1,
    max: 1 << 14,
};

const REQUESTS: Param = Param {
    name: "requests",
    summary: "requests in all",
    default: 32,
    min: 0,
    max: 1 << 20,
};

const ANNOUNCES: Param = Param {
    name: "announces",
    summary: "1: a request announces its reads of a file as it opens it",
    default: 0,
    min: 0,
    max: 1,
};

/// Of a read of 64 KiB: a copy at some 1 GB/s, 16 pages and a system call on a Xeon of 2 GHz.
/// Assumed.
const READ_NS: Param = Param {
    name: "read_ns",
    summary: "processor time before each read; 100 us is a copy of 64 KiB at 1 GB/s and 16 pages",
    default: 100_000,
    min: 0,
    max: 1_000_000_000,
};

/// Of a request: a thread is made, and 1 MB of its own memory is touched, a page fault and a
/// cleared page each. Assumed.
const START_NS: Param = Param {
    name: "start_ns",
    summary: "processor time before the first read; 1 ms is a thread and 1 MB of fresh memory",
    default: 1_000_000,
    min: 0,
    max: 1_000_000_000,
};
