//! `forerun-lab reproduce`: measures the claims of a paper in the simulator and prints the verdicts.
//!
//! What is measured and judged is in `forerun_lab`; here are the threads that make its
//! runs, and the printing: a table for people, an object a line for programs, and with `-o` a page
//! with the paper's tables and figures. Of several papers an overview comes last. A claim that differs is a result,
//! not a failure: the exit code stays 0.

use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
use forerun::args::ListFormat;
use forerun::failure::Failure;
use forerun::files::NewFile;
use forerun::{progress, terminal};
use forerun_lab::Notice;
use forerun_lab::knobs::{Knobs, is_of};
use forerun_lab::rows::{
    Counts, OVERVIEW, cells, fitted, head, measured_with, note, reason, summary,
};
use forerun_lab::{
    Broken, Figures, Finding, Measured, Paper, Reproduction, Wanted, page, published, threads,
};
use serde_json::{Value, json};

use crate::args::Reproduce;

/// Columns of a line where standard output is no terminal.
const WIDTH: u16 = 160;
/// Columns of a terminal below which lines are cut rather than words.
const NARROWEST: u16 = 60;

/// A paper, and its claims and exhibits that are wanted; all where there are none.
type Selected = (&'static Paper, Vec<String>);

/// Runs the command.
///
/// # Errors
/// A directory or an output that cannot be written, or a defect of the simulator.
pub(crate) fn run(args: &Reproduce, out: &mut dyn Write) -> Result<(), Failure> {
    let papers = papers(args)?;
    let with = knobs(args, &papers)?;
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
    let mut overview = Vec::new();
    for (at, (paper, only)) in papers.iter().enumerate() {
        let report = reports.next();
        let wanted = Wanted {
            notices: notices(args),
            only: only.clone(),
            exhibits: report.is_some(),
            with: with.of(paper.name),
            is_sample: false,
        };
        let all = measured(paper, &wanted)?;
        overview.push((paper.name, Counts::of(&all)));
        let (gap, heading) = match (args.format, papers.len()) {
            (ListFormat::Json, _) | (_, 1) => ("", String::new()),
            _ => (
                if at > 0 { "\n" } else { "" },
                format!("{}\n\n", paper.name),
            ),
        };
        let told = args.with.iter().map(String::as_str);
        let told: Vec<&str> = told.filter(|text| is_of(text, paper.name)).collect();
        let text = match args.format {
            ListFormat::Table => table(&all, &told),
            ListFormat::Json => lines(paper.name, &all, &told),
        };
        let text = format!("{gap}{heading}{text}");
        out.write_all(text.as_bytes())
            .map_err(|e| Failure::output(&e))?;
        if let Some(file) = report {
            let claims = paper.claims().map_err(|e| broken(&e))?;
            file.write(page::html(paper.name, &claims.source, &told, &all).as_bytes())?;
        }
    }
    if args.format == ListFormat::Table && overview.len() > 1 {
        let text = format!("\n{}", overview_of(&overview));
        out.write_all(text.as_bytes())
            .map_err(|e| Failure::output(&e))?;
    }
    Ok(())
}

/// The conditions that were given, each of which one of the papers that are measured has.
fn knobs(args: &Reproduce, papers: &[Selected]) -> Result<Knobs, Failure> {
    let mut knobs = Knobs::default();
    for text in &args.with {
        let set = knobs.set(text);
        set.map_err(|error| Failure::Usage(format!("--with {error}")))?;
    }
    let papers: Vec<&str> = papers.iter().map(|(paper, _)| paper.name).collect();
    match knobs.unfit(&papers) {
        Some(unfit) => Err(Failure::Usage(format!("--with {unfit}"))),
        None => Ok(knobs),
    }
}

/// A row a paper.
fn overview_of(papers: &[(&str, Counts)]) -> String {
    let mut table = Table::new();
    let head = ["paper"].into_iter().chain(OVERVIEW);
    table.load_preset(presets::NOTHING).set_header(head);
    for (paper, counts) in papers {
        table.add_row([(*paper).to_owned()].into_iter().chain(counts.cells()));
    }
    lines_of(&table)
}

/// The lines of a table, without blanks at their ends.
fn lines_of(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

fn broken(error: &Broken) -> Failure {
    Failure::Run(error.to_string())
}

/// The moments at which a free disk is noticed, the requested one first.
fn notices(args: &Reproduce) -> Vec<Notice> {
    let mut notices = Notice::LIST.map(|(_, notice)| notice).to_vec();
    let first = args.noticing.notice.unwrap_or_default();
    notices.sort_by_key(|notice| *notice != first);
    notices
}

/// Measures the selected parts of a paper.
fn measured(paper: &Paper, wanted: &Wanted) -> Result<Reproduction, Failure> {
    let bar = progress::steps_without_end(paper.name);
    let mut perform = |traces: &_, jobs: Vec<_>| {
        progress::more(&bar, jobs.len() as u64);
        threads::perform(traces, &jobs, &|| {
            bar.inc(1);
            true
        })
    };
    let all = paper.reproduce(wanted, &mut perform);
    bar.finish_and_clear();
    all.map_err(|e| broken(&e))
}

/// The papers, and of each the claims and exhibits that were named; of which there must be such in
/// one of them. A paper of which none was named is left out where others have some.
fn papers(args: &Reproduce) -> Result<Vec<Selected>, Failure> {
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

fn table(all: &Reproduction, with: &[&str]) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width())
        .set_header(head(all));
    for finding in &all.findings {
        table.add_row(cells(finding));
    }
    let conditions = measured_with(with).map_or(String::new(), |with| with + "\n");
    format!("{}\n{}\n{conditions}", lines_of(&table), summary(all))
}

/// Columns of the terminal.
fn width() -> u16 {
    terminal::columns().map_or(WIDTH, |columns| columns.max(NARROWEST))
}

fn lines(paper: &str, all: &Reproduction, with: &[&str]) -> String {
    let line = |finding| {
        let mut row = json_of(paper, finding);
        if !with.is_empty() {
            row["with"] = json!(with.join(" "));
        }
        row.to_string() + "\n"
    };
    all.findings.iter().map(line).collect()
}

fn json_of(paper: &str, finding: &Finding) -> Value {
    let one = finding.measured.first();
    let others = finding.measured.iter().skip(1).map(|one| {
        json!({
            "notice": one.notice.name(),
            "measured": numbers(Some(&one.figures)),
            "range": range(one),
            "verdict": one.verdict.name(),
            "borderline": one.is_borderline,
            "fitted": one.fit(),
            "note": one.note,
        })
    });
    json!({
        "id": finding.claim.id,
        "paper": paper,
        "claim": finding.claim.what,
        "published": numbers(finding.claim.published().as_ref()),
        "place": published::of(&finding.claim.id).map(|one| json!({
            "value": one.value, "place": one.place, "read": one.read.name(), "uncertainty": one.uncertainty,
        })),
        "notice": one.filter(|_| finding.measured.len() > 1).map(|one| one.notice.name()),
        "measured": numbers(one.map(|one| &one.figures)),
        "range": one.map_or(Value::Null, range),
        "verdict": one.map(|one| one.verdict.name()),
        "borderline": one.map(|one| one.is_borderline),
        "established": reason(finding).map(|one| one.is_some_and(|one| one.is_established())),
        "fitted": fitted(finding),
        "note": note(finding),
        "otherwise": others.collect::<Vec<_>>(),
    })
}

/// The least and the most of each number, where they hang on the seed.
fn range(one: &Measured) -> Value {
    let ends = one.range.iter();
    ends.map(|(least, most)| json!([number(*least), number(*most)]))
        .collect()
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
