//! Output of a bench: a row a candidate, as tables, CSV or JSON lines.
//!
//! Called by `commands::bench` with the runs of each candidate. The row is the run of median
//! elapsed time as a whole, not a median of each number by itself: so its counters still add up.
//! Fields that a candidate does not have (the kernel's hits) are empty, or `null`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::Write;

use comfy_table::{CellAlignment, ColumnConstraint};
use serde::Serialize;

use super::plan::{Entrant, Plan};
use super::{Emulated, Measured, SourceCache};
use crate::args::{Clock, Format};
use crate::estimate::DeviceEstimate;
use crate::failure::Failure;
use crate::quantity::{rough_duration, rough_size};
use crate::terminal;

/// One candidate's result. Blocks are counted in `block_bytes`; units end the other names.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub preset: &'static str,
    pub clock: &'static str,
    pub pattern: String,
    pub seed: u64,
    pub runs: u32,
    pub readers: usize,
    pub read_bytes: u64,
    pub bytes: u64,
    pub elapsed_ns: u64,
    pub elapsed_least_ns: u64,
    pub elapsed_most_ns: u64,
    pub throughput_bytes_per_second: u64,
    pub slowest_reader_over_mean: f64,
    pub response_p50_ns: Option<u64>,
    pub response_p90_ns: Option<u64>,
    pub response_p99_ns: Option<u64>,
    pub response_p99_9_ns: Option<u64>,
    pub response_max_ns: Option<u64>,
    pub saturated: bool,
    pub device_requests: Option<u64>,
    pub device_bytes: Option<u64>,
    pub request_bytes_mean: Option<u64>,
    pub block_bytes: u32,
    pub hits: Option<u64>,
    pub late_hits: Option<u64>,
    pub misses: Option<u64>,
    pub hints: Option<u64>,
    pub hints_read: Option<u64>,
    pub prefetched: Option<u64>,
    pub wasted_bytes: Option<u64>,
    pub stall_ns: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub memory_peak_bytes: Option<u64>,
    pub source_cache: SourceCache,
    pub device: Option<String>,
    pub disks: u16,
    pub load: Option<String>,
    pub flags: Option<String>,
    /// In JSON, and below the table: a line of CSV has no room for a list.
    #[serde(skip)]
    pub estimate: Option<Vec<DeviceEstimate>>,
    #[serde(skip)]
    pub emulated: Option<Emulated>,
}

impl Row {
    /// The row of a candidate from its runs, of which there is at least one.
    #[must_use]
    pub fn new(entrant: &Entrant, plan: &Plan, runs: &mut [Measured]) -> Option<Self> {
        let elapsed = |run: Option<&Measured>| run.map_or(0, |run| run.elapsed.0);
        let least = elapsed(runs.iter().min_by_key(|run| run.elapsed));
        let most = elapsed(runs.iter().max_by_key(|run| run.elapsed));
        let run = median(runs)?;
        let ledger = run.ledger.as_ref();
        let (device, conditions) = (run.device, &plan.conditions);
        let tail = run.responses.tail().filter(|_| !run.is_saturated);
        let [p50, p90, p99, p99_9, longest] =
            tail.map_or([None; 5], |tail| tail.map(|time| Some(time.0)));
        Some(Self {
            preset: entrant.name(),
            clock: match plan.clock {
                Clock::Real => "real",
                Clock::Virtual => "virtual",
            },
            pattern: plan.name().to_owned(),
            seed: plan.seed,
            runs: plan.runs,
            readers: plan.readers.len(),
            read_bytes: plan.read_bytes,
            bytes: run.bytes,
            elapsed_ns: run.elapsed.0,
            elapsed_least_ns: least,
            elapsed_most_ns: most,
            throughput_bytes_per_second: per_second(run.bytes, run.elapsed.0),
            slowest_reader_over_mean: slowest_over_mean(run),
            response_p50_ns: p50,
            response_p90_ns: p90,
            response_p99_ns: p99,
            response_p99_9_ns: p99_9,
            response_max_ns: longest,
            saturated: run.is_saturated,
            device_requests: device.map(|d| d.requests),
            device_bytes: device.map(|d| d.bytes),
            request_bytes_mean: device.map(|d| d.bytes.checked_div(d.requests).unwrap_or(0)),
            block_bytes: run.block_bytes,
            hits: ledger.map(|l| l.hits),
            late_hits: ledger.map(|l| l.late_hits),
            misses: ledger.map(|l| l.misses),
            hints: ledger.map(|l| l.hints),
            hints_read: ledger.map(|l| l.hints_read),
            prefetched: ledger.map(|l| l.prefetched),
            wasted_bytes: ledger.map(|l| l.wasted() * u64::from(run.block_bytes)),
            stall_ns: ledger.map(|l| l.stall.0),
            memory_bytes: match entrant {
                Entrant::Engine(_, settings) => Some(settings.memory.0),
                Entrant::Kernel => None,
            },
            memory_peak_bytes: ledger.map(|l| l.memory_peak.0),
            source_cache: run.source_cache,
            device: conditions.device.clone(),
            disks: conditions.disks,
            load: conditions.load.clone(),
            flags: match entrant {
                Entrant::Engine(..) => conditions.flags.clone(),
                Entrant::Kernel => None,
            },
            estimate: run.estimate.clone(),
            emulated: run.emulated,
        })
    }
}

