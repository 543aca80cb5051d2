//! A daemon in the background that is known to work before the command returns.
//!
//! Called by `mount` unless `--foreground`, and by `watch --background`. A process with threads cannot fork, so the same
//! binary is started once more with `--report-ready`, and reports its result on standard output:
//!
//! ```text
//! forerun mount A B
//!   |-- starts --> forerun mount A B --report-ready
//!   |                | checks, mounts, serves
//!   |<-- "ready" ----| lets go of the terminal and of the working directory
//!   | exit 0         | goes on
//!   |<-- "2 B: is not empty", exit
//!   | exit 2
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use forerun_io::inherited::inherit_only;
use rustix::io::Errno;
use rustix::net::{SocketType, sockopt};

use super::status;
use crate::failure::Failure;

/// The socket of the system's log.
const LOG: &str = "/dev/log";

/// The word for a daemon that works.
const READY: &str = "ready";

/// Starts the daemon of these words, the command line with the program's name, in the background, and waits until it
/// works.
///
/// # Errors
/// The error of that process.
pub fn start(words: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let cannot = |e: io::Error| Failure::Run(format!("cannot start in the background: {e}"));
    let words: Vec<OsString> = words.into_iter().skip(1).collect();
    // A lock or a pipe of the starting program is not the daemon's to hold. Variables name files of credentials.
    let variables = std::env::vars_os().map(|(_, value)| value);
    inherit_only(&named(words.iter().cloned().chain(variables)));
    let mut child = Command::new(std::env::current_exe().map_err(cannot)?)
        // Not the name mount(8) may have called us by: the words are expanded already.
        .arg0("forerun")
        .args(words)
        .arg("--report-ready")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        // One line, not all there is: the daemon may keep its output open.
        BufReader::new(output)
            .read_line(&mut said)
            .map_err(cannot)?;
    }
    match said.trim_end().split_once(' ') {
        None if said.trim_end() == READY => Ok(()),
        Some(("2", why)) => Err(Failure::Usage(why.to_owned())),
        Some((_, why)) => Err(Failure::Run(why.to_owned())),
        None => {
            let ended = child.wait().map_err(cannot)?;
            Err(Failure::Run(format!(
                "the process in the background ended before it worked: {ended}"
            )))
        }
    }
}

/// The descriptors that words of a command line and values of variables name, as `--record >(gzip >reads.gz)` of a
/// shell does: `/dev/fd/63`. A folder's has a path behind it, and a list of paths names several.
fn named(words: impl IntoIterator<Item = OsString>) -> Vec<u32> {
    let mut all = Vec::new();
    for word in words {
        let word = word.to_string_lossy();
        let behind = word.split("/fd/").skip(1);
        all.extend(behind.filter_map(|rest| rest.split(['/', ':']).next()?.parse::<u32>().ok()));
    }
    all
}

/// Is that daemon: begins, tells the starting program that it works or why not, and goes on to its end.
///
/// # Errors
/// It failed after it had begun; that is in the system's log, too.
pub fn serve<D>(
    begin: impl FnOnce() -> Result<D, Failure>,
    wait: impl FnOnce(D) -> Result<(), Failure>,
) -> Result<(), Failure> {
    leave_session();
    let begun = begin().and_then(|daemon| {
        let gone = |e| Failure::Run(format!("the program that started this one is gone: {e}"));
        report_ready().map_err(gone)?;
        Ok(daemon)
    });
    match begun {
        Ok(daemon) => wait(daemon).inspect_err(log_failure),
        Err(failure) => {
            report_failure(&failure);
            Ok(())
        }
    }
}

/// Whether this process was started with a signal ignored, as far as the kernel tells.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    let bit = u32::try_from(signal - 1);
    bit.is_ok_and(|bit| status::has(&status::of_self(), "SigIgn:", bit))
}

/// Leaves the session of the starting program: its terminal's signals are not for us.
fn leave_session() {
    // It fails for the leader of a process group, which a child just started is not.
    let _ = rustix::process::setsid();
}

/// Says that the daemon works, and lets go of all descriptors of the starting program. Lines of the log go to the
/// system's from here on, a datagram each; they are lost where there is none.
fn report_ready() -> io::Result<()> {
    // Before the word: a daemon that said it goes on.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    log_to_system()?;
    rustix::process::chdir("/")?;
    let mut output = io::stdout().lock();
    writeln!(output, "{READY}")?;
    output.flush()?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(rustix::stdio::dup2_stdout(&nothing)?)
}

/// Lets standard error go to the system's log, or nowhere without one: the starting program's own may be a pipe that is
/// read to its end.
///
/// # Errors
/// No descriptor is left.
pub fn log_to_system() -> io::Result<()> {
    match connected(Path::new(LOG)) {
        Ok(log) => rustix::stdio::dup2_stderr(&log)?,
        Err(_) => rustix::stdio::dup2_stderr(File::options().write(true).open("/dev/null")?)?,
    }
    Ok(())
}

/// Standard error. Where that is the system's log and the log was started again, lines go to the new one.
#[derive(Debug)]
pub struct Output;

