//! `servers`: a real server on a bed, by one command a table.
//!
//! A program that reads files in order is the best case of every readahead. A server has requests
//! of many clients in flight at once, many small files or several runs at a time, and is judged by
//! requests a second and by its slowest answers. Two are compared, on the same disk and in the same
//! memory:
//!
//! ```text
//! servers media    nginx with media clips, wrk asks for them by Zipf's law
//! servers search   Xapian with an index of generated documents, clients query it
//!
//! for each run: for each number of clients: for each candidate:
//!     unmount and mount the file system, set it                          (cold)
//!     in a new memory group: [forerun mount,] the server; clients ask for --time
//! ```
//!
//! A candidate is the kernel without a scheduler at each readahead, the kernel with each other
//! scheduler that it has and the first readahead, or forerun. Called by the command line; see
//! `docs/SERVERS.md`.

pub mod command;
pub mod media;
mod one;
mod print;
pub mod search;
pub mod wrk;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bed::Bed;
use crate::bench::Bench;
use crate::clock::Priority;
use crate::failure::{At, Failure};
use crate::plan::BedPaths;
use crate::state::State;
use crate::table::side::Side;
use crate::table::{check_rival, median};
use crate::{clock, down, kernel, memory_group, needs, up};
use one::Measured;

/// Files that this module writes into the state directory.
pub(crate) const WRITTEN: [&str; 6] = [
    media::CONFIGURATION,
    media::LOG,
    media::PID,
    media::REQUESTS,
    media::SCRIPT,
    search::SCRIPT,
];

/// Which server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Server {
    /// nginx with media clips.
    Media,
    /// Xapian.
    Search {
        /// The folder that holds indexes from run to run.
        index: PathBuf,
        /// Number of documents indexed.
        documents: u64,
    },
}

/// The candidates of a comparison, and its loads.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The server.
    pub server: Server,
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// The kernel's readahead; the first is the default that ratios are to.
    pub read_ahead_kib: Vec<u64>,
    /// The kernel's schedulers; with the first, every readahead is a candidate.
    pub schedulers: Vec<String>,
    /// The binary of forerun, if it is compared.
    pub forerun: Option<PathBuf>,
    /// Its preset.
    pub preset: String,
    /// Memory of either candidate.
    pub memory_bytes: u64,
    /// Time of one run.
    pub time: Duration,
    /// Runs of each.
    pub runs: u16,
}

/// Answers to the clients of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answers {
    /// Requests or queries answered.
    pub completed: f64,
    /// In this time.
    pub seconds: f64,
    /// The middle answer's time.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The client with the fewest answers over the mean client.
    pub slowest_per_mean: f64,
    /// Requests that failed.
    pub errors: u64,
}

/// One candidate at one number of clients; medians of the runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Number of clients.
    pub clients: usize,
    /// `kernel none 128` or `forerun mount`.
    pub side: String,
    /// Requests or queries a second.
    pub per_second: f64,
    /// Each run, in order.
    pub runs_per_second: Vec<f64>,
    /// To the first kernel setting.
    pub to_default: f64,
    /// To the kernel's best at this number of clients.
    pub to_best: f64,
    /// The middle answer's time.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The slowest client over the mean.
    pub slowest_per_mean: f64,
    /// Bytes that the disks transferred, a second.
    pub disk_mb_per_second: f64,
    /// Mean size of the disks' requests.
    pub request_bytes: f64,
    /// Share of the disks' requests that did not continue the one before.
    pub switches_per_request: f64,
    /// How late the disks were on average.
    pub late_ns: f64,
    /// Resident memory of `forerun mount` at its highest, over all runs.
    pub resident_max_bytes: Option<u64>,
}

/// The comparison, done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ServerTable {
    /// The server.
    pub server: Server,
    /// The bed and machine of the measurement.
    pub bed: Bed,
    /// Bytes of the files or the index.
    pub served_bytes: u64,
    /// Memory of either candidate.
    pub memory_bytes: u64,
    /// Whether a memory group held both candidates to it.
    pub is_memory_limited: bool,
    /// Time of one run.
    pub run_seconds: f64,
    /// Runs of each.
    pub runs: u16,
    /// Schedulers that this kernel does not have.
    pub absent_schedulers: Vec<String>,
    /// By clients, then by candidate.
    pub rows: Vec<Row>,
}

