//! The terminal behind standard output, if it is one.
//!
//! Problem: a table of sixteen columns is wider than a terminal, and a line that is broken anywhere cannot be read.
//!
//! Mechanism: the width is that of `COLUMNS`, else the terminal's own, else 80 of a terminal that does not tell it.
//! A [`fitted`] table leaves out columns until the others fit, those of the highest rank first, and names them below;
//! text is wrapped if that is not enough, and numbers stay whole. Output that is no terminal has all columns, for
//! programs, unless `COLUMNS` is set.

use std::ffi::OsStr;
use std::io::{IsTerminal, stdout};
use std::sync::OnceLock;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use rustix::termios::tcgetwinsize;

/// Of a terminal that does not tell it.
const COLUMNS: u16 = 80;

/// No terminal is narrower or wider; `COLUMNS` counts for nothing beyond.
const ACCEPTED: std::ops::RangeInclusive<u16> = 20..=2000;

/// Text is not wrapped to less, in place of which a column is left out.
const TEXT: usize = 16;

static TOLD: OnceLock<u16> = OnceLock::new();

/// The value of `COLUMNS`, from `main`.
pub fn is_told(columns: Option<&OsStr>) {
    let columns = columns.and_then(|text| text.to_str()?.parse().ok());
    if let Some(columns) = columns.filter(|columns| ACCEPTED.contains(columns)) {
        let _ = TOLD.set(columns);
    }
}

/// Its columns; none where output is no terminal.
#[must_use]
pub fn columns() -> Option<u16> {
    if let Some(told) = TOLD.get() {
        return Some(*told);
    }
    let size = || tcgetwinsize(stdout()).ok().map(|size| size.ws_col);
    let known = |columns: &u16| *columns > 0;
    let is_terminal = stdout().is_terminal();
    is_terminal.then(|| size().filter(known).unwrap_or(COLUMNS))
}

/// Words in lines of so many columns; a longer word has a line of its own.
#[must_use]
pub fn wrapped(words: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}

/// A table without lines between cells. In a terminal it is as wide as that but for `spare`
/// columns, and no narrower than `narrowest`; elsewhere it is as wide as its cells.
#[must_use]
pub fn table(spare: u16, narrowest: u16) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if let Some(columns) = columns() {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(columns.saturating_sub(spare).max(narrowest));
    }
    table
}

/// A column of a [`fitted`] table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// It stands on the right, and is never wrapped.
    pub is_number: bool,
    /// Left out first if this is highest; never if it is 0.
    pub rank: u8,
}

impl Column {
    /// Of numbers.
    #[must_use]
    pub const fn number(title: &'static str, rank: u8) -> Self {
        Self {
            title,
            is_number: true,
            rank,
        }
    }

    /// Of text.
    #[must_use]
    pub const fn text(title: &'static str, rank: u8) -> Self {
        Self {
            title,
            is_number: false,
            rank,
        }
    }
}

/// The lines of a table, in the width of the terminal if there is one. Below stand the names of columns that have no room.
#[must_use]
pub fn fitted(columns: &[Column], rows: &[Vec<String>]) -> String {
    within(self::columns(), columns, rows)
}

fn within(room: Option<u16>, columns: &[Column], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let cells = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        let own = cells.max(columns[at].title.chars().count());
        match columns[at].is_number {
            true => own + 2,
            false => own.min(TEXT) + 2,
        }
    };
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let mut left_out = Vec::new();
    let room_of = |room: u16| usize::from(room) + 2;
    while room.is_some_and(|room| kept.iter().map(|at| width(*at)).sum::<usize>() > room_of(room)) {
        let last = kept.iter().copied().max_by_key(|at| columns[*at].rank);
        let Some(last) = last.filter(|at| columns[*at].rank > 0) else {
            break;
        };
        kept.retain(|at| *at != last);
        left_out.push(last);
    }
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if let Some(room) = room {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(room + 2);
    }
    table.set_header(kept.iter().map(|at| columns[*at].title));
    for row in rows {
        table.add_row(kept.iter().filter_map(|at| row.get(*at)));
    }
    for (at, column) in kept.iter().zip(table.column_iter_mut()) {
        if columns[*at].is_number {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        } else if room.is_some() {
            let width = Width::Fixed(u16::try_from(width(*at)).unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::LowerBoundary(width));
        }
    }
    let lines = table.lines();
    // A cell has a blank on each side.
    let line = |line: String| format!("{}\n", line.get(1..).unwrap_or_default().trim_end());
    let mut text: String = lines.map(line).collect();
    if !left_out.is_empty() {
        left_out.sort_unstable();
        let names = left_out.iter().map(|at| columns[*at].title);
        let names = names.collect::<Vec<_>>().join(", ");
        text += &format!("no room for: {names}; --format csv has all\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[Column] = &[
        Column::text("preset", 0),
        Column::number("reads", 2),
        Column::number("misses", 0),
        Column::text("bound is", 3),
    ];

    fn rows() -> Vec<Vec<String>> {
        let row = ["reverse-aggressive(batch=4)", "1234567", "890", "transfer"];
        vec![row.map(str::to_owned).to_vec()]
    }

    #[test]
    fn columns_of_the_highest_rank_go_first_and_are_named() {
        let whole = within(None, ALL, &rows());
        assert!(whole.contains("transfer") && !whole.contains("no room"));
        let narrow = within(Some(36), ALL, &rows());
        assert!(narrow.contains("1234567") && narrow.contains("no room for: bound is;"));
        let narrow = within(Some(30), ALL, &rows());
        assert!(narrow.contains("no room for: reads, bound is;"), "{narrow}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_number_is_cut() {
        for room in 28..120 {
            let text = within(Some(room), ALL, &rows());
            let table = text.lines().filter(|line| !line.starts_with("no room"));
            for line in table {
                assert!(line.chars().count() <= room.into(), "{room}: {text}");
            }
            assert!(text.contains("890"), "{text}");
        }
    }
}
