//! The control socket: one line of JSON is a request, one line of JSON its answer.
//!
//! Served for `forerun ctl` and `forerun top`, on one thread: an answer takes microseconds, and a
//! client that connects without asking is dropped after a second. Announcements open files, which
//! may block for as long as a server does not answer, so [`announcements`](super::announcements)
//! answers them. Only the mount's own user can connect.
//!
//! The kernel's readahead and the engine's part of its memory can be changed while a mount runs.
//! Its methods cannot: its journal begins with its settings.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use forerun_core::Bytes;
use rustix::fs::Mode;
use rustix::process::umask;
use serde::{Deserialize, Serialize};

use super::announcements::{Announcements, Range, Taken};
use super::readahead;
use super::report::{Limits, Report, Watched};
use crate::failure::Failure;
use crate::files::plain;

/// A request is a few words, or a part of a list of announced reads; a longer request is from no
/// client of ours.
pub const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// Time limit of a client's request.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time limit of an answer, for clients.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// A request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// The mount's counters so far.
    Stats,
    /// The limits in force.
    Limits,
    /// Let the kernel read this far ahead; answered with the limits in force then.
    SetKernelReadahead {
        /// How far.
        bytes: u64,
    },
    /// Let the engine use this much memory; answered with the limits in force then.
    SetMemory {
        /// How much.
        bytes: u64,
    },
    /// These ranges will be read next, after those announced before.
    Hint {
        /// In the order in which they will be read.
        ranges: Vec<Range>,
    },
}

/// An answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To `Stats`.
    Stats(Box<Report>),
    /// To announced ranges.
    Hints(Taken),
    /// To the others.
    Limits(Limits),
    /// It could not be done.
    Error(String),
}

/// The socket of a running mount. Goes away when dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
}

impl Control {
    /// Makes the socket and serves it.
    ///
    /// # Errors
    /// Something else is there, or a mount that runs.
    pub fn start(path: &Path, watched: Arc<Watched>) -> Result<Self, Failure> {
        let refused = |e: io::Error| Failure::unusable(path, plain(&e));
        let path = std::path::absolute(path).map_err(refused)?;
        clear(&path)?;
        let before = umask(Mode::RWXG | Mode::RWXO);
        let bound = UnixListener::bind(&path);
        umask(before);
        let listener = bound.map_err(refused)?;
        let announcements = Announcements::new(watched.clone());
        let serve = move || {
            for stream in listener.incoming().flatten() {
                // A client that went away has nothing to complain about.
                let _ = answer(&watched, &announcements, stream);
            }
        };
        thread::Builder::new()
            .name("forerun-control".into())
            .spawn(serve)
            .map_err(refused)?;
        Ok(Self { path })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the socket of a mount that is no more.
fn clear(path: &Path) -> Result<(), Failure> {
    match UnixStream::connect(path) {
        Ok(_) => Err(Failure::unusable(path, "another mount listens here")),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            let is_socket =
                |m: std::fs::Metadata| std::os::unix::fs::FileTypeExt::is_socket(&m.file_type());
            if !std::fs::symlink_metadata(path).is_ok_and(is_socket) {
                return Err(Failure::unusable(path, "is there, and is no socket"));
            }
            std::fs::remove_file(path).map_err(|e| Failure::unusable(path, plain(&e)))
        }
        // Nothing there, or binding will give the error.
        Err(_) => Ok(()),
    }
}

fn answer(watched: &Watched, announcements: &Announcements, stream: UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(Question::Hint { ranges }) => match announcements.later(ranges, stream) {
            Ok(()) => return Ok(()),
            Err((why, stream)) => return reply(&stream, &Answer::Error(why)),
        },
        Ok(Question::Stats) => match watched.report() {
            Some(report) => Answer::Stats(Box::new(report)),
            None => Answer::Error("the mount has ended".into()),
        },
        Ok(Question::Limits) => Answer::Limits(watched.limits()),
        Ok(Question::SetKernelReadahead { bytes }) => {
            match readahead::set(watched.device(), Bytes(bytes)) {
                Ok(()) => Answer::Limits(watched.limits()),
                Err(error) => Answer::Error(format!("the kernel's readahead: {error}")),
            }
        }
        Ok(Question::SetMemory { bytes }) => match watched.limit_memory(Bytes(bytes)) {
            Ok(()) => Answer::Limits(watched.limits()),
            Err(error) => Answer::Error(error),
        },
        Err(error) => Answer::Error(format!("not a question: {error}")),
    };
    reply(&stream, &answer)
}

/// Answers a client.
pub(super) fn reply(mut client: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_string(answer)?;
    text.push('\n');
    client.write_all(text.as_bytes())
}

/// Asks a running mount.
///
/// # Errors
/// No process listens, or the listener is no mount.
pub fn ask(path: &Path, question: &Question) -> Result<Answer, Failure> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let seconds = ANSWER_PATIENCE.as_secs();
            let why = format!("no answer within {seconds} s: a file system below may not answer");
            Failure::broken(path, why)
        }
        _ => Failure::broken(path, plain(&e)),
    };
    let mut stream = UnixStream::connect(path).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => Failure::unusable(path, "no mount listens here"),
        _ => Failure::unusable(path, plain(&e)),
    })?;
    stream
        .set_read_timeout(Some(ANSWER_PATIENCE))
        .map_err(failed)?;
    let mut line = serde_json::to_string(question).map_err(|e| failed(e.into()))?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .map_err(failed)?;
    match serde_json::from_str(&answer) {
        Ok(Answer::Error(error)) => Err(Failure::broken(path, error)),
        Ok(answer) => Ok(answer),
        Err(error) => Err(Failure::broken(path, format!("not an answer: {error}"))),
    }
}
