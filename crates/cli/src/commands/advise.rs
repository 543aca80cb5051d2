//! `forerun advise`: which preset, depth and memory suit the reads of a trace, and their gain.
//!
//! Problem: "how much memory, and would it help at all?" is a sweep, a table and some thinking for each user.
//!
//! Mechanism: the sweep of a fixed plan, by the machinery of `forerun sweep`: presets by memories in powers of two, then
//! constant depths with the memory that was chosen. The choice is that of a report: the smallest memory within 5 % of the best
//! throughput and 99th percentile. Each file of the trace is a reader; requests begin when they were made, but after the one
//! before of their file, or back to back where the trace has no times.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use forerun_core::Bytes;
use forerun_sim::trace::{Op, Summary, SummaryError};
use serde_json::{Map, Value, json};

use super::sweep::run_all;
use super::trace::{logs, unreadable};
use crate::args::{Advise, ListFormat};
use crate::failure::Failure;
use crate::files::named;
use crate::flags::{Own, Values};
use crate::quantity::{rough_size, size};
use crate::report::advice::{ADVICE, CONSTANT_DEPTH};
use crate::report::answer::answer;
use crate::report::chart::{Chart, KERNEL, NONE, Place, charts};
use crate::report::points::{Metric, Row, points};
use crate::report::text::{memory, number};
use crate::sweep::cells::{PROGRAM, Stamp, cells};
use crate::sweep::plan::Simulations;
use crate::sweep::rows::ERROR;

const PRESETS: [&str; 5] = [NONE, KERNEL, "cp", "forerun", "mount"];

/// Constant depths, as readahead of the kernel could be set to; its default is among them.
const DEPTHS: [u64; 6] = [32 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];

/// The least memory that is tried, and how often it is doubled at most.
const MEMORY_MIN: u64 = 1 << 20;
const MEMORIES_MAX: usize = 10;

const PAGE: u64 = 4096;

/// As near to the best is near.
const WITHIN: f64 = 0.05;
/// A wait that is shorter by less, in milliseconds, is no gain: a thread that wakes up takes as long.
const SEEN: f64 = 0.1;

/// More memory for the blocks of the trace than this is refused.
const TRACE_MEMORY: Bytes = Bytes(4 << 30);

