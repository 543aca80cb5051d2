//! The page: answers first, then a section a chart, and failed runs. No script, no font, no network.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::advice;
use super::answer::{answer, smallest};
use super::chart::{Chart, Line, Place, charts};
use super::figure::{Figure, Kind, Mark, Over, STYLE, Series};
use super::points::{Metric, Row, SMALL_MS, comparable, is_point, points};
use super::text::{escaped, memory, number, percent};

/// Rows of a table from which on it is folded up.
const FOLDED_FROM: usize = 16;

/// Lines that are named of those that are compared with none.
const NAMED_MAX: usize = 5;

const PAGE: &str = ":root{color-scheme:light dark;--bg:#fff;--fg:#222;--rule:#ddd;--mark:#0072b2}\
    @media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e8e8e8;--rule:#3a3d42;--mark:#5cb3ee}}\
    *{box-sizing:border-box}body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;max-width:1240px;\
    margin:0 auto;padding:16px;overflow-wrap:anywhere}h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em;\
    border-top:1px solid var(--rule);padding-top:1em}.wide{overflow-x:auto}table{border-collapse:collapse;margin:.6em 0}\
    th,td{text-align:right;padding:.25em .8em .25em 0;border-bottom:1px solid var(--rule);white-space:nowrap}\
    th:first-child,td:first-child,.text{text-align:left;white-space:normal;min-width:8em}th{font-weight:600}\
    .figures{display:grid;gap:20px 28px;grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr))}\
    figure{margin:0}svg{width:100%;height:auto;display:block}figcaption,.soft{font-size:.87em;opacity:.8}\
    .answer{border-left:4px solid var(--mark);padding-left:.8em}summary{cursor:pointer}";

/// Rows, and how they are looked at.
#[derive(Debug)]
pub struct Report {
    /// Its heading.
    pub title: String,
    /// The rows.
    pub rows: Vec<Row>,
    /// Rows that they are compared with, and their name.
    pub against: Option<(String, Vec<Row>)>,
    /// So near to the best is near: 0.05 is 5 %.
    pub within: f64,
}

/// A figure in its forms.
#[derive(Debug)]
pub struct Drawn {
    /// Its name without an ending.
    pub file: String,
    /// As a file.
    pub svg: String,
    /// Its numbers.
    pub csv: String,
}

/// Whether a row can be shown.
#[must_use]
pub fn is_known(row: &Row) -> bool {
    is_point(row) || advice::lines(row).is_some() || row.contains_key("error")
}

/// The page, and its figures.
#[must_use]
pub fn page(report: &Report) -> (String, Vec<Drawn>) {
    let (all, others) = both(report);
    let (mut body, mut drawn) = (String::new(), Vec::new());
    for row in &report.rows {
        if let Some(lines) = advice::lines(row) {
            let _ = write!(body, "<h2>Advice</h2>\n<ul>\n");
            for line in lines {
                let _ = writeln!(body, "<li>{}</li>", escaped(line));
            }
            body += "</ul>\n";
        }
    }
    answers(&mut body, &all, report.within);
    if let Some((name, _)) = &report.against {
        unmatched(&mut body, &all, &others, name);
    }
    for (number, chart) in all.iter().enumerate() {
        let other = others.iter().find(|other| other.name == chart.name);
        section(&mut body, &mut drawn, number + 1, chart, other, report);
    }
    failed(&mut body, &report.rows);
    let title = escaped(&report.title);
    let versions: BTreeSet<&str> = report
        .rows
        .iter()
        .filter_map(|row| row.get("version")?.as_str())
        .collect();
    let versions: Vec<&str> = match versions.is_empty() {
        true => vec![env!("CARGO_PKG_VERSION")],
        false => versions.into_iter().collect(),
    };
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{PAGE}{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p class=\"soft\">{} rows; forerun {}</p>\n{body}</body>\n</html>\n",
        report.rows.len(),
        escaped(&versions.join(", "))
    );
    (page, drawn)
}

