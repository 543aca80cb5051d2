//! The file of a mount's journal, whose place may be full, slow or gone.
//!
//! Problem: the engine's lines are written by the threads that serve reads. A file on a server that does
//! not answer, or a pipe that is not read, would stop them.
//!
//! Mechanism: lines go to a thread of the journal's own through a queue of [`QUEUE_MAX`] pieces. Where
//! the queue is full the journal ends, with that as its error; an error of the file ends it too. A piece is
//! the lines of [`PERIOD`], or the engine's 64 KiB. At the end the rest has [`LAST`] to be written.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

/// Pieces on their way: 4 MiB, or the lines of six seconds. A disk that is busy with other files for a second is
/// not the end.
const QUEUE_MAX: usize = 64;

/// How often the engine's lines are taken, so that a mount that is killed leaves its own: a look at the engine
/// takes less than a microsecond.
pub const PERIOD: Duration = Duration::from_millis(100);

/// How long the end of the mount waits for the last pieces.
const LAST: Duration = Duration::from_secs(1);

enum Piece {
    Lines(Vec<u8>),
    /// All before this are written when it is answered.
    Mark(Sender<()>),
}

/// See the [module](self).
#[derive(Debug)]
pub struct JournalWriter {
    pieces: SyncSender<Piece>,
    failed: Receiver<io::Error>,
    /// It has ended: nothing more is taken.
    ended: bool,
}

impl JournalWriter {
    /// Writes to this file, on a thread of its own.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(mut file: impl Write + Send + 'static) -> io::Result<Self> {
        let (pieces, queue) = sync_channel(QUEUE_MAX);
        let (fail, failed) = channel();
        let write = move || {
            for piece in queue {
                let written = match piece {
                    Piece::Lines(lines) => file.write_all(&lines),
                    Piece::Mark(reached) => {
                        let flushed = file.flush();
                        // One that waits no longer.
                        let _ = reached.send(());
                        flushed
                    }
                };
                if let Err(error) = written {
                    let _ = fail.send(error);
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("forerun-journal".into())
            .spawn(write)?;
        Ok(Self {
            pieces,
            failed,
            ended: false,
        })
    }

    fn put(&mut self, piece: Piece) -> io::Result<()> {
        let refused = match self.pieces.try_send(piece) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(_)) => Errno::TIMEDOUT.into(),
            Err(TrySendError::Disconnected(_)) => self.error(),
        };
        self.ended = true;
        Err(refused)
    }

    /// The error that ended the thread.
    fn error(&self) -> io::Error {
        let error = self.failed.recv_timeout(LAST);
        error.unwrap_or_else(|_| Errno::IO.into())
    }
}

impl Write for JournalWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if let Ok(error) = self.failed.try_recv() {
            self.ended = true;
            return Err(error);
        }
        self.put(Piece::Lines(lines.to_vec()))?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        let (reach, reached) = channel();
        self.put(Piece::Mark(reach))?;
        match reached.recv_timeout(LAST) {
            Ok(()) => Ok(()),
            Err(RecvTimeoutError::Timeout) => Err(Errno::TIMEDOUT.into()),
            Err(RecvTimeoutError::Disconnected) => Err(self.error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Fails after so many bytes, as a full disk does.
    struct Short(Arc<Mutex<Vec<u8>>>, usize);

    impl Write for Short {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.0.lock().unwrap();
            if written.len() + bytes.len() > self.1 {
                return Err(Errno::FBIG.into());
            }
            written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_arrive_in_order_and_a_full_disk_is_an_error() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut journal = JournalWriter::new(Short(written.clone(), 10)).unwrap();
        journal.write_all(b"12345").unwrap();
        journal.write_all(b"67890").unwrap();
        journal.flush().unwrap();
        assert_eq!(*written.lock().unwrap(), b"1234567890");
        journal.write_all(b"x").unwrap();
        let error = journal.flush().unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::FBIG));
    }

    /// Writes nothing before it is let.
    struct Silent(Receiver<()>);

    impl Write for Silent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_does_not_answer_ends_the_journal_and_stops_no_writer() {
        let (open, gate) = channel::<()>();
        let mut journal = JournalWriter::new(Silent(gate)).unwrap();
        let full = (0..=QUEUE_MAX + 1).find_map(|_| journal.write_all(b"lines").err());
        let error = full.expect("the queue has an end");
        assert_eq!(Errno::from_io_error(&error), Some(Errno::TIMEDOUT));
        drop(open);
    }
}
