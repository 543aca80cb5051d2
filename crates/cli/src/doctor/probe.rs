//! Probes: does a path answer?
//!
//! Problem: a system call on a hung mount does not return, and a process with a thread in such a call cannot end. So the
//! call is made by another process of the same program, `forerun doctor --probe PATH`. One that hangs is killed, as it
//! keeps the mount in use; where the kernel waits for a server in spite of that, it is left behind.
//! It writes two lines, and the time limit of the second runs from the first, so that a busy machine on which programs
//! start late is not taken for a hung path:
//!
//! ```text
//! begun
//! 0 1024 /mnt/data        errno, microseconds, the path without links
//! ```

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// Time limit of an answer. A local disk takes microseconds, a server milliseconds.
const PATIENCE: Duration = Duration::from_millis(1_000);

/// Time limit of the process's start.
const START: Duration = Duration::from_millis(1_500);

const BEGUN: &[u8] = b"begun\n";

/// The answer of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answered {
    /// After so long; the path without links.
    After(Duration, PathBuf),
    /// An error, by its number.
    Error(Errno),
    /// No answer within the time limit.
    Hangs,
    /// The probe itself did not work, in words.
    Unknown(String),
}

/// A probe that was begun.
#[derive(Debug)]
pub struct Probe(Receiver<Answered>);

impl Probe {
    /// Has the path looked at by another process.
    #[must_use]
    pub fn begin(program: &Path, path: &Path) -> Self {
        let (tell, answer) = channel();
        let unknown = tell.clone();
        let (program, path) = (program.to_owned(), path.to_owned());
        let wait = move || tell.send(answered(&program, &path));
        if thread::Builder::new().spawn(wait).is_err() {
            let _ = unknown.send(Answered::Unknown("no thread can be started".into()));
        }
        Self(answer)
    }

    /// Waits for the answer.
    #[must_use]
    pub fn answer(&self) -> Answered {
        let late = |_| Answered::Unknown("this machine is too busy to tell in time".into());
        self.0.recv_timeout(START + PATIENCE).unwrap_or_else(late)
    }
}

fn answered(program: &Path, path: &Path) -> Answered {
    let unknown = |why: &str| Answered::Unknown(why.to_owned());
    let Some((mut child, lines)) = lines_about(program, path) else {
        return unknown("the process that looks at it cannot be started");
    };
    let answered = answer_in(&lines);
    // Nothing is left to do for one that has answered, and its end is not waited for if it hangs.
    let _ = child.kill();
    let _ = child.try_wait();
    answered
}

fn answer_in(lines: &Receiver<Vec<u8>>) -> Answered {
    let unknown = |why: &str| Answered::Unknown(why.to_owned());
    match lines.recv_timeout(START) {
        Ok(line) if line == BEGUN => {}
        Err(RecvTimeoutError::Timeout) => {
            return unknown("this machine is too busy to start a program in time");
        }
        _ => return unknown("the process that looks at it ended before it did"),
    }
    match lines.recv_timeout(PATIENCE) {
        Ok(line) => parsed(&line).unwrap_or_else(|| unknown("an answer that is none")),
        Err(RecvTimeoutError::Timeout) => Answered::Hangs,
        Err(RecvTimeoutError::Disconnected) => unknown("the process that looks at it ended"),
    }
}

/// A process that looks at the path, and its lines.
fn lines_about(program: &Path, path: &Path) -> Option<(Child, Receiver<Vec<u8>>)> {
    let mut child = Command::new(program)
        .args([
            OsStr::new("doctor"),
            OsStr::new("--probe"),
            path.as_os_str(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let (tell, lines) = channel();
    // Left to the end of this process if the child hangs: reading a pipe can be given up.
    let read = move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if tell.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    };
    thread::Builder::new().spawn(read).ok()?;
    Some((child, lines))
}

fn parsed(line: &[u8]) -> Option<Answered> {
    let line = line.strip_suffix(b"\n")?;
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let (number, microseconds) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let path = words.next()?.to_vec();
    Some(match number {
        0 => Answered::After(
            Duration::from_micros(microseconds),
            std::ffi::OsString::from_vec(path).into(),
        ),
        number => Answered::Error(Errno::from_raw_os_error(number)),
    })
}

/// The other process's part: looks at the path, and writes the outcome.
///
/// # Errors
/// The output cannot be written.
pub fn look(path: &Path, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(BEGUN)?;
    out.flush()?;
    let begun = Instant::now();
    let looked = look_at(path);
    let microseconds = begun.elapsed().as_micros();
    let (number, real) = match looked {
        Ok(real) => (0, real),
        Err(error) => (error.raw_os_error().unwrap_or(5), PathBuf::new()),
    };
    let numbers = format!("{number} {microseconds} ");
    let line = [numbers.as_bytes(), real.as_os_str().as_bytes(), b"\n"];
    out.write_all(&line.concat())
}

/// The path without links, its file system's answer, and the first name in a folder: the kernel answers the second
/// from no cache.
fn look_at(path: &Path) -> io::Result<PathBuf> {
    rustix::fs::statfs(path)?;
    let real = path.canonicalize()?;
    if real.is_dir() {
        match std::fs::read_dir(&real) {
            Ok(mut names) => names.next().transpose().map(drop)?,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_probe_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let answer = |path: &Path| {
            let mut said = Vec::new();
            look(path, &mut said).unwrap();
            parsed(said.strip_prefix(BEGUN).unwrap())
        };
        let real = folder.path().canonicalize().unwrap();
        assert!(matches!(answer(folder.path()), Some(Answered::After(_, path)) if path == real));
        let absent = folder.path().join("absent");
        assert_eq!(answer(&absent), Some(Answered::Error(Errno::NOENT)));
        for line in ["", "0", "0 1\n", "x 1 /\n", "0 -1 /\n", "0 1 /"] {
            assert_eq!(parsed(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn a_program_that_is_no_probe_is_no_answer() {
        for program in ["/nonexistent", "/bin/true", "/bin/echo"] {
            let answer = Probe::begin(Path::new(program), Path::new("/")).answer();
            assert!(
                matches!(answer, Answered::Unknown(_)),
                "{program}: {answer:?}"
            );
        }
    }
}
