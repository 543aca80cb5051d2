//! `forerun reproduce`: measures the claims of a paper in the simulator and prints the verdicts.
//!
//! What is measured and judged is in `forerun_lab`; here are the threads that make its
//! runs, and the printing: a table for people, an object a line for programs, and with `-o` a page
//! with the paper's tables and figures. A claim that differs is a result, not a failure: the exit
//! code stays 0.

use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
use forerun_core::settings::Notice;
use forerun_lab::rows::{cells, fitted, head, note, summary};
use forerun_lab::{Broken, Figures, Finding, Paper, Reproduction, Wanted, page, threads};
use serde_json::{Value, json};

use crate::args::{ListFormat, Reproduce};
use crate::failure::Failure;
use crate::files::NewFile;
use crate::progress;

/// Widest line of the table.
const WIDTH: u16 = 160;

/// Runs the command.
///
/// # Errors
/// A directory or an output that cannot be written, or a defect of the simulator.
pub fn run(args: &Reproduce, out: &mut dyn Write) -> Result<(), Failure> {
    let papers = papers(args)?;
    // Begun before the measuring, not found impossible after it.
    let mut reports = Vec::new();
    if let Some(folder) = &args.output {
        for (paper, _) in &papers {
            let name = match papers.len() {
                1 => "report",
                _ => paper.name,
            };
            reports.push(NewFile::create_with_folder(
                &folder.join(format!("{name}.html")),
            )?);
        }
    }
    let mut reports = reports.into_iter();
    for (at, (paper, only)) in papers.iter().enumerate() {
        let report = reports.next();
        let all = measured(args, paper, only.clone(), report.is_some())?;
        let (gap, heading) = match (args.format, papers.len()) {
            (ListFormat::Json, _) | (_, 1) => ("", String::new()),
            _ => (
                if at > 0 { "\n" } else { "" },
                format!("{}\n\n", paper.name),
            ),
        };
        let text = match args.format {
            ListFormat::Table => table(&all),
            ListFormat::Json => lines(paper.name, &all),
        };
        let text = format!("{gap}{heading}{text}");
        out.write_all(text.as_bytes())
            .map_err(|e| Failure::output(&e))?;
        if let Some(file) = report {
            let claims = paper.claims().map_err(|e| broken(&e))?;
            file.write(page::html(paper.name, &claims.source, &all)?.as_bytes())?;
        }
    }
    Ok(())
}

fn broken(error: &Broken) -> Failure {
    Failure::Run(error.to_string())
}

/// Measures the selected parts of a paper.
fn measured(
    args: &Reproduce,
    paper: &Paper,
    only: Vec<String>,
    exhibits: bool,
) -> Result<Reproduction, Failure> {
    let mut notices = Notice::LIST.map(|(_, notice)| notice).to_vec();
    let first = args.noticing.notice.unwrap_or_default();
    notices.sort_by_key(|notice| *notice != first);
    let wanted = Wanted {
        notices,
        only,
        exhibits,
        is_sample: false,
    };
    let bar = progress::steps_without_end(paper.name);
    let all = paper.reproduce(&wanted, &mut |traces, jobs| {
        progress::more(&bar, jobs.len() as u64);
        threads::perform(traces, &jobs, &|| {
            bar.inc(1);
            true
        })
    });
    bar.finish_and_clear();
    all.map_err(|e| broken(&e))
}

/// The papers, and of each the claims and exhibits that were named; of which there must be such in
/// one of them. A paper of which none was named is left out where others have some.
fn papers(args: &Reproduce) -> Result<Vec<(&'static Paper, Vec<String>)>, Failure> {
    let mut papers = Vec::new();
    let mut known = Vec::new();
    for paper in &args.papers {
        let items = paper.items().map_err(|e| broken(&e))?;
        let only = args.only.iter().filter(|name| items.contains(name));
        papers.push((*paper, only.cloned().collect::<Vec<_>>()));
        known.push((paper.name, items));
    }
    let has = |name: &String| known.iter().any(|(_, items)| items.contains(name));
    if let Some(unknown) = args.only.iter().find(|name| !has(name)) {
        let known = known.iter();
        let known: Vec<String> = known
            .map(|(paper, items)| format!("{paper} has {}", items.join(", ")))
            .collect();
        let text = format!("--only {unknown}: {}", known.join("; "));
        return Err(Failure::Usage(text));
    }
    let mut exhibits = args.papers.iter().flat_map(|paper| paper.exhibits);
    if args.output.is_none()
        && let Some(shown) = exhibits.find(|shown| args.only.iter().any(|name| name == shown.id))
    {
        let text = format!(
            "--only {}: is drawn in the report, of which there is none: give -o DIR",
            shown.id
        );
        return Err(Failure::Usage(text));
    }
    papers.retain(|(_, only)| args.only.is_empty() || !only.is_empty());
    Ok(papers)
}

fn table(all: &Reproduction) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(head(all));
    for finding in &all.findings {
        table.add_row(cells(finding));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.chain([format!("\n{}\n", summary(all))]).collect()
}

fn lines(paper: &str, all: &Reproduction) -> String {
    let line = |finding| json_of(paper, finding).to_string() + "\n";
    all.findings.iter().map(line).collect()
}

fn json_of(paper: &str, finding: &Finding) -> Value {
    let one = finding.measured.first();
    let others = finding.measured.iter().skip(1).map(|one| {
        json!({
            "notice": one.notice.name(),
            "measured": numbers(Some(&one.figures)),
            "verdict": one.verdict.name(),
            "fitted": one.fit(),
            "note": one.note,
        })
    });
    json!({
        "id": finding.claim.id,
        "paper": paper,
        "claim": finding.claim.what,
        "published": numbers(finding.claim.published().as_ref()),
        "notice": one.filter(|_| finding.measured.len() > 1).map(|one| one.notice.name()),
        "measured": numbers(one.map(|one| &one.figures)),
        "verdict": one.map(|one| one.verdict.name()),
        "fitted": fitted(finding),
        "note": note(finding),
        "otherwise": others.collect::<Vec<_>>(),
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
