//! The control socket: one line of JSON is a request, one line of JSON its answer.
//!
//! Served for `forerun ctl` and `forerun top`, on one thread that [waits for no client](super::clients): an
//! answer takes microseconds, and a client has five seconds in all. What a daemon answers is its own ([`Answers`]);
//! announcements open files, which may block for as long as a server does not answer, so another thread of a mount
//! answers them. Only the daemon's own user can connect.
//!
//! The kernel's readahead and the engine's part of its memory can be changed while a mount runs, and a watch can
//! pause. Methods cannot be changed: a journal begins with its settings.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::umask;
use serde::{Deserialize, Serialize};

use super::announced::{Range, Taken};
use super::clients::{Asked, Protocol, Server, connection};
use super::report::{Limits, Report};
use crate::failure::Failure;
use crate::files::{check_target, plain};

/// A request is a few words, or a part of a list of announced reads; a longer request is from no
/// client of ours.
pub const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// Time limit of an answer that another thread writes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time limit of an answer, for clients; also for the whole of it.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer that a client takes: 100,000 open files are 40 MB.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// How often a client tries again whose daemon has not accepted 4,096 others yet.
const BUSY: Duration = Duration::from_millis(20);

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
    /// Let a watch set nothing; answered with whether it is paused.
    Pause,
    /// Let it go on; answered with whether it is paused.
    Resume,
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
    /// To `Pause` and `Resume`.
    Paused(bool),
    /// It could not be done.
    Error(String),
    /// A daemon of this kind is not asked that.
    Refused(String),
}

/// A daemon's answers.
pub trait Answers: Send {
    /// To a question; takes no longer than a client waits.
    fn answer(&self, question: Question) -> Answer;

    /// Announced ranges, of which another thread answers the client.
    ///
    /// # Errors
    /// They are not taken, in words; with the client.
    fn announced(&self, ranges: Vec<Range>, client: UnixStream)
    -> Result<(), (String, UnixStream)>;
}

/// The socket of a running daemon. Goes away when dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
}

impl Control {
    /// Makes the socket and serves it.
    ///
    /// # Errors
    /// Something else is there, or a daemon that runs.
    pub fn start(path: &Path, answers: impl Answers + 'static) -> Result<Self, Failure> {
        let refused = |e: io::Error| Failure::unusable(path, plain(&e));
        let path = std::path::absolute(path).map_err(refused)?;
        clear(&path)?;
        let listener = listen(&path)?;
        let mut server = Server::new(Questions { listener, answers });
        let serve = move || server.run();
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

/// Removes the socket of a daemon that is no more.
fn clear(path: &Path) -> Result<(), Failure> {
    // One that takes no connection at once listens all the same.
    let busy = |e: &io::Error| e.kind() == io::ErrorKind::WouldBlock;
    match connect(path, Instant::now()) {
        Ok(_) => Err(Failure::unusable(
            path,
            "another mount or watch listens here",
        )),
        Err(e) if busy(&e) => Err(Failure::unusable(
            path,
            "another mount or watch listens here",
        )),
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

/// Listens at a path. The socket gets its name once it listens: one that does not is taken for that of a
/// killed daemon.
fn listen(path: &Path) -> Result<UnixListener, Failure> {
    check_target(path)?;
    let refused = |e: io::Error| Failure::unusable(path, plain(&e));
    let first = path.with_file_name(format!(".{}", std::process::id()));
    let _ = std::fs::remove_file(&first);
    let before = umask(Mode::RWXG | Mode::RWXO);
    let bound = match UnixListener::bind(&first) {
        Ok(listener) => {
            let named = std::fs::hard_link(&first, path);
            let _ = std::fs::remove_file(&first);
            named.map(|()| listener)
        }
        // The other name may be longer, and the length of names of sockets is limited.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => UnixListener::bind(path),
        Err(error) => Err(error),
    };
    umask(before);
    let listener = bound.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::unusable(path, "another mount or watch listens here")
        }
        _ => refused(e),
    })?;
    listener.set_nonblocking(true).map_err(refused)?;
    Ok(listener)
}

/// The questions of this user's commands.
struct Questions<A> {
    listener: UnixListener,
    answers: A,
}

impl<A: Answers> Protocol for Questions<A> {
    type Stream = UnixStream;

    fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }

    fn asked(&mut self, request: &[u8], client: &UnixStream) -> Asked {
        let line = match request.iter().position(|byte| *byte == b'\n') {
            Some(end) => &request[..end],
            None if request.len() as u64 > REQUEST_BYTES_MAX => request,
            None => return Asked::Partly,
        };
        let answer = match serde_json::from_slice(line) {
            Ok(Question::Hint { ranges }) => match self.pass_on(ranges, client) {
                Ok(()) => return Asked::Passed,
                Err(why) => Answer::Error(why),
            },
            Ok(question) => self.answers.answer(question),
            Err(error) => Answer::Error(format!("not a question: {error}")),
        };
        let head = text(&answer).unwrap_or_default();
        let body = [].into();
        Asked::Answered(connection::Answer { head, body })
    }
}

