//! The pread backend: for each device a pool of threads that block in `preadv(2)`.
//!
//! Works on every kernel and file system, for files that changed to buffered reading, and for
//! generated content; [`super::uring`] keeps one for what its ring must not wait for. Requests of a
//! device start in the order they were submitted. A thread starts when all that its device has are
//! busy, and ends when it was idle for [`IDLE`]: most streams need few.
//!
//! Threads are the device's own: a file system whose server is silent holds sixteen of them, and
//! another has sixteen others.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Backend, Entry, Member, Request, Setup, Sink, read_here};
use crate::sync::{Condvar, Mutex};

/// The entry in [`super::LIST`].
pub const ENTRY: Entry = Entry {
    name: "pread",
    summary: "for each device up to 16 threads in preadv(2); works everywhere",
    source: "POSIX; fio's psync engine",
    start,
};

/// Enough to keep a queue of requests at any disk, few enough to be cheap when idle.
pub(super) const THREADS: u32 = 16;

/// How long a thread waits for another request before it ends: longer than pauses between reads of a
/// program, so that none starts a thread for each.
const IDLE: Duration = Duration::from_secs(10);

/// What one device has to do.
#[derive(Default)]
struct Lane {
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
    /// Threads that wait for a request.
    idle: usize,
    stopping: bool,
}

/// Whose lane it is: a file system's, or that of one disk below it.
type Key = (Option<u64>, Option<Member>);

/// Threads for a disk of an array: while one waits for its read, the other's is at the disk. More would
/// overtake each other.
const MEMBER_THREADS: usize = 2;

/// See the [module](self).
pub(super) struct Pool {
    sink: Arc<dyn Sink>,
    threads_max: usize,
    /// By device; none for what is made up.
    lanes: Mutex<HashMap<Key, Arc<Lane>>>,
}

fn start(sink: Arc<dyn Sink>, setup: &Setup) -> io::Result<Arc<dyn Backend>> {
    let threads = THREADS.min(setup.in_flight_max);
    Ok(Arc::new(Pool::new(sink, threads)))
}

impl Pool {
    pub(super) fn new(sink: Arc<dyn Sink>, threads: u32) -> Self {
        Self {
            sink,
            threads_max: threads.max(1) as usize,
            lanes: Mutex::default(),
        }
    }
}

/// One thread more for a lane, whose number modulo the number of copies is that of the copy. Numbers go up by
/// one, so a thread with a wrong one starts the next and ends.
fn spawn(lane: &Arc<Lane>, sink: &Arc<dyn Sink>, copy: (u32, u32)) -> io::Result<()> {
    let (lane, sink) = (lane.clone(), sink.clone());
    let builder = std::thread::Builder::new().name("forerun-pread".into());
    let work = move || {
        // SAFETY: a plain call; no memory is involved.
        let number = unsafe { libc::gettid() } as u32;
        let is_right = number % copy.1.max(1) == copy.0;
        // Where no thread can be started, this one reads, from the other copy.
        if is_right || spawn(&lane, &sink, copy).is_err() {
            lane.work(&*sink);
        }
    };
    builder.spawn(work).map(drop)
}

impl Lane {
    fn work(&self, sink: &dyn Sink) {
        while let Some(mut request) = self.next() {
            let outcome = read_here(&mut request);
            sink.completed(request, outcome);
        }
    }

    /// The next request; none if there was none for long, or the end has come: the thread counts no
    /// more then, in the same step, or a request that comes now would be left to it.
    fn next(&self) -> Option<Box<Request>> {
        let until = Instant::now() + IDLE;
        let mut queue = self.queue.lock();
        loop {
            if let Some(request) = queue.requests.pop_front() {
                return Some(request);
            }
            if queue.stopping || Instant::now() >= until {
                queue.threads -= 1;
                self.ended.notify_all();
                return None;
            }
            queue.idle += 1;
            queue = self.arrived.wait_until(queue, until);
            queue.idle -= 1;
        }
    }

    fn stop(&self) {
        self.queue.lock().stopping = true;
        self.arrived.notify_all();
    }
}

impl Backend for Pool {
    fn submit(&self, request: Box<Request>) {
        let device = request.source.as_ref().and_then(|source| source.device());
        let member = request.member;
        let lane = self
            .lanes
            .lock()
            .entry((device, member))
            .or_default()
            .clone();
        let mut queue = lane.queue.lock();
        queue.requests.push_back(request);
        let threads_max = match member {
            Some(_) => self.threads_max.min(MEMBER_THREADS),
            None => self.threads_max,
        };
        let more = queue.requests.len() > queue.idle && queue.threads < threads_max;
        queue.threads += usize::from(more);
        drop(queue);
        lane.arrived.notify_one();
        let copy = member.map_or((0, 1), |member| member.copy);
        if more && spawn(&lane, &self.sink, copy).is_err() {
            let mut queue = lane.queue.lock();
            queue.threads -= 1;
            // Fewer threads are slower; without any the request would wait for ever.
            let refused = match queue.threads {
                0 => std::mem::take(&mut queue.requests),
                _ => VecDeque::new(),
            };
            drop(queue);
            for request in refused {
                self.sink.completed(request, Err(libc::EAGAIN));
            }
        }
    }

    fn stop(&self) {
        let lanes: Vec<_> = self.lanes.lock().values().cloned().collect();
        for lane in lanes {
            lane.stop();
            let mut queue = lane.queue.lock();
            while queue.threads > 0 {
                queue = lane.ended.wait(queue);
            }
        }
    }
}

impl Drop for Pool {
    /// Threads end by themselves: one may be in a read that never ends.
    fn drop(&mut self) {
        self.lanes.lock().values().for_each(|lane| lane.stop());
    }
}
