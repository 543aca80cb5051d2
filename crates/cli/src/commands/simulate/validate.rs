//! `forerun simulate --validate`: a described drive against a measured trace of the real one.
//!
//! The replay and the distance are `forerun-sim`'s ([`validate`]). The output has, for all
//! requests, reads and writes, their number, both means and the rms distance; percentiles; and the
//! two distributions as a plot of characters: `m` measured, `o` modelled, `#` where they meet.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use forerun_core::Nanos;
use forerun_sim::device::Model;
use forerun_sim::device::hdd::Drawing;
use forerun_sim::validate::{self, Compared, Measured, ValidateError, mean_ms, percentile};
use serde_json::{Value, json};

use super::disk::disk;
use crate::args::{Format, Simulate, When};
use crate::commands::trace::source::Named;
use crate::commands::trace::{logs, unreadable};
use crate::failure::Failure;

/// Columns and lines of the plot.
const WIDE: usize = 64;
const HIGH: usize = 16;

/// Percentiles that are printed.
const PERCENTILES: [u32; 7] = [1, 10, 25, 50, 75, 90, 99];

/// Percentiles of an open loop.
const OPEN: [u32; 5] = [50, 90, 95, 99, 100];

/// Runs the command.
///
/// # Errors
/// A trace without measured times, a device that is no disk, or a request that is not on it.
pub(super) fn run(args: &Simulate, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(path) = &args.validate else {
        return Err(Failure::Usage("--validate takes a trace".to_owned()));
    };
    let drawing = drawing(args)?;
    let name = Named::new(path)?.name();
    match args.when {
        Some(When::Open) => return open_loop(args, path, &name, &drawing, out),
        Some(_) => {
            let why = "--loop: must be open, or left out for a trace of measured responses";
            return Err(Failure::Usage(why.to_owned()));
        }
        None => {}
    }
    let requests = validate::requests(logs(path, &args.reading)?, &drawing);
    let requests = requests.map_err(|e| refused(&name, e))?;
    let times = validate::replay(&drawing, &requests);
    let of = |is_in: fn(&Measured) -> bool| Compared::new(&requests, &times, is_in);
    let compared = [
        ("all", of(|_| true)),
        ("reads", of(|one| !one.access.is_write)),
        ("writes", of(|one| one.access.is_write)),
    ];
    let text = match args.format {
        Format::Table => table(&compared),
        Format::Csv => csv(&compared),
        Format::Json => compared
            .iter()
            .map(|part| format!("{}\n", row(part)))
            .collect(),
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

fn refused(name: &str, error: ValidateError) -> Failure {
    match error {
        ValidateError::Trace(error) => unreadable(&error),
        other => Failure::Usage(format!("{name}: {other}")),
    }
}

/// Responses at the recorded arrivals, a row each for all requests, reads and writes.
fn open_loop(
    args: &Simulate,
    path: &Path,
    name: &str,
    drawing: &Arc<Drawing>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let arrived = validate::arrive(logs(path, &args.reading)?, drawing);
    let arrived = arrived.map_err(|e| refused(name, e))?;
    let utilisation = arrived.busiest_per_mille as f64 / 1e3;
    let mut text = match args.format {
        Format::Table => format!("busiest drive: {utilisation} of the time\n"),
        Format::Csv => format!(
            "requests,count,mean_ms,{}\n",
            OPEN.map(|p| format!("p{p}_ms")).join(",")
        ),
        Format::Json => String::new(),
    };
    for (part, writes) in [
        ("all", None),
        ("reads", Some(false)),
        ("writes", Some(true)),
    ] {
        let is_in = |is_write: bool| writes.is_none_or(|writes| writes == is_write);
        let of_part = arrived
            .responses
            .iter()
            .filter(|(is_write, _)| is_in(*is_write));
        let mut times: Vec<Nanos> = of_part.map(|(_, time)| *time).collect();
        times.sort_unstable();
        let (count, mean) = (times.len(), thousandths(mean_ms(&times)));
        let at = OPEN.map(|percent| thousandths(milliseconds(percentile(&times, percent))));
        text += &match args.format {
            Format::Table => format!(
                "{part:8} {count:>9}  mean {mean:.3} ms  {}\n",
                OPEN.iter()
                    .zip(at)
                    .map(|(p, ms)| format!("p{p} {ms:.3}"))
                    .collect::<Vec<_>>()
                    .join("  ")
            ),
            Format::Csv => format!(
                "{part},{count},{mean},{}\n",
                at.map(|ms| ms.to_string()).join(",")
            ),
            Format::Json => {
                let row = json!({"requests": part, "count": count, "modelled_mean_ms": mean, "percentiles": OPEN,
                    "modelled_ms": at, "busiest_utilisation": utilisation});
                format!("{row}\n")
            }
        };
    }
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

/// The drive, which is a disk by itself.
fn drawing(args: &Simulate) -> Result<Arc<Drawing>, Failure> {
    let disk = disk(args)?;
    match disk.model() {
        Some(Model::Hdd(drawing)) => Ok(drawing),
        _ => Err(Failure::Usage(format!(
            "--validate: {} is not a disk of one model; give --device-file, or a built-in disk",
            disk.name()
        ))),
    }
}

type Part = (&'static str, Compared);

fn thousandths(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

fn milliseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

fn row((name, compared): &Part) -> Value {
    let at = |times: &[Nanos]| -> Vec<f64> {
        let of = |&percent| thousandths(milliseconds(percentile(times, percent)));
        PERCENTILES.iter().map(of).collect()
    };
    json!({
        "requests": *name,
        "count": compared.requests(),
        "measured_mean_ms": thousandths(mean_ms(compared.measured())),
        "modelled_mean_ms": thousandths(mean_ms(compared.modelled())),
        "distance_ms": thousandths(compared.distance_ms()),
        "percentiles": PERCENTILES,
        "measured_ms": at(compared.measured()),
        "modelled_ms": at(compared.modelled()),
    })
}

fn csv(parts: &[Part]) -> String {
    let mut text = "requests,count,measured_mean_ms,modelled_mean_ms,distance_ms\n".to_owned();
    for (name, compared) in parts {
        let [measured, modelled] = [compared.measured(), compared.modelled()].map(mean_ms);
        let (count, distance) = (compared.requests(), compared.distance_ms());
        text += &format!("{name},{count},{measured:.3},{modelled:.3},{distance:.3}\n");
    }
    text
}

fn table(parts: &[Part]) -> String {
    let mut text = format!(
        "{:8} {:>9} {:>14} {:>14} {:>16}\n",
        "requests", "count", "measured, ms", "modelled, ms", "rms distance, ms"
    );
    for (name, compared) in parts {
        let [measured, modelled] = [compared.measured(), compared.modelled()].map(mean_ms);
        let (count, distance) = (compared.requests(), compared.distance_ms());
        text +=
            &format!("{name:8} {count:>9} {measured:>14.3} {modelled:>14.3} {distance:>16.3}\n");
    }
    let Some((_, all)) = parts.first() else {
        return text;
    };
    text += &format!("\n{:10}", "percentile");
    for percent in PERCENTILES {
        text += &format!("{percent:>9}");
    }
    for (name, times) in [("measured", all.measured()), ("modelled", all.modelled())] {
        text += &format!("\n{name:10}");
        for percent in PERCENTILES {
            text += &format!("{:>9.3}", milliseconds(percentile(times, percent)));
        }
    }
    text += "\n\n";
    text + &plot(all)
}

/// The share of requests that took at most so long, of both.
fn plot(compared: &Compared) -> String {
    // The slowest hundredth would press all else against the left edge.
    let slowest = percentile(compared.measured(), 99).max(percentile(compared.modelled(), 99));
    let widest = milliseconds(slowest).max(1e-6);
    let column = |time: Nanos| {
        let at = milliseconds(time) / widest * (WIDE - 1) as f64;
        (at.round() as usize).min(WIDE - 1)
    };
    let mut text = String::new();
    for line in 0..HIGH {
        let percent = (100 * (HIGH - line) / HIGH) as u32;
        let mut cells = [' '; WIDE];
        // A line is all of the percentiles since the one below it.
        for within in (100 * (HIGH - line - 1) / HIGH) as u32 + 1..=percent.min(99) {
            let marks = [(compared.measured(), 'm'), (compared.modelled(), 'o')];
            for (times, mark) in marks {
                let cell = &mut cells[column(percentile(times, within))];
                *cell = match *cell {
                    ' ' => mark,
                    same if same == mark => mark,
                    _ => '#',
                };
            }
        }
        let cells: String = cells.iter().collect();
        text += format!("{percent:>4} % |{cells}").trim_end();
        text.push('\n');
    }
    text += &format!("       +{}\n", "-".repeat(WIDE));
    let (left, right) = ("0", format!("{widest:.1} ms"));
    text += &format!("        {left}{right:>width$}\n", width = WIDE - 1);
    text + "        m measured, o modelled, # both; up to the 99th percentile\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_sim::device::hdd::Access;

    #[test]
    fn the_plot_meets_where_the_times_are_equal_and_no_line_is_wider() {
        let requests: Vec<Measured> = (1..=200)
            .map(|ms| Measured {
                access: Access {
                    lbn: 0,
                    sectors: 1,
                    is_write: false,
                },
                gap: Nanos(0),
                response: Nanos(ms * 100_000),
            })
            .collect();
        let same: Vec<Nanos> = requests.iter().map(|one| one.response).collect();
        let drawn = plot(&Compared::new(&requests, &same, |_| true));
        let curve = drawn.lines().take(HIGH).collect::<String>();
        assert!(
            curve.contains('#') && !curve.contains('m') && !curve.contains('o'),
            "{drawn}"
        );
        let twice: Vec<Nanos> = same.iter().map(|time| Nanos(time.0 * 2)).collect();
        let drawn = plot(&Compared::new(&requests, &twice, |_| true));
        let curve = drawn.lines().take(HIGH).collect::<String>();
        assert!(curve.contains('m') && curve.contains('o'), "{drawn}");
        assert!(drawn.lines().all(|line| line.len() <= WIDE + 8), "{drawn}");
    }
}