impl<A: Answers> Questions<A> {
    /// Ranges are announced, and the client answered, by a thread that may wait for a server.
    fn pass_on(&self, ranges: Vec<Range>, client: &UnixStream) -> Result<(), String> {
        let client = client.try_clone().and_then(|client| {
            client.set_nonblocking(false)?;
            client.set_write_timeout(Some(PATIENCE))?;
            Ok(client)
        });
        let client = client.map_err(|error| plain(&error))?;
        self.answers
            .announced(ranges, client)
            .map_err(|(why, client)| {
                // This thread waits for no client.
                let _ = client.set_nonblocking(true);
                why
            })
    }
}

fn text(answer: &Answer) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    Ok(text)
}

/// Answers a client.
///
/// # Errors
/// It is gone, or does not take its answer in time.
pub fn reply(mut client: &UnixStream, answer: &Answer) -> io::Result<()> {
    client.write_all(&text(answer)?)
}

/// Asks a running daemon.
///
/// # Errors
/// No process listens, or the listener is no daemon of ours.
pub fn ask(path: &Path, question: &Question) -> Result<Answer, Failure> {
    ask_within(path, question, ANSWER_PATIENCE)
}

/// The same; a refusal of the daemon is said of this name in place of its socket.
///
/// # Errors
/// The same.
pub fn ask_as(named: &Path, path: &Path, question: &Question) -> Result<Answer, Failure> {
    answered(named, answer(path, question, ANSWER_PATIENCE)?)
}

/// The same, and the whole answer must be there in this time.
///
/// # Errors
/// The same.
pub fn ask_within(path: &Path, question: &Question, patience: Duration) -> Result<Answer, Failure> {
    answered(path, answer(path, question, patience)?)
}

fn answered(named: &Path, answer: Answer) -> Result<Answer, Failure> {
    match answer {
        Answer::Error(error) => Err(Failure::broken(named, error)),
        Answer::Refused(why) => Err(Failure::unusable(named, why)),
        answer => Ok(answer),
    }
}

fn answer(path: &Path, question: &Question, patience: Duration) -> Result<Answer, Failure> {
    let until = Instant::now() + patience;
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let seconds = patience.as_secs();
            let why = format!("no answer within {seconds} s: a file system below may not answer");
            Failure::broken(path, why)
        }
        _ => Failure::broken(path, plain(&e)),
    };
    let mut stream = connect(path, until).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => {
            Failure::unusable(path, "no mount or watch listens here")
        }
        io::ErrorKind::WouldBlock => failed(e),
        _ => Failure::unusable(path, plain(&e)),
    })?;
    let mut line = serde_json::to_vec(question).map_err(|e| failed(e.into()))?;
    line.push(b'\n');
    stream.set_write_timeout(Some(patience)).map_err(failed)?;
    stream.write_all(&line).map_err(failed)?;
    let answer = receive(&mut stream, until).map_err(failed)?;
    serde_json::from_slice(&answer)
        .map_err(|error| Failure::broken(path, format!("not an answer: {error}")))
}

/// Whether no daemon listens at a path. One that is stopped, or that others wait for, listens.
#[must_use]
pub fn is_gone(path: &Path) -> bool {
    let busy = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    connect(path, Instant::now()).is_err_and(|error| !busy(&error))
}

/// A connection, if the listener takes it in time. A stopped one takes 4,096, and the next would wait.
pub(super) fn connect(path: &Path, until: Instant) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Err(Errno::AGAIN) if Instant::now() < until => thread::sleep(BUSY),
            connected => {
                connected?;
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
        }
    }
}

/// A line, or all up to the end.
fn receive(stream: &mut UnixStream, until: Instant) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = match stream.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        answer.extend_from_slice(&piece[..count]);
        if count == 0 || answer.ends_with(b"\n") {
            return Ok(answer);
        }
        if answer.len() as u64 > ANSWER_BYTES_MAX {
            let why = format!("the answer is longer than {ANSWER_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_takes_no_connection_is_there_and_one_that_ended_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        assert!(is_gone(&path));
        let listener = UnixListener::bind(&path).unwrap();
        // Its queue is full: the next connection would wait.
        rustix::net::listen(&listener, 0).unwrap();
        let mut waiting = Vec::new();
        while let Ok(client) = connect(&path, Instant::now()) {
            waiting.push(client);
        }
        assert!(!waiting.is_empty() && !is_gone(&path));
        drop(listener);
        assert!(is_gone(&path));
    }
}