/// The charts of the rows, and of those that they are compared with. Names have the parts that differ among all of them:
/// those of each file alone would have no part that differs between the files. A column that all rows of one file lack,
/// which is of another version then, is no difference.
fn both(report: &Report) -> (Vec<Chart>, Vec<Chart>) {
    let against = report.against.as_ref().map_or(&[][..], |(_, rows)| rows);
    let is_shown = |row: &&Row| is_point(row) && !row.contains_key(advice::CONSTANT_DEPTH);
    let of = |rows| <[Row]>::iter(rows).filter(is_shown);
    let (own, others): (Vec<&Row>, Vec<&Row>) = (of(&report.rows).collect(), of(against).collect());
    let rows = match others.is_empty() {
        true => Vec::new(),
        false => [comparable(&own, &others), comparable(&others, &own)].concat(),
    };
    let points = match others.is_empty() {
        true => points(&own),
        false => points(&rows.iter().collect::<Vec<_>>()),
    };
    let (own, others) = points.split_at(own.len());
    (charts(own), charts(others))
}

/// Runs of the other rows that none here is compared with, by their lines, and rows there that count for nothing.
fn unmatched(body: &mut String, all: &[Chart], others: &[Chart], name: &str) {
    let has = |chart: &Chart, line: &Line, place: &Place| {
        let own = all.iter().find(|own| own.name == chart.name);
        own.is_some_and(|own| own.at(&line.name, place.memory).is_some())
    };
    let (mut missing, mut count, mut runs) = (Vec::new(), 0, 0);
    for chart in others {
        for (line, place) in chart.places() {
            runs += 1;
            if has(chart, line, place) {
                continue;
            }
            count += 1;
            let line = format!("{}: {}", chart.name, line.name);
            if missing.last() != Some(&line) {
                missing.push(line);
            }
        }
    }
    let replaced: usize = others.iter().map(|chart| chart.replaced).sum();
    if replaced > 0 {
        let _ = writeln!(
            body,
            "<p>Rows of {} that a later one of the same run replaces, with other figures: {replaced}.</p>",
            escaped(name)
        );
    }
    if count == 0 {
        return;
    }
    let more = missing.len().saturating_sub(NAMED_MAX);
    missing.truncate(NAMED_MAX);
    let more = match more {
        0 => String::new(),
        more => format!("; and {more} more lines"),
    };
    let _ = writeln!(
        body,
        "<p>Not compared, for want of a run of the same name and memory here: {count} of {runs} runs of {} ({}{more}).</p>",
        escaped(name),
        escaped(&missing.join("; "))
    );
}

/// The answers of all charts, which is all that most readers want.
fn answers(body: &mut String, all: &[Chart], within: f64) {
    let share = number(within * 100.0);
    let mut rows = Vec::new();
    for chart in all {
        let Some(best) = answer(chart, within) else {
            continue;
        };
        let mut cells = vec![chart.name.clone(), best.line.name.clone(), size(best.place)];
        cells.extend(Metric::LIST.map(|metric| value(best.place, metric)));
        for equal in &best.equals {
            cells[1] += &format!(" = {equal}");
        }
        if !best.is_within_all {
            cells[1] += " *";
        }
        rows.push(cells);
    }
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        body,
        "<h2>Answers</h2>\n<p>The smallest memory within {share} % of the best throughput and of the best 99th percentile, of all \
         presets. A percentile below {SMALL_MS} ms is as good as any; behind \
         = are presets that are as good with the same memory.</p>\n"
    );
    let has_star = rows.iter().any(|cells| cells[1].ends_with(" *"));
    let mut head = vec!["input and device", "preset", "memory"];
    head.extend(Metric::LIST.map(short));
    table(body, &head, rows, 2);
    if has_star {
        let _ = writeln!(
            body,
            "<p class=\"soft\">* No preset is within {share} % in both: of those within it in throughput, the one with the least \
             99th percentile.</p>"
        );
    }
}

