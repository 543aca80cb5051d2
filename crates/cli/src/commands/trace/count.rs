//! `forerun trace count`: misses of replacement policies in caches of several capacities.
//!
//! The trace is read once and its references are kept; every policy and capacity is counted over them. A row a
//! policy and capacity.

use std::io::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use forerun_sim::count::counting::{Counter, Counting, Ratio, least_capacity, least_sample, left};
use forerun_sim::count::references::{Counted, References, ReferencesError, WHOLE};
use serde_json::{Map, Value, json};

use super::{counted, logs};
use crate::args::{Capacity, Format, TraceCount};
use crate::columns::{Columns, csv};
use crate::failure::Failure;
use crate::lines::name;
use crate::progress;
use crate::quantity::size;

/// Runs the command.
///
/// # Errors
/// A trace that cannot be read or kept, or a capacity that is none of it.
pub(super) fn run(args: &TraceCount, out: &mut dyn Write) -> Result<(), Failure> {
    let (rows, references) = count(args)?;
    print(&rows, args, &references, out)
}

/// The columns of all rows, policies by capacities.
///
/// # Errors
/// See [`run`].
pub fn objects(args: &TraceCount) -> Result<Vec<Map<String, Value>>, Failure> {
    let (rows, references) = count(args)?;
    let object = |row: &Row| {
        let columns = row.columns(args, &references).into_iter();
        columns
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    };
    Ok(rows.iter().map(object).collect())
}

fn count(args: &TraceCount) -> Result<(Vec<Row>, References), Failure> {
    let is_optimum = |(_, counter): &(String, Counter)| *counter == Counter::Optimum;
    if args.sizes && args.policy.0.iter().any(is_optimum) {
        let why = "--policy opt: no optimum is known for objects of several sizes (--sizes)";
        return Err(Failure::Usage(why.to_owned()));
    }
    let mut references = references(args)?;
    let capacities = capacities(args, &references)?;
    check_sample(args, &capacities)?;
    let policies = &args.policy.0;
    // The optimum last, which needs the memory of the references.
    let mut order: Vec<usize> = (0..policies.len()).collect();
    order.sort_by_key(|at| is_optimum(&policies[*at]));
    let last = order.pop();
    let mut counted: Vec<(usize, Vec<Counting>)> = Vec::new();
    for at in order {
        let counter = &policies[at].1;
        counted.push((at, counter.count(&references, &capacities, args.warm_up)));
    }
    if let Some(at) = last {
        let counter = &policies[at].1;
        let results = counter.count_last(&mut references, &capacities, args.warm_up);
        counted.push((at, results));
    }
    counted.sort_by_key(|(at, _)| *at);
    let mut rows = Vec::new();
    for (at, results) in counted {
        let results = capacities.iter().zip(results);
        rows.extend(results.map(|(capacity, counting)| Row {
            policy: policies[at].0.clone(),
            capacity: *capacity,
            counting,
        }));
    }
    Ok((rows, references))
}

