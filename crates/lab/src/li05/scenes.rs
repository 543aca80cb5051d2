//! The runs of the paper, by its own names.

use forerun_core::{Bytes, Nanos};

use super::super::lab::Lab;
use super::super::server::{REQUEST, ServerReport, ServerRun};

/// Concurrency of the microbenchmarks' figures, which end at 500.
pub(super) const LEVELS: [u64; 7] = [1, 10, 100, 200, 300, 400, 500];
/// The same of the applications', which end at 1,000.
pub(super) const APPLICATION_LEVELS: [u64; 6] = [1, 10, 100, 200, 500, 1000];
/// From where on the paper speaks of high concurrency, for microbenchmarks and applications.
pub(super) const HIGH: u64 = 200;
pub(super) const HIGH_APPLICATION: u64 = 100;

pub(super) const MEMORY: Bytes = Bytes(512 << 20);
pub(super) const CLIPS_MEMORY: Bytes = Bytes(256 << 20);

/// A round of the paper, and half of one.
const TIME: Nanos = Nanos(120_000_000_000);
const TIME_SAMPLED: Nanos = Nanos(60_000_000_000);

/// A kernel of the paper: its name, and the preset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kernel {
    pub(super) name: &'static str,
    preset: &'static str,
}

pub(super) const ACCESS_HISTORY: Kernel = Kernel {
    name: "AccessHistory",
    preset: "access-history",
};
pub(super) const PC_ACCESS_HISTORY: Kernel = Kernel {
    name: "PC-AccessHistory",
    preset: "pc-access-history",
};
pub(super) const LONGEST: Kernel = Kernel {
    name: "PC-Longest",
    preset: "pc-longest",
};
pub(super) const COLDEST: Kernel = Kernel {
    name: "PC-Coldest",
    preset: "pc-coldest",
};
pub(super) const COLDEST_PLUS: Kernel = Kernel {
    name: "PC-Coldest+",
    preset: "pc-coldest+",
};
pub(super) const OPTIMUM: Kernel = Kernel {
    name: "optimum",
    preset: "pc-optimal",
};
pub(super) const KERNELS: [Kernel; 5] = [
    ACCESS_HISTORY,
    PC_ACCESS_HISTORY,
    LONGEST,
    COLDEST,
    COLDEST_PLUS,
];

/// A benchmark: its name in the paper, and the workload without its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Benchmark {
    pub(super) name: &'static str,
    workload: &'static str,
}

pub(super) const ONE_WHOLE: Benchmark = Benchmark {
    name: "One-Whole",
    workload: "one-whole(requests=1600",
};
pub(super) const ONE_RAND: Benchmark = Benchmark {
    name: "One-Rand",
    workload: "one-rand(requests=3000",
};
pub(super) const TWO_RAND: Benchmark = Benchmark {
    name: "Two-Rand",
    workload: "two-rand(requests=2000",
};
pub(super) const FOUR: Benchmark = Benchmark {
    name: "Four-64KB",
    workload: "four-64kb(requests=6000",
};
pub(super) const SEARCH: Benchmark = Benchmark {
    name: "index search",
    workload: "index-search(requests=4000,octaves=3",
};
pub(super) const CLIPS: Benchmark = Benchmark {
    name: "media clips",
    workload: "media-clips(requests=50000,is_partial=1",
};

/// A run under other conditions than the default ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Conditions {
    pub(super) memory: Bytes,
    pub(super) depth: Option<&'static str>,
}

pub(super) const DEFAULT: Conditions = Conditions {
    memory: MEMORY,
    depth: None,
};

pub(super) fn run(
    lab: &mut Lab,
    benchmark: Benchmark,
    kernel: Kernel,
    handlers: u64,
    conditions: Conditions,
) -> ServerReport {
    let announces = u8::from(kernel == OPTIMUM);
    lab.server(ServerRun {
        workload: format!("{},announces={announces}", benchmark.workload),
        handlers,
        preset: kernel.preset,
        // The kernel of the paper, with its readahead under congestion corrected.
        detect: "linux-2.6.10(corrected=1)",
        request: REQUEST,
        depth: conditions.depth,
        memory: conditions.memory,
        scheduler: "anticipatory(requests_max=128,congested_from=112)",
        time: if lab.is_sample { TIME_SAMPLED } else { TIME },
    })
}

/// One kernel over another at these levels.
pub(super) fn ratios(
    lab: &mut Lab,
    benchmark: Benchmark,
    (one, other): (Kernel, Kernel),
    levels: &[u64],
    conditions: Conditions,
) -> Vec<f64> {
    let ratio = |level: &u64| {
        let mut rate = |kernel| run(lab, benchmark, kernel, *level, conditions).rate();
        let (one, other) = (rate(one), rate(other));
        one / other.max(1e-9)
    };
    levels.iter().map(ratio).collect()
}

/// The levels for an experiment, which is about the places where a claim's numbers are made; all of them otherwise.
pub(super) fn made_at(lab: &Lab, levels: &[u64]) -> Vec<u64> {
    match lab.with.is_experiment() {
        true => levels.to_vec(),
        false => LEVELS.to_vec(),
    }
}

/// The levels from this one on.
pub(super) fn from(levels: &[u64], first: u64) -> Vec<u64> {
    levels
        .iter()
        .copied()
        .filter(|level| *level >= first)
        .collect()
}
