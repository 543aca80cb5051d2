//! Lanes: the requests of one device, and the threads that carry them out.
//!
//! Requests of a lane start in the order they were submitted. A thread starts when all that its lane has are
//! busy, and ends when it was idle for [`IDLE`]. How it [reads](Reads) is for the pool to say:
//!
//! ```text
//! queue: 7 8 9 -> thread 1: 7                  one each, in preadv(2)
//!                 thread 2: 8
//! queue: 7 8 9 -> thread:   7 8 9              all at once, in io_submit(2)
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forerun_core::Bytes;

use crate::backend::{Request, Sink, read_here};
use crate::sync::{Condvar, Mutex};

/// How long a thread waits for another request before it ends: longer than pauses between reads of a
/// program, so that none starts a thread for each.
const IDLE: Duration = Duration::from_secs(10);

/// A thread that is in a read for so long does not count: it may never come back. The engine lets others
/// go out after the same time at the earliest.
const HANGS: Duration = Duration::from_secs(1);

/// Most threads that do not count, as many as requests that the engine does not count.
const HUNG_MAX: usize = 256;

/// How a thread of a lane carries requests out.
pub(super) trait Reads {
    /// How many it takes at once.
    fn most(&self) -> usize;

    /// Waits until the next may begin, which is at this place of the device.
    fn make_way(&self, position: Bytes);

    /// Carries these out, or begins to.
    fn read(&self, requests: VecDeque<Box<Request>>);

    /// Waits until all that began have ended.
    fn settle(&self);
}

/// One read after the other, on the lane's thread.
pub(super) struct OneByOne(pub(super) Arc<dyn Sink>);

impl Reads for OneByOne {
    fn most(&self) -> usize {
        1
    }

    fn make_way(&self, _: Bytes) {}

    fn read(&self, requests: VecDeque<Box<Request>>) {
        for mut request in requests {
            let outcome = read_here(&mut request);
            self.0.completed(request, outcome);
        }
    }

    fn settle(&self) {}
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Lane {
    queue: Mutex<Queue>,
    /// A request came, or the end.
    arrived: Condvar,
    /// A thread ended.
    ended: Condvar,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Box<Request>>,
    threads: usize,
    /// Most threads that count.
    threads_max: usize,
    /// Threads that wait for a request.
    idle: usize,
    /// When each of the others began its last request, by the number of its turn.
    begun: BTreeMap<u64, Instant>,
    /// Turns so far.
    turns: u64,
    stopping: bool,
}

impl Queue {
    /// Counts one thread more if requests wait and there may be one.
    fn takes_thread(&mut self, starting: usize) -> bool {
        let takes = self.requests.len() > self.idle + starting
            && (self.threads < self.threads_max
                || self.threads < self.threads_max + self.hung().min(HUNG_MAX));
        self.threads += usize::from(takes);
        takes
    }

    fn hung(&self) -> usize {
        let hung = self.begun.values();
        hung.filter(|begun| begun.elapsed() >= HANGS).count()
    }
}

impl Lane {
    /// Takes a request in; whether another thread is to be started for it, of so many at most. It counts from now on.
    pub(super) fn put(&self, request: Box<Request>, threads_max: usize) -> bool {
        let mut queue = self.queue.lock();
        queue.requests.push_back(request);
        queue.threads_max = threads_max;
        let more = queue.takes_thread(0);
        drop(queue);
        self.arrived.notify_one();
        more
    }

    /// How many threads are to be started for requests that wait behind threads that hang. They count from now on.
    pub(super) fn lacks(&self) -> usize {
        let mut queue = self.queue.lock();
        let mut starting = 0;
        while queue.takes_thread(starting) {
            starting += 1;
        }
        starting
    }

    /// The thread that was to be started could not be; the requests that no other one is there for.
    pub(super) fn lacks_a_thread(&self) -> VecDeque<Box<Request>> {
        let mut queue = self.queue.lock();
        queue.threads -= 1;
        // Fewer threads are slower; without any they would wait for ever.
        match queue.threads {
            0 => std::mem::take(&mut queue.requests),
            _ => VecDeque::new(),
        }
    }

    /// The life of a thread.
    pub(super) fn work(&self, reads: &dyn Reads) {
        let mut turn = None;
        loop {
            while let Some(position) = self.next(&mut turn) {
                reads.make_way(position);
                reads.read(self.take(reads.most()));
            }
            reads.settle();
            if self.leave() {
                return;
            }
        }
    }

    /// Where the next request is, whose turn begins; none if there was none for long, or the end has come.
    fn next(&self, turn: &mut Option<u64>) -> Option<Bytes> {
        let until = Instant::now() + IDLE;
        let mut queue = self.queue.lock();
        if let Some(ended) = turn.take() {
            queue.begun.remove(&ended);
        }
        loop {
            if let Some(request) = queue.requests.front() {
                let position = request.position;
                queue.turns += 1;
                let number = queue.turns;
                queue.begun.insert(number, Instant::now());
                *turn = Some(number);
                return Some(position);
            }
            if queue.stopping || Instant::now() >= until {
                return None;
            }
            queue.idle += 1;
            queue = self.arrived.wait_until(queue, until);
            queue.idle -= 1;
        }
    }

    /// The next requests, so many at most; none if other threads have taken them.
    fn take(&self, most: usize) -> VecDeque<Box<Request>> {
        let mut queue = self.queue.lock();
        let taken = queue.requests.len().min(most);
        queue.requests.drain(..taken).collect()
    }

    /// Counts the thread no more, unless a request came meanwhile, which would be left to it.
    fn leave(&self) -> bool {
        let mut queue = self.queue.lock();
        let is_over = queue.requests.is_empty();
        if is_over {
            queue.threads -= 1;
            self.ended.notify_all();
        }
        is_over
    }

    /// Threads end when there is nothing left to do.
    pub(super) fn stop(&self) {
        self.queue.lock().stopping = true;
        self.arrived.notify_all();
    }

    /// Waits until they have.
    pub(super) fn wait_for_the_end(&self) {
        let mut queue = self.queue.lock();
        while queue.threads > 0 {
            queue = self.ended.wait(queue);
        }
    }
}