/// All references of the trace, or those of the sample.
fn references(args: &TraceCount) -> Result<References, Failure> {
    let mut references = References::new(Counted {
        block_bytes: args.block_bytes,
        with_writes: args.writes,
        by_sizes: args.sizes,
        sample_per_million: args.sample.unwrap_or(WHOLE),
        memory_bytes: args.trace_memory.0,
    });
    let mut records = logs(&args.file, &args.reading)?;
    let bar = progress::steps_without_end("requests");
    let refused = |error: ReferencesError| match error {
        ReferencesError::Memory { .. } => {
            let memory = size(args.trace_memory);
            Failure::unusable(
                &args.file,
                format!("{error} in --trace-memory {memory} (--sample keeps fewer)"),
            )
        }
        other => Failure::unusable(&args.file, other),
    };
    for record in counted(&mut records, &bar) {
        let record = record.map_err(|error| super::unreadable(&error))?;
        references.add(&record).map_err(refused)?;
    }
    references.end().map_err(refused)?;
    bar.finish_and_clear();
    if references.writes() > 0 {
        let writes = references.writes();
        tracing::warn!(
            "{}: {writes} writes are left out (--writes)",
            args.file.display()
        );
    }
    if records.left_out() > 0 {
        let left_out = records.left_out();
        tracing::warn!(
            "{}: {left_out} requests that neither read nor write are left out",
            args.file.display()
        );
    }
    let why: String = match references.kept() {
        0 if args.sample.is_some() => {
            "--sample: none of its objects is in the sample; a larger part has some".into()
        }
        0 => "there is no reference in it to count".into(),
        kept if left(&references, args.warm_up) == 0 => {
            let (warm_up, all) = (args.warm_up, references.all());
            let of = match args.sample {
                Some(sample) => format!(", the sample of {} {kept} of them", percent(sample)),
                None => String::new(),
            };
            format!(
                "--warm-up {warm_up}: it has {all} references{of}, of which none is left to count"
            )
        }
        _ => return Ok(references),
    };
    Err(Failure::unusable(&args.file, why))
}

/// Each part of a sample has some of the least cache.
fn check_sample(args: &TraceCount, capacities: &[u64]) -> Result<(), Failure> {
    let (Some(sample), Some(cache)) = (args.sample, capacities.iter().min()) else {
        return Ok(());
    };
    let (least, unit) = (
        least_capacity(sample),
        if args.sizes { "bytes" } else { "objects" },
    );
    if *cache >= least {
        return Ok(());
    }
    let way_out = match least_sample(*cache) {
        Some(share) => format!("--sample {}", percent(share)),
        None => "count without --sample".to_owned(),
    };
    let flag = if args.curve.is_some() {
        "--curve"
    } else {
        "--cache"
    };
    Err(Failure::Usage(format!(
        "{flag}: of {cache} {unit} an eighth of a sample of {} has none, and no error could be told: take {least} {unit} \
         at least, or {way_out}",
        percent(sample)
    )))
}

/// A share in millionths, as `--sample` takes it.
fn percent(share: u32) -> String {
    format!("{}%", f64::from(share) / f64::from(WHOLE / 100))
}

/// The capacities, each a weight.
fn capacities(args: &TraceCount, references: &References) -> Result<Vec<u64>, Failure> {
    let footprint = references.footprint();
    if let Some(points) = args.curve {
        return Ok(curve(footprint, points));
    }
    let capacity = |capacity: &Capacity| match *capacity {
        Capacity::Share(share) => {
            let part = u128::from(footprint) * u128::from(share) / u128::from(WHOLE);
            Ok((part as u64).max(1))
        }
        Capacity::Objects(_) if args.sizes => {
            let why = "--cache: by --sizes a capacity is a share as 5% or a size as 64MiB";
            Err(Failure::Usage(why.to_owned()))
        }
        Capacity::Objects(objects) => Ok(objects),
        Capacity::Bytes(bytes) if args.sizes => Ok(bytes),
        Capacity::Bytes(bytes) => match bytes / u64::from(args.block_bytes) {
            0 => {
                let least = args.block_bytes;
                Err(Failure::Usage(format!(
                    "--cache {bytes} bytes: must hold a block of {least} bytes (--block-bytes)"
                )))
            }
            blocks => Ok(blocks),
        },
    };
    args.cache.iter().map(capacity).collect()
}

/// From a thousandth of a footprint to all of it, evenly apart in the logarithm; equal ones once.
fn curve(footprint: u64, points: u32) -> Vec<u64> {
    let (most, last) = (
        footprint.max(1) as f64,
        f64::from(points.saturating_sub(1).max(1)),
    );
    let point = |at: u32| {
        (most * 1000f64.powf(f64::from(at) / last - 1.0))
            .round()
            .max(1.0) as u64
    };
    let mut all: Vec<u64> = (0..points).map(point).collect();
    all.dedup();
    all
}

