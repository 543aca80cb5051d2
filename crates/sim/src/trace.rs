//! Traces: recorded accesses as a workload.
//!
//! A [`Trace`] is a list of (reader, offset, bytes, think), in the order in which each reader made
//! them; the world plays it back closed-loop: a reader's next access begins when the one before
//! was served and its think time is over. It keeps the list in memory, 32 bytes an access. A
//! [`journal`] becomes one.
//!
//! Published traces, in any of the formats of [`format::LIST`], are [`read`] as a stream of
//! [`Record`]s in bounded memory, to be counted ([`Summary`]), written in another format
//! ([`mod@convert`]), or simulated:
//!
//! ```text
//! file -> decompressed -> lines or records -> one format -> sorting window -> Record, Record, ..
//! ```
//!
//! Several files, or a part of the requests, are [`Logs`].

pub mod convert;
pub mod error;
mod fields;
pub mod format;
pub mod journal;
pub mod logs;
pub mod reader;
pub mod record;
pub mod sample;
mod source;
pub mod summary;
mod window;

pub use error::{Cause, Position, TraceError};
pub use format::{Format, Options};
pub use logs::{Filter, Logs};
pub use reader::{Records, open, read};
pub use record::{Label, Op, Place, Record};
pub use summary::{Summary, SummaryError};

use forerun_core::Bytes;

use crate::workload::{Step, Steps, Workload};

/// One recorded access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The reader: an index into the trace's readers.
    pub reader: usize,
    /// Where in its file.
    pub offset: u64,
    /// How much.
    pub bytes: u64,
    /// Computing time before it.
    pub think_ns: u64,
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    files: Vec<Bytes>,
    readers: Vec<usize>,
    steps: Vec<Vec<Step>>,
}

/// Why accesses make no trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessError {
    /// A reader opens a file that is not in the list; the reader.
    File(usize),
    /// An access by a reader that is not in the list; the position of the access.
    Reader(usize),
}

impl core::fmt::Display for AccessError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::File(reader) => write!(f, "reader {reader} opens a file that is not there"),
            Self::Reader(at) => write!(f, "access {at} is by a reader that is not there"),
        }
    }
}

impl core::error::Error for AccessError {}

impl Trace {
    /// A trace over files of these sizes, by readers that open these files.
    ///
    /// # Errors
    /// A file or a reader that is not there.
    pub fn new(
        files: Vec<Bytes>,
        readers: Vec<usize>,
        accesses: impl IntoIterator<Item = Access>,
    ) -> Result<Self, AccessError> {
        if let Some(reader) = readers.iter().position(|file| *file >= files.len()) {
            return Err(AccessError::File(reader));
        }
        let mut steps = vec![Vec::new(); readers.len()];
        for (at, access) in accesses.into_iter().enumerate() {
            let own = steps
                .get_mut(access.reader)
                .ok_or(AccessError::Reader(at))?;
            own.push(Step::read(access.offset, access.bytes, access.think_ns));
        }
        Ok(Self {
            files,
            readers,
            steps,
        })
    }
}

impl Workload for Trace {
    fn files(&self) -> Vec<Bytes> {
        self.files.clone()
    }

    fn readers(&self) -> Vec<usize> {
        self.readers.clone()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        Box::new(self.steps.get(reader).into_iter().flatten().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_go_to_their_readers_in_order() {
        let access = |reader, offset| Access {
            reader,
            offset,
            bytes: 1,
            think_ns: 2,
        };
        let trace = Trace::new(
            vec![Bytes(9)],
            vec![0, 0],
            [access(1, 5), access(0, 7), access(1, 3)],
        );
        let offsets: Vec<u64> = trace.unwrap().steps(1).map(|s| s.offset.0).collect();
        assert_eq!(offsets, [5, 3]);
        assert_eq!(
            Trace::new(vec![], vec![], [access(0, 0)]),
            Err(AccessError::Reader(0))
        );
        assert_eq!(Trace::new(vec![], vec![0], []), Err(AccessError::File(0)));
    }
}
