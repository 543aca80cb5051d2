//! W8 and W9: network clients, one more each second, until windows are lost before they are read.

use forerun_core::Bytes;

use super::super::Answer;
use super::super::drive::DriveReport;
use super::super::knobs;
use super::super::lab::Lab;
use super::super::numbers::{answer, rounded};
use super::scenes::{BOTH, Bench, CLIENTS, MEMORY};

/// Points of Figure 15 are this far apart, in seconds.
const STEP: u64 = 10;
/// From here on both disks are at their limit.
const FULL_LOAD: u64 = 120;
/// Other memories in MiB, for notes.
const MEMORIES: [u64; 3] = [64, 25, 12];

fn memories(lab: &Lab) -> &'static [u64] {
    if lab.has_notes() { &MEMORIES } else { &[] }
}

/// The kernel with 128 MB, on a drive as it is sold.
fn bench(preset: &'static str, memory: Bytes) -> Bench {
    Bench {
        memory,
        ..Bench::new(preset).reading_on()
    }
}

/// Counts of each ten seconds, and when they end.
pub(super) fn series(
    lab: &mut Lab,
    preset: &'static str,
    memory: Bytes,
) -> Vec<(u64, DriveReport)> {
    let mut before = DriveReport::default();
    let mut points = Vec::new();
    for seconds in (STEP..=CLIENTS).step_by(STEP as usize) {
        let run = bench(preset, memory).clients(lab, seconds);
        points.push((seconds, run.since(&before)));
        before = run;
    }
    points
}

fn peaks(lab: &mut Lab, memory: Bytes) -> [f64; 2] {
    BOTH.map(|preset| {
        let points = series(lab, preset, memory);
        points.iter().map(|(_, run)| run.rate()).fold(0.0, f64::max)
    })
}

/// When the first ten seconds end in which blocks were lost.
fn thrashes_at(points: &[(u64, DriveReport)]) -> String {
    let first = points.iter().find(|(_, run)| run.lost > 0);
    first.map_or_else(|| "never".to_owned(), |(at, _)| format!("by {at} s"))
}

pub(super) fn w8(lab: &mut Lab) -> Answer {
    let [legacy, on_demand] = peaks(lab, MEMORY);
    let others: Vec<String> = memories(lab)
        .iter()
        .map(|mib| {
            let [legacy, on_demand] = peaks(lab, Bytes(mib << 20));
            format!("with {mib} MiB {on_demand:.1} over {legacy:.1}")
        })
        .collect();
    let thrashes = BOTH.map(|preset| thrashes_at(&series(lab, preset, MEMORY)));
    let pages = lab.with.number(knobs::PAGES).unwrap_or(MEMORY.0);
    let mut note = format!(
        "{on_demand:.1} over {legacy:.1} MB/s in the best ten seconds of {CLIENTS}, with {} MiB of pages (the paper: 15 \
         over 5). Blocks are lost {} under legacy and {} under on-demand",
        rounded(pages as f64 / (1 << 20) as f64, 2),
        thrashes[0],
        thrashes[1],
    );
    if !others.is_empty() {
        note += &format!("; {}", others.join(", "));
    }
    answer(vec![rounded(on_demand / legacy.max(1e-9), 2)], note)
}

/// From when on the load is full to the end.
fn loaded(lab: &mut Lab, memory: Bytes) -> [DriveReport; 2] {
    BOTH.map(|preset| {
        let bench = bench(preset, memory);
        let before = bench.clients(lab, FULL_LOAD);
        bench.clients(lab, CLIENTS).since(&before)
    })
}

fn sizes(lab: &mut Lab, memory: Bytes) -> Vec<f64> {
    let runs = loaded(lab, memory);
    runs.map(|run| rounded(run.request_kb(), 1)).to_vec()
}

pub(super) fn w9(lab: &mut Lab) -> Answer {
    let measured = sizes(lab, MEMORY);
    let others: Vec<String> = memories(lab)
        .iter()
        .map(|mib| {
            let sizes = sizes(lab, Bytes(mib << 20));
            format!("with {mib} MiB {} and {}", sizes[0], sizes[1])
        })
        .collect();
    let shares = loaded(lab, MEMORY).map(|run| {
        let blocks = run.fetched.0 as f64 / 4096.0;
        run.lost as f64 / blocks.max(1.0) * 100.0
    });
    let mut note = format!("from {FULL_LOAD} s on. ");
    if !others.is_empty() {
        let others = others.join(", ");
        note += &format!("Sizes follow the memory there is for each client: {others}. ");
    }
    note += &format!(
        "Under legacy {:.0} % of the blocks fetched are lost and come back one by one (the paper: about half), under \
         on-demand {:.1} %",
        shares[0], shares[1],
    );
    answer(measured, note)
}
