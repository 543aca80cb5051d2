//! A plot of an exhibit, and its numbers as a table.

use super::{Chart, Shown, Table};

/// A line of a plot: its name, and a measurement for each parameter.
pub(super) type Line = (String, Vec<(u64, f64)>);

/// A plot with its numbers.
pub(super) fn plotted(
    shown: &mut Shown,
    title: &str,
    over: &str,
    measured: &str,
    lines: Vec<Line>,
) {
    let mut head = vec![over.to_owned()];
    head.extend(lines.iter().map(|(name, _)| name.clone()));
    let parameters = lines.first().map_or(&[][..], |(_, points)| points);
    let rows = parameters.iter().enumerate().map(|(row, (parameter, _))| {
        let mut cells = vec![parameter.to_string()];
        let values = lines.iter().filter_map(|(_, points)| points.get(row));
        cells.extend(values.map(|(_, value)| format!("{value:.2}")));
        cells
    });
    let table = Table::new(&format!("{title}: {measured}"), head, rows.collect());
    shown.tables.push(table);
    let drawn = |(name, points): Line| {
        let points = points.into_iter().map(|(x, y)| (x as f64, y));
        (name, points.collect())
    };
    shown.charts.push(Chart::Lines {
        title: title.to_owned(),
        measured: measured.to_owned(),
        over: over.to_owned(),
        lines: lines.into_iter().map(drawn).collect(),
    });
}