/// A metric as the head of a column.
fn short(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "MB/s",
        Metric::P99 => "p99",
        Metric::MissRatio => "miss ratio",
        Metric::OverBound => "over bound",
    }
}

fn size(place: &Place) -> String {
    place.memory.map_or("-".to_owned(), memory)
}

/// A value with its unit, where its column's head has none.
fn shown(metric: Metric, value: f64) -> String {
    match metric {
        Metric::P99 => format!("{} ms", number(value)),
        Metric::OverBound => format!("{value:.3}"),
        _ => number(value),
    }
}

fn value(place: &Place, metric: Metric) -> String {
    match place.values.get(&metric) {
        Some(estimate) => match estimate.interval {
            Some((low, high)) => format!(
                "{} \u{b1} {}",
                shown(metric, estimate.value),
                number((high - low) / 2.0)
            ),
            None => shown(metric, estimate.value),
        },
        None if metric == Metric::P99 && place.is_saturated => "saturated".to_owned(),
        None => "-".to_owned(),
    }
}

/// A chart: its answer, its figures, and its tables.
fn section(
    body: &mut String,
    drawn: &mut Vec<Drawn>,
    at: usize,
    chart: &Chart,
    other: Option<&Chart>,
    report: &Report,
) {
    let _ = writeln!(body, "<h2>{}</h2>", escaped(&chart.name));
    if chart.replaced > 0 {
        let _ = writeln!(
            body,
            "<p>Rows that a later one of the same run replaces, with other figures: {}.</p>",
            chart.replaced
        );
    }
    if let Some(best) = answer(chart, report.within) {
        let memory = best.place.memory.map_or(String::new(), |bytes| {
            format!(" with <b>{}</b> of memory", memory(bytes))
        });
        let _ = writeln!(
            body,
            "<p class=\"answer\"><b>{}</b>{memory}: {}.{}</p>",
            escaped(&best.line.name),
            escaped(&figures_of(best.place)),
            escaped(&equal_to(&best.equals))
        );
    }
    *body += "<div class=\"figures\">\n";
    for metric in Metric::LIST {
        let figure = figure(at, chart, other, metric);
        if figure.is_empty() {
            continue;
        }
        let _ = writeln!(
            body,
            "<figure>{}{}</figure>",
            figure.inline(),
            caption(chart, metric)
        );
        drawn.push(Drawn {
            file: figure.file.clone(),
            svg: figure.alone(),
            csv: figure.csv(),
        });
    }
    *body += "</div>\n";
    if chart.has_curves() {
        smallest_table(body, chart, report.within);
    }
    if let (Some(other), Some((name, _))) = (other, &report.against) {
        compared(body, chart, other, name);
    }
}

/// The figures of a place in words.
/// The presets that are as good as an answer.
fn equal_to(equals: &[&str]) -> String {
    match equals {
        [] => String::new(),
        [one] => format!(" {one} is as good with the same memory."),
        several => format!(" {} are as good with the same memory.", several.join(", ")),
    }
}

fn figures_of(place: &Place) -> String {
    let named = |metric| {
        let value = value(place, metric);
        let bound = place.bound.as_deref().unwrap_or("bound");
        match metric {
            _ if value == "-" => None,
            Metric::Throughput => Some(format!("{value} MB/s")),
            Metric::P99 => Some(format!("99th percentile {value}")),
            Metric::MissRatio => Some(format!("miss ratio {value}")),
            Metric::OverBound => Some(format!("{value} times the least possible time ({bound})")),
        }
    };
    let all: Vec<String> = Metric::LIST.into_iter().filter_map(named).collect();
    all.join(", ")
}

