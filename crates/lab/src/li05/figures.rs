//! Figures 2 and 5 to 12 as far as they are plots, as tables and charts. The paper's own are
//! pictures, so only numbers from its text stand beside them.

use forerun_core::Bytes;

use super::super::lab::Lab;
use super::super::plot::{Line, plotted};
use super::super::server::ServerReport;
use super::super::{Exhibit, Shown};
use super::scenes::{
    ACCESS_HISTORY, APPLICATION_LEVELS, Benchmark, CLIPS, CLIPS_MEMORY, COLDEST_PLUS, Conditions,
    DEFAULT, FOUR, KERNELS, Kernel, LEVELS, ONE_RAND, ONE_WHOLE, OPTIMUM, SEARCH, TWO_RAND, run,
};

pub(super) const ALL: &[Exhibit] = &[
    Exhibit {
        id: "figure-2",
        title: "Figures 2, 7 and 8: index search",
        note: "Throughput and thrashed pages a request, 512 MB. The paper: AccessHistory falls to a quarter of its peak at 1,000; from 100 on \
               Coldest+ is 11 to 64 % above it.",
        draw: search,
    },
    Exhibit {
        id: "figure-5",
        title: "Figure 5: microbenchmarks",
        note: "512 MB, windows of 512 KB. The paper: alike in (A) and (D); Coldest+ up to twice AccessHistory in (B) and (C).",
        draw: microbenchmarks,
    },
    Exhibit {
        id: "figure-6",
        title: "Figure 6: against an approximated optimum",
        note: "The paper: Coldest+ 10 to 32 % below it at high concurrency.",
        draw: optimum,
    },
    Exhibit {
        id: "figure-9",
        title: "Figure 9: media clips",
        note: "256 MB. The paper: all four with a prefetch cache above AccessHistory everywhere.",
        draw: clips,
    },
    Exhibit {
        id: "figure-10",
        title: "Figure 10: depth",
        note: "Two-Rand with windows of 128, 256 and 512 KB.",
        draw: depths,
    },
    Exhibit {
        id: "figure-11",
        title: "Figure 11: memory",
        note: "Two-Rand with 512 MB, 1 and 2 GB.",
        draw: memories,
    },
];

const AT_A_TIME: &str = "requests at a time";
const MB_S: &str = "MB/s";

fn line(
    lab: &mut Lab,
    (benchmark, levels): (Benchmark, &[u64]),
    (kernel, name): (Kernel, String),
    conditions: Conditions,
    value: fn(&ServerReport) -> f64,
) -> Line {
    let point = |level: &u64| {
        (
            *level,
            value(&run(lab, benchmark, kernel, *level, conditions)),
        )
    };
    (name, levels.iter().map(point).collect())
}

fn rate(report: &ServerReport) -> f64 {
    report.rate()
}

fn all(
    lab: &mut Lab,
    benchmark: (Benchmark, &[u64]),
    conditions: Conditions,
    value: fn(&ServerReport) -> f64,
) -> Vec<Line> {
    let one = |kernel: Kernel| {
        line(
            lab,
            benchmark,
            (kernel, kernel.name.to_owned()),
            conditions,
            value,
        )
    };
    KERNELS.map(one).to_vec()
}

fn search(lab: &mut Lab, shown: &mut Shown) {
    let benchmark = (SEARCH, &APPLICATION_LEVELS[..]);
    let lines = all(lab, benchmark, DEFAULT, rate);
    plotted(shown, "throughput", AT_A_TIME, MB_S, lines);
    let lines = all(lab, benchmark, DEFAULT, ServerReport::thrashed_per_request);
    plotted(shown, "thrashing", AT_A_TIME, "pages a request", lines);
}

fn microbenchmarks(lab: &mut Lab, shown: &mut Shown) {
    for benchmark in [ONE_WHOLE, ONE_RAND, TWO_RAND, FOUR] {
        let lines = all(lab, (benchmark, &LEVELS), DEFAULT, rate);
        plotted(shown, benchmark.name, AT_A_TIME, MB_S, lines);
    }
}

fn optimum(lab: &mut Lab, shown: &mut Shown) {
    for benchmark in [ONE_RAND, TWO_RAND] {
        let kernels = [ACCESS_HISTORY, COLDEST_PLUS, OPTIMUM];
        let lines = kernels.map(|kernel| {
            let named = (kernel, kernel.name.to_owned());
            line(lab, (benchmark, &LEVELS), named, DEFAULT, rate)
        });
        plotted(shown, benchmark.name, AT_A_TIME, MB_S, lines.to_vec());
    }
}

fn clips(lab: &mut Lab, shown: &mut Shown) {
    let conditions = Conditions {
        memory: CLIPS_MEMORY,
        ..DEFAULT
    };
    let lines = all(lab, (CLIPS, &APPLICATION_LEVELS), conditions, rate);
    plotted(shown, "throughput", AT_A_TIME, MB_S, lines);
}

fn pairs(lab: &mut Lab, shown: &mut Shown, title: &str, all: [(&str, Conditions); 3]) {
    let mut lines = Vec::new();
    for (name, conditions) in all {
        for kernel in [COLDEST_PLUS, ACCESS_HISTORY] {
            let named = (kernel, format!("{}, {name}", kernel.name));
            lines.push(line(lab, (TWO_RAND, &LEVELS), named, conditions, rate));
        }
    }
    plotted(shown, title, AT_A_TIME, MB_S, lines);
}

fn depths(lab: &mut Lab, shown: &mut Shown) {
    let with = |depth| Conditions { depth, ..DEFAULT };
    let all = [
        ("128 KB", with(Some("fixed(depth_bytes=131072)"))),
        ("256 KB", with(Some("fixed(depth_bytes=262144)"))),
        ("512 KB", DEFAULT),
    ];
    pairs(lab, shown, "throughput", all);
}

fn memories(lab: &mut Lab, shown: &mut Shown) {
    let with = |memory| Conditions {
        memory: Bytes(memory),
        ..DEFAULT
    };
    let all = [
        ("512 MB", DEFAULT),
        ("1 GB", with(1 << 30)),
        ("2 GB", with(2 << 30)),
    ];
    pairs(lab, shown, "throughput", all);
}
