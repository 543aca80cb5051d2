//! A record of reads: a trace of the reads of programs from a mount, for `forerun simulate` and `forerun advise`.
//!
//! Problem: advice for a user's own load needs a trace of it. A journal has the engine's inputs, with first touches only.
//!
//! Mechanism: each `READ` request of the kernel is a line of the project's own columns (`time_us`, `thread`, `device`,
//! which is the file, `offset_bytes`, `bytes`), written in pieces by the thread of a [`JournalWriter`], so that no read waits for
//! the record's place. It ends at its bound, with whole lines; later reads are counted and told. A name's commas, percent
//! signs and bytes that are no plain text are written as in an address (`%2C`).
//!
//! Reads that the kernel answers from its page cache never come here, and its readahead asks for more than a program did.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use forerun_core::Bytes;
use forerun_surface::daemon::report::RecordReport;
use forerun_surface::files::plain;
use forerun_surface::quantity::size;

use super::fs::nodes::Node;
use super::journal::JournalWriter;

/// The first line: columns that `docs/TRACES.md` describes.
const HEADER: &str = "time_us,thread,device,offset_bytes,bytes\n";

/// Lines of so many bytes are a piece.
const PIECE: usize = 64 << 10;

/// Files of a trace, most: readers of traces take no more.
const FILES_MAX: usize = (1 << 16) - 1;

/// See the [module](self).
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    begun: Instant,
    lines: Mutex<Lines>,
}

#[derive(Debug)]
struct Lines {
    out: JournalWriter,
    /// Lines that are no piece yet.
    piece: String,
    /// The serial number of a node's file, and its name.
    names: HashMap<Node, (u64, String)>,
    /// Names, each time that a node got one.
    files: usize,
    bytes_left: u64,
    bytes_most: u64,
    reads: u64,
    left_out: u64,
    failed: Option<io::Error>,
    /// Its bound is reached.
    is_full: bool,
    /// A read was left out, and it was said.
    is_told: bool,
}

impl Recorder {
    /// Begins a record of at most so many bytes in a file, whose path is named in messages.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(path: &Path, file: impl Write + Send + 'static, most: Bytes) -> io::Result<Self> {
        let out = JournalWriter::new(file)?;
        let lines = Lines {
            out,
            piece: HEADER.to_owned(),
            names: HashMap::new(),
            files: 0,
            bytes_left: most.0.saturating_sub(HEADER.len() as u64),
            bytes_most: most.0,
            reads: 0,
            left_out: 0,
            failed: None,
            is_full: false,
            is_told: false,
        };
        Ok(Self {
            path: path.to_owned(),
            begun: Instant::now(),
            lines: Mutex::new(lines),
        })
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request came: the thread it is of, the file by its node and a serial number, with its path, and the bytes.
    pub fn read(
        &self,
        thread: u32,
        (node, serial): (Node, u64),
        path: impl FnOnce() -> PathBuf,
        offset: u64,
        bytes: u32,
    ) {
        // The path is looked up without the lock, once a file.
        let is_known = self.lines().is_named(node, serial);
        let name = (!is_known).then(|| escaped(&path()));
        let mut lines = self.lines();
        if let Some(name) = name {
            lines.name(node, serial, name);
        }
        // Under the lock, so that times do not step back.
        let time = self.begun.elapsed().as_micros();
        lines.add(&self.path, time, thread, node, offset, bytes);
    }

    /// Hands on lines that wait.
    pub fn write(&self) {
        self.lines().hand_on();
    }

    /// How far it is.
    #[must_use]
    pub fn report(&self) -> RecordReport {
        let lines = self.lines();
        RecordReport {
            reads: lines.reads,
            left_out: lines.left_out,
            error: lines.failed.as_ref().map(plain),
        }
    }

    /// Writes the rest; how it ended.
    pub fn finish(&self) -> RecordReport {
        let mut lines = self.lines();
        lines.hand_on();
        if lines.failed.is_none() {
            lines.failed = lines.out.flush().err();
        }
        drop(lines);
        self.report()
    }
}

impl Lines {
    fn is_named(&self, node: Node, serial: u64) -> bool {
        self.names.get(&node).is_some_and(|(of, _)| *of == serial)
    }