impl Write for Output {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let keep = |log: &UnixDatagram| Ok(rustix::stdio::dup2_stderr(log)?);
        let again =
            |error| again(&error, io::stderr().as_fd(), Path::new(LOG), line, keep).ok_or(error);
        io::stderr().write(line).or_else(again)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a line that failed once more, to a log that took the place of the one behind this descriptor; none if that is
/// no log, or still there, or no other has come.
fn again(
    error: &io::Error,
    output: BorrowedFd<'_>,
    log: &Path,
    line: &[u8],
    keep: impl FnOnce(&UnixDatagram) -> io::Result<()>,
) -> Option<usize> {
    const GONE: [Errno; 3] = [Errno::CONNREFUSED, Errno::NOTCONN, Errno::PIPE];
    Errno::from_io_error(error).filter(|error| GONE.contains(error))?;
    // The pipe or connection of a program that has ended is none.
    let kind = sockopt::socket_type(output).ok()?;
    let log = (kind == SocketType::DGRAM).then(|| connected(log))?.ok()?;
    keep(&log).ok()?;
    log.send(line).ok()
}

/// A log to which lines are written; one that is stopped takes some hundred of them, and then none.
fn connected(log: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect(log)?;
    Ok(socket)
}

/// Logs a later failure: no terminal shows this process's output, but the system keeps a log.
fn log_failure(failure: &Failure) {
    log_to(Path::new(LOG), failure);
}

fn log_to(log: &Path, failure: &Failure) {
    const DAEMON_ERROR: u32 = 3 << 3 | 3;
    let said = format!("<{DAEMON_ERROR}>forerun[{}]: {failure}", std::process::id());
    if let Err(error) = connected(log).and_then(|log| log.send(said.as_bytes())) {
        tracing::error!("{}: {error}: {failure}", log.display());
    }
}

/// Reports a failure instead.
fn report_failure(failure: &Failure) {
    let code = if matches!(failure, Failure::Usage(_)) {
        2
    } else {
        1
    };
    let message = failure.to_string().replace('\n', " ");
    match writeln!(io::stdout(), "{code} {message}") {
        Ok(()) => {}
        Err(error) if Errno::from_io_error(&error) == Some(Errno::PIPE) => {}
        Err(error) => tracing::warn!("{message}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_are_named_by_their_paths() {
        let words = [
            "a/fd/b",
            "/dev/fd/63",
            "--record=/proc/self/fd/7",
            "/dev/fd/-1",
            "/dev/fd/9x",
            "9",
            "/proc/self/fd/8/data",
            "/dev/fd/10/",
            "/dev/fd/11:/etc/ssl:/dev/fd/12",
        ];
        assert_eq!(named(words.map(OsString::from)), [63, 7, 8, 10, 11, 12]);
        let no_text = [&b"/dev/fd/6/"[..], b"\xff"].concat();
        assert_eq!(named([OsString::from_vec(no_text)]), [6]);
    }

    #[test]
    fn signals_ignored_are_those_of_this_process() {
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        for signal in 1..32_u32 {
            let is_listed = status::has(&own, "SigIgn:", signal - 1);
            assert_eq!(is_ignored(signal.cast_signed()), is_listed, "{signal}");
        }
    }

    #[test]
    fn signals_ignored_are_those_of_this_process_in_any_name_space() {
        // The number 1 is the test's there, and that of another in `/proc`, which is the one outside.
        let script = "trap '' HUP; exec unshare --pid --fork \"$@\"";
        let apart = |words: &[&str]| {
            let mut command = Command::new("sh");
            command.args(["-c", script, "sh"]);
            if !rustix::process::geteuid().is_root() {
                command.arg("--user");
            }
            command.args(words).output().unwrap()
        };
        let may = apart(&["true"]);
        if !may.status.success() {
            return crate::skipped::skipped(String::from_utf8_lossy(&may.stderr));
        }
        let tests = std::env::current_exe().unwrap();
        let name = "daemon::background::tests::signals_ignored_are_those_of_this_process";
        let ended = apart(&[tests.to_str().unwrap(), "--exact", name]);
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(
            ended.status.success() && said.contains("1 passed"),
            "{said}"
        );
    }

    #[test]
    fn a_log_that_was_started_again_has_the_lines_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let first = UnixDatagram::bind(&path).unwrap();
        let output = connected(&path).unwrap();
        drop(first);
        let write = |output: &UnixDatagram, line: &[u8], log: &Path| {
            let error = output.send(line).unwrap_err();
            let mut kept = None;
            let keep = |log: &UnixDatagram| log.try_clone().map(|log| kept = Some(log));
            let sent = again(&error, output.as_fd(), log, line, keep);
            (sent, kept)
        };
        // Refused, and from then on not connected.
        for _ in 0..2 {
            assert!(matches!(write(&output, b"lost", &path), (None, None)));
        }
        std::fs::remove_file(&path).unwrap();
        let second = UnixDatagram::bind(&path).unwrap();
        let (sent, kept) = write(&output, b"one", &path);
        assert_eq!(sent, Some(3));
        kept.unwrap().send(b"two").unwrap();
        let mut line = [0; 10];
        for expected in [b"one", b"two"] {
            let count = second.recv(&mut line).unwrap();
            assert_eq!(&line[..count], expected);
        }
        // The output of a program that has ended is no log.
        let (pipe, end) = UnixStream::pair().unwrap();
        drop(end);
        let error = (&pipe).write(b"three").unwrap_err();
        let sent = again(&error, pipe.as_fd(), &path, b"three", |_| unreachable!());
        assert_eq!(sent, None);
    }

    #[test]
    fn a_log_that_does_not_answer_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = UnixDatagram::bind(&path).unwrap();
        let failure = Failure::Run("x".repeat(1000));
        // More than any queue holds.
        for _ in 0..10_000 {
            log_to(&path, &failure);
        }
        let mut line = [0; 2000];
        let count = log.recv(&mut line).unwrap();
        assert!(line[..count].starts_with(b"<27>forerun["));
    }
}
