//! Workloads: readers, and the reads of each with their times.
//!
//! A workload has files, readers (open files) and, for each reader, a lazy sequence of
//! [`Step`]s; the [world](crate::world) runs every reader as one sequential process: think, read,
//! think, read; or all of them as one process, where they take turns. A sequence is an iterator
//! with bounded state, so a workload of any length takes no memory, and everything random in it
//! comes from its `seed` parameter.
//!
//! A new workload is one file in `workload/`, one `mod` line here and one entry in [`LIST`].
//! Recorded accesses are a workload too, but not one made of parameters: see
//! [`trace`](crate::trace).

pub mod clients;
pub mod direct_reads;
pub mod folders;
pub mod interleaved;
pub mod intermixed;
pub mod iozone;
pub mod lost;
pub mod many_readers;
pub mod random;
pub mod reordered;
pub mod retried;
pub mod sequential;
pub mod server;
pub mod shuffled;
pub mod strided;
pub mod web_server;

use std::sync::Arc;

use forerun_core::next_file::Entry;
use forerun_core::spec::{Choice, ChoiceError, Method, Param};
use forerun_core::{Bytes, Nanos};

/// The workloads. One entry a workload.
pub static LIST: &[Method<Box<dyn Workload>>] = &[
    sequential::METHOD,
    interleaved::METHOD,
    intermixed::METHOD,
    many_readers::METHOD,
    strided::METHOD,
    random::METHOD,
    reordered::METHOD,
    retried::METHOD,
    shuffled::METHOD,
    folders::METHOD,
    iozone::METHOD,
    direct_reads::METHOD,
    web_server::METHOD,
    server::microbenchmarks::ONE_WHOLE,
    server::microbenchmarks::ONE_RAND,
    server::microbenchmarks::TWO_RAND,
    server::microbenchmarks::FOUR_64KB,
    server::index_search::METHOD,
    server::media_clips::METHOD,
    clients::METHOD,
    lost::DINERO,
    lost::CSCOPE_1,
    lost::CSCOPE_2,
    lost::CSCOPE_3,
    lost::GLIMPSE,
    lost::LD,
    lost::JOIN,
    lost::SELECT,
    lost::XDS,
];

/// One application read, and the computing before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Time it sleeps, before it computes.
    pub pause: Nanos,
    /// Computing time before the read.
    pub think: Nanos,
    /// Where in the file it begins.
    pub offset: Bytes,
    /// Bytes asked for. Bytes past the end of the file are not read.
    pub bytes: Bytes,
    /// How many bytes are taken before the read returns: all of them, or fewer where the
    /// application cannot take more (a full socket) and comes back later for the rest.
    pub take: Bytes,
    /// When it is due, from the beginning of the run, if it has a time: it begins no earlier, and its response counts
    /// from then. A client that takes bytes at a rate has such times.
    pub not_before: Option<Nanos>,
    /// Another reader that makes it, in place of this one: one [beside](Workload::owner) it.
    pub on: Option<usize>,
}

impl Step {
    /// A read of `bytes` at `offset`, all taken.
    #[must_use]
    pub fn read(offset: u64, bytes: u64, think: u64) -> Self {
        let bytes = Bytes(bytes);
        Self {
            pause: Nanos(0),
            think: Nanos(think),
            offset: Bytes(offset),
            bytes,
            take: bytes,
            not_before: None,
            on: None,
        }
    }

    /// The same after a pause.
    #[must_use]
    pub fn after(self, pause: Nanos) -> Self {
        Self { pause, ..self }
    }

    /// The same, no earlier than at this time.
    #[must_use]
    pub fn not_before(self, not_before: Nanos) -> Self {
        let not_before = Some(not_before);
        Self { not_before, ..self }
    }

    /// The same, made by another reader of the process.
    #[must_use]
    pub fn on(self, reader: usize) -> Self {
        let on = Some(reader);
        Self { on, ..self }
    }
}

/// The steps of one reader, in order.
pub type Steps<'a> = Box<dyn Iterator<Item = Step> + 'a>;

/// The readers of one process, in the order in which they make their steps.
pub type Turns<'a> = Box<dyn Iterator<Item = usize> + 'a>;

/// Reads in the order in which they are due, and the reader of each.
pub type Arrivals<'a> = Box<dyn Iterator<Item = (usize, Step)> + 'a>;

/// A read that is announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announcement {
    /// The reader.
    pub reader: usize,
    /// Where in its file.
    pub offset: Bytes,
    /// Number of bytes.
    pub bytes: Bytes,
}

/// Announced reads, in the order in which they will come.
pub type Announcements<'a> = Box<dyn Iterator<Item = Announcement> + 'a>;

/// A process that walks folders: each reader opens its file when its turn comes, and closes it.
#[derive(Clone, Debug)]
pub struct Walk {
    /// The contents of each folder, in the order of its listing. It is listed when its first file
    /// is opened after one of another folder.
    pub listings: Vec<Arc<[Entry]>>,
    /// The file of each reader.
    pub visits: Vec<Visit>,
}

/// A file of a folder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Visit {
    /// The folder.
    pub folder: u32,
    /// Where in its listing.
    pub entry: u32,
}