    /// The file of a node has this name; none if there are too many.
    fn name(&mut self, node: Node, serial: u64, name: String) {
        let before = self.names.remove(&node);
        let is_new = before.is_none_or(|(_, before)| before != name);
        if !is_new || self.files < FILES_MAX {
            self.names.insert(node, (serial, name));
            self.files += usize::from(is_new);
        }
    }

    fn add(&mut self, path: &Path, time: u128, thread: u32, node: Node, offset: u64, bytes: u32) {
        let begin = self.piece.len();
        let name = self
            .names
            .get(&node)
            .filter(|_| self.failed.is_none() && !self.is_full);
        let is_named = name.is_some_and(|(_, name)| {
            // Writing to a string cannot fail.
            writeln!(self.piece, "{time},{thread},{name},{offset},{bytes}").is_ok()
        });
        let written = (self.piece.len() - begin) as u64;
        if is_named && written <= self.bytes_left {
            self.bytes_left -= written;
            self.reads += 1;
        } else {
            self.piece.truncate(begin);
            self.left_out += 1;
            self.is_full |= is_named;
            let bound = match is_named {
                true => size(Bytes(self.bytes_most)).to_string(),
                false => format!("{FILES_MAX} files"),
            };
            if !std::mem::replace(&mut self.is_told, true) {
                tracing::warn!(
                    "--record {}: {bound} are reached: later reads are not in it",
                    path.display()
                );
            }
        }
        if self.piece.len() >= PIECE {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        if self.piece.is_empty() || self.failed.is_some() {
            self.piece.clear();
            return;
        }
        if let Err(error) = self.out.write_all(self.piece.as_bytes()) {
            tracing::warn!("the record of reads ends: {error}");
            self.is_told = true;
            self.failed = Some(error);
        }
        self.piece.clear();
    }
}

/// A path as a cell.
fn escaped(path: &Path) -> String {
    let mut name = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b',' | b';' | b'"' | b'#' | b'\t' => {
                let _ = write!(name, "%{byte:02X}");
            }
            b' '..=b'~' => name.push(char::from(*byte)),
            _ => {
                let _ = write!(name, "%{byte:02X}");
            }
        }
    }
    match name.is_empty() {
        true => "%2F".to_owned(),
        false => name.replace(' ', "%20"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(recorder: &Recorder, file: &Path) -> (RecordReport, String) {
        let recorded = recorder.finish();
        (recorded, std::fs::read_to_string(file).unwrap())
    }

    #[test]
    fn a_file_with_the_number_of_one_that_is_gone_has_its_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.csv");
        let file = std::fs::File::create(&path).unwrap();
        let recorder = Recorder::new(&path, file, Bytes(1 << 20)).unwrap();
        for (serial, name) in [(1, "a"), (1, "renamed"), (2, "b"), (3, "b")] {
            recorder.read(7, (Node(9), serial), || name.into(), 0, 1);
        }
        let (_, text) = text(&recorder, &path);
        let names: Vec<_> = text.lines().map(|line| line.split(',').nth(2)).collect();
        assert_eq!(names[1..], [Some("a"), Some("a"), Some("b"), Some("b")]);
    }

    #[test]
    fn a_record_is_whole_lines_up_to_its_bound_and_the_rest_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.csv");
        let file = std::fs::File::create(&path).unwrap();
        let recorder = Recorder::new(&path, file, Bytes(400)).unwrap();
        for at in 0..50 {
            let path = || "a,b\n c".into();
            recorder.read(7, (Node(1), 0), path, at * 4096, 4096);
        }
        let (recorded, text) = text(&recorder, &path);
        assert!(text.len() <= 400 && text.ends_with('\n'), "{text}");
        assert_eq!(text.lines().count() as u64 - 1, recorded.reads);
        assert_eq!(recorded.reads + recorded.left_out, 50);
        assert!(recorded.left_out > 0 && recorded.reads > 3, "{recorded:?}");
        assert_eq!(text.lines().next().unwrap(), HEADER.trim_end());
        let second = text.lines().nth(2).unwrap();
        assert!(second.ends_with(",7,a%2Cb%0A%20c,4096,4096"), "{second}");
    }
}
