//! Files that are kept open because reads of them were announced.
//!
//! Problem: the engine drops the announced reads of a file that no reader has open. A program that
//! announces samples of many files names them, or opens each where it announces it and lets go of
//! it at once; the reads come later.
//!
//! Mechanism: a reader of each announced file is kept until its reads are over. The engine has one
//! order of references, and a reader is at most [`ORDER_WINDOW`] away from its place in it. With
//! `ended` references read, missed or dropped, every place before `ended - window` is over.
//! Example: the last reference of a file is the 500th of all; it is let go when 565 have ended, or
//! all.
//!
//! A file that its program closes is let go at once. An object that is opened while it is kept is
//! not asked for again, once for each announced read: its version is that of the announcement. A further opening
//! asks, because the object may be another one by now, and the reads may never come.
//!
//! The lock is held with the interpreter, and no reader is dropped under it: see [`crate`].

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forerun_core::{Ledger, ReaderId};
use forerun_io::Reader;
use forerun_io::source::Source;
use rustix::process::{Resource, getrlimit};

/// Distance of readers from their place in the order: the engine's most
/// (`docs/design/0007-live-hints.md`).
const ORDER_WINDOW: u64 = 64;

/// Most files: four times those that a data loader announces ahead, and a few megabytes of tables.
const FILES_MAX: u64 = 4096;

/// Of the descriptors that the process may have, one in so many is for announced files at most.
const DESCRIPTORS_PART: u64 = 4;

/// Announced reads of which none came for so long do not come, and their files are let go: as on a
/// mount.
const IDLE_MAX: Duration = Duration::from_secs(15 * 60);

/// An announced file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    /// By its path or address.
    Name(PathBuf),
    /// By a file that the program opened.
    Opened(ReaderId),
}

/// Its reader, and its place in the order.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) reader: Arc<Reader>,
    /// Of an object: others are opened by it without a question to the server.
    pub(crate) source: Option<Arc<dyn Source>>,
    /// How many references had been announced with its last one.
    pub(crate) last: u64,
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
    files: HashMap<Key, Kept>,
    /// Their keys in the order of their last references, and those of files that are announced
    /// again or closed.
    order: VecDeque<(u64, Key)>,
    /// How many references had ended when one more had, and when that was.
    moved: Option<(u64, Instant)>,
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
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        usize::try_from((limit / DESCRIPTORS_PART).min(FILES_MAX)).unwrap_or(usize::MAX)
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

    /// Keeps a file. One that was kept in its place is for the caller to drop.
    #[must_use]
    pub(crate) fn keep(&self, key: Key, mut kept: Kept) -> Option<Kept> {
        let mut state = self.state();
        state.moved = None;
        let before = state.files.get(&key);
        kept.opens += before.map_or(0, |before| before.opens);
        if before.map(|before| before.last) != Some(kept.last) {
            state.order.push_back((kept.last, key.clone()));
        }
        state.files.insert(key, kept)
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
        let ended = ledger.hints_read + ledger.hints_missed + ledger.hints_dropped;
        let mut state = self.state();
        let since = match state.moved {
            Some((before, since)) if before == ended => since,
            _ => now,
        };
        state.moved = Some((ended, since));
        let all = ended == ledger.hints || now.duration_since(since) >= IDLE_MAX;
        let mut over = Vec::new();
        while let Some((last, key)) = state.order.pop_front() {
            if !all && ended <= last + ORDER_WINDOW {
                state.order.push_front((last, key));
                break;
            }
            if let Some(kept) = state.files.remove(&key) {
                match kept.last > last {
                    true => drop(state.files.insert(key, kept)),
                    false => over.push(kept),
                }
            }
        }
        over
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
