//! The pread backend: a pool of threads that block in `preadv(2)`.
//!
//! Works on every kernel and file system, for files that changed to buffered reading, and for
//! generated content; [`super::uring`] keeps a small pool of it for what has no descriptor.
//! Requests start in the order they were submitted. Threads start when all there are have something
//! to do: most streams need few.
//!
//! Not fit for many slow devices at once: sixteen requests that wait for one device keep the
//! others' waiting.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::{Backend, Entry, Request, Setup, Sink, read_here};
use crate::sync::{Condvar, Mutex};

/// The entry in [`super::LIST`].
pub const ENTRY: Entry = Entry {
    name: "pread",
    summary: "a pool of 16 threads in preadv(2); works everywhere",
    source: "POSIX; fio's psync engine",
    start,
};

/// Enough to keep a queue of requests at any disk, few enough to be cheap when idle.
const THREADS: u32 = 16;

#[derive(Default)]
struct Queue {
    requests: VecDeque<Box<Request>>,
    /// Threads that wait for a request.
    idle: usize,
    stopping: bool,
}

struct Shared {
    sink: Arc<dyn Sink>,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

/// See the [module](self).
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads_max: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn start(sink: Arc<dyn Sink>, setup: &Setup) -> io::Result<Arc<dyn Backend>> {
    Ok(Arc::new(Pool::start(
        sink,
        THREADS.min(setup.in_flight_max),
    )?))
}

impl Pool {
    pub(super) fn start(sink: Arc<dyn Sink>, threads: u32) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            sink,
            queue: Mutex::default(),
            arrived: Condvar::default(),
        });
        let pool = Self {
            shared,
            threads_max: threads.max(1) as usize,
            threads: Mutex::default(),
        };
        pool.spawn()?;
        Ok(pool)
    }

    /// One thread more, if there may be.
    fn spawn(&self) -> io::Result<()> {
        let mut threads = self.threads.lock();
        if threads.len() < self.threads_max {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("forerun-pread-{}", threads.len()))
                .spawn(move || shared.work())?;
            threads.push(thread);
        }
        Ok(())
    }
}

impl Shared {
    fn work(&self) {
        while let Some(mut request) = self.next() {
            let outcome = read_here(&mut request);
            self.sink.completed(request, outcome);
        }
    }

    fn next(&self) -> Option<Box<Request>> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(request) = queue.requests.pop_front() {
                return Some(request);
            }
            if queue.stopping {
                return None;
            }
            queue.idle += 1;
            queue = self.arrived.wait(queue);
            queue.idle -= 1;
        }
    }
}

impl Backend for Pool {
    fn submit(&self, request: Box<Request>) {
        let mut queue = self.shared.queue.lock();
        queue.requests.push_back(request);
        let all_busy = queue.requests.len() > queue.idle;
        drop(queue);
        self.shared.arrived.notify_one();
        if all_busy {
            // Fewer threads are slower; the first one is there.
            let _ = self.spawn();
        }
    }

    fn stop(&self) {
        self.shared.queue.lock().stopping = true;
        self.shared.arrived.notify_all();
        for thread in self.threads.lock().drain(..) {
            // A panic in a worker was reported by its own thread; there is nothing to add.
            let _ = thread.join();
        }
    }

    fn may_hold_memory(&self, _: bool) -> bool {
        true
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
    }
}
