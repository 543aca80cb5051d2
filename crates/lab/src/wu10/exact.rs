//! W1: the first windows of Table 2, which need no disk; and the sequences of Figure 11.

use forerun_core::Bytes;

use super::super::Answer;
use super::super::drive::{DriveRun, Fetched};
use super::super::lab::Lab;
use super::super::numbers::answer;
use super::scenes::{Bench, ON_DEMAND};

/// The first windows of a copy by reads of 4 KB, at most 128 KB: start, size, and how far before its end the
/// read came that asked for the next one.
fn windows(lab: &Lab) -> Option<Vec<[u32; 3]>> {
    let workload = "sequential(file_bytes=1048576,read_bytes=4096)".to_owned();
    let run = DriveRun {
        window: Bytes(128 << 10),
        ..Bench::new(ON_DEMAND).run(workload)
    };
    let fetches = run.fetches(&lab.with).ok()?;
    let window = |pair: &[Fetched]| {
        let (one, next) = (pair[0], pair[1]);
        [
            one.first,
            one.count,
            (one.first + one.count).saturating_sub(next.at),
        ]
    };
    Some(fetches.windows(2).take(3).map(window).collect())
}

pub(super) fn w1(lab: &Lab) -> Answer {
    let windows = windows(lab).unwrap_or_default();
    let numbers = windows.concat().into_iter().map(f64::from).collect();
    answer(
        numbers,
        "windows as they are asked for, by the engine that runs everything else here; the async size is how far \
         before the end of its window the read came that asked for the next one",
    )
}
