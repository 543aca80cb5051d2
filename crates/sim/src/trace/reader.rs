//! Reading a trace: an iterator of requests over a file of any format and length.
//!
//! Joins the source, one format's reader and the sorting window. Memory is bounded by the longest
//! line, the window and the names a format keeps. The first error ends the iteration: requests of a
//! damaged file up to there are right, the rest cannot be trusted. An error early in the file is
//! answered with the format the file looks like, if it is another one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::{Cause, Position, TraceError};
use super::format::{Decode, Format, Options, Unit, csv};
use super::record::Record;
use super::source::Source;
use super::window::{Placed, Window};

/// The requests of a trace. See the [module](self).
pub struct Records {
    file: String,
    format: &'static Format,
    source: Source,
    decoder: Box<dyn Decode>,
    window: Window,
    /// The request last read, and how often it is still to be given out.
    again: Option<(Placed, u32)>,
    /// Requests read from the file.
    found: u64,
    state: State,
    /// Where the request last given out stands.
    given: Option<Position>,
}

/// How far the reading is. The window is emptied before a failure is returned.
enum State {
    Reading,
    Failing(TraceError),
    Over,
}

/// Reads a trace from a file. Without a format, it is guessed.
///
/// # Errors
/// The file cannot be read, or is of no known format.
pub fn open(
    path: &Path,
    format: Option<&'static Format>,
    options: &Options,
) -> Result<Records, TraceError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => read(&name, file, format, options),
        Err(error) => Err(TraceError::unread(&name, &error)),
    }
}

/// Reads a trace from anything; `name` stands in messages.
///
/// # Errors
/// It cannot be read, or is of no known format.
pub fn read(
    name: &str,
    file: impl Read + 'static,
    format: Option<&'static Format>,
    options: &Options,
) -> Result<Records, TraceError> {
    let failed = |at, cause| TraceError::new(name, format.map(|f| f.name), Some(at), cause, None);
    let source = Source::new(file).map_err(|cause| failed(Position::Byte(0), cause))?;
    let begin = beginning(source.head());
    let fail = |cause| failed(begin, cause);
    let (head, is_whole) = (source.head(), source.is_whole());
    let unknown = || match head {
        [] => Cause::Empty,
        _ => Cause::unknown(head, Format::fitting(head, is_whole)),
    };
    let format = match (format, &options.columns) {
        (Some(named), Some(_)) if named.name != csv::FORMAT.name => {
            return Err(fail(Cause::Columns));
        }
        (None, Some(_)) => Some(&csv::FORMAT),
        _ => format,
    };
    let guess = || Format::guess(head, is_whole);
    let nearest = || Format::nearest(head, is_whole);
    if let Some(foreign) = Format::foreign(head) {
        return Err(fail(Cause::Foreign(foreign)));
    }
    if let Some(format) = format.filter(|format| !format.is_marked) {
        refuse_other(name, format, guess(), source.head())?;
    }
    let format = format.or_else(guess).or_else(nearest);
    let format = format.ok_or_else(|| fail(unknown()))?;
    Ok(Records {
        file: name.to_owned(),
        format,
        source,
        decoder: (format.reader)(options),
        window: Window::new(options.sort_window),
        again: None,
        found: 0,
        state: State::Reading,
        given: None,
    })
}

/// The place of an error about a whole trace: the first line of a text, else the first byte.
fn beginning(head: &[u8]) -> Position {
    match head.is_empty() || head.contains(&0) {
        true => Position::Byte(0),
        false => Position::Line(1),
    }
}

/// An error if a format that anything might be of was named where another one fits.
fn refuse_other(
    name: &str,
    format: &'static Format,
    guess: Option<&'static Format>,
    head: &[u8],
) -> Result<(), TraceError> {
    match guess.map(|guess| guess.name) {
        Some(other) if other != format.name => {
            let at = Some(beginning(head));
            let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let cause = Cause::form(line.trim_ascii_end(), format.form);
            Err(TraceError::new(
                name,
                Some(format.name),
                at,
                cause,
                Some(other),
            ))
        }
        _ => Ok(()),
    }
}