/// The run of median elapsed time; of two in the middle, the faster.
fn median(runs: &mut [Measured]) -> Option<&Measured> {
    runs.sort_by_key(|run| run.elapsed);
    runs.get(runs.len().saturating_sub(1) / 2)
}

fn per_second(bytes: u64, elapsed_ns: u64) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(elapsed_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// How much longer the slowest reader took than the mean one: 1 is fair.
fn slowest_over_mean(run: &Measured) -> f64 {
    let slowest = run.readers.iter().map(|time| time.0).max().unwrap_or(0);
    let sum: u128 = run.readers.iter().map(|time| u128::from(time.0)).sum();
    let ratio = slowest as f64 * run.readers.len() as f64 / sum as f64;
    if sum == 0 {
        1.0
    } else {
        (ratio * 1e3).round() / 1e3
    }
}

/// Prints the rows.
///
/// # Errors
/// Output that cannot be written.
pub fn print(rows: &[Row], format: Format, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match format {
        Format::Table => table(rows),
        Format::Csv => csv(rows).map_err(unprintable)?,
        Format::Json => json(rows).map_err(unprintable)?,
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

fn unprintable(error: impl fmt::Display) -> Failure {
    Failure::Run(format!("cannot print the result: {error}"))
}

fn json(rows: &[Row]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        row: &'a Row,
        estimate: &'a Option<Vec<DeviceEstimate>>,
    }
    let line = |row| {
        let line = Line {
            row,
            estimate: &row.estimate,
        };
        Ok(serde_json::to_string(&line)? + "\n")
    };
    rows.iter().map(line).collect()
}

fn csv(rows: &[Row]) -> Result<String, Box<dyn std::error::Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    Ok(String::from_utf8(
        writer.into_inner().map_err(|e| e.to_string())?,
    )?)
}

/// Below this width every cell would be cut to letters.
const NARROWEST: u16 = 80;

/// Three tables, of times, responses and requests: one of all columns is wider than a terminal.
fn table(rows: &[Row]) -> String {
    let has_spread = rows.iter().any(|row| row.runs > 1);
    let mut times = vec!["preset", "MB/s", "elapsed"];
    if has_spread {
        times.extend(["least", "most"]);
    }
    times.extend(["slowest/mean", "stall", "memory"]);
    let responses = vec!["preset", "p50", "p90", "p99", "p99.9", "longest"];
    let requests = vec![
        "preset",
        "requests",
        "mean request",
        "fetched/asked",
        "hits",
        "late hits",
        "misses",
        "wasted",
    ];
    let times = part(times, rows.iter().map(|row| times_of(row, has_spread)));
    let responses = part(responses, rows.iter().map(responses_of));
    let requests = part(requests, rows.iter().map(requests_of));
    let below = caches(rows) + &estimates(rows) + &lateness(rows);
    format!("{times}\n{responses}\n{requests}{below}")
}

fn part(head: Vec<&str>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = terminal::table(0, NARROWEST);
    table.set_header(head);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// How the files were cached, below a table that has no room for it.
fn caches(rows: &[Row]) -> String {
    let mut by_cache: BTreeMap<SourceCache, Vec<&str>> = BTreeMap::new();
    for row in rows {
        by_cache
            .entry(row.source_cache)
            .or_default()
            .push(row.preset);
    }
    let of = |(cache, presets): (SourceCache, Vec<_>)| {
        let presets = presets.join(", ");
        Some(format!("files of {presets}: {}\n", cache.words()?))
    };
    let lines: String = by_cache.into_iter().filter_map(of).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\n{lines}")
    }
}

/// The costs of the devices, a line each, below a table that has no room for them.
fn estimates(rows: &[Row]) -> String {
    let wide = rows.iter().map(|row| row.preset.len()).max().unwrap_or(0);
    let mut lines = String::new();
    for row in rows {
        for device in row.estimate.iter().flatten() {
            let _ = writeln!(lines, "{:wide$}  {device}", row.preset);
        }
    }
    if lines.is_empty() {
        lines
    } else {
        format!("\nestimated costs of the devices:\n{lines}")
    }
}

/// Which emulated devices were late, a line each.
fn lateness(rows: &[Row]) -> String {
    let late = |row: &Row| late(row.preset, &row.emulated?);
    let lines: String = rows.iter().filter_map(late).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\n{lines}")
    }
}

