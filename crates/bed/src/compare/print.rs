//! Rows of a comparison as text: one block for each number of readers or clients, one line a candidate.
//!
//! Called by `table` and `servers` for people; `--format json` prints the tables themselves.

use std::fmt::{Display, Formatter, Result};

use super::Figures;

/// A column: its name, its width, and its cell of a row.
type Column<'a, Row> = (&'a str, usize, fn(&Row) -> String);

/// Writes the line of names, and one for each row.
pub(crate) fn rows<Row, const COUNT: usize>(
    f: &mut Formatter<'_>,
    many: &str,
    rows: &[Row],
    start: fn(&Row) -> (usize, &str),
    columns: [Column<'_, Row>; COUNT],
) -> Result {
    writeln!(f)?;
    line(
        f,
        many,
        "side",
        columns.map(|(name, width, _)| (name.to_owned(), width)),
    )?;
    let mut before = None;
    for row in rows {
        let (number, side) = start(row);
        if before.replace(number).is_some_and(|other| other != number) {
            writeln!(f)?;
        }
        line(
            f,
            number,
            side,
            columns.map(|(_, width, cell)| (cell(row), width)),
        )?;
    }
    Ok(())
}

fn line<const COUNT: usize>(
    f: &mut Formatter<'_>,
    number: impl Display,
    side: &str,
    cells: [(String, usize); COUNT],
) -> Result {
    write!(f, "{number:>7}  {side:24}")?;
    for (cell, width) in cells {
        write!(f, " {cell:>width$}")?;
    }
    writeln!(f)
}

/// The least and the most of the runs.
pub(crate) fn spread(runs: &[f64]) -> String {
    let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = runs.iter().copied().fold(0.0, f64::max);
    format!("{least:.1}..{most:.1}")
}

/// A figure that some candidates or disks do not have.
pub(crate) fn optional<T>(figure: Option<T>, words: impl Fn(T) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), words)
}

impl Figures {
    pub(crate) fn request_kib(&self) -> String {
        optional(self.request_bytes, |bytes| format!("{:.0}", bytes / 1024.0))
    }

    pub(crate) fn switch(&self) -> String {
        optional(self.switches_per_request, |share| {
            format!("{:.0}%", share * 100.0)
        })
    }

    pub(crate) fn late(&self) -> String {
        optional(self.late_ns, |late| format!("{:.0}", late / 1_000.0))
    }

    pub(crate) fn resident(&self) -> String {
        optional(self.resident_max_bytes, |bytes| (bytes >> 20).to_string())
    }
}
