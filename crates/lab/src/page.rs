//! The report: one HTML page that needs nothing else, no script, no font and no network.

use std::fmt::Write;

use crate::rows::{cells, has_notices, head, measured_with, summary};
use crate::{Chart, Reproduction, Shown, Table, Verdict};

use super::drawing;
use forerun_surface::figure::{self, stacks};
use forerun_surface::text::escaped;

const STYLE: &str = "body { font: 15px/1.45 sans-serif; max-width: 1160px; margin: 2em auto; \
    padding: 0 1em; color: #222 } table { border-collapse: collapse; margin: 1em 0 } \
    th, td { text-align: left; vertical-align: top; padding: .3em .7em; \
    border-bottom: 1px solid #ddd } .met { color: #1c6b2c } .fitted { color: #8a5a00 } .differs { color: #a3201a } \
    .plot svg { max-width: 100% } .lines { display: inline-block; width: 540px; max-width: 100% } .wide { overflow-x: auto } .key { display: inline-block; width: 1em; height: 1em; \
    vertical-align: -2px; margin: 0 .3em 0 1em } \
    @media (prefers-color-scheme: dark) { body { background: #16181c; color: #eee } th, td { border-color: #3a3d42 } \
    .met { color: #7ccf8b } .fitted { color: #f2b632 } .differs { color: #ff8c80 } } ";

/// A table scrolls by itself where the page is narrower.
const TABLE: &str = "<div class=\"wide\"><table>\n";
const TABLE_END: &str = "</table></div>\n";

/// Tables of more rows than this are folded up.
const ROWS_MAX: usize = 12;

/// The page of a paper, of its source, and of the conditions that were changed, as they were told.
#[must_use]
pub fn html(paper: &str, source: &str, with: &[&str], all: &Reproduction) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>forerun-lab reproduce {0}</title>\n<style>{STYLE}{3}</style>\n</head>\n<body>\n\
         <h1>{0}, measured again</h1>\n<p>{1}</p>\n<p>forerun {2}</p>\n",
        escaped(paper),
        escaped(source),
        env!("CARGO_PKG_VERSION"),
        figure::STYLE
    );
    if let Some(with) = measured_with(with) {
        let _ = writeln!(page, "<p>{}</p>", escaped(&with));
    }
    page += "<h2>Claims</h2>\n";
    claims(&mut page, all);
    let charts = || all.exhibits.iter().flat_map(|shown| &shown.charts);
    if charts().any(|chart| matches!(chart, Chart::Bars { .. })) {
        legend(&mut page);
    }
    for exhibit in &all.exhibits {
        shown(&mut page, exhibit);
    }
    page += "</body>\n</html>\n";
    page
}

/// The meanings of the parts of a bar.
fn legend(page: &mut String) {
    *page += "<p class=\"fig\">Bars:";
    for (part, name) in drawing::PARTS.iter().enumerate() {
        let colour = stacks::colour(part);
        let _ = write!(
            page,
            "<span class=\"key\" style=\"background: {colour}\"></span>{name}"
        );
    }
    *page += "</p>\n";
}

/// A table or a figure of the paper. Tables of many rows are folded up.
fn shown(page: &mut String, shown: &Shown) {
    let _ = writeln!(page, "<h2>{}</h2>", escaped(&shown.title));
    if !shown.note.is_empty() {
        let _ = writeln!(page, "<p>{}</p>", escaped(&shown.note));
    }
    for chart in &shown.charts {
        let methods = drawing::methods(chart);
        if !methods.is_empty() {
            let _ = writeln!(page, "<p>From left to right: {}.</p>", methods.join(", "));
        }
        // Plots of lines are half as wide as the page: two stand side by side.
        let class = match chart {
            Chart::Bars { .. } => "plot",
            Chart::Lines { .. } => "plot lines",
        };
        let _ = writeln!(page, "<div class=\"{class}\">{}</div>", drawing::svg(chart));
    }
    for part in &shown.tables {
        let folded = part.rows.len() > ROWS_MAX;
        let title = escaped(&part.title);
        if folded {
            let _ = writeln!(page, "<details><summary>{title}</summary>");
        } else if !title.is_empty() {
            let _ = writeln!(page, "<h3>{title}</h3>");
        }
        table(page, part);
        if folded {
            *page += "</details>\n";
        }
    }
}

fn claims(page: &mut String, all: &Reproduction) {
    if has_notices(all) {
        *page += "<p>Every claim is measured twice: with a free disk noticed at once, and when a read \
            begins or waits. The paper does not say which it had.</p>\n";
    }
    *page += TABLE;
    row(page, "th", head(all));
    for finding in &all.findings {
        let marked = |cell: String| {
            let verdict = Verdict::LIST.into_iter().find(|one| one.name() == cell);
            verdict.map_or_else(|| escaped(&cell), span)
        };
        row(page, "td", cells(finding).into_iter().map(marked));
    }
    *page += TABLE_END;
    let _ = writeln!(
        page,
        "<p>{}. <i>met, fitted</i>: the claim holds by a parameter that was searched, or an input \
         that was made, from the published figure it is compared with; the note begins with that, \
         and with the figure without it.</p>",
        escaped(&summary(all))
    );
}

/// A verdict in its colour.
fn span(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Met => "met",
        Verdict::Fitted => "fitted",
        Verdict::Differs => "differs",
    };
    format!("<span class=\"{class}\">{verdict}</span>")
}

fn table(page: &mut String, table: &Table) {
    *page += TABLE;
    row(page, "th", table.head.iter().map(|cell| escaped(cell)));
    for cells in &table.rows {
        row(page, "td", cells.iter().map(|cell| escaped(cell)));
    }
    *page += TABLE_END;
}

fn row(page: &mut String, tag: &str, cells: impl IntoIterator<Item = String>) {
    *page += "<tr>";
    for cell in cells {
        let _ = write!(page, "<{tag}>{cell}</{tag}>");
    }
    *page += "</tr>\n";
}
