//! A journal as a trace: the reads of a real run, to be read again under another preset or device.
//!
//! [`crate::replay`] asks whether the engine still decides the same; this module serves runs of
//! another engine. Of the inputs it keeps files, opens and accesses:
//!
//! ```text
//! read .. fresh  ->  an access from its head on, after the time since the reader's last answer
//! await .. fresh ->  the same; touches of the blocks awaited are part of it
//! touch          ->  an access without thinking: blocks hit for the first time, unless the next
//!                    read says that they were its head
//! ```
//!
//! A journal does not hold everything; lost are reads that only hit again, where inside a block one
//! began, and which part of a retried read was taken. Times contain the recorder's own copying.

use std::collections::{BTreeMap, VecDeque};
use std::io::BufRead;
use std::ops::Range;

use forerun_core::journal::Entry;
use forerun_core::protocol::Wants;
use forerun_core::{FileId, Input, Nanos, Output, ReadId, ReaderId, Settings};

use super::Trace;
use crate::lines::Lines;
use crate::replay::{self, ReplayError};
use crate::workload::Step;

/// Ranges remembered that a reader awaited: the kernel has some requests of one under way.
const AWAITED_MAX: usize = 64;

/// Reads a journal as a trace; also returns its settings.
///
/// # Errors
/// The first line that cannot be read.
pub fn trace(journal: impl BufRead) -> Result<(Settings, Trace), ReplayError> {
    let mut lines = Lines::new(journal);
    let settings = replay::settings(&mut lines)?;
    let mut seen = Seen {
        block_bytes: u64::from(settings.block_bytes),
        ..Seen::default()
    };
    while lines.next()? && !lines.is_cut {
        if !lines.text.is_empty() {
            let line = lines.line;
            let entry = lines
                .text
                .parse()
                .map_err(|error| ReplayError::Line { line, error })?;
            seen.entry(&entry);
        }
    }
    Ok((settings, seen.trace))
}

/// State of the parser. Numbers of files and readers are reused in a journal; here each opening
/// and each version is one of its own.
#[derive(Default)]
struct Seen {
    block_bytes: u64,
    now: Nanos,
    trace: Trace,
    file_of: BTreeMap<FileId, usize>,
    reader_of: BTreeMap<ReaderId, usize>,
    reads: BTreeMap<ReadId, usize>,
    /// When each reader was last answered.
    answered: Vec<Nanos>,
    /// How many of each reader's last steps are touches.
    touched: Vec<usize>,
    /// The last awaited blocks of each reader.
    awaited: Vec<VecDeque<Range<u32>>>,
}

impl Seen {
    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Input(now, input) => {
                self.now = *now;
                self.input(input);
            }
            Entry::Output(Output::Serve { read, .. }) => {
                if let Some(reader) = self.reads.remove(read) {
                    self.answered[reader] = self.now;
                }
            }
            Entry::Output(_) => {}
        }
    }

    fn input(&mut self, input: &Input) {
        match *input {
            Input::File { file, bytes, .. } => {
                self.file_of.insert(file, self.trace.files.len());
                self.trace.files.push(bytes);
            }
            Input::Open { reader, file } => {
                if let Some(&file) = self.file_of.get(&file) {
                    self.reader_of.insert(reader, self.trace.readers.len());
                    self.trace.readers.push(file);
                    self.trace.steps.push(Vec::new());
                    self.answered.push(self.now);
                    self.touched.push(0);
                    self.awaited.push(VecDeque::new());
                }
            }
            Input::Read {
                read,
                reader,
                access,
                fresh,
                wants,
            } => {
                let Some(&reader) = self.reader_of.get(&reader) else {
                    return;
                };
                self.reads.insert(read, reader);
                let (first, count) = (access.block.0, access.count);
                if fresh {
                    let head = access.head.min(first);
                    self.read(reader, first - head, u64::from(head) + u64::from(count));
                }
                if fresh && wants == Wants::Presence {
                    self.await_touches(reader, first, count);
                }
            }
            Input::Touch {
                reader,
                first,
                count,
            } => {
                if let Some(&reader) = self.reader_of.get(&reader)
                    && !self.was_awaited(reader, first.0, count)
                {
                    self.touched[reader] += 1;
                    self.access(reader, first.0, count.into(), Nanos(0));
                }
            }
            _ => {}
        }
    }

    /// Awaited blocks were counted then; the touches of the reader that comes for them are no
    /// accesses.
    fn await_touches(&mut self, reader: usize, first: u32, count: u32) {
        let awaited = &mut self.awaited[reader];
        awaited.push_back(first..first.saturating_add(count));
        if awaited.len() > AWAITED_MAX {
            awaited.pop_front();
        }
    }

    fn was_awaited(&self, reader: usize, first: u32, count: u32) -> bool {
        let end = first.saturating_add(count);
        let mut awaited = self.awaited[reader].iter();
        awaited.any(|range| range.start <= first && end <= range.end)
    }

    /// An access, which the touches of its own head are no part of.
    fn read(&mut self, reader: usize, first: u32, blocks: u64) {
        let start = u64::from(first) * self.block_bytes;
        let end = start + blocks * self.block_bytes;
        let own = |step: &Step| step.offset.0 >= start && step.offset.0 + step.bytes.0 <= end;
        while self.touched[reader] > 0
            && self.trace.steps[reader].pop_if(|step| own(step)).is_some()
        {
            self.touched[reader] -= 1;
        }
        self.touched[reader] = 0;
        let think = self.now.since(self.answered[reader]);
        self.access(reader, first, blocks, think);
    }

    fn access(&mut self, reader: usize, first: u32, blocks: u64, think: Nanos) {
        let (offset, bytes) = (
            u64::from(first) * self.block_bytes,
            blocks * self.block_bytes,
        );
        self.trace.steps[reader].push(Step::read(offset, bytes, think.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_baselines::PRESETS;
    use forerun_core::Bytes;

    #[test]
    fn what_was_awaited_is_one_access_and_taking_it_is_none() {
        let settings = PRESETS[0].settings(Bytes(16 << 20)).unwrap();
        let journal = format!(
            "{}\n\
             < 0 file 0 device 0 at 0 bytes 409600\n\
             < 0 open 0 file 0\n\
             < 10 await 0 reader 0 previous - first 0 count 64 fresh\n\
             > serve 0 end\n\
             < 30 touch 0 first 0 count 32\n\
             < 30 read 0 reader 0 previous - head 32 first 32 count 32 rest\n\
             < 50 await 1 reader 0 previous 63 first 64 count 36 fresh\n",
            forerun_core::journal::head(&settings)
        );
        let (_, trace) = trace(journal.as_bytes()).unwrap();
        let seen: Vec<_> = trace.steps[0]
            .iter()
            .map(|step| (step.offset.0, step.bytes.0))
            .collect();
        assert_eq!(seen, [(0, 64 * 4096), (64 * 4096, 36 * 4096)]);
    }
}