/// Runs the command.
///
/// # Errors
/// A trace or a device that cannot be used, or no run that ended well.
pub fn run(args: &Advise, out: &mut dyn Write) -> Result<(), Failure> {
    let least = whole_of(Bytes(MEMORY_MIN));
    if args.memory < least {
        let (memory, least) = (size(args.memory), size(least));
        return Err(Failure::Usage(format!(
            "--memory {memory}: must be at least {least}, which the least mount takes"
        )));
    }
    if args.trace.exists() && !args.trace.is_file() || named(Some(&args.trace)).is_none() {
        let why = "no regular file: each simulation of advise reads it again";
        return Err(Failure::unusable(&args.trace, why));
    }
    check_names(args)?;
    let summary = summary(args)?;
    let base = base(args, &summary);
    let checked = Simulations::default().of(&base, &Own::new());
    checked.map_err(|refused| Failure::Usage(refused.why))?;
    let memories = memories(summary.distinct_blocks * PAGE, args.memory.0);
    let with = |more: &[(&str, String)]| {
        let mut values = base.clone();
        values.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        values
    };
    let blocks = |bytes: u64| ("cache-blocks", (bytes / PAGE).to_string());
    let plan = PRESETS.iter().flat_map(|preset| {
        let of = |bytes: &u64| with(&[("preset", (*preset).to_owned()), blocks(*bytes)]);
        memories.iter().map(of).collect::<Vec<Values>>()
    });
    let mut rows = rows(plan.collect(), args)?;
    let chart = chart(&rows)?;
    let Some(best) = answer(&chart, WITHIN).filter(|best| best.place.memory.is_some()) else {
        return Err(Failure::Run(format!(
            "{}: no run has a result",
            args.trace.display()
        )));
    };
    let chosen = best.place.memory.unwrap_or(0.0) as u64;
    let plan = DEPTHS.iter().map(|depth| {
        let depth = ("depth", format!("fixed(depth_bytes={depth})"));
        with(&[("preset", KERNEL.to_owned()), depth, blocks(chosen)])
    });
    let mut depths = self::rows(plan.collect(), args)?;
    for row in &mut depths {
        row.insert(CONSTANT_DEPTH.to_owned(), json!(true));
    }
    let advice = Advice {
        args,
        summary: &summary,
        chart: &chart,
        preset: &best.line.name,
        place: best.place,
        is_near: best.is_within_all,
        equals: &best.equals,
        depths: &depths,
    };
    let text = match args.format {
        ListFormat::Table => advice.lines(rows.len()).join("\n") + "\n",
        ListFormat::Json => {
            let row = advice.row(rows.len());
            rows.extend(depths);
            rows.push(row);
            rows.into_iter()
                .map(|row| format!("{}\n", Value::Object(row)))
                .collect()
        }
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

/// Runs are named by the files that they read, in text.
fn check_names(args: &Advise) -> Result<(), Failure> {
    let read = std::iter::once(&args.trace).chain(&args.device_file);
    let mut read = read.chain(&args.reading.merge);
    match read.find(|path| path.to_str().is_none()) {
        Some(path) => Err(Failure::unusable(
            path,
            "its name is not UTF-8, as the names of files that advise reads must be",
        )),
        None => Ok(()),
    }
}

/// Counts of the trace, in pages.
fn summary(args: &Advise) -> Result<Summary, Failure> {
    let records = logs(&args.trace, &args.reading)?;
    let (mut writes, mut has_names) = (0_u64, false);
    let kept = records.filter(|record| {
        let is_left_out =
            !args.writes && record.as_ref().is_ok_and(|record| record.op == Op::Write);
        writes += u64::from(is_left_out);
        has_names |= record.as_ref().is_ok_and(|record| record.is_named);
        !is_left_out
    });
    let summary = Summary::of(kept, PAGE as u32, TRACE_MEMORY).map_err(|e| match e {
        SummaryError::Read(error) => unreadable(&error),
        SummaryError::Memory { blocks, .. } => {
            Failure::unusable(&args.trace, format!("more than {blocks} different pages"))
        }
    })?;
    if has_names {
        let why = "its blocks have names and no addresses, by which presets prefetch: there is nothing to advise but \
                   memory, which `forerun trace count` tells";
        return Err(Failure::unusable(&args.trace, why));
    }
    match (summary.requests, writes) {
        (0, 0) => Err(Failure::unusable(&args.trace, "there is no read in it")),
        (0, _) => {
            let why = format!(
                "there is no read in it, only writes ({writes}), which --writes counts as reads"
            );
            Err(Failure::unusable(&args.trace, why))
        }
        _ => Ok(summary),
    }
}

/// Flags of all runs.
fn base(args: &Advise, summary: &Summary) -> Values {
    let mut values = args.reading.values();
    let mut put = |name: &str, value: String| values.insert(name.to_owned(), value);
    put("trace", args.trace.display().to_string());
    match &args.device_file {
        Some(path) => put("device-file", path.display().to_string()),
        None => put("device", args.device.clone()),
    };
    let is_timed = summary.timed == summary.requests;
    for (name, value) in [
        ("disks", "1"),
        ("block-bytes", "4KiB"),
        ("readers-by", "device"),
        ("loop", if is_timed { "paced" } else { "closed" }),
        ("preset", KERNEL),
    ] {
        put(name, value.to_owned());
    }
    if args.writes {
        put("writes", "true".to_owned());
    }
    values
}

/// Powers of two, up to one that holds all blocks and their bookkeeping; a mount with the largest stays within the limit.
fn memories(footprint: u64, most: u64) -> Vec<u64> {
    let enough = (footprint + footprint / 8)
        .next_power_of_two()
        .max(8 * MEMORY_MIN);
    let last = enough.min(most).max(MEMORY_MIN);
    let all = (0..40)
        .map(|shift| MEMORY_MIN << shift)
        .take_while(|bytes| *bytes <= last && whole_of(Bytes(*bytes)).0 <= most);
    let all: Vec<u64> = all.collect();
    let skipped = all.len().saturating_sub(MEMORIES_MAX);
    all.into_iter().skip(skipped).collect()
}

/// The memory of a mount whose engine has so much.
fn whole_of(engine: Bytes) -> Bytes {
    #[cfg(feature = "mount")]
    return crate::mount::budget::Budget::whole_of(engine);
    #[cfg(not(feature = "mount"))]
    engine
}

/// The rows of these runs, in the order of the plan. A run may fail, as one with too little memory does.
fn rows(plan: Vec<Values>, args: &Advise) -> Result<Vec<Row>, Failure> {
    let cells = cells(plan, &Own::new())?;
    let done = Mutex::new(Vec::new());
    let take = |row: Row| {
        if let Ok(mut done) = done.lock() {
            done.push(row);
        }
        Ok(())
    };
    run_all(
        &cells.iter().collect::<Vec<_>>(),
        &Stamp::of("advise", Path::new(PROGRAM)),
        args.threads,
        &take,
    )?;
    let mut rows = done.into_inner().unwrap_or_default();
    let place = |row: &Row| {
        cells
            .iter()
            .position(|cell| row.get("key") == Some(&json!(cell.key)))
    };
    rows.sort_by_key(place);
    if let Some(error) = rows
        .iter()
        .all(|row| row.contains_key(ERROR))
        .then(|| rows.first())
        .flatten()
    {
        let error = error.get(ERROR).and_then(Value::as_str).unwrap_or_default();
        return Err(Failure::Usage(error.to_owned()));
    }
    rows.retain(|row| !row.contains_key(ERROR));
    Ok(rows)
}

/// All rows are of one input on one device.
fn chart(rows: &[Row]) -> Result<Chart, Failure> {
    let points = points(&rows.iter().collect::<Vec<_>>());
    let first = charts(&points).into_iter().next();
    first.ok_or_else(|| Failure::Run("no run has a result".to_owned()))
}

struct Advice<'a> {
    args: &'a Advise,
    summary: &'a Summary,
    chart: &'a Chart,
    preset: &'a str,
    place: &'a Place,
    is_near: bool,
    equals: &'a [&'a str],
    depths: &'a [Row],
}