/// Makes the bed, measures, undoes the bed. Names each step on `progress`.
///
/// # Errors
/// Resources missing here; the bed's, a candidate's: nothing is shown then, and the bed is undone.
pub fn run(
    bed: &Bed,
    folder: &Path,
    comparison: &Comparison,
    progress: &mut dyn Write,
) -> Result<ServerTable, Failure> {
    check_rival(comparison.forerun.as_deref())?;
    needs::check_server(bed, &comparison.server)?;
    let index = search::ready(&comparison.server, bed.files.seed, progress)?;
    let mut state = up::run(bed, folder, progress)?;
    let table = prepare(bed, &mut state, comparison, index.as_deref(), progress);
    let undone = down::undo(state);
    let table = table?;
    undone.map(|()| table)
}

fn prepare(
    bed: &Bed,
    state: &mut State,
    comparison: &Comparison,
    index: Option<&Path>,
    progress: &mut dyn Write,
) -> Result<ServerTable, Failure> {
    let place = BedPaths::of(state.folder(), &bed.disks)?;
    let served_bytes = match index {
        Some(index) => search::copy(bed, &place, index)?,
        None => {
            media::write_requests(state.folder(), &bed.files)?;
            let sizes = (0..bed.files.count).map(|number| crate::fill::size(&bed.files, number));
            sizes.sum()
        }
    };
    // As `table` has it: other programs disturb all candidates less.
    if !clock::be_punctual(Priority::Measured) {
        let text = "no real-time priority: other programs disturb the runs";
        writeln!(progress, "{text}").at(&place.files)?;
    }
    let offered = offered(bed, &place)?;
    let is_absent = |name: &&String| !offered.contains(*name);
    let absent: Vec<String> = comparison
        .schedulers
        .iter()
        .filter(is_absent)
        .cloned()
        .collect();
    for name in &absent {
        let list = offered.join(", ");
        writeln!(
            progress,
            "scheduler {name}: left out, this kernel has {list}"
        )
        .at(&place.files)?;
    }
    let sides = sides(comparison, &absent);
    let rows = measure(bed, &place, state, comparison, &sides, progress)?;
    Ok(ServerTable {
        server: comparison.server.clone(),
        bed: bed.clone(),
        served_bytes,
        memory_bytes: comparison.memory_bytes,
        is_memory_limited: memory_group::controller().is_some(),
        run_seconds: comparison.time.as_secs_f64(),
        runs: comparison.runs,
        absent_schedulers: absent,
        rows,
    })
}

/// The schedulers that every disk of the bed may have.
fn offered(bed: &Bed, place: &BedPaths) -> Result<Vec<String>, Failure> {
    match up::loops(bed, place)?.first() {
        Some(device) => kernel::schedulers(device),
        None => Ok(Vec::new()),
    }
}

/// The kernel at each setting, then forerun.
fn sides(comparison: &Comparison, absent: &[String]) -> Vec<Side> {
    let mut sides = Vec::new();
    let schedulers = comparison.schedulers.iter().enumerate();
    for (number, scheduler) in schedulers.filter(|(_, name)| !absent.contains(name)) {
        let settings = match number {
            0 => &comparison.read_ahead_kib[..],
            _ => comparison.read_ahead_kib.get(..1).unwrap_or_default(),
        };
        sides.extend(settings.iter().map(|kib| Side::Kernel {
            scheduler: scheduler.clone(),
            read_ahead_kib: *kib,
        }));
    }
    sides.extend(comparison.forerun.iter().map(|_| Side::Forerun {
        preset: comparison.preset.clone(),
        is_told: true,
    }));
    sides
}

