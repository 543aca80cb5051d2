//! Guardian: a process of its own that puts values back when the one that changed them cannot.
//!
//! It is this program again, with a pipe as its input whose other end the first process holds. No signal can keep the
//! kernel from closing that end:
//!
//! ```text
//! first process  --starts-->  guardian  --"ready"-->  first process changes values
//! a byte into the pipe        40 ms later values of the records that are as then are put back: it was stopped
//! the pipe ends               the records are carried out and removed, unless their process did that
//! ```
//!
//! A value that is raised for microseconds is announced by a byte; one that is tried for minutes is not. Without bytes the
//! guardian sleeps. It is in a session of its own and takes no notice of the signals of a terminal or of a service that
//! pauses or ends; it holds no working directory, and behind a daemon no descriptor of the program that started the daemon. If it
//! is killed, too, the next start finds the records.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::record::{self, Change};
use crate::daemon::background;
use crate::failure::Failure;
use crate::files::plain;

/// The word of a guardian that waits.
const READY: &[u8] = b"ready\n";
/// A value that stood raised for as long is put back: a thousand times as long as it takes, and less than half of the
/// 100 ms within which it must be right.
const PATIENCE: Duration = Duration::from_millis(40);
/// A process that dies closes its pipe and its record one after the other.
const DYING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);
/// A guardian that cannot be started is tried again that often.
const AGAIN: Duration = Duration::from_secs(1);

/// The first process's end.
#[derive(Debug)]
pub struct Guardian {
    words: Vec<String>,
    child: Option<(Child, OwnedFd)>,
    tried: Instant,
}

impl Guardian {
    /// Starts one, by these words behind this program's name, and waits until it waits.
    ///
    /// # Errors
    /// It cannot be started, or says another word.
    pub fn start(words: Vec<String>) -> Result<Self, Failure> {
        let cannot = |e: io::Error| {
            let why = plain(&e);
            Failure::Run(format!(
                "cannot start the process that puts settings back: {why}"
            ))
        };
        let child = begin(&words).map_err(cannot)?;
        Ok(Self {
            words,
            child: Some(child),
            tried: Instant::now(),
        })
    }

    /// Whether it still runs.
    pub fn is_there(&mut self) -> bool {
        let child = self.child.as_mut();
        child.is_some_and(|(child, _)| matches!(child.try_wait(), Ok(None)))
    }

    /// Tells it that a value is about to be raised; false if it does not listen, and neither does another one.
    pub fn is_told(&mut self) -> bool {
        let told = |(_, pipe): &(Child, OwnedFd)| rustix::io::write(pipe, b".").is_ok();
        if self.child.as_ref().is_some_and(told) {
            return true;
        }
        if self.tried.elapsed() >= AGAIN {
            self.tried = Instant::now();
            self.end(PATIENCE);
            self.child = begin(&self.words).ok();
        }
        self.child.as_ref().is_some_and(told)
    }

    /// Its number, while there is one.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(|(child, _)| child.id())
    }

    /// Ends it within that time: one that is stopped does not end by itself.
    fn end(&mut self, within: Duration) {
        let Some((mut child, pipe)) = self.child.take() else {
            return;
        };
        drop(pipe);
        let begun = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < within {
            thread::sleep(LOOK);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.end(2 * DYING);
    }
}

fn begin(words: &[String]) -> io::Result<(Child, OwnedFd)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = child.stdin.take().map(OwnedFd::from);
    let pipe = pipe.ok_or(io::ErrorKind::BrokenPipe)?;
    // A guardian that is stopped lets the pipe fill up: then it is as good as none.
    rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
    let mut said = [0; READY.len()];
    let read = child
        .stdout
        .take()
        .map(|mut stdout| stdout.read_exact(&mut said));
    match read {
        Some(Ok(())) if said == READY => Ok((child, pipe)),
        _ => {
            let _ = child.kill();
            let _ = child.wait();
            Err(io::Error::other("it does not answer"))
        }
    }
}

/// The guardian itself, of a daemon or of a process with a terminal: returns once the first process is gone.
///
/// # Errors
/// A record cannot be read at the start.
pub fn run(paths: &[PathBuf], of_daemon: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let _ = rustix::process::setsid();
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
        // A unit's pause and its end go to all of its processes.
        signal_hook::consts::SIGUSR1,
        signal_hook::consts::SIGUSR2,
    ] {
        let kept = signal_hook::flag::register(signal, ignored.clone());
        kept.map_err(|error| Failure::Run(format!("signals: {error}")))?;
    }
    let paths = paths.iter().map(std::path::absolute);
    let paths = paths.collect::<io::Result<Vec<_>>>();
    let paths = paths.map_err(|e| Failure::Run(format!("the working directory: {e}")))?;
    let open = |path: &PathBuf| File::open(path).map_err(|error| Failure::unusable(path, error));
    let records = paths.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let left = leave(of_daemon);
    left.map_err(|e| Failure::Run(format!("cannot leave the starting program: {e}")))?;
    let ready = out.write_all(READY).and_then(|()| out.flush());
    ready.map_err(|e| Failure::output(&e))?;
    let mut bytes = [0; 4096];
    let mut pipe = File::from(
        io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Failure::Run(format!("the pipe of the first process: {error}")))?,
    );
    loop {
        match pipe.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(_) => look(&records),
        }
    }
    paths
        .iter()
        .zip(&records)
        .for_each(|(path, file)| finish(path, file));
    Ok(())
}

/// Lets go of the working directory, whose file system could not be taken off else, and of a daemon's first standard error.
fn leave(of_daemon: bool) -> io::Result<()> {
    if of_daemon {
        background::log_to_system()?;
    }
    Ok(rustix::process::chdir("/")?)
}

/// Puts values back that are raised now and still are after a while.
fn look(records: &[File]) {
    let raised = |file: &File| {
        let changes = record::load(file).unwrap_or_default().into_iter();
        // A scheduler is changed for minutes, also by a process that raises a read-ahead for moments.
        let raised = changes.filter(|change| !change.knob.is_scheduler());
        raised.filter(|change| !change.ours.is_empty()).collect()
    };
    let first: Vec<Vec<Change>> = records.iter().map(raised).collect();
    thread::sleep(PATIENCE);
    for (file, first) in records.iter().zip(first) {
        // One that was raised in between is looked at again: its byte is in the pipe.
        let now = raised(file).into_iter();
        for change in now.filter(|change| first.contains(change)) {
            change.restore();
        }
    }
}

/// Carries a record out once its process has let go of it.
fn finish(path: &Path, file: &File) {
    let begun = Instant::now();
    while record::is_there(file).is_ok_and(|is| is) {
        match record::carry_out(path) {
            // Or a start that came first has locked it, and put back what it says.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < DYING => {
                thread::sleep(LOOK);
            }
            _ => return,
        }
    }
}