/// The trace and its further logs, as they were named.
fn trace(args: &TraceCount) -> String {
    let logs = std::iter::once(&args.file).chain(&args.reading.merge);
    let names: Vec<String> = logs.map(|path| name(path)).collect();
    names.join(" + ")
}

struct Row {
    policy: String,
    capacity: u64,
    counting: Counting,
}

impl Row {
    fn columns(&self, args: &TraceCount, references: &References) -> Columns {
        let (counts, is_sample) = (&self.counting.counts, args.sample.is_some());
        let error = |ratio: Ratio| is_sample.then_some(ratio.error);
        let share = self.capacity as f64 / references.footprint().max(1) as f64;
        let bytes = |value: Value| match args.sizes {
            true => value,
            false => Value::Null,
        };
        let unit = if args.sizes {
            "cache_bytes"
        } else {
            "cache_objects"
        };
        vec![
            ("trace", json!(trace(args))),
            ("part", json!(args.reading.part())),
            ("policy", json!(self.policy)),
            (unit, json!(self.capacity)),
            ("cache_share", json!(share)),
            ("references", json!(counts.references)),
            ("misses", json!(counts.misses)),
            ("miss_ratio", json!(self.counting.miss_ratio.value)),
            ("miss_ratio_error", json!(error(self.counting.miss_ratio))),
            ("bytes", bytes(json!(counts.weight))),
            ("missed_bytes", bytes(json!(counts.missed_weight))),
            (
                "byte_miss_ratio",
                bytes(json!(self.counting.byte_miss_ratio.value)),
            ),
            (
                "byte_miss_ratio_error",
                bytes(json!(error(self.counting.byte_miss_ratio))),
            ),
            ("sample_per_million", json!(args.sample.unwrap_or(WHOLE))),
            ("block_bytes", json!(args.block_bytes)),
            ("sizes", json!(args.sizes)),
            ("writes", json!(args.writes)),
            ("warm_up", json!(args.warm_up)),
        ]
    }
}

fn print(
    rows: &[Row],
    args: &TraceCount,
    references: &References,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let columns = rows.iter().map(|row| row.columns(args, references));
    let text = match args.format {
        Format::Table => table(rows, args, references),
        Format::Json => columns
            .map(|columns| {
                let columns = columns
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                format!("{}\n", Value::Object(columns.collect()))
            })
            .collect(),
        Format::Csv => csv(columns)?,
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

fn table(rows: &[Row], args: &TraceCount, references: &References) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    let unit = if args.sizes { "bytes" } else { "objects" };
    let mut head = ["policy", unit, "references", "misses"]
        .map(str::to_owned)
        .to_vec();
    head.push(match args.sample {
        // The misses of a sample are set against its share of all references, not against its own.
        Some(share) => format!(
            "miss ratio (misses of {} % of {})",
            f64::from(share) / f64::from(WHOLE / 100),
            references.all().saturating_sub(args.warm_up)
        ),
        None => "miss ratio".to_owned(),
    });
    if args.sizes {
        head.push("byte miss ratio".to_owned());
    }
    table.set_header(head);
    let ratio = |ratio: Ratio| match args.sample {
        Some(_) => format!("{:.4} +- {:.4}", ratio.value, ratio.error),
        None => format!("{:.4}", ratio.value),
    };
    for row in rows {
        let counts = &row.counting.counts;
        let mut cells = vec![row.policy.clone()];
        cells.extend(
            [row.capacity, counts.references, counts.misses].map(|count| count.to_string()),
        );
        cells.push(ratio(row.counting.miss_ratio));
        if args.sizes {
            cells.push(ratio(row.counting.byte_miss_ratio));
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
        .lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_a_thousandth_to_all() {
        assert_eq!(curve(1_000_000, 4), [1000, 10_000, 100_000, 1_000_000]);
        assert_eq!(curve(10, 4), [1, 10]);
        assert_eq!(curve(5, 1), [1]);
        assert_eq!(curve(0, 3), [1]);
    }
}
