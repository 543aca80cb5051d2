//! The guardian: a process that puts settings back if the one that changed them is killed.
//!
//! It is this program again (`forerun tune --guard RECORD`), with a pipe as its input whose other end the first process
//! holds. No signal can keep the kernel from closing that end: the guardian reads the end of its input, takes the lock
//! that the dead process held, and carries out the record. If the record is gone, all was put back already.
//!
//! ```text
//! first process  --starts-->  guardian  --"ready"-->  first process changes settings
//! SIGKILL             pipe closes  -->  lock, record, values back, record removed
//! ```
//!
//! The guardian is in a process group of its own, which Ctrl-C does not reach, and outlives signals that end services
//! (SIGTERM). If it is killed as well, the next start finds the record.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use rustix::fs::FlockOperation;

use super::{record, trying};
use crate::failure::Failure;
use crate::files::plain;
use crate::mount::ending;

/// The word of a guardian that waits.
const READY: &[u8] = b"ready\n";

/// A guardian while it runs.
#[derive(Debug)]
pub struct Guardian(Child);

impl Guardian {
    /// Starts one, and waits until it waits.
    ///
    /// # Errors
    /// It cannot be started, or says another word.
    pub fn start(record: &Path) -> Result<Self, Failure> {
        let cannot = |e: io::Error| {
            Failure::Run(format!(
                "cannot start the process that puts settings back: {}",
                plain(&e)
            ))
        };
        let program = std::env::current_exe().map_err(cannot)?;
        let child = Command::new(program)
            .args(["tune", "--guard"])
            .arg(record)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let mut guardian = Self(child);
        let mut said = [0; READY.len()];
        let stdout = guardian.0.stdout.as_mut();
        let read = stdout.map(|stdout| stdout.read_exact(&mut said));
        match read {
            Some(Ok(())) if said == READY => Ok(guardian),
            _ => Err(cannot(io::Error::other("it does not answer"))),
        }
    }

    /// Whether it still runs.
    pub fn is_there(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The guardian itself: returns when it is not needed any more, or has done its work.
///
/// # Errors
/// The lock cannot be taken.
pub fn guard(path: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    // Caught and left unread: they end the first process, whose end is the one that counts.
    let (tell, _signals) = mpsc::channel();
    ending::catch_signals(tell)?;
    out.write_all(READY)
        .and_then(|()| out.flush())
        .map_err(|e| Failure::output(&e))?;
    // Nothing is sent; an error is an end, too.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    if !path.exists() {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let lock = record::lock(folder, FlockOperation::LockExclusive);
    let _lock = lock.map_err(|e| Failure::unusable(path, plain(&e)))?;
    // A start that came first has put back and removed it.
    if path.exists() {
        trying::put_back(path);
    }
    Ok(())
}
