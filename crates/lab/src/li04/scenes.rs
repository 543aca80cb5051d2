//! The runs of the paper, by its own names.

use forerun_core::{Bytes, Nanos};

use super::super::lab::Lab;
use super::super::server::{REQUEST, ServerReport, ServerRun};

/// Concurrency of Figures 3 to 8, which begin at 1 and end at 64.
pub(super) const LEVELS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
pub(super) const MOST: u64 = 64;

/// The server has 2 GB.
const MEMORY: Bytes = Bytes(2 << 30);

/// Some hundred requests of 4 MB: twice as long gives the same to 2 %.
const TIME: Nanos = Nanos(20_000_000_000);

/// A kernel of the paper: its name, the preset that has its depth, and whether it has the slow start of
/// section 2 in the place of Linux's growth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kernel {
    pub(super) name: &'static str,
    preset: &'static str,
    has_slow_start: bool,
}

pub(super) const LINUX: Kernel = Kernel {
    name: "Linux",
    preset: "linux-2.6.3",
    has_slow_start: false,
};
pub(super) const AP: Kernel = Kernel {
    name: "AP",
    preset: "ap",
    has_slow_start: true,
};
/// The paper says that all kernels have a slow start, and not how AP's windows grow.
pub(super) const AP_AS_LINUX: Kernel = Kernel {
    name: "AP that grows as Linux",
    has_slow_start: false,
    ..AP
};
pub(super) const CP: Kernel = Kernel {
    name: "CP",
    preset: "cp",
    has_slow_start: true,
};
pub(super) const KERNELS: [Kernel; 3] = [LINUX, AP, CP];

/// Linux 2.6.3 as far as it is known: see [`linux_2_6_3`](forerun_baselines::detect::linux_2_6_3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    /// A page elsewhere takes a quarter off the next window.
    Quarter,
    /// It takes two pages.
    TwoPages,
    /// A quarter, and a congested queue takes windows: the first of the corrections of Shen et al. 2005.
    Corrected,
    /// A quarter, and windows of more than 512 KiB are two requests.
    Parts,
}

impl Kernel {
    fn detect(self, version: Version) -> &'static str {
        match (self.has_slow_start, version) {
            (false, Version::Quarter | Version::Parts) => "linux-2.6.3",
            (false, Version::TwoPages) => "linux-2.6.3(miss_step=1)",
            (false, Version::Corrected) => "linux-2.6.3(corrected=1)",
            // A slow start begins anew at a page elsewhere.
            (true, Version::Corrected) => "linux-2.6.3(slow_start=1,corrected=1)",
            (true, _) => "linux-2.6.3(slow_start=1)",
        }
    }
}

/// How the disk is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disk {
    /// A one-way elevator, no waiting.
    Elevator,
    /// The same, that waits for the process served last.
    Anticipatory,
}

/// A scheduler and a version.
pub(super) type Machine = (Disk, Version);

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
    (disk, version): Machine,
    handlers: u64,
) -> ServerReport {
    lab.server(ServerRun {
        workload: benchmark.workload.to_owned(),
        handlers,
        preset: kernel.preset,
        detect: kernel.detect(version),
        request: match version {
            Version::Parts => Bytes(512 << 10),
            _ => REQUEST,
        },
        depth: None,
        memory: MEMORY,
        scheduler: match disk {
            Disk::Elevator => "anticipatory(wait_ns=0,requests_max=128,congested_from=112)",
            Disk::Anticipatory => "anticipatory(requests_max=128,congested_from=112)",
        },
        time: TIME,
    })
}

/// Throughput at each level.
pub(super) fn rates(lab: &mut Lab, benchmark: Benchmark, kernel: Kernel, on: Machine) -> [f64; 7] {
    LEVELS.map(|handlers| run(lab, benchmark, kernel, on, handlers).rate())
}

/// One kernel over another at each level.
pub(super) fn ratios(
    lab: &mut Lab,
    benchmark: Benchmark,
    (one, other): (Kernel, Kernel),
    on: Machine,
) -> [f64; 7] {
    let (one, other) = (
        rates(lab, benchmark, one, on),
        rates(lab, benchmark, other, on),
    );
    let mut ratios = [0.0; 7];
    for (at, ratio) in ratios.iter_mut().enumerate() {
        *ratio = one[at] / other[at].max(1e-9);
    }
    ratios
}