fn measure(
    bed: &Bed,
    place: &BedPaths,
    state: &mut State,
    comparison: &Comparison,
    sides: &[Side],
    progress: &mut dyn Write,
) -> Result<Vec<Row>, Failure> {
    let controller = memory_group::controller();
    let mut measured = vec![Vec::new(); comparison.clients.len() * sides.len()];
    for run in 1..=comparison.runs {
        let numbers = comparison.clients.iter();
        let each = numbers.flat_map(|clients| sides.iter().map(move |side| (*clients, side)));
        for ((clients, side), results) in each.zip(&mut measured) {
            let mut bench = Bench {
                bed,
                place,
                state,
                comparison,
                controller: controller.as_ref(),
            };
            let one = bench.run(side, clients)?;
            let (rate, p99) = (one.per_second(), one.answers.p99_ms);
            let text =
                format!("run {run}: {clients} clients, {side}: {rate:.1}/s, p99 {p99:.0} ms");
            writeln!(progress, "{text}").at(&place.files)?;
            results.push(one);
        }
    }
    let by_clients = comparison.clients.iter().zip(measured.chunks(sides.len()));
    Ok(by_clients
        .flat_map(|(clients, results)| rows(*clients, sides, results))
        .collect())
}

/// The rows of one number of clients; `results` are the runs of each candidate.
fn rows(clients: usize, sides: &[Side], results: &[Vec<Measured>]) -> Vec<Row> {
    let rate = |runs: &[Measured]| median(runs.iter().map(Measured::per_second));
    let is_kernel = |side: &Side| matches!(side, Side::Kernel { .. });
    let kernel = sides
        .iter()
        .zip(results)
        .filter(|(side, _)| is_kernel(side));
    let kernel: Vec<f64> = kernel.map(|(_, runs)| rate(runs)).collect();
    let default = kernel.first().copied().unwrap_or(0.0);
    let best = kernel.iter().copied().fold(0.0, f64::max);
    let row = |(side, runs): (&Side, &Vec<Measured>)| {
        let of = |field: fn(&Measured) -> f64| median(runs.iter().map(field));
        Row {
            clients,
            side: side.to_string(),
            per_second: rate(runs),
            runs_per_second: runs.iter().map(Measured::per_second).collect(),
            to_default: rate(runs) / default,
            to_best: rate(runs) / best,
            p50_ms: of(|run| run.answers.p50_ms),
            p99_ms: of(|run| run.answers.p99_ms),
            slowest_per_mean: of(|run| run.answers.slowest_per_mean),
            disk_mb_per_second: of(|run| run.disk_bytes / 1e6 / run.answers.seconds),
            request_bytes: of(|run| run.disk_bytes / run.disk_requests),
            switches_per_request: of(|run| run.disk_switches / run.disk_requests),
            late_ns: of(|run| run.late_ns / run.disk_requests),
            resident_max_bytes: runs.iter().filter_map(|run| run.resident_max_bytes).max(),
        }
    };
    sides.iter().zip(results).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison() -> Comparison {
        Comparison {
            server: Server::Media,
            clients: vec![1],
            read_ahead_kib: vec![128, 512, 4096],
            schedulers: vec!["none".into(), "bfq".into()],
            forerun: Some("forerun".into()),
            preset: "mount".into(),
            memory_bytes: 1,
            time: Duration::from_secs(1),
            runs: 1,
        }
    }

    #[test]
    fn other_schedulers_run_with_the_default_readahead_and_only_where_there_are_such() {
        let names = |absent: &[String]| -> Vec<String> {
            let sides = sides(&comparison(), absent);
            sides.iter().map(Side::to_string).collect()
        };
        let all = [
            "kernel none 128",
            "kernel none 512",
            "kernel none 4096",
            "kernel bfq 128",
            "forerun mount",
        ];
        assert_eq!(names(&[]), all);
        assert_eq!(names(&["bfq".into()]).len(), 4);
    }

    #[test]
    fn ratios_are_to_the_default_and_to_the_best_kernel() {
        let sides = sides(&comparison(), &["bfq".into()]);
        let results = [[10.0, 30.0, 20.0], [40.0; 3], [5.0; 3], [50.0; 3]];
        let results = results.map(|rates| rates.map(Measured::of_rate).to_vec());
        let rows = rows(64, &sides, &results);
        assert_eq!((rows[0].per_second, rows[0].to_default), (20.0, 1.0));
        assert_eq!((rows[3].to_default, rows[3].to_best), (2.5, 1.25));
        assert_eq!(rows[3].runs_per_second, [50.0; 3]);
    }
}