/// The runs that a figure cannot show, and its intervals.
fn caption(chart: &Chart, metric: Metric) -> String {
    let mut parts = Vec::new();
    let saturated = chart.places().filter(|(_, place)| place.is_saturated);
    let saturated: Vec<String> = saturated
        .map(|(line, place)| format!("{} {}", line.name, size(place)))
        .collect();
    if metric == Metric::P99 && !saturated.is_empty() {
        parts.push(format!(
            "No percentile where the queue grew to the end of the run: {}.",
            saturated.join(", ")
        ));
    }
    let runs = chart
        .places()
        .map(|(_, place)| place.runs)
        .max()
        .unwrap_or(1);
    let has_interval = chart.places().any(|(_, place)| {
        place
            .values
            .get(&metric)
            .is_some_and(|value| value.interval.is_some())
    });
    match (has_interval, runs) {
        (true, 2..) => parts.push(format!(
            "Upright lines: 95 % intervals of the mean over up to {runs} seeds."
        )),
        (true, _) => {
            parts.push("Lines beside the bars: the slowest and the fastest run.".to_owned())
        }
        (false, _) => {}
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("<figcaption>{}</figcaption>", escaped(&parts.join(" "))),
    }
}

fn figure(at: usize, chart: &Chart, other: Option<&Chart>, metric: Metric) -> Figure {
    let kind = match chart.has_curves() {
        true => Kind::Curves,
        false => Kind::Bars,
    };
    let memories = chart.places().filter_map(|(_, place)| place.memory);
    let (least, most) = memories.fold((f64::INFINITY, 0.0f64), |(least, most), memory| {
        (least.min(memory), most.max(memory))
    });
    let series = |line: &Line, is_other| {
        let marks = |place: &Place| {
            let x = match (kind, place.memory) {
                (_, Some(memory)) => vec![memory],
                // Without a memory of its own, as the kernel's: at all of them.
                (Kind::Curves, None) => vec![least, most],
                (Kind::Bars, None) => vec![0.0],
            };
            let mark = |x| {
                let estimate = place.values.get(&metric)?;
                Some(Mark {
                    x,
                    y: estimate.value,
                    interval: estimate.interval,
                })
            };
            x.into_iter().filter_map(mark).collect::<Vec<Mark>>()
        };
        Series {
            name: line.name.clone(),
            marks: line.places.iter().flat_map(marks).collect(),
            is_other,
        }
    };
    let mut all = Vec::new();
    for line in &chart.lines {
        all.push(series(line, false));
        let namesake =
            other.and_then(|other| other.lines.iter().find(|other| other.name == line.name));
        all.extend(namesake.map(|line| series(line, true)));
    }
    all.retain(|series| !series.marks.is_empty());
    let against = if kind == Kind::Curves {
        " against memory"
    } else {
        ""
    };
    Figure {
        title: format!("{}{against}", metric.title()),
        of: chart.name.clone(),
        unit: metric.unit().to_owned(),
        over: Over::Memory,
        kind,
        series: all,
        file: format!("{at:02}-{}-{}", slug(&chart.name), metric.name()),
    }
}

/// A name as a part of a file's.
fn slug(name: &str) -> String {
    let kept = name.chars().map(|c| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '-',
    });
    let words: String = kept.collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(48).collect()
}

/// Of each line the smallest memory that is near the best, and its value there.
fn smallest_table(body: &mut String, chart: &Chart, within: f64) {
    let share = number(within * 100.0);
    let _ = writeln!(
        body,
        "<h3>Smallest memory within {share} % of the best of all presets</h3>"
    );
    let metrics: Vec<Metric> = Metric::LIST
        .into_iter()
        .filter(|metric| chart.best(*metric).is_some())
        .collect();
    let mut head = vec!["preset"];
    head.extend(metrics.iter().map(|metric| short(*metric)));
    let rows = chart.lines.iter().map(|line| {
        let cell = |metric: &Metric| match smallest(chart, line, *metric, within) {
            Some(place) => format!("{}: {}", size(place), value(place, *metric)),
            None => "never".to_owned(),
        };
        let mut cells = vec![line.name.clone()];
        cells.extend(metrics.iter().map(cell));
        cells
    });
    table(body, &head, rows.collect(), 1);
}

