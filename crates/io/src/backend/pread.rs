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

use super::{Backend, Entry, Request, Setup, Sink, read_here};
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

/// See the [module](self).
pub(super) struct Pool {
    sink: Arc<dyn Sink>,
    threads_max: usize,
    /// By device; none for what is made up.
    lanes: Mutex<HashMap<Option<u64>, Arc<Lane>>>,
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

    /// One thread more for a device.
    fn spawn(&self, lane: &Arc<Lane>) -> io::Result<()> {
        let (lane, sink) = (lane.clone(), self.sink.clone());
        let builder = std::thread::Builder::new().name("forerun-pread".into());
        builder.spawn(move || lane.work(&*sink)).map(drop)
    }
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
        let lane = self.lanes.lock().entry(device).or_default().clone();
        let mut queue = lane.queue.lock();
        queue.requests.push_back(request);
        let more = queue.requests.len() > queue.idle && queue.threads < self.threads_max;
        queue.threads += usize::from(more);
        drop(queue);
        lane.arrived.notify_one();
        if more && self.spawn(&lane).is_err() {
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
