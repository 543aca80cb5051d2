//! `forerun trace`: the contents of a trace, and the same trace in another format.
//!
//! Reading, counting and converting are `forerun-sim`'s; here is their output. Every error of a
//! trace is exit code 2 with file and line, because nothing was tried with it yet. Losses of a
//! conversion are told on standard error, never in the output.

pub mod count;
pub mod source;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use forerun_sim::trace::convert::{ConvertError, Converted, convert};
use forerun_sim::trace::{Filter, Logs, Record, Summary, SummaryError, TraceError, read};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::args::{ListFormat, Reading, Trace, TraceCommand, TraceConvert, TraceInfo, TraceSample};
use crate::failure::Failure;
use crate::files::{self, NewFile, plain};
use crate::progress::{self, REQUESTS_PER_STEP};
use crate::quantity::size;
use source::{Named, Stream};

/// Runs the command.
///
/// # Errors
/// A trace that cannot be read, or that the format cannot hold.
pub fn run(args: &Trace, out: &mut dyn Write) -> Result<(), Failure> {
    match &args.what {
        TraceCommand::Info(args) => info(args, out),
        TraceCommand::Count(args) => count::run(args, out),
        TraceCommand::Convert(args) => to_format(args, out),
        TraceCommand::Sample(args) => sample(args, out),
    }
}

/// The trace of the arguments; its format is known then.
///
/// # Errors
/// A file that cannot be read or is of no known format, a part that is none.
pub fn logs(path: &Path, reading: &Reading) -> Result<Logs, Failure> {
    let filter = reading.filter()?;
    let opened = Named::all(path, &reading.merge)?.into_iter().map(|log| {
        let bytes = log.open()?;
        Ok((log.name(), bytes))
    });
    let opened = opened.collect::<Result<Vec<_>, Failure>>()?;
    opened_logs(opened, reading, filter).map_err(|e| unreadable(&e))
}

/// Reads a trace up to the first request that is wanted.
///
/// # Errors
/// See [`logs`]; there is no such request.
pub fn first_request(path: &Path, reading: &Reading) -> Result<Option<Record>, Failure> {
    let first = logs(path, reading)?.next();
    first.transpose().map_err(|e| unreadable(&e))
}

/// Logs of these names that were opened.
///
/// # Errors
/// One that is of no known format.
pub fn opened_logs(
    opened: Vec<(String, Stream)>,
    reading: &Reading,
    filter: Filter,
) -> Result<Logs, TraceError> {
    let (format, options) = (reading.trace_format, reading.options());
    let logs = opened
        .into_iter()
        .map(|(name, bytes)| read(&name, bytes, format, &options));
    Ok(Logs::new(logs.collect::<Result<_, _>>()?, filter))
}

/// An error of a trace, as the command's end.
#[must_use]
pub fn unreadable(error: &TraceError) -> Failure {
    Failure::Usage(error.to_string())
}

fn info(args: &TraceInfo, out: &mut dyn Write) -> Result<(), Failure> {
    let mut records = logs(&args.file, &args.reading)?;
    let bar = progress::steps_without_end("requests");
    let requests = counted(&mut records, &bar);
    let summary = Summary::of(requests, args.block_bytes, args.trace_memory);
    bar.finish_and_clear();
    let summary = summary.map_err(|e| match e {
        SummaryError::Read(error) => unreadable(&error),
        SummaryError::Memory { blocks, devices } => Failure::unusable(
            &args.file,
            format!(
                "no room for {blocks} different blocks of {devices} devices in --trace-memory {}; \
                 larger --block-bytes are fewer",
                size(args.trace_memory)
            ),
        ),
    })?;
    let all = rows(&summary, &records, args.block_bytes);
    let text = match args.format {
        ListFormat::Json => {
            let all = all.into_iter().map(|(key, value)| (key.to_owned(), value));
            format!("{}\n", Value::Object(all.collect()))
        }
        ListFormat::Table => {
            let line = |(key, value): (&str, Value)| match value {
                Value::String(text) => format!("{key:21} {text}\n"),
                number => format!("{key:21} {number}\n"),
            };
            all.into_iter().map(line).collect()
        }
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

/// The requests, the bar moving with them.
fn counted<'a>(
    records: &'a mut Logs,
    bar: &'a ProgressBar,
) -> impl Iterator<Item = <Logs as Iterator>::Item> + 'a {
    (1u64..).zip(records).map(|(at, record)| {
        if at.is_multiple_of(REQUESTS_PER_STEP) {
            bar.inc(REQUESTS_PER_STEP);
        }
        record
    })
}

/// The formats of the logs, each once.
fn formats(records: &Logs) -> String {
    let mut names: Vec<&str> = Vec::new();
    for format in records.formats() {
        if !names.contains(&format.name) {
            names.push(format.name);
        }
    }
    names.join(", ")
}

