//! Guardian: a process of its own that puts raised limits back when the watch cannot.
//!
//! A limit stands raised for some 50 us. If the watch is killed or stopped in between, every file that is opened from
//! then on gets the raised limit, so another process looks after it:
//!
//! ```text
//! watch     one byte into a pipe, then it raises; puts back
//! guardian  waits for the pipe; 40 ms after a byte it reads the records, and puts back what stands raised as before
//!           the pipe ends: the watch is gone; puts back what is raised, and ends
//! ```
//!
//! Without bytes it sleeps. It is in a session of its own and takes no notice of the signals of a terminal or of a
//! service that ends. A watch whose guardian is gone or stopped raises nothing until it has another.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use forerun_surface::failure::Failure;
use rustix::fs::OFlags;

use crate::record;

/// A limit that stood raised for as long is put back: a thousand times as long as it takes, and less than half of the
/// 100 ms within which it must be right.
const PATIENCE: Duration = Duration::from_millis(40);
/// A guardian that cannot be started is tried again that often.
const AGAIN: Duration = Duration::from_secs(1);

/// The watch's end.
#[derive(Debug)]
pub struct Guardian {
    words: Vec<String>,
    child: Option<(Child, OwnedFd)>,
    tried: Instant,
}

impl Guardian {
    /// Starts one, by these words behind this program's name.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(words: Vec<String>) -> Result<Self, Failure> {
        let child = begin(&words);
        let child = child.map_err(|e| Failure::Run(format!("cannot start the guardian: {e}")))?;
        Ok(Self {
            words,
            child: Some(child),
            tried: Instant::now(),
        })
    }

    /// Tells it that a limit is about to be raised; false if it does not listen.
    pub fn is_told(&mut self) -> bool {
        let told = |(_, pipe): &(Child, OwnedFd)| rustix::io::write(pipe, b".").is_ok();
        if self.child.as_ref().is_some_and(told) {
            return true;
        }
        if self.tried.elapsed() >= AGAIN {
            self.tried = Instant::now();
            self.end();
            self.child = begin(&self.words).ok();
        }
        self.child.as_ref().is_some_and(told)
    }

    /// Its number, while there is one.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(|(child, _)| child.id())
    }

    fn end(&mut self) {
        if let Some((mut child, pipe)) = self.child.take() {
            drop(pipe);
            // One that is stopped does not end by itself.
            if child.try_wait().is_ok_and(|ended| ended.is_none()) {
                thread::sleep(PATIENCE);
                let _ = child.kill();
            }
            let _ = child.wait();
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if let Some((mut child, pipe)) = self.child.take() {
            drop(pipe);
            let _ = child.wait();
        }
    }
}

fn begin(words: &[String]) -> io::Result<(Child, OwnedFd)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let pipe = OwnedFd::from(child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?);
    // A guardian that is stopped lets the pipe fill up: then it is as good as none.
    rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
    Ok((child, pipe))
}

/// The guardian itself: returns once the watch is gone.
///
/// # Errors
/// A record cannot be read at the start.
pub fn run(records: &[PathBuf]) -> Result<(), Failure> {
    let _ = rustix::process::setsid();
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
    ] {
        let kept = signal_hook::flag::register(signal, ignored.clone());
        kept.map_err(|error| Failure::Run(format!("signals: {error}")))?;
    }
    let open = |path: &PathBuf| File::open(path).map_err(|error| Failure::unusable(path, error));
    let records = records.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut bytes = [0; 4096];
    loop {
        match io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map(File::from)
            .and_then(|mut pipe| pipe.read(&mut bytes))
        {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
            Ok(_) => look(&records),
        }
    }
    records.iter().for_each(put_back);
    Ok(())
}

/// Puts limits back that stand raised now and still do after a while.
fn look(records: &[File]) {
    let raised = |file: &File| record::read(file).ok().flatten().filter(|r| r.raised > 0);
    let first: Vec<_> = records.iter().map(raised).collect();
    thread::sleep(PATIENCE);
    for (file, first) in records.iter().zip(first) {
        let now = raised(file);
        // One that was raised in between is looked at again: its byte is in the pipe.
        if now.is_some() && now == first {
            put_back(file);
        }
    }
}

fn put_back(file: &File) {
    let limit = record::limit_in(file).ok().flatten();
    if let Some(limit) = limit {
        let _ = record::put_back(file, &limit);
    }
}
