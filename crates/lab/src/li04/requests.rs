//! C3 to C8: the microbenchmarks.

use super::super::Answer;
use super::super::lab::Lab;
use super::super::numbers::{answer, best, by_level, judged, least, rounded};
use super::drive::optimum;
use super::scenes::{
    AP, AP_AS_LINUX, Benchmark, CP, Disk, FOUR, KERNELS, LEVELS, LINUX, MICROBENCHMARKS, ONE_RAND,
    ONE_WHOLE, TWO_RAND, Version, rates, ratios,
};

/// The estimate of C2 for a benchmark.
fn estimate(benchmark: Benchmark) -> f64 {
    let block = 64 << 10;
    match benchmark {
        ONE_WHOLE => optimum(64 * block, 64 * block),
        FOUR => optimum(block, block),
        _ => optimum(block, 64 * block),
    }
}

pub(super) fn c3(lab: &mut Lab, version: Version) -> Answer {
    let mut worst = Vec::new();
    let mut alone = 0.0;
    for benchmark in MICROBENCHMARKS {
        let optimum = estimate(benchmark);
        let parts = [Disk::Elevator, Disk::Anticipatory].map(|disk| {
            let mut parts = rates(lab, benchmark, CP, (disk, version)).map(|rate| rate / optimum);
            if benchmark == ONE_RAND {
                alone = parts[0];
                parts[0] = f64::MAX;
            }
            least(&parts)
        });
        worst.push(rounded(least(&parts), 2));
    }
    let holds = worst.iter().all(|part| *part >= 0.5);
    let note = format!(
        "CP over the estimate of C2, the least over all levels and both schedulers, by benchmark. One-Rand-10 alone, which \
         the paper leaves out because its thinking leaves the disk idle: {alone:.2}"
    );
    judged(holds, worst, note)
}

pub(super) fn c4(lab: &mut Lab, version: Version) -> Answer {
    let ratios = ratios(lab, ONE_WHOLE, (CP, LINUX), (Disk::Elevator, version));
    let note = format!("by requests at a time: {}", by_level(&ratios, &LEVELS));
    answer(vec![rounded(best(&ratios), 2)], note)
}

pub(super) fn c5(lab: &mut Lab, version: Version) -> Answer {
    let on = (Disk::Elevator, version);
    let [ratios, grown] = [AP, AP_AS_LINUX].map(|ap| ratios(lab, ONE_WHOLE, (ap, CP), on));
    let note = format!(
        "by requests at a time: {}; with AP's windows growing as Linux's do: {}",
        by_level(&ratios, &LEVELS),
        by_level(&grown, &LEVELS)
    );
    answer(vec![rounded(best(&ratios), 2)], note)
}

pub(super) fn c6(lab: &mut Lab, version: Version) -> Answer {
    let (mut measured, mut holds, mut levels) = (Vec::new(), true, Vec::new());
    for benchmark in [ONE_RAND, TWO_RAND] {
        let aggressive = ratios(lab, benchmark, (AP, CP), (Disk::Elevator, version));
        let competitive = ratios(lab, benchmark, (CP, LINUX), (Disk::Elevator, version));
        let from_4 = LEVELS
            .iter()
            .zip(&competitive)
            .filter(|(level, _)| **level >= 4);
        let from_4: Vec<f64> = from_4.map(|(_, ratio)| *ratio).collect();
        holds &= least(&aggressive) < 1.0 && least(&from_4) > 1.0;
        measured.extend([least(&aggressive), least(&from_4)].map(|n| rounded(n, 2)));
        levels.push(format!(
            "{}: AP over CP {}; CP over Linux {}",
            benchmark.name,
            by_level(&aggressive, &LEVELS),
            by_level(&competitive, &LEVELS)
        ));
    }
    let note = format!(
        "the least of AP over CP, and of CP over Linux from 4 requests on, of One-Rand-10, then of Two-Rand-0. {}",
        levels.join(". ")
    );
    judged(holds, measured, note)
}

pub(super) fn c7(lab: &mut Lab, version: Version) -> Answer {
    let all = KERNELS.map(|kernel| rates(lab, FOUR, kernel, (Disk::Elevator, version)));
    let spreads = (0..LEVELS.len()).map(|at| {
        let at_level = all.map(|rates| rates[at]);
        best(&at_level) / least(&at_level).max(1e-9)
    });
    let spread = best(&spreads.collect::<Vec<_>>());
    let note = "the fastest kernel over the slowest, at the level where that is most";
    judged(spread <= 1.05, vec![rounded(spread, 3)], note)
}

pub(super) fn c8(lab: &mut Lab, version: Version) -> Answer {
    let mut gain = |benchmark, on| best(&ratios(lab, benchmark, (CP, LINUX), on));
    let without = gain(ONE_WHOLE, (Disk::Elevator, version));
    let with = [ONE_WHOLE, ONE_RAND, TWO_RAND]
        .map(|benchmark| gain(benchmark, (Disk::Anticipatory, version)));
    let holds = with[0] < without && with[1] > 1.3 && with[2] > 1.3;
    let note = format!(
        "the best of CP over Linux with anticipation, of One-Whole-0 (without: {without:.2}), One-Rand-10 and Two-Rand-0"
    );
    judged(holds, with.map(|gain| rounded(gain, 2)).to_vec(), note)
}
