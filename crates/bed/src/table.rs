//! `table`: the whole comparison on a bed, by one command.
//!
//! Called by `main`. Makes the bed, runs every candidate for every number of readers, alternately,
//! so that a slow minute of the machine falls on all of them, and undoes the bed, also after a
//! failure:
//!
//! ```text
//! for each run: for each number of readers: for each candidate:
//!     unmount and mount the file system, set it     (cold)
//!     in a new memory group: [start forerun mount or watch on it], read
//! ```
//!
//! A candidate is the kernel with one scheduler and readahead, that with `forerun watch` beside it, or `forerun mount`
//! with one preset. All
//! read with the same program, in the same memory, at the same real-time priority. The table shows
//! the median over the runs; ratios are of medians: to the first kernel setting listed, and to the
//! kernel's best.
//!
//! It judges nothing; the limits stand where they are asked for.

mod print;
pub(crate) mod rival;
pub(crate) mod side;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::bed::Bed;
use crate::bench::Bench;
use crate::clock::Priority;
use crate::failure::{At, Failure};
use crate::plan::BedPaths;
use crate::state::State;
use crate::{clock, down, memory_group, up};
use side::{How, Measured, Side};

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Numbers of readers.
    pub readers: Vec<usize>,
    /// The kernel's readahead.
    pub read_ahead_kib: Vec<u64>,
    /// The kernel's schedulers.
    pub schedulers: Vec<String>,
    /// The forerun binary, if there is one.
    pub forerun: Option<PathBuf>,
    /// Its presets.
    pub presets: Vec<String>,
    /// Whether each is a candidate without the profile of the disks, too.
    pub without_profile: bool,
    /// Ways of `forerun watch`, each a candidate.
    pub watch: Vec<How>,
    /// Memory of either candidate.
    pub memory_bytes: u64,
    /// Size of one read.
    pub read_bytes: usize,
    /// Time of one run.
    pub time: Duration,
    /// Runs of each.
    pub runs: u16,
}

/// One candidate at one number of readers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Number of readers.
    pub readers: usize,
    /// `kernel none 128` or `forerun forerun`.
    pub side: String,
    /// The median of the runs.
    pub mb_per_second: f64,
    /// Each run, in order.
    pub runs_mb_per_second: Vec<f64>,
    /// The slowest reader over the mean reader, median of the runs.
    pub slowest_per_mean: f64,
    /// To the first kernel setting.
    pub to_default: f64,
    /// To the kernel's best at this number of readers.
    pub to_best: f64,
    /// Share of the disks' requests that did not continue the one before, median of the runs.
    pub switches_per_request: f64,
    /// Mean size of the disks' requests, median of the runs.
    pub request_bytes: f64,
    /// How late the disks were on average, median of the runs: the error of the measurement.
    pub late_ns: f64,
    /// Resident memory of `forerun` at its highest; none for the kernel.
    pub resident_max_bytes: Option<u64>,
    /// Share of a processor that `forerun` took, median of the runs; none for the kernel.
    pub processor: Option<f64>,
}

/// The comparison, done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// The measured bed.
    pub bed: Bed,
    /// Memory of either candidate.
    pub memory_bytes: u64,
    /// Whether a memory group held both candidates to it.
    pub is_memory_limited: bool,
    /// Size of one read.
    pub read_bytes: usize,
    /// Time of one run.
    pub run_seconds: f64,
    /// By readers, then by candidate.
    pub rows: Vec<Row>,
}

/// Makes the bed, measures, undoes the bed. Names each step on `progress`.
///
/// # Errors
/// The bed's, a candidate's; nothing is shown then, and the bed is undone.
pub fn run(
    bed: &Bed,
    folder: &Path,
    comparison: &Comparison,
    progress: &mut dyn Write,
) -> Result<Table, Failure> {
    check_rival(comparison.forerun.as_deref())?;
    let mut state = up::run(bed, folder, progress)?;
    // The reading programs and the mount inherit it. Without it, ten readers at 128 KiB varied from
    // 16.7 to 21 MB/s with fourteen compilers beside them; with it, three runs gave 23.0.
    let is_punctual = clock::be_punctual(Priority::Measured);
    if !is_punctual {
        writeln!(
            progress,
            "no real-time priority: other programs disturb the runs"
        )
        .at(folder)?;
    }
    let measured = measure(bed, &mut state, comparison, progress);
    let undone = down::undo(state);
    let table = measured?;
    undone.map(|()| table)
}

/// Making a bed takes half a minute; a slip in a path need not.
pub(crate) fn check_rival(program: Option<&Path>) -> Result<(), Failure> {
    match program {
        Some(path) if !path.is_file() => {
            let text = format!("--forerun {}: no such program", path.display());
            Err(Failure::Usage(text))
        }
        _ => Ok(()),
    }
}

fn measure(
    bed: &Bed,
    state: &mut State,
    comparison: &Comparison,
    progress: &mut dyn Write,
) -> Result<Table, Failure> {
    let sides = sides(comparison);
    let place = BedPaths::of(state.folder(), &bed.disks)?;
    let controller = memory_group::controller();
    let mut measured = vec![Vec::new(); comparison.readers.len() * sides.len()];
    for run in 1..=comparison.runs {
        let cells = comparison
            .readers
            .iter()
            .flat_map(|n| sides.iter().map(move |s| (*n, s)));
        for ((readers, side), results) in cells.zip(&mut measured) {
            let mut bench = Bench {
                bed,
                place: &place,
                state,
                comparison,
                controller: controller.as_ref(),
            };
            let one = bench.run(side, readers)?;
            let rate = one.mb_per_second;
            writeln!(
                progress,
                "run {run}: {readers} readers, {side}: {rate:.1} MB/s"
            )
            .at(&place.files)?;
            results.push(one);
        }
    }
    let by_readers = comparison.readers.iter().zip(measured.chunks(sides.len()));
    Ok(Table {
        bed: bed.clone(),
        memory_bytes: comparison.memory_bytes,
        is_memory_limited: controller.is_some(),
        read_bytes: comparison.read_bytes,
        run_seconds: comparison.time.as_secs_f64(),
        rows: by_readers
            .flat_map(|(n, results)| rows(*n, &sides, results))
            .collect(),
    })
}

