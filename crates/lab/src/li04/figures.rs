//! Figures 2 to 8, as tables and charts. The paper's own are pictures, so only numbers from its
//! text stand beside them.

use forerun_core::Bytes;

use super::super::lab::Lab;
use super::super::plot::{Line, plotted};
use super::super::{Exhibit, Shown};
use super::scenes::{
    Benchmark, CLIPS, Disk, FOUR, KERNELS, LEVELS, ONE_RAND, ONE_WHOLE, SEARCH, TWO_RAND, Version,
    run,
};
use forerun_sim::device;

pub(super) const ALL: &[Exhibit] = &[
    Exhibit {
        id: "figure-2",
        title: "Figure 2: the drive",
        note: "Sequential rate over the place, and seek with half a revolution over the distance, of the modelled IBM drive.",
        draw: drive,
    },
    Exhibit {
        id: "figure-3",
        title: "Figure 3: microbenchmarks without anticipatory scheduling",
        note: "MB/s over requests at a time. The paper: CP up to twice Linux, AP at most 14 % above CP where files are read whole, and \
               below it in (B) and (C).",
        draw: without,
    },
    Exhibit {
        id: "figure-4",
        title: "Figure 4: microbenchmarks with anticipatory scheduling",
        note: "The paper: anticipation lifts Linux where files are read whole, and does little for the others.",
        draw: with,
    },
    Exhibit {
        id: "figure-5",
        title: "Figure 5: random blocks",
        note: "The paper: all kernels alike.",
        draw: random,
    },
    Exhibit {
        id: "figure-6",
        title: "Figures 6 and 7: index search",
        note: "Throughput and mean response time, with anticipation. The paper: CP up to 47 %, AP up to 29 % above Linux; response 28 % \
               shorter.",
        draw: search,
    },
    Exhibit {
        id: "figure-8",
        title: "Figure 8: media clips",
        note: "With anticipation. The paper: CP 6 % above Linux at 2, 15 % at 64.",
        draw: clips,
    },
];

fn drive(_: &mut Lab, shown: &mut Shown) {
    let Ok(model) = device::from_toml(include_str!("../../../sim/models/ibm_36gb_10k.toml")) else {
        return;
    };
    let disk = model.build();
    let (profile, capacity) = (disk.profile(), disk.capacity().unwrap_or(Bytes(1)).0);
    let tenths = || (0..=10).map(|tenth| (tenth, Bytes(capacity / 10 * tenth)));
    let rate = tenths().map(|(tenth, at)| (10 * tenth, profile.rate(at) as f64 / 1e6));
    let seek = tenths().map(|(tenth, at)| (10 * tenth, profile.switching(at).0 as f64 / 1e6));
    let lines = vec![("rate".to_owned(), rate.collect())];
    plotted(shown, "rate", "place, % of the disk", "MB/s", lines);
    let lines = vec![("switch".to_owned(), seek.collect())];
    plotted(shown, "switch", "distance, % of the disk", "ms", lines);
}

fn rates(lab: &mut Lab, benchmark: Benchmark, disk: Disk) -> Vec<Line> {
    let line = |kernel: super::scenes::Kernel| {
        let on = (disk, Version::Quarter);
        let point = |level| (level, run(lab, benchmark, kernel, on, level).rate());
        (kernel.name.to_owned(), LEVELS.map(point).to_vec())
    };
    KERNELS.map(line).to_vec()
}

fn panels(lab: &mut Lab, shown: &mut Shown, benchmarks: &[Benchmark], disk: Disk) {
    for benchmark in benchmarks {
        let lines = rates(lab, *benchmark, disk);
        plotted(shown, benchmark.name, "requests at a time", "MB/s", lines);
    }
}

fn without(lab: &mut Lab, shown: &mut Shown) {
    panels(lab, shown, &[ONE_WHOLE, ONE_RAND, TWO_RAND], Disk::Elevator);
}

fn with(lab: &mut Lab, shown: &mut Shown) {
    panels(
        lab,
        shown,
        &[ONE_WHOLE, ONE_RAND, TWO_RAND],
        Disk::Anticipatory,
    );
}

fn random(lab: &mut Lab, shown: &mut Shown) {
    panels(lab, shown, &[FOUR], Disk::Elevator);
}

fn search(lab: &mut Lab, shown: &mut Shown) {
    panels(lab, shown, &[SEARCH], Disk::Anticipatory);
    let line = |kernel: super::scenes::Kernel| {
        let point = |level| {
            let on = (Disk::Anticipatory, Version::Quarter);
            let report = run(lab, SEARCH, kernel, on, level);
            (level, report.response_ms())
        };
        (kernel.name.to_owned(), LEVELS.map(point).to_vec())
    };
    let lines = KERNELS.map(line).to_vec();
    plotted(shown, "response", "requests at a time", "ms", lines);
}

fn clips(lab: &mut Lab, shown: &mut Shown) {
    panels(lab, shown, &[CLIPS], Disk::Anticipatory);
}
