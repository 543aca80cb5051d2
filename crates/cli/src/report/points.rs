//! Points: rows of `simulate`, `sweep`, `bench`, `try` and `trace count`, one form for all.
//!
//! A chart is an input on a device; a line is a preset. Other columns belong to the chart's name where they differ among
//! rows of one input and device, and methods, blocks and other settings to the line's, so that two points of one line and
//! memory differ in their seed alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// A row.
pub type Row = Map<String, Value>;

/// Percentiles below, in milliseconds, are as good as any: some hits in memory.
pub const SMALL_MS: f64 = 0.1;

/// A measured quantity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Metric {
    Throughput,
    P99,
    MissRatio,
    OverBound,
}

impl Metric {
    /// All, in the order of the page.
    pub const LIST: [Self; 4] = [
        Self::Throughput,
        Self::P99,
        Self::MissRatio,
        Self::OverBound,
    ];

    /// As a figure's title has it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Throughput => "Throughput",
            Self::P99 => "99th percentile of responses",
            Self::MissRatio => "Miss ratio",
            Self::OverBound => "Time over the least possible",
        }
    }

    /// Its unit, at the axis.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "MB/s",
            Self::P99 => "ms",
            Self::MissRatio => "misses / reads",
            Self::OverBound => "times",
        }
    }

    /// In file names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P99 => "p99",
            Self::MissRatio => "miss-ratio",
            Self::OverBound => "over-bound",
        }
    }

    /// More of it is better.
    #[must_use]
    pub fn is_gain(self) -> bool {
        self == Self::Throughput
    }

    /// Whether one value is better than another.
    #[must_use]
    pub fn is_better(self, one: f64, other: f64) -> bool {
        match self.is_gain() {
            true => one > other,
            false => one < other,
        }
    }

    /// Whether a value is so near to the best one, a share of that.
    #[must_use]
    pub fn is_within(self, value: f64, best: f64, share: f64) -> bool {
        let bound = match self.is_gain() {
            true => best * (1.0 - share),
            false => best * (1.0 + share),
        };
        let is_small = self == Self::P99 && value < SMALL_MS;
        is_small || value == best || value == bound || self.is_better(value, bound)
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Input and device.
    pub chart: String,
    /// Preset.
    pub line: String,
    /// Its memory in bytes; none where that is not known.
    pub memory: Option<f64>,
    /// Its seed.
    pub seed: String,
    /// Its figures.
    pub values: BTreeMap<Metric, f64>,
    /// Least and most of the throughput among the runs that the row stands for.
    pub range: Option<(f64, f64)>,
    /// Its queue grew to the end.
    pub is_saturated: bool,
    /// Name of its bound.
    pub bound: Option<String>,
}

/// The column of disks, which rows of one disk may lack.
const DISKS: &str = "disks";

/// Columns that belong to a chart's name where they differ.
const SURROUNDINGS: [&str; 19] = [
    DISKS,
    "load",
    "scheduler",
    "place",
    "regions",
    "readers_by",
    "loop",
    "arrivals",
    "readers",
    "read_bytes",
    "clock",
    "driver",
    "writes",
    "part",
    "merge",
    "sample_per_million",
    "sizes",
    "warm_up",
    "compute_from",
];

/// Columns that belong to a line's name where they differ and no setting says the same: a block and a notice are those
/// of a preset.
const OWN: [&str; 2] = ["block_bytes", "notice"];

/// The column of all other flags of a simulation or an engine, which the settings of a sweep's row have.
const FLAGS: &str = "flags";

/// Settings that are no part of a line's name.
const KNOWN: [&str; 13] = [
    "preset",
    "cache-blocks",
    "seed",
    "trace",
    "workload",
    "device",
    "device-file",
    "trace-memory",
    "from",
    "until",
    "only-devices",
    "only-op",
    "only-processes",
];

