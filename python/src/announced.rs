//! Files that are kept open because reads of them were announced.
//!
//! Problem: the engine drops the announced reads of a file that no reader has open. A program that
//! announces samples of many files names them, or opens each where it announces it and lets go of
//! it at once; the reads come later.
//!
//! Mechanism: a reader of each announced file is [kept] until its reads are over.
//!
//! A file that its program closes is let go at once. An object that is opened while it is kept is
//! not asked for again, once for each announced read: its version is that of the announcement. A further opening
//! asks, because the object may be another one by now, and the reads may never come.
//!
//! The lock is held with the interpreter, and no reader is dropped under it: see [`crate`].

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use forerun_core::{Ledger, ReaderId};
use forerun_io::source::Source;
use forerun_io::{Reader, kept};

/// Most files: four times those that a data loader announces ahead, and a few megabytes of tables.
const FILES_MAX: u64 = 4096;

/// An announced file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    /// By its path or address.
    Name(PathBuf),
    /// By a file that the program opened.
    Opened(ReaderId),
}

/// Its reader.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) reader: Arc<Reader>,
    /// Of an object: others are opened by it without a question to the server.
    pub(crate) source: Option<Arc<dyn Source>>,
    /// So many openings get its version.
    pub(crate) opens: u64,
}

/// Why announced reads come to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Reason {
    NotOpened,
    BehindTheEnd,
    Dropped,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Announced(Mutex<State>);

#[derive(Default)]
struct State {
    files: kept::Kept<Key, Kept>,
    /// References that were dropped, as of the last look.
    dropped: u64,
    /// A file was closed that had been announced, since then.
    was_closed: bool,
    warned: HashSet<Reason>,
}

impl Announced {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most files that are kept.
    pub(crate) fn files_max() -> usize {
        kept::most(FILES_MAX)
    }

    pub(crate) fn len(&self) -> usize {
        self.state().files.len()
    }

    /// A file that is kept.
    pub(crate) fn get(&self, key: &Key) -> Option<Kept> {
        self.state().files.get(key).cloned()
    }

    /// The source of an object that is kept, as long as an opening may have it.
    pub(crate) fn source(&self, key: &Key) -> Option<Arc<dyn Source>> {
        let state = self.state();
        let kept = state.files.get(key).filter(|kept| kept.opens > 0)?;
        kept.source.clone()
    }

    /// The same for one opening.
    pub(crate) fn open(&self, key: &Key) -> Option<Arc<dyn Source>> {
        let mut state = self.state();
        let kept = state.files.get_mut(key)?;
        kept.opens = kept.opens.checked_sub(1)?;
        kept.source.clone()
    }

    /// Keeps a file, after so many references were announced. One that was kept in its place is for the caller to
    /// drop.
    #[must_use]
    pub(crate) fn keep(&self, key: Key, mut kept: Kept, announced: u64) -> Option<Kept> {
        let files = &mut self.state().files;
        kept.opens += files.get(&key).map_or(0, |before| before.opens);
        files.keep(key, kept, announced)
    }

    /// The program closed this file, or its object is another one by now. For the caller to drop.
    #[must_use]
    pub(crate) fn close(&self, key: &Key) -> Option<Kept> {
        let mut state = self.state();
        let closed = state.files.remove(key);
        state.was_closed |= closed.is_some();
        closed
    }

    /// Those whose reads are over, for the caller to drop.
    #[must_use]
    pub(crate) fn over(&self, ledger: &Ledger, now: Instant) -> Vec<Kept> {
        self.state().files.over(ledger, now)
    }

    /// How many references were dropped since the last look, and whether a file was closed since
    /// then.
    pub(crate) fn dropped(&self, ledger: &Ledger) -> (u64, bool) {
        let mut state = self.state();
        let dropped = ledger.hints_dropped.saturating_sub(state.dropped);
        state.dropped = ledger.hints_dropped;
        (dropped, std::mem::take(&mut state.was_closed))
    }

    /// Whether this is the first time for this reason.
    pub(crate) fn is_new(&self, reason: Reason) -> bool {
        self.state().warned.insert(reason)
    }
}
