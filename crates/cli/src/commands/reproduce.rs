//! `forerun reproduce`: measures the claims of a paper in the simulator and prints how they fared.
//!
//! What is measured and judged is in `forerun_sim::reproduce`; here are the threads that make its
//! runs, and the printing: a table for people, an object a line for programs, and with `-o` a page
//! with the paper's tables and figures. A claim that differs is a result, not a failure: the exit
//! code stays 0.

mod page;
mod plot;
mod threads;

use std::fs;
use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
use forerun_sim::reproduce::{Broken, Figures, Finding, Reproduction, Wanted};
use serde_json::{Value, json};

use crate::args::{ListFormat, Reproduce};
use crate::failure::Failure;
use crate::files::{NewFile, plain};
use crate::progress;

/// Widest line of the table.
const WIDTH: u16 = 160;

/// Runs the command.
///
/// # Errors
/// A directory or an output that cannot be written, or a defect of the simulator.
pub fn run(args: &Reproduce, out: &mut dyn Write) -> Result<(), Failure> {
    // Begun before the measuring, not found impossible after it.
    let report = match &args.output {
        Some(folder) => {
            fs::create_dir_all(folder).map_err(|e| Failure::unusable(folder, plain(&e)))?;
            Some(NewFile::create(&folder.join("report.html"))?)
        }
        None => None,
    };
    let broken = |e: Broken| Failure::Run(e.to_string());
    let wanted = Wanted {
        only: named(args)?,
        exhibits: report.is_some(),
    };
    let bar = progress::steps(args.paper.name, 0);
    let all = args.paper.reproduce(&wanted, &mut |traces, jobs| {
        bar.inc_length(jobs.len() as u64);
        threads::perform(traces, &jobs, &|| bar.inc(1))
    });
    bar.finish_and_clear();
    let (all, claims) = (all.map_err(broken)?, args.paper.claims().map_err(broken)?);
    let text = match args.format {
        ListFormat::Table => table(&all),
        ListFormat::Json => lines(args.paper.name, &all),
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))?;
    match report {
        Some(file) => file.write(page::html(args.paper.name, &claims.source, &all)?.as_bytes()),
        None => Ok(()),
    }
}

/// The claims and exhibits that were named; there must be such.
fn named(args: &Reproduce) -> Result<Vec<String>, Failure> {
    let items = args.paper.items();
    let items = items.map_err(|e| Failure::Run(e.to_string()))?;
    match args.only.iter().find(|name| !items.contains(name)) {
        None => Ok(args.only.clone()),
        Some(unknown) => Err(Failure::Usage(format!(
            "--only {unknown}: {} has {}",
            args.paper.name,
            items.join(", ")
        ))),
    }
}

fn numbers_of(figures: Option<&Figures>) -> String {
    figures.map_or_else(|| "-".to_owned(), Figures::to_string)
}

fn table(all: &Reproduction) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(["id", "claim", "published", "measured", "verdict", "note"]);
    for finding in &all.findings {
        table.add_row([
            finding.claim.id.clone(),
            finding.claim.what.clone(),
            numbers_of(finding.claim.published().as_ref()),
            finding.measured.to_string(),
            finding.verdict.to_string(),
            finding.note.clone(),
        ]);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

fn lines(paper: &str, all: &Reproduction) -> String {
    let line = |finding| json_of(paper, finding).to_string() + "\n";
    all.findings.iter().map(line).collect()
}

fn json_of(paper: &str, finding: &Finding) -> Value {
    json!({
        "id": finding.claim.id,
        "paper": paper,
        "claim": finding.claim.what,
        "published": numbers(finding.claim.published().as_ref()),
        "measured": numbers(Some(&finding.measured)),
        "verdict": finding.verdict.name(),
        "note": finding.note,
    })
}

fn numbers(figures: Option<&Figures>) -> Value {
    match figures {
        None => Value::Null,
        Some(Figures::One(one)) => number(*one),
        Some(Figures::Several(several)) => several.iter().copied().map(number).collect(),
    }
}

/// Counts are whole numbers in JSON, not 37280.0.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value {
        json!(whole)
    } else {
        json!(value)
    }
}
