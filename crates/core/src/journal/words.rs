//! The words of a journal line, taken one by one, each as the kind expected there.
//!
//! Called by the [parts](super::parts) of a line. A word that is missing or
//! another is answered with the kind that was expected. It knows no input and no output.

use alloc::vec::Vec;
use core::str::{FromStr, SplitAsciiWhitespace};

use super::LineError;
use crate::units::Bytes;

/// The rest of a line.
pub(super) struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Self(line.split_ascii_whitespace())
    }

    pub(super) fn word(&mut self, expected: &'static str) -> Result<&'a str, LineError> {
        self.0.next().ok_or(LineError::Missing(expected))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.clone().next().is_none()
    }

    pub(super) fn number<T: FromStr>(&mut self, expected: &'static str) -> Result<T, LineError> {
        parsed(self.word(expected)?, expected)
    }

    /// The number behind a keyword, as in `count 16`.
    pub(super) fn field<T: FromStr>(&mut self, name: &'static str) -> Result<T, LineError> {
        self.keyword(name)?;
        self.number(name)
    }

    /// Passes a word if it comes next.
    pub(super) fn follows(&mut self, name: &str) -> bool {
        let follows = self.0.clone().next() == Some(name);
        if follows {
            self.0.next();
        }
        follows
    }

    pub(super) fn keyword(&mut self, name: &'static str) -> Result<(), LineError> {
        match self.word(name)? {
            word if word == name => Ok(()),
            word => Err(unexpected(name, word)),
        }
    }

    /// Values by position, as in `0:8000000,1000:9000000`.
    pub(super) fn points(&mut self) -> Result<Vec<(Bytes, u64)>, LineError> {
        self.list("position:value,..", |point| {
            let (at, value) = point.split_once(':')?;
            Some((Bytes(at.parse().ok()?), value.parse().ok()?))
        })
    }

    /// Entries between commas.
    pub(super) fn list<T, L: FromIterator<T>>(
        &mut self,
        expected: &'static str,
        entry: impl Fn(&str) -> Option<T>,
    ) -> Result<L, LineError> {
        let word = self.word(expected)?;
        let entries: Option<L> = word.split(',').map(entry).collect();
        entries.ok_or_else(|| unexpected(expected, word))
    }

    /// The line is over.
    pub(super) fn end(&mut self) -> Result<(), LineError> {
        match self.0.next() {
            Some(word) => Err(LineError::Trailing(word.into())),
            None => Ok(()),
        }
    }
}

/// Three numbers between colons.
pub(super) fn three<A: FromStr, B: FromStr, C: FromStr>(text: &str) -> Option<(A, B, C)> {
    let (first, rest) = text.split_once(':')?;
    let (second, third) = rest.split_once(':')?;
    let (first, second) = (first.parse().ok()?, second.parse().ok()?);
    Some((first, second, third.parse().ok()?))
}

fn parsed<T: FromStr>(word: &str, expected: &'static str) -> Result<T, LineError> {
    word.parse().map_err(|_| unexpected(expected, word))
}

pub(super) fn unexpected(expected: &'static str, found: &str) -> LineError {
    LineError::Unexpected {
        expected,
        found: found.into(),
    }
}