/// Files, readers, and their reads.
///
/// # Examples
/// A reader that reads the first 4 KiB of each MiB of its file.
///
/// ```
/// use forerun_core::{Bytes, preset};
/// use forerun_sim::device::instant::Instant;
/// use forerun_sim::workload::{Step, Steps, Workload};
/// use forerun_sim::Scene;
///
/// #[derive(Debug)]
/// struct Headers;
///
/// impl Workload for Headers {
///     fn files(&self) -> Vec<Bytes> {
///         vec![Bytes(64 << 20)]
///     }
///     fn steps(&self, _reader: usize) -> Steps<'_> {
///         Box::new((0..64).map(|n| Step::read(n << 20, 4096, 0)))
///     }
/// }
///
/// let settings = preset::default().settings(Bytes(4 << 20))?;
/// let report = Scene::new(settings, Instant::default(), &Headers).run(&mut ())?;
/// assert_eq!(report.bytes, Bytes(64 * 4096));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Workload: core::fmt::Debug {
    /// The sizes of the files.
    fn files(&self) -> Vec<Bytes>;
    /// The file each reader opens, as an index into [`files`](Workload::files): one reader, of the
    /// first file, unless a workload says otherwise.
    fn readers(&self) -> Vec<usize> {
        vec![0]
    }
    /// The steps of a reader. The same sequence at each call.
    fn steps(&self, reader: usize) -> Steps<'_>;
    /// The reader of the next step, if all readers are one process that reads several files; a turn
    /// of a reader that has no step left is passed over. `None`: each reader is a process of its
    /// own.
    fn turns(&self) -> Option<Turns<'_>> {
        None
    }
    /// An open loop, in place of [steps](Workload::steps): reads that begin when they are [due](Step::not_before),
    /// whether those before have ended or not. They neither sleep nor compute.
    fn arrivals(&self) -> Option<Arrivals<'_>> {
        None
    }
    /// The reader whose process a reader belongs to: itself, unless it is there for
    /// [steps](Step::on) of another one and has none itself. It then opens and closes its file with
    /// that one. Where not all are open [at once](Workload::at_once), those of one process follow
    /// on it.
    fn owner(&self, reader: usize) -> usize {
        reader
    }
    /// Where files lie if they lie on an array, for workloads that say so: the extents of each, as
    /// offset in the file and address on the array.
    fn places(&self) -> Option<Vec<Vec<(Bytes, Bytes)>>> {
        None
    }
    /// How many readers with steps of their own are open at a time, where each is a process: the
    /// next one opens its file when one has closed, as the requests of a server. All of them,
    /// unless a workload says otherwise.
    fn at_once(&self) -> usize {
        usize::MAX
    }
    /// Whether a reader that opens its file when one has closed is a new process; else the same one
    /// goes on.
    fn ends_processes(&self) -> bool {
        false
    }
    /// Whether files lie one right behind the other; else there is a gap between two.
    fn is_packed(&self) -> bool {
        false
    }
    /// Where all readers are one process that walks folders, how it does. Each reader then makes
    /// all its steps before the next one opens its file.
    fn walk(&self) -> Option<Walk> {
        None
    }
    /// Announcements of readers before they begin; [`crate::announce`] makes this for any workload.
    fn hints(&self) -> Announcements<'_> {
        Box::new(core::iter::empty())
    }
    /// Announcement of a reader as it opens its file.
    fn hints_at_open(&self, _reader: usize) -> Announcements<'_> {
        Box::new(core::iter::empty())
    }
}

/// Builds a workload from `name` or `name(param=value,..)`.
///
/// # Errors
/// An unknown workload or parameter, or a value out of its range.
pub fn parse(text: &str) -> Result<Box<dyn Workload>, ChoiceError> {
    Choice::parse("workload", LIST, text).map(|choice| choice.build())
}

/// The largest file of a workload: the reach of 32-bit block numbers at 512-byte blocks.
const FILE_MAX: u64 = 1 << 41;

pub(crate) const FILE_BYTES: Param = Param {
    name: "file_bytes",
    summary: "size of each file; 100 MB is long against every ramp and short to simulate",
    default: 100_000_000,
    min: 0,
    max: FILE_MAX,
};

pub(crate) const READ_BYTES: Param = Param {
    name: "read_bytes",
    summary: "bytes a read asks for; 64 KiB is what copying programs use",
    default: 64 << 10,
    min: 1,
    max: 1 << 30,
};

/// The same for workloads that go from place to place.
pub(crate) const PAGE_BYTES: Param = Param {
    summary: "bytes a read asks for; 16 KiB is a database page",
    default: 16 << 10,
    ..READ_BYTES
};

pub(crate) const THINK_NS: Param = Param {
    name: "think_ns",
    summary: "computing time before each read",
    default: 0,
    min: 0,
    max: 3_600_000_000_000,
};

pub(crate) const SEED: Param = Param {
    name: "seed",
    summary: "decides everything random",
    default: 1,
    min: 0,
    max: u64::MAX,
};

/// Consecutive reads over `[start, end)`, the last one cut at `end`.
pub(crate) fn run(start: u64, end: u64, read_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let step = read_bytes.max(1);
    let reads = end.saturating_sub(start).div_ceil(step);
    (0..reads).map(move |i| {
        let offset = start + i * step;
        (offset, step.min(end - offset))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_covers_its_range_once() {
        let reads: Vec<_> = run(10, 35, 10).collect();
        assert_eq!(reads, [(10, 10), (20, 10), (30, 5)]);
        assert_eq!(run(5, 5, 10).count(), 0);
    }

    #[test]
    fn every_workload_builds_with_its_defaults_and_stays_inside_its_files() {
        for method in LIST {
            let workload = parse(method.spec.name).unwrap();
            let (files, readers) = (workload.files(), workload.readers());
            for reader in 0..readers.len() {
                for step in workload.steps(reader).take(2000) {
                    let size = files[readers[step.on.unwrap_or(reader)]];
                    assert!(step.offset < size, "{}: {step:?}", method.spec.name);
                    assert!(step.take <= step.bytes, "{}: {step:?}", method.spec.name);
                }
                let again: Vec<_> = workload.steps(reader).take(100).collect();
                assert!(
                    workload.steps(reader).take(100).eq(again),
                    "{}",
                    method.spec.name
                );
            }
        }
    }
}
