//! The runs of the paper: streams that are interleaved, random reads in between, and network clients.

use forerun_core::{Bytes, Nanos};

use super::super::drive::{DriveReport, DriveRun};
use super::super::lab::Lab;

pub(super) const LEGACY: &str = "linux-2.6.22";
pub(super) const ON_DEMAND: &str = "linux-2.6.24";
/// Both, as they stand in every figure.
pub(super) const BOTH: [&str; 2] = [LEGACY, ON_DEMAND];

/// As the paper calls them.
pub(super) fn name(preset: &str) -> String {
    let name = if preset == LEGACY {
        "legacy"
    } else {
        "on-demand"
    };
    name.to_owned()
}

/// "The max readahead size is set to 1MB."
const WINDOW: Bytes = Bytes(1 << 20);
/// Linux's `max_sectors_kb`.
const REQUEST: Bytes = Bytes(512 << 10);
/// The middle of 160 GB.
const LOCATION: Bytes = Bytes(80_000_000_000);
/// Processor time of a read of 4 KB: the difference in Figures 13 and 14 between the time of a run
/// and its waiting. 100 MB at 28.32 MB/s less 2.89 s, and at 24.95 less 3.36: 0.64 and 0.65 s for
/// 24,414 reads.
const THINK_NS: u64 = 26_000;
/// How far the drive reads on where that is switched on: the least of three that were tried, see W6.
const READING_ON: Bytes = Bytes(128 << 10);
/// Of 128 MB, for pages.
pub(super) const MEMORY: Bytes = Bytes(100 << 20);
/// Enough for every page of a run that is not about memory: nothing is given up.
const PLENTY: Bytes = Bytes(2 << 30);
/// Runs of a random order.
const SEEDS: u64 = 10;
/// Bytes of a stream, and bytes read of all together.
const STREAM: u64 = 100_000_000;
const PAGE: u64 = 4096;

/// A kernel on the drive. [`new`](Self::new) has the assumptions; notes change one value at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench {
    pub(super) preset: &'static str,
    /// How far the drive reads on.
    pub(super) reading_on: Bytes,
    pub(super) location: Bytes,
    pub(super) think_ns: u64,
    pub(super) request: Bytes,
    pub(super) memory: Bytes,
    /// From where a stream begins to where the next one does.
    pub(super) apart: u64,
    /// Streams by turns, not at random.
    pub(super) is_by_turns: bool,
    /// All of the streams, not 100 MB of them.
    pub(super) is_whole: bool,
}

impl Bench {
    pub(super) fn new(preset: &'static str) -> Self {
        Self {
            preset,
            reading_on: Bytes(0),
            location: LOCATION,
            think_ns: THINK_NS,
            request: REQUEST,
            memory: PLENTY,
            apart: STREAM,
            is_by_turns: false,
            is_whole: false,
        }
    }

    /// The same with the drive's own readahead.
    pub(super) fn reading_on(self) -> Self {
        let reading_on = READING_ON;
        Self { reading_on, ..self }
    }

    pub(super) fn run(&self, workload: String) -> DriveRun {
        DriveRun {
            workload,
            preset: self.preset,
            reading_on: self.reading_on,
            location: self.location,
            memory: self.memory,
            window: WINDOW,
            request: self.request,
            until: None,
        }
    }

    /// Runs that differ by their random draws, added up.
    fn drawn(&self, lab: &mut Lab, seeds: u64, workload: impl Fn(u64) -> String) -> DriveReport {
        let runs = (1..=seeds).map(|seed| lab.drive(self.run(workload(seed))));
        runs.fold(DriveReport::default(), |all, run| all.and(&run))
    }

    /// C_n: a given number of streams of 100 MB in one file, interleaved read by read.
    pub(super) fn interleaved(&self, lab: &mut Lab, streams: u64) -> DriveReport {
        let reads = if self.is_whole { 0 } else { STREAM / PAGE };
        let is_drawn = streams > 1 && !self.is_by_turns;
        let seeds = if is_drawn { SEEDS } else { 1 };
        self.drawn(lab, seeds, |seed| {
            format!(
                "interleaved(file_bytes={},read_bytes={PAGE},think_ns={},streams={streams},\
                 opening_reads=1,random_order={},reads={reads},seed={seed})",
                streams * self.apart,
                self.think_ns,
                u64::from(is_drawn),
            )
        })
    }

    /// So many MB of random reads in between 100 MB of sequential ones.
    pub(super) fn intermixed(&self, lab: &mut Lab, random_mb: u64) -> DriveReport {
        self.drawn(lab, SEEDS, |seed| self.intermixed_with(random_mb, seed))
    }

    pub(super) fn intermixed_with(&self, random_mb: u64, seed: u64) -> String {
        format!(
            "intermixed(file_bytes={},read_bytes={PAGE},think_ns={},random_bytes={},seed={seed})",
            2 * STREAM,
            self.think_ns,
            random_mb * 1_000_000,
        )
    }

    /// Network clients, one more each second, up to a given number of seconds.
    pub(super) fn clients(&self, lab: &mut Lab, seconds: u64) -> DriveReport {
        let workload = format!("clients(file_bytes={STREAM},read_bytes={PAGE},clients={CLIENTS})");
        let until = Some(Nanos(seconds * 1_000_000_000));
        lab.drive(DriveRun {
            until,
            ..self.run(workload)
        })
    }
}

/// Clients when Figure 15 ends: its throughput "is going up to 15MB/s".
pub(super) const CLIENTS: u64 = 150;