impl Records {
    /// The format: the one named, or the guess.
    #[must_use]
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// How many requests so far were older than the one before them in the file.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.window.moved()
    }

    /// How many requests so far were left out: deletions, and requests without a direction.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.decoder.left_out()
    }

    /// Where in the file the request last given out stands.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.given
    }

    /// The request last given out cannot be used.
    pub(super) fn refused(&self, cause: Cause) -> TraceError {
        TraceError::new(&self.file, Some(self.format.name), self.given, cause, None)
    }

    /// Gives out a request.
    fn give(&mut self, (at, record): Placed) -> Record {
        self.given = Some(at);
        record
    }

    /// Reads until there is a request in the window that may be given out, or the end.
    fn fill(&mut self) -> Result<Option<Placed>, TraceError> {
        loop {
            let at = match self.decoder.unit() {
                Unit::Line => Position::Line(self.source.line() + 1),
                Unit::Bytes(_) => Position::Byte(self.source.byte()),
            };
            match self.step(at) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(cause) => return Err(self.error(at, cause)),
            }
            if let Some(record) = self.window.pop() {
                return Ok(Some(record));
            }
        }
    }

    /// Reads one line or record; false at the end.
    fn step(&mut self, at: Position) -> Result<bool, Cause> {
        if let Some((placed, left)) = self.again.take() {
            self.again = (left > 1).then_some((placed, left - 1));
            self.window.push(placed)?;
            return Ok(true);
        }
        let more = match self.decoder.unit() {
            Unit::Line => self.source.next_line()?,
            Unit::Bytes(bytes) => self.source.next_record(bytes)?,
        };
        if !more {
            self.decoder.end()?;
            return if self.found == 0 {
                Err(Cause::Empty)
            } else {
                Ok(false)
            };
        }
        let unit = self.source.unit();
        if self.decoder.unit() == Unit::Line && unit.trim_ascii().is_empty() {
            return Ok(true);
        }
        if let Some(record) = self.decoder.take(unit)? {
            self.found += 1;
            let left = self.decoder.repeats().saturating_sub(1);
            self.again = (left > 0).then_some(((at, record), left));
            self.window.push((at, record))?;
        }
        Ok(true)
    }

    fn error(&self, at: Position, cause: Cause) -> TraceError {
        // Later in a file the format was right, and something else is wrong.
        let is_early = self.source.byte() <= self.source.head().len() as u64;
        let about_form = matches!(
            cause,
            Cause::Form { .. }
                | Cause::Field { .. }
                | Cause::LongLine { .. }
                | Cause::Return { .. }
                | Cause::Cut { .. }
        );
        let other = (is_early && about_form)
            .then(|| Format::guess(self.source.head(), self.source.is_whole()))
            .flatten()
            .map(|format| format.name)
            .filter(|name| *name != self.format.name);
        TraceError::new(&self.file, Some(self.format.name), Some(at), cause, other)
    }
}

impl Iterator for Records {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.state, State::Reading) {
            self.state = match self.fill() {
                Ok(Some(placed)) => return Some(Ok(self.give(placed))),
                Ok(None) => State::Over,
                Err(error) => State::Failing(error),
            };
        }
        if let Some(placed) = self.window.pop_last() {
            return Some(Ok(self.give(placed)));
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Failing(error) => Some(Err(error)),
            _ => None,
        }
    }
}

impl core::fmt::Debug for Records {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Records")
            .field("file", &self.file)
            .field("format", &self.format.name)
            .field("line", &self.source.line())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn records(format: &str, text: &str) -> Records {
        let (text, format) = (Cursor::new(text.to_owned()), Format::named(format));
        read("t", text, format, &Options::default()).unwrap()
    }

    fn message(format: &str, text: &str) -> String {
        let error = records(format, text).find_map(Result::err);
        error.map_or(String::new(), |error| error.to_string())
    }

    #[test]
    fn what_is_good_before_an_error_comes_first_and_nothing_after() {
        let mut records = records("lirs", "1\n\n2\nx\n3\n");
        assert_eq!(records.next(), Some(Ok(Record::block(1))));
        assert_eq!(records.next(), Some(Ok(Record::block(2))));
        let error = records.next().unwrap().unwrap_err();
        assert_eq!(error.position(), Some(Position::Line(4)));
        assert!(records.next().is_none());
    }

    #[test]
    fn a_wrong_format_is_answered_with_the_right_one() {
        assert_eq!(
            message("spc", "0.000 0 2389632 16 1\n200.000 0 2342448 16 1\n"),
            "t:1: \"0.000 0 2389632 16 1\": must be asu,lba,bytes,r|w,seconds \
             (read as spc; it looks like disksim)"
        );
        let vscsi = message("vscsi", "1\n2\n");
        assert_eq!(
            vscsi,
            "t: byte 0: the file ends inside a record: 4 of 32 bytes are there \
             (read as vscsi; it looks like lirs)"
        );
    }

    #[test]
    fn a_trace_without_a_request_is_an_error() {
        assert_eq!(
            message("lirs", "*\n"),
            "t:2: there is no request in it (read as lirs)"
        );
        let nothing = read("t", Cursor::new(""), None, &Options::default());
        assert_eq!(nothing.unwrap_err().cause(), &Cause::Empty);
    }

    #[test]
    fn a_fault_deep_in_a_file_brings_no_guess() {
        let mut text = "1\n".repeat(5000);
        text += "1 2\n";
        let error = records("lirs", &text).find_map(Result::err).unwrap();
        assert_eq!(error.position(), Some(Position::Line(5001)));
        assert_eq!(error.looks_like(), None);
    }
}