/// The kernel at each setting, then beside a watch, then mounts with each preset.
fn sides(comparison: &Comparison) -> Vec<Side> {
    let kernel = comparison.schedulers.iter().flat_map(|scheduler| {
        let kernel = |kib: &u64| Side::Kernel {
            scheduler: scheduler.clone(),
            read_ahead_kib: *kib,
        };
        comparison.read_ahead_kib.iter().map(kernel)
    });
    let presets = comparison.forerun.iter().flat_map(|_| &comparison.presets);
    let told = [true, false]
        .into_iter()
        .take(1 + usize::from(comparison.without_profile));
    let forerun = presets.flat_map(|preset| {
        told.clone().map(|is_told| Side::Forerun {
            preset: preset.clone(),
            is_told,
        })
    });
    let watch = comparison.watch.iter().map(|how| Side::Watch(*how));
    kernel.chain(watch).chain(forerun).collect()
}

/// The rows of one number of readers; `results` are the runs of each candidate.
fn rows(readers: usize, sides: &[Side], results: &[Vec<Measured>]) -> Vec<Row> {
    let rate = |runs: &[Measured]| median(runs.iter().map(|r| r.mb_per_second));
    let kernel = sides
        .iter()
        .zip(results)
        .filter(|(side, _)| matches!(side, Side::Kernel { .. }));
    let kernel: Vec<f64> = kernel.map(|(_, runs)| rate(runs)).collect();
    let default = kernel.first().copied().unwrap_or(0.0);
    let best = kernel.iter().copied().fold(0.0, f64::max);
    let row = |(side, runs): (&Side, &Vec<Measured>)| Row {
        readers,
        side: side.to_string(),
        mb_per_second: rate(runs),
        runs_mb_per_second: runs.iter().map(|r| r.mb_per_second).collect(),
        slowest_per_mean: median(runs.iter().map(|r| r.slowest_per_mean)),
        to_default: rate(runs) / default,
        to_best: rate(runs) / best,
        switches_per_request: median(runs.iter().map(|r| r.switches_per_request)),
        request_bytes: median(runs.iter().map(|r| r.request_bytes)),
        late_ns: median(runs.iter().map(|r| r.late_ns)),
        resident_max_bytes: runs.iter().filter_map(|r| r.resident_max_bytes).max(),
        processor: runs
            .iter()
            .any(|r| r.processor.is_some())
            .then(|| median(runs.iter().filter_map(|r| r.processor))),
    };
    sides.iter().zip(results).map(row).collect()
}

/// The middle one; of an even number, the mean of the two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (
        values.get(values.len().saturating_sub(1) / 2),
        values.get(values.len() / 2),
    ) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison() -> Comparison {
        Comparison {
            readers: vec![10],
            read_ahead_kib: vec![128, 1024],
            schedulers: vec!["none".into(), "bfq".into()],
            forerun: Some("forerun".into()),
            presets: vec!["forerun".into()],
            without_profile: false,
            watch: Vec::new(),
            memory_bytes: 1,
            read_bytes: 1,
            time: Duration::from_secs(1),
            runs: 3,
        }
    }

    #[test]
    fn every_setting_is_a_side_and_forerun_only_if_given() {
        let mut comparison = comparison();
        let names: Vec<String> = sides(&comparison).iter().map(Side::to_string).collect();
        let kernel = [
            "kernel none 128",
            "kernel none 1024",
            "kernel bfq 128",
            "kernel bfq 1024",
        ];
        assert_eq!(names[..4], kernel);
        assert_eq!(names[4..], ["forerun forerun"]);
        comparison.without_profile = true;
        let names: Vec<String> = sides(&comparison).iter().map(Side::to_string).collect();
        assert_eq!(names[4..], ["forerun forerun", "forerun forerun, not told"]);
        comparison.without_profile = false;
        comparison.watch = vec![How::Readahead, How::Auto];
        let names: Vec<String> = sides(&comparison).iter().map(Side::to_string).collect();
        assert_eq!(
            names[4..],
            ["watch readahead", "watch auto", "forerun forerun"]
        );
        comparison.watch = Vec::new();
        comparison.forerun = None;
        assert_eq!(sides(&comparison).len(), 4);
    }

    #[test]
    fn a_rival_that_is_not_there_is_refused_before_anything_is_made() {
        assert!(check_rival(None).is_ok());
        let said = check_rival(Some(Path::new("/nowhere/forerun"))).unwrap_err();
        assert!(said.to_string().contains("--forerun /nowhere/forerun"));
    }

    #[test]
    fn ratios_are_of_medians_to_the_first_and_to_the_best() {
        let sides = sides(&comparison());
        let runs = |rates: [f64; 3]| rates.map(Measured::of_rate).to_vec();
        let results = [
            runs([20.0, 90.0, 21.0]),
            runs([42.0, 42.0, 1.0]),
            runs([1.0, 1.0, 1.0]),
            runs([2.0, 2.0, 2.0]),
            runs([63.0, 63.0, 63.0]),
        ];
        let rows = rows(10, &sides, &results);
        assert_eq!((rows[0].mb_per_second, rows[0].to_default), (21.0, 1.0));
        assert_eq!((rows[4].to_default, rows[4].to_best), (3.0, 1.5));
        assert_eq!(median([1.0, 4.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