fn text(row: &Row, name: &str) -> Option<String> {
    match row.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn float(row: &Row, name: &str) -> Option<f64> {
    row.get(name)?.as_f64()
}

fn setting(row: &Row, name: &str) -> Option<String> {
    text(row.get("settings")?.as_object()?, name)
}

/// The input: of a workload without the seed that a plan gave it.
fn input(row: &Row) -> String {
    let named = ["trace", "workload"];
    let told = named.iter().find_map(|name| setting(row, name));
    let told = told.or_else(|| named.iter().find_map(|name| text(row, name)));
    told.or_else(|| text(row, "pattern"))
        .unwrap_or_else(|| "a trace".to_owned())
}

fn place(row: &Row) -> String {
    match (text(row, "device"), text(row, "clock")) {
        (Some(device), Some(clock)) => format!("{} on {device}, {clock} time", input(row)),
        (Some(device), None) => format!("{} on {device}", input(row)),
        (None, Some(clock)) => format!("{}, {clock} time", input(row)),
        (None, None) => input(row),
    }
}

/// The column of a throughput that was measured.
const RATE: &str = "throughput_bytes_per_second";

/// Whether a row is one.
#[must_use]
pub fn is_point(row: &Row) -> bool {
    let has = |name| row.contains_key(name);
    let is_measured = ["elapsed_ns", "elapsed_units", RATE].into_iter().any(has);
    (has("preset") && is_measured) || (has("policy") && has("miss_ratio"))
}

/// The points of these rows, in their order.
#[must_use]
pub fn points(rows: &[&Row]) -> Vec<Point> {
    let parts = |row: &&Row| (String::new(), place(row), surroundings(row));
    let charts = names(rows.iter().map(parts).collect());
    let preset = |row: &Row| text(row, "preset").or_else(|| text(row, "policy"));
    let parts = |(row, chart): (&&Row, &String)| {
        let preset = preset(row).unwrap_or_default();
        (chart.clone(), preset, own(row))
    };
    let lines = names(rows.iter().zip(&charts).map(parts).collect());
    let all = rows.iter().zip(charts).zip(lines);
    all.map(|((row, chart), line)| point(row, chart, line))
        .collect()
}

/// The parts of a chart's name. A row from before a column has it not set either, and one disk.
fn surroundings(row: &Row) -> BTreeMap<String, String> {
    let value = |name: &str| text(row, name).or_else(|| (name == DISKS).then(|| "1".to_owned()));
    let of = |name: &&str| Some(((*name).to_owned(), value(name)?));
    let all = SURROUNDINGS.iter().filter_map(of);
    all.filter(|(_, value)| value != "false").collect()
}

/// These rows as they are named beside others, which may be of a version before some of the columns: without columns that
/// all the others lack, as far as runs of one input and preset do not differ in them.
#[must_use]
pub fn comparable(rows: &[&Row], others: &[&Row]) -> Vec<Row> {
    let lacks = |name: &&str| !others.iter().any(|other| other.contains_key(*name));
    let columns = SURROUNDINGS.into_iter().chain(OWN).chain(["device", FLAGS]);
    let lacking: Vec<&str> = columns
        .filter(lacks)
        .filter(|_| !others.is_empty())
        .collect();
    let run = |row: &Row| (input(row), text(row, "clock"), text(row, "preset"));
    let mut values: BTreeMap<_, BTreeSet<Option<String>>> = BTreeMap::new();
    for row in rows {
        for name in &lacking {
            let of = values.entry((run(row), *name)).or_default();
            of.insert(text(row, name));
        }
    }
    let named = |row: &&Row| {
        let mut row = (*row).clone();
        for name in &lacking {
            let of = values.get(&(run(&row), *name));
            if of.is_some_and(|values| values.len() == 1) {
                row.remove(*name);
            }
        }
        row
    };
    rows.iter().map(named).collect()
}

/// The parts of a line's name.
fn own(row: &Row) -> BTreeMap<String, String> {
    let settings = row.get("settings").and_then(Value::as_object);
    let is_told = |name: &str| {
        settings.is_some_and(|settings| settings.contains_key(&name.replace('_', "-")))
    };
    let flags = settings.is_none().then_some(FLAGS);
    let columns = OWN.into_iter().filter(|name| !is_told(name)).chain(flags);
    let columns = columns.filter_map(|name| Some((name.replace('_', "-"), text(row, name)?)));
    let is_own = |name: &str| {
        !KNOWN.contains(&name) && !SURROUNDINGS.contains(&name.replace('-', "_").as_str())
    };
    let settings = settings.into_iter().flatten();
    let settings = settings.filter(|(name, _)| is_own(name));
    let settings = settings.map(|(name, value)| (name.clone(), plain(value)));
    settings.chain(columns).collect()
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// A group of rows, the base of the names in it, and their other parts.
type Parts = (String, String, BTreeMap<String, String>);

/// A name for each row: its base, and of its other parts those that differ among rows of the same group and base.
fn names(all: Vec<Parts>) -> Vec<String> {
    let mut values: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    let mut seen: BTreeMap<_, usize> = BTreeMap::new();
    for (group, base, parts) in &all {
        *counts.entry((group, base)).or_default() += 1;
        for (name, value) in parts {
            let of = (group, base, name);
            values.entry(of).or_default().insert(value);
            *seen.entry(of).or_default() += 1;
        }
    }
    let name = |(group, base, parts): &Parts| {
        let differs = |name| {
            let of = (group, base, name);
            values.get(&of).is_some_and(|values| values.len() > 1)
                || seen.get(&of) < counts.get(&(group, base))
        };
        let parts = parts.iter().filter(|(name, _)| differs(name));
        parts.fold(base.clone(), |all, (name, value)| {
            format!("{all}, {} {value}", name.replace('_', " "))
        })
    };
    all.iter().map(name).collect()
}

fn point(row: &Row, chart: String, line: String) -> Point {
    let mut values = BTreeMap::new();
    let mut put = |metric, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            values.insert(metric, value);
        }
    };
    let simulated = || {
        let seconds = float(row, "elapsed_ns").filter(|ns| *ns > 0.0)? / 1e9;
        Some(float(row, "reads")? * float(row, "block_bytes")? / seconds / 1e6)
    };
    let per_second = |name| Some(float(row, name)? / 1e6);
    put(Metric::Throughput, per_second(RATE).or_else(simulated));
    let is_saturated = row.get("saturated") == Some(&Value::Bool(true));
    if let Some(ns) = float(row, "response_p99_ns").filter(|_| !is_saturated) {
        put(Metric::P99, Some(ns / 1e6));
    }
    let counted = || {
        let misses = float(row, "misses")? + float(row, "late_hits")?;
        let reads = misses + float(row, "hits")?;
        (reads > 0.0).then(|| misses / reads)
    };
    put(Metric::MissRatio, float(row, "miss_ratio").or_else(counted));
    put(Metric::OverBound, float(row, "over_bound"));
    let told = |name| Some(float(row, name)? / 1e6);
    let told = || {
        let least = told("throughput_least_bytes_per_second")?;
        Some((least, told("throughput_most_bytes_per_second")?))
    };
    let range = || {
        let bytes = float(row, "bytes")?;
        let rate = |name| Some(bytes / float(row, name).filter(|ns| *ns > 0.0)? * 1e3);
        Some((rate("elapsed_most_ns")?, rate("elapsed_least_ns")?))
    };
    let memory = ["cache_bytes", "memory_bytes"];
    let objects = || Some(float(row, "cache_objects")? * float(row, "block_bytes")?);
    Point {
        chart,
        line,
        memory: memory
            .iter()
            .find_map(|name| float(row, name))
            .or_else(objects)
            .filter(|bytes| *bytes > 0.0),
        seed: text(row, "seed").unwrap_or_default(),
        values,
        range: range().or_else(told),
        is_saturated,
        bound: text(row, "bound_kind"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: Value) -> Row {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn only_columns_that_differ_are_named_and_seeds_never_are() {
        let of = |preset: &str, disks: u64, depth: &str, seed: &str| {
            row(json!({
                "preset": preset, "device": "ssd", "disks": disks, "elapsed_ns": 1_000_000_000, "reads": 1000,
                "block_bytes": 4096, "cache_bytes": 1 << 20, "workload": format!("w(seed={seed})"),
                "settings": {"workload": "w", "depth": depth, "seed": seed},
            }))
        };
        let rows = [
            of("a", 1, "x", "1"),
            of("a", 1, "y", "2"),
            of("b", 2, "x", "1"),
        ];
        let points = points(&rows.iter().collect::<Vec<_>>());
        let names: Vec<_> = points
            .iter()
            .map(|p| (p.chart.as_str(), p.line.as_str()))
            .collect();
        assert_eq!(
            names,
            [
                ("w on ssd, disks 1", "a, depth x"),
                ("w on ssd, disks 1", "a, depth y"),
                ("w on ssd, disks 2", "b")
            ]
        );
        assert_eq!(points[0].values[&Metric::Throughput], 4.096);
    }

    #[test]
    fn runs_of_other_blocks_notices_flags_and_computing_are_points_of_their_own() {
        let of = |name: &str, value: Value| {
            let mut row = row(json!({
                "preset": "forestall", "device": "ssd", "trace": "t", "elapsed_ns": 1, "cache_bytes": 1 << 20,
                "block_bytes": 4096, "notice": "at-once", "flags": null, "compute_from": "trace",
            }));
            row.insert(name.to_owned(), value);
            row
        };
        let swept = |name: &str, value: &str, column: Value| {
            let mut row = of(&name.replace('-', "_"), column);
            row.insert("trace".to_owned(), json!("s"));
            row.insert("settings".to_owned(), json!({"trace": "s", name: value}));
            row
        };
        let rows = [
            of("block_bytes", json!(8192)),
            of("notice", json!("at-reads")),
            of("flags", json!("driver 0ns")),
            of("compute_from", json!("think")),
            // The engine counts in pages, whatever the block.
            swept("block-bytes", "4KiB", json!(4096)),
            swept("block-bytes", "8KiB", json!(4096)),
        ];
        let points = points(&rows.iter().collect::<Vec<_>>());
        let name = |point: &Point| format!("{}: {}", point.chart, point.line);
        let names: BTreeSet<String> = points.iter().map(name).collect();
        assert_eq!(names.len(), rows.len(), "{names:?}");
        for part in [
            "s on ssd: forestall, block-bytes 8KiB",
            "t on ssd, compute from trace: forestall, block-bytes 4096, notice at-reads",
        ] {
            assert!(
                names.iter().any(|name| name.starts_with(part)),
                "{part}: {names:?}"
            );
        }
    }

    #[test]
    fn rows_from_before_a_column_are_of_the_chart_in_which_it_is_false() {
        let of = |writes: Value| {
            let mut row = row(json!({"preset": "a", "trace": "t", "elapsed_ns": 1}));
            row.insert("writes".to_owned(), writes);
            row
        };
        let mut rows = [of(Value::Null), of(json!(false)), of(json!(true))];
        rows[0].remove("writes");
        let charts = points(&rows.iter().collect::<Vec<_>>());
        let charts: Vec<_> = charts.into_iter().map(|point| point.chart).collect();
        assert_eq!(charts, ["t", "t", "t, writes true"]);
    }

    #[test]
    fn rows_from_before_a_column_of_disks_have_one() {
        let of = |disks: Value| {
            let mut row = row(json!({"preset": "a", "trace": "t", "elapsed_ns": 1}));
            row.insert("disks".to_owned(), disks);
            row
        };
        let mut rows = [of(Value::Null), of(json!(1)), of(json!(2))];
        rows[0].remove("disks");
        let charts = points(&rows.iter().collect::<Vec<_>>());
        let charts: Vec<_> = charts.into_iter().map(|point| point.chart).collect();
        assert_eq!(charts, ["t, disks 1", "t, disks 1", "t, disks 2"]);
    }

    #[test]
    fn a_column_that_all_others_lack_is_kept_where_runs_differ_in_it() {
        let of = |pattern: &str, device: &str, load: Value| {
            row(
                json!({"preset": "a", "pattern": pattern, "device": device, "load": load, "elapsed_ns": 1}),
            )
        };
        let rows = [
            of("seq", "x", Value::Null),
            of("random", "x", Value::Null),
            of("random", "y", Value::Null),
        ];
        let rows: Vec<&Row> = rows.iter().collect();
        let before = row(json!({"preset": "a", "pattern": "seq", "elapsed_ns": 1}));
        let has = |row: &Row| (row.contains_key("device"), row.contains_key("load"));
        let named: Vec<_> = comparable(&rows, &[&before]).iter().map(has).collect();
        assert_eq!(named, [(false, false), (true, false), (true, false)]);
        // One of the others has the column: its runs are of a device that is known.
        let known = of("seq", "z", Value::Null);
        for others in [&[&before, &known][..], &[]] {
            let named: Vec<_> = comparable(&rows, others).iter().map(has).collect();
            assert_eq!(named, [(true, true); 3]);
        }
    }

    #[test]
    fn what_differs_between_charts_alone_is_in_no_name_of_a_line() {
        let of = |trace: &str, block: u64| {
            row(json!({"preset": "a", "trace": trace, "block_bytes": block, "elapsed_ns": 1}))
        };
        let rows = [of("t", 4096), of("s", 8192), of("r", 4096), of("r", 8192)];
        let lines = points(&rows.iter().collect::<Vec<_>>());
        let lines: Vec<_> = lines.into_iter().map(|point| point.line).collect();
        let expected = ["a", "a", "a, block-bytes 4096", "a, block-bytes 8192"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_saturated_run_has_no_percentile() {
        let row =
            row(json!({"preset": "a", "elapsed_ns": 1, "saturated": true, "response_p99_ns": 5}));
        let points = points(&[&row]);
        assert!(points[0].is_saturated && !points[0].values.contains_key(&Metric::P99));
    }
}
