//! Output of a simulation: a row a run, as a table, CSV or JSON lines.
//!
//! The columns are written down once; the table shows those a person compares.

use std::fmt::Display;
use std::io::Write;

use forerun_sim::hinted::host::Notice;
use forerun_sim::simulate::Outcome;
use forerun_sim::simulate::bound::Bound;
use forerun_sim::simulate::grid::{Grid, GridRun};
use forerun_sim::simulate::pacing::{Loop, Pacing};
use forerun_sim::simulate::placing::{Order, Regions};
use forerun_sim::simulate::requests::RequestsError;
use forerun_sim::simulate::run::RunError;
use serde_json::{Map, Value, json};

use crate::args::{Format, Simulate};
use crate::columns::{Columns, csv};
use crate::commands::trace::unreadable;
use crate::failure::Failure;
use crate::terminal::{self, Column};

/// One run.
pub(super) struct Row {
    /// The trace as it was named; none of a workload.
    pub(super) trace: Option<String>,
    /// The part of the trace; none for all.
    pub(super) part: Option<String>,
    /// Whether writes of the trace count as reads; none of a workload.
    pub(super) writes: Option<bool>,
    /// The workload as it was named.
    pub(super) workload: Option<String>,
    pub(super) preset: String,
    pub(super) is_unit: bool,
    pub(super) device: String,
    pub(super) scheduler: String,
    pub(super) disks: u16,
    pub(super) cache_blocks: u32,
    /// Memory of all these.
    pub(super) cache_bytes: u64,
    /// Unit of the counts.
    pub(super) block_bytes: u32,
    pub(super) compute_from: &'static str,
    /// Flags without a column of their own; none if there are none.
    pub(super) flags: Option<String>,
    /// When free disks are noticed.
    pub(super) notice: Option<Notice>,
    /// Order and regions of the blocks; none where they mean nothing.
    pub(super) place: Option<(Order, Regions)>,
    /// Devices of the trace.
    pub(super) regions: u16,
    /// Readers of the trace, and when its requests begin; none of a workload, which has its own.
    pub(super) pacing: Option<Pacing>,
    pub(super) outcome: Outcome,
    pub(super) bound: Bound,
    /// Elapsed time over reverse aggressive's on the same disks with the same cache.
    pub(super) over_reverse: Option<f64>,
}

/// Its column.
pub(super) const OVER_REVERSE: &str = "over_reverse_aggressive";

/// How many times as long, to a ten thousandth.
fn ratio(time: u64, least: u64) -> Option<f64> {
    (least > 0).then(|| (time as f64 / least as f64 * 1e4).round() / 1e4)
}

/// A part over all, 0 of none. To twelve places, which any program reads back as they were written: a ten thousandth of
/// many reads is many misses.
fn quotient(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => (part as f64 / all as f64 * 1e12).round() / 1e12,
    }
}

/// References that waited, for a fetch of their own or for one under way, over all.
fn miss_ratio(run: &Outcome) -> f64 {
    quotient(run.misses + run.late_hits, run.reads)
}

fn failed(error: impl Display) -> Failure {
    Failure::Run(format!("simulation: {error}"))
}

