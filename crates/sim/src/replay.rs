//! Replay: a journal is fed to a fresh engine, which must take the same decisions again.
//!
//! Called with the journal of a run, simulated or real. The head gives the settings; every input
//! line is handed to the engine, every output line compared with the engine's next output. The
//! text is read line by line, so a journal of any length takes no memory beyond the engine's.
//!
//! ```text
//! < input   -> Engine::handle          (the outputs before must have been drained)
//! > output  <- Engine::poll, compared
//! ```
//!
//! `idle -` may be written or left out: the next input says the same. A journal may stop in the
//! middle of an input's outputs, or of a line (the recorder was killed); the count shows it. A line
//! without its end is no line: a part of a number is another number.
//!
//! It runs no device and no reader, and it treats journals of every recorder alike.

use std::io::{self, BufRead};

use forerun_baselines::METHODS;
use forerun_core::journal::{Entry, LineError, parse_head};
use forerun_core::{Engine, Nanos, Output, Settings};

use crate::lines::{Lines, LinesError};

/// Counters of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Inputs handed to the engine.
    pub inputs: u64,
    /// Outputs compared.
    pub outputs: u64,
    /// The time of the last input.
    pub last: Nanos,
    /// Whether the journal ended where the engine was drained.
    pub complete: bool,
}

/// The first decision that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line of the journal, from 1.
    pub line: u64,
    /// The journal's line there; an input line if by the journal the engine was drained.
    pub expected: String,
    /// The engine's output.
    pub got: String,
    /// The input that caused it.
    pub input: String,
    /// The line of that input.
    pub input_line: u64,
}

/// Why a journal was not replayed to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The engine decides otherwise.
    Difference(Box<Difference>),
    /// A line that cannot be read.
    Line {
        /// Its number, from 1.
        line: u64,
        /// The fault in it.
        error: LineError,
    },
    /// A line that is too long, or not text.
    NotText {
        /// Its number, from 1.
        line: u64,
    },
    /// An input earlier than the one before.
    Time {
        /// Its line, from 1.
        line: u64,
    },
    /// The text could not be read.
    Io(io::Error),
}

impl core::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Difference(d) => write!(
                f,
                "line {}: the journal says {:?}, the engine {:?}, after line {}: {:?}",
                d.line, d.expected, d.got, d.input_line, d.input
            ),
            Self::Line { line, error } => write!(f, "line {line}: {error}"),
            Self::NotText { line } => write!(f, "line {line}: not text, or too long"),
            Self::Time { line } => write!(f, "line {line}: earlier than the input before"),
            Self::Io(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for ReplayError {}

impl From<LinesError> for ReplayError {
    fn from(e: LinesError) -> Self {
        match e {
            LinesError::NotText { line } => Self::NotText { line },
            LinesError::Io(e) => Self::Io(e),
        }
    }
}

/// Replays a journal.
///
/// # Errors
/// The first difference, or the first line that cannot be used.
pub fn replay(journal: impl BufRead) -> Result<Replayed, ReplayError> {
    let mut lines = Lines::new(journal);
    let settings = settings(&mut lines)?;
    let settings_error = |e| ReplayError::Line {
        line: 2,
        error: LineError::Settings(e),
    };
    let mut player = Player {
        engine: Engine::new(settings).map_err(settings_error)?,
        input: String::new(),
        input_line: 2,
        replayed: Replayed::default(),
    };
    while lines.next()? && !lines.is_cut {
        player.line(&lines)?;
    }
    Ok(player.end(lines.is_cut))
}

/// Reads the two lines at the head of a journal: the settings it was recorded with.
///
/// # Errors
/// It is no journal, or its settings cannot be read.
pub(crate) fn settings<R: BufRead>(lines: &mut Lines<R>) -> Result<Settings, ReplayError> {
    lines.next()?;
    let first = lines.text.clone();
    lines.next()?;
    // Of a line without its end the last number may be another one.
    let second = if lines.is_cut { "" } else { &lines.text };
    parse_head(&first, second, &METHODS).map_err(|error| {
        let line = match error {
            LineError::Magic | LineError::Version(_) => 1,
            _ => 2,
        };
        ReplayError::Line { line, error }
    })
}

struct Player {
    engine: Engine,
    input: String,
    input_line: u64,
    replayed: Replayed,
}

impl Player {
    fn line<R: BufRead>(&mut self, lines: &Lines<R>) -> Result<(), ReplayError> {
        if lines.text.is_empty() {
            return Ok(());
        }
        let entry: Entry = lines.text.parse().map_err(|error| ReplayError::Line {
            line: lines.line,
            error,
        })?;
        match entry {
            Entry::Input(now, input) => {
                self.drain(lines)?;
                if now < self.replayed.last {
                    return Err(ReplayError::Time { line: lines.line });
                }
                self.replayed.last = now;
                self.replayed.inputs += 1;
                self.input.clone_from(&lines.text);
                self.input_line = lines.line;
                self.engine.handle(now, input);
                Ok(())
            }
            Entry::Output(expected) => self.compare(lines, expected),
        }
    }

    /// The journal has all outputs of the input before.
    fn drain<R: BufRead>(&mut self, lines: &Lines<R>) -> Result<(), ReplayError> {
        match self.engine.poll() {
            None => Ok(()),
            Some(got) => Err(self.difference(lines, &got.to_string())),
        }
    }

    fn compare<R: BufRead>(
        &mut self,
        lines: &Lines<R>,
        expected: Output,
    ) -> Result<(), ReplayError> {
        match self.engine.poll() {
            None => Err(self.difference(lines, "nothing more")),
            Some(got) if got != expected => {
                Err(self.difference(lines, &Entry::Output(got).to_string()))
            }
            Some(_) => {
                self.replayed.outputs += 1;
                Ok(())
            }
        }
    }

    fn difference<R: BufRead>(&self, lines: &Lines<R>, got: &str) -> ReplayError {
        ReplayError::Difference(Box::new(Difference {
            line: lines.line,
            expected: lines.text.clone(),
            got: got.to_owned(),
            input: self.input.clone(),
            input_line: self.input_line,
        }))
    }

    fn end(mut self, is_cut: bool) -> Replayed {
        self.replayed.complete = self.engine.poll().is_none() && !is_cut;
        self.replayed
    }
}
