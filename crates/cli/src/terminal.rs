//! The terminal behind standard output, if it is one.
//!
//! For tables that are fitted to it. Elsewhere lines have their own length, for programs.

use std::io::{IsTerminal, stdout};

use comfy_table::{ContentArrangement, Table, presets};
use rustix::termios::tcgetwinsize;

/// Its columns and lines.
#[must_use]
pub fn size() -> Option<(u16, u16)> {
    let is_terminal = stdout().is_terminal();
    let size = is_terminal.then(|| tcgetwinsize(stdout()).ok()).flatten()?;
    // A terminal that does not tell its size says 0.
    (size.ws_col > 0).then_some((size.ws_col, size.ws_row))
}

/// A table without lines between cells. In a terminal it is as wide as that but for `spare`
/// columns, and no narrower than `narrowest`; elsewhere it is as wide as its cells.
#[must_use]
pub fn table(spare: u16, narrowest: u16) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if let Some((columns, _)) = size() {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(columns.saturating_sub(spare).max(narrowest));
    }
    table
}
