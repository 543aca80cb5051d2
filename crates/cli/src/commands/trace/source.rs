//! The source of a trace: a file, a pipe, or standard input, which is written `-`.
//!
//! Called by `forerun trace`, which reads it once, and by `forerun simulate`, whose runs may read
//! it again. A pipe can be read once only; where that is not enough, its bytes are copied on the
//! way to a file without a name, and read from there the next time:
//!
//! ```text
//! file    -> open it again, as often as wanted
//! pipe    -> first reading -> records
//!               \-> copy  -> every later reading
//! ```
//!
//! So memory stays as bounded as for a file, and the copy, which is as compressed as the trace is,
//! goes away with the process, also when it is killed. It lies where temporary files do (`TMPDIR`).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::failure::Failure;
use crate::files::{self, plain};

/// The name of standard input.
const STDIN: &str = "-";

/// Bytes that are read once.
pub type Stream = Box<dyn Read + Send>;

/// A trace by its name, not opened yet.
#[derive(Debug)]
pub struct Named {
    path: PathBuf,
    is_pipe: bool,
}

impl Named {
    /// The trace at this path.
    ///
    /// # Errors
    /// There is none, or it is a directory or a device that is no disk.
    pub fn new(path: &Path) -> Result<Self, Failure> {
        let is_fifo = |path: &Path| fs::metadata(path).is_ok_and(|it| it.file_type().is_fifo());
        let is_pipe = path == Path::new(STDIN) || is_fifo(path);
        if !is_pipe {
            files::check(path)?;
        }
        let path = path.to_owned();
        Ok(Self { path, is_pipe })
    }

    /// A trace and its further logs.
    ///
    /// # Errors
    /// See [`Self::new`]; a pipe that is named twice, of which each would get a part.
    pub fn all(path: &Path, more: &[PathBuf]) -> Result<Vec<Self>, Failure> {
        let paths: Vec<&Path> = std::iter::once(path)
            .chain(more.iter().map(PathBuf::as_path))
            .collect();
        files::check_once(&paths)?;
        paths.into_iter().map(Self::new).collect()
    }

    /// As messages name it.
    #[must_use]
    pub fn name(&self) -> String {
        match self.path.as_path() {
            path if path == Path::new(STDIN) => "standard input".to_owned(),
            path => path.display().to_string(),
        }
    }

    /// Its bytes, from the first one on.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> Result<Stream, Failure> {
        if self.path == Path::new(STDIN) {
            return Ok(Box::new(io::stdin()));
        }
        let unusable = |e: io::Error| Failure::unusable(&self.path, plain(&e));
        Ok(Box::new(File::open(&self.path).map_err(unusable)?))
    }

    /// The same trace, to be read again if `again`, which a pipe is copied for.
    ///
    /// # Errors
    /// A pipe cannot be opened, or there is no place for a copy.
    pub fn kept(self, again: bool) -> Result<Kept, Failure> {
        if !self.is_pipe {
            return Ok(Kept::File(self.path));
        }
        let refused = |e| Failure::Run(format!("{}: no copy can be made: {e}", self.name()));
        let copy = again.then(tempfile::tempfile).transpose();
        let copy = copy.map_err(refused)?;
        Ok(Kept::pipe(self.open()?, copy))
    }
}

/// A trace that is opened each time it is read.
pub enum Kept {
    /// It lies there.
    File(PathBuf),
    /// It has passed, or is about to.
    Pipe {
        /// The pipe, until it is read.
        first: Mutex<Option<Stream>>,
        /// The bytes that have passed, if they are kept.
        copy: Option<Arc<File>>,
    },
}

impl Kept {
    fn pipe(stream: Stream, copy: Option<File>) -> Self {
        let copy = copy.map(Arc::new);
        let first: Stream = match &copy {
            Some(copy) => Box::new(Copied {
                stream,
                copy: Arc::clone(copy),
            }),
            None => stream,
        };
        let first = Mutex::new(Some(first));
        Self::Pipe { first, copy }
    }

    /// Its bytes, from the first one on; of a pipe that was not kept, none after the first time.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(&self) -> io::Result<Stream> {
        let (first, copy) = match self {
            Self::File(path) => return Ok(Box::new(File::open(path)?)),
            Self::Pipe { first, copy } => (first, copy),
        };
        let first = first.lock().ok().and_then(|mut first| first.take());
        let copy = copy.as_ref().map(|file| -> Stream {
            let file = Arc::clone(file);
            Box::new(Again { file, at: 0 })
        });
        Ok(first.or(copy).unwrap_or_else(|| Box::new(io::empty())))
    }
}

/// A stream whose bytes are copied as they pass.
struct Copied {
    stream: Stream,
    copy: Arc<File>,
}

impl Read for Copied {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(bytes)?;
        let copied = (&*self.copy).write_all(&bytes[..count]);
        copied.map_err(|e| io::Error::other(format!("its copy cannot be written: {e}")))?;
        Ok(count)
    }
}

/// A file from its beginning, independent of other readers at the same time.
struct Again {
    file: Arc<File>,
    at: u64,
}

impl Read for Again {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(mut stream: Stream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn pipe(copy: Option<File>) -> Kept {
        Kept::pipe(Box::new(io::Cursor::new("1\n2\n")), copy)
    }

    #[test]
    fn a_pipe_that_is_kept_can_be_read_by_several_at_once() {
        let kept = pipe(Some(tempfile::tempfile().unwrap()));
        assert_eq!(text(kept.open().unwrap()), "1\n2\n");
        let mut one = kept.open().unwrap();
        one.read_exact(&mut [0; 2]).unwrap();
        assert_eq!(text(kept.open().unwrap()), "1\n2\n");
        assert_eq!(text(one), "2\n");
    }

    #[test]
    fn a_pipe_that_is_not_kept_is_empty_the_second_time() {
        let kept = pipe(None);
        assert_eq!(text(kept.open().unwrap()), "1\n2\n");
        assert_eq!(text(kept.open().unwrap()), "");
    }
}