impl Row {
    /// Runs it.
    ///
    /// # Errors
    /// A setup the host refuses, or a trace that cannot be read again.
    pub(super) fn of(
        run: &GridRun,
        grid: &Grid<'_>,
        args: &Simulate,
        input: &str,
    ) -> Result<Self, Failure> {
        let (outcome, bound) = grid.run(run).map_err(|e| match e {
            RunError::Requests(RequestsError::Read(error)) => unreadable(&error),
            RunError::Requests(error) => failed(format!("{input}: {error}")),
            RunError::Warm { .. } => Failure::Usage(format!("--warm: {e}")),
            other => failed(other),
        })?;
        let (preset, is_unit) = (&run.preset, grid.disk.is_unit());
        let notice = args.noticing.notice.unwrap_or_default();
        let is_files = grid.input.workload.is_some() && !preset.is_hinted();
        let pacing = grid.input.source.as_ref().map(|_| grid.pacing);
        let is_closed = pacing.is_none_or(|pacing| pacing.when == Loop::Closed);
        let recorded = grid.input.recorded.as_ref();
        let recorded = recorded.filter(|_| !is_files && !is_unit);
        Ok(Self {
            trace: args.trace.is_some().then(|| input.to_owned()),
            part: args.reading.part(),
            writes: args.trace.is_some().then_some(args.writes),
            workload: args.workload.clone(),
            preset: preset.name().to_owned(),
            is_unit,
            device: grid.disk.name().to_owned(),
            scheduler: grid.disk.scheduler().to_owned(),
            disks: grid.input.disks(run.wanted),
            cache_blocks: run.cache_blocks,
            cache_bytes: u64::from(run.cache_blocks) * u64::from(grid.input.block_bytes),
            block_bytes: grid.unit(preset),
            // Requests that begin at their times have no computing before them.
            compute_from: match is_closed {
                true => grid.input.compute_from,
                false => "none",
            },
            flags: args.others(preset),
            notice: (preset.is_told() && !is_unit).then_some(notice),
            place: recorded.map(|recorded| {
                let disks = grid.input.disks(run.wanted);
                (grid.layout.order, grid.layout.regions_of(recorded, disks))
            }),
            pacing,
            regions: recorded.map_or(1, |recorded| recorded.told().devices),
            outcome,
            bound,
            over_reverse: None,
        })
    }

    /// How many times as long as the best of others.
    pub(super) fn over(&self, best: u64) -> Option<f64> {
        ratio(self.outcome.elapsed, best)
    }

    /// Where blocks lie, for a table.
    fn place(&self) -> String {
        let Some((order, regions)) = self.place else {
            return "-".to_owned();
        };
        match (self.regions, regions) {
            (1, Regions::Concatenated) => order.name().to_owned(),
            _ => format!("{} {}", order.name(), regions.name()),
        }
    }

    fn columns(&self) -> Columns {
        let run = &self.outcome;
        let share = |busy: &u64| quotient(*busy, run.elapsed).min(1.0);
        let busy: Vec<f64> = run.busy.iter().map(share).collect();
        let [elapsed, compute, driver, stall, least] = if self.is_unit {
            [
                "elapsed_units",
                "compute_units",
                "driver_units",
                "stall_units",
                "bound_units",
            ]
        } else {
            [
                "elapsed_ns",
                "compute_ns",
                "driver_ns",
                "stall_ns",
                "bound_ns",
            ]
        };
        let mut columns = vec![
            ("trace", json!(self.trace)),
            ("part", json!(self.part)),
            ("writes", json!(self.writes)),
            ("workload", json!(self.workload)),
            ("preset", json!(self.preset)),
            ("device", json!(self.device)),
            ("scheduler", json!(self.scheduler)),
            ("disks", json!(self.disks)),
            ("cache_blocks", json!(self.cache_blocks)),
            ("cache_bytes", json!(self.cache_bytes)),
            ("block_bytes", json!(self.block_bytes)),
            ("compute_from", json!(self.compute_from)),
            ("flags", json!(self.flags)),
            ("place", json!(self.place.map(|(order, _)| order.name()))),
            (
                "regions",
                json!(self.place.map(|(_, regions)| regions.name())),
            ),
            ("notice", json!(self.notice.map(Notice::name))),
            ("reads", json!(run.reads)),
            ("hits", json!(run.hits)),
            ("late_hits", json!(run.late_hits)),
            ("misses", json!(run.misses)),
            ("miss_ratio", json!(miss_ratio(run))),
            ("fetches", json!(run.fetches)),
            ("prefetched", json!(run.prefetched)),
            ("evicted_unused", json!(run.evicted_unused)),
            ("failed", json!(run.failed)),
            (elapsed, json!(run.elapsed)),
            (compute, json!(run.compute)),
            (driver, json!(run.driver)),
            (stall, json!(run.stall)),
            ("device_response_mean_ns", json!(run.response_mean)),
            ("device_utilisation", json!(busy)),
            (least, json!(self.bound.least)),
            ("bound_kind", json!(self.bound.kind)),
            ("over_bound", json!(ratio(run.elapsed, self.bound.least))),
            (OVER_REVERSE, json!(self.over_reverse)),
            (
                "readers_by",
                json!(self.pacing.map(|pacing| pacing.readers.name())),
            ),
            ("loop", json!(self.pacing.map(|pacing| pacing.when.name()))),
            ("arrivals", json!(self.speed())),
            ("saturated", json!(run.is_saturated)),
        ];
        columns.extend(run.tails().map(|(name, time)| (name, json!(time))));
        columns
    }

