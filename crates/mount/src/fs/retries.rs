//! Opens that were answered `ESTALE` and that the kernel is about to try again.
//!
//! Problem: the kernel tries once more, by looking the path up and opening the file found. A file
//! that is replaced all the time may be another one by then, and the second `ESTALE` would reach a
//! program that did nothing wrong.
//!
//! Mechanism: while opens meet changes, files that are looked up stay at hand for [`CLAIM`]. After
//! `ESTALE` the thread's next open gets its file from there, if it was looked up after that answer,
//! even if the name leads to another file by then. That file had this name and these rights while
//! the program's call was under way, which is all that `open(2)` guarantees. (It need not have been
//! looked up for this thread: the kernel shares one look-up among all waiting threads.)
//!
//! ```text
//! thread 7 opens a   --> ESTALE, expected(7)
//! a is looked up     --> file X, kept                    meanwhile: a is replaced by Y
//! thread 7 opens X   --> X                               the next open by any thread: Y
//! ```
//!
//! A file at hand also keeps its inode number: were that given to a new file and looked up, the
//! kernel would give up its inode of the old one, and its next open would fail with `EIO`.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::nodes::Node;
use crate::lock;

/// How long after it was looked up a file may be opened so by the thread that was answered `ESTALE`. The kernel
/// does it at once, when the thread gets a processor: a tenth of a second was too short on two processors
/// with twenty programs at work.
const CLAIM: Duration = Duration::from_secs(1);

/// Time limit of giving out its attributes to threads that were not answered `ESTALE`: rights that were taken away
/// meanwhile would count, and such a thread gets them by the `ESTALE` it is answered now.
const AT_HAND: Duration = Duration::from_millis(100);

/// Time that files are kept at hand after the last `ESTALE`: files that change, change again.
const HOT: Duration = Duration::from_secs(1);

/// Files at hand, most; and threads, most. A thread that was answered `ESTALE` is let wait for a processor
/// while others look names up: sixteen of them went through 64 in that time, once in seventy runs of a
/// second.
const FILES_MAX: usize = 1024;

#[derive(Debug, Default)]
struct State {
    /// Threads that were answered `ESTALE`, and when.
    threads: HashMap<u32, Instant>,
    last: Option<Instant>,
    /// Files at hand, the oldest first.
    files: VecDeque<(Node, Arc<File>, Instant)>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// Whether there is anything: mostly not, which is seen without the lock.
    hot: AtomicBool,
    state: Mutex<State>,
}

impl Retries {
    /// An open by this thread was answered `ESTALE`, or a question about attributes before it.
    pub(super) fn expected(&self, thread: u32) {
        let mut state = lock(&self.state);
        let now = Instant::now();
        if state.threads.len() >= FILES_MAX {
            state
                .threads
                .retain(|_, since| now.duration_since(*since) < CLAIM);
        }
        if state.threads.len() < FILES_MAX {
            state.threads.insert(thread, now);
        }
        state.last = Some(now);
        self.hot.store(true, Ordering::Relaxed);
    }

    /// A file was looked up.
    pub(super) fn found(&self, node: Node, file: Arc<File>) {
        if self.hot.load(Ordering::Relaxed) {
            let mut state = lock(&self.state);
            state.files.push_back((node, file, Instant::now()));
            state.let_old_ones_go();
        }
    }

    /// A thread opens this: the file, if it was answered `ESTALE` and the file looked up since.
    pub(super) fn claimed(&self, thread: u32, node: Node) -> Option<Arc<File>> {
        if !self.hot.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = lock(&self.state);
        let since = state.threads.remove(&thread)?;
        let (file, at) = state.looked_up(node)?;
        (at >= since && at.elapsed() < CLAIM).then(|| file.clone())
    }

    /// A thread asks for the attributes of this, before an open or for themselves: the file, if the thread
    /// may claim it, or if it was looked up a moment ago.
    pub(super) fn at_hand(&self, thread: u32, node: Node) -> Option<Arc<File>> {
        if !self.hot.load(Ordering::Relaxed) {
            return None;
        }
        let state = lock(&self.state);
        let (file, at) = state.looked_up(node)?;
        let may_claim = state.threads.get(&thread).is_some_and(|since| at >= *since);
        let most = if may_claim { CLAIM } else { AT_HAND };
        (at.elapsed() < most).then(|| file.clone())
    }

    /// Lets go of files whose claims are over; called now and then.
    pub(super) fn prune(&self) {
        if self.hot.load(Ordering::Relaxed) {
            let mut state = lock(&self.state);
            state.let_old_ones_go();
            if state.last.is_none_or(|last| last.elapsed() > HOT) {
                *state = State::default();
                self.hot.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Lets go of all files.
    pub(super) fn clear(&self) {
        lock(&self.state).files.clear();
    }
}

impl State {
    /// The file of a node as it was looked up last, and when.
    fn looked_up(&self, node: Node) -> Option<(&Arc<File>, Instant)> {
        let mut files = self.files.iter().rev();
        let (_, file, at) = files.find(|(found, ..)| *found == node)?;
        Some((file, *at))
    }

    fn let_old_ones_go(&mut self) {
        while let Some((.., at)) = self.files.front()
            && (self.files.len() > FILES_MAX || at.elapsed() >= CLAIM)
        {
            self.files.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Arc<File> {
        Arc::new(File::open("/dev/null").unwrap())
    }

    #[test]
    fn a_file_is_claimed_once_by_a_thread_that_was_answered_before_it_was_looked_up() {
        let retries = Retries::default();
        let (one, other) = (Node(5), Node(6));
        retries.found(one, file());
        assert!(retries.claimed(1, one).is_none(), "nothing was expected");
        retries.expected(1);
        retries.found(one, file());
        retries.expected(2);
        assert!(retries.claimed(3, one).is_none(), "not answered");
        assert!(retries.claimed(2, one).is_none(), "looked up before");
        assert!(retries.claimed(1, one).is_some());
        assert!(retries.claimed(1, one).is_none(), "once");
        retries.expected(1);
        retries.found(one, file());
        assert!(retries.claimed(1, other).is_none());
    }

    #[test]
    fn attributes_are_at_hand_for_a_claim_and_briefly_for_others() {
        let retries = Retries::default();
        let node = Node(5);
        let now = Instant::now();
        // Thread 1 was answered, and the file looked up thereafter, this long ago.
        let looked_up = |ago: Duration| {
            let mut state = lock(&retries.state);
            state.threads.insert(1, now.checked_sub(ago).unwrap());
            state.files = [(node, file(), now.checked_sub(ago).unwrap())].into();
        };
        retries.expected(1);
        retries.found(node, file());
        assert!(retries.at_hand(1, Node(6)).is_none());
        looked_up(AT_HAND);
        assert!(retries.at_hand(1, node).is_some(), "its open follows");
        assert!(retries.at_hand(2, node).is_none(), "not answered");
        assert!(retries.claimed(1, node).is_some());
        looked_up(CLAIM);
        assert!(retries.at_hand(1, node).is_none());
    }

    #[test]
    fn files_at_hand_are_few() {
        let retries = Retries::default();
        for thread in 0..1000 {
            retries.expected(thread);
            retries.found(Node(7), file());
        }
        let state = lock(&retries.state);
        assert!(state.files.len() <= FILES_MAX && state.threads.len() <= FILES_MAX);
        drop(state);
        retries.clear();
        assert!(lock(&retries.state).files.is_empty());
    }
}