/// A row for each place that both have.
fn compared(body: &mut String, chart: &Chart, other: &Chart, name: &str) {
    let _ = writeln!(body, "<h3>Compared with {}</h3>", escaped(name));
    let metrics = [Metric::Throughput, Metric::P99, Metric::MissRatio];
    let (mut rows, mut counts) = (Vec::new(), [0usize; 3]);
    for (line, place) in chart.places() {
        let Some(before) = other.at(&line.name, place.memory) else {
            continue;
        };
        let mut cells = vec![line.name.clone(), size(place)];
        for metric in metrics {
            let pair = before.values.get(&metric).zip(place.values.get(&metric));
            cells.push(pair.map_or("-".to_owned(), |(before, after)| {
                let change = percent(before.value, after.value);
                format!(
                    "{} \u{2192} {} ({change})",
                    number(before.value),
                    shown(metric, after.value)
                )
            }));
            if let (Metric::Throughput, Some((before, after))) = (metric, pair) {
                let is = |one: f64, other: f64| usize::from(one > other * 1.01);
                counts[0] += is(after.value, before.value);
                counts[1] += is(before.value, after.value);
                counts[2] += 1;
            }
        }
        rows.push(cells);
    }
    let [faster, slower, all] = counts;
    let _ = writeln!(
        body,
        "<p>{faster} of {all} runs are faster by more than 1 %, {slower} slower.</p>"
    );
    table(
        body,
        &["preset", "memory", "MB/s", "p99", "miss ratio"],
        rows,
        2,
    );
}

/// Runs that failed; of a sweep's those that no row gives a result of, each once.
fn failed(body: &mut String, rows: &[Row]) {
    let key = |row: &'_ Row| row.get("key")?.as_str().map(str::to_owned);
    let has_result = |row: &&Row| !row.contains_key("error");
    let results: BTreeSet<String> = rows.iter().filter(has_result).filter_map(key).collect();
    let (mut of_runs, mut errors) = (BTreeMap::new(), Vec::new());
    for row in rows {
        let Some(error) = row.get("error").and_then(|error| error.as_str()) else {
            continue;
        };
        match key(row) {
            None => errors.push(error),
            Some(key) if results.contains(&key) => {}
            Some(key) => {
                of_runs.insert(key, error);
            }
        }
    }
    errors.extend(of_runs.into_values());
    if errors.is_empty() {
        return;
    }
    let _ = write!(body, "<h2>{} runs failed</h2>\n<ul>\n", errors.len());
    errors.sort_unstable();
    errors.dedup();
    for error in errors {
        let _ = writeln!(body, "<li>{}</li>", escaped(error));
    }
    *body += "</ul>\n";
}

/// A table whose first columns are text; a long one is folded up.
fn table(body: &mut String, head: &[&str], rows: Vec<Vec<String>>, text: usize) {
    let is_folded = rows.len() > FOLDED_FROM;
    if is_folded {
        let _ = writeln!(body, "<details><summary>{} rows</summary>", rows.len());
    }
    *body += "<div class=\"wide\"><table>\n";
    let class = |at: usize| if at < text { " class=\"text\"" } else { "" };
    let mut line = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        *body += "<tr>";
        for (at, cell) in cells.enumerate() {
            let _ = write!(body, "<{tag}{}>{}</{tag}>", class(at), escaped(cell));
        }
        *body += "</tr>\n";
    };
    line("th", &mut head.iter().copied());
    for row in &rows {
        line("td", &mut row.iter().map(String::as_str));
    }
    *body += "</table></div>\n";
    if is_folded {
        *body += "</details>\n";
    }
}
