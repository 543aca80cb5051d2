//! The terminal that standard output is, if it is one.
//!
//! For tables that are fitted to it. Elsewhere lines have their own length, for programs.

use std::io::{IsTerminal, stdout};

use ratatui::crossterm::terminal;

/// Its columns and lines.
#[must_use]
pub fn size() -> Option<(u16, u16)> {
    let is_terminal = stdout().is_terminal();
    is_terminal.then(|| terminal::size().ok()).flatten()
}