fn rows(summary: &Summary, records: &Logs, block_bytes: u32) -> Vec<(&'static str, Value)> {
    vec![
        ("format", json!(formats(records))),
        ("requests", json!(summary.requests)),
        ("reads", json!(summary.reads)),
        ("writes", json!(summary.writes)),
        ("devices", json!(summary.devices)),
        ("processes", json!(summary.processes)),
        ("bytes", json!(summary.bytes)),
        ("request_bytes_min", json!(summary.least_bytes)),
        ("request_bytes_mean", json!(summary.mean_bytes())),
        ("request_bytes_max", json!(summary.most_bytes)),
        ("block_bytes", json!(block_bytes)),
        ("references", json!(summary.references)),
        ("distinct_blocks", json!(summary.distinct_blocks)),
        ("span_blocks", json!(summary.span_blocks)),
        (
            "sequential_per_mille",
            json!(summary.sequential_per_mille()),
        ),
        ("timed", json!(summary.timed)),
        ("duration_ns", json!(summary.duration_ns())),
        ("compute_ns", json!(summary.compute_ns)),
        ("answered", json!(summary.answered)),
        ("response_ns", json!(summary.response_ns)),
        ("out_of_order", json!(records.moved())),
        ("left_out", json!(records.left_out())),
        ("unwanted", json!(records.unwanted())),
    ]
}

fn sample(args: &TraceSample, out: &mut dyn Write) -> Result<(), Failure> {
    let text = (args.sample.text)();
    match files::named(args.output.as_deref()) {
        None => out
            .write_all(text.as_bytes())
            .map_err(|e| Failure::output(&e)),
        Some(path) => NewFile::create(path)?.write(text.as_bytes()),
    }
}

fn to_format(args: &TraceConvert, out: &mut dyn Write) -> Result<(), Failure> {
    let mut read = args.reading.merge.clone();
    read.push(args.file.clone());
    files::check_not_read(args.output.as_deref(), &read)?;
    let mut records = logs(&args.file, &args.reading)?;
    let bar = progress::steps_without_end("requests");
    let done = match files::named(args.output.as_deref()) {
        None => write(counted(&mut records, &bar), args, out)?,
        Some(path) => {
            let file = NewFile::create(path)?;
            let done = write(counted(&mut records, &bar), args, &mut file.writer()?)?;
            file.finish()?;
            done
        }
    };
    bar.finish_and_clear();
    if records.left_out() > 0 {
        let left_out = records.left_out();
        tracing::warn!("{left_out} requests that neither read nor write are left out");
    }
    for loss in losses(&done) {
        tracing::warn!("{}: {loss}", args.to.name);
    }
    Ok(())
}

fn write(
    records: impl Iterator<Item = <Logs as Iterator>::Item>,
    args: &TraceConvert,
    out: &mut dyn Write,
) -> Result<Converted, Failure> {
    let mut out = Watched { out, failed: None };
    let mut buffered = BufWriter::new(&mut out);
    let done = convert(records, args.to, args.block_bytes, &mut buffered);
    drop(buffered);
    if let Some(error) = out.failed {
        let target = files::named(args.output.as_deref());
        return Err(target.map_or_else(
            || Failure::output(&error),
            |path| Failure::broken(path, plain(&error)),
        ));
    }
    done.map_err(|error| match error {
        ConvertError::Read(error) => unreadable(&error),
        other => Failure::unusable(&args.file, other),
    })
}

/// The losses of a conversion, a line each.
fn losses(done: &Converted) -> Vec<String> {
    let all = [
        (done.lost_writes, "are writes, which became reads"),
        (
            done.lost_devices,
            "lost their device, or have it in the block number",
        ),
        (done.lost_arrivals, "lost their time"),
        (
            done.rounded_arrivals,
            "have their time rounded down to the format's unit",
        ),
        (
            done.widened,
            "became longer: whole blocks (--block-bytes) or sectors",
        ),
        (done.lost_computes, "lost the computing before them"),
        (done.lost_responses, "lost their response time"),
        (done.lost_labels, "lost their label"),
        (done.lost_processes, "lost their process"),
    ];
    let lost = all.iter().filter(|(count, _)| *count > 0);
    lost.map(|(count, what)| format!("{count} of {} requests {what}", done.requests))
        .collect()
}

/// A writer that keeps its error, which the conversion turns into text.
struct Watched<'a> {
    out: &'a mut dyn Write,
    failed: Option<io::Error>,
}

impl Watched<'_> {
    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        // The caller tries an interrupted write again.
        match written {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            other => self.keep(other),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.keep(flushed)
    }
}