/// A value of a place.
fn of(place: &Place, metric: Metric) -> Option<f64> {
    Some(place.values.get(&metric)?.value)
}

fn figures(place: &Place) -> String {
    let with = |metric, unit| {
        of(place, metric).map_or("-".to_owned(), |value| format!("{}{unit}", number(value)))
    };
    format!(
        "p99 {}, {}, miss ratio {}",
        with(Metric::P99, " ms"),
        with(Metric::Throughput, " MB/s"),
        with(Metric::MissRatio, "")
    )
}

impl Advice<'_> {
    fn bytes(&self) -> f64 {
        self.place.memory.unwrap_or(0.0)
    }

    /// Whether it takes a mount: nothing read ahead, or the kernel's own readahead, is had without one.
    fn is_mount(&self) -> bool {
        !matches!(self.preset, NONE | KERNEL)
    }

    /// A preset at so many times the chosen memory.
    fn at(&self, preset: &str, times: f64) -> Option<&Place> {
        self.chart.at(preset, Some(self.bytes() * times))
    }

    fn lines(&self, runs: usize) -> Vec<String> {
        let (summary, args) = (self.summary, self.args);
        let duration = summary.duration_ns() as f64 / 1e9;
        let when = match summary.timed == summary.requests {
            true => format!(" in {} s, begun at their times", number(duration)),
            false => ", back to back, as it has no times".to_owned(),
        };
        let device = args
            .device_file
            .as_ref()
            .map_or(args.device.clone(), |path| path.display().to_string());
        let whole = size(whole_of(Bytes(self.bytes() as u64)));
        let mut lines = vec![
            format!(
                "trace: {} reads{} from {} files{when}; {} different bytes",
                summary.requests,
                match summary.bytes {
                    // Its lines have no lengths.
                    0 => String::new(),
                    bytes => format!(" of {}", rough_size(bytes as f64)),
                },
                summary.devices,
                rough_size(summary.distinct_blocks as f64 * PAGE as f64)
            ),
            format!("device: {device}"),
            format!(
                "preset and memory: {} with {}{}{}",
                self.preset,
                memory(self.bytes()),
                match self.preset {
                    NONE => ": reading ahead does not help this load".to_owned(),
                    KERNEL => String::new(),
                    _ => format!(", for which a mount takes {whole}"),
                },
                match self.equals {
                    [] => String::new(),
                    equals => format!("; as good with it: {}", equals.join(", ")),
                }
            ),
        ];
        if self.is_mount() {
            lines.push(format!(
                "command: forerun mount --preset {} --memory {whole} SOURCE MOUNTPOINT",
                self.preset
            ));
        }
        lines.extend([
            format!("depth: {}", self.depth()),
            format!("gives: {}", figures(self.place)),
            format!(
                "kernel readahead of 128 KiB in the same memory: {}",
                self.beside_kernel()
            ),
            format!("twice the memory: {}", self.other_memory(2.0)),
            format!(
                "half the memory: {}{}",
                self.other_memory(0.5),
                self.beyond()
            ),
        ]);
        if let Some(over) = of(self.place, Metric::OverBound) {
            let bound = self.place.bound.as_deref().unwrap_or("bound");
            lines.push(format!(
                "distance from the least possible time ({bound}): {over:.3} times"
            ));
        }
        let near = match self.is_near {
            true => "the smallest memory within 5 % of the best throughput and p99",
            false => {
                "none is within 5 % of the best in both; of those within it in throughput, the least p99"
            }
        };
        lines.push(format!("chosen from {runs} simulations: {near}"));
        lines
    }

    /// The preset's method, and the best of constant depths.
    fn depth(&self) -> String {
        let method = forerun_baselines::preset(self.preset)
            .map_or("-".to_owned(), |preset| preset.depth.to_string());
        let points = points(&self.depths.iter().collect::<Vec<_>>());
        let p99 = |values: &std::collections::BTreeMap<Metric, f64>| {
            let key = [Metric::P99, Metric::OverBound].map(|metric| values.get(&metric).copied());
            key.into_iter()
                .map(|value| value.unwrap_or(f64::INFINITY))
                .collect::<Vec<_>>()
        };
        let best = points.iter().zip(self.depths).min_by(|(a, _), (b, _)| {
            let order = p99(&a.values).into_iter().zip(p99(&b.values));
            let mut order = order.map(|(a, b)| a.total_cmp(&b));
            order
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let Some((point, row)) = best else {
            return method;
        };
        let depth = row
            .get("settings")
            .and_then(|settings| settings.get("depth")?.as_str());
        let bytes = depth.and_then(|depth| {
            depth
                .split_once('=')?
                .1
                .trim_end_matches(')')
                .parse::<f64>()
                .ok()
        });
        let p99 = point
            .values
            .get(&Metric::P99)
            .map_or("-".to_owned(), |value| format!("{} ms", number(*value)));
        let better = match self.is_beaten_by(&point.values) {
            true => ", better than the advised: the kernel has it without a mount",
            false => "",
        };
        format!(
            "{method}; of {} constant ones {} is the best (p99 {p99}){better}",
            self.depths.len(),
            bytes.map_or("-".to_owned(), memory)
        )
    }

    /// Whether figures have a p99 that is shorter to a program, and the same throughput.
    fn is_beaten_by(&self, values: &std::collections::BTreeMap<Metric, f64>) -> bool {
        let own = |metric| of(self.place, metric);
        let of = |metric| values.get(&metric).copied();
        let rates = of(Metric::Throughput).zip(own(Metric::Throughput));
        let waits = of(Metric::P99).zip(own(Metric::P99));
        let is_as_fast = rates.is_none_or(|(other, own)| other >= own * (1.0 - WITHIN));
        is_as_fast
            && waits.is_some_and(|(other, own)| other < (own - SEEN).min(own * (1.0 - WITHIN)))
    }

    fn beside_kernel(&self) -> String {
        let Some(kernel) = self.at(KERNEL, 1.0).filter(|_| self.preset != KERNEL) else {
            return "it is the one advised: no mount is needed".to_owned();
        };
        let verdict = if self.is_mount() && self.is_like(kernel) {
            ": a mount gains little"
        } else {
            ""
        };
        format!("{}{}{verdict}", figures(kernel), self.times(kernel))
    }

    /// Whether a place is as good and no better.
    fn is_like(&self, other: &Place) -> bool {
        [Metric::Throughput, Metric::P99].into_iter().all(|metric| {
            let pair = of(other, metric).zip(of(self.place, metric));
            pair.is_none_or(|(other, own)| {
                metric.is_within(other, own, WITHIN) && metric.is_within(own, other, WITHIN)
            })
        })
    }

    /// How many times the p99 and the throughput of a place are those of the choice.
    fn times(&self, other: &Place) -> String {
        let quotient = |metric| {
            let quotient = of(other, metric)? / of(self.place, metric)?;
            quotient
                .is_finite()
                .then(|| format!("{} times", number(quotient)))
        };
        match (quotient(Metric::P99), quotient(Metric::Throughput)) {
            _ if self.is_like(other) => "; within 5 % of the advised".to_owned(),
            (Some(p99), Some(rate)) => format!(" (p99 {p99}, throughput {rate})"),
            _ => String::new(),
        }
    }

    fn other_memory(&self, times: f64) -> String {
        match self.at(self.preset, times) {
            Some(place) => format!("{}{}", figures(place), self.times(place)),
            None => "not tried".to_owned(),
        }
    }

    /// Why less memory is not advised, though it is near to the advised: it is too far from the best.
    fn beyond(&self) -> &'static str {
        let half = self.at(self.preset, 0.5);
        match half.is_some_and(|half| self.is_like(half)) && self.is_near {
            true => ", not of the best with any memory",
            false => "",
        }
    }

    fn row(&self, runs: usize) -> Row {
        let value =
            |place: Option<&Place>, metric| json!(place.and_then(|place| of(place, metric)));
        let all = [
            (ADVICE, json!(self.lines(runs))),
            ("trace", json!(self.args.trace.display().to_string())),
            ("advised_preset", json!(self.preset)),
            ("advised_memory_bytes", json!(self.bytes() as u64)),
            ("p99_ms", value(Some(self.place), Metric::P99)),
            ("kernel_p99_ms", value(self.at(KERNEL, 1.0), Metric::P99)),
            (
                "twice_p99_ms",
                value(self.at(self.preset, 2.0), Metric::P99),
            ),
            ("is_within_5_percent", json!(self.is_near)),
        ];
        let all = all
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        all.collect::<Map<String, Value>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_powers_of_two_up_to_all_blocks_and_no_more_than_allowed() {
        let mib = |all: Vec<u64>| all.into_iter().map(|bytes| bytes >> 20).collect::<Vec<_>>();
        assert_eq!(mib(memories(1 << 20, 1 << 30)), [1, 2, 4, 8]);
        assert_eq!(mib(memories(20 << 20, 1 << 30)), [1, 2, 4, 8, 16, 32]);
        // Its mount takes more than the engine.
        let most = whole_of(Bytes(4 << 20)).0;
        assert_eq!(mib(memories(u64::MAX / 4, most)), [1, 2, 4]);
        assert_eq!(mib(memories(u64::MAX / 4, most - 1)), [1, 2]);
        assert_eq!(mib(memories(1 << 40, 1 << 30)).len(), MEMORIES_MAX);
    }
}