    /// All columns.
    pub(super) fn object(&self) -> Map<String, Value> {
        let columns = self.columns().into_iter();
        columns
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    /// How fast requests arrived, where that counts.
    fn speed(&self) -> Option<String> {
        let pacing = self.pacing.filter(|pacing| pacing.when != Loop::Closed)?;
        Some(pacing.speed.to_string())
    }

    /// Under [`COLUMNS`].
    fn cells(&self) -> Vec<String> {
        let run = &self.outcome;
        let time = |time: u64| match self.is_unit {
            true => time.to_string(),
            false => format!("{}.{:03} s", time / 1_000_000_000, time / 1_000_000 % 1000),
        };
        let over = ratio(run.elapsed, self.bound.least);
        let mut cells = vec![self.preset.clone(), self.disks.to_string(), self.place()];
        let counts = [
            self.cache_blocks.into(),
            run.reads,
            run.hits,
            run.late_hits,
            run.misses,
        ];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(format!("{:.4}", miss_ratio(run)));
        cells.extend([run.fetches, run.evicted_unused].map(|count| count.to_string()));
        cells.extend([time(run.elapsed), time(run.stall), self.p99()]);
        cells.push(over.map_or("-".to_owned(), |over| format!("{over:.3}")));
        cells.push(self.bound.kind.to_owned());
        cells
    }

    /// The 99th percentile of the responses, for a table.
    fn p99(&self) -> String {
        let responses = &self.outcome.responses;
        match (self.outcome.is_saturated, responses.count()) {
            (true, _) => "saturated".to_owned(),
            (false, 0) => "-".to_owned(),
            (false, _) => {
                let micros = responses.at(990).0 / 1000;
                format!("{}.{:03} ms", micros / 1000, micros % 1000)
            }
        }
    }
}

/// Prints the rows.
///
/// # Errors
/// Output that cannot be written.
pub(super) fn print(rows: &[Row], format: Format, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match format {
        Format::Table => table(rows),
        Format::Csv => csv(rows.iter().map(Row::columns))?,
        Format::Json => rows
            .iter()
            .map(|row| format!("{}\n", Value::Object(row.object())))
            .collect(),
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

/// Those of the table. Ranks are the order in which they are left out in a narrow terminal.
const COLUMNS: &[Column] = &[
    Column::text("preset", 0),
    Column::number("disks", 6),
    Column::text("place", 12),
    Column::number("K", 0),
    Column::number("reads", 7),
    Column::number("hits", 8),
    Column::number("late", 10),
    Column::number("misses", 5),
    Column::number("miss ratio", 1),
    Column::number("fetches", 9),
    Column::number("unused", 11),
    Column::number("elapsed", 0),
    Column::number("stall", 4),
    Column::number("p99", 2),
    Column::number("over bound", 3),
    Column::text("bound is", 13),
];

fn table(rows: &[Row]) -> String {
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    terminal::fitted(COLUMNS, &cells)
}
