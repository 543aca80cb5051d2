//! Lines of a text, one at a time, in bounded memory.
//!
//! Used by readers of journals. A line that is not UTF-8 or longer than any line of a journal
//! can be is an error with its number, not a reason to read on.

use std::io::{self, BufRead, Read};

/// The longest line of a journal: 64 profile points of 42 characters in each map fit ten times.
const LINE_MAX: u64 = 64 << 10;

/// Why a line cannot be had.
#[derive(Debug)]
pub(crate) enum LinesError {
    /// Not text, or too long.
    NotText { line: u64 },
    /// The text could not be read.
    Io(io::Error),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    /// The number of the line in `text`, from 1.
    pub(crate) line: u64,
    /// The line, without its end.
    pub(crate) text: String,
    /// It is the last and has no end: its writer was ended in the middle of it.
    pub(crate) is_cut: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            line: 0,
            text: String::new(),
            is_cut: false,
        }
    }

    /// Reads the next line into `text`; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool, LinesError> {
        self.line += 1;
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        let mut limited = (&mut self.source).take(LINE_MAX);
        let read = limited
            .read_until(b'\n', &mut bytes)
            .map_err(LinesError::Io)?;
        let not_text = LinesError::NotText { line: self.line };
        self.is_cut = read > 0 && bytes.last() != Some(&b'\n');
        if self.is_cut && read as u64 == LINE_MAX {
            return Err(not_text);
        }
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        self.text = String::from_utf8(bytes).map_err(|_| not_text)?;
        Ok(read > 0)
    }
}
