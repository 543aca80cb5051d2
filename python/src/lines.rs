//! Lines of a file that is read without a buffer.
//!
//! Problem: a call for each byte, as `io.RawIOBase` looks for the end of a line, costs 20 us a line. Mechanism: a
//! piece of the file is kept, and lines are cut from it; [`PIECE_MIN`] long at first, and twice as long as the one
//! before, up to [`PIECE_MAX`], where lines are read one after the other. A piece is kept by its offset, so that seeks and
//! other reads need not know of it, and for [`KEPT`] at most, as long as a file may go without a look.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::PyResult;

/// A line or two, in a read that costs about as much as one of a byte.
const PIECE_MIN: usize = 4 << 10;
/// Sixteen blocks: the cost of the read is small against that of its lines.
const PIECE_MAX: usize = 64 << 10;

/// See [`Looks`](forerun_io::Looks).
const KEPT: Duration = Duration::from_millis(100);

/// See the [module](self). Its lock is held with the interpreter, never across a release of it.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Option<Piece>>);

#[derive(Debug)]
struct Piece {
    offset: u64,
    bytes: Vec<u8>,
    read: Instant,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Its bytes from an offset on.
    fn from(&self, offset: u64) -> &[u8] {
        let skip = offset.checked_sub(self.offset);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.bytes.get(skip..)).unwrap_or(&[])
    }
}

impl Lines {
    /// The line at an offset, at most so many bytes of it. `read` fills a buffer from an offset on, at least with a
    /// byte unless the file ends there.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn next(
        &self,
        offset: u64,
        most: usize,
        read: impl Fn(&mut [u8], u64) -> PyResult<usize>,
    ) -> PyResult<Vec<u8>> {
        let mut line = Vec::new();
        let mut piece = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            mem::take(&mut *kept)
        };
        while line.len() < most {
            let at = offset.saturating_add(line.len() as u64);
            let is_fresh = |piece: &&Piece| piece.read.elapsed() < KEPT;
            let there = piece.as_ref().filter(is_fresh).map(|piece| piece.from(at));
            let there = there.unwrap_or(&[]);
            if there.is_empty() {
                let next = Self::piece(piece.as_ref(), at, &read)?;
                let is_end = next.bytes.is_empty();
                piece = Some(next);
                if is_end {
                    break;
                }
                continue;
            }
            let there = &there[..there.len().min(most - line.len())];
            let end = end_of_line(there);
            line.extend_from_slice(&there[..end.unwrap_or(there.len())]);
            if end.is_some() {
                break;
            }
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = piece;
        Ok(line)
    }

    fn piece(
        before: Option<&Piece>,
        offset: u64,
        read: &impl Fn(&mut [u8], u64) -> PyResult<usize>,
    ) -> PyResult<Piece> {
        let before = before.filter(|before| before.end() == offset);
        let bytes = before.map_or(PIECE_MIN, |before| before.bytes.len() * 2);
        let mut bytes = vec![0; bytes.clamp(PIECE_MIN, PIECE_MAX)];
        let taken = read(&mut bytes, offset)?;
        bytes.truncate(taken);
        let read = Instant::now();
        Ok(Piece {
            offset,
            bytes,
            read,
        })
    }
}

/// The end of the first line: behind its last byte.
fn end_of_line(bytes: &[u8]) -> Option<usize> {
    bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .map(|at| at + 1)
}
