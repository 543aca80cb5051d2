//! The open files on the screen of `top`, and the windows fetched ahead for each.
//!
//! ```text
//! READ/S   AT    SIZE      WINDOW   AHEAD    WAIT  PROCESS   FILE
//! 7.61 MB  43 %  100.0 MB  4.19 MB  6.29 MB  1     4711 tar  logs/a
//!          81 %            1.05 MB  2.10 MB                  (another stream of it)
//! ```
//!
//! A file has a line for each of its streams that is ahead of its reader or waited for, the one
//! used last first. The busiest files come first unless a key has chosen another order, as many as
//! fit; a narrow terminal has fewer columns.

use std::cmp::Ordering;

use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Cell, Row, Table};

use super::rates::Rates;
use super::view::{Order, View};
use crate::mount::report::{OpenFileReport, Report, StreamReport};
use crate::quantity::rough_size;

/// Below this width the columns that can be done without are left out.
const WIDE: u16 = 84;

/// Those that stay: rate, place, how far ahead, and the file's owner.
const NARROW: [usize; 5] = [0, 1, 4, 6, 7];

/// The open files in the order of the view, as many as fit.
pub(super) fn table<'a>(report: &Report, rates: &Rates, view: &View, area: Rect) -> Table<'a> {
    let is_wide = area.width >= WIDE;
    let row = |cells: [Cell<'a>; 8]| {
        let shown = cells.into_iter().enumerate();
        Row::new(
            shown.filter_map(move |(at, cell)| (is_wide || NARROW.contains(&at)).then_some(cell)),
        )
    };
    let rate = |file: &OpenFileReport| rates.of_file(file);
    let mut files: Vec<_> = report.open_files.iter().collect();
    let ahead = |file: &OpenFileReport| -> u64 {
        let streams = file.streams.iter();
        streams.map(|stream| stream.ahead_bytes).sum()
    };
    files.sort_by(|a, b| {
        let order = match view.order {
            Order::Rate => rate(b).total_cmp(&rate(a)),
            Order::Ahead => ahead(b).cmp(&ahead(a)),
            Order::Size => b.file_bytes.cmp(&a.file_bytes),
            Order::Name => Ordering::Equal,
        };
        order.then_with(|| a.path.cmp(&b.path))
    });
    // Files may have been closed since the key was pressed.
    let skipped = view.skipped.min(files.len().saturating_sub(1));
    files.drain(..skipped);
    // A file may have become shorter than where it was read last.
    let percent = |at: u64, of: u64| match at <= of {
        true => Cell::from(format!("{:.0} %", at as f64 * 100.0 / of.max(1) as f64)),
        false => Cell::from("end"),
    };
    let rows = |file: &&OpenFileReport| {
        let shown = |stream: &&StreamReport| stream.ahead_bytes > 0 || stream.waiting > 0;
        let mut streams = file.streams.iter().rev().filter(shown);
        let [window, ahead, waiting] = stream_cells(streams.next());
        let first = row([
            Cell::from(rough_size(rate(file))),
            match file.passthrough {
                true => Cell::from("-"),
                false => percent(file.at_bytes, file.file_bytes),
            },
            Cell::from(rough_size(file.file_bytes as f64)),
            window,
            ahead,
            waiting,
            Cell::from(format!("{} {}", file.process, file.program)),
            Cell::from(file.path.replace(|c: char| c.is_control(), "?")),
        ]);
        let others = streams.map(|stream| {
            let [window, ahead, waiting] = stream_cells(Some(stream));
            let at = percent(stream.at_bytes, file.file_bytes);
            let none = || Cell::from("");
            row([none(), at, none(), window, ahead, waiting, none(), none()])
        });
        let rows: Vec<_> = std::iter::once(first).chain(others).collect();
        rows
    };
    let widths = [
        Constraint::Length(9),
        Constraint::Length(5),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(4),
        Constraint::Length(22),
        Constraint::Fill(1),
    ];
    let head = row([
        "READ/S", "AT", "SIZE", "WINDOW", "AHEAD", "WAIT", "PROCESS", "FILE",
    ]
    .map(Cell::from));
    let widths = widths.into_iter().enumerate();
    let widths = widths.filter(|(at, _)| is_wide || NARROW.contains(at));
    let rows = files.iter().flat_map(rows).take(area.height.into());
    Table::new(rows, widths.map(|(_, width)| width)).header(head.style(Style::new().reversed()))
}

/// Its window, how far it is ahead, and the requests that wait for it.
fn stream_cells(stream: Option<&StreamReport>) -> [Cell<'static>; 3] {
    let Some(stream) = stream else {
        return [const { "-" }; 3].map(Cell::from);
    };
    [
        rough_size(stream.window_bytes as f64),
        rough_size(stream.ahead_bytes as f64),
        stream.waiting.to_string(),
    ]
    .map(Cell::from)
}
