//! P3 to P6, P8 and P10: the microbenchmarks.

use forerun_core::Bytes;

use super::super::Answer;
use super::super::lab::Lab;
use super::super::numbers::{answer, best, by_level, judged, least, rounded};
use super::scenes::{
    ACCESS_HISTORY, Benchmark, COLDEST, COLDEST_PLUS, Conditions, DEFAULT, FOUR, HIGH, KERNELS,
    LEVELS, LONGEST, ONE_RAND, ONE_WHOLE, OPTIMUM, PC_ACCESS_HISTORY, TWO_RAND, from, made_at,
    ratios, run,
};

const OVER: (super::scenes::Kernel, super::scenes::Kernel) = (COLDEST_PLUS, ACCESS_HISTORY);

/// Two runs whose events come in another order differ by so much.
const ALIKE: f64 = 0.99;

pub(super) fn p3(lab: &mut Lab) -> Answer {
    let high = from(&LEVELS, HIGH);
    let all = ratios(lab, ONE_RAND, OVER, &high, DEFAULT);
    let note = by_level(&all, &high);
    answer(all.iter().map(|n| rounded(*n, 2)).collect(), note)
}

pub(super) fn p4(lab: &mut Lab) -> Answer {
    const NAMED: [u64; 2] = [400, 500];
    let all = ratios(lab, TWO_RAND, OVER, &NAMED, DEFAULT);
    let others = match lab.has_notes() {
        true => from(&LEVELS, 0),
        false => Vec::new(),
    };
    let note = by_level(&ratios(lab, TWO_RAND, OVER, &others, DEFAULT), &others);
    answer(all.iter().map(|n| rounded(*n, 2)).collect(), note)
}

pub(super) fn p5(lab: &mut Lab) -> Answer {
    let high = from(&LEVELS, HIGH);
    let pairs = [
        (COLDEST_PLUS, COLDEST),
        (COLDEST_PLUS, LONGEST),
        (PC_ACCESS_HISTORY, ACCESS_HISTORY),
    ];
    let all = pairs.map(|pair| ratios(lab, TWO_RAND, pair, &high, DEFAULT));
    let measured: Vec<f64> = all.iter().map(|ratios| rounded(least(ratios), 2)).collect();
    let holds = measured.iter().all(|ratio| *ratio >= ALIKE);
    let note = format!(
        "the least of each pair. Coldest+ over Coldest: {}; Coldest+ over Longest: {}; PC-AccessHistory over AccessHistory: {}. Up to \
         1 % less counts as alike",
        by_level(&all[0], &high),
        by_level(&all[1], &high),
        by_level(&all[2], &high)
    );
    judged(holds, measured, note)
}

pub(super) fn p6(lab: &mut Lab) -> Answer {
    let levels = made_at(lab, &[300, 400, 500]);
    let mut spread = |benchmark: Benchmark| {
        let at_level = levels.iter().map(|level| {
            let rate = |kernel| run(lab, benchmark, kernel, *level, DEFAULT).rate();
            let rates = KERNELS.map(rate);
            best(&rates) / least(&rates).max(1e-9)
        });
        let at_level: Vec<f64> = at_level.collect();
        (rounded(best(&at_level), 2), by_level(&at_level, &levels))
    };
    let (whole, four) = (spread(ONE_WHOLE), spread(FOUR));
    let note = format!(
        "the fastest of the five over the slowest, at the level where that is most. One-Whole: {}; Four-64KB: {}",
        whole.1, four.1
    );
    judged(
        whole.0 <= 1.05 && four.0 <= 1.05,
        vec![whole.0, four.0],
        note,
    )
}

pub(super) fn p8(lab: &mut Lab) -> Answer {
    let high = from(&LEVELS, HIGH);
    let mut below = Vec::new();
    for benchmark in [ONE_RAND, TWO_RAND] {
        let all = ratios(lab, benchmark, (COLDEST_PLUS, OPTIMUM), &high, DEFAULT);
        // Adding 0 makes the zero below 0 one above.
        below.extend(
            all.iter()
                .map(|ratio| rounded(100.0 * (1.0 - ratio), 0) + 0.0),
        );
    }
    let levels: Vec<String> = high.iter().map(u64::to_string).collect();
    let note = format!(
        "per cent, each with {} requests at a time: One-Rand, then Two-Rand. Below zero: Coldest+ is the faster one",
        levels.join(", ")
    );
    answer(below, note)
}

/// The mean gain at high concurrency.
fn gain(lab: &mut Lab, conditions: Conditions) -> f64 {
    let all = ratios(lab, TWO_RAND, OVER, &from(&LEVELS, HIGH), conditions);
    all.iter().sum::<f64>() / all.len() as f64
}

pub(super) fn p10(lab: &mut Lab) -> Answer {
    let depths = [
        Some("fixed(depth_bytes=131072)"),
        Some("fixed(depth_bytes=262144)"),
        None,
    ];
    let depths = depths.map(|depth| rounded(gain(lab, Conditions { depth, ..DEFAULT }), 2));
    let memories = [512 << 20, 1 << 30, 2 << 30].map(|memory| {
        let memory = Bytes(memory);
        rounded(gain(lab, Conditions { memory, ..DEFAULT }), 2)
    });
    let holds = depths.is_sorted() && memories.is_sorted_by(|a, b| a >= b);
    let note = "Coldest+ over AccessHistory, the mean from 200 requests at a time on: with windows of 128, 256 and 512 KB, then with 512 MB, \
                1 and 2 GB";
    judged(holds, [depths, memories].concat(), note)
}
