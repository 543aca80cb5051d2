//! Announced reads: which ranges of which files programs will read next.
//!
//! Problem: a sampler, a query plan or a playlist knows an order of reads that no detector can
//! guess. Mechanism: `forerun ctl MOUNT hint` sends ranges of files over the control socket, and
//! the engine's hinted policy fetches them in that order (`docs/design/0007-live-hints.md`). The
//! programs that read need no change: a range belongs to its next reader, so the daemon opens the
//! files itself and keeps them open meanwhile.
//!
//! ```text
//! control thread --> queue of 4 --> forerun-hint: open files --> engine --> answer
//!                                        |                         |
//!                   at most 1024 files are kept open <-- until their ranges were read (forerun_io::kept)
//! ```
//!
//! Announcements have a thread of their own, begun with the first: a file system that does not
//! answer delays later announcements, and neither the control socket nor a reader.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use forerun_io::Reader;
use forerun_io::kept::{Kept, most};
use forerun_surface::daemon::announced::{FULL, PART_PATHS_MAX, Range, Taken};
use forerun_surface::daemon::control::{Answer, reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::lock;
use super::mounted::Refused;
use super::report::Watched;

/// Announcements that wait for their turn; a client has one at a time.
const QUEUE_MAX: usize = 4;

/// Files kept open for announcements: as many as a data loader's epoch over large shards has, and a
/// megabyte of tables.
const FILES_MAX: u64 = 1024;

/// Files that are opened at once: their stores are asked for them side by side. A client sends as many at a time.
const AT_ONCE: usize = PART_PATHS_MAX;

/// Interval of the search for files that may be closed.
const LOOK: Duration = Duration::from_secs(1);

/// The announcements of a mount.
#[derive(Debug)]
pub struct Announcements {
    watched: Arc<Watched>,
    queue: Mutex<Option<SyncSender<Job>>>,
}

/// A client's ranges, and where it waits for the answer.
type Job = (Vec<Range>, UnixStream);

impl Announcements {
    /// None so far, and no thread.
    #[must_use]
    pub fn new(watched: Arc<Watched>) -> Self {
        Self {
            watched,
            queue: Mutex::default(),
        }
    }

    /// Announces, later, and answers the client.
    ///
    /// # Errors
    /// It cannot be, in words; with the client.
    pub fn later(
        &self,
        ranges: Vec<Range>,
        client: UnixStream,
    ) -> Result<(), (String, UnixStream)> {
        if self.watched.settings.hinted.is_none() {
            let why = format!(
                "the preset {} follows no announced reads: mount with --preset mount or forerun",
                self.watched.preset
            );
            return Err((why, client));
        }
        let mut queue = lock(&self.queue);
        let send = match &*queue {
            Some(send) => send,
            None => match start(self.watched.clone()) {
                Ok(send) => &*queue.insert(send),
                Err(error) => return Err((format!("no thread for it: {error}"), client)),
            },
        };
        send.try_send((ranges, client)).map_err(|error| {
            let (TrySendError::Full((_, client)) | TrySendError::Disconnected((_, client))) = error;
            let why = "earlier announcements wait for a file system that does not answer";
            (why.to_owned(), client)
        })
    }
}

fn start(watched: Arc<Watched>) -> std::io::Result<SyncSender<Job>> {
    let (send, jobs) = sync_channel(QUEUE_MAX);
    thread::Builder::new()
        .name("forerun-hint".into())
        .spawn(move || serve(&watched, &jobs))?;
    Ok(send)
}

fn serve(watched: &Watched, jobs: &Receiver<Job>) {
    let mut files = Files::default();
    loop {
        let patience = if files.is_empty() {
            Duration::MAX
        } else {
            LOOK
        };
        match jobs.recv_timeout(patience) {
            Ok((ranges, client)) => {
                let answer = match announce(watched, &mut files, &ranges, &client) {
                    Ok(Some(taken)) => Some(Answer::Hints(taken)),
                    Ok(None) => None,
                    Err(error) => Some(Answer::Error(error.to_string())),
                };
                // A client that went away has nothing to complain about.
                let _ = answer.map(|answer| reply(&client, &answer));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some((ledger, _)) = watched.fs.engine().counters() else {
            return;
        };
        drop(files.over(&ledger, Instant::now()));
    }
}

/// The files that are kept open.
type Files = Kept<PathBuf, Reader>;

/// Whether a client has closed its connection: it gave up, and may announce the same again.
fn is_gone(client: &UnixStream) -> bool {
    let mut asked = [PollFd::new(client, PollFlags::empty())];
    let at_once = Timespec::default();
    let polled = poll(&mut asked, Some(&at_once));
    polled.is_ok() && asked[0].revents().contains(PollFlags::HUP)
}

/// Announces ranges of any files, in their order; none if the client has not waited for it.
fn announce(
    watched: &Watched,
    files: &mut Files,
    ranges: &[Range],
    client: &UnixStream,
) -> Result<Option<Taken>, Refused> {
    if is_gone(client) {
        return Ok(None);
    }
    let mut taken = Taken::default();
    let opened = open(watched, files, ranges)?;
    if is_gone(client) {
        return Ok(None);
    }
    let mut order = Vec::new();
    for range in ranges {
        match opened.get(range.path.as_str()) {
            Some(Ok(reader)) if range.offset >= reader.size() => {
                taken.refuse("begins behind the end of its file", 1, &range.path);
            }
            Some(Ok(reader)) => {
                let bytes = range.bytes.unwrap_or(u64::MAX);
                order.push((range, reader, bytes));
            }
            Some(Err(why)) => taken.refuse(why, 1, &range.path),
            None => {}
        }
    }
    let readers = order.iter();
    let readers = readers.map(|(range, reader, bytes)| (*reader, range.offset, *bytes));
    let count = watched.fs.engine().announce(readers)?;
    taken.taken = count as u64;
    if let Some((first, ..)) = order.get(count) {
        taken.is_full = true;
        taken.refuse(FULL, (order.len() - count) as u64, &first.path);
    }
    let last = watched
        .fs
        .engine()
        .counters()
        .map_or(0, |(ledger, _)| ledger.hints);
    for (path, reader) in opened {
        if let Ok(reader) = reader {
            files.keep(path.into(), reader, last);
        }
    }
    Ok(Some(taken))
}

/// Opens the files of ranges, each once, also those that are open: another file may have their name
/// by now. Those that cannot be opened have the reason.
fn open<'a>(
    watched: &Watched,
    files: &Files,
    ranges: &'a [Range],
) -> Result<BTreeMap<&'a str, Result<Reader, String>>, Refused> {
    let mut seen = BTreeSet::new();
    let paths = ranges.iter().map(|range| &*range.path);
    let paths: Vec<&str> = paths.filter(|path| seen.insert(*path)).collect();
    let most = most(FILES_MAX);
    let (mut left, mut room) = (&paths[..], most.saturating_sub(files.len()));
    let mut opened = BTreeMap::new();
    let is_known = |path: &str| files.get(Path::new(path)).is_some();
    while let Some(first) = left.first() {
        let mut new = 0;
        let fits = |path: &&&str| {
            new += usize::from(!is_known(path));
            new <= room
        };
        let count = left.iter().take(AT_ONCE).take_while(fits).count();
        let (part, rest) = left.split_at(count.max(1));
        left = rest;
        if count == 0 {
            let why = format!("more than {most} files with announced reads at a time");
            opened.insert(*first, Err(why));
            continue;
        }
        let paths: Vec<&Path> = part.iter().map(Path::new).collect();
        for (path, reader) in part.iter().zip(watched.fs.open_announced(&paths)) {
            if matches!(reader, Err(Refused::Ended)) {
                return Err(Refused::Ended);
            }
            room -= usize::from(!is_known(path) && reader.is_ok());
            opened.insert(*path, reader.map_err(|why| why.to_string()));
        }
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_closed_its_connection_is_gone_and_one_that_has_said_all_is_not() {
        let (client, here) = UnixStream::pair().unwrap();
        assert!(!is_gone(&here));
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!is_gone(&here));
        drop(client);
        assert!(is_gone(&here));
    }
}
