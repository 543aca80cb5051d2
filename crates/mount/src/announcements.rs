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
//!                       at most 1024 files are kept open <-- until their ranges were read
//! ```
//!
//! Announcements have a thread of their own, begun with the first: a file system that does not
//! answer delays later announcements, and neither the control socket nor a reader.
//!
//! When a file may be closed: the engine takes one order, and a reader is at most a
//! [window](ORDER_WINDOW) away from its place in it. With `ended` references of the order read,
//! missed or dropped, every place before `ended - window` is over. Example: the last range of a file
//! is the 500th of all; it is closed when 564 have ended, or all.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use forerun_core::Ledger;
use forerun_io::Reader;
use forerun_surface::daemon::announced::{FULL, PART_PATHS_MAX, Range, Taken};
use forerun_surface::daemon::control::{Answer, reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};

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

/// Of the descriptors the process may have, so much is for announced files at most: the others are
/// for those that programs have open.
const DESCRIPTORS_PART: u64 = 4;

/// Distance of readers from their place in the order: the engine's most
/// (`docs/design/0007-live-hints.md`).
const ORDER_WINDOW: u64 = 64;

/// Interval of the search for files that may be closed.
const LOOK: Duration = Duration::from_secs(1);

/// An announcement not begun for so long will not be read. A job that is queued behind another one
/// or computes between two epochs has begun by then.
const IDLE_MAX: Duration = Duration::from_secs(15 * 60);

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
    let mut files = Files::new();
    loop {
        match jobs.recv_timeout(files.patience()) {
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
        files.close_over(&Order::of(&ledger), Instant::now());
    }
}

/// Progress of the order of announced references.
#[derive(Clone, Copy, Debug)]
struct Order {
    all: u64,
    ended: u64,
}

impl Order {
    fn of(ledger: &Ledger) -> Self {
        Self {
            all: ledger.hints,
            ended: ledger.hints_read + ledger.hints_missed + ledger.hints_dropped,
        }
    }
}

/// An announced file.
#[derive(Debug)]
struct File<R> {
    /// Announcements of a file are forgotten when its last reader goes.
    _reader: R,
    /// The references that were announced up to its last range.
    last: u64,
}

/// The files kept open.
#[derive(Debug)]
struct Files<R> {
    most: usize,
    open: BTreeMap<PathBuf, File<R>>,
    /// How many references had ended when one more had, and when that was.
    moved: Option<(u64, Instant)>,
}

impl<R> Files<R> {
    fn new() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = (limit / DESCRIPTORS_PART).min(FILES_MAX);
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            open: BTreeMap::new(),
            moved: None,
        }
    }

    /// Time to wait for the next announcement.
    fn patience(&self) -> Duration {
        if self.open.is_empty() {
            Duration::MAX
        } else {
            LOOK
        }
    }

    /// Closes those whose ranges are over, and all when announced ranges are no longer read.
    fn close_over(&mut self, order: &Order, now: Instant) {
        let has_moved = self.moved.is_none_or(|(ended, _)| ended != order.ended);
        let since = match self.moved {
            Some((_, since)) if !has_moved => since,
            _ => now,
        };
        self.moved = Some((order.ended, since));
        let is_forgotten = now.duration_since(since) >= IDLE_MAX;
        if order.ended == order.all || is_forgotten {
            self.open.clear();
            return;
        }
        let is_over = |file: &File<R>| order.ended > file.last + ORDER_WINDOW;
        self.open.retain(|_, file| !is_over(file));
    }
}

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
    files: &mut Files<Reader>,
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
            files.open.insert(
                path.into(),
                File {
                    _reader: reader,
                    last,
                },
            );
        }
    }
    // A new announcement is not idle.
    files.moved = None;
    Ok(Some(taken))
}

/// Opens the files of ranges, each once, also those that are open: another file may have their name
/// by now. Those that cannot be opened have the reason.
fn open<'a>(
    watched: &Watched,
    files: &Files<Reader>,
    ranges: &'a [Range],
) -> Result<BTreeMap<&'a str, Result<Reader, String>>, Refused> {
    let mut seen = BTreeSet::new();
    let paths = ranges.iter().map(|range| &*range.path);
    let paths: Vec<&str> = paths.filter(|path| seen.insert(*path)).collect();
    let (mut left, mut room) = (&paths[..], files.most.saturating_sub(files.open.len()));
    let mut opened = BTreeMap::new();
    let is_known = |path: &str| files.open.contains_key(Path::new(path));
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
            let most = files.most;
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

    fn files(lasts: &[u64]) -> Files<()> {
        let mut files = Files::new();
        for last in lasts {
            let file = File {
                _reader: (),
                last: *last,
            };
            files.open.insert(format!("{last}").into(), file);
        }
        files
    }

    #[test]
    fn a_file_is_closed_a_window_after_its_last_range() {
        let mut files = files(&[500, 501]);
        let now = Instant::now();
        for (ended, open) in [(0, 2), (564, 2), (565, 1), (566, 0)] {
            files.close_over(&Order { all: 2000, ended }, now);
            assert_eq!(files.open.len(), open, "after {ended}");
        }
    }

    #[test]
    fn all_are_closed_when_the_order_is_over_or_nobody_reads_it() {
        let now = Instant::now();
        let mut over = files(&[500, 501]);
        over.close_over(
            &Order {
                all: 501,
                ended: 501,
            },
            now,
        );
        assert!(over.open.is_empty());
        let mut idle = files(&[500, 501]);
        let order = |ended| Order { all: 501, ended };
        idle.close_over(&order(3), now);
        idle.close_over(&order(3), now + IDLE_MAX - LOOK);
        assert_eq!(idle.open.len(), 2);
        idle.close_over(&order(4), now + IDLE_MAX);
        idle.close_over(&order(4), now + 2 * IDLE_MAX - LOOK);
        assert_eq!(idle.open.len(), 2, "one more was read");
        idle.close_over(&order(4), now + 2 * IDLE_MAX);
        assert!(idle.open.is_empty());
        assert_eq!(idle.patience(), Duration::MAX);
    }
}
