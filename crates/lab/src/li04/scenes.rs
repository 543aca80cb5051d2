//! The runs of the paper, by its own names.

use forerun_core::{Bytes, Nanos};

use super::super::lab::Lab;
use super::super::server::{Handlers, ServerReport, ServerRun};

/// Concurrency of Figures 3 to 8, which begin at 1 and end at 64.
pub(super) const LEVELS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
pub(super) const MOST: u64 = 64;

/// The server has 2 GB.
const MEMORY: Bytes = Bytes(2 << 30);

/// Some hundred requests of 4 MB: twice as long gives the same to 2 %.
const TIME: Nanos = Nanos(20_000_000_000);

/// A kernel of the paper: name, preset, depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kernel {
    pub(super) name: &'static str,
    preset: &'static str,
    depth: Option<&'static str>,
}

pub(super) const LINUX: Kernel = Kernel {
    name: "Linux",
    preset: "linux-2.6.22",
    depth: None,
};
pub(super) const AP: Kernel = Kernel {
    name: "AP",
    preset: "ap",
    depth: None,
};
pub(super) const CP: Kernel = Kernel {
    name: "CP",
    preset: "cp",
    depth: None,
};
pub(super) const KERNELS: [Kernel; 3] = [LINUX, AP, CP];

/// How the disk is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disk {
    /// A one-way elevator, no waiting.
    Elevator,
    /// The same, that waits for the process served last.
    Anticipatory,
}

/// A benchmark: its name in the paper, and the workload without its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Benchmark {
    pub(super) name: &'static str,
    pub(super) workload: &'static str,
}

pub(super) const ONE_WHOLE: Benchmark = Benchmark {
    name: "One-Whole-0",
    workload: "one-whole(requests=600",
};
pub(super) const ONE_RAND: Benchmark = Benchmark {
    name: "One-Rand-10",
    workload: "one-rand(requests=1200,pause_ns=10000000",
};
pub(super) const TWO_RAND: Benchmark = Benchmark {
    name: "Two-Rand-0",
    workload: "two-rand(requests=800",
};
pub(super) const FOUR: Benchmark = Benchmark {
    name: "Four-64KB-0",
    workload: "four-64kb(requests=2000",
};
pub(super) const SEARCH: Benchmark = Benchmark {
    name: "index searching",
    workload: "index-search(requests=4000",
};
pub(super) const CLIPS: Benchmark = Benchmark {
    name: "media clips",
    workload: "media-clips(requests=12000",
};
pub(super) const MICROBENCHMARKS: [Benchmark; 4] = [ONE_WHOLE, ONE_RAND, TWO_RAND, FOUR];

pub(super) fn run(
    lab: &mut Lab,
    benchmark: Benchmark,
    kernel: Kernel,
    disk: Disk,
    handlers: u64,
) -> ServerReport {
    lab.server(ServerRun {
        workload: benchmark.workload.to_owned(),
        handlers,
        preset: kernel.preset,
        depth: kernel.depth,
        memory: MEMORY,
        private: Handlers::Resident,
        scheduler: match disk {
            Disk::Elevator => "anticipatory(wait_ns=0,requests_max=128)",
            Disk::Anticipatory => "anticipatory(requests_max=128)",
        },
        time: TIME,
    })
}

/// Throughput at each level.
pub(super) fn rates(lab: &mut Lab, benchmark: Benchmark, kernel: Kernel, disk: Disk) -> [f64; 7] {
    LEVELS.map(|handlers| run(lab, benchmark, kernel, disk, handlers).rate())
}

/// One kernel over another at each level.
pub(super) fn ratios(
    lab: &mut Lab,
    benchmark: Benchmark,
    (one, other): (Kernel, Kernel),
    disk: Disk,
) -> [f64; 7] {
    let (one, other) = (
        rates(lab, benchmark, one, disk),
        rates(lab, benchmark, other, disk),
    );
    let mut ratios = [0.0; 7];
    for (at, ratio) in ratios.iter_mut().enumerate() {
        *ratio = one[at] / other[at].max(1e-9);
    }
    ratios
}