/// How late an emulated device was: by more than a hundredth of a request's time, or for want of priority.
fn late(preset: &str, used: &Emulated) -> Option<String> {
    let is_late = used.late.0 > used.busy.0 / 100;
    if used.requests == 0 || (used.is_realtime && !is_late) {
        return None;
    }
    let [late, each] = [used.late, used.busy].map(|sum| time(sum.0 / used.requests));
    let most = time(used.late_max.0);
    let without = match used.is_realtime {
        true => "",
        false => ", without real-time priority",
    };
    Some(format!(
        "emulated device of {preset}: {late} late on average, {most} at most, of {each} a request{without}\n"
    ))
}

fn count(count: Option<u64>) -> String {
    count.map_or("-".to_owned(), |count| count.to_string())
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or("-".to_owned(), |bytes| rough_size(bytes as f64))
}

fn time(ns: u64) -> String {
    rough_duration(ns.into())
}

/// How long it took: of several runs the median one, and the least and the most.
fn times_of(row: &Row, has_spread: bool) -> Vec<String> {
    let rate = format!("{:.1}", row.throughput_bytes_per_second as f64 / 1e6);
    let mut cells = vec![row.preset.to_owned(), rate, time(row.elapsed_ns)];
    if has_spread {
        cells.extend([row.elapsed_least_ns, row.elapsed_most_ns].map(time));
    }
    cells.extend([
        format!("{:.2}", row.slowest_reader_over_mean),
        row.stall_ns.map_or("-".to_owned(), time),
        size(row.memory_peak_bytes),
    ]);
    cells
}

/// How long a read took: so many of a hundred no longer.
fn responses_of(row: &Row) -> Vec<String> {
    let cell = |response: Option<u64>| match response {
        _ if row.saturated => "saturated".to_owned(),
        response => response.map_or("-".to_owned(), time),
    };
    let all = [
        row.response_p50_ns,
        row.response_p90_ns,
        row.response_p99_ns,
        row.response_p99_9_ns,
        row.response_max_ns,
    ];
    let cells = all.into_iter().map(cell);
    std::iter::once(row.preset.to_owned())
        .chain(cells)
        .collect()
}

/// Requests to the device, and the outcome of the blocks.
fn requests_of(row: &Row) -> Vec<String> {
    let amplification = row.device_bytes.filter(|_| row.bytes > 0);
    let amplification = amplification.map(|bytes| bytes as f64 / row.bytes as f64);
    vec![
        row.preset.to_owned(),
        count(row.device_requests),
        size(row.request_bytes_mean),
        amplification.map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
        count(row.hits),
        count(row.late_hits),
        count(row.misses),
        size(row.wasted_bytes),
    ]
}

#[cfg(test)]
mod tests {
    use forerun_core::Nanos;

    use super::*;

    fn run(readers: &[u64]) -> Measured {
        let readers: Vec<_> = readers.iter().copied().map(Nanos).collect();
        Measured {
            elapsed: readers.iter().copied().max().unwrap_or_default(),
            readers,
            bytes: 1_000,
            device: None,
            emulated: None,
            ledger: None,
            estimate: None,
            block_bytes: 4096,
            source_cache: SourceCache::None,
            responses: Default::default(),
            is_saturated: false,
        }
    }

    #[test]
    fn rates_survive_no_time_and_many_bytes() {
        assert_eq!(per_second(1_000, 500), 2_000_000_000);
        assert_eq!(per_second(0, 0), 0);
        assert_eq!(per_second(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn fairness_is_the_slowest_over_the_mean() {
        assert_eq!(slowest_over_mean(&run(&[100, 100])), 1.0);
        assert_eq!(slowest_over_mean(&run(&[50, 150])), 1.5);
        assert_eq!(slowest_over_mean(&run(&[0, 0])), 1.0);
        assert_eq!(slowest_over_mean(&run(&[])), 1.0);
    }

    #[test]
    fn an_emulated_device_that_was_late_or_may_be_for_want_of_priority_is_told() {
        let used = |requests, late_ns, is_realtime| Emulated {
            requests,
            busy: Nanos(800_000_000),
            late: Nanos(late_ns),
            late_max: Nanos(5_000_000),
            is_realtime,
            ..Emulated::default()
        };
        let told = "emulated device of mount: 80.0 us late on average, 5.00 ms at most, of 8.00 ms a request";
        let without = format!("{told}, without real-time priority\n");
        for (used, expected) in [
            (used(100, 8_000_000, true), None),
            (used(100, 8_000_001, true), Some(format!("{told}\n"))),
            (used(100, 8_000_000, false), Some(without)),
            (used(0, 8_000_001, false), None),
        ] {
            assert_eq!(late("mount", &used), expected);
        }
    }

    #[test]
    fn the_median_run_is_the_lower_of_two_in_the_middle() {
        let mut runs = [run(&[9]), run(&[1]), run(&[5]), run(&[7])];
        assert_eq!(median(&mut runs).map(|run| run.elapsed), Some(Nanos(5)));
        assert_eq!(median(&mut []), None);
    }
}
